"""keys: a name and its scopes -> a key, shown once and kept as its hash; a key -> whose it is and what it may do.

A key is 256 random bits, so one round of SHA-256 keeps it: a slow hash (bcrypt, argon2) makes guessing dear where
people choose passwords, but nobody guesses 256 bits, and every request would pay for it. The hash is compared in
constant time, and found by a public id in the key, never by the hash itself.

Keys stand outside the raw log: who copies or replays a log gets no access with it. What is done to them is
written to a table of its own, in the same transaction, and told by `headwater audit`.
"""

from __future__ import annotations

import hmac
import re
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, insert, select, update

from headwater.errors import ConfigError, NotFound
from headwater.store import Store
from headwater.store._schema import api_keys, key_audit

SCOPES = {
    "ingest": "send events",
    "read": "ask",
    "admin": "all of it, and what changes or deletes by hand",
}
"""What a key may be for; `admin` includes the others."""
GRANTS = {
    "ingest": frozenset({"ingest"}),
    "read": frozenset({"read"}),
    "admin": frozenset({"admin", "ingest", "read"}),
}
PREFIX = "hw_"
_USED_EVERY = (
    3_600_000_000  # `used_at` is told to the hour: a write for each request would cost more than it tells
)
_NAME = re.compile(r"[\w.@:/+-]{1,100}").fullmatch
_KEY = re.compile(r"hw_([0-9a-f]{12})_[\w-]{43}").fullmatch


@dataclass(frozen=True, slots=True)
class Key:
    """A key, without what makes it one."""

    id: str
    name: str
    scopes: tuple[str, ...]
    rate: int | None
    """Requests a second that this key may make; None: as the server's setting says."""
    created_at: int
    created_by: str
    expires_at: int | None
    revoked_at: int | None
    used_at: int | None

    def state(self, now: int) -> str:
        """`active`, `expired` or `revoked`."""
        if self.revoked_at is not None and self.revoked_at <= now:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "active"

    def granted(self) -> frozenset[str]:
        """The scopes, and those that they include."""
        return granted(self.scopes)


def granted(scopes: Iterable[str]) -> frozenset[str]:
    """Scopes and those that they include.

    >>> sorted(granted(["admin"]))
    ['admin', 'ingest', 'read']
    """
    return frozenset().union(*(GRANTS[scope] for scope in scopes))


def create(
    store: Store,
    name: str,
    scopes: Iterable[str],
    *,
    by: str,
    expires_at: int | None = None,
    rate: int | None = None,
) -> tuple[Key, str]:
    """Make a key; the second of what is answered is the key itself, which nobody can tell again."""
    wanted = tuple(sorted(set(scopes)))
    now = _now()
    _check(name, wanted, expires_at, rate, now)
    with store.writing() as connection:
        if any(each.name == name and each.state(now) == "active" for each in _all(connection)):
            raise ConfigError(
                f"a key called {name!r} is in use: choose another name, or `headwater keys rotate {name}`"
            )
        return _make(connection, name, wanted, by, expires_at, rate, now, "create")


def rotate(store: Store, name: str, *, by: str, grace: int = 0) -> tuple[Key, str]:
    """A new key in the place of an active one, with its name, scopes, rate and time of life; the old one lives
    for `grace` more microseconds."""
    now = _now()
    with store.writing() as connection:
        old = _active(connection, name, now)
        life = None if old.expires_at is None else now + old.expires_at - old.created_at
        made = _make(connection, name, old.scopes, by, life, old.rate, now, "rotate")
        _end(connection, old, now + grace)
        return made


def revoke(store: Store, name: str, *, by: str) -> list[Key]:
    """End every live key of that name, or the one with that id."""
    now = _now()
    with store.writing() as connection:
        ended = [
            each
            for each in _all(connection)
            if name in (each.name, each.id) and (each.revoked_at is None or each.revoked_at > now)
        ]
        if not ended:
            raise NotFound(f"no key is called {name!r}, or it was revoked before: see `headwater keys list`")
        for each in ended:
            _end(connection, each, now)
            _note(connection, now, by, "revoke", each)
        return ended


def listed(store: Store) -> list[Key]:
    """Every key that was made, newest first."""
    with store.read() as reader:
        return _all(reader.connection)


