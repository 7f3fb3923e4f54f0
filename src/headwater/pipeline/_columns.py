"""pipeline._columns: the tables of `facts` -> their columns in Arrow and in Spark; and rows <-> Arrow.

A LATEST column `c` is two, as in a database: `c_at`, its stamp, and `c`. Three tables are the pipeline's own: which
events it took, what it refused, and, for sinks that keep a raw log, the events themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from headwater.facts.tables import TABLES, Column, Rule, Table, Type

Rows = Mapping[tuple[Any, ...], Mapping[str, Any]]

_MAX_TEXT, _MAX_BODY = Column(Rule.MAX, Type.TEXT), Column(Rule.MAX, Type.BODY)

EVENTS = Table(
    "events",
    {"digest": Type.DIGEST},
    {"kind": _MAX_TEXT, "time": Column(Rule.MAX)},
    "the events that were taken, by their content",
)
QUARANTINE = Table(
    "quarantine",
    {"source": Type.TEXT, "position": Type.INT, "digest": Type.DIGEST},
    {"path": _MAX_TEXT, "reason": _MAX_TEXT, "payload": _MAX_BODY},
    "what was refused: where it stood, why, and what it was",
)
LOG = Table(
    "log",
    {"digest": Type.DIGEST},
    {"kind": _MAX_TEXT, "time": Column(Rule.MAX), "raw": _MAX_BODY},
    "the events as they came, for a sink that keeps them",
)
KEPT: dict[str, Table] = {**TABLES, "events": EVENTS, "quarantine": QUARANTINE}
"""The tables that every sink keeps."""
PARTIAL: dict[str, Table] = {**KEPT, "log": LOG}
"""The tables of which parts are made."""

_ARROW = {
    Type.INT: pa.int64(),
    Type.TEXT: pa.string(),
    Type.DIGEST: pa.binary(),
    Type.BODY: pa.binary(),
    Type.JOB: pa.string(),
    Type.DATASET: pa.string(),
    Type.RUN: pa.string(),
}
_SPARK = {Type.INT: "bigint", Type.DIGEST: "binary", Type.BODY: "binary"}


def columns(table: Table) -> dict[str, Type]:
    """Every column of a table, keys first, as it is written.

    >>> from headwater.facts.tables import TABLES
    >>> list(columns(TABLES["aliases"]))
    ['match', 'rule_at', 'rule']
    """
    found = dict(table.key)
    for name, column in table.columns.items():
        if column.rule is Rule.LATEST:
            found[f"{name}_at"] = Type.INT
        found[name] = column.type
    return found


def ddl(table: Table) -> str:
    """A table's columns as Spark's schema text."""
    return ", ".join(f"`{name}` {_SPARK.get(kind, 'string')}" for name, kind in columns(table).items())


def arrow_schema(table: Table) -> pa.Schema:
    """A table's columns as an Arrow schema."""
    return pa.schema([(name, _ARROW[kind]) for name, kind in columns(table).items()])


_SCHEMAS = {name: arrow_schema(table) for name, table in PARTIAL.items()}


def to_arrow(name: str, rows: Rows) -> pa.RecordBatch:
    """Folded rows of a table -> one Arrow batch."""
    table, schema = PARTIAL[name], _SCHEMAS[name]
    values: list[list[Any]] = [list(part) for part in zip(*rows, strict=True)]
    every = rows.values()
    for column, spec in table.columns.items():
        found = [row.get(column) for row in every]
        if spec.rule is Rule.LATEST:
            values.append([None if each is None else each[0] for each in found])
            found = [None if each is None else each[1] for each in found]
        values.append(found)
    arrays = [pa.array(each, field.type) for each, field in zip(values, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def from_arrow(name: str, batch: pa.RecordBatch) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """An Arrow batch of a table -> its folded rows; a missing value is left out, as in `facts.fold`."""
    table = PARTIAL[name]
    lists = {field: batch.column(i).to_pylist() for i, field in enumerate(batch.schema.names)}
    merged: list[tuple[str, list[Any]]] = []
    for column, spec in table.columns.items():
        said = lists[column]
        if spec.rule is Rule.LATEST:
            pairs = zip(lists[f"{column}_at"], said, strict=True)
            said = [None if at is None else (at, value) for at, value in pairs]
        merged.append((column, said))
    for i, key in enumerate(zip(*(lists[part] for part in table.key), strict=True)):
        yield key, {column: said[i] for column, said in merged if said[i] is not None}


_LZ4 = pa.ipc.IpcWriteOptions(compression="lz4")


def pack(batch: pa.RecordBatch) -> bytes:
    """An Arrow batch -> one compressed Arrow stream: what travels through Spark instead of single rows."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=_LZ4) as stream:
        stream.write_batch(batch)
    body: bytes = sink.getvalue().to_pybytes()
    return body


def batches_of(body: Any) -> Iterator[pa.RecordBatch]:
    """The Arrow batches in a body."""
    with pa.ipc.open_stream(body) as stream:
        yield from stream
