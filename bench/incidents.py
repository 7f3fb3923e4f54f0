"""incidents: a chain of jobs whose test fails -> how long listing and explaining take, as runs grow a hundredfold.

    python bench/incidents.py [--full]      --full: and a catalogue with 300,000 assertions

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
from datetime import datetime, timedelta, timezone
from uuid import NAMESPACE_URL, uuid5

from headwater.ingest import ingest_all
from headwater.query.blame import show_incident
from headwater.query.incidents import list_incidents
from headwater.store import open_store

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


def measure(jobs: int, runs: int, tests: int, folder: str) -> None:
    store = open_store(f"sqlite:///{folder}/{jobs}x{runs}.db", synchronous="off")
    for _ in ingest_all(store, stream(jobs, runs, tests), size=2_000):
        pass
    first = int(list_incidents(store)["incidents"][0]["id"])
    print(
        f"{jobs:>5} jobs {runs:>4} runs each, {store.counts()['assertions']:>8,} assertions:"
        f"  list {median(lambda: list_incidents(store)):7.1f} ms"
        f"  explain {median(lambda: show_incident(store, first)):7.1f} ms"
    )
    store.close()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for runs in (1, 5, 10, 15, 100):
            measure(5, runs, 1, folder)
        if "--full" in sys.argv:
            measure(100, 60, 50, folder)


if __name__ == "__main__":
    main()
