"""pipeline.sinks.lake: batches -> delta://dir or iceberg://catalog.db, merged into tables by MERGE, from the rules."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from headwater.errors import ConfigError
from headwater.facts.tables import Rule, Table
from headwater.pipeline._columns import KEPT, columns, ddl
from headwater.pipeline._workers import frame_of
from headwater.pipeline.merge import merge, rows_of
from headwater.pipeline.sinks._directory import Directory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")
_AT_ONCE = 4
"""Tables merged, rewritten or counted at the same time: each is mostly waiting."""


def statement(target: str, source: str, table: Table) -> str:
    """The MERGE that brings folded rows of `source` into `target`, written from the table's rules."""
    on = " AND ".join(f"t.`{name}` = s.`{name}`" for name in table.key)
    sets: list[str] = []
    for name, column in table.columns.items():
        mine, yours = f"t.`{name}`", f"s.`{name}`"
        if column.rule is Rule.LATEST:
            at, new = f"t.`{name}_at`", f"s.`{name}_at`"
            newer = f"({new} IS NOT NULL AND ({at} IS NULL OR {new} > {at} OR ({new} = {at} AND {yours} > {mine})))"
            sets.append(f"{at} = CASE WHEN {newer} THEN {new} ELSE {at} END")
            sets.append(f"{mine} = CASE WHEN {newer} THEN {yours} ELSE {mine} END")
        else:
            better = f"{yours} < {mine}" if column.rule is Rule.MIN else f"{yours} > {mine}"
            sets.append(f"{mine} = CASE WHEN {mine} IS NULL OR {better} THEN {yours} ELSE {mine} END")
    matched = f" WHEN MATCHED THEN UPDATE SET {', '.join(sets)}" if sets else ""
    names = ", ".join(f"`{name}`" for name in columns(table))
    values = ", ".join(f"s.`{name}`" for name in columns(table))
    return (
        f"MERGE INTO {target} AS t USING {source} AS s ON {on}{matched}"
        f" WHEN NOT MATCHED THEN INSERT ({names}) VALUES ({values})"
    )


def _each(what: Callable[[str], T], tables: Iterable[str]) -> list[T]:
    """What is made of each table, some of them at once."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(what, tables))


class _Lake(ABC):
    """Tables that take a MERGE. Merging twice changes nothing, so a batch may come again."""

    keeps_log = False
    lacks: frozenset[str] = frozenset()

    def __init__(self, url: str) -> None:
        form, _, self._where = url.partition("://")
        self.url = url
        if not self._where.strip("/"):
            raise ConfigError(f"sink {url!r} names no place: write {form}://…")

    @abstractmethod
    def _name(self, table: str) -> str:
        """The table as SQL names it."""

    @abstractmethod
    def _exists(self, spark: SparkSession, table: str) -> bool:
        """Whether the table is there: the first batch with rows of it makes it."""

    @abstractmethod
    def _create(self, spark: SparkSession, table: str) -> None:
        """Make the table."""

    @abstractmethod
    def _rewrite(self, spark: SparkSession, table: str) -> None:
        """Make few large files of many small ones."""

    def write(self, parts: DataFrame, batch: str, counts: Mapping[str, int]) -> dict[str, int]:
        """Merge the batch's rows, table by table."""
        spark = parts.sparkSession
        done = {name: counts[name] for name in KEPT if counts.get(name)}

        def one(name: str) -> None:
            view = f"headwater_{name}"
            merge(rows_of(parts, name), KEPT[name]).createOrReplaceTempView(view)
            if self._exists(spark, name):
                spark.sql(statement(self._name(name), view, KEPT[name]))
            else:  # nothing to merge with yet
                self._create(spark, name)
                spark.sql(f"INSERT INTO {self._name(name)} SELECT * FROM {view}")
            spark.catalog.dropTempView(view)

        _each(one, done)
        return done

    def rows(self, spark: SparkSession, table: str) -> DataFrame:
        """A table as it is merged."""
        if not self._exists(spark, table):
            return frame_of(spark, [], ddl(KEPT[table]))
        return spark.sql(f"SELECT * FROM {self._name(table)}")

    def compact(self, spark: SparkSession) -> dict[str, int]:
        """Let the format rewrite its small files; the rows are merged already."""

        def one(name: str) -> None:
            if self._exists(spark, name):
                self._rewrite(spark, name)

        _each(one, KEPT)
        return self.status(spark)["rows"]  # type: ignore[no-any-return]

    def status(self, spark: SparkSession) -> dict[str, Any]:
        """How many rows each table has."""
        counts = _each(lambda name: self.rows(spark, name).count() if self._exists(spark, name) else 0, KEPT)
        return {"rows": dict(zip(KEPT, counts, strict=True))}


class Delta(_Lake):
    """Delta tables below a directory.

    Args:
        url: `delta:///data/lineage`; the session needs Delta's jar, extension and catalog.

    """

    def _name(self, table: str) -> str:
        return f"delta.`{self._where.rstrip('/')}/{table}`"

    def _exists(self, spark: SparkSession, table: str) -> bool:
        return Directory(spark, self._where).exists(f"{table}/_delta_log")

    def _create(self, spark: SparkSession, table: str) -> None:
        spark.sql(f"CREATE TABLE IF NOT EXISTS {self._name(table)} ({ddl(KEPT[table])}) USING delta")

    def _rewrite(self, spark: SparkSession, table: str) -> None:
        spark.sql(f"OPTIMIZE {self._name(table)}")


class Iceberg(_Lake):
    """Iceberg tables in a namespace of a catalog.

    Args:
        url: `iceberg://catalog.db`; the session needs Iceberg's jar, extensions and that catalog.

    """

    def _name(self, table: str) -> str:
        return f"{self._where}.{table}"

    def _exists(self, spark: SparkSession, table: str) -> bool:
        return bool(spark.catalog.tableExists(self._name(table)))

    def _create(self, spark: SparkSession, table: str) -> None:
        spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {self._where}")
        spark.sql(f"CREATE TABLE IF NOT EXISTS {self._name(table)} ({ddl(KEPT[table])}) USING iceberg")

    def _rewrite(self, spark: SparkSession, table: str) -> None:
        catalog, _, rest = self._where.partition(".")
        spark.sql(f"CALL {catalog}.system.rewrite_data_files(table => '{rest}.{table}')")
