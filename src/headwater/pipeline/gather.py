"""pipeline.gather: parts -> shares of their rows, by key; a share -> folded Arrow tables.

Rows of one key always fall to one share, so whoever folds a share is done with its keys. Through Spark they travel as
Arrow streams: the JVM moves bytes, and neither side makes an object of every row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pyarrow as pa

from headwater.facts.fold import fold
from headwater.facts.tables import Rule
from headwater.pipeline._columns import KEPT, arrow_schema, batches_of, from_arrow, pack, to_arrow
from headwater.pipeline.steps import PARTS, TALLY, Part, Step, tuples

MOST_HELD = 512 << 20
"""Bytes of rows that a task folds at once; more are folded in several goes, and rows of one key may be left."""
_EVENTS_A_SHARE = 256 << 20
"""Bytes of events whose rows, folded, fit well into one task."""
_FEW_EVENTS = 8 << 20
"""Bytes of events that are not worth a task more, and a file more of every table."""


class Share(NamedTuple):
    """Rows of one table whose keys fall to the same task."""

    share: int
    table: str
    size: int
    """Bytes, unpacked."""
    body: bytes


SHARES = tuples(
    Share,
    pa.schema([("share", pa.int32()), ("table", pa.string()), ("size", pa.int64()), ("body", pa.binary())]),
    "share int, `table` string, size bigint, body binary",
)


def share_count(size: int, cores: int) -> int:
    """How many shares suit so many bytes of events, where that is known.

    >>> share_count(0, 4), share_count(1_000, 4), share_count(1 << 30, 2), share_count(1 << 40, 2)
    (4, 1, 4, 4096)
    """
    if not size:
        return cores
    return max(-(-size // _EVENTS_A_SHARE), min(cores, -(-size // _FEW_EVENTS)))


def spread(shares: int) -> Step:
    """The step from parts to shares; the tables that no sink keeps end here."""

    def run(parts: Iterator[Part]) -> Iterator[Share]:
        for part in parts:
            if part.table == TALLY:
                yield Share(0, TALLY, 0, part.body)
            elif part.table in KEPT:
                for batch in batches_of(part.body):
                    yield from cut(part.table, batch, shares)

    return Step("spread", PARTS, SHARES, run)


def cut(name: str, batch: pa.RecordBatch, shares: int) -> Iterator[Share]:
    """A batch of a table -> its shares."""
    if shares == 1:
        yield Share(0, name, batch.nbytes, pack(batch))
        return
    owner = _mixed([batch.column(part) for part in KEPT[name].key]) % np.uint64(shares)
    order = np.argsort(owner, kind="stable")
    batch = batch.take(pa.array(order))
    cuts = np.searchsorted(owner[order], np.arange(shares + 1, dtype=np.uint64))
    for share in range(shares):
        low, high = int(cuts[share]), int(cuts[share + 1])
        if low < high:
            mine = batch.slice(low, high - low)
            yield Share(share, name, mine.nbytes, pack(mine))


def _mixed(columns: Iterable[pa.Array]) -> Any:
    """A number for each row, the same for the same key in every process; each different value is looked at once."""
    mixed: Any = np.uint64(0)
    for column in columns:
        if pa.types.is_integer(column.type):
            numbers = column.to_numpy(zero_copy_only=False).astype(np.uint64)
        else:
            known = column.dictionary_encode()
            values = known.dictionary.cast(pa.binary()).to_pylist()
            checks = np.fromiter((crc32(each) for each in values), np.uint64, len(values))
            numbers = checks[known.indices.to_numpy(zero_copy_only=False)]
        mixed = (mixed ^ numbers) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return mixed


class Gathered(NamedTuple):
    """Folded rows of a table."""

    table: str
    rows: pa.Table
    given: int
    """How many partial rows they were."""


def gathered(shares: Iterable[Share]) -> Iterator[list[Gathered] | bytes]:
    """What one task was given -> its tallies, as they come, and its tables, folded; in one go unless they are too large."""
    held: dict[str, list[bytes]] = {}
    weight = 0
    for each in shares:
        if each.table == TALLY:
            yield each.body
            continue
        held.setdefault(each.table, []).append(each.body)
        weight += each.size
        if weight > MOST_HELD:
            yield [_gather(name, bodies) for name, bodies in held.items()]
            held, weight = {}, 0
    if held:
        yield [_gather(name, bodies) for name, bodies in held.items()]


def _gather(name: str, bodies: list[bytes]) -> Gathered:
    rows = pa.Table.from_batches(
        [batch for body in bodies for batch in batches_of(body)], arrow_schema(KEPT[name])
    )
    return Gathered(name, folded(name, rows), rows.num_rows)


def folded(name: str, rows: pa.Table) -> pa.Table:
    """Rows with one key become one, by the rules of the table.

    Smallest and largest Arrow finds itself. Where the latest counts, rows whose key stands once pass as they are, and
    the few others go through the fold of the house.
    """
    spec = KEPT[name]
    keys = list(spec.key)
    if not spec.of(Rule.LATEST):
        wanted = [(column, rule.rule.value) for column, rule in spec.columns.items()]
        found = rows.group_by(keys, use_threads=False).aggregate(wanted)
        return found.rename_columns([*keys, *spec.columns]).select(rows.schema.names).cast(rows.schema)
    numbered = rows.select(keys).append_column("row", pa.array(np.arange(rows.num_rows)))
    spans = numbered.group_by(keys, use_threads=False).aggregate([("row", "min"), ("row", "max")])
    if spans.num_rows == rows.num_rows:
        return rows
    first, last = (spans.column(each).to_numpy() for each in ("row_min", "row_max"))
    alone = first[first == last]
    several = np.ones(rows.num_rows, bool)
    several[alone] = False
    pairs = (pair for batch in rows.filter(several).to_batches() for pair in from_arrow(name, batch))
    merged = fold(((name, key, row) for key, row in pairs), {name: {}})
    return pa.concat_tables(
        [rows.take(np.sort(alone)), pa.Table.from_batches([to_arrow(name, merged[name])])]
    )
