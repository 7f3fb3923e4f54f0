"""datahub: events -> change proposals for GMS, beside DataHub's SDK that builds and serialises the same ones; and 100,000 runs put together.

    python bench/datahub.py [--full] [--rounds N] [--json FILE]

Events of 5 KB, each of its own run: an input and an output with twenty columns, column lineage, SQL, Spark's facets.
Headwater's figure is all of it: reading the event's bytes, converting, and the bytes that GMS is sent. The SDK's is only
what comes after conversion: building its objects of the same proposals, and `json.dumps(to_obj())`. It stands in an
environment of its own (`make .venvs/datahub/.ready`); without it the peer is left out and the reason told. One works at a time, by turns;
CPU is that of the process. A ratio is the median over rounds.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from noting import Notes

ROOT = Path(__file__).resolve().parents[1]
sys.path[:] = [each for each in sys.path if Path(each or ".").resolve() != ROOT / "bench"]

from headwater.deliver.datahub import Converter  # noqa: E402 - this file is no DataHub
from headwater.deliver.datahub.wire import for_gms  # noqa: E402
from headwater.event import parse  # noqa: E402

PYTHON = ROOT / ".venvs" / "datahub" / "bin" / "python"
PRODUCER = "https://github.com/OpenLineage/OpenLineage/tree/1.50.0/integration/spark"
COLUMNS = 20
MOST = 16_000_000


def event(number: int, kind: str = "COMPLETE", columns: int = COLUMNS) -> bytes:
    """An event of a Spark job, much as the agent sends it; tables repeat, runs do not."""
    table = number % 1000
    source, target = ("s3://lake", f"raw/orders_{table}"), ("s3://lake", f"gold/orders_{table}")
    fields = [
        {"name": f"column_{at}_{table}", "type": ("string", "long", "timestamp")[at % 3]}
        for at in range(columns)
    ]
    lineage = {
        each["name"]: {
            "inputFields": [
                {
                    "namespace": source[0],
                    "name": source[1],
                    "field": each["name"],
                    "transformations": [{"type": "DIRECT", "subtype": "IDENTITY", "masking": False}],
                }
            ]
        }
        for each in fields[: columns // 2]
    }
    facets = {"schema": {"_producer": PRODUCER, "fields": fields}}
    run = str(uuid.UUID(int=number + (1 << 100)))
    body = {
        "eventTime": f"2026-01-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}.000Z",
        "eventType": kind,
        "producer": PRODUCER,
        "run": {
            "runId": run,
            "facets": {
                "processing_engine": {
                    "name": "spark",
                    "version": "3.5.1",
                    "openlineageAdapterVersion": "1.50.0",
                },
                "spark_properties": {"properties": {"spark.master": "yarn", "spark.app.name": "orders"}},
                "spark_version": {"spark-version": "3.5.1", "openlineage-spark-version": "1.50.0"},
            },
        },
        "job": {
            "namespace": "shop",
            "name": f"orders.execute_insert_{table}",
            "facets": {
                "sql": {
                    "query": f"INSERT INTO gold.orders_{table} SELECT * FROM raw.orders_{table} WHERE paid"
                },
                "jobType": {"processingType": "BATCH", "integration": "SPARK", "jobType": "SQL_JOB"},
            },
        },
        "inputs": [{"namespace": source[0], "name": source[1], "facets": facets}],
        "outputs": [
            {
                "namespace": target[0],
                "name": target[1],
                "facets": {**facets, "columnLineage": {"_producer": PRODUCER, "fields": lineage}},
                "outputFacets": {"outputStatistics": {"rowCount": number, "size": number * 10}},
            }
        ],
    }
    return json.dumps(body).encode()


def ours(payloads: list[bytes]) -> tuple[float, list[dict[str, Any]]]:
    """CPU-seconds from the bytes of events to the bytes that GMS is sent, by a converter that knows nothing yet."""
    begun = time.process_time()
    converter = Converter()
    sent = 0
    for payload in payloads:
        for made in converter.convert(parse(payload)):
            sent += len(for_gms(made, MOST))
    took = time.process_time() - begun
    assert sent
    converter = Converter()
    return took, [made for payload in payloads for made in converter.convert(parse(payload))]


def theirs(proposals: list[dict[str, Any]]) -> dict[str, float] | None:
    """CPU-seconds of the SDK for the same proposals."""
    if not PYTHON.exists():
        return None
    lines = "".join(json.dumps(each) + "\n" for each in proposals)
    program = ROOT / "bench" / "peers" / "datahub_sdk.py"
    done = subprocess.run([PYTHON, program], input=lines, capture_output=True, text=True, check=True)
    told: dict[str, float] = json.loads(done.stdout)
    return told


def memory() -> float:
    """Megabytes that this process holds."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


