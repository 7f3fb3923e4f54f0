"""Bad input: broken packing, mixed encodings, foreign files, old spec versions, nothing at all; nothing is lost."""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import zstandard
from dumping import dumped, in_memory, same
from hypothesis import given
from hypothesis import strategies as st

import headwater.pipeline.sources._reading as reading
from headwater import pipeline
from headwater.cli.demo import recorded
from headwater.errors import ConfigError, NotFound
from headwater.pipeline.sinks import open_sink
from headwater.pipeline.sources import open_source
from headwater.pipeline.sources._reading import Split, read
from headwater.transport.spool import SpoolTransport

LINES = list(recorded())


def lines_of(path: Path, start: int = 0) -> list[Any]:
    return list(read(Split(f"file://{path}", start, path.stat().st_size)))


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("s3a://lake/day-?.json", "s3a://lake/day-?.json"),
        ("s3a://lake/day=2026-0?/x?files_per_batch=5", "s3a://lake/day=2026-0?/x"),
        ("hdfs://n/a?/b=1/c?", "hdfs://n/a?/b=1/c?"),
        ("/events/a?b=c", "/events/a?b=c"),
    ],
)
def test_a_question_mark_is_of_a_pattern_unless_options_follow(url: str, path: str) -> None:
    assert open_source(url).url == path


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
def test_a_truncated_file_gives_what_it_holds_and_says_where_it_ends(tmp_path: Path, kind: str) -> None:
    text = b"\n".join(LINES * 40)
    whole = gzip.compress(text) if kind == "gzip" else zstandard.compress(text)
    for keep in (len(whole) // 2, len(whole) - 3):
        file = tmp_path / f"x{keep}"
        file.write_bytes(whole[:keep])
        found = lines_of(file)
        assert all(not each.fault for each in found[:-1])
        assert [each.value for each in found[:-1]] == (LINES * 40)[: len(found) - 1]
        assert "ends before its end" in found[-1].fault
        assert text[found[-1].position :].startswith(found[-1].value)


def test_gzip_members_and_zstd_frames_follow_each_other(tmp_path: Path) -> None:
    for name, pack in (("a.gz", gzip.compress), ("a.zst", zstandard.compress)):
        (tmp_path / name).write_bytes(pack(LINES[0] + b"\n") + pack(LINES[1] + b"\n"))
        assert [each.value for each in lines_of(tmp_path / name)] == LINES[:2]


def test_garbage_inside_gzip(tmp_path: Path) -> None:
    """All that stands before the damage is read; damage shows itself only some bytes later."""
    packed = bytearray(gzip.compress(b"\n".join(LINES * 40)))
    packed[len(packed) // 2 :] = random.Random(3).randbytes(len(packed) - len(packed) // 2)
    (tmp_path / "x.gz").write_bytes(packed)
    found = lines_of(tmp_path / "x.gz")
    assert found[-1].fault
    assert [each.value for each in found[:100]] == (LINES * 40)[:100]


@given(
    lines=st.lists(
        st.binary(max_size=30).map(lambda b: b.replace(b"\n", b"").replace(b"\0", b"")), max_size=30
    ),
    size=st.integers(1, 40),
    end=st.booleans(),
)
def test_ranges_of_a_file_give_each_line_once(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], size: int, end: bool
) -> None:
    """Wherever a file is cut, with a split far smaller than a line too."""
    body = b"x" + b"\n".join(lines) + (b"\n" if end else b"")
    file = tmp_path_factory.mktemp("cut") / "x"
    file.write_bytes(body)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "SPLIT", size)
        starts = range(0, len(body), size)
        found = [each for start in starts for each in lines_of(file, start)]
    whole = [line.strip() for line in body.split(b"\n") if line.strip()]
    if body.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")):
        return
    assert [each.value for each in found] == whole
    assert all(body[each.position :].lstrip().startswith(each.value) for each in found)


