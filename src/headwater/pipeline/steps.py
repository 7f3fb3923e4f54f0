"""pipeline.steps: lines -> decoded -> without repeats -> rows -> folded parts; each step alone, or several in one pass.

A step takes a DataFrame and gives one. Steps that follow each other and speak of the same things are fused: their
Python runs in one pass over the data, so an event is parsed once and never travels between them.
"""

from __future__ import annotations

import gc
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pyarrow as pa

from headwater.errors import EventError
from headwater.event import Event, Limits, parse
from headwater.facts import Command, Row, Tables, derive_command, remains
from headwater.facts import derive as derive_event
from headwater.facts import fold as fold_rows
from headwater.facts.commands import digest_command, parse_command
from headwater.facts.contents import digest_of
from headwater.guard import guard
from headwater.pipeline._columns import pack, to_arrow
from headwater.pipeline._workers import over_arrow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST_ROWS = 100_000
"""Rows that a worker folds before it hands them on: what bounds its memory."""
MOST_BYTES = 24 << 20
MOST_REMEMBERED = 1_000_000
"""Digests by which one task knows a repeat; further ones are found when the tables are folded."""


class Line(NamedTuple):
    """One event as a source gives it; or the rest of what could not be read, and why."""

    source: str
    position: int
    value: bytes
    kind: str = ""
    """`command` or `base` where a raw log says so; nothing for an event."""
    fault: str = ""


class Decoded(NamedTuple):
    """One event that was understood, or refused with path and reason."""

    source: str
    position: int
    raw: bytes
    kind: str
    digest: bytes
    time: int
    path: str = ""
    reason: str = ""
    again: bool = False
    known: Event | Command | None = None
    """In one pass only: what `raw` says."""


class Derived(NamedTuple):
    """The rows of one event."""

    rows: Sequence[Row]
    lines: int = 1
    bad: int = 0
    again: int = 0


class Part(NamedTuple):
    """Folded rows of one table, as an Arrow stream; parts of one chunk follow each other."""

    table: str
    chunk: str
    rows: int
    body: bytes


TALLY = "_tally"
"""The part that says how many lines a chunk had, how many were bad, how many repeats."""