def stream(runs: int) -> Iterator[bytes]:
    for number in range(runs):
        for kind in ("START", "RUNNING", "COMPLETE"):
            yield event(number, kind, columns=4)


def coalesce(runs: int, notes: Notes) -> None:
    """Runs of three events each, put together one by one."""
    marks = {runs * part // 5: 0.0 for part in (1, 2, 3, 4, 5)}
    seen = made = 0

    def counted() -> Iterator[bytes]:
        nonlocal seen
        for payload in stream(runs):
            seen += 1
            if seen % 3 == 0 and seen // 3 in marks:
                marks[seen // 3] = memory()
            yield payload

    begun = time.process_time()
    for _ in Converter(by="run").convert_all(counted(), lambda refused: None):
        made += 1
    took = time.process_time() - begun
    notes.table(
        "together",
        ("put together by run", ""),
        [
            (
                f"{runs:,} runs of three events, {made:,} proposals",
                f"{seen / took:,.0f} events per CPU-second",
            ),
            *((f"memory after {mark:,} runs", f"{megabytes:,.0f} MB") for mark, megabytes in marks.items()),
        ],
    )
    few, many = marks[runs // 5], marks[runs]
    notes.aim(f"flat memory over {runs:,} runs", f"{few:,.0f} MB, then {many:,.0f} MB", many <= 1.05 * few)
    notes.plot("memory", "line", "DataHub: memory as runs are put together", "runs", "MB", {"this process": list(marks.items())})  # fmt: skip


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--full", action="store_true")
    options.add_argument("--rounds", type=int, default=3)
    notes = Notes("datahub", packages=("msgspec",))
    chosen = options.parse_args()
    count = 2_000 if chosen.full else 300
    payloads = [event(number) for number in range(count)]
    size = sum(map(len, payloads)) / count / 1000
    rates, ratios, whole, alone = [], [], [], []
    for _ in range(chosen.rounds):
        took, made = ours(payloads)
        rates.append(count / took)
        told = theirs(made)
        if told is None:
            print(f"the SDK is left out: no {PYTHON.relative_to(ROOT)}; make .venvs/datahub/.ready")
            continue
        alone.append(count / told["serialise"])
        whole.append(count / (told["serialise"] + told["build"]))
        ratios.append((told["serialise"] / took, (told["serialise"] + told["build"]) / took))
    rows = [("Headwater: read, convert, serialise", f"{median(rates):,.0f}", "1")]
    if ratios:
        short, long = (median(each[at] for each in ratios) for at in (0, 1))
        rows.append(("SDK: `json.dumps(to_obj())` of the same proposals", f"{median(alone):,.0f}", f"{short:.1f}"))  # fmt: skip
        rows.append(("SDK: `from_obj`, then that", f"{median(whole):,.0f}", f"{long:.1f}"))
        notes.aim("at least 8 times the SDK", f"{short:.1f} times, and the SDK only serialises", short >= 8)
        notes.ratio("DataHub's SDK, serialising alone", "CPU of an event", short)
        notes.ratio("DataHub's SDK, building and serialising", "CPU of an event", long)
    notes.say(f"{count:,} events of {size:.1f} KB, {len(made) / count:.0f} proposals each, {chosen.rounds} rounds by turns.")  # fmt: skip
    notes.table("cost", ("", "events per CPU-second", "times Headwater's CPU"), rows)
    notes.aim("3,500 events of 5 KB per CPU-second", f"{median(rates):,.0f}", median(rates) >= 3_500)
    coalesce(100_000 if chosen.full else 5_000, notes)
    notes.keep()


if __name__ == "__main__":
    main()
