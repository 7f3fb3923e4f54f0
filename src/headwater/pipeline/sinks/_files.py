"""pipeline.sinks._files: shares -> files of Parquet or JSON lines, folded and written by one task; files -> shares again.

An Arrow batch becomes Parquet where it is made: no row passes through the JVM. A file counts when a manifest names it,
so what a task that failed or was killed left behind is never read.
"""

from __future__ import annotations

import base64
import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from headwater.pipeline._columns import KEPT, arrow_schema
from headwater.pipeline.gather import SHARES, Share, cut, gathered
from headwater.pipeline.steps import TALLY, Step, tuples


class Written(NamedTuple):
    """A file of a table; or, without a name, what was tallied."""

    table: str
    file: str
    rows: int
    bad: int = 0
    again: int = 0
    """Repeats; of a file, how many rows were folded away."""
    whole: bool = True
    """Whether no key stands in it twice."""
    size: int = 0
    """Bytes of its rows, unpacked."""


WRITTEN = tuples(
    Written,
    pa.schema(
        [
            ("table", pa.string()),
            ("file", pa.string()),
            ("rows", pa.int64()),
            ("bad", pa.int64()),
            ("again", pa.int64()),
            ("whole", pa.bool_()),
            ("size", pa.int64()),
        ]
    ),
    "`table` string, file string, `rows` bigint, bad bigint, again bigint, whole boolean, size bigint",
)


def save(root: str, form: str, folder: Callable[[str], str]) -> Step:
    """The step that writes shares below `root`, a file a table and task; `folder` says where a table's files go."""

    def run(shares: Iterator[Share]) -> Iterator[Written]:
        files: dict[str, _File] = {}
        tally = [0, 0, 0]
        try:
            for each in gathered(shares):
                if isinstance(each, bytes):
                    tally = [a + b for a, b in zip(tally, msgspec.json.decode(each), strict=True)]
                    continue
                for table, rows, given in each:
                    if table not in files:
                        name = f"{folder(table)}/{uuid.uuid4().hex}.{form}"
                        files[table] = _File(root, name, form, table)
                    files[table].write(rows, given)
        finally:
            for file in files.values():
                file.close()
        for table, file in files.items():
            yield Written(table, file.name, file.rows, 0, file.given - file.rows, file.times == 1, file.size)
        if tally[0]:
            lines, bad, again = tally
            yield Written(TALLY, "", lines, bad, again)

    return Step("write", SHARES, WRITTEN, run)


class Stored(NamedTuple):
    """A file that was written before."""

    table: str
    file: str


STORED = tuples(
    Stored, pa.schema([("table", pa.string()), ("file", pa.string())]), "`table` string, file string"
)


def reopen(root: str, form: str, shares: int) -> Step:
    """The step that reads files below `root` back, as shares."""

    def run(files: Iterator[Stored]) -> Iterator[Share]:
        for each in files:
            with _open(f"{root.rstrip('/')}/{each.file}") as stream:
                batches = _parquet(stream) if form == "parquet" else _json(stream, each.table)
                for batch in batches:
                    yield from cut(each.table, batch, shares)

    return Step("read", STORED, SHARES, run)


def _parquet(stream: Any) -> Iterator[pa.RecordBatch]:
    from pyarrow import parquet

    yield from parquet.ParquetFile(stream).iter_batches(batch_size=100_000, use_threads=False)


def _json(stream: Any, table: str) -> Iterator[pa.RecordBatch]:
    schema = arrow_schema(KEPT[table])
    packed = [field.name for field in schema if pa.types.is_binary(field.type)]
    rows = [msgspec.json.decode(line) for line in stream.read().splitlines()]
    for row in rows:
        row.update((name, base64.b64decode(row[name])) for name in packed if name in row)
    yield pa.RecordBatch.from_pylist(rows, schema)


class _File:
    """One file that is being written."""

    def __init__(self, root: str, name: str, form: str, table: str) -> None:
        self.name = name
        self.rows = self.given = self.times = self.size = 0
        self._out = _create(f"{root.rstrip('/')}/{name}")
        self._parquet: Any = None
        if form == "parquet":
            from pyarrow import parquet

            schema = arrow_schema(KEPT[table])
            self._parquet = parquet.ParquetWriter(self._out, schema, compression="zstd", compression_level=1)

    def write(self, rows: pa.Table, given: int) -> None:
        """Some rows, which so many were folded into."""
        self.rows += rows.num_rows
        self.given += given
        self.times += 1
        self.size += rows.nbytes
        if self._parquet is not None:
            self._parquet.write_table(rows)
            return
        for batch in rows.to_batches():
            told = (
                {name: value for name, value in row.items() if value is not None} for row in batch.to_pylist()
            )
            self._out.write(b"".join(msgspec.json.encode(row) + b"\n" for row in told))

    def close(self) -> None:
        if self._parquet is not None:
            self._parquet.close()
        self._out.close()


def _create(path: str) -> Any:
    if "://" not in path:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return open(path, "wb")
    from pyarrow import fs

    system, inside = fs.FileSystem.from_uri(path.replace("s3a://", "s3://", 1))
    system.create_dir(os.path.dirname(inside), recursive=True)
    return system.open_output_stream(inside)


def _open(path: str) -> Any:
    if "://" not in path:
        return open(path, "rb")
    from pyarrow import fs

    system, inside = fs.FileSystem.from_uri(path.replace("s3a://", "s3://", 1))
    return system.open_input_file(inside)


def tallied(found: Iterable[Written]) -> tuple[dict[str, list[Written]], list[int]]:
    """What tasks wrote -> the files of each table, and lines, bad ones and repeats."""
    files: dict[str, list[Written]] = {}
    tally = [0, 0, 0]
    for each in found:
        if each.table == TALLY:
            tally = [a + b for a, b in zip(tally, each[2:5], strict=True)]
            continue
        files.setdefault(each.table, []).append(each)
        if each.table == "events":
            tally[2] += each.again  # events that two tasks met
    return files, tally
