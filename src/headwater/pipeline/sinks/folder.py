"""pipeline.sinks.folder: parts -> parquet://dir or jsonl://dir, a folder a table, a day and a batch.

A batch counts when its manifest stands in `_batches`, which is written last and names its files: one that was cut off
is not seen, and is written anew. A batch is folded in the job that writes it. Rows of several batches may have one key,
so reading folds; `compact` leaves one batch, whose manifest names those it replaces. Their files go at the next compaction, so whoever reads
meanwhile goes on.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.errors import ConfigError
from headwater.pipeline._columns import KEPT, ddl
from headwater.pipeline._workers import frame_of
from headwater.pipeline.gather import MOST_HELD, share_count, spread
from headwater.pipeline.merge import merge
from headwater.pipeline.sinks._directory import Directory
from headwater.pipeline.sinks._files import STORED, Written, reopen, save, tallied
from headwater.pipeline.steps import AnyStep, apply

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FORMATS = {"parquet": "parquet", "jsonl": "json"}
_MANIFESTS = "_batches"
_BYTES_A_SHARE = MOST_HELD // 4
"""Of rows, unpacked: what a task folds at once when they are compacted, with room for shares that differ."""
_BYTES_A_ROW = 100
"""Of events: what a row stands for, roughly, where only rows were counted."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a batch wrote."""

    batch: str
    at: int
    day: str
    attempt: str
    """Each try writes beside the others: one that was killed, and ends late, spoils no other."""
    tables: dict[str, int]
    """Each table and how many rows of it."""
    files: dict[str, list[str]] = field(default_factory=dict)
    """The files of each table, below the sink's directory."""
    tally: list[int] = field(default_factory=list)
    """Lines, those refused, repeats."""
    replaces: list[str] = field(default_factory=list)
    """The batches that this one stands for, after a compaction."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Bytes of the rows of each table, unpacked."""
    folded: list[str] = field(default_factory=list)
    """The tables in which no key stands twice."""

    @property
    def whole(self) -> bool:
        """Whether all its tables are folded."""
        return self.tables.keys() <= set(self.folded)

    def folder(self, table: str) -> str:
        """Where its rows of a table are."""
        return f"{table}/day={self.day}/batch={self.batch}.{self.attempt}"


