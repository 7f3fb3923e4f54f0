"""proving: a store, a pipeline's tables and a ledger -> what is lost, what differs; nothing, if all is well.

The ledger is the generator's own account. What the store holds is read row by row and counted in the same way, so that a month of any
size is proven in little memory: a sum of digests tells that two sets are the same, or that they are not.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / "tests"), str(ROOT / "tests" / "pipeline")]

from dumping import told  # noqa: E402

from headwater.facts import TABLES  # noqa: E402
from headwater.store import Store, open_store  # noqa: E402
from headwater.store._dump import VERSIONS, identities, rows  # noqa: E402
from ledger import Ledger, Sum, micros, of_assertion, of_run  # noqa: E402
from sending import ask  # noqa: E402

Rows = Iterable[tuple[tuple[Any, ...], dict[str, Any]]]
NAMES = (*TABLES, VERSIONS)


def log_of(store: Store) -> Sum:
    """Every entry of the raw log, by its bytes."""
    found = Sum()
    for _, entry in store.log():
        found.add(entry.raw)
    return found


def stored(store: Store, name: str) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """A table of a store."""
    with store.writing() as connection:  # one moment of it
        yield from rows(connection, name, identities(connection))


def against(store: Store, ledger: Ledger) -> tuple[list[str], dict[str, Any]]:
    """What the store holds that the ledger does not say, or the other way; and how much there is."""
    wrong: list[str] = []

    def same(what: str, found: Any, expected: Any) -> None:
        if found == expected:
            return
        if isinstance(found, set) and isinstance(expected, set):
            missing, more = expected - found, found - expected
            wrong.append(f"{what}: {len(missing)} missing {sorted(missing)[:3]}, {len(more)} too many {sorted(more)[:3]}")  # fmt: skip
        else:
            wrong.append(f"{what}: {found}, where the generator says {expected}")

    log = log_of(store)
    same("distinct events in the log", log.count, ledger.events.count)
    same("the sum of their digests", log.total, ledger.events.total)
    runs, states = Sum(), Counter[str]()
    for (run,), row in stored(store, "runs"):
        state = row["state"][1].split(" ", 1)[1] if "state" in row else "NONE"
        states[state] += 1
        runs.add(of_run(run, state, row.get("job", (0, ""))[1], row.get("parent", (0, ""))[1]))
    same("runs by their last state", dict(states), dict(ledger.states))
    same("runs with state, job and parent", runs, ledger.runs)
    same("jobs", {key[0] for key, _ in stored(store, "jobs")}, ledger.jobs)
    canonical = {key[0]: row["canonical"] for key, row in stored(store, "datasets")}
    same("datasets", set(canonical), ledger.datasets)
    joined = {ledger.aliases.get(each, each) for each in ledger.datasets}
    same("datasets, once each", len(set(canonical.values())), len(joined))
    edges = {key for key, _ in stored(store, "edges")}
    same("edges", edges, ledger.edges)
    columns = {key[:2] for key, _ in stored(store, "column_edges")}
    same("jobs that tell columns of a dataset", columns, ledger.columns)
    tests = Sum()
    for key, row in stored(store, "assertions"):
        tests.add(of_assertion(*key, bool(row["failed"][1])))
    same("outcomes of tests", tests, ledger.assertions)
    same("refused events", store.counts()["rejects"], 0)
    found = {"log": log.count, "states": dict(sorted(states.items())), "jobs": len(ledger.jobs)}
    found |= {"datasets": len(joined), "edges": len(edges), "assertions": tests.count}
    return wrong, found


def incidents(pages: Callable[[int], dict[str, Any]], ledger: Ledger) -> tuple[list[str], dict[str, int]]:
    """The incidents that are listed, a thousand from a place on, beside those that the generator made."""
    places = {
        f"dataset:{alias.replace(chr(10), ':')}": f"dataset:{place.replace(chr(10), ':')}"
        for alias, place in ledger.aliases.items()
    }
    found = set()
    offset = 0
    while True:
        page = pages(offset)
        for each in page["incidents"]:
            node = each.get("dataset") or each["job"]
            found.add(
                (
                    each["kind"],
                    places.get(node, node),
                    each["test"],
                    each["column"] or "",
                    each["status"],
                    micros(each["openedAt"]),
                    micros(each["lastFailedAt"]),
                    each["failures"],
                )
            )
        offset += 1000
        if offset >= page["total"]:
            break
    expected = ledger.incidents()
    counts = Counter(f"{each[0]} {each[4]}" for each in found)
    wrong = []
    if found != expected:
        missing, more = sorted(expected - found), sorted(found - expected)
        wrong.append(f"incidents: {len(missing)} missing {missing[:3]}, {len(more)} too many {more[:3]}")
    return wrong, dict(sorted(counts.items()))


def over_http(port: int) -> Callable[[int], dict[str, Any]]:
    """The pages of a server's list."""
    path = "/hw/v1/incidents?status=all&days=3650&limit=1000&offset="
    return lambda offset: json.loads(ask(port, f"{path}{offset}"))  # type: ignore[no-any-return]


# --- the server's tables beside the pipeline's


def summed(table: Rows) -> Sum:
    """The rows of a table, each with its key and all that is said."""
    found = Sum()
    for key, row in table:
        found.add(msgspec.msgpack.encode((key, sorted(row.items()))))
    return found


def equal(url: str, spark: Any, sink: str, *, whole: bool) -> tuple[list[str], int]:
    """The tables that differ between a store and a pipeline's sink; and how many rows were compared.

    A `whole` table is fetched at once, which is quicker; a large one piece by piece.
    """
    from headwater import pipeline

    wrong, total = [], 0
    store = open_store(url)
    try:
        for name in NAMES:
            ours = summed(stored(store, name))
            frame = pipeline.read(spark, sink, name)
            theirs = summed(told(name, frame.collect() if whole else frame.toLocalIterator()))
            total += ours.count
            if ours != theirs:
                wrong.append(
                    f"table {name}: {ours.count:,} rows by the server, {theirs.count:,} by the pipeline"
                    + (", which are not the same" if ours.count == theirs.count else "")
                    + _first_difference(store, name, spark, sink)
                )
    finally:
        store.close()
    return wrong, total


def _first_difference(store: Store, name: str, spark: Any, sink: str) -> str:
    """One row that differs, for whoever must find out why."""
    from headwater import pipeline

    ours = dict(stored(store, name))
    for key, row in told(name, pipeline.read(spark, sink, name).toLocalIterator()):
        if ours.pop(key, None) != row:
            return f"; the pipeline has {key}: {row}"
    return f"; the server alone has {next(iter(ours.items()))}" if ours else ""


def node(department: int) -> str:
    """A dataset in the middle of a department, as a question names it."""
    return quote(f"dataset:s3://lake:silver/d{department:03d}/t30", safe="")
