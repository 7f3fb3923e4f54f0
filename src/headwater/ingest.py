"""ingest: events and commands -> validated, derived, merged and stored in one transaction a batch.

What is refused is kept with its reason; what was already there changes nothing; what is accepted is in the
store, whole, when `ingest` returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from headwater.errors import ConfigError, EventError, StoreError
from headwater.event import Event, Limits, parse
from headwater.facts import Command, Row, Tables, derive, derive_command, fold, remains
from headwater.facts.commands import digest_command, encode_command, parse_command
from headwater.facts.contents import digest_of
from headwater.guard import guard
from headwater.redact import Redaction
from headwater.store import Batch, Entry, Offset, Pruned, Reject, Store


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a batch."""

    received: int
    stored: int
    duplicates: int
    rejected: tuple[tuple[int, EventError], ...] = ()
    """(position in the batch, why)"""

    def __add__(self, other: Outcome) -> Outcome:
        return Outcome(
            self.received + other.received,
            self.stored + other.stored,
            self.duplicates + other.duplicates,
            (*self.rejected, *((position + self.received, fault) for position, fault in other.rejected)),
        )


def ingest(
    store: Store,
    payloads: Sequence[bytes],
    limits: Limits = Limits(),  # noqa: B008 - frozen
    redaction: Redaction = Redaction(),  # noqa: B008 - frozen
    *,
    offsets: Sequence[Offset] = (),
) -> Outcome:
    """Take a batch of encoded events into the store, in one transaction; what `redaction` hides is nowhere in it.

    `offsets` tell how far their topic is read by then.

    >>> from headwater.store import open_store
    >>> ingest(open_store("memory:"), [b'{"eventTime": "2026-01-01T00:00:00Z"}']).rejected
    ((0, EventError('neither run, job nor dataset is there: this is no OpenLineage event')),)
    """
    events: dict[bytes, tuple[int, Event]] = {}
    refused: list[tuple[int, EventError]] = []
    for position, payload in enumerate(payloads):
        try:
            event = read_event(payload, limits, redaction)
        except EventError as fault:
            refused.append((position, fault))
        else:
            events[event.digest] = (position, event)
    fresh = store.unknown(list(events)) if len(events) > _FEW else set(events)
    entries: list[Entry] = []
    tables: Tables = fold(())
    for digest, (position, event) in events.items():
        if digest not in fresh:
            continue
        rows = _derive(event)
        if rows is None:  # one strange event must not take the others with it
            refused.append(
                (position, EventError("", "valid, but a fault of ours kept it from being understood"))
            )
        else:
            fold(rows, tables)
            entries.append(Entry(digest, event.kind, event.time, event.raw))

    def write(found: Sequence[Entry], rows: Tables) -> int:
        rejects = [reject(fault, bytes(payloads[position]), redaction) for position, fault in refused]
        batch = Batch(found, rows, rejects, offsets=offsets)
        return store.write(batch) if found or rejects or offsets else 0

    try:
        stored = write(entries, tables)
    except StoreError as fault:
        if fault.cause != "value" or not entries:
            raise
        stored, unheld = _write_apart(store, entries)
        refused += [(events[digest][0], why) for digest, why in unheld]
        write([], {})
    return Outcome(
        len(payloads), stored, len(payloads) - len(refused) - stored, tuple(sorted(refused, key=_position))
    )


def _write_apart(store: Store, entries: Sequence[Entry]) -> tuple[int, list[tuple[bytes, EventError]]]:
    """Write events one by one, as one of them holds what the database cannot: the others must not wait for it for ever."""
    stored, unheld = 0, list[tuple[bytes, EventError]]()
    for each in entries:
        try:
            stored += store.write(Batch([each], fold(rows_of(each.kind, each.raw))))
        except StoreError as fault:
            if fault.cause != "value":
                raise
            why = str(fault).removeprefix(f"store {store.url}: ")
            unheld.append((each.digest, EventError("", f"the store cannot hold it: {why}")))
    return stored, unheld


def read_event(payload: bytes, limits: Limits, redaction: Redaction) -> Event:
    """An event as it will be kept: checked, and without what must not be."""
    event = parse(payload, limits)
    kept = redaction.apply(event.raw)
    return event if kept == event.raw else parse(kept, _NO_LIMITS)


def reject(fault: EventError, raw: bytes, redaction: Redaction) -> Reject:
    """A refused event as it is kept. Where the rules cannot be applied to it, only its size and the reason are."""
    try:
        return Reject(fault.path, fault.reason, redaction.apply(raw))
    except EventError:
        return Reject(fault.path, fault.reason, b"")


_FEW = 4
"""To ask whether so few are known costs more than to merge them again, which changes nothing."""
_derive = guard("understanding an event")(derive)


def _position(refused: tuple[int, EventError]) -> int:
    return refused[0]


def ingest_all(
    store: Store,
    payloads: Iterable[bytes],
    limits: Limits = Limits(),  # noqa: B008 - frozen
    redaction: Redaction = Redaction(),  # noqa: B008 - frozen
    *,
    size: int = 500,
) -> Iterable[Outcome]:
    """Take any number of encoded events, one transaction for each `size` of them."""
    batch: list[bytes] = []
    weight = 0
    for payload in payloads:
        batch.append(payload)
        weight += len(payload)
        if len(batch) >= size or weight > 16 << 20:
            yield ingest(store, batch, limits, redaction)
            batch, weight = [], 0
    if batch:
        yield ingest(store, batch, limits, redaction)