def test_every_form_of_json(tmp_path: Path) -> None:
    forms = {
        "lines": b"\n\n".join(LINES),
        "crlf": b"\r\n".join(LINES),
        "array": b"[" + b",\n".join(LINES) + b"]",
        "bom": b"\xef\xbb\xbf" + b"\n".join(LINES),
        "utf-16": "\n".join(line.decode() for line in LINES).encode("utf-16"),
    }
    for name, body in forms.items():
        (tmp_path / name).write_bytes(body)
        assert [each.value for each in lines_of(tmp_path / name)] == LINES, name
    array = forms["array"]
    packed = {"gzip": gzip.compress, "zstd": zstandard.compress}
    forms = {
        "array, bom": b"\xef\xbb\xbf" + array,
        "array, utf-16": array.decode().encode("utf-16"),
        **{f"array, {name}": pack(array) for name, pack in packed.items()},
        **{f"long array, {name}": pack(b"[" + b" " * (3 << 20) + array[1:]) for name, pack in packed.items()},
        "array, bom, gzip": gzip.compress(b"\xef\xbb\xbf" + array),
        "array, utf-16, zstd": zstandard.compress(array.decode().encode("utf-16")),
    }
    for name, body in forms.items():
        (tmp_path / name).write_bytes(body)
        assert [each.value for each in lines_of(tmp_path / name)] == LINES, name
    pretty = json.dumps(json.loads(LINES[0]), indent=2).encode()
    for name, body in {"plain": pretty, **{name: pack(pretty) for name, pack in packed.items()}}.items():
        (tmp_path / f"pretty {name}").write_bytes(body)
        (one,) = lines_of(tmp_path / f"pretty {name}")
        assert json.loads(one.value) == json.loads(LINES[0])
    (tmp_path / "broken first").write_bytes(b"\n".join([b'{"cut', *LINES]))
    assert [each.value for each in lines_of(tmp_path / "broken first")] == [b'{"cut', *LINES]
    (tmp_path / "broken array").write_bytes(b"[" + b",\n".join(LINES))
    assert len(lines_of(tmp_path / "broken array")) == len(LINES)


@pytest.mark.parametrize(
    "name", ["hour=10%3A00/x.jsonl", "a#b.jsonl", "a b?c.jsonl", "x%41y.jsonl", "größe.jsonl"]
)
def test_a_name_is_taken_as_it_is(spark: Any, tmp_path: Path, name: str) -> None:
    """Hive writes partitions so, and what Spark tells of a file is its name and no url of it."""
    (tmp_path / "in" / name).parent.mkdir(parents=True)
    (tmp_path / "in" / name).write_bytes(b"\n".join(LINES))
    report = pipeline.run(spark, f"{tmp_path}/in", f"parquet://{tmp_path}/out")
    assert (report.events, report.bad) == (len(LINES), 0)


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("nothing://x/y z", "nothing"),
        ("mock://x/a b#c%41.jsonl", "a b#c%41.jsonl"),
        ("s3://", "cannot be read"),
    ],
)
def test_a_place_that_cannot_be_asked_is_told(path: str, told: str) -> None:
    (found,) = read(Split(path, 0, 10))
    assert found.fault.startswith("cannot be read: ")
    assert told in found.fault


def test_a_file_that_is_gone_is_told(tmp_path: Path) -> None:
    (found,) = read(Split(f"file://{tmp_path}/gone", 0, 10))
    assert "cannot be read" in found.fault


def test_a_directory_of_everything(spark: Any, tmp_path: Path) -> None:
    """Good files beside truncated, foreign and oddly encoded ones: all that is good is there, the rest is told."""
    folder = tmp_path / "in"
    folder.mkdir()
    good = LINES[:-2]
    (folder / "good.jsonl").write_bytes(b"\n".join(good))
    (folder / "cut.jsonl.gz").write_bytes(gzip.compress(b"\n".join(LINES))[:-20])
    (folder / "latin.jsonl").write_bytes(
        LINES[-1].replace(b'"producer":"', '"producer":"größe '.encode("latin-1"))
    )
    (folder / "readme.txt").write_text("These are events.\n")
    with tarfile.open(folder / "other.tar", "w") as tar:
        tar.add(folder / "readme.txt")
    (folder / "empty.jsonl").touch()
    (folder / "_SUCCESS").touch()
    sink = f"parquet://{tmp_path}/tables"
    report = pipeline.run(spark, str(folder), sink)
    refused = {Path(row.source).name: row for row in pipeline.read(spark, sink, "quarantine").collect()}
    assert refused.keys() == {"cut.jsonl.gz", "latin.jsonl", "readme.txt", "other.tar"}
    assert "ends before" in refused["cut.jsonl.gz"].reason
    assert "UTF-8" in refused["latin.jsonl"].reason
    assert bytes(refused["latin.jsonl"].payload) == (folder / "latin.jsonl").read_bytes()
    assert bytes(refused["readme.txt"].payload) == b"These are events."
    assert "NUL" in refused["other.tar"].reason
    assert report.bad == 4
    found = {bytes(row.digest) for row in pipeline.read(spark, sink, "events").collect()}
    same(in_memory(LINES if len(found) == len(LINES) else [*LINES[: len(found)]]), dumped(spark, sink))


