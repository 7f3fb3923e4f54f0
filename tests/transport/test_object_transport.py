from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from object_store import Bucket

from headwater import config
from headwater.emitter import Emitter
from headwater.errors import ConfigError, TransportError
from headwater.transport import open_transport
from headwater.transport.spool import SpoolTransport
from headwater.transport.spool.drainer import Drainer

pytest.importorskip("fsspec", reason="pip install 'headwater[s3]'")


def event(n: int) -> bytes:
    return json.dumps(
        {"eventTime": f"2026-01-01T00:00:{n:02}Z", "job": {"namespace": "n", "name": "j"}}
    ).encode()


def test_each_batch_is_an_object_and_names_sort_as_they_were_sent(bucket: Bucket) -> None:
    transport = open_transport(f"{bucket.url}/deep/er", storage_options=bucket.options)
    for n in range(12):
        transport.send([event(n), event(n + 20)])
    names = bucket.names()
    assert len(names) == 12
    assert all("/deep/er/date=" in name and name.endswith(".jsonl") for name in names)
    assert [e["eventTime"] for e in bucket.events()][::2] == [f"2026-01-01T00:00:{n:02}Z" for n in range(12)]


def test_a_bucket_that_is_not_there_and_a_store_that_is_not(bucket: Bucket) -> None:
    missing = open_transport("s3://nobody-made-it/x", storage_options=bucket.options)
    with pytest.raises(TransportError, match="nobody-made-it") as caught:
        missing.send([event(1)])
    assert caught.value.retryable
    away = {
        **bucket.options,
        "endpoint_url": "http://127.0.0.1:9",
        "config_kwargs": {"retries": {"max_attempts": 0}},
    }
    gone = open_transport(f"{bucket.url}/x", storage_options=away)
    with pytest.raises(TransportError, match="cannot write s3://") as caught:
        gone.send([event(1)])
    assert caught.value.retryable
    assert "test" not in str(caught.value).replace(bucket.url, "")  # key and secret


def test_a_host_spools_and_a_batch_becomes_one_object(bucket: Bucket, tmp_path: Path) -> None:
    settings = config.load(
        {"spool": {"dir": str(tmp_path / "spool"), "drain": "off"}}, environ={}, cwd=tmp_path, home=tmp_path
    )
    emitter = Emitter({"url": f"{bucket.url}/e", "storage_options": bucket.options}, settings)
    transport = emitter._transport
    assert isinstance(transport, SpoolTransport)
    for n in range(30):
        emitter.emit(event(n))
    emitter.close()
    Drainer(transport.place).run()
    assert [e["eventTime"] for e in bucket.events()] == [f"2026-01-01T00:00:{n:02}Z" for n in range(30)]
    assert len(bucket.names()) == 1


def test_a_fork_writes_objects_of_its_own(bucket: Bucket) -> None:
    transport = open_transport(f"{bucket.url}/e", storage_options=bucket.options, partition=False)
    transport.send([event(1)])
    child = os.fork()
    if not child:
        code = 1
        try:
            transport.send([event(2)])
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    transport.send([event(3)])
    assert len(bucket.names()) == 3


@pytest.mark.parametrize(
    ("url", "options", "message"),
    [
        ("s3://", {}, "names no bucket"),
        ("s3://b", {"storage_options": "key=k"}, "storage_options: must be a table"),
        ("s3://b", {"partition": "perhaps"}, "partition: 'perhaps'"),
    ],
)
def test_bad_options_are_told_at_once(url: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        open_transport(url, **options)


def test_a_library_that_is_missing_is_named_by_its_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    with pytest.raises(ConfigError, match="transport 'gs' needs: pip install gcsfs"):
        open_transport("gs://b/e")
