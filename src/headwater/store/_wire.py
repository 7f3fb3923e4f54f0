"""store._wire: a statement of ours and its values -> the same on Postgres' cursor, columns of values as arrays.

psycopg looks at every element of a list, several times, to find out what the list holds, and reads a long statement anew each
time: of an event that comes alone that was most of what Python did for Postgres. What our columns hold is known, and statements are
rewritten once.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import cache
from itertools import count
from struct import Struct
from typing import Any

from psycopg import Connection, DataError, RawCursor
from psycopg.adapt import Dumper
from psycopg.pq import Format

from headwater.store._driver import AMONG, Bigints, Bulk, Byteas, Listed, Rows, Texts

_PAIRS = (
    "SELECT t.namespace || chr(10) || t.name, t.id FROM unnest($1, $2) AS j(namespace, name)"
    " JOIN {table} AS t ON t.namespace = j.namespace AND t.name = j.name"
)
_HEAD = Struct(">iiIii").pack
"""Dimensions, whether there are NULLs, the type of the elements, how many there are, the number of the first."""
_BIGINT = Struct(">iq").pack
_LENGTH = Struct(">i").pack
_NULL = _LENGTH(-1)


class PostgresCursor:
    """psycopg's, given statements as SQLite takes them."""

    def __init__(self, connection: Any) -> None:
        self._cursor = RawCursor(connection)
        self.fetchall = self._cursor.fetchall

    @property
    def rowcount(self) -> int:
        """How many rows the last statement changed."""
        return self._cursor.rowcount

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Any:
        """Run a statement."""
        plain = [_column(each) if type(each) is Listed else each for each in parameters]
        return self._cursor.execute(_numbered(sql), plain)

    def executemany(self, sql: str, parameters: Rows, /) -> Any:
        """Run a statement once for each row of parameters, all of them sent at once."""
        return self._cursor.executemany(_numbered(sql), parameters)

    def insert(self, statement: Bulk, rows: Rows) -> None:
        """Run a statement for all rows."""
        columns = zip(statement.columns.values(), zip(*rows, strict=True), strict=True)
        self._cursor.execute(statement.arrays, [kind(values) for kind, values in columns])

    def together(self) -> AbstractContextManager[Any]:
        """One wait for all of them, in place of one for each."""
        return self._cursor.connection.pipeline()

    def pairs(self, table: str, references: Iterable[str]) -> list[Any]:
        """(reference, number) of those of the references that a table of names numbers."""
        asked = [each.partition("\n") for each in references]
        names = (Texts([each[0] for each in asked]), Texts([each[2] for each in asked]))
        self._cursor.execute(_PAIRS.format(table=table), names)
        return self.fetchall()

    def held(self, table: str, column: str, digests: Sequence[bytes]) -> list[bytes]:
        """Those of the digests that stand in a column."""
        self._cursor.execute(f"SELECT {column} FROM {table} WHERE {column} = ANY($1)", (Byteas(digests),))
        return [row[0] for row in self.fetchall()]


def _column(values: Listed) -> list[Any]:
    """Numbers or texts; of none of them Postgres tells by the statement what they would be."""
    if not values:
        return []
    return Bigints(values) if type(values[0]) is int else Texts(values)


@cache
def _numbered(sql: str) -> str:
    """A statement with the places of its values numbered, as Postgres has them.

    >>> _numbered(f"SELECT a FROM t WHERE a > ? AND b IN {AMONG}")
    'SELECT a FROM t WHERE a > $1 AND b = ANY($2)'
    """
    places = count(1)
    return re.sub(r"\?", lambda _: f"${next(places)}", sql.replace(f"IN {AMONG}", "= ANY(?)"))


def register(connection: Connection[Any]) -> None:
    """Let a connection send columns of values as arrays."""
    for columns, dumper in ((Bigints, _Bigints), (Texts, _Texts), (Byteas, _Byteas)):
        connection.adapters.register_dumper(columns, dumper)


def _array(values: Sequence[Any], kind: int, packed: Callable[[Any], bytes]) -> bytes:
    if not values:
        return _HEAD(0, 0, kind, 0, 0)[:12]  # no dimension, so no length of one
    nulls = None in values
    parts = (_NULL if each is None else packed(each) for each in values) if nulls else map(packed, values)
    try:
        return _HEAD(1, nulls, kind, len(values), 1) + b"".join(parts)
    except (struct.error, TypeError, AttributeError, UnicodeEncodeError) as fault:
        raise DataError(f"a value that its column cannot hold: {fault}") from fault


def _number(value: int) -> bytes:
    return _BIGINT(8, value)


def _bytes(value: bytes) -> bytes:
    return _LENGTH(len(value)) + value


def _text(value: str) -> bytes:
    return _bytes(value.encode())


class _Bigints(Dumper):
    format, oid = Format.BINARY, 1016

    def dump(self, obj: Bigints) -> bytes:
        """As `bigint[]`."""
        return _array(obj, 20, _number)


class _Texts(Dumper):
    format, oid = Format.BINARY, 1009

    def dump(self, obj: Texts) -> bytes:
        """As `text[]`; connections of ours speak UTF-8."""
        return _array(obj, 25, _text)


class _Byteas(Dumper):
    format, oid = Format.BINARY, 1001

    def dump(self, obj: Byteas) -> bytes:
        """As `bytea[]`."""
        return _array(obj, 17, _bytes)
