"""One stream, three engines: in memory, in SQLite and on Spark the tables are the same, row by row."""

from __future__ import annotations

import gzip
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard
from dumping import dumped, in_memory, same
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headwater import pipeline
from headwater.cli.demo import recorded
from headwater.facts.commands import SetAlias
from headwater.ingest import command, ingest_all
from headwater.pipeline.sinks import folder
from headwater.pipeline.sources import files
from headwater.store import open_store
from streams import events
from test_golden import CASES
from test_golden import events as golden

BAD = [
    b"{",
    b"no json at all",
    b'{"eventTime": "x"}',
    b'"text"',
    b'{"eventTime": "2026-01-01T00:00:00Z"}',
    b"\xff\xfe{}",
]


def stored(payloads: list[bytes]) -> Any:
    store = open_store("memory:")
    list(ingest_all(store, payloads))
    try:
        return store.dump()
    finally:
        store.close()


def messy(payloads: list[bytes], dice: random.Random) -> list[bytes]:
    lines = [*payloads, *dice.choices(payloads, k=max(1, len(payloads) // 5)), *BAD]
    dice.shuffle(lines)
    return lines


def write(folder: Path, lines: list[bytes], dice: random.Random) -> None:
    """Over files of every kind."""
    folder.mkdir(parents=True)
    thirds = [lines[i::3] for i in range(3)]
    (folder / "a.jsonl").write_bytes(b"\n".join(thirds[0]) + b"\n")
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(b"\r\n".join(thirds[1])))
    (folder / "deep").mkdir()
    (folder / "deep" / "c.zst").write_bytes(zstandard.compress(b"\n".join(thirds[2])))


@pytest.mark.parametrize("spread", [False, True], ids=["little", "as if there were much"])
@pytest.mark.parametrize("case", CASES)
def test_golden_cases(
    spark: Any, tmp_path: Path, case: str, spread: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Little goes through one task and one share; much has a task for each file, and a share for each core."""
    if spread:
        monkeypatch.setattr(files, "_FEW_FILES", 0)
        monkeypatch.setattr(folder, "share_count", lambda size, cores: cores)
    dice = random.Random(case)
    lines = messy(golden(case), dice)
    write(tmp_path / "in", lines, dice)
    sinks = [f"parquet://{tmp_path}/tables", f"sqlite:///{tmp_path}/x.db"]
    report = pipeline.run(spark, str(tmp_path / "in"), sinks)
    assert report.events == len(lines)
    assert report.bad == len(BAD)
    expected = in_memory(lines)
    same(expected, dumped(spark, sinks[0]))
    store = open_store(sinks[1])
    same(expected, store.dump())
    assert {entry.digest for _, entry in store.log()} == {
        bytes(row.digest) for row in pipeline.read(spark, sinks[0], "events").collect()
    }
    assert report.duplicates == len(lines) - len(BAD) - store.counts()["log"]
    assert store.counts()["rejects"] == len(BAD)
    store.close()


@settings(max_examples=max(2, settings.default.max_examples // 8), suppress_health_check=list(HealthCheck))
@given(stream=st.lists(events, min_size=1, max_size=120), seed=st.integers(0, 1 << 30))
def test_generated_streams(
    spark: Any, tmp_path_factory: pytest.TempPathFactory, stream: list[bytes], seed: int
) -> None:
    """Shuffled, doubled, with bad lines, cut into batches."""
    folder = tmp_path_factory.mktemp("stream")
    dice = random.Random(seed)
    lines = messy(stream, dice)
    sink = f"parquet://{folder}/tables"
    cut = dice.randrange(len(lines) + 1)
    for i, part in enumerate((lines[:cut], lines[cut:])):
        (folder / f"{i}.jsonl").write_bytes(b"\n".join(part))
        pipeline.run(spark, str(folder / f"{i}.jsonl"), sink)
    expected = in_memory(lines)
    same(expected, stored(lines))
    same(expected, dumped(spark, sink))


def test_a_late_symlink_or_alias_renames_history(spark: Any, tmp_path: Path) -> None:
    """By a store's own log, commands included."""
    url = f"sqlite:///{tmp_path}/a.db"
    store = open_store(url)
    list(ingest_all(store, list(recorded())))
    sink = f"parquet://{tmp_path}/tables"
    pipeline.run(spark, url, sink)
    same(store.dump(), dumped(spark, sink))
    command(
        store,
        SetAlias(
            at=1,
            rule={"namespace": "s3://{b}", "name": "gold/{t}", "to_namespace": "gold://", "to_name": "{t}"},
        ),
    )
    late = {
        "eventTime": "2020-01-01T00:00:00Z",
        "dataset": {
            "namespace": "hive://m",
            "name": "payments",
            "facets": {
                "symlinks": {
                    "_producer": "https://x",
                    "_schemaURL": "https://x",
                    "identifiers": [{"namespace": "s3://lake", "name": "raw/payments", "type": "TABLE"}],
                }
            },
        },
    }
    list(ingest_all(store, [msgspec.json.encode(late)]))
    pipeline.run(spark, url, sink)
    found = dumped(spark, sink)
    same(store.dump(), found)
    assert found["datasets"][("s3://lake\nraw/payments",)]["canonical"] == "hive://m\npayments"
    assert any(row["canonical"].startswith("gold://") for row in found["datasets"].values())
    store.close()


def test_compaction_changes_nothing(spark: Any, tmp_path: Path) -> None:
    sink = f"parquet://{tmp_path}/tables"
    lines = list(recorded())
    for i in range(3):
        (tmp_path / f"{i}.jsonl").write_bytes(b"\n".join(lines[i::2]))
        pipeline.run(spark, str(tmp_path / f"{i}.jsonl"), sink)
    before = dumped(spark, sink)
    same(in_memory(lines), before)
    rows = pipeline.compact(spark, sink)
    assert rows["runs"] == len(before["runs"])
    same(before, dumped(spark, sink))
    assert pipeline.compact(spark, sink) == rows
    pipeline.run(spark, str(tmp_path / "0.jsonl"), sink)
    pipeline.compact(spark, sink)
    same(before, dumped(spark, sink))


def test_json_lines_hold_the_same(spark: Any, tmp_path: Path) -> None:
    lines = list(recorded())
    (tmp_path / "x.json").write_bytes(b"[" + b",".join(lines) + b"]")
    sink = f"jsonl://{tmp_path}/tables"
    assert pipeline.run(spark, str(tmp_path / "x.json"), sink).events == len(lines)
    same(in_memory(lines), dumped(spark, sink))


def test_a_table_of_events_is_a_source(spark: Any, tmp_path: Path) -> None:
    lines = list(recorded())
    frame = spark.createDataFrame(
        [(line.decode(), i) for i, line in enumerate([*lines, b"{"])], "event string, n int"
    )
    frame.coalesce(1).write.parquet(str(tmp_path / "raw"))
    sink = f"parquet://{tmp_path}/tables"
    report = pipeline.run(spark, f"parquet://{tmp_path}/raw", sink)
    assert (report.events, report.bad) == (len(lines) + 1, 1)
    same(in_memory(lines), dumped(spark, sink))
    refused = pipeline.read(spark, sink, "quarantine").collect()[0]
    assert refused.position == len(lines)
    assert refused.source.endswith(".parquet")
