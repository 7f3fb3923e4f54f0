"""dlt: the same pipeline without lineage, with Headwater, with dlt-openlineage -> what each adds to a run.

    python bench/dlt.py [--full] [--rounds N] [--only up,down,hanging] [--without-peer] [--json FILE]

Three programs live side by side in one environment (`.venvs/dlt-openlineage`, made where it is missing; without it the peer
is left out and the reason told). One works at a time and the order turns each round, so what else the machine does hits all
three. Into DuckDB go nested rows: twenty fields, an object, a list of objects and a list of texts. The server takes events,
or nobody listens (down), or it accepts and never answers (hanging).

A ratio is the median over rounds of wall and CPU time of the program to that of the one without lineage, its neighbour in
time; beside it stands the quickest run to the quickest. `inside` is the time spent in the lineage's own callbacks, which a noisy machine disturbs least. Headwater delivers through
its spool; its drainer is a process of its own, whose CPU is not counted.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from noting import Notes
from states import server

ROOT = Path(__file__).resolve().parents[1]
sys.path[:] = [
    each for each in sys.path if Path(each or ".").resolve() != ROOT / "bench"
]  # this file is no dlt

PEER = "dlt-openlineage==0.1.1"
WHO = ("none", "headwater", "dlt-openlineage")
SMALL = 100


# ---------------------------------------------------------------- the program


def items(rows: int) -> Iterator[list[dict[str, Any]]]:
    """Pages of nested rows."""
    for start in range(0, rows, 1_000):
        yield [
            {
                "Order ID": n,
                **{f"field{at}": f"value {n} {at}" for at in range(12)},
                "unitPrice": n * 0.5,
                "paid": n % 2 == 0,
                "customer": {"Full Name": f"name {n}", "address": {"city": "Rome", "zip": n}},
                "items": [{"SKU": f"s{n}", "qty": 1}, {"SKU": f"t{n}", "qty": 2}],
                "tags": ["a", "b"],
            }
            for n in range(start, min(start + 1_000, rows))
        ]


def program(who: str, folder: str, url: str) -> None:
    """Answers lines on stdin: a number of rows -> how long it took to load them."""
    os.environ.update(
        DLT_DATA_DIR=f"{folder}/dlt", RUNTIME__DLTHUB_TELEMETRY="false", RUNTIME__LOG_LEVEL="CRITICAL"
    )
    os.chdir(folder)
    from dlt.pipeline import trace

    import dlt

    if who == "headwater":
        import headwater.dlt

        headwater.dlt.install(url=url, spool={"dir": f"{folder}/spool"})
    elif who == "dlt-openlineage":
        import dlt_openlineage

        dlt_openlineage.install(url=url)
    inside = [0.0]
    if who != "none":
        _time(trace.TRACKING_MODULES[-1], inside)
    print(json.dumps({"dlt": dlt.__version__}), flush=True)
    for at, line in enumerate(sys.stdin):
        rows = int(line)
        pipeline = dlt.pipeline(
            f"orders_{at}", destination=dlt.destinations.duckdb(f"{folder}/x{at}.duckdb"), dataset_name="raw"
        )
        gc.collect()
        inside[0] = 0.0
        cpu, wall = time.process_time(), time.perf_counter()
        pipeline.run(dlt.resource(items(rows), name="orders"))
        said = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "inside": inside[0]}
        pipeline.drop()
        Path(f"{folder}/x{at}.duckdb").unlink()
        print(json.dumps(said), flush=True)


def _time(tracker: Any, total: list[float]) -> None:
    """Count the time that dlt spends in a tracker."""
    for name in ("on_start_trace", "on_start_trace_step", "on_end_trace_step", "on_end_trace"):
        plain = getattr(tracker, name)

        def timed(*args: Any, plain: Any = plain, **options: Any) -> Any:
            began = time.perf_counter()
            try:
                return plain(*args, **options)
            finally:
                total[0] += time.perf_counter() - began

        setattr(tracker, name, timed)


class Program:
    """One of the programs, asked from here."""

    def __init__(self, python: str, who: str, folder: Path, url: str) -> None:
        folder.mkdir(parents=True)
        environment = {
            k: v for k, v in os.environ.items() if not k.startswith(("HEADWATER_", "OPENLINEAGE_"))
        }
        self._process = subprocess.Popen(
            [python, __file__, "--program", who, str(folder), url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**environment, "PYTHONPATH": str(ROOT / "src")},
        )
        self.version = self._answer()["dlt"]

    def load(self, rows: int) -> dict[str, float]:
        assert self._process.stdin is not None
        print(rows, file=self._process.stdin, flush=True)
        return self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the program ended"
        return json.loads(line)

    def close(self) -> None:
        self._process.kill()  # a client that waits for a server that hangs would not end by itself
        self._process.wait()


# ---------------------------------------------------------------- the comparison


def environment() -> tuple[str, tuple[str, ...]]:
    """The interpreter for all programs, and which of them can be had."""
    from importlib.metadata import version

    home = ROOT / ".venvs" / "dlt-openlineage"
    python = home / "bin" / "python"
    if not python.exists():
        uv = shutil.which("uv") or str(ROOT / ".tools" / "bin" / "uv")
        if not Path(uv).exists():
            say("dlt-openlineage is skipped: there is no uv to get it with")
            return sys.executable, WHO[:2]
        say(f"making {home.relative_to(ROOT)}")
        subprocess.run(
            [uv, "venv", "--quiet", "--no-project", "--python", sys.executable, str(home)], check=True
        )
        wanted = [
            f"dlt[duckdb]=={version('dlt')}",
            f"duckdb=={version('duckdb')}",
            f"sqlglot=={version('sqlglot')}",
        ]
        done = subprocess.run(
            [uv, "pip", "install", "--quiet", *wanted, PEER, "--editable", str(ROOT)],
            env={**os.environ, "VIRTUAL_ENV": str(home)},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            shutil.rmtree(home)
            say(f"dlt-openlineage is skipped: {done.stderr.strip()[-300:]}")
            return sys.executable, WHO[:2]
    return str(python), WHO


def measure(
    programs: dict[str, Program], rows: int, rounds: int, fewer: dict[str, int]
) -> dict[str, list[dict[str, float]]]:
    """Everybody loads, by turns; `fewer` are the rounds of those who would take all day."""
    order = list(programs)
    found: dict[str, list[dict[str, float]]] = {who: [] for who in order}
    for at in range(rounds):
        for who in order[at % len(order) :] + order[: at % len(order)]:
            if at < fewer.get(who, rounds):
                found[who].append(programs[who].load(rows))
                say(f"round {at + 1} of {rounds}, {rows} rows, {who}: {found[who][-1]['wall']:.2f} s")
    return found


Kept = dict[tuple[str, int, str], dict[str, float]]
"""(state of the server, rows, who) -> what it took"""


def report(state: str, rows: int, found: dict[str, list[dict[str, float]]], kept: Kept) -> None:
    """One row a program: medians, and ratios of neighbours."""
    bare = found["none"]
    for who, runs in found.items():
        wall, cpu = (
            median(mine[what] / base[what] for mine, base in zip(runs, bare, strict=False))
            for what in ("wall", "cpu")
        )
        least = min(each["wall"] for each in runs) / min(each["wall"] for each in bare)
        inside = median(each["inside"] for each in runs)
        share = inside / median(each["wall"] for each in bare)
        took = median(each["wall"] for each in runs)
        kept[state, rows, who] = {"wall": wall, "least": least, "cpu": cpu, "inside": inside, "share": share, "took": took, "rounds": len(runs)}  # fmt: skip
        say(f"{state}, {rows:,} rows, {who}: {wall:.3f} times none by wall, {cpu:.3f} by CPU, {1000 * inside:.0f} ms inside")  # fmt: skip


def tell(kept: Kept, rows: int, notes: Notes) -> None:
    """The tables, the aims and what is drawn."""
    up = [(many, who, each) for (state, many, who), each in kept.items() if state == "up" and who != "none"]
    notes.table(
        "up",
        ("server up", "wall, times none", "quickest to quickest", "CPU, times none", "inside", "of the run", "rounds"),
        [
            (
                f"{many:,} rows: {who}",
                f"{each['wall']:.3f}",
                f"{each['least']:.3f}",
                f"{each['cpu']:.3f}",
                f"{1000 * each['inside']:.0f} ms",
                f"{100 * each['share']:.2f} %",
                f"{each['rounds']:.0f}",
            )
            for many, who, each in sorted(up, key=lambda one: -one[0])
        ],
    )  # fmt: skip
    states = list(dict.fromkeys(state for state, _, _ in kept))
    who = [each for each in WHO[1:] if any(each == one for _, _, one in kept)]
    small = {(state, each): kept[state, SMALL, each] for state in states for each in who}
    notes.table(
        "states",
        (f"{SMALL} rows, the server is", *(part for each in who for part in (f"{each}, inside", "wall, times none"))),
        [
            (state, *(part for each in who for part in (f"{1000 * small[state, each]['inside']:,.0f} ms", f"{small[state, each]['wall']:.2f}")))
            for state in states
        ],
    )  # fmt: skip
    most = max(1000 * each["inside"] for (_, one), each in small.items() if one == "headwater")
    notes.aim("nothing added by a server that is down or hangs", f"at most {most:.0f} ms inside", most < 500)
    if ("up", rows, "headwater") in kept:
        ours = kept["up", rows, "headwater"]
        notes.aim(f"at most 2 % on {rows:,} nested rows", f"{100 * ours['share']:.2f} % inside, {ours['cpu']:.3f} times the CPU, {ours['wall']:.3f} times the wall time", ours["share"] <= 0.02)  # fmt: skip
    if WHO[2] in who:
        for state in states:
            notes.ratio("dlt-openlineage 0.1.1", f"time inside a run of {SMALL} rows, server {state}", small[state, WHO[2]]["inside"] / small[state, "headwater"]["inside"])  # fmt: skip
    lines = {each: [(state, 1000 * small[state, each]["inside"]) for state in states] for each in who}
    notes.plot("inside", "bar", "dlt: milliseconds that lineage adds to a run", "state of the server", "ms", lines, log=True)  # fmt: skip


def say(text: str) -> None:
    """Progress, on stderr."""
    print(f"  {time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--full", action="store_true", help="100,000 rows instead of 20,000")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--only", default="up,down,hanging")
    options.add_argument("--without-peer", action="store_true", help="none and headwater alone, in less time")
    options.add_argument("--program", nargs=3, help=argparse.SUPPRESS)
    notes = Notes("dlt", packages=("dlt", "duckdb"))
    chosen = options.parse_args()
    if chosen.program:
        program(*chosen.program)
        return
    python, who = environment()
    who = who[:2] if chosen.without_peer else who
    rows = 100_000 if chosen.full else 20_000
    kept: Kept = {}
    with tempfile.TemporaryDirectory(prefix="headwater-dlt-") as text:
        for state in chosen.only.split(","):
            with server(state) as url:
                programs = {each: Program(python, each, Path(text) / state / each, url) for each in who}
                try:
                    measure(
                        programs, SMALL, 1, {WHO[2]: int(state == "up")}
                    )  # each has imported all it needs
                    fewer = {} if state == "up" else {WHO[2]: 1}  # it waits for minutes
                    report(state, SMALL, measure(programs, SMALL, chosen.rounds, fewer), kept)
                    if state == "up":
                        report(state, rows, measure(programs, rows, chosen.rounds, {}), kept)
                finally:
                    for each in programs.values():
                        each.close()
    tell(kept, rows, notes)
    notes.keep()


if __name__ == "__main__":
    main()