@dataclass(frozen=True, slots=True)
class Codec:
    """How the things between two steps are written as columns."""

    schema: str
    decode: Callable[[Iterable[pa.RecordBatch]], Iterator[Any]]
    encode: Callable[[Iterable[Any]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class Step:
    """A DataFrame -> a DataFrame, by a function over the things in it, partition by partition."""

    name: str
    takes: Codec
    gives: Codec
    run: Callable[[Iterator[Any]], Iterator[Any]]

    def __call__(self, frame: DataFrame) -> DataFrame:
        """The step over a DataFrame."""
        return over_arrow(frame, self.over, self.gives.schema)

    def over(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The step over Arrow batches: what a worker runs."""
        return self.gives.encode(self.run(self.takes.decode(batches)))

    def then(self, other: Step) -> Step:
        """Both steps in one pass."""
        first, second = self.run, other.run
        return Step(
            f"{self.name}+{other.name}", self.takes, other.gives, lambda things: second(first(things))
        )


AnyStep = Callable[["DataFrame"], "DataFrame"]


def fuse(steps: Iterable[AnyStep]) -> list[AnyStep]:
    """The same steps, those that can run in one pass made one."""
    fused: list[AnyStep] = []
    for step in steps:
        last = fused[-1] if fused else None
        if isinstance(step, Step) and isinstance(last, Step) and last.gives is step.takes:
            fused[-1] = last.then(step)
        else:
            fused.append(step)
    return fused


def apply(frame: DataFrame, steps: Iterable[AnyStep]) -> DataFrame:
    """One step after another, fused where they can be."""
    return reduce(lambda given, step: step(given), fuse(steps), frame)


# --- the steps


def decode(limits: Limits = Limits()) -> Step:  # noqa: B008 - frozen
    """Lines -> events, checked; what is refused goes on with its reason."""

    def run(lines: Iterator[Line]) -> Iterator[Decoded]:
        for line in lines:
            source, position, value, kind, fault = line
            known: Event | Command
            try:
                if fault:
                    raise EventError("", fault)
                if kind == remains.KIND:
                    yield Decoded(source, position, value, kind, digest_of(value), 0)
                    continue
                if kind == "command":
                    known = parse_command(value)
                    yield Decoded(source, position, value, kind, digest_command(value), known.at, known=known)
                    continue
                known = parse(value, limits)
            except EventError as refused:
                yield Decoded(
                    source, position, value, kind, digest_of(value), 0, refused.path, refused.reason
                )
            else:
                yield Decoded(source, position, known.raw, known.kind, known.digest, known.time, known=known)

    return Step("decode", LINES, DECODED, run)


def dedupe() -> Step:
    """Events -> the same, those that this task has met before marked as repeats."""

    def run(things: Iterator[Decoded]) -> Iterator[Decoded]:
        met: set[bytes] = set()
        for each in things:
            if not each.reason:
                if each.digest in met:
                    each = each._replace(again=True)
                else:
                    if len(met) >= MOST_REMEMBERED:
                        met.clear()  # the merge rules cannot tell a repeat: only the count is found later
                    met.add(each.digest)
            yield each

    return Step("dedupe", DECODED, DECODED, run)


def derive(*, log: bool = False, limits: Limits = Limits()) -> Step:  # noqa: B008 - frozen
    """Events -> their rows, by the derivation of the house, under the names that the events gave.

    Args:
        log: keep the event itself too, for a sink with a raw log.
        limits: of events that were checked in another pass.

    """

    def run(things: Iterator[Decoded]) -> Iterator[Derived]:
        for each in things:
            if each.again:
                yield Derived((), again=1)
                continue
            rows = None if each.reason else _rows(each, limits)
            if rows is None:
                yield Derived((_refusal(each),), bad=1)
                continue
            rows.append(("events", (each.digest,), {"kind": each.kind, "time": each.time}))
            if log:
                entry = {"kind": each.kind, "time": each.time, "raw": each.raw}
                rows.append(("log", (each.digest,), entry))
            yield Derived(rows)

    return Step("derive", DECODED, ROWS, run)


_FAULT_OF_OURS = "valid, but a fault of ours kept it from being understood"
_derive = guard("understanding an event")(derive_event)


def _rows(each: Decoded, limits: Limits) -> list[Row] | None:
    if each.kind == remains.KIND:
        return remains.derive_base(each.raw)
    if each.kind == "command":
        said = each.known if each.known is not None else parse_command(each.raw)
        return derive_command(said)  # type: ignore[arg-type]  # the kind says that it is one
    known = each.known if each.known is not None else parse(each.raw, limits)
    return _derive(known)  # type: ignore[arg-type]


def _refusal(each: Decoded) -> Row:
    row = {"path": each.path, "reason": each.reason or _FAULT_OF_OURS, "payload": each.raw}
    return "quarantine", (each.source, each.position, each.digest), row


def fold(*, rows: int = MOST_ROWS, size: int = MOST_BYTES) -> Step:
    """Rows -> parts: folded by the merge rules, as many as fit, then handed on."""

    def run(things: Iterator[Derived]) -> Iterator[Part]:
        with _uncollected():
            yield from within(things)

    def within(things: Iterator[Derived]) -> Iterator[Part]:
        tables, own, tally = _empty()
        weight = 0
        for count, each in enumerate(things, 1):
            tally[0] += each.lines
            tally[1] += each.bad
            tally[2] += each.again
            mine = len(each.rows)
            while mine and each.rows[mine - 1][0] in own:  # the pipeline's own come last
                mine -= 1
                name, key, row = each.rows[mine]
                own[name][key] = dict(row)
                weight += len(row.get("raw", b"")) + len(row.get("payload", b""))
            if mine:
                fold_rows(each.rows[:mine] if mine < len(each.rows) else each.rows, tables)
            if not count % 256 and (weight > size or sum(map(len, tables.values())) > rows):
                yield from _parts(tables, own, tally)
                tables, own, tally = _empty()
                weight = 0
                gc.collect()
        yield from _parts(tables, own, tally)

    return Step("fold", ROWS, PARTS, run)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Rows hold no circles, and looking for some among a hundred thousand costs a fifth of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _empty() -> tuple[Tables, Tables, list[int]]:
    return fold_rows(()), {"events": {}, "quarantine": {}, "log": {}}, [0, 0, 0]


def _parts(tables: Tables, own: Tables, tally: list[int]) -> Iterator[Part]:
    if not tally[0]:
        return
    chunk = uuid.uuid4().hex
    yield Part(TALLY, chunk, tally[0], msgspec.json.encode(tally))
    for name, rows in {**tables, **own}.items():
        if rows:
            yield Part(name, chunk, len(rows), pack(to_arrow(name, rows)))


# --- how they are written as columns


def tuples(kind: Callable[..., Any], schema: pa.Schema, spark: str, *, size: int = 512) -> Codec:
    """A codec of named tuples whose first fields are columns."""
    width = len(schema)

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[Any]:
        for batch in batches:
            for row in zip(*(batch.column(i).to_pylist() for i in range(width)), strict=True):
                yield kind(*row)

    def write(things: Iterable[Any]) -> Iterator[pa.RecordBatch]:
        held: list[Any] = []
        weight = 0
        for each in things:
            held.append(each)
            weight += sum(len(value) for value in each if isinstance(value, bytes))
            if len(held) >= size or weight > MOST_BYTES:
                yield _batch(held, schema, width)
                held, weight = [], 0
        if held:
            yield _batch(held, schema, width)

    return Codec(spark, read, write)


def _batch(held: Sequence[Any], schema: pa.Schema, width: int) -> pa.RecordBatch:
    lists = list(zip(*held, strict=True))[:width]
    return pa.RecordBatch.from_arrays(
        [pa.array(each, field.type) for each, field in zip(lists, schema, strict=True)], schema=schema
    )


_S, _I, _B = pa.string(), pa.int64(), pa.binary()

LINES = tuples(
    Line,
    pa.schema([("source", _S), ("position", _I), ("value", _B), ("kind", _S), ("fault", _S)]),
    "source string, position bigint, value binary, kind string, fault string",
)
DECODED = tuples(
    Decoded,
    pa.schema(
        [
            ("source", _S),
            ("position", _I),
            ("raw", _B),
            ("kind", _S),
            ("digest", _B),
            ("time", _I),
            ("path", _S),
            ("reason", _S),
            ("again", pa.bool_()),
        ]
    ),
    "source string, position bigint, raw binary, kind string, digest binary, time bigint, path string,"
    " reason string, again boolean",
)
PARTS = tuples(
    Part,
    pa.schema([("table", _S), ("chunk", _S), ("rows", _I), ("body", _B)]),
    "`table` string, chunk string, `rows` bigint, body binary",
)


_ROWS_SCHEMA = pa.schema([("rows", _B), ("lines", _I), ("bad", _I), ("again", _I)])


def _read_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[Derived]:
    for packed, *counts in _PACKED.decode(batches):
        rows = [
            (name, tuple(key), {c: tuple(v) if isinstance(v, list) else v for c, v in row.items()})
            for name, key, row in msgspec.msgpack.decode(packed)
        ]
        yield Derived(rows, *counts)


def _write_rows(things: Iterable[Derived]) -> Iterator[pa.RecordBatch]:
    return _PACKED.encode((msgspec.msgpack.encode(each.rows), *each[1:]) for each in things)


_PACKED = tuples(lambda *row: row, _ROWS_SCHEMA, "")
ROWS = Codec("`rows` binary, lines bigint, bad bigint, again bigint", _read_rows, _write_rows)

STEPS: tuple[AnyStep, ...] = (decode(), dedupe(), derive(), fold())
"""What `run` does with the lines of a source, unless it is told otherwise."""