def test_spec_versions_drift(spark: Any, tmp_path: Path) -> None:
    """Old and new spec versions, and fields nobody knows, in one directory."""
    old = json.loads(LINES[0])
    old["schemaURL"] = "https://openlineage.io/spec/1-0-0/OpenLineage.json"
    old["run"]["facets"]["parentRun"] = {"run": {"runId": "b"}, "job": {"namespace": "a", "name": "c"}}
    old["unheard"] = {"of": [1, 2.50]}
    strange = {
        "eventTime": "2026-01-01T00:00",
        "job": {"namespace": "a", "name": "b", "facets": None},
        "inputs": None,
    }
    lines = [*LINES, json.dumps(old).encode(), json.dumps(strange).encode()]
    (tmp_path / "x.jsonl").write_bytes(b"\n".join(lines))
    sink = f"parquet://{tmp_path}/tables"
    assert pipeline.run(spark, str(tmp_path / "x.jsonl"), sink).bad == 0
    same(in_memory(lines), dumped(spark, sink))


def test_nothing_at_all(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    sink = f"parquet://{tmp_path}/tables"
    report = pipeline.run(spark, str(tmp_path / "in"), sink)
    assert (report.events, report.bad, report.rows) == (0, 0, {})
    assert [pipeline.read(spark, sink, table).count() for table in ("runs", "datasets", "quarantine")] == [
        0,
        0,
        0,
    ]
    pipeline.run(spark, str(tmp_path / "in"), sink)
    assert pipeline.compact(spark, sink) == {}
    with pytest.raises(ConfigError, match="nowhere"):
        pipeline.run(spark, str(tmp_path / "nowhere"), sink)


def test_what_waits_in_a_spool(spark: Any, tmp_path: Path) -> None:
    """Of two processes, one of which was cut short in a record; and again, when some of it came by another way."""
    root, sink = tmp_path / "spool", f"parquet://{tmp_path}/tables"
    for part in (LINES[:5], LINES[5:]):
        transport = SpoolTransport(f"spool://{root}", to=f"file://{tmp_path}/out.jsonl", drain="off")
        transport.send(part)
        transport.close()
    torn = SpoolTransport(f"spool://{root}", to=f"file://{tmp_path}/out.jsonl", drain="off")
    torn.send([LINES[0]])
    (begun,) = torn.place.folder.glob("*.open")
    begun.write_bytes(begun.read_bytes()[:-3])
    report = pipeline.run(spark, f"spool://{root}", sink)
    assert (report.events, report.bad) == (len(LINES), 0)
    (tmp_path / "x.jsonl").write_bytes(b"\n".join(LINES[:3]))
    pipeline.run(spark, str(tmp_path / "x.jsonl"), sink)
    same(in_memory(LINES), dumped(spark, sink))
    with pytest.raises(ConfigError, match="no such directory"):
        pipeline.run(spark, f"spool://{tmp_path}/nowhere", sink)


def test_the_command_says_so_and_exits_as_documented(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(b"\n".join([*LINES, LINES[0], b"{"]))
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}

    def headwater(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "headwater", "pipeline", *arguments]
        return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=300, cwd=tmp_path)

    sink = f"parquet://{tmp_path}/tables"
    done = headwater("run", "--source", "x.jsonl", "--sink", sink, "--master", "local[1]", "--json")
    assert done.returncode == 5, done.stderr
    told = json.loads(done.stdout)
    assert (told["events"], told["bad"], told["duplicates"]) == (len(LINES) + 2, 1, 1)
    assert told["rows"]["quarantine"] == 1
    missing = headwater("run", "--source", "nowhere", "--sink", sink)
    assert missing.returncode == 2
    assert "nowhere" in missing.stderr
    assert "Traceback" not in missing.stderr


def test_to_look_at_a_store_that_is_not_there_makes_none(tmp_path: Path) -> None:
    file = tmp_path / "x.db"
    for look in (lambda sink: sink.status(None), lambda sink: sink.rows(None, "jobs")):
        with pytest.raises(NotFound, match=r"no store at .*x\.db yet"):
            look(open_sink(f"sqlite:///{file}"))
    assert not file.exists()
