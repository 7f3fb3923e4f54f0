"""demo_oracle: fields of the shop's API and database to stir -> the revenue that the demo's own programs make of it then.

    python demo_oracle.py FOLDER '[[], [["/v1/orders", "lines[*].price"]], [["customers", "name"], …]]'

Each list is a shop in which the values of those fields stand elsewhere than they did, and no other value is touched. Where a
column is made of a field, its values must change with it; where none of the fields has to do with it, they must not. Nothing of
lineage is asked: this is what the programs do.
"""

from __future__ import annotations

import copy
import json
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from headwater.demo import shop
from headwater.demo.programs import build_revenue, load_shop

ORDERS = "/v1/orders"


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any, Callable[[Any], None]]]:
    """Each value in nested JSON: the path of its field, itself, and how to put another in its place."""
    pairs: Any = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in list(pairs):
        here = f"{path}[*]" if isinstance(value, list) else f"{path}.{key}".lstrip(".")
        if isinstance(inner, (dict, list)):
            yield from leaves(inner, here)
        else:
            yield here, inner, lambda other, key=key: value.__setitem__(key, other)


def stirred(orders: list[shop.Order], field: str) -> list[shop.Order]:
    """The orders with each value of a field where the one before it was."""
    made = copy.deepcopy(orders)
    found = [(value, put) for path, value, put in leaves(made) if path == f"[*].{field}"]
    assert found, field
    for at, (_, put) in enumerate(found):
        put(found[at - 1][0])
    return made


def stir_table(path: Path, table: str, column: str) -> None:
    """The same of a column in the database."""
    with closing(sqlite3.connect(path)) as base, base:
        found = base.execute(f"SELECT * FROM {table} ORDER BY rowid")
        at = [each[0] for each in found.description].index(column)
        rows = found.fetchall()
        base.execute(f"DELETE FROM {table}")
        for before, row in zip([rows[-1], *rows], rows, strict=False):
            base.execute(
                f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})",
                (*row[:at], before[at], *row[at + 1 :]),
            )


def revenue(spark: Any, folder: Path, stir: list[tuple[str, str]]) -> list[str]:
    """The values of the column, in order."""
    folder.mkdir()
    orders, lake = shop.orders(), str(folder / "lake")
    database = shop.make_database(folder / "shop.db")
    for place, field in stir:
        if place == ORDERS:
            orders = stirred(orders, field)
        else:
            stir_table(folder / "shop.db", place, field)
    with shop.open_api(orders) as api:
        load_shop.load(api, database, lake)
    build_revenue.build_sales(spark, lake)
    build_revenue.build_revenue(spark, lake)
    return sorted(str(row["revenue"]) for row in spark.read.parquet(f"{lake}/gold/revenue").collect())


if __name__ == "__main__":
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    base = Path(sys.argv[1])
    made = [
        revenue(session, base / str(at), [(place, field) for place, field in stir])
        for at, stir in enumerate(json.loads(sys.argv[2]))
    ]
    session.stop()
    print(json.dumps(made))
