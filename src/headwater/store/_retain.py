"""store._retain: a moment -> what is older goes: runs, raw events, superseded facets, refused events.

The catalogue stays: jobs, datasets, edges, column edges, tags, what people said, each job's last runs and current
facets and schemas. It stays over a replay, too: the raw events that go leave an entry of kind `base` in the log with
the rows that they told and that are kept. Everything is done in small transactions, so writers wait for none of them
long; a prune that was interrupted is finished by the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from sqlalchemy import Connection

from headwater.errors import StoreError
from headwater.facts.commands import spend
from headwater.facts.contents import digest_of
from headwater.facts.fold import Tables, fold
from headwater.facts.remains import (
    KIND,
    Gone,
    encode_base,
    fold_bases,
    needed,
    referred,
    superseded,
    touches,
    without,
)
from headwater.facts.tables import Row
from headwater.store import Pruned
from headwater.store._driver import Cursor, among, bulk, cursor_of, listed
from headwater.store._packing import pack, unpack
from headwater.store._schema import log
from headwater.store._settle import settle_states
from headwater.store._sweep import SUPERSEDED, count_unused, find_superseded, parts, sweep

Derive = Callable[[str, bytes], Iterable[Row]]
Progress = Callable[[str, int, int], None]
LOGGED = bulk(log, ("digest", "kind", "time", "received_at", "body"), "ON CONFLICT (digest) DO NOTHING")
_NOTHING = b'{"base":1,"rows":[]}'
_EVENTS = 500  # entries that are told anew in one transaction


class Ground(Protocol):
    """What a store lends to this work."""

    def transaction(self) -> AbstractContextManager[Connection]:
        """A transaction that writes."""

    def moment(self) -> AbstractContextManager[Connection]:
        """A transaction that reads."""

    def renew(self, connection: Connection) -> None:
        """Tell every writer that numbers were given back."""

    def drop_runs(self, connection: Connection, start: int, end: int, gone: Sequence[int]) -> None:
        """Take the runs of these numbers, all between start and end, out of every table that is kept by run."""

    def ranges(self, connection: Connection, before: int) -> list[tuple[int, int]]:
        """The numbers of all runs, in the stretches that are dropped together."""


@dataclass(slots=True)
class Prune:
    """One prune: what is older than `before` goes."""

    ground: Ground
    before: int
    kinds: frozenset[str]
    derive: Derive
    progress: Progress = lambda phase, done, total: None
    _alive: set[str] = field(default_factory=set)
    """Runs that began before and stay."""
    _facets: set[tuple[Any, ...]] = field(default_factory=set)
    """Superseded facets and schemas that went: (table, key)."""

    def estimate(self, counted: int = 0) -> Pruned:
        """What would go, counted as `run` counts it; events older than `counted` go with another prune, and count there."""
        with self.ground.moment() as connection:
            cursor = cursor_of(connection)
            gone: set[int] = set()
            facets = rejects = 0
            if "runs" in self.kinds:
                kept = self._kept(cursor)
                rows = self._begun_before(cursor, 0, 1 << 62)
                gone = {row[0] for row in rows if (row[3] or 0) < self.before and row[0] not in kept}
                self._alive.update(row[1] for row in rows if row[0] not in gone)
            if "facets" in self.kinds:
                facets = sum(len(find_superseded(cursor, table, self.before)) for table in SUPERSEDED)
            events = self._old_events(cursor, counted) if self.kinds & {"events", "facets", "runs"} else 0
            if "rejects" in self.kinds:
                rejects = _count(cursor, "rejects", "last_seen < ?", self.before)
            contents = count_unused(cursor, gone, self.before if facets else None) if gone or facets else 0
        return Pruned(runs=len(gone), events=events, facets=facets, rejects=rejects, contents=contents)

    def run(self) -> Pruned:
        """Let it go."""
        runs = self._runs() if "runs" in self.kinds else 0
        facets = self._old_facets() if "facets" in self.kinds else 0
        events = self._log() if self.kinds & {"events", "facets", "runs"} else 0
        contents = sweep(self.ground, self.derive) if runs or facets else 0
        self._merge_bases()
        rejects = self._rejects() if "rejects" in self.kinds else 0
        return Pruned(runs=runs, events=events, facets=facets, rejects=rejects, contents=contents)

    # ---- runs ----------------------------------------------------------------------------------------------

    def _kept(self, cursor: Cursor) -> set[int]:
        """Old runs that stay: each job's last, the last that showed its edges, and whom a run that stays belongs to."""
        kept: set[int] = set()
        for order in ("io IS NOT NULL ORDER BY ended_at", "first_seen IS NOT NULL ORDER BY first_seen"):
            cursor.execute(
                f"SELECT (SELECT id FROM runs WHERE job = j.id AND {order} DESC, run_id DESC LIMIT 1) FROM jobs AS j"
            )
            kept.update(row[0] for row in cursor.fetchall() if row[0] is not None)
        cursor.execute("SELECT DISTINCT parent, root FROM runs WHERE last_seen >= ?", (self.before,))
        edge = {each for row in cursor.fetchall() for each in row if each is not None} | kept
        kept |= edge
        while edge:
            cursor.execute(f"SELECT DISTINCT parent, root FROM runs WHERE id IN {among()}", (listed(edge),))
            edge = {each for row in cursor.fetchall() for each in row if each is not None} - kept
            kept |= edge
        return kept

    def _runs(self) -> int:
        with self.ground.moment() as connection:
            ranges = self.ground.ranges(connection, self.before)
        done = 0
        for position, (start, end) in enumerate(ranges):
            with self.ground.moment() as connection:
                old = self._begun_before(cursor_of(connection), start, end)
            if not old:  # nearly always: nobody is kept from writing to find that out
                self.progress("runs", position + 1, len(ranges))
                continue
            with self.ground.transaction() as connection:
                cursor = cursor_of(connection)
                kept = self._kept(cursor)  # anew each time: a writer may have made another run the last one
                rows = self._begun_before(cursor, start, end)
                gone = [row[0] for row in rows if (row[3] or 0) < self.before and row[0] not in kept]
                dead = set(gone)
                self._alive.update(row[1] for row in rows if row[0] not in dead)
                if gone:
                    cursor.execute(f"SELECT DISTINCT job FROM runs WHERE id IN {among()}", (listed(gone),))
                    jobs = [row[0] for row in cursor.fetchall() if row[0] is not None]
                    self.ground.drop_runs(connection, start, end, gone)
                    settle_states(cursor, jobs)
                    self.ground.renew(connection)
            done += len(gone)
            self.progress("runs", position + 1, len(ranges))
        return done

    def _begun_before(self, cursor: Cursor, start: int, end: int) -> list[Any]:
        """The runs of a stretch that may be old: number, id, when first and last seen."""
        cursor.execute(
            "SELECT id, run_id, first_seen, last_seen FROM runs WHERE id >= ? AND id < ? AND coalesce(first_seen, 0) < ?",
            (start, end, self.before),
        )
        return cursor.fetchall()

    # ---- the log -------------------------------------------------------------------------------------------

    def _gone(self, rows: Sequence[Row]) -> Gone:
        """The runs in these rows that went, if runs are to go: all that began before and are not among the living."""
        if "runs" not in self.kinds:
            return Gone()
        return Gone(
            frozenset(
                key[0]
                for name, key, row in rows
                if name == "runs" and row.get("first_seen", 0) < self.before and key[0] not in self._alive
            )
        )

    def _log(self) -> int:
        with self.ground.moment() as connection:
            cursor = cursor_of(connection)
            where = "time < ? AND kind <> 'base'"
            total = _count(cursor, "log", where, self.before)
            cursor.execute("SELECT coalesce(max(id), 0) FROM log")
            ((end,),) = cursor.fetchall()
        after = done = seen = 0
        while True:
            with self.ground.moment() as connection:
                cursor = cursor_of(connection)
                cursor.execute(
                    f"SELECT id, kind, time, body FROM log WHERE id > ? AND id <= ? AND {where} ORDER BY id LIMIT ?",
                    (after, end, self.before, _EVENTS),
                )
                entries = cursor.fetchall()
            if not entries:
                return done
            after, seen = entries[-1][0], seen + len(entries)
            done += self._rewrite(entries)
            self.progress("events", seen, total)

    def _old_events(self, cursor: Cursor, since: int) -> int:
        """How many entries would go; of runs alone, only those that tell of one that goes."""
        where = "time >= ? AND time < ? AND kind NOT IN ('command', 'base')"
        total = _count(cursor, "log", where, since, self.before)
        if self.kinds & {"events", "facets"}:
            return total
        after = found = seen = 0
        while seen < total:
            cursor.execute(
                f"SELECT id, kind, body FROM log WHERE id > ? AND {where} ORDER BY id LIMIT ?",
                (after, since, self.before, _EVENTS),
            )
            entries = cursor.fetchall()
            for _, kind, body in entries:
                rows = list(self.derive(kind, unpack(body)))
                found += touches(rows, self._gone(rows))
            after, seen = entries[-1][0], seen + len(entries)
            self.progress("events", seen, total)
        return found

    def _rewrite(self, entries: Sequence[Any]) -> int:
        """Take entries out of the log, and leave what they told and is kept; made ready while others write."""
        tables: Tables = fold(())
        leave: list[int] = []
        last = 0
        spent: list[tuple[Any, ...]] = []
        for number, kind, time, body in entries:
            raw = unpack(body)
            rows = list(self.derive(kind, raw))
            gone = self._gone(rows)
            if kind == "command":
                # also of a definition by hand, where what it told of a dataset was superseded and went
                if not gone.runs and not any((row[0], row[1]) in self._facets for row in rows):
                    continue
                said = spend(raw)
                spent.append((digest_of(said), kind, time, time, pack(said)))
            elif not (self.kinds & {"events", "facets"} or touches(rows, gone)):
                continue
            fold((row for row in without(rows, gone) if (row[0], row[1]) not in self._facets), tables)
            leave.append(number)
            last = max(last, time)
        if leave:
            made = [*bases(needed(tables), last), *spent]
            with self.ground.transaction() as connection:
                cursor = cursor_of(connection)
                if rewrite_log(cursor, leave, made, last) != len(leave):
                    raise StoreError(
                        "another prune of this store is under way: try again later", retryable=True
                    )
        return len(leave) - len(spent)

    def _merge_bases(self) -> None:
        """All bases into one, without what has gone; prepared while others write."""
        with self.ground.moment() as connection:
            cursor = cursor_of(connection)
            cursor.execute("SELECT id, time, body FROM log WHERE kind = ? ORDER BY id", (KIND,))
            found = cursor.fetchall()
            if not found:
                return
            folded = fold_bases(unpack(row[2]) for row in found)
            rows = [(name, key, row) for name, table in folded.items() for key, row in table.items()]
            gone = self._gone(rows)
            left = fold(row for row in without(rows, gone) if (row[0], row[1]) not in self._facets)
            told = referred(left)
            cursor.execute("SELECT digest FROM contents")
            swept = told - {bytes(row[0]) for row in cursor.fetchall()} if told else told
        time = max(row[1] for row in found)
        made = bases(needed(superseded(left, swept)), time)
        if [row[2] for row in found] == [each[-1] for each in made]:
            return
        with self.ground.transaction() as connection:
            cursor = cursor_of(connection)
            numbers = [row[0] for row in found]
            cursor.execute(f"SELECT count(*) FROM log WHERE id IN {among()}", (listed(numbers),))
            if cursor.fetchall()[0][0] == len(numbers):  # else another prune is at it, and has merged them
                rewrite_log(cursor, numbers, made, time)

    # ---- facets, contents, rejects -------------------------------------------------------------------------

    def _old_facets(self) -> int:
        done = 0
        for table, names in SUPERSEDED.items():
            with self.ground.moment() as connection:
                found = find_superseded(cursor_of(connection), table, self.before)
            for position, part in enumerate(parts(found, 2_000)):
                with self.ground.transaction() as connection:
                    cursor = cursor_of(connection)
                    where = " AND ".join(f"{name} = ?" for name in names)
                    cursor.executemany(
                        f"DELETE FROM {table} WHERE {where} AND last_seen < ?",
                        [(*each[0], self.before) for each in part],
                    )
                    self._facets.update((table, each[1]) for each in part)
                    self.ground.renew(connection)
                done += len(part)
                self.progress("facets", min(len(found), (position + 1) * 2_000), len(found))
        return done

    def _rejects(self) -> int:
        done = 0
        while True:
            with self.ground.transaction() as connection:
                cursor = cursor_of(connection)
                cursor.execute(
                    "DELETE FROM rejects WHERE id IN (SELECT id FROM rejects WHERE last_seen < ? LIMIT 1000)",
                    (self.before,),
                )
                if not cursor.rowcount:
                    return done
                done += cursor.rowcount