class Folder:
    """A directory of partial rows.

    Args:
        url: `parquet://dir` or `jsonl://dir`; `dir` may name any filesystem: `parquet://s3a://lake/lineage`.

    """

    keeps_log = False
    lacks: frozenset[str] = frozenset()

    def __init__(self, url: str) -> None:
        form, _, self._path = url.partition("://")
        self.url, self._format = url, _FORMATS[form]
        if not self._path.strip("/"):
            raise ConfigError(f"sink {url!r} names no directory: write {form}:///data/lineage")

    def write(self, parts: DataFrame, batch: str, counts: Mapping[str, int]) -> dict[str, int]:
        """Append a batch's folded rows; nothing, where it was written before."""
        saving = self.saving(parts.sparkSession, batch, _BYTES_A_ROW * sum(counts.values()))
        return saving.finish(apply(parts, saving.steps))[0]

    def saving(self, spark: SparkSession, batch: str, size: int = 0) -> _Try:
        """A try to write a batch, in the same job in which its parts are made."""
        shares = share_count(size, spark.sparkContext.defaultParallelism)
        found = _Try(self._path, self._format, Directory(spark, self._path), _manifest(batch), shares)
        found.steps = (spread(shares), *found.steps)
        return found

    def batches(self, spark: SparkSession) -> list[Manifest]:
        """The batches that count, oldest first."""
        found = _manifests(Directory(spark, self._path))
        gone = {batch for each in found for batch in each.replaces}
        return sorted((each for each in found if each.batch not in gone), key=lambda each: each.at)

    def rows(self, spark: SparkSession, table: str) -> DataFrame:
        """A table, folded."""
        wanted = KEPT[table]
        batches = [each for each in self.batches(spark) if each.tables.get(table)]
        schema = ddl(wanted)
        if not batches:
            return frame_of(spark, [], schema)
        files = [f"{self._path}/{file}" for each in batches for file in each.files[table]]
        frame = spark.read.format(self._format).schema(schema).load(files)
        if len(batches) == 1 and batches[0].whole:
            return frame
        return merge(frame, wanted)

    def compact(self, spark: SparkSession) -> dict[str, int]:
        """Fold all batches into one; the files of those replaced by the compaction before go."""
        directory = Directory(spark, self._path)
        batches = self.batches(spark)
        if not batches:
            return {}
        self._sweep(directory, {each.batch for each in batches})
        if len(batches) == 1 and batches[0].whole:
            return batches[0].tables
        size = sum(sum(each.sizes.values()) for each in batches)
        shares = max(spark.sparkContext.defaultParallelism, size // _BYTES_A_SHARE)
        manifest = _manifest(f"compact-{time.time_ns()}", [each.batch for each in batches])
        found = _Try(self._path, self._format, directory, manifest, shares)
        files = [(table, file) for each in batches for table in each.files for file in each.files[table]]
        listed = frame_of(spark, files, STORED.schema).repartition(max(1, min(len(files), shares)))
        again = reopen(self._path, self._format, shares)
        return found.finish(apply(listed, (again, *found.steps)))[0]

    @staticmethod
    def _sweep(directory: Directory, counting: set[str]) -> None:
        """Delete what compactions before this one replaced, and what tries that were cut off left days ago."""
        known = _manifests(directory)
        kept = {each.folder(table) for each in known if each.batch in counting for table in each.tables}
        replaced = {
            each.folder(table) for each in known if each.batch not in counting for table in each.tables
        }
        recent = (datetime.now(timezone.utc) - timedelta(days=2)).strftime("day=%Y-%m-%d")
        for table in KEPT:
            for day in directory.names(table):
                for name in directory.names(f"{table}/{day}"):
                    folder = f"{table}/{day}/{name}"
                    if folder in replaced or (day < recent and folder not in kept):
                        directory.delete(folder)

    def status(self, spark: SparkSession) -> dict[str, Any]:
        """Batches, bytes, and how many partial rows each table has."""
        batches = self.batches(spark)
        tables: dict[str, int] = {}
        for each in batches:
            for table, rows in each.tables.items():
                tables[table] = tables.get(table, 0) + rows
        directory = Directory(spark, self._path)
        last = max((each.at for each in batches), default=None)
        return {
            "batches": len(batches),
            "bytes": sum(directory.size(each.folder(table)) for each in batches for table in each.tables),
            "last": None if last is None else datetime.fromtimestamp(last / 1e6, timezone.utc).isoformat(),
            "partial_rows": tables,
        }


class _Try:
    """One try to write a batch."""

    def __init__(self, path: str, form: str, directory: Directory, manifest: Manifest, shares: int) -> None:
        self._path, self._directory, self._manifest = path, directory, manifest

        def gather(frame: DataFrame) -> DataFrame:
            return frame.repartitionById(shares, "share")

        self.steps: tuple[AnyStep, ...] = (gather, save(path, form, manifest.folder))

    def finish(self, written: DataFrame) -> tuple[dict[str, int], list[int]]:
        """Write, and let it count; nothing is written where the batch was there before."""
        directory, manifest = self._directory, self._manifest
        if directory.exists(f"{_MANIFESTS}/{manifest.batch}.json"):
            known = _read(directory, manifest.batch)
            return known.tables, known.tally
        # the list of files is itself written by Spark: so a capture of its lineage sees what was read and, the
        # batch being a partition like any other, this directory as what was written
        listed = f"batch={manifest.batch}.{manifest.attempt}"
        written.write.mode("overwrite").json(f"{self._path}/{listed}")
        files, manifest.tally[:] = tallied(_listed(directory, listed))
        for table, found in files.items():
            manifest.tables[table] = sum(each.rows for each in found)
            manifest.sizes[table] = sum(each.size for each in found)
            manifest.files[table] = [each.file for each in found]
            if all(each.whole for each in found):
                manifest.folded.append(table)
        _commit(directory, manifest)
        directory.delete(listed)
        return manifest.tables, manifest.tally


def _commit(directory: Directory, manifest: Manifest) -> None:
    directory.write(f"{_MANIFESTS}/{manifest.batch}.json", msgspec.json.encode(manifest))


def _manifest(batch: str, replaces: list[str] | None = None) -> Manifest:
    now = datetime.now(timezone.utc)
    day, attempt = now.strftime("%Y-%m-%d"), uuid.uuid4().hex[:8]
    return Manifest(batch, int(now.timestamp() * 1e6), day, attempt, {}, replaces=replaces or [])


def _manifests(directory: Directory) -> list[Manifest]:
    names = directory.names(_MANIFESTS)
    return [_read(directory, name.removesuffix(".json")) for name in names if name.endswith(".json")]


def _read(directory: Directory, batch: str) -> Manifest:
    return msgspec.json.decode(directory.read(f"{_MANIFESTS}/{batch}.json"), type=Manifest)


def _listed(directory: Directory, folder: str) -> list[Written]:
    lines = (
        line
        for name in directory.names(folder)
        if name.startswith("part-")
        for line in directory.read(f"{folder}/{name}").splitlines()
    )
    return [Written(**msgspec.json.decode(line)) for line in lines]
