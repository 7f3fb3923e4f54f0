"""pipeline.sinks._files: parts -> files of Parquet or JSON lines, written by whoever folded them; what they wrote, listed.

An Arrow batch becomes Parquet where it is made: no row passes through the JVM. A file counts when a manifest names it,
so what a task that failed or was killed left behind is never read.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from headwater.pipeline._columns import KEPT, arrow_schema, batches_of
from headwater.pipeline.steps import PARTS, TALLY, Part, Step, tuples


class Written(NamedTuple):
    """A file of a table; or, without a name, what a task tallied."""

    table: str
    file: str
    rows: int
    bad: int = 0
    again: int = 0


WRITTEN = tuples(
    Written,
    pa.schema(
        [
            ("table", pa.string()),
            ("file", pa.string()),
            ("rows", pa.int64()),
            ("bad", pa.int64()),
            ("again", pa.int64()),
        ]
    ),
    "`table` string, file string, `rows` bigint, bad bigint, again bigint",
)


def save(root: str, form: str, folder: Callable[[str], str]) -> Step:
    """The step that writes parts below `root`, a file a table and task; `folder` says where a table's files go."""

    def run(parts: Iterator[Part]) -> Iterator[Written]:
        open_files: dict[str, _File] = {}
        tally = [0, 0, 0]
        try:
            for part in parts:
                if part.table == TALLY:
                    tally = [a + b for a, b in zip(tally, msgspec.json.decode(part.body), strict=True)]
                elif part.table in KEPT:
                    file = open_files.get(part.table)
                    if file is None:
                        name = f"{folder(part.table)}/{uuid.uuid4().hex}.{form}"
                        file = open_files[part.table] = _File(root, name, form, part.table)
                    for batch in batches_of(part.body):
                        file.write(batch)
        finally:
            for file in open_files.values():
                file.close()
        for table, file in open_files.items():
            yield Written(table, file.name, file.rows)
        if tally[0]:
            yield Written(TALLY, "", *tally)

    return Step("write", PARTS, WRITTEN, run)


class _File:
    """One file that is being written."""

    def __init__(self, root: str, name: str, form: str, table: str) -> None:
        self.name, self.rows = name, 0
        self._out = _create(f"{root.rstrip('/')}/{name}")
        self._parquet: Any = None
        if form == "parquet":
            from pyarrow import parquet

            schema = arrow_schema(KEPT[table])
            self._parquet = parquet.ParquetWriter(self._out, schema, compression="zstd", compression_level=1)

    def write(self, batch: pa.RecordBatch) -> None:
        self.rows += batch.num_rows
        if self._parquet is not None:
            self._parquet.write_batch(batch)
            return
        rows = batch.to_pylist()
        said = ({name: value for name, value in row.items() if value is not None} for row in rows)
        self._out.write(b"".join(msgspec.json.encode(row) + b"\n" for row in said))

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


def tallied(found: Iterable[Written]) -> tuple[dict[str, list[Written]], list[int]]:
    """What tasks wrote -> the files of each table, and lines, bad ones and repeats."""
    files: dict[str, list[Written]] = {}
    tally = [0, 0, 0]
    for each in found:
        if each.table == TALLY:
            tally = [a + b for a, b in zip(tally, each[2:], strict=True)]
        else:
            files.setdefault(each.table, []).append(each)
    return files, tally
