"""deliver.datahub.transport: encoded events -> run groups put together and, when they are due, their change proposals on the way to DataHub.

`datahub+rest://gms:8080`, `datahub+kafka://broker:9092/topic`, `datahub+file:///mcps.json`, `datahub+s3://bucket/prefix`.
Behind the spool, groups are kept in its folder and the drainer tells them; what DataHub refuses goes to its dead letters, as
proposals, and is sent again by a replay.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from headwater.deliver.datahub.converting import Converter
from headwater.deliver.datahub.groups import Groups, Open, Policy
from headwater.deliver.datahub.opening import ONLY, as_environment_says, open_sink
from headwater.deliver.datahub.options import make
from headwater.deliver.datahub.proposing import Proposal
from headwater.deliver.datahub.wire import is_proposal, read_proposal
from headwater.errors import ConfigError, EventError, TransportError
from headwater.event import parse
from headwater.guard import guard
from headwater.transport._options import flag, number, refuse_closed, whole

_log = logging.getLogger("headwater.datahub")


class DataHubTransport:
    """Delivers to DataHub.

    Args:
        url: where to: its scheme says how.
        options: how events become proposals, as in docs/datahub.md; a table, or JSON.
        coalesce: `application` (a Spark application is one job), `run`, `group` or `none`.
        periodic: tell a group after each batch of events, not only when it ends.
        idle: seconds without an event after which a group is told as it is.
        heartbeat: seconds between two times that a stream is told.
        streaming_job: take every group for a stream.
        log_mcps: log every proposal (at level INFO); else only what it is of.
        keep: a directory for open groups; the spool gives its own.
        timeout: seconds that DataHub has to answer.
        token: of REST.
        tls: https instead of http; so is port 443.
        verify: yes, no, or a file of CA certificates.
        client_cert: a certificate of our own.
        client_key: its key.
        headers: further ones.
        retries: how often REST is tried again; behind the spool its drainer does that.
        retry_interval: seconds between tries, instead of growing ones.
        schema_registry: the url of a Confluent-compatible registry.
        schema_registry_config: as `basic.auth.user.info`, `bearer.auth.token`, `ssl.ca.location`.
        producer_config: properties of librdkafka.
        filename: the object's name in a bucket.
        storage_options: what the file system of fsspec takes.
        direct: for a host, which then leaves out the spool.

    """

    def __init__(
        self,
        url: str,
        *,
        options: Mapping[str, Any] | str | None = None,
        coalesce: str = "application",
        periodic: bool | str = False,
        idle: float | str = 900.0,
        heartbeat: float | str = 300.0,
        streaming_job: bool | str = False,
        log_mcps: bool | str = True,
        keep: str | None = None,
        timeout: float | str = 10.0,
        token: str | None = None,
        tls: bool | str | None = None,
        verify: bool | str | None = None,
        client_cert: str | None = None,
        client_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        retries: int | str | None = None,
        retry_interval: float | str | None = None,
        schema_registry: str | None = None,
        schema_registry_config: Mapping[str, Any] | None = None,
        producer_config: Mapping[str, Any] | None = None,
        filename: str | None = None,
        storage_options: Mapping[str, Any] | None = None,
        direct: bool | str = False,
    ) -> None:
        given = {name: value for name, value in locals().items() if name in ONLY and value is not None}
        tries = whole("retries", 3 if retries is None else retries)
        flag("direct", direct)
        self._converter = Converter(make(_options(options)), coalesce)
        fixed = self._converter.options.compat is None
        self._policy = Policy(
            periodic=flag("periodic", periodic),
            idle=number("idle", idle),
            heartbeat=number("heartbeat", heartbeat),
            streaming=flag("streaming_job", streaming_job),
            end=fixed,
        )
        self._log_all = flag("log_mcps", log_mcps)
        seconds = number("timeout", timeout, least=0.001)
        self._sink = open_sink(url, given, seconds, self._converter.options.max_string, tries)
        self._durable = keep is not None
        self._groups = Groups(self._converter, Path(keep) if keep else None)
        self._lock = threading.RLock()
        self._closed = False
        self._tidied = 0.0

    def __repr__(self) -> str:
        return f"DataHubTransport({self._sink!r})"

    def send(self, events: Sequence[bytes], *, group: str = "") -> None:
        """Put the events to their groups, and tell those that are due; proposals among them are sent as they are.

        `group` is the run group that proposals tell of, where they do: its file is written anew, not another beside it.
        """
        refuse_closed(self._closed, self)
        if not events:
            return
        with self._lock:
            told = _Told()
            now = time.time()
            straight: list[tuple[int, Proposal]] = []
            touched: dict[tuple[str, str], tuple[Open, set[int]]] = {}
            for at, payload in enumerate(events):
                self._take(at, payload, now, straight, touched, told)
            for each, _ in touched.values():
                self._groups.save(each)
            if straight:
                name = group or f"events-{blake2b(b''.join(events), digest_size=8).hexdigest()}"
                self._emit([made for _, made in straight], name, told, [at for at, _ in straight])
            due = {(each.kind, each.name): each for each in self._groups.due(self._policy, now)}
            due |= {(each.kind, each.name): each for each in self._groups.crowded()}
            for key, each in due.items():
                self._tell(each, told, touched.get(key, (each, set()))[1])
            self._tidy(now)
            told.check()

    def tick(self, *, final: bool = False) -> int:
        """Tell the groups that are due; `final`: whatever has something new. How many groups that were.

        Raises:
            TransportError: not all was taken; `letters` are to be kept, the rest is told at the next tick.

        """
        with self._lock:
            told, now = _Told(), time.time()
            due = self._groups.due(self._policy, now, final=final)
            for each in due:
                self._tell(each, told, set())
            self._tidy(now)
            told.check()
            return len(due)

    def close(self) -> None:
        """Close the connections; without the spool, tell first what is left."""
        if self._closed:
            return
        self._closed = True
        if not self._durable:
            try:
                self.tick(final=True)
            except TransportError as fault:
                _log.warning("what was left at the end did not reach DataHub: %s", fault)
        self._sink.close()

    def _take(
        self,
        at: int,
        payload: bytes,
        now: float,
        straight: list[tuple[int, Proposal]],
        touched: dict[tuple[str, str], tuple[Open, set[int]]],
        told: _Told,
    ) -> None:
        with guard("converting an event for DataHub") as trial:
            try:
                if is_proposal(payload):
                    straight.append((at, read_proposal(payload)))
                    return
                event = parse(payload)
                if self._converter.by == "none":
                    straight.extend((at, made) for made in self._converter.convert(event))
                    return
                each = self._groups.add(self._converter.read(event), now)
                touched.setdefault((each.kind, each.name), (each, set()))[1].add(at)
            except (EventError, msgspec.DecodeError) as fault:
                told.refused[at] = str(fault)
        if trial.fault is not None:
            told.refused[at] = f"it could not be converted: {type(trial.fault).__name__}"

    def _tell(self, each: Open, told: _Told, places: set[int]) -> None:
        """Tell a group; what cannot be told now is told at another time."""
        proposals: list[Proposal] = []
        with guard("telling a run group to DataHub") as trial:
            try:
                result = each.group.result()
                proposals = self._converter.propose(result) if result is not None else []
            except EventError as fault:
                told.letters.append(
                    (str(fault), msgspec.json.encode({"group": each.name, "kind": each.kind}))
                )
        if trial.fault is not None:
            why = f"it could not be told: {type(trial.fault).__name__}"
            told.letters.append((why, msgspec.json.encode({"group": each.name, "kind": each.kind})))
        known = set(each.refused)
        if not proposals or self._emit(proposals, each.name, told, sorted(places), known):
            each.dirty = False
        each.emitted = time.time()
        each.refused = sorted(known)
        self._groups.save(each)

    def _emit(
        self,
        proposals: list[Proposal],
        name: str,
        told: _Told,
        places: Sequence[int],
        known: set[bytes] | None = None,
    ) -> bool:
        """Whether each proposal was taken or refused; those refused are letters, once."""
        begun = time.perf_counter()
        self._log(proposals)
        try:
            self._sink.emit(proposals, name)
        except TransportError as fault:
            for at, reason in sorted(fault.refused.items()):
                body = msgspec.json.encode(proposals[at])
                digest = blake2b(body, digest_size=8).digest()
                if known is None or digest not in known:
                    told.letters.append((reason, body))
                    if known is not None:
                        known.add(digest)
            pending = fault.pending if fault.pending is not None else frozenset(range(len(proposals)))
            if pending:
                told.fault = fault
                if known is None:
                    told.pending |= {places[at] for at in pending}
                elif not self._durable:
                    told.pending |= set(places)
                return False
        taken = time.perf_counter() - begun
        _log.info("%d proposals of %s reached DataHub in %.0f ms", len(proposals), name, taken * 1000)
        return True

    def _log(self, proposals: list[Proposal]) -> None:
        if not _log.isEnabledFor(logging.INFO):
            return
        for each in proposals:
            if self._log_all:
                _log.info("emitting proposal: %s", msgspec.json.encode(each).decode())
            else:
                _log.info("emitting aspect: %s for urn: %s", each["aspectName"], each["entityUrn"])

    def _tidy(self, now: float) -> None:
        if now - self._tidied > 60:
            self._tidied = now
            self._groups.tidy(now)


class _Told:
    """What became of one call."""

    def __init__(self) -> None:
        self.refused: dict[int, str] = {}
        self.letters: list[tuple[str, bytes]] = []
        self.pending: set[int] = set()
        self.fault: TransportError | None = None

    def check(self) -> None:
        if self.fault is None and not self.refused and not self.letters:
            return
        parts = [str(self.fault)] if self.fault is not None else []
        reasons = [*self.refused.values(), *(reason for reason, _ in self.letters)]
        if reasons:
            parts.append(f"{len(reasons)} refused: {reasons[0]}")
        fault = self.fault
        raise TransportError(
            "; ".join(parts),
            retryable=fault is not None and fault.retryable,
            refused=self.refused,
            pending=self.pending,
            retry_after=fault.retry_after if fault is not None else None,
            cause=fault.cause if fault is not None else "refused",
            letters=self.letters,
        )


def _options(given: Mapping[str, Any] | str | None) -> dict[str, Any]:
    if isinstance(given, str):
        try:
            told = msgspec.json.decode(given)
        except msgspec.DecodeError as fault:
            raise ConfigError(f"options: no table as JSON: {fault}") from None
        if not isinstance(told, dict):
            raise ConfigError("options: no table")
        given = told
    return as_environment_says(dict(given or {}))
