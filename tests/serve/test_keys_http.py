"""Keys over HTTP: made, listed and ended by an administrator alone; a key is told once, and kept by nobody."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from litestar.testing import TestClient

from headwater import keys
from headwater.serve import Serving, create_app
from headwater.store import Store, open_store

KEYS = "/hw/v1/keys"


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    made = open_store(store_url)
    yield made
    made.close()


@pytest.fixture
def boss(store: Store) -> str:
    return keys.create(store, "boss", ["admin"], by="test")[1]


def client(store: Store, key: str = "", **serving: Any) -> TestClient[Any]:
    asked = TestClient(create_app(store, Serving(**{"auth": "on", "anonymous_rate_limit": 0, **serving})))
    if key:
        asked.headers["X-API-Key"] = key
    return asked


def everything(store: Store) -> bytes:
    with store.read() as reader:
        rows = [
            tuple(row)
            for table in ("api_keys", "key_audit", "meta", "log")
            for row in reader.connection.exec_driver_sql(f"SELECT * FROM {table}")
        ]
    return repr(rows).encode() + b"".join(
        bytes(each) for row in rows for each in row if isinstance(each, bytes | memoryview)
    )


def test_a_key_is_told_once_and_works_until_it_is_ended(
    store: Store, boss: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("headwater.serve.auth._REMEMBERED_SECONDS", 0.0)
    caplog.set_level(logging.DEBUG)
    with client(store, boss) as asked:
        wanted = {"name": "airflow", "scopes": ["ingest", "read"], "expires": "90d", "rate": 50}
        answer = asked.post(KEYS, json=wanted)
        assert answer.status_code == 201
        assert answer.headers["cache-control"] == "no-store"
        made = answer.json()
        text = made.pop("key")
        (kept,) = [each for each in asked.get(KEYS).json() if each["name"] == "airflow"]
        assert kept == made
        assert (kept["scopes"], kept["rate"], kept["createdBy"]) == (["ingest", "read"], 50, "boss")
        assert kept["expiresAt"] > kept["createdAt"]

        # nobody can tell it again: no answer, no table, no log
        told = json.dumps([asked.get(KEYS).json(), asked.get("/hw/v1/audit").json()])
        for place in (told.encode(), everything(store), caplog.text.encode()):
            assert text.encode() not in place
            assert text.split("_", 2)[2].encode() not in place

        # it may what it was made for, and no more
        mine = {"X-API-Key": text}
        assert asked.get("/hw/v1/status", headers=mine).status_code == 200
        assert asked.get(KEYS, headers=mine).status_code == 403
        assert asked.post(KEYS, json=wanted, headers=mine).status_code == 403
        assert asked.delete(f"{KEYS}/boss", headers=mine).status_code == 403

        assert asked.delete(f"{KEYS}/airflow").status_code == 200
        assert asked.get("/hw/v1/status", headers=mine).status_code == 401
        assert asked.delete(f"{KEYS}/airflow").status_code == 404
        trail = asked.get("/hw/v1/audit", params={"by": "boss"}).json()
        assert [each["what"] for each in trail] == ["key_revoke", "key_create"]
        assert {each["detail"]["name"] for each in trail} == {"airflow"}
        # the name is free again
        assert asked.post(KEYS, json={"name": "airflow", "scopes": ["read"]}).status_code == 201


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        ({"name": "boss", "scopes": ["read"]}, "in use"),
        ({"name": "x", "scopes": []}, "no scope"),
        ({"name": "x", "scopes": ["root"]}, "root"),
        ({"name": "two words", "scopes": ["read"]}, "no name for a key"),
        ({"name": "x", "scopes": ["read"], "expires": "soon"}, "90d"),
        ({"name": "x", "scopes": ["read"], "rate": 0}, "at least 1"),
        ({"name": "x", "scopes": ["read"], "secret": "chosen"}, "secret"),
        ({"name": "x"}, "scopes"),
    ],
)
def test_what_is_no_key_is_refused_with_what_to_do(
    store: Store, boss: str, wanted: dict[str, Any], why: str
) -> None:
    with client(store, boss) as asked:
        answer = asked.post(KEYS, json=wanted)
        assert 400 <= answer.status_code < 500
        assert why in answer.text
        assert len(asked.get(KEYS).json()) == 1


def test_a_server_that_asks_nobody_for_a_key_makes_and_ends_none(store: Store, boss: str) -> None:
    with client(store, auth="off") as asked:
        made = asked.post(KEYS, json={"name": "me", "scopes": ["admin"]})
        ended = asked.delete(f"{KEYS}/boss")
        for answer in (made, ended):
            assert answer.status_code == 403
            assert "headwater keys" in answer.text
        assert [each["state"] for each in asked.get(KEYS).json()] == ["active"]


def test_a_read_only_server_makes_and_ends_none(store: Store, boss: str) -> None:
    with client(store, boss, read_only=True) as asked:
        assert asked.post(KEYS, json={"name": "me", "scopes": ["admin"]}).status_code in (404, 405)
        assert asked.delete(f"{KEYS}/boss").status_code in (404, 405)
        assert [each["state"] for each in asked.get(KEYS).json()] == ["active"]


def test_settings_show_their_switches_and_hide_their_secrets(store: Store, boss: str) -> None:
    with client(store, boss) as asked:
        told = asked.get("/hw/v1/settings").json()
    assert told["serve"]["auth"] == "on"
    assert told["retention"]["runs"] == "400d"
    assert "***" not in json.dumps(told)  # none of these rooms has a secret
