"""demo.programs.check_revenue: the table of revenue -> how its tests went, as an OpenLineage event.

    python check_revenue.py /data/lake

Any tool that tests data can say what it found in this way. The dataset is named as OpenLineage's naming rules say, by where
it lies; so it is the one that Spark wrote, and the run that wrote it is blamed.
"""

from __future__ import annotations

import sys
import uuid
from datetime import datetime, timezone
from typing import Any

import pyarrow.compute
import pyarrow.parquet

import headwater

SPEC = "https://openlineage.io/spec"
PRODUCER = "https://example.com/shop/check_revenue"


def check(table: Any) -> list[dict[str, Any]]:
    """The tests, and whether the table passes them."""
    revenue = table["revenue"]
    missing, lowest = revenue.null_count, pyarrow.compute.min(revenue).as_py()
    return [
        {"assertion": "not_empty", "success": table.num_rows > 0},
        {"assertion": "not_negative", "column": "revenue", "success": lowest is None or lowest >= 0},
        {
            "assertion": "not_null",
            "column": "revenue",
            "success": missing == 0,
            "message": f"{missing} of {table.num_rows} rows have no revenue",
        },
    ]


def tell(path: str, assertions: list[dict[str, Any]]) -> None:
    """Send what was found: the events of a run whose input is the table, with the tests on it."""
    facet = {
        "_producer": PRODUCER,
        "_schemaURL": f"{SPEC}/facets/1-0-1/DataQualityAssertionsDatasetFacet.json",
        "assertions": assertions,
    }
    tested = {"namespace": "file", "name": path, "inputFacets": {"dataQualityAssertions": facet}}
    event = {
        "eventType": "COMPLETE",
        "eventTime": datetime.now(timezone.utc).isoformat(),
        "producer": PRODUCER,
        "schemaURL": f"{SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": str(uuid.uuid4())},
        "job": {"namespace": "shop", "name": "check_revenue"},
        "inputs": [tested],
        "outputs": [],
    }
    headwater.emit(event)


if __name__ == "__main__":
    revenue = f"{sys.argv[1]}/gold/revenue"
    tell(revenue, check(pyarrow.parquet.read_table(revenue)))
