"""Proposals as files and objects, whole whatever happened before."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from making import columns, convert, dataset, event, schema

from headwater.deliver.datahub.sinks.file import FileSink
from headwater.errors import ConfigError, TransportError

MADE = convert(
    event(
        inputs=[dataset("s3://b", "in", schema=schema(a="int"))],
        outputs=[
            dataset("hive", "ö ut", columnLineage=columns(x=[("s3://b", "in", "a", "DIRECT:IDENTITY")]))
        ],
    )
)


def read(path: Path) -> list[Any]:
    return list(json.loads(path.read_text()))


def test_a_file_is_added_to_and_always_an_array(tmp_path: Path) -> None:
    file = tmp_path / "made for it" / "mcps.json"
    for count in (1, 2, 3):
        FileSink(str(file)).emit(MADE, "g")
        assert read(file) == MADE * count


TORN = [
    b'[\n{"a": 1},\n{"b": [1, 2',
    b'[\n{"a": 1},\n{"b": [1, 2]',
    b'[\n{"a": 1},\n',
    b'[\n{"a": 1}',
    b'[\n{"a": 1}\n]\n',
    b'[{"a": 1}]',
    b'[\n    {\n        "a": 1\n    }\n]',
]


@pytest.mark.parametrize("left", TORN, ids=lambda left: left.decode()[-12:])
def test_what_a_kill_left_behind_is_taken_away(tmp_path: Path, left: bytes) -> None:
    file = tmp_path / "mcps.json"
    file.write_bytes(left)
    FileSink(str(file)).emit(MADE, "g")
    assert read(file) in ([{"a": 1}, *MADE], MADE)


@pytest.mark.parametrize("left", [b"", b"[\n]\n", b"[]", b"[\n"])
def test_an_empty_array_begins_anew(tmp_path: Path, left: bytes) -> None:
    file = tmp_path / "mcps.json"
    file.write_bytes(left)
    FileSink(str(file)).emit(MADE, "g")
    assert read(file) == MADE


def test_long_lines_are_found_again(tmp_path: Path) -> None:
    file = tmp_path / "mcps.json"
    long = {**MADE[0], "aspect": {"json": {"x": "y" * 300_000}}}
    for _ in range(3):
        FileSink(str(file)).emit([long], "g")
    assert read(file) == [long] * 3
    file.write_bytes(file.read_bytes()[:-150_000])  # cut in the middle of the last
    FileSink(str(file)).emit(MADE, "g")
    assert read(file) == [long, long, *MADE]


def test_a_file_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("mine")
    with pytest.raises(TransportError, match="no array"):
        FileSink(str(file)).emit(MADE, "g")
    assert file.read_text() == "mine"


def test_a_directory_has_a_file_per_run_group(tmp_path: Path) -> None:
    sink = FileSink(f"{tmp_path}/out/")
    sink.emit(MADE[:2], "one")
    sink.emit(MADE, "one")
    sink.emit(MADE[:1], "a/b\n..")
    files = sorted((tmp_path / "out").iterdir())
    assert len(files) == 2
    assert read(tmp_path / "out" / "datahub_one_mcps.json") == MADE
    assert all(each.parent == tmp_path / "out" for each in files)


def test_a_disk_that_fails_is_told(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("a file, not a directory")
    with pytest.raises(TransportError) as caught:
        FileSink(str(tmp_path / "x" / "y.json")).emit(MADE, "g")
    assert caught.value.pending == set(range(len(MADE)))


def test_many_processes_add_to_one_file(tmp_path: Path) -> None:
    file = tmp_path / "mcps.json"
    code = (
        "import sys, json\n"
        "from headwater.deliver.datahub.sinks.file import FileSink\n"
        "made = json.loads(sys.argv[2])\n"
        "for _ in range(20): FileSink(sys.argv[1]).emit(made, 'g')\n"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(file), json.dumps(MADE[:2])]) for _ in range(3)
    ]
    assert [each.wait(60) for each in running] == [0, 0, 0]
    assert len(read(file)) == 3 * 20 * 2


# --- buckets


@pytest.fixture
def bucket(need: Callable[[str, str], None]) -> Iterator[Any]:
    pytest.importorskip("fsspec")
    for name in ("s3fs", "moto"):
        if not _has(name):
            need(name, f"pip install {name}")
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    import fsspec

    given = {
        "endpoint_url": f"http://{host}:{port}",
        "key": "test",
        "secret": "test",
        "client_kwargs": {"region_name": "eu-west-1"},
    }
    system = fsspec.filesystem("s3", **given)
    system.mkdir("s3://lake")
    yield system, given
    server.stop()


def _has(name: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(name) is not None


def test_a_bucket_has_an_object_per_run_group_with_or_without_a_prefix(bucket: Any) -> None:
    from headwater.deliver.datahub.sinks.objects import ObjectSink

    system, given = bucket
    for prefix in ("", "/some/prefix"):
        sink = ObjectSink(f"s3://lake{prefix}", storage_options=given)
        sink.emit(MADE[:3], "one")
        sink.emit(MADE, "one")
        found = json.loads(system.cat_file(f"s3://lake{prefix}/datahub_one_mcps.json"))
        assert found == MADE
    named = ObjectSink("s3://lake/x", filename="mcps.json", storage_options=given)
    named.emit(MADE, "one")
    named.emit(MADE[:1], "two")
    system.invalidate_cache()
    assert sorted(each.rpartition("/")[2] for each in system.ls("s3://lake/x")) == [
        "mcps-datahub_two_mcps.json",
        "mcps.json",
    ]
    assert json.loads(system.cat_file("s3://lake/x/mcps.json")) == MADE
    missing = ObjectSink("s3://nowhere", storage_options=given)
    with pytest.raises(TransportError) as caught:
        missing.emit(MADE, "one")
    assert caught.value.retryable


def test_any_store_of_fsspec_will_do() -> None:
    fsspec = pytest.importorskip("fsspec")
    from headwater.deliver.datahub.sinks.objects import ObjectSink

    ObjectSink("memory://box/p").emit(MADE, "g")
    assert json.loads(fsspec.filesystem("memory").cat_file("/box/p/datahub_g_mcps.json")) == MADE
    with pytest.raises(ConfigError, match="names no bucket"):
        ObjectSink("s3://")


# --- read by DataHub itself


@pytest.mark.live
def test_datahub_ingests_the_file(sdk: Path, tmp_path: Path) -> None:
    """Its own file source reads it, its own sink writes it again: nothing is lost."""
    file, out = tmp_path / "mcps.json", tmp_path / "out.json"
    for _ in range(2):
        FileSink(str(file)).emit(MADE, "g")
    recipe = tmp_path / "recipe.json"
    recipe.write_text(
        json.dumps(
            {
                "source": {"type": "file", "config": {"path": str(file)}},
                "sink": {"type": "file", "config": {"filename": str(out)}},
            }
        )
    )
    command = [str(sdk.with_name("datahub")), "ingest", "run", "--no-default-report", "-c", str(recipe)]
    environment = {"DATAHUB_TELEMETRY_ENABLED": "false", "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    made = {(each["entityUrn"], each["aspectName"]) for each in read(out) if "aspectName" in each}
    assert {(each["entityUrn"], each["aspectName"]) for each in MADE} <= made