def rewrite_log(cursor: Cursor, leave: Sequence[int], made: Sequence[tuple[Any, ...]], time: int) -> int:
    """Take entries out of the log, and put others in; how many there were to take out.

    No number is given twice: whoever follows the log has passed those that were, and would miss what gets one of them.
    SQLite goes on from the greatest number that there is, so an entry that tells nothing holds it.
    """
    hold = digest_of(_NOTHING)
    cursor.execute("DELETE FROM log WHERE digest = ?", (hold,))
    cursor.insert(LOGGED, [(hold, KIND, time, time, pack(_NOTHING))])
    cursor.execute(f"DELETE FROM log WHERE id IN {among()}", (listed(leave),))
    taken = cursor.rowcount
    if made:
        cursor.insert(LOGGED, made)
        cursor.execute("DELETE FROM log WHERE digest = ?", (hold,))
    return taken


def bases(tables: Tables, time: int) -> list[tuple[Any, ...]]:
    """Folded rows as the log keeps them."""
    return [(digest_of(raw), KIND, time, time, pack(raw)) for raw in encode_base(tables)]


def _count(cursor: Cursor, table: str, where: str, *parameters: Any) -> int:
    cursor.execute(f"SELECT count(*) FROM {table} WHERE {where}", parameters)
    ((found,),) = cursor.fetchall()
    return int(found)
