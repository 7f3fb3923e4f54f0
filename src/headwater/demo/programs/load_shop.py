"""demo.programs.load_shop: the shop's API and its database -> Parquet files in the lake, by dlt.

    headwater run -- python load_shop.py http://127.0.0.1:8080 sqlite:////data/shop.db /data/lake

Nothing in here knows of lineage: `headwater run` listens to dlt. Orders come as nested JSON; dlt puts the lines of each
into a table of their own, `orders__lines`, and flattens what is nested once: `customer.id` becomes `customer__id`.
"""

from __future__ import annotations

import sys
from typing import Any

import dlt
from dlt.sources.rest_api import rest_api_source
from dlt.sources.sql_database import sql_database


def orders(api: str) -> Any:
    """Every order that the API has, page by page."""
    return rest_api_source(
        {
            "client": {"base_url": api, "paginator": {"type": "json_link", "next_url_path": "next"}},
            "resources": [
                {"name": "orders", "endpoint": {"path": "v1/orders", "data_selector": "orders"}},
            ],
        },
        name="shop_api",
    )


def load(api: str, database: str, lake: str) -> None:
    """Load the orders of the API, and the customers and products of the database."""
    pipeline = dlt.pipeline(
        "load_shop",
        destination=dlt.destinations.filesystem(lake),
        dataset_name="raw",
    )
    sources = [orders(api), sql_database(database, table_names=["customers", "products"])]
    pipeline.run(sources, loader_file_format="parquet")


if __name__ == "__main__":
    load(*sys.argv[1:])
