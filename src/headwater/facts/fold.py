"""facts.fold: rows -> tables in memory, merged by the rules; then what follows from whole tables.

`fold` is the in-memory engine, the combiner in front of SQL and the partial aggregation inside Spark.
`settle` adds what no single event can tell: the version a completed run shows, and each dataset's
canonical identity. Both are functions of the merged tables alone, so they cannot depend on order either.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headwater.facts.canonical import representatives
from headwater.facts.tables import TABLES, Row, Rule
from headwater.facts.versions import job_versions, run_versions
from headwater.naming import Aliases

Tables = dict[str, dict[tuple[Any, ...], dict[str, Any]]]

_MINIMA = {name: frozenset(table.of(Rule.MIN)) for name, table in TABLES.items()}


def fold(rows: Iterable[Row], into: Tables | None = None) -> Tables:
    """Merge rows into tables, by the rules of `TABLES`.

    >>> tables = fold([("jobs", ("etl\\nload",), {"first_seen": 5}), ("jobs", ("etl\\nload",), {"first_seen": 3})])
    >>> tables["jobs"]
    {('etl\\nload',): {'first_seen': 3}}
    """
    tables: Tables = into if into is not None else {name: {} for name in TABLES}
    for name, key, row in rows:
        table = tables[name]
        old = table.get(key)
        if old is None:
            table[key] = dict(row)
            continue
        minima = _MINIMA[name]
        for column, value in row.items():
            have = old.get(column)
            # MAX compares values, LATEST (stamp, value) pairs: the same comparison
            if have is None or (value < have if column in minima else value > have):
                old[column] = value
    return tables


def settle(tables: Tables, aliases: Aliases) -> Tables:
    """Folded tables -> the same with `runs.io`, `datasets.canonical` and the table `job_versions`."""
    shown = run_versions(tables)
    whole = dict(tables)
    whole["runs"] = {
        key: {**row, "io": shown[key[0]]} if key[0] in shown else row for key, row in tables["runs"].items()
    }
    whole["job_versions"] = job_versions(tables, shown)
    names = {key[0] for key in tables["datasets"]} | {key[1] for key in tables["column_sources"]}
    links = {(key[0], key[1]) for key in tables["symlinks"]}
    canonical = representatives(names, links, aliases)
    whole["datasets"] = {
        key: {**row, "canonical": canonical[key[0]]} for key, row in tables["datasets"].items()
    }
    return whole
