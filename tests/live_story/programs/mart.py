"""A dlt pipeline that knows nothing of Headwater: a Delta table, read with deltalake, into DuckDB."""

import sys

from deltalake import DeltaTable

import dlt

lake, file = sys.argv[1:]
gold = DeltaTable(f"{lake}/gold")


@dlt.resource(write_disposition="replace")
def orders():
    yield gold.to_pyarrow_table()


orders.add_input({"kind": "delta", "location": gold.table_uri})
pipeline = dlt.pipeline("mart", destination=dlt.destinations.duckdb(file), dataset_name="mart")
pipeline.run(orders)
