"""airflow: a DAG of many tasks in a real Airflow -> what an event costs its task with our transport, beside the console's.

    python bench/airflow.py [--full] [--versions 3 2.11] [--json FILE]

Needs the environments that `make bench` makes. One run of `airflow dags test` per version; every event is timed
with both, in the process that Airflow makes for it: import, making the transport, emit. Seven states of a server take turns.
Tables go to stdout; progress to stderr.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from noting import Notes

ROOT = Path(__file__).resolve().parents[1]
sys.path[:] = [
    each for each in sys.path if Path(each or ".").resolve() != ROOT / "bench"
]  # this file is no Airflow
sys.path += [str(ROOT / "tests" / each) for each in ("", "live_airflow", "transport")]

from airflow_stack import STATES, states  # noqa: E402

from airflow_home import VERSIONS, Airflow, python_of  # noqa: E402


def measure(version: str, tasks: int, folder: Path) -> list[dict[str, float | str]]:
    """Every event of one run, timed."""
    results = folder / "results.jsonl"
    airflow = Airflow(version, folder, ROOT / "bench" / "timed" / "dags")
    say(f"Airflow {version}: its database is made")
    airflow.migrate()
    say(f"Airflow {version}: {tasks} tasks, two events each")
    with states() as servers, progress(version, results, 2 * tasks):
        tables = {
            state: {"url": servers.urls[state], "spool": {"dir": str(folder / "spools" / state), "linger": 1}}
            for state in STATES
        }
        table = {"type": "airflow_timing.Timed", "states": tables, "results": str(results)}
        airflow.test(
            "many_tasks",
            "2026-01-02",
            AIRFLOW__OPENLINEAGE__TRANSPORT=json.dumps(table),
            HEADWATER_TASKS=str(tasks),
            PYTHONPATH=f"{ROOT / 'src'}:{ROOT / 'bench' / 'timed'}",
        )
    return [json.loads(line) for line in results.read_text().splitlines()]


def say(text: str) -> None:
    """Progress, on stderr."""
    print(f"  {time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


@contextmanager
def progress(version: str, results: Path, expected: int) -> Iterator[None]:
    """Tell every ten seconds how many events were timed."""
    over = threading.Event()

    def tell() -> None:
        while not over.wait(10):
            seen = len(results.read_text().splitlines()) if results.exists() else 0
            say(f"Airflow {version}: {seen} of about {expected} events")

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    yield
    over.set()
    thread.join()


def report(version: str, rows: list[dict[str, float | str]], notes: Notes) -> list[tuple[str, float]]:
    """Medians, in milliseconds; what is added in each state of the server."""

    def ms(name: str, state: str) -> float:
        return 1000 * median(float(row[name]) for row in rows if row["state"] == state)

    table, points = [], []
    for state in STATES:
        here = [row for row in rows if row["state"] == state]
        if here:
            added = [1000 * (float(row["ours"]) - float(row["console"])) for row in here]
            figures = (ms("console", state), ms("ours", state), median(added), ms("import", state), min(added), ms("cpu", state))  # fmt: skip
            table.append((state, *(f"{each:.1f} ms" for each in figures)))
            points.append((state, median(added)))
    head = ("console", "ours", "added", "of it import", "least added", "CPU of ours")
    notes.table(version, (f"Airflow {version}, server", *head), table)
    worst = max(each for _, each in points)
    notes.aim(f"under 50 ms added to an event, Airflow {version}", f"at most {worst:.1f} ms", worst < 50)
    return points


def main() -> None:
    """Measure each version."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--full", action="store_true")
    options.add_argument("--versions", nargs="*", default=VERSIONS)
    notes = Notes("airflow", packages=("openlineage-python",))
    chosen = options.parse_args()
    lines = {}
    for version in chosen.versions:
        if not python_of(version).exists():
            print(f"Airflow {version}: skipped, run `make bench BENCHES=airflow` first")
            continue
        with tempfile.TemporaryDirectory(prefix="headwater-airflow-") as folder:
            rows = measure(version, 105 if chosen.full else 21, Path(folder))
            lines[f"Airflow {version}"] = report(version, rows, notes)
    if not lines:
        return  # none is here: what is known of it stays
    notes.plot("added", "bar", "Airflow: milliseconds added to an event", "state of the server", "ms", lines)
    notes.keep()


if __name__ == "__main__":
    main()
