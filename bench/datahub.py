"""datahub: events -> change proposals for GMS, beside DataHub's SDK that builds and serialises the same ones; and 100,000 runs put together.

    python bench/datahub.py [--full] [--rounds N]

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


def coalesce(runs: int) -> None:
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
    print(
        f"{runs:,} runs of 3 events put together: {made:,} proposals, {seen / took:,.0f} events per CPU-second"
    )
    for mark, megabytes in marks.items():
        print(f"  after {mark:>8,} runs: {megabytes:,.0f} MB")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--full", action="store_true")
    options.add_argument("--rounds", type=int, default=3)
    chosen = options.parse_args()
    count = 2_000 if chosen.full else 300
    payloads = [event(number) for number in range(count)]
    print(f"{count:,} events of {sum(map(len, payloads)) / count / 1000:.1f} KB, {chosen.rounds} rounds")
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
    print(f"Headwater, all of it:              {median(rates):8,.0f} events per CPU-second")
    print(f"  proposals an event: {len(made) / count:.1f}")
    if ratios:
        print(
            f"SDK, serialising alone:            {median(alone):8,.0f}   Headwater takes 1/{median(r for r, _ in ratios):.1f}"
        )
        print(
            f"SDK, building and serialising:     {median(whole):8,.0f}   Headwater takes 1/{median(r for _, r in ratios):.1f}"
        )
    coalesce(100_000 if chosen.full else 5_000)


if __name__ == "__main__":
    main()
