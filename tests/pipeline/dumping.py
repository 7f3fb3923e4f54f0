"""A sink's tables, read back through Spark, in the shape of `facts.settle`: what every engine is compared in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from headwater import pipeline
from headwater.errors import EventError
from headwater.event import parse
from headwater.facts import TABLES, Rule, Tables, derive, fold, settle
from headwater.naming import DEFAULT_RULES, Aliases, AliasRule


def plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, (bytearray, memoryview)) else value


def dumped(spark: Any, sink: str) -> Tables:
    """Every table of `facts`, and what is settled."""
    names = (*TABLES, "job_versions")
    with ThreadPoolExecutor(4) as pool:
        collected = pool.map(lambda name: pipeline.read(spark, sink, name).collect(), names)
    found: Tables = {}
    for name, read in zip(names, collected, strict=True):
        rows = found[name] = {}
        for key, values in told(name, read):
            assert key not in rows, f"{name} has {key} twice"
            rows[key] = values
    return found


def told(name: str, read: Iterable[Any]) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Spark's rows of one table -> the key and what is said of each."""
    if name == "job_versions":
        for row in read:
            yield (
                (row.job, bytes(row.version)),
                {"first_seen": row.first_seen, "last_seen": row.last_seen},
            )
        return
    table = TABLES[name]
    for row in read:
        said = {c: plain(v) for c, v in row.asDict().items() if v is not None}
        values: dict[str, Any] = {c: said[c] for c in ("io", "canonical") if c in said}
        for column, spec in table.columns.items():
            if spec.rule is Rule.LATEST and f"{column}_at" in said:
                values[column] = (said[f"{column}_at"], said[column])
            elif spec.rule is not Rule.LATEST and column in said:
                values[column] = said[column]
        yield tuple(said[part] for part in table.key), values


def in_memory(payloads: Iterable[bytes]) -> Tables:
    """The pure engine, over what is good."""
    rows = []
    for each in payloads:
        try:
            rows += derive(parse(each))
        except EventError:
            continue
    tables = fold(rows)
    rules = [
        AliasRule.from_dict(msgspec.json.decode(row["rule"][1]))
        for _, row in sorted(tables["aliases"].items())
        if row["rule"][1]
    ]
    return settle(tables, Aliases([*rules, *DEFAULT_RULES]))


def same(one: Tables, other: Tables) -> None:
    """Row by row, with a difference that can be read."""
    assert one.keys() == other.keys()
    for name in one:
        missing, more = one[name].keys() - other[name].keys(), other[name].keys() - one[name].keys()
        assert not missing, f"{name}: {len(missing)} missing: {[*missing][:3]}"
        assert not more, f"{name}: {len(more)} too many: {[*more][:3]}"
        for key, row in one[name].items():
            assert row == other[name][key], f"{name} {key}"
