"""event: bytes of an OpenLineage event <-> one frozen Event, whatever spec version or producer sent it.

This is the border: what passes it is valid and has one form, and nothing behind it checks again. The
bytes themselves travel along (`Event.raw`, without insignificant white space), so facets and fields
that nobody here knows come out as they went in.

What real producers send is accepted: times without a zone (UTC), with nanoseconds, without seconds or
with a trailing `[Zone/Id]`; null for an absent field; `eventType` in any case; run ids that are no UUID
(mapped to one, always the same).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from hashlib import blake2b, md5
from typing import Any, Literal
from uuid import UUID

import msgspec

from headwater.errors import ConfigError, EventError, TooLarge

Kind = Literal["run", "job", "dataset"]
Facets = dict[str, msgspec.Raw]

PRODUCER = "https://github.com/headwater-lineage/headwater"
SPEC = "https://openlineage.io/spec/2-0-2/OpenLineage.json"
TYPES = frozenset({"START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER"})
TERMINAL = frozenset({"COMPLETE", "ABORT", "FAIL"})
MAX_NAME = 4096
"""Bytes of a namespace or a name: what an index of every store can hold."""


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How large and how deeply nested one event may be; the settings of room `ingest`."""

    max_bytes: int = 32 * 1024 * 1024
    max_depth: int = 512

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if getattr(self, name) < 1:
                raise ConfigError(f"ingest.{name} is {getattr(self, name)}: it must be more than 0")


class Dataset(msgspec.Struct, frozen=True):
    """A dataset as an event names it."""

    namespace: str
    name: str
    facets: Facets | None = None
    inputFacets: Facets | None = None
    outputFacets: Facets | None = None


class Job(msgspec.Struct, frozen=True):
    """A job as an event names it."""

    namespace: str
    name: str
    facets: Facets | None = None


class Run(msgspec.Struct, frozen=True):
    """A run as an event names it."""

    runId: str
    facets: Facets | None = None


class _Wire(msgspec.Struct):
    eventTime: str
    eventType: str | None = None
    producer: str | None = None
    schemaURL: str | None = None
    run: Run | None = None
    job: Job | None = None
    dataset: Dataset | None = None
    inputs: list[Dataset] | None = None
    outputs: list[Dataset] | None = None


class Event(msgspec.Struct, frozen=True):
    """One run, job or dataset event.

    >>> e = parse('{"eventTime": "2026-01-01T00:00:00Z", "eventType": "start", "run": {"runId": "nightly-7"},'
    ...           ' "job": {"namespace": "etl", "name": "orders"}}')
    >>> e.kind, e.type, e.run_id
    ('run', 'START', 'b1fab28d-fb17-3f8e-a4e0-af0bd4db908f')
    """

    kind: Kind
    time: int
    """Microseconds since 1970, UTC."""
    type: str
    """START, RUNNING, COMPLETE, ABORT, FAIL or OTHER; OTHER where the producer says nothing."""
    raw: bytes
    producer: str
    run_id: str | None = None
    """The run's UUID; of a run id that is no UUID, the one made from it."""
    run_facets: Facets = {}
    job: Job | None = None
    dataset: Dataset | None = None
    inputs: Sequence[Dataset] = ()
    outputs: Sequence[Dataset] = ()

    @property
    def digest(self) -> bytes:
        """Sixteen bytes that stand for the content: the same event always has the same."""
        return blake2b(self.raw, digest_size=16).digest()


_decode = msgspec.json.Decoder(_Wire).decode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)
_FIRST, _LAST = (
    (each.replace(tzinfo=timezone.utc) - _EPOCH) // _MICROSECOND for each in (datetime.min, datetime.max)
)
"""What can be told as a time again: a zone may lead out of the years that there are."""
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}").fullmatch
# What msgspec's RFC 3339 reader refuses and producers send: no seconds (Java's ZonedDateTime drops them
# at :00), an offset without colon, a zone id in brackets, a comma before the fraction.
_LOOSE_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d)(:\d\d)?(?:[.,](\d{1,9})\d*)? ?([Zz]|[+-]\d\d:?(?:\d\d)?)?(?:\[[\w/+:-]+\])?"
).fullmatch
_ONE_BRACKET = bytes.maketrans(b"[]", b"{}")  # in JSON that was read they match, whichever they are
_SPACES = (b" ", b"\n", b"\t", b"\r")
_NOT_STRUCTURE = bytes(set(range(256)) - set(b'"[]{}'))