def find(store: Store, text: str) -> Key | None:
    """Whose key this is, in whatever state it is; None for a text that is no key of ours.

    A key that is unknown costs the same comparison as one that is known.
    """
    found = _KEY(text)
    with store.read() as reader:
        row = (
            reader.connection.execute(select(api_keys).where(api_keys.c.id == found[1])).mappings().first()
            if found
            else None
        )
    kept = bytes(row["digest"]) if row else bytes(32)
    same = hmac.compare_digest(kept, digest(text))
    return _key(row) if same and row else None


def is_stale(key: Key) -> bool:
    """Whether it is time to keep again that the key is in use."""
    return key.used_at is None or _now() - key.used_at > _USED_EVERY


def note_use(store: Store, key: Key) -> None:
    """Keep that a key is in use."""
    with store.writing() as connection:
        connection.execute(update(api_keys).where(api_keys.c.id == key.id).values(used_at=_now()))


def digest(text: str) -> bytes:
    """What is kept of a key."""
    return sha256(text.encode("utf-8", "surrogatepass")).digest()


def lifetime(text: str) -> int:
    """`90d`, `12h`, `30m` -> microseconds.

    >>> lifetime("90d") == 90 * 24 * lifetime("1h")
    True
    """
    found = re.fullmatch(r"(\d{1,5})([dhm])", text.strip())
    if found is None or int(found[1]) == 0:
        raise ConfigError(f"{text!r} is no span of time: write 90d, 12h or 30m")
    return int(found[1]) * {"d": 86_400, "h": 3_600, "m": 60}[found[2]] * 1_000_000


def _check(name: str, scopes: tuple[str, ...], expires_at: int | None, rate: int | None, now: int) -> None:
    if not _NAME(name):
        raise ConfigError(f"{name!r} is no name for a key: letters, digits and . _ @ : / + - are, up to 100")
    if not scopes or (unknown := set(scopes) - SCOPES.keys()):
        raise ConfigError(
            f"{', '.join(sorted(unknown)) if scopes else 'no scope'}: a key has one or more of {', '.join(SCOPES)}"
        )
    if expires_at is not None and expires_at <= now:
        raise ConfigError("the key would have expired before it was made")
    if rate is not None and rate < 1:
        raise ConfigError("a rate is at least 1 request a second")


def _make(
    connection: Connection,
    name: str,
    scopes: tuple[str, ...],
    by: str,
    expires_at: int | None,
    rate: int | None,
    now: int,
    what: str,
) -> tuple[Key, str]:
    number = secrets.token_hex(6)
    text = f"{PREFIX}{number}_{secrets.token_urlsafe(32)}"
    key = Key(number, name, scopes, rate, now, by, expires_at, None, None)
    connection.execute(
        insert(api_keys).values(
            id=number,
            name=name,
            digest=digest(text),
            scopes=" ".join(scopes),
            rate=rate,
            created_at=now,
            created_by=by,
            expires_at=expires_at,
        )
    )
    _note(connection, now, by, what, key)
    return key, text


def _active(connection: Connection, name: str, now: int) -> Key:
    for each in _all(connection):  # newest first: of two that overlap, the one that replaced the other
        if name in (each.name, each.id) and each.state(now) == "active":
            return each
    raise NotFound(f"no key called {name!r} is in use: see `headwater keys list`")


def _end(connection: Connection, key: Key, at: int) -> None:
    connection.execute(update(api_keys).where(api_keys.c.id == key.id).values(revoked_at=at))


def _note(connection: Connection, now: int, by: str, what: str, key: Key) -> None:
    detail = " ".join(key.scopes)
    connection.execute(
        insert(key_audit).values(
            at=now, by=by, what=f"key_{what}", key_id=key.id, name=key.name, detail=detail
        )
    )


def _all(connection: Connection) -> list[Key]:
    query = select(api_keys).order_by(api_keys.c.created_at.desc(), api_keys.c.id)
    return [_key(row) for row in connection.execute(query).mappings()]


def _key(row: Any) -> Key:
    return Key(
        row["id"],
        row["name"],
        tuple(row["scopes"].split()),
        row["rate"],
        row["created_at"],
        row["created_by"],
        row["expires_at"],
        row["revoked_at"],
        row["used_at"],
    )


def _now() -> int:
    return time.time_ns() // 1000
