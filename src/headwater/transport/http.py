"""transport.http: encoded events -> POST to an OpenLineage server, one or many at a time, until it has them or says why not."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from headwater.errors import ConfigError, TransportError
from headwater.plugins import require_host
from headwater.transport._answers import TRY_AGAIN, Refusal, backoff, failed, named, reason, retry_after
from headwater.transport._auth import authorization, header, trust
from headwater.transport._options import flag, number, refuse_closed, whole

if TYPE_CHECKING:
    import httpx  # 60 ms that a host pays only when something is sent

ENDPOINT = "api/v1/lineage"
BATCH = 1000  # events in one request; Correlator takes no more
LONGEST_WAIT = 10.0  # seconds: a server that asks for more is left alone until the next send
PATIENCE = 15.0  # seconds after which no further attempt is begun: the host waits meanwhile
LISTED = 5  # refusals told in an error
TRY_SMALLER = frozenset({400, 413, 422})  # said of a batch: it is too large, or one event in it is bad
NO_BATCHES = frozenset({404, 405, 501})
PROFILES: Mapping[str, tuple[str | None, bool]] = {
    "openlineage": ("batch", False),
    "correlator": ("events", True),
    "single": (None, False),
}
"""name -> (where below the endpoint arrays go, whether a single event goes there too)"""


class _Sent(msgspec.Struct):
    """What became of the events of one call, by position."""

    taken: set[int] = msgspec.field(default_factory=set)
    refused: dict[int, Refusal] = msgspec.field(default_factory=dict)

    def pending(self, count: int) -> set[int]:
        """Those which may be sent again."""
        final = {at for at, refusal in self.refused.items() if not refusal.retryable}
        return set(range(count)) - self.taken - final


class HttpTransport:
    """Posts one event to `{url}/{endpoint}`, several as an array to `{url}/{endpoint}/batch`.

    A server without the batch path gets them one by one. Busy or failing servers are asked again `retries`
    times, with growing waits or as their Retry-After says. A batch refused as a whole (too large, or one bad
    event in it) is halved until what can be taken is taken. `verify` is yes, no, or a file of CA certificates;
    `direct` is for the emitter, which then leaves out the spool.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        auth: Mapping[str, Any] | None = None,
        endpoint: str = ENDPOINT,
        profile: str = "openlineage",
        timeout: float | str = 5.0,
        retries: int | str = 3,
        compression: str | None = None,
        verify: bool | str = True,
        client_cert: str | None = None,
        client_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
        max_batch_bytes: int | str = 8 * 1024 * 1024,
        direct: bool | str = False,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https"):
            raise ConfigError("url: names no host: write http://host:port")
        require_host(parts)
        if compression not in (None, "", "none", "gzip", "zstd"):
            raise ConfigError(f"compression: {compression!r} is not offered: gzip, zstd or none")
        if profile not in PROFILES:
            raise ConfigError(f"profile: {profile!r} is not offered: {', '.join(PROFILES)}")
        for name, table in (("headers", headers), ("params", params)):
            if table is not None and not isinstance(table, Mapping):
                raise ConfigError(f'{name}: must be a table, as in {{"X-Team": "shop"}}')
        flag("direct", direct)
        self._url = urlunsplit(parts._replace(query="", fragment="")).rstrip("/")
        self._single = f"{self._url}/{endpoint.strip('/')}"
        path, self._arrays_only = PROFILES[profile]
        self._array = f"{self._single}/{path}"
        self._batches = path is not None
        self._shown = urlunsplit(
            parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="")
        )
        self._timeout = number("timeout", timeout, least=0.001)
        self._retries = whole("retries", retries)
        self._compression = compression if compression in ("gzip", "zstd") else None
        trusted = trust(verify, client_cert, client_key)
        # to read the system's certificates takes a while; a plain url whose tokens come from nowhere else needs none
        self._verify = trusted if parts.scheme == "https" or auth is not None else False
        self._params = {name: str(value) for name, value in (params or {}).items()}
        self._auth = authorization(api_key, auth)
        self._headers = {
            "Content-Type": "application/json",
            **{_named(k): header(f"headers.{k}", v) for k, v in (headers or {}).items()},
            **self._auth.fixed,
        }
        given = (parts.password, *map(str, (headers or {}).values()), *self._params.values())
        self._secrets = [secret for secret in given if secret]
        self._max_bytes = whole("max_batch_bytes", max_batch_bytes, least=1)
        self._clients: dict[int, httpx.Client] = {}
        self._closed = False

    def __repr__(self) -> str:
        return f"HttpTransport({self._shown!r})"

    def send(self, events: Sequence[bytes]) -> None:
        """Post the events in their order; what the server refuses is told after the others were sent."""
        refuse_closed(self._closed, self)
        sent, start = _Sent(), 0
        try:
            for part in self._parts(events):
                self._deliver(events, range(start, start + len(part)), sent)
                start += len(part)
        except TransportError as fault:
            before = f"; before that {self._told(events, sent)}" if sent.refused else ""
            raise TransportError(
                f"{fault}{before}",
                retryable=fault.retryable,
                refused={at: self._scrub(r.reason) for at, r in sent.refused.items() if not r.retryable},
                pending=sent.pending(len(events)),
                retry_after=fault.retry_after,
                cause=fault.cause,
            ) from fault
        if sent.refused:
            # sending all again is harmless to those taken already, and the only way for those that may pass yet
            raise TransportError(
                f"{self._shown} {self._told(events, sent)}",
                retryable=any(r.retryable for r in sent.refused.values()),
                refused={at: self._scrub(r.reason) for at, r in sorted(sent.refused.items())},
                pending=sent.pending(len(events)),
            )

    def close(self) -> None:
        """Close the connections of this process."""
        self._closed = True
        if client := self._clients.pop(os.getpid(), None):
            client.close()

    def _parts(self, events: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
        start = size = 0
        for i, event in enumerate(events):
            if i > start and (size + len(event) > self._max_bytes or i - start == BATCH):
                yield events[start:i]
                start, size = i, 0
            size += len(event) + 1
        if start < len(events):
            yield events[start:]

    def _deliver(self, events: Sequence[bytes], places: Sequence[int], sent: _Sent) -> None:
        """Post the events at these places together, or one by one where the server takes no arrays."""
        if not self._batches or (len(places) == 1 and not self._arrays_only):
            for at in places:
                self._deliver_one(events[at], at, sent)
            return None
        for attempt in range(self._retries + 1):
            answer = self._post(self._array, b"[" + b",".join(events[at] for at in places) + b"]")
            said = failed(answer, len(places), TRY_AGAIN)
            if answer.status_code in NO_BATCHES and said is None:  # an older server; ask it no more
                self._batches = False
                return self._deliver(events, places, sent)
            if answer.status_code in TRY_SMALLER and said is None:
                if len(places) == 1:
                    why = f"{answer.status_code} {self._reason(answer)}"
                    sent.refused[places[0]] = Refusal(why, retryable=False)
                    return None
                middle = len(places) // 2
                self._deliver(events, places[:middle], sent)
                return self._deliver(events, places[middle:], sent)
            if said is None and not answer.is_success:
                raise self._fault(answer)
            said = said or {}
            sent.taken.update(at for i, at in enumerate(places) if i not in said)
            sent.refused.update((places[i], refusal) for i, refusal in said.items() if not refusal.retryable)
            again = {places[i]: refusal for i, refusal in said.items() if refusal.retryable}
            if not again or attempt == self._retries:
                sent.refused.update(again)
                return None
            sleep(backoff(attempt))
            places = sorted(again)
        return None

    def _deliver_one(self, event: bytes, at: int, sent: _Sent) -> None:
        for attempt in range(self._retries + 1):
            answer = self._post(self._single, event)
            if said := failed(answer, 1, TRY_AGAIN):
                sent.refused[at] = said[0]
                if said[0].retryable and attempt < self._retries:
                    sleep(backoff(attempt))
                    continue
            elif answer.status_code in TRY_SMALLER:
                why = f"{answer.status_code} {self._reason(answer)}"
                sent.refused[at] = Refusal(why, retryable=False)
            elif not answer.is_success:
                raise self._fault(answer)
            else:
                sent.refused.pop(at, None)
                sent.taken.add(at)
            return

    def _post(self, url: str, body: bytes) -> httpx.Response:
        """The server's answer, asked again while it is busy, failing or out of reach."""
        import httpx

        begun, renewed = monotonic(), False
        packed = self._packed(body)
        for attempt in count():
            last = attempt >= self._retries or monotonic() - begun > PATIENCE
            wait = backoff(attempt)
            try:
                client = self._client()
                headers = {**self._headers, **self._auth.current(client), **packed[1]}
                answer = client.post(url, content=packed[0], headers=headers, params=self._params or None)
                # an answer is a cycle: with its request in it, megabytes would wait for the garbage collector
                answer.request = httpx.Request("POST", url)
            except (httpx.RequestError, httpx.InvalidURL) as fault:  # also an answer that cannot be unpacked
                if last or isinstance(fault, httpx.InvalidURL):
                    raise self._unreachable(fault) from None  # its request would carry the key along
            else:
                if answer.status_code == 401 and not renewed and self._auth.renew():
                    renewed = True
                    continue
                if answer.status_code == 415 and packed[1]:  # it does not unpack: ask it no more
                    self._compression, packed = None, (body, {})
                    continue
                if answer.status_code not in TRY_AGAIN:
                    return answer
                asked = retry_after(answer.headers.get("Retry-After", ""))
                wait = wait if asked is None else asked
                if last or wait > LONGEST_WAIT:
                    raise self._fault(answer, asked)
            sleep(wait)
        raise AssertionError("count() never ends")

    def _packed(self, body: bytes) -> tuple[bytes, dict[str, str]]:
        if self._compression == "gzip":
            return gzip.compress(body, 3, mtime=0), {"Content-Encoding": "gzip"}
        if self._compression == "zstd":
            import zstandard

            return zstandard.ZstdCompressor(3).compress(body), {"Content-Encoding": "zstd"}
        return body, {}

    def _client(self) -> httpx.Client:
        client = self._clients.get(os.getpid())
        if client is None:  # also after a fork: sockets of the parent are the parent's
            import httpx

            made = httpx.Client(timeout=self._timeout, verify=self._verify)
            client = self._clients.setdefault(os.getpid(), made)
            if client is not made:  # another thread was first
                made.close()
        return client

    def _fault(self, answer: httpx.Response, asked: float | None = None) -> TransportError:
        code = answer.status_code
        hint = ""
        if code in (401, 403):
            hint = ": set HEADWATER_API_KEY or the option api_key"
        elif code == 404:
            hint = f": no OpenLineage server at {urlsplit(self._single).path}? Set the option endpoint"
        elif answer.is_redirect:
            hint = f": it moved to {answer.headers.get('Location', 'elsewhere')}; use that url"
        text = f"{self._shown} answered {code} {self._reason(answer)}{hint}"
        return TransportError(
            self._scrub(text), retryable=code in TRY_AGAIN, retry_after=asked, cause=f"http_{code}"
        )

    def _unreachable(self, fault: Exception) -> TransportError:
        why = self._scrub(str(fault) or type(fault).__name__)
        text = f"no answer from {self._shown}: {why}; is `headwater serve` running there? Set HEADWATER_TRANSPORT to send elsewhere"
        return TransportError(text, retryable=True, cause="unreachable")

    def _told(self, events: Sequence[bytes], sent: _Sent) -> str:
        told = sorted(sent.refused.items())
        lines = [f"\n  {self._scrub(r.reason)}: {named(events[at])}" for at, r in told[:LISTED]]
        more = f"\n  and {len(told) - LISTED} more" if len(told) > LISTED else ""
        return f"refused {len(told)} event(s):{''.join(lines)}{more}"

    def _reason(self, answer: httpx.Response) -> str:
        return self._scrub(reason(answer))

    def _scrub(self, text: str) -> str:
        from headwater.naming import scrub

        for secret in (*self._secrets, *self._auth.secrets()):
            text = text.replace(secret, "***")
        return scrub(text)


def _named(header: object) -> str:
    if not re.fullmatch(r"[\w!#$%&'*+.^`|~-]+", str(header), re.ASCII):
        raise ConfigError(f"headers: {header!r} cannot be the name of a header")
    return str(header)