def parse(raw: bytes | bytearray | memoryview | str, limits: Limits = Limits()) -> Event:  # noqa: B008 - frozen
    """Read one event; refuse what is no event with its JSON path and the reason.

    Raises:
        EventError: broken JSON, a wrong type, a missing or empty field; `TooLarge` over a limit.

    """
    data = raw.encode("utf-8", "surrogatepass") if isinstance(raw, str) else bytes(raw)
    if len(data) > limits.max_bytes:
        raise TooLarge("", f"{len(data):,} bytes are more than max_bytes = {limits.max_bytes:,}")
    try:
        data.decode("utf-8")  # facets are kept unread, so the whole is checked here
        if any(
            space in data for space in _SPACES
        ):  # else there is nothing to take out, and `_decode` is as strict
            data = msgspec.json.format(data, indent=-1)
        wire = _decode(data)
    except UnicodeDecodeError as fault:
        raise EventError("", f"invalid UTF-8 at byte {fault.start}") from None
    except RecursionError:
        raise TooLarge("", f"nested deeper than max_depth = {limits.max_depth}") from None
    except msgspec.ValidationError as fault:
        raise _explain(data, str(fault)) from None
    except msgspec.DecodeError as fault:
        raise EventError("", f"broken JSON: {fault}") from None
    if _deeper(data, limits.max_depth):
        raise TooLarge("", f"nested deeper than max_depth = {limits.max_depth}")
    return _check(wire, data)


def of(value: Event | Mapping[str, Any] | bytes | str, limits: Limits = Limits()) -> Event:  # noqa: B008
    """Take an event in whatever form a caller has it: an Event, a mapping, or JSON."""
    if isinstance(value, Event):
        return value
    if isinstance(value, (bytes, bytearray, str)):
        return parse(value, limits)
    try:
        return parse(msgspec.json.encode(value), limits)
    except (TypeError, ValueError) as fault:
        if isinstance(fault, EventError):
            raise
        raise EventError("", f"not to be written as JSON: {fault}") from None


def encode(event: Event) -> bytes:
    """One event as one line of JSON."""
    return event.raw


def split(body: bytes) -> list[bytes]:
    """The events in a body: a JSON array, one object, or one object a line.

    >>> split(b'[{"a": 1}, {"b": 2}]')
    [b'{"a": 1}', b'{"b": 2}']
    """
    head = body.lstrip()[:1]
    if not head:
        return []
    try:
        if head == b"[":
            return [bytes(item) for item in _items(body)]
        msgspec.json.decode(body, type=msgspec.Raw)
        return [bytes(body)]
    except RecursionError:
        raise TooLarge("", "nested too deeply to be read") from None
    except msgspec.DecodeError as fault:
        if head != b"[" and b"\n" in body.strip():  # lines, the first of them broken
            return [line for line in body.splitlines() if line.strip()]
        raise EventError("", f"broken JSON: {fault}") from None


def make(
    kind: str,
    time: datetime,
    *,
    job: tuple[str, str] | None = None,
    run_id: str | None = None,
    dataset: Mapping[str, Any] | None = None,
    inputs: Sequence[Mapping[str, Any]] = (),
    outputs: Sequence[Mapping[str, Any]] = (),
    run_facets: Mapping[str, Any] | None = None,
    job_facets: Mapping[str, Any] | None = None,
    producer: str = PRODUCER,
) -> Event:
    """Build an event of our own. `kind` is a run event's type, or `JOB` or `DATASET`.

    >>> make("COMPLETE", datetime(2026, 1, 1, tzinfo=timezone.utc), job=("etl", "orders"),
    ...      run_id="0197f3c6-0000-7000-8000-000000000000").kind
    'run'
    """
    shape = {"JOB": "JobEvent", "DATASET": "DatasetEvent"}.get(kind, "RunEvent")
    body: dict[str, Any] = {
        "eventTime": time.astimezone(timezone.utc).isoformat().replace("+00:00", "Z"),
        "producer": producer,
        "schemaURL": f"{SPEC}#/$defs/{shape}",
    }
    if shape == "RunEvent":
        body["eventType"] = kind
        body["run"] = {"runId": run_id, "facets": run_facets or {}}
    if job is not None:
        body["job"] = {"namespace": job[0], "name": job[1], "facets": job_facets or {}}
    if shape == "DatasetEvent":
        body["dataset"] = dataset
    else:
        body |= {"inputs": inputs, "outputs": outputs}
    return of(body)


def facet(schema: str, producer: str = PRODUCER, **fields: Any) -> dict[str, Any]:
    """A facet with the two fields every facet must have; `schema` is the tail of its schema url.

    >>> sorted(facet("1-0-0/SQLJobFacet.json", query="SELECT 1"))
    ['_producer', '_schemaURL', 'query']
    """
    return {"_producer": producer, "_schemaURL": f"https://openlineage.io/spec/facets/{schema}", **fields}


