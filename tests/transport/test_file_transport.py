from __future__ import annotations

import errno
import json
import multiprocessing
import os
from pathlib import Path

import pytest

from headwater.errors import ConfigError, TransportError
from headwater.transport.console import ConsoleTransport
from headwater.transport.file import FileTransport


def _write(url: str, who: int, barrier: object) -> None:
    transport = FileTransport(url)
    barrier.wait()  # type: ignore[attr-defined]
    for n in range(40):
        transport.send(
            [json.dumps({"who": who, "n": n, "part": part, "pad": "x" * 3000}).encode() for part in range(5)]
        )


def test_processes_share_a_file_and_every_line_stays_whole(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    spawn = multiprocessing.get_context("spawn")
    barrier = spawn.Barrier(4)
    workers = [spawn.Process(target=_write, args=(path.as_uri(), who, barrier)) for who in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    seen = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert len(seen) == 4 * 40 * 5
    assert all([e["part"] for e in seen[i : i + 5]] == list(range(5)) for i in range(0, len(seen), 5))


def test_a_short_write_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, write = tmp_path / "e.jsonl", os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:3]))
    FileTransport(path.as_uri()).send([b'{"a":1}', b'{"b":2}'])
    assert path.read_bytes() == b'{"a":1}\n{"b":2}\n'


def test_a_full_disk_leaves_no_torn_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, write = tmp_path / "e.jsonl", os.write
    transport = FileTransport(path.as_uri())
    transport.send([b'{"a":1}'])
    left = [5]

    def full(file: int, data: bytes) -> int:
        if not left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(file, data[: left.pop()])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(TransportError, match="No space left") as caught:
        transport.send([b'{"b":2}', b'{"c":3}'])
    assert caught.value.retryable
    assert path.read_bytes() == b'{"a":1}\n'


def test_it_follows_a_rotated_file(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    transport = FileTransport(path.as_uri())
    transport.send([b"{}"])
    path.rename(tmp_path / "old.jsonl")
    transport.send([b"[]"])
    assert path.read_bytes() == b"[]\n"


def test_fsync_waits_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.setattr(os, "fsync", calls.append)
    FileTransport((tmp_path / "a").as_uri()).send([b"{}"])
    assert calls == []
    FileTransport((tmp_path / "a").as_uri(), fsync="yes").send([b"{}"])
    assert len(calls) == 1


def test_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    FileTransport("file:sub/e.jsonl").send([b"{}"])
    FileTransport("file:e.jsonl").send([b"{}"])
    assert (tmp_path / "sub" / "e.jsonl").read_bytes() == (tmp_path / "e.jsonl").read_bytes() == b"{}\n"


@pytest.mark.parametrize(
    ("url", "message"),
    [("file://events.jsonl", "three slashes"), ("file:///", "names no file"), ("file:", "names no file")],
)
def test_a_url_that_names_no_file_is_refused(url: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        FileTransport(url)


def test_a_path_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(TransportError, match=r"cannot write .*: Is a directory"):
        FileTransport(tmp_path.as_uri()).send([b"{}"])


def test_fsync_is_a_yes_or_no() -> None:
    with pytest.raises(ConfigError, match="fsync: 'perhaps' is neither true nor false"):
        FileTransport("file:///e", fsync="perhaps")


def test_console_writes_where_it_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    ConsoleTransport(stream="stderr").send(['{"a": "ä"}'.encode()])
    ConsoleTransport(pretty="yes").send([b'{"a":1}'])
    assert capsys.readouterr() == ('{\n  "a": 1\n}\n', '{"a":"ä"}\n')


def test_console_refuses_other_streams() -> None:
    with pytest.raises(ConfigError, match="stream: 'printer'"):
        ConsoleTransport(stream="printer")


def test_a_closed_console_is_a_transport_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with (tmp_path / "out").open("w") as stream:
        monkeypatch.setattr("sys.stdout", stream)
    with pytest.raises(TransportError, match="cannot write to stdout") as caught:
        ConsoleTransport().send([b"{}"])
    assert not caught.value.retryable
