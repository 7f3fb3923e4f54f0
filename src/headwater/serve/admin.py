"""serve.admin: /hw/v1/keys, /hw/v1/hooks, /hw/v1/settings -> what an administrator looks after; a new key is the one secret told, once."""

from __future__ import annotations

import time
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any

import msgspec
from litestar import Request, Response, delete, get, post
from litestar.concurrency import sync_to_thread
from litestar.datastructures import State
from litestar.exceptions import PermissionDeniedException
from litestar.params import JSONBody, PathParameter

from headwater import keys
from headwater.config._shown import shown
from headwater.naming import scrub
from headwater.query.incidents import clock
from headwater.query.messages import message
from headwater.query.nodes import iso
from headwater.serve.auth import who
from headwater.store import Store, _audit, _outbox

KeyName = Annotated[str, PathParameter(description="The name or the id of a key.")]
HookName = Annotated[str, PathParameter(description="The name of a hook.")]
SOURCES = (
    "pyspark",
    "dlt",
    "apache-airflow",
    "openlineage-python",
    "fastavro",
    "confluent-kafka",
    "acryl-datahub",
)
"""Packages whose presence decides which lines to paste."""


class NewKey(msgspec.Struct, forbid_unknown_fields=True):
    """A key that shall be made."""

    name: str
    """Who will use it: logs and the audit trail say so."""
    scopes: list[str]
    """`ingest`, `read`, `admin`."""
    expires: str | None = None
    """How long it lives: `90d`, `12h`; left out: for ever."""
    rate: int | None = None
    """Requests a second that it may make; left out: as the server's setting says."""


# Several methods of one path go to a thread by themselves: the framework would wrap each handler twice.


@get("/hw/v1/keys", scope="admin", operation_id="GetKeys")
async def get_keys(state: State) -> list[dict[str, Any]]:
    """Every key that was made, newest first; nobody can tell the keys themselves."""
    now = time.time_ns() // 1000
    return [_key(each, now) for each in await sync_to_thread(keys.listed, state.store)]


@post("/hw/v1/keys", scope="admin", status_code=201, operation_id="PostKey")
async def post_key(
    request: Request[Any, Any, State], state: State, data: JSONBody[NewKey]
) -> Response[dict[str, Any]]:
    """Make a key. It stands in this one answer: the store keeps only its hash.

    A server that asks nobody for a key makes none: whoever can reach it today would keep a key for the day on which it asks.
    """
    _only_where_keys_are_asked_for(state)
    made, text = await sync_to_thread(_create, state.store, data, who(request))
    model = {**_key(made, made.created_at), "key": text}
    return Response(model, status_code=201, headers={"Cache-Control": "no-store"})


def _create(store: Store, wanted: NewKey, by: str) -> tuple[keys.Key, str]:
    until = None if wanted.expires is None else time.time_ns() // 1000 + keys.lifetime(wanted.expires)
    return keys.create(store, wanted.name, wanted.scopes, by=by, expires_at=until, rate=wanted.rate)


def _only_where_keys_are_asked_for(state: State) -> None:
    if not state.serving.needs_keys:
        raise PermissionDeniedException(
            "this server asks nobody for a key, so keys are neither made nor ended over it: "
            "use `headwater keys` with its --store, or set serve.auth to on"
        )


@delete("/hw/v1/keys/{name:str}", scope="admin", status_code=200)
async def delete_key(request: Request[Any, Any, State], state: State, name: KeyName) -> list[dict[str, Any]]:
    """End a key at once."""
    _only_where_keys_are_asked_for(state)
    ended = await sync_to_thread(keys.revoke, state.store, name, by=who(request))
    return [_key(each, time.time_ns() // 1000) for each in ended]


def _key(key: keys.Key, now: int) -> dict[str, Any]:
    return {
        "id": key.id,
        "name": key.name,
        "scopes": list(key.scopes),
        "rate": key.rate,
        "state": key.state(now),
        "createdAt": iso(key.created_at),
        "createdBy": key.created_by,
        "expiresAt": iso(key.expires_at),
        "usedAt": iso(key.used_at),
    }


@get("/hw/v1/hooks", scope="admin", sync_to_thread=True)
def get_hooks(state: State) -> dict[str, Any]:
    """The webhooks, how many messages each has waiting, delivered and given up, and the newest of them."""
    with state.store.read() as reader:
        hooks, counts = _outbox.all_hooks(reader.connection), _outbox.counts(reader.connection)
        newest = _outbox.messages(reader.connection, None, 50, hooks_alone=True)
    return {
        "hooks": [
            {
                "name": hook.name,
                "url": scrub(hook.url),
                "signed": bool(hook.secret),
                **{each: counts.get((hook.name, each), 0) for each in ("waiting", "done", "dead")},
            }
            for hook in hooks
        ],
        "messages": [message(each) for each in newest],
    }


@post("/hw/v1/hooks/{name:str}/retry", scope="admin", status_code=200)
async def post_retry(request: Request[Any, Any, State], state: State, name: HookName) -> dict[str, int]:
    """Give the messages of a hook that were given up another try."""
    return {"again": await sync_to_thread(_retry, state.store, name, who(request))}


def _retry(store: Store, name: str, by: str) -> int:
    with store.writing() as connection:
        again = _outbox.retry(connection, name, clock())
        if again:
            _audit.note(connection, clock(), by, "hook_retry", name, f"{again} messages")
        return again


@get("/hw/v1/settings", scope="admin", sync_to_thread=True)
def get_settings(state: State) -> dict[str, Any]:
    """The settings that this server runs with, room by room; secrets are not among them."""
    rooms = {"serve": asdict(state.serving), "ingest": msgspec.structs.asdict(state.limits)}
    rooms["retention"] = asdict(state.retention)
    return {name: shown(name, room) for name, room in rooms.items()}


@get("/hw/v1/sources", scope="read", sync_to_thread=True)
def get_sources() -> dict[str, str | None]:
    """Which packages that can send lineage are installed beside the server, with their versions."""
    return {name: _version(name) for name in SOURCES}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


READS = [get_keys, get_hooks, get_settings, get_sources]
WRITES = [post_key, delete_key, post_retry]
