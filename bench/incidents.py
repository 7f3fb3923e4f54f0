"""incidents: a chain of jobs whose test fails -> how long listing and explaining take, as runs grow a hundredfold.

    python bench/incidents.py [--full] [--json FILE]      --full: and catalogues with 300,000 and 800,000 assertions

Recorded beside it: Correlator's impact view on a chain of five jobs took 0.13 s with 5 runs a job, 2.05 s with 10,
18.2 s with 15, and passes its own limit of 30 s near 17.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime, timedelta, timezone
from uuid import NAMESPACE_URL, uuid5

from headwater.facts.commands import SetAlias
from headwater.ingest import command, ingest_all
from headwater.query.blame import show_incident
from headwater.query.incidents import list_incidents
from headwater.store import open_store
from noting import Notes

BEGUN = datetime.now(timezone.utc) - timedelta(days=20)


def event(job: str, run: int, minutes: float, **io: object) -> bytes:
    told = {
        "eventType": "COMPLETE",
        "eventTime": (BEGUN + timedelta(minutes=minutes)).isoformat(),
        "run": {"runId": str(uuid5(NAMESPACE_URL, f"{job} {run}"))},
        "job": {"namespace": "etl", "name": job},
    }
    return json.dumps(told | io).encode()


def table(number: int) -> dict[str, str]:
    return {"namespace": "db", "name": f"t{number}"}


def tested(number: int, run: int, tests: int) -> dict[str, object]:
    every = [
        {"assertion": f"a{k}", "column": "c", "success": bool(k % 10 or (run + k) % 7 > 1)}
        for k in range(tests)
    ]
    every[0]["success"] = False
    return table(number) | {"inputFacets": {"dataQualityAssertions": {"assertions": every}}}


def stream(jobs: int, runs: int, tests: int) -> Iterator[bytes]:
    for run in range(runs):
        for job in range(jobs):
            yield event(f"j{job}", run, run * 60 + job * 0.01, inputs=[table(job)], outputs=[table(job + 1)])
        for number in range(1, jobs + 1, max(1, jobs // 100)):
            yield event(f"dbt{number}", run, run * 60 + 30, inputs=[tested(number, run, tests)])


def median(ask: Callable[[], object], times: int = 9) -> float:
    took = []
    for _ in range(times):
        began = time.perf_counter()
        ask()
        took.append(time.perf_counter() - began)
    return statistics.median(took) * 1000


CORRELATOR = {5: 130.0, 10: 2_050.0, 15: 18_200.0}
"""Runs a job -> milliseconds of Correlator's impact view, as once measured."""


def measure(jobs: int, runs: int, tests: int, folder: str) -> tuple[int, float, float]:
    """How many assertions there are, and the milliseconds of the list and of one incident explained."""
    store = open_store(f"sqlite:///{folder}/{jobs}x{runs}.db", synchronous="off")
    for _ in ingest_all(store, stream(jobs, runs, tests), size=2_000):
        pass
    first = int(list_incidents(store)["incidents"][0]["id"])
    found = (
        store.counts()["assertions"],
        median(lambda: list_incidents(store)),
        median(lambda: show_incident(store, first)),
    )
    store.close()
    return found


def healing(runs: int, names: tuple[str, ...]) -> Iterator[bytes]:
    """200 tables with 20 tests each, two of which fail now and then, told by the table's names in turn."""
    for run in range(runs):
        for number in range(200):
            told = [
                {"assertion": f"a{k}", "column": "c", "success": bool(k % 10 or (run + k + number) % 7 > 1)}
                for k in range(20)
            ]
            facets = {"dataQualityAssertions": {"assertions": told}}
            seen = {"namespace": names[run % len(names)], "name": f"t{number}", "inputFacets": facets}
            yield event(f"dbt{number}", run, run * 60 + 30 + number * 0.01, inputs=[seen])


def measure_names(runs: int, names: tuple[str, ...], folder: str) -> tuple[int, int, float]:
    """How many assertions there are, how many incidents are open, and the milliseconds of the list."""
    with closing(open_store(f"sqlite:///{folder}/{len(names)}names{runs}.db", synchronous="off")) as store:
        command(store, SetAlias(at=1, rule={"pattern": "demo/{t}", "canonical": "db/{t}"}))
        for _ in ingest_all(store, healing(runs, names), size=2_000):
            pass
        shown = list_incidents(store)["total"]
        return store.counts()["assertions"], shown, median(lambda: list_incidents(store))


def main() -> None:
    notes = Notes("incidents", packages=("sqlalchemy",))
    rows, lines = [], {"list": [], "explain": []}
    sizes = [(5, runs, 1) for runs in (1, 5, 10, 15, 100)]
    with tempfile.TemporaryDirectory() as folder:
        for jobs, runs, tests in [*sizes, *([(100, 60, 50)] if "--full" in sys.argv else [])]:
            assertions, listed, explained = measure(jobs, runs, tests, folder)
            theirs = CORRELATOR.get(runs) if jobs == 5 else None
            told = (f"{jobs}", f"{runs}", f"{assertions:,}", f"{listed:.1f} ms", f"{explained:.1f} ms")
            rows.append((*told, "" if theirs is None else f"{theirs:,.0f} ms"))
            if jobs == 5:
                lines["list"].append((runs, listed))
                lines["explain"].append((runs, explained))
            if theirs is not None and runs == 15:
                notes.ratio("Correlator, as once measured", "an incident's impact with 15 runs a job", theirs / explained)  # fmt: skip
        healed = []
        for runs in (20, 200 if "--full" in sys.argv else 60):
            for names in (("db",), ("db", "demo")):
                assertions, shown, listed = measure_names(runs, names, folder)
                healed.append((f"{runs}", f"{len(names)}", f"{assertions:,}", f"{shown}", f"{listed:.1f} ms"))
    notes.table("names", ("runs of each", "names of each table", "assertions", "open", "list"), healed)
    notes.table("growth", ("jobs", "runs of each", "assertions", "list", "explain one", "Correlator's impact view"), rows)  # fmt: skip
    few, many = lines["explain"][0][1], lines["explain"][-1][1]
    notes.aim("an incident explained, with a hundred times the runs: at most twice the time", f"{many / few:.1f} times", many <= 2 * few)  # fmt: skip
    lines["Correlator, once"] = list(CORRELATOR.items())
    notes.plot("growth", "line", "Incidents on a chain of five jobs, as runs grow", "runs of each job", "ms", lines, log=True)  # fmt: skip
    notes.keep()


if __name__ == "__main__":
    main()
