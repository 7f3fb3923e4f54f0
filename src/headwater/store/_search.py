"""store._search: what is told of jobs and datasets <-> an index of words: kept with each write, asked for a few letters.

A node's document follows from the merged tables alone, so it is the same whatever came first, and after a replay.
A write whose contents are those the document was made of changes nothing and costs one look-up. The words stand in
the table `documents`; SQLite finds them by FTS5, Postgres by GIN over `tsvector('simple')`. Where SQLite has no
FTS5, names alone are searched, and the status says so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from sqlalchemy import (
    Connection,
    FromClause,
    and_,
    delete,
    exists,
    func,
    literal,
    literal_column,
    or_,
    select,
    text,
)
from sqlalchemy.sql import ColumnElement

from headwater.facts.fold import Tables
from headwater.facts.tables import Type
from headwater.store._driver import Cursor, among, bulk, cursor_of, listed
from headwater.store._identities import numbers_of
from headwater.store._schema import TABLE, documents, meta
from headwater.store._told import NODES, SLOTS, told
from headwater.store._upsert import Ids
from headwater.store._words import Document, asked, document, folded, matches

KINDS = ("dataset", "job")
"""A document's id is twice the node's number, plus the position here."""
_TYPES = {"job": Type.JOB, "dataset": Type.DATASET}
_SLOT = {kind: {name: at * 16 for at, name in enumerate(names)} for kind, names in SLOTS.items()}
_VERSION = "1"
_PART = 500
_FTS = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS documents_fts USING fts5"
    "(names, words, content='documents', content_rowid='id', prefix='2 3', tokenize='unicode61 remove_diacritics 0')"
)
_GIN = "CREATE INDEX IF NOT EXISTS ix_documents_{0} ON documents USING gin (to_tsvector('simple', {0}))"
_COLUMNS = ("label", "tail", "names", "words", "marks", "slots")
_KEPT = bulk(
    documents,
    ("id", *_COLUMNS),
    f"ON CONFLICT (id) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in _COLUMNS)}",
)


class Index:
    """The index as a writer keeps it."""

    def __init__(self) -> None:
        self._mode = ""

    def clear(self, connection: Connection) -> None:
        """Forget every document: the tables are made anew."""
        self._prepare(connection)
        connection.execute(delete(documents))
        if self._mode == "fts5":
            connection.execute(text("INSERT INTO documents_fts (documents_fts) VALUES ('rebuild')"))

    def rebuild(self, connection: Connection) -> None:
        """Make every document anew from the tables as they stand."""
        self.clear(connection)
        cursor = cursor_of(connection)
        for kind in KINDS:
            cursor.execute(f"SELECT id FROM {NODES[kind]} ORDER BY id")
            self._renew(cursor, kind, [row[0] for row in cursor.fetchall()])

    def ready(self, connection: Connection) -> None:
        """Make the index where it is missing, or was kept by a database that cannot do what this one can."""
        if self._mode:
            return
        mode = _able(connection)
        kept = connection.execute(select(meta.c.value).where(meta.c.key == "search")).scalar()
        if kept == f"{mode} {_VERSION}":
            self._mode = mode
        else:
            self.rebuild(connection)

    def _prepare(self, connection: Connection) -> None:
        mode = _able(connection)
        if mode == "fts5":
            connection.execute(text(_FTS))
        elif mode == "gin":
            for column in ("names", "words"):
                connection.execute(text(_GIN.format(column)))
        connection.execute(delete(meta).where(meta.c.key == "search"))
        connection.execute(meta.insert().values(key="search", value=f"{mode} {_VERSION}"))
        self._mode = mode

    def settle(self, cursor: Cursor, tables: Tables, known: Ids, born: Mapping[Type, list[int]]) -> None:
        """Bring the documents of what a batch touched up to date; of most there is nothing to do."""
        for position, kind in enumerate(KINDS):
            numbers, slot = known[_TYPES[kind]], _SLOT[kind]
            named: dict[int, list[tuple[int, bytes]]] = {}
            for owner, name, digest in tables.get(f"{kind}_facets", ()):
                if name in slot:
                    named.setdefault(numbers[owner], []).append((slot[name], digest))
            stale = set(born.get(_TYPES[kind], ())) | _edited(cursor, kind, tables, numbers)
            looked = [number for number in named if number not in stale]
            if looked:
                cursor.execute(
                    f"SELECT id, slots FROM documents WHERE id IN {among()}",
                    (listed([each * 2 + position for each in looked]),),
                )
                have = {(row[0] - position) // 2: bytes(row[1]) for row in cursor.fetchall()}
                stale.update(
                    number
                    for number in looked
                    if any(have.get(number, b"")[at : at + 16] != digest for at, digest in named[number])
                )
            if stale:
                self._renew(cursor, kind, sorted(stale))

    def _renew(self, cursor: Cursor, kind: str, numbers: Collection[int]) -> None:
        position, ordered = KINDS.index(kind), list(numbers)
        for start in range(0, len(ordered), _PART):
            part = ordered[start : start + _PART]
            made = {
                number * 2 + position: document(each)
                for number, each in told(cursor, kind, dict(zip(part, part, strict=True))).items()
            }
            cursor.execute(
                f"SELECT id, label, tail, names, words, marks, slots FROM documents WHERE id IN {among()}",
                (listed(made),),
            )
            kept = {row[0]: Document._make(row[1:]) for row in cursor.fetchall()}
            changed = {id: each for id, each in made.items() if kept.get(id) != each}
            self._write(cursor, changed, {id: kept[id] for id in changed if id in kept})

    def _write(self, cursor: Cursor, made: Mapping[int, Document], gone: Mapping[int, Document]) -> None:
        if gone and self._mode == "fts5":
            cursor.executemany(
                "INSERT INTO documents_fts (documents_fts, rowid, names, words) VALUES ('delete', ?, ?, ?)",
                [(id, each.names, each.words) for id, each in gone.items()],
            )
        if not made:
            return
        cursor.insert(_KEPT, [(id, *each) for id, each in made.items()])
        if self._mode == "fts5":
            cursor.executemany(
                "INSERT INTO documents_fts (rowid, names, words) VALUES (?, ?, ?)",
                [(id, each.names, each.words) for id, each in made.items()],
            )


def _edited(cursor: Cursor, kind: str, tables: Tables, numbers: Mapping[str, int]) -> set[int]:
    """The nodes whose tags, or what people say of them, are in a batch."""
    refs = {key[1] for name in ("tags", "said") for key in tables.get(name, ()) if key[0] == kind}
    if not refs:
        return set()
    found = {each: numbers[each] for each in refs if each in numbers}
    missing = refs - found.keys()
    if missing:
        found.update(numbers_of(cursor, missing, NODES[kind]))
    return set(found.values())


def _able(connection: Connection) -> str:
    if connection.dialect.name == "postgresql":
        return "gin"
    found = connection.execute(text("SELECT 1 FROM pragma_module_list WHERE name = 'fts5'")).scalar()
    return "fts5" if found else "names"


def mode_of(connection: Connection) -> str:
    """How words are found: `fts5`, `gin`, or `names` where only names can be searched."""
    kept = connection.execute(select(meta.c.value).where(meta.c.key == "search")).scalar()
    mode = (kept or "").partition(" ")[0]
    return mode if mode and mode == _able(connection) else "names"


class Hit(dict[str, Any]):
    """One node that was found: kind, number, how (`exact`, `prefix`, `part`, `text`), and where."""


_HOW = ("exact", "prefix", "part", "text")


def find(
    connection: Connection,
    query: str,
    *,
    kinds: Collection[str] = KINDS,
    namespace: str | None = None,
    tag: str | None = None,
    owner: str | None = None,
    limit: int = 25,
) -> list[Hit]:
    """The nodes that a query means, the closest first: its name, what begins so, what has it in its name, its text."""
    marks = [f"\n{name}:{folded(value)}\n" for name, value in (("tag", tag), ("owner", owner)) if value]
    mode = mode_of(connection)
    found: dict[tuple[str, int], tuple[Any, ...]] = {}
    for how, where in _tiers(folded(query.strip()), query, mode):
        for kind, number, label in _ask(connection, kinds, where, namespace, marks, limit):
            found.setdefault((kind, number), (_HOW.index(how), len(label), label, kind, number))
        if len(found) >= limit:
            break
    best = sorted(found.items(), key=lambda item: item[1])[:limit]
    return _hits(connection, query, best)


def _tiers(wanted: str, query: str, mode: str) -> Iterator[tuple[str, ColumnElement[bool]]]:
    d = documents.c
    if not wanted:
        yield "text", d.id.is_not(None)  # nothing is asked for: filters decide alone
        return
    yield "exact", or_(d.label == wanted, d.tail == wanted)
    end = wanted + chr(0x10FFFF)
    yield "prefix", or_(*((name >= wanted) & (name <= end) for name in (d.label, d.tail)))
    if mode != "names" and (words := asked(query)):
        yield "part", _match(mode, "names", words)
    escaped = wanted.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    yield "part", d.id.in_(select(d.id).where(d.label.like(f"%{escaped}%", escape="\\")))
    if mode != "names" and words:
        yield "text", _match(mode, "words", words)


def _match(mode: str, column: str, words: list[str]) -> ColumnElement[bool]:
    if mode == "gin":
        query = func.to_tsquery(literal_column("'simple'"), " & ".join(f"'{word}':*" for word in words))
        return func.to_tsvector(literal_column("'simple'"), documents.c[column]).op("@@")(query)
    marks = " ".join(f'"{word}"*' for word in words)
    # without the brackets the column would be that of the first word only
    query_text = f"{column} : ({marks})"
    found = text("SELECT rowid FROM documents_fts WHERE documents_fts MATCH :fts").bindparams(fts=query_text)
    return documents.c.id.in_(found.columns(literal_column("rowid")).subquery().select())


# made once: an alias of a table costs more than the question
_JOB, _OWN, _LEAD, _NAME = (
    TABLE["jobs"].alias("job"),
    TABLE["datasets"].alias("own"),
    TABLE["datasets"].alias("lead"),
    TABLE["datasets"].alias("other"),
)
_KIND, _NODE = documents.c.id % 2, documents.c.id // 2
_IS_DATASET, _IS_JOB = (literal(position) == _KIND for position, _ in enumerate(KINDS))
_SOURCE = (
    documents.outerjoin(_JOB, and_(_IS_JOB, _JOB.c.id == _NODE))
    .outerjoin(_OWN, and_(_IS_DATASET, _OWN.c.id == _NODE))
    .outerjoin(_LEAD, _LEAD.c.id == func.coalesce(_OWN.c.canonical, _OWN.c.id))
)


def _visible(node: FromClause) -> ColumnElement[bool]:
    return or_(
        node.c.hidden_at.is_(None),
        node.c.hidden_at < func.coalesce(node.c.last_seen, 0),
        node.c.hidden_at < func.coalesce(node.c.shown_at, 0),
    )


_SHOWN = {
    "job": and_(_JOB.c.id.is_not(None), _visible(_JOB)),
    "dataset": and_(
        _LEAD.c.id.is_not(None),
        or_(
            _visible(_LEAD),
            # it is one under all of its names: an event that gives any of them shows it
            exists().where(
                _NAME.c.canonical == _LEAD.c.id,
                or_(_LEAD.c.hidden_at < _NAME.c.last_seen, _LEAD.c.hidden_at < _NAME.c.shown_at),
            ),
        ),
        # a name that only a rule of before made stands for nothing
        or_(_OWN.c.last_seen.is_not(None), _OWN.c.canonical.is_not(None)),
    ),
}


def _ask(
    connection: Connection,
    kinds: Collection[str],
    where: ColumnElement[bool],
    namespace: str | None,
    marks: list[str],
    limit: int,
) -> Iterable[tuple[str, int, str]]:
    """Kind, number and label of nodes, those of all kinds in one statement: a text in names is looked for in all of them."""
    d = documents.c
    number = func.coalesce(_JOB.c.id, _LEAD.c.id)
    query = select(_KIND, number, d.label).select_from(_SOURCE)
    query = query.where(where, or_(*(_SHOWN[kind] for kind in kinds)))
    if namespace is not None:
        query = query.where(func.coalesce(_JOB.c.namespace, _LEAD.c.namespace) == namespace)
    for mark in marks:
        query = query.where(d.marks.contains(mark, autoescape=True))
    # twice as many: a dataset may be found under several of its names
    query = query.order_by(func.length(d.label), d.label, _KIND, number).limit(limit * 2)
    return [(KINDS[kind], found, label) for kind, found, label in connection.execute(query)]


def _hits(
    connection: Connection, query: str, best: list[tuple[tuple[str, int], tuple[Any, ...]]]
) -> list[Hit]:
    cursor = cursor_of(connection)
    known: dict[tuple[str, int], Any] = {}
    names: dict[int, list[str]] = {}
    for kind in KINDS:
        numbers = [number for (each, number), _ in best if each == kind]
        leader = {number: number for number in numbers}
        if kind == "dataset" and numbers:
            cursor.execute(
                f"SELECT id, canonical, name FROM datasets WHERE canonical IN {among()}", (listed(numbers),)
            )
            for number, canonical, name in cursor.fetchall():
                leader[number] = canonical
                if number != canonical:
                    names.setdefault(canonical, []).append(name)
        if numbers:
            known.update(((kind, number), each) for number, each in told(cursor, kind, leader).items())
    hits = []
    for (kind, number), key in best:
        if (each := known.get((kind, number))) is None:
            continue
        other = [
            ("alias", name)
            for name in sorted(names.get(number, ()))
            if kind == "dataset" and name != each.name
        ]
        found = matches(each, query.strip(), ()) if query.strip() else []
        if query.strip() and not any(match["in"] == "name" for match in found):
            found = matches(each, query.strip(), other)
        hits.append(Hit(kind=kind, number=number, how=_HOW[key[0]], told=each, matches=found))
    return hits
