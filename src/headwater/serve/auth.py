"""serve.auth: a request and its handler's scope -> who calls, or a refusal: 401, 403, 429.

Every handler carries its scope (`@get("/x", scope="read")`): `ingest`, `read`, `admin`, or `public` for what anyone
may see. One without it is refused when the app is made, so a new route cannot be left open by mistake.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from math import ceil
from typing import Any
from urllib.parse import urlsplit

from litestar import Litestar
from litestar.concurrency import sync_to_thread
from litestar.connection import ASGIConnection
from litestar.exceptions import (
    ClientException,
    HTTPException,
    MethodNotAllowedException,
    NotAuthorizedException,
    PermissionDeniedException,
)
from litestar.handlers import BaseRouteHandler

from headwater import keys
from headwater.errors import ConfigError, TransportError
from headwater.guard import guard
from headwater.serve.buckets import Buckets
from headwater.serve.journal import Call, call_of
from headwater.serve.oidc import BadToken, Oidc, Verifier
from headwater.serve.settings import Serving
from headwater.store import Store

PUBLIC = "public"
KNOWN = {*keys.SCOPES, PUBLIC}
ANONYMOUS = "anonymous"
_REMEMBERED_SECONDS = 2.0  # how long a revoked key may still be taken
_REMEMBERED = 1024
_READING = {"GET", "HEAD", "OPTIONS"}

Connection = ASGIConnection[Any, Any, Any, Any]


class TooMany(HTTPException):
    """More requests than a caller may make."""

    status_code = 429


class Refused(HTTPException):
    """The provider that would know the caller cannot be asked."""

    status_code = 503


def who(request: Any) -> str:
    """Whom a command is by: the name of the key, `oidc:` and the subject, or `anonymous` where no key is needed."""
    return call_of(request.scope).who or ANONYMOUS


class Gate:
    """Lets requests in, by what their handler's scope asks for. `count` hears of each refusal: its reason."""

    def __init__(
        self,
        store: Store,
        serving: Serving,
        oidc: Oidc = Oidc(),  # noqa: B008 - frozen
        count: Callable[[str], None] = lambda reason: None,
    ) -> None:
        self._store, self._serving, self._count = store, serving, count
        self._verifier = Verifier(oidc) if oidc.issuer and serving.needs_keys else None
        self._buckets = Buckets()
        self._known: OrderedDict[bytes, tuple[float, keys.Key]] = OrderedDict()
        self._noting: dict[str, threading.Thread] = {}

    async def check(self, connection: Connection, handler: BaseRouteHandler) -> None:
        """Let a request in, or raise what to answer; a guard of the app."""
        wanted = scope_of(handler)
        if b"%00" in connection.scope["query_string"] or "\0" in connection.scope["path"]:
            raise ClientException(
                "the address holds a NUL character: no name has one"
            )  # nor a database a text
        writes = wanted in ("ingest", "admin") and connection.scope.get("method") not in _READING
        if self._serving.read_only and writes:
            raise MethodNotAllowedException("this server is read-only")
        self._same_site(connection)
        if not self._serving.needs_keys:
            self._limit(f"address {_address(connection)}", self._serving.rate_limit)
            return
        if wanted == PUBLIC:
            self._limit(f"address {_address(connection)}", self._serving.anonymous_rate_limit)
            return
        call = call_of(connection.scope)
        rate = await self._identify(connection, call)
        self._limit(f"caller {call.who}", rate)
        if wanted not in call.scopes:
            self._count("forbidden")
            raise PermissionDeniedException(
                f"this needs a key with the scope {wanted!r}; yours has: {', '.join(sorted(call.scopes)) or 'none'}"
            )

    async def _identify(self, connection: Connection, call: Call) -> float:
        """Write into the call who sends it; the requests a second that he may make."""
        text = presented(connection)
        if not text:
            raise self._unknown(
                connection, "missing", "a key is needed: send `Authorization: Bearer KEY` or `X-API-Key: KEY`"
            )
        if self._verifier is not None and not text.startswith(keys.PREFIX):
            try:
                bearer = await sync_to_thread(self._verifier.verify, text)
            except BadToken as fault:
                raise self._unknown(connection, "token", str(fault)) from None
            except TransportError as fault:
                raise Refused(str(fault), headers={"Retry-After": "5"}) from None
            call.who, call.scopes = f"oidc:{bearer.subject}", keys.granted(bearer.scopes)
            return self._serving.rate_limit
        key = await self._key(text)
        state = "unknown" if key is None else key.state(time.time_ns() // 1000)
        if key is None or state != "active":
            told = "no such key" if key is None else f"the key {key.name!r} is {state}"
            raise self._unknown(
                connection, state, f"{told}: an administrator makes one with `headwater keys create`"
            )
        call.who, call.scopes = key.name, key.granted()
        return self._serving.rate_limit if key.rate is None else key.rate

    async def _key(self, text: str) -> keys.Key | None:
        digest = keys.digest(text)
        now = time.monotonic()
        known = self._known.get(digest)
        if known is not None and now - known[0] < _REMEMBERED_SECONDS:
            return known[1]
        key: keys.Key | None = await sync_to_thread(keys.find, self._store, text)
        if key is None:
            self._known.pop(digest, None)
        else:
            self._note(key)
            self._known[digest] = (now, key)
            self._known.move_to_end(digest)
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return key

    def _note(self, key: keys.Key) -> None:
        """Keep that a key was used, beside the request: the store's writer may be busy for minutes."""
        running = self._noting.get(key.id)
        if self._serving.read_only or (running is not None and running.is_alive()) or not keys.is_stale(key):
            return
        write = guard("noting that a key was used")(keys.note_use)
        self._noting[key.id] = threading.Thread(target=write, args=(self._store, key), daemon=True)
        self._noting[key.id].start()

    def close(self) -> None:
        """Wait a while for what is being noted."""
        for each in self._noting.values():
            each.join(5)

    def _unknown(self, connection: Connection, reason: str, told: str) -> HTTPException:
        """A 401, or a 429 to whoever tries too often."""
        self._count(reason)
        self._limit(f"address {_address(connection)}", self._serving.anonymous_rate_limit)
        return NotAuthorizedException(told, headers={"WWW-Authenticate": 'Bearer realm="headwater"'})

    def _limit(self, caller: str, rate: float) -> None:
        wait = self._buckets.take(caller, rate, self._serving.rate_burst)
        if wait:
            self._count("rate_limited")
            raise TooMany(
                f"more than {rate:g} requests a second: come again in {ceil(wait)} s",
                headers={"Retry-After": str(ceil(wait))},
            )

    def _same_site(self, connection: Connection) -> None:
        """A page of another site may not write by a browser that can reach us: browsers tell where a page is from."""
        origin = connection.headers.get("origin")
        allowed = self._serving.cors_origins
        if connection.scope.get("method") in _READING or not origin or "*" in allowed or origin in allowed:
            return
        if urlsplit(origin).netloc != connection.headers.get("host"):
            self._count("cross_site")
            raise PermissionDeniedException("a page of another origin may not write: see serve.cors_origins")


def scope_of(handler: BaseRouteHandler) -> str:
    """The scope that a handler carries."""
    found = handler.opt.get("scope")
    if found is None and getattr(handler, "http_methods", None) == {"OPTIONS"}:
        return PUBLIC  # Litestar's own: which methods a path has
    return str(found)


def check_scopes(app: Litestar) -> None:
    """Refuse an app that has a route without a scope."""
    for route in app.routes:
        for handler in getattr(route, "route_handlers", None) or [route.route_handler]:  # type: ignore[union-attr]
            if scope_of(handler) not in KNOWN:
                raise ConfigError(
                    f"{route.path}: {handler.handler_name} has no scope: give it scope= one of {', '.join(sorted(KNOWN))}"
                )


def check_keys(store: Store, serving: Serving, oidc: Oidc) -> None:
    """Refuse to start a server that nobody could use, or that everybody could without anyone having said so."""
    if not serving.needs_keys or oidc.issuer:
        return
    now = time.time_ns() // 1000
    if not any(key.state(now) == "active" for key in keys.listed(store)):
        reached = (
            ""
            if serving.auth == "on"
            else f"{serving.host} can be reached by others, so every request needs a key; "
        )
        raise ConfigError(
            f"{reached}there is no key yet. Make one with `headwater keys create NAME --scope admin`"
            " (and the same --store), or let everyone in with --no-auth"
        )


def presented(connection: Connection) -> str:
    """The key or token that a request brings."""
    kind, _, text = connection.headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer" and text.strip():
        return text.strip()
    return connection.headers.get("x-api-key", "").strip()


def _address(connection: Connection) -> str:
    return connection.client.host if connection.client else "unknown"
