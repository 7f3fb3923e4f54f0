"""transport.http: encoded events -> POST to an OpenLineage server, one or many at a time, until it has them or says why not."""

from __future__ import annotations

import gzip
import os
import random
import ssl
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from itertools import count
from time import monotonic, sleep, time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from headwater.errors import ConfigError, TransportError
from headwater.transport._options import flag, number, refuse_closed, whole

if TYPE_CHECKING:
    import httpx  # 60 ms that a host pays only when something is sent

ENDPOINT = "api/v1/lineage"
BATCH = 1000  # events in one request; Correlator takes no more
LONGEST_WAIT = 10.0  # seconds: a server that asks for more is left alone until the next send
PATIENCE = 15.0  # seconds after which no further attempt is begun: the host waits meanwhile
LISTED = 5  # refusals told in an error
TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
TRY_SMALLER = frozenset({400, 413, 422})  # said of a batch: it is too large, or one event in it is bad


@dataclass(frozen=True, slots=True)
class Refusal:
    """One event the server did not take: the event, why, and whether it may take it later."""

    event: bytes
    reason: str
    retryable: bool


class HttpTransport:
    """Posts one event to `{url}/{endpoint}`, several as an array to `{url}/{endpoint}/batch`.

    A server without the batch path gets them one by one. Busy or failing servers are asked again `retries`
    times, with growing waits or as their Retry-After says. A batch refused as a whole (too large, or one bad
    event in it) is halved until what can be taken is taken. `params` go into the query of each request. `verify` is yes, no, or a
    file of CA certificates.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        endpoint: str = ENDPOINT,
        timeout: float | str = 5.0,
        retries: int | str = 3,
        compression: str | None = None,
        verify: bool | str = True,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
        max_batch_bytes: int | str = 8 * 1024 * 1024,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError("url: names no host: write http://host:port")
        if compression not in (None, "", "none", "gzip"):
            raise ConfigError(f"compression: {compression!r} is not offered: gzip or none")
        if headers is not None and not isinstance(headers, Mapping):
            raise ConfigError('headers: must be a table, as in {"X-Team": "shop"}')
        if params is not None and not isinstance(params, Mapping):
            raise ConfigError('params: must be a table, as in {"team": "shop"}')
        self._params = {name: str(value) for name, value in (params or {}).items()}
        self._url = urlunsplit(parts._replace(query="", fragment="")).rstrip("/")
        self._single = f"{self._url}/{endpoint.strip('/')}"
        self._shown = urlunsplit(
            parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="")
        )
        self._timeout = number("timeout", timeout, least=0.001)
        self._retries = whole("retries", retries)
        self._gzip = compression == "gzip"
        self._verify = _verify(verify)
        self._headers = {
            "Content-Type": "application/json",
            **{k: str(v) for k, v in (headers or {}).items()},
        }
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._secrets = [
            s
            for s in (api_key, parts.password, *map(str, (headers or {}).values()), *self._params.values())
            if s
        ]
        self._max_bytes = whole("max_batch_bytes", max_batch_bytes, least=1)
        self._batches = True
        self._clients: dict[int, httpx.Client] = {}
        self._closed = False

    def __repr__(self) -> str:
        return f"HttpTransport({self._shown!r})"

    def send(self, events: Sequence[bytes]) -> None:
        """Post the events in their order; what the server refuses is told after the others were sent."""
        refuse_closed(self._closed, self)
        refused: list[Refusal] = []
        try:
            for part in self._parts(events):
                self._deliver(part, refused)
        except TransportError as fault:
            if not refused:
                raise
            raise TransportError(
                f"{fault}; before that {self._told(refused)}", retryable=fault.retryable
            ) from fault
        if refused:
            # sending all again is harmless to those taken already, and the only way for those that may pass yet
            place = {id(event): position for position, event in enumerate(events)}
            raise TransportError(
                f"{self._shown} {self._told(refused)}",
                retryable=any(r.retryable for r in refused),
                refused={place[id(r.event)]: self._scrub(r.reason) for r in refused},
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

    def _deliver(self, events: Sequence[bytes], refused: list[Refusal]) -> None:
        if len(events) == 1 or not self._batches:
            for event in events:
                self._deliver_one(event, refused)
            return None
        for attempt in range(self._retries + 1):
            answer = self._post(f"{self._single}/batch", b"[" + b",".join(events) + b"]")
            failed = _failed(answer, events)
            if answer.status_code in (404, 405) and failed is None:  # an older server; ask it no more
                self._batches = False
                return self._deliver(events, refused)
            if answer.status_code in TRY_SMALLER and failed is None:
                middle = len(events) // 2
                self._deliver(events[:middle], refused)
                return self._deliver(events[middle:], refused)
            if failed is None and not answer.is_success:
                raise self._fault(answer)
            again = [r for r in failed or () if r.retryable]
            refused.extend(r for r in failed or () if not r.retryable)
            if not again or attempt == self._retries:
                refused.extend(again)
                return None
            sleep(_backoff(attempt))
            events = [r.event for r in again]
        return None

    def _deliver_one(self, event: bytes, refused: list[Refusal]) -> None:
        answer = self._post(self._single, event)
        if answer.status_code in TRY_SMALLER:
            refused.append(Refusal(event, f"{answer.status_code} {self._reason(answer)}", retryable=False))
        elif not answer.is_success:
            raise self._fault(answer)

    def _post(self, url: str, body: bytes) -> httpx.Response:
        """The server's answer, asked again while it is busy, failing or out of reach."""
        import httpx

        headers = self._headers
        if self._gzip:
            body, headers = gzip.compress(body, 3, mtime=0), {**headers, "Content-Encoding": "gzip"}
        begun = monotonic()
        for attempt in count():
            last = attempt >= self._retries or monotonic() - begun > PATIENCE
            wait = _backoff(attempt)
            try:
                answer = self._client().post(url, content=body, headers=headers, params=self._params or None)
            except (httpx.TransportError, httpx.InvalidURL) as fault:
                if last or isinstance(fault, httpx.InvalidURL):
                    raise self._unreachable(fault) from None  # its request would carry the key along
            else:
                if answer.status_code not in TRY_AGAIN:
                    return answer
                wait = _retry_after(answer.headers.get("Retry-After", ""), wait)
                if last or wait > LONGEST_WAIT:
                    raise self._fault(answer)
            sleep(wait)
        raise AssertionError("count() never ends")

    def _client(self) -> httpx.Client:
        client = self._clients.get(os.getpid())
        if client is None:  # also after a fork: sockets of the parent are the parent's
            import httpx

            made = httpx.Client(timeout=self._timeout, verify=self._verify)
            client = self._clients.setdefault(os.getpid(), made)
            if client is not made:  # another thread was first
                made.close()
        return client

    def _fault(self, answer: httpx.Response) -> TransportError:
        code = answer.status_code
        hint = ""
        if code in (401, 403):
            hint = ": set HEADWATER_API_KEY or the option api_key"
        elif code == 404:
            hint = f": no OpenLineage server at {urlsplit(self._single).path}? Set the option endpoint"
        elif answer.is_redirect:
            hint = f": it moved to {answer.headers.get('Location', 'elsewhere')}; use that url"
        text = f"{self._shown} answered {code} {self._reason(answer)}{hint}"
        return TransportError(self._scrub(text), retryable=code in TRY_AGAIN)

    def _unreachable(self, fault: Exception) -> TransportError:
        why = self._scrub(str(fault) or type(fault).__name__)
        text = f"no answer from {self._shown}: {why}; is `headwater serve` running there? Set HEADWATER_TRANSPORT to send elsewhere"
        return TransportError(text, retryable=True)

    def _told(self, refused: Sequence[Refusal]) -> str:
        lines = [f"\n  {self._scrub(r.reason)}: {_named(r.event)}" for r in refused[:LISTED]]
        more = f"\n  and {len(refused) - LISTED} more" if len(refused) > LISTED else ""
        return f"refused {len(refused)} event(s):{''.join(lines)}{more}"

    def _reason(self, answer: httpx.Response) -> str:
        told = _object(answer)
        reason = next(
            (told[k] for k in ("detail", "message", "error", "title") if isinstance(told.get(k), str)), ""
        )
        return self._scrub(" ".join((reason or answer.text or answer.reason_phrase).split())[:300])

    def _scrub(self, text: str) -> str:
        from headwater.naming import scrub

        for secret in self._secrets:
            text = text.replace(secret, "***")
        return scrub(text)