def command(store: Store, *said: Command) -> bool:
    """Take commands, all of them or none; whether any was new."""
    entries: list[Entry] = []
    for each in said:
        raw = encode_command(each)
        parse_command(raw)
        entries.append(Entry(digest_command(raw), "command", each.at, raw))
    return store.write(Batch(entries, fold(row for each in said for row in derive_command(each)))) > 0


def restore(store: Store, entries: Iterable[Entry], progress: Callable[[int], None] | None = None) -> int:
    """Take entries of another store's raw log; how many of them were new."""
    new = done = 0
    source = iter(entries)
    while part := list(islice(source, 500)):
        fresh = store.unknown([entry.digest for entry in part])
        taken = [entry for entry in part if entry.digest in fresh]
        rows = (row for entry in taken for row in rows_of(entry.kind, entry.raw))
        new += store.write(Batch(taken, fold(rows))) if taken else 0
        done += len(part)
        if progress is not None:
            progress(done)
    return new


def missing(store: Store, source: Store, progress: Callable[[int], None] | None = None) -> int:
    """How many entries of the log of `source` the store does not hold."""
    lacking = done = 0
    entries = iter(source.log())
    while part := [entry.digest for _, entry in islice(entries, 2_000)]:
        lacking += len(store.unknown(part))
        done += len(part)
        if progress is not None:
            progress(done)
    return lacking


def read_entry(raw: bytes) -> Entry:
    """One line of an exported log -> the entry it was."""
    if remains.is_base(raw):
        remains.derive_base(raw)
        return Entry(digest_of(raw), remains.KIND, 0, raw)
    if b'"command"' in raw:
        try:
            said = parse_command(raw)
        except EventError:
            pass  # an event may hold that word too
        else:
            return Entry(digest_command(raw), "command", said.at, raw)
    event = parse(raw, _NO_LIMITS)
    return Entry(event.digest, event.kind, event.time, event.raw)


def replay(store: Store, progress: Callable[[int], None] | None = None) -> int:
    """Make every folded table anew from the raw log; how many entries it holds."""
    return store.replay(rows_of, progress)


KINDS = ("runs", "events", "facets", "rejects")
"""What can be let go by its age."""


@dataclass(frozen=True, slots=True)
class Retention:
    """The settings of room `retention`: for how long each kind is kept, as in `90d`; empty is for ever."""

    runs: str = "400d"
    """Runs with their inputs, outputs, facets and assertions; each job's last ones stay."""
    events: str = "400d"
    """The raw events; what they told of the catalogue stays."""
    facets: str = ""
    """Facets and schemas that a later one stands before."""
    rejects: str = "30d"
    """Refused events."""
    every: str = "6h"
    """How often the server looks; empty is never."""

    def __post_init__(self) -> None:
        for name in (*KINDS, "every"):
            age(getattr(self, name), f"retention.{name}")

    def due(self, now: int) -> dict[int, set[str]]:
        """Moments in microseconds, and what goes that is older."""
        found: dict[int, set[str]] = {}
        for kind in KINDS:
            if (kept := age(getattr(self, kind), kind)) is not None:
                found.setdefault(now - kept, set()).add(kind)
        return found


_UNITS = {"h": 3_600_000_000, "d": 86_400_000_000, "w": 604_800_000_000, "m": 60_000_000}


def age(text: str, what: str = "age") -> int | None:
    """A span of time as people write it -> microseconds; None for an empty one.

    >>> age("90d") == 90 * 24 * age("1h")
    True
    """
    word = text.strip().lower()
    if not word:
        return None
    if word[-1:] not in _UNITS or not word[:-1].isdecimal() or int(word[:-1]) == 0:
        raise ConfigError(f"{what} is {text!r}: write a number and m, h, d or w, as in 90d")
    return int(word[:-1]) * _UNITS[word[-1]]


def retain(
    store: Store, retention: Retention, now: int, progress: Callable[[str, int, int], None] | None = None
) -> Pruned:
    """Let go what the settings no longer keep: what a server does every few hours.

    A clock that has jumped ahead must not empty the store: it is believed up to a day after the newest event.
    """
    with store.read() as reader:
        span = reader.span()
    now = min(now, (span[1] if span else 0) + _UNITS["d"])
    done = [
        store.prune(before, kinds, rows_of, progress=progress) for before, kinds in retention.due(now).items()
    ]
    names = ("runs", "events", "facets", "rejects", "contents")
    return Pruned(**{name: sum(getattr(each, name) for each in done) for name in names})


def rows_of(kind: str, raw: bytes) -> list[Row]:
    """One entry of the raw log -> its rows."""
    if kind == remains.KIND:
        return remains.derive_base(raw)
    return derive_command(parse_command(raw)) if kind == "command" else derive(parse(raw, _NO_LIMITS))


_NO_LIMITS = Limits(max_bytes=1 << 40, max_depth=900)  # what the log holds was within the limits of its day
