"""ingest: events and commands -> validated, derived, merged and stored in one transaction a batch.

What is refused is kept with its reason; what was already there changes nothing; what is accepted is in the
store, whole, when `ingest` returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from headwater.errors import EventError
from headwater.event import Event, Limits, parse
from headwater.facts import Command, Row, Tables, derive, derive_command, fold
from headwater.facts.commands import digest_command, encode_command, parse_command
from headwater.guard import guard
from headwater.store import Batch, Entry, Reject, Store


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


def ingest(store: Store, payloads: Sequence[bytes], limits: Limits = Limits()) -> Outcome:  # noqa: B008 - frozen
    """Take a batch of encoded events into the store, in one transaction.

    >>> from headwater.store import open_store
    >>> ingest(open_store("memory:"), [b'{"eventTime": "2026-01-01T00:00:00Z"}']).rejected
    ((0, EventError('neither run, job nor dataset is there: this is no OpenLineage event')),)
    """
    events: dict[bytes, tuple[int, Event]] = {}
    refused: list[tuple[int, EventError]] = []
    for position, payload in enumerate(payloads):
        try:
            event = parse(payload, limits)
        except EventError as fault:
            refused.append((position, fault))
        else:
            events[event.digest] = (position, event)
    fresh = store.unknown(list(events)) if events else set()
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
    rejects = [Reject(fault.path, fault.reason, bytes(payloads[position])) for position, fault in refused]
    stored = store.write(Batch(entries, tables, rejects)) if entries or rejects else 0
    return Outcome(
        len(payloads), stored, len(payloads) - len(refused) - stored, tuple(sorted(refused, key=_position))
    )


_derive = guard("understanding an event")(derive)


def _position(refused: tuple[int, EventError]) -> int:
    return refused[0]


def ingest_all(
    store: Store,
    payloads: Iterable[bytes],
    limits: Limits = Limits(),  # noqa: B008 - frozen
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
            yield ingest(store, batch, limits)
            batch, weight = [], 0
    if batch:
        yield ingest(store, batch, limits)


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


def read_entry(raw: bytes) -> Entry:
    """One line of an exported log -> the entry it was."""
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


def rows_of(kind: str, raw: bytes) -> list[Row]:
    """One entry of the raw log -> its rows."""
    return derive_command(parse_command(raw)) if kind == "command" else derive(parse(raw, _NO_LIMITS))


_NO_LIMITS = Limits(max_bytes=1 << 40, max_depth=900)  # what the log holds was within the limits of its day