def _failed(answer: httpx.Response, events: Sequence[bytes]) -> list[Refusal] | None:
    """What the server says of single events; None where it says nothing of them."""
    rows = _object(answer).get("failed_events")
    if not isinstance(rows, list) or answer.status_code in TRY_AGAIN:
        return None
    out: list[Refusal] = []
    for row in rows:
        index = row.get("index") if isinstance(row, dict) else None
        if not isinstance(index, int) or not 0 <= index < len(events):
            return (
                None
                if not answer.is_success
                else [*out, *(Refusal(e, "the server did not say which", True) for e in events)]
            )
        out.append(
            Refusal(events[index], str(row.get("reason", "no reason given")), row.get("retriable") is True)
        )
    return out


def _object(answer: httpx.Response) -> dict[str, Any]:
    try:
        told = msgspec.json.decode(answer.content)
    except msgspec.DecodeError:
        return {}
    return told if isinstance(told, dict) else {}


def _named(event: bytes) -> str:
    """An event in a few words."""
    try:
        seen = msgspec.json.decode(event, type=_Seen)
    except msgspec.DecodeError:
        return f"{len(event)} bytes"
    job = "/".join(str(seen.job.get(k)) for k in ("namespace", "name"))
    return f"{seen.eventType} of {job} at {seen.eventTime}"


class _Seen(msgspec.Struct):
    eventType: str | None = None  # noqa: N815 - the wire's own names
    eventTime: str | None = None  # noqa: N815
    job: dict[str, Any] = {}


def _backoff(attempt: int) -> float:
    jitter = random.uniform(0.5, 1.5)  # many hosts must not return as one
    return jitter * min(5.0, 0.2 * 2.0**attempt)


def _retry_after(asked: str, usual: float) -> float:
    """Seconds, from a number or a date; the usual where it says neither."""
    if asked.strip().isdigit():
        return float(asked)
    try:
        return max(0.0, parsedate_to_datetime(asked).timestamp() - time())
    except ValueError:
        return usual


def _verify(value: bool | str) -> bool | ssl.SSLContext:
    if isinstance(value, str) and os.path.exists(value):
        try:
            folder = os.path.isdir(value)
            return ssl.create_default_context(
                cafile=None if folder else value, capath=value if folder else None
            )
        except ssl.SSLError as fault:
            raise ConfigError(f"verify: {value!r} holds no certificate: {fault}") from None
    try:
        return flag("verify", value)
    except ConfigError:
        raise ConfigError(f"verify: {value!r} is neither yes, no nor a file of certificates") from None
