"""deliver.datahub.sinks.rest: change proposals -> GMS, in batches, until it has each or says why not.

GMS answers a batch as a whole, or says of single proposals what was wrong. One that is refused as a whole is halved, so
that one bad proposal costs the others nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.deliver.datahub.proposing import Proposal
from headwater.deliver.datahub.sinks import fault_of
from headwater.deliver.datahub.wire import for_gms
from headwater.errors import TooLarge, TransportError
from headwater.naming import scrub
from headwater.transport._answers import TRY_AGAIN, backoff, retry_after

if TYPE_CHECKING:
    import httpx

BATCH, BATCH_BYTES = 200, 15 * 1024 * 1024  # what GMS takes at once
LONGEST_WAIT = 30.0
PATIENCE = 60.0  # seconds after which no further attempt is begun
_TRY_SMALLER = frozenset({400, 413, 422})
_NO_BATCHES = frozenset({404, 405, 501})


class RestSink:
    """Posts to `{server}/aspects?action=ingestProposalBatch`."""

    def __init__(
        self,
        server: str,
        *,
        token: str | None = None,
        timeout: float = 10.0,
        retries: int = 3,
        retry_interval: float | None = None,
        verify: Any = True,
        headers: Mapping[str, str] | None = None,
        batch: int = BATCH,
        batch_bytes: int = BATCH_BYTES,
        max_string: int = 16_000_000,
    ) -> None:
        self._server, self._shown = server.rstrip("/"), scrub(server.rstrip("/"))
        self._headers = {
            "Content-Type": "application/json",
            "X-RestLi-Protocol-Version": "2.0.0",
            **(headers or {}),
            **({"Authorization": f"Bearer {token}"} if token else {}),
        }
        self._secrets = [each for each in (token, *(headers or {}).values()) if each]
        self._timeout, self._retries, self._interval = timeout, retries, retry_interval
        self._verify, self._batch, self._bytes, self._most = verify, batch, batch_bytes, max_string
        self._batches = True
        self._clients: dict[int, httpx.Client] = {}

    def __repr__(self) -> str:
        return f"RestSink({self._shown!r})"

    def emit(self, proposals: Sequence[Proposal], name: str) -> None:
        """Post the proposals; each is taken, refused, or may be sent again."""
        sent = _Sent({}, set(range(len(proposals))), [])
        for at, made in enumerate(proposals):
            try:
                sent.bodies.append(for_gms(made, self._most))
            except TooLarge as large:
                sent.bodies.append(b"")
                sent.settle(at, str(large))
        fault: TransportError | None = None
        for part in self._parts(sent):
            try:
                self._deliver(part, sent)
            except TransportError as why:
                fault = why
                if why.cause in ("unreachable", "http_401", "http_403", "http_429"):
                    break  # the next would fare no better
        if sent.refused or sent.pending:
            told = str(fault) if fault is not None else ""
            raise fault_of(
                self._shown,
                sent.refused,
                sent.pending,
                told,
                cause=fault.cause if fault is not None else "refused",
                retryable=fault.retryable if fault is not None else False,
                retry_after=fault.retry_after if fault is not None else None,
            )

    def close(self) -> None:
        """Close the connections of this process."""
        if client := self._clients.pop(os.getpid(), None):
            client.close()

    def _parts(self, sent: _Sent) -> Iterator[list[int]]:
        part: list[int] = []
        size = 0
        for at in sorted(sent.pending):
            length = len(sent.bodies[at]) + 1
            if part and (len(part) == self._batch or size + length > self._bytes):
                yield part
                part, size = [], 0
            part.append(at)
            size += length
        if part:
            yield part

    def _deliver(self, places: list[int], sent: _Sent) -> None:
        if not self._batches:
            for at in places:
                self._one(at, sent)
            return None
        body = b'{"proposals":[' + b",".join(sent.bodies[at] for at in places) + b'],"async":"false"}'
        answer = self._post("ingestProposalBatch", body)
        if answer.status_code in _NO_BATCHES:  # an older GMS; ask it no more
            self._batches = False
            return self._deliver(places, sent)
        if answer.status_code in _TRY_SMALLER:
            if len(places) == 1:
                sent.settle(places[0], f"{answer.status_code} {self._reason(answer)}")
                return None
            middle = len(places) // 2
            self._deliver(places[:middle], sent)
            return self._deliver(places[middle:], sent)
        if not answer.is_success:
            raise self._fault(answer)
        wrong = failures(answer.content, [msgspec.json.decode(sent.bodies[at], type=_Key) for at in places])
        for i, at in enumerate(places):
            sent.settle(at, self._scrub(wrong[i]) if i in wrong else None)
        return None

    def _one(self, at: int, sent: _Sent) -> None:
        answer = self._post("ingestProposal", b'{"proposal":' + sent.bodies[at] + b"}")
        if answer.status_code in _TRY_SMALLER:
            sent.settle(at, f"{answer.status_code} {self._reason(answer)}")
        elif not answer.is_success:
            raise self._fault(answer)
        else:
            sent.settle(at, None)

    def _post(self, action: str, body: bytes) -> httpx.Response:
        """GMS's answer, asked again while it is busy, failing, out of reach, or hung up in the middle."""
        import httpx

        begun, attempt = monotonic(), 0
        while True:
            last = attempt >= self._retries or monotonic() - begun > PATIENCE
            wait = backoff(attempt) if self._interval is None else self._interval
            try:
                url = f"{self._server}/aspects?action={action}"
                answer = self._client().post(url, content=body, headers=self._headers)
                answer.request = httpx.Request(
                    "POST", url
                )  # with its body, megabytes would wait for the collector
            except (httpx.TransportError, httpx.InvalidURL) as fault:
                if last or isinstance(fault, httpx.InvalidURL):
                    why = self._scrub(str(fault) or type(fault).__name__)
                    raise TransportError(
                        f"no answer from {self._shown}: {why}", retryable=True, cause="unreachable"
                    ) from None
            else:
                if answer.status_code not in TRY_AGAIN:
                    return answer
                asked = retry_after(answer.headers.get("Retry-After", ""))
                wait = wait if asked is None else asked
                if last or wait > LONGEST_WAIT:
                    raise self._fault(answer, asked)
            sleep(wait)
            attempt += 1

    def _client(self) -> httpx.Client:
        client = self._clients.get(os.getpid())
        if client is None:  # also after a fork: sockets of the parent are the parent's
            import httpx

            made = httpx.Client(timeout=self._timeout, verify=self._verify)
            client = self._clients.setdefault(os.getpid(), made)
        return client

    def _fault(self, answer: httpx.Response, asked: float | None = None) -> TransportError:
        code = answer.status_code
        hint = ": set the option token" if code in (401, 403) else ""
        return TransportError(
            f"{self._shown} answered {code} {self._reason(answer)}{hint}",
            retryable=code in TRY_AGAIN,
            retry_after=asked,
            cause=f"http_{code}",
        )

    def _reason(self, answer: httpx.Response) -> str:
        try:
            told = msgspec.json.decode(answer.content)
        except msgspec.DecodeError:
            told = None
        words = told.get("message") or told.get("error") if isinstance(told, dict) else None
        return self._scrub(" ".join(str(words or answer.text or answer.reason_phrase).split())[:500])

    def _scrub(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return scrub(text)


class _Sent:
    """What became of the proposals of one call, by position."""

    def __init__(self, refused: dict[int, str], pending: set[int], bodies: list[bytes]) -> None:
        self.refused, self.pending, self.bodies = refused, pending, bodies

    def settle(self, at: int, reason: str | None) -> None:
        self.pending.discard(at)
        if reason is not None:
            self.refused[at] = reason


class _Key(msgspec.Struct):
    entityUrn: str = ""  # noqa: N815 - the wire's own names
    aspectName: str = ""  # noqa: N815


def failures(body: bytes, sent: Sequence[_Key]) -> dict[int, str]:
    """What a good answer says of single proposals: a list of results as long as the batch, or a list of errors that name theirs.

    >>> failures(b'{"elements": [{"status": 200}, {"status": 422, "error": {"message": "no"}}]}', [_Key(), _Key()])
    {1: 'no'}
    """
    try:
        told = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return {}
    if isinstance(told, dict) and isinstance(told.get("value"), (dict, list)):
        told = told["value"]
    tables: list[Any] = [told] if isinstance(told, list) else []
    if isinstance(told, dict):
        tables = [
            told.get(name) for name in ("elements", "results", "responses", "errors", "failures", "failed")
        ]
    out: dict[int, str] = {}
    for rows in tables:
        if not isinstance(rows, list):
            continue
        for at, row in enumerate(rows):
            reason = _wrong(row)
            place = _place(row, at if len(rows) == len(sent) else None, sent)
            if reason is not None and place is not None:
                out[place] = reason
    return out


def _wrong(row: Any) -> str | None:
    if not isinstance(row, dict):
        return row if isinstance(row, str) else None
    error = row.get("error") or row.get("errors") or row.get("exception")
    status = row.get("status", row.get("statusCode"))
    if isinstance(status, str) and status.isdigit():
        status = int(status)
    bad = isinstance(status, int) and status >= 400
    bad = bad or (isinstance(status, str) and status.lower() in ("error", "failed", "failure"))
    bad = bad or row.get("success") is False
    if not error and not bad:
        only = row.get("message") if "index" in row or "entityUrn" in row or "urn" in row else None
        return str(only) if only else None
    if isinstance(error, dict):
        error = error.get("message") or error
    return str(error or row.get("message") or f"status {status}")[:500]


def _place(row: Any, at: int | None, sent: Sequence[_Key]) -> int | None:
    if isinstance(row, dict):
        index = row.get("index")
        if isinstance(index, int) and 0 <= index < len(sent):
            return index
        urn, aspect = row.get("entityUrn") or row.get("urn"), row.get("aspectName") or row.get("aspect")
        for place, key in enumerate(sent):
            if urn == key.entityUrn and aspect in (None, key.aspectName):
                return place
    return at