def micros(text: str) -> int:
    """A time as producers write it -> microseconds since 1970, UTC where it names no zone.

    >>> micros("1970-01-01T00:00:01.5Z"), micros("1970-01-01T00:00:00.123456789"), micros("1970-01-01T01:00+01:00")
    (1500000, 123456, 0)
    """
    found = _LOOSE_TIME(text.strip())
    if found is None:
        raise ValueError(f"{text[:64]!r} is no ISO 8601 time")
    day, minute, second, fraction, zone = found.groups()
    zone = "+00:00" if zone in (None, "Z", "z") else zone if ":" in zone else f"{zone[:3]}:{zone[3:] or '00'}"
    moment = datetime.fromisoformat(f"{day}T{minute}{second or ':00'}{zone}")
    stamp = (moment - _EPOCH) // _MICROSECOND + int((fraction or "0").ljust(6, "0")[:6])
    if not _FIRST <= stamp <= _LAST:
        raise ValueError(f"{text[:64]!r} is in UTC not of the years 1 to 9999")
    return stamp


def run_uuid(text: str) -> str:
    """A run id -> a UUID in its usual form; of any other text, the version 3 UUID Marquez makes of it."""
    return text.lower() if _UUID(text) else str(UUID(bytes=md5(text.encode()).digest(), version=3))


def _check(wire: _Wire, data: bytes) -> Event:
    try:
        time = micros(wire.eventTime)
    except (ValueError, OverflowError) as fault:
        raise EventError("eventTime", str(fault)) from None
    kind: Kind = "run" if wire.run is not None else "job" if wire.job is not None else "dataset"
    kind_of_event = (wire.eventType or "OTHER").upper()
    if kind_of_event not in TYPES:
        raise EventError("eventType", f"{wire.eventType!r} is none of {', '.join(sorted(TYPES))}")
    if kind == "run":
        if not wire.run.runId.strip():  # type: ignore[union-attr]  # kind says it is there
            raise EventError("run.runId", "is empty")
        if wire.job is None:
            raise EventError("job", "missing")
    elif kind == "dataset" and wire.dataset is None:
        raise EventError("", "neither run, job nor dataset is there: this is no OpenLineage event")
    if wire.job is not None:
        _named("job", wire.job)
    if wire.dataset is not None:
        _named("dataset", wire.dataset)
    for side, datasets in (("inputs", wire.inputs), ("outputs", wire.outputs)):
        for i, each in enumerate(datasets or ()):
            _named(f"{side}[{i}]", each)
    run = wire.run
    return Event(
        kind=kind,
        time=time,
        type=kind_of_event,
        raw=data,
        producer=wire.producer or "",
        run_id=run_uuid(run.runId) if run is not None else None,
        run_facets=(run.facets or {}) if run is not None else {},
        job=wire.job,
        dataset=wire.dataset if kind == "dataset" else None,
        inputs=wire.inputs or (),
        outputs=wire.outputs or (),
    )


def _named(path: str, thing: Job | Dataset) -> None:
    namespace, name = thing.namespace, thing.name
    if (
        len(namespace) + len(name) < MAX_NAME // 4
        and "\0" not in namespace + name
        and namespace.strip()
        and name.strip()
    ):
        return  # nearly always, so first and fast
    for field in ("namespace", "name"):
        text = getattr(thing, field)
        if not text.strip():
            raise EventError(f"{path}.{field}", "is empty")
        if "\0" in text:  # no database keeps one in a text
            raise EventError(f"{path}.{field}", "holds a NUL character")
        if len(text) * 4 > MAX_NAME and len(text.encode()) > MAX_NAME:
            raise EventError(f"{path}.{field}", f"is longer than {MAX_NAME:,} bytes")


def _deeper(data: bytes, limit: int) -> bool:
    """Whether `data` is nested deeper than `limit`: each round takes away the innermost brackets."""
    if len(data) <= limit:
        return False
    text = data.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in data else data
    text = text.translate(_ONE_BRACKET, _NOT_STRUCTURE)
    if text.count(b"{") <= limit:
        return False
    text = text.replace(b'""' * 4, b"").replace(b'""', b"")  # many at a time first: name and type of a column
    if b'"' in text:  # strings with brackets in them
        text = re.sub(rb'"[^"]*"', b"", text)
    for _ in range(limit):
        if not text:
            return False
        text = text.replace(b"{}", b"")
    return bool(text)


def _explain(data: bytes, message: str) -> EventError:
    """Msgspec's words -> path and reason; it leaves out which item of a list, so look again."""
    reason, _, where = message.partition(" - at `")
    path = where.rstrip("`").removeprefix("$").removeprefix(".")
    lost = re.fullmatch(r"(inputs|outputs)\[\.\.\.\](.*)", path)
    if lost:
        side = lost.group(1)
        for i, item in enumerate(msgspec.json.decode(data)[side]):
            try:
                msgspec.convert(item, Dataset)
            except msgspec.ValidationError:
                path = f"{side}[{i}]{lost.group(2)}"
                break
    missing = re.fullmatch(r"Object missing required field `(\w+)`", reason)
    if missing:
        return EventError(f"{path}.{missing.group(1)}".lstrip("."), "missing")
    return EventError(path, reason[0].lower() + reason[1:])
