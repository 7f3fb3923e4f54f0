"""pipeline.sinks.datahub: parts -> DataHub, the events of each run group put together by the fold that the server and hosts use.

Each partition folds what it has, so a shuffle carries one row per group and partition; what comes together is told from the
workers. With `state`, a directory, groups that reach over batches are told with what earlier batches brought, as a stream
needs it; the same batch again changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from headwater.deliver.datahub import Converter, make
from headwater.deliver.datahub.told import Told
from headwater.deliver.datahub.transport import DataHubTransport
from headwater.errors import ConfigError, EventError, TransportError
from headwater.event import parse
from headwater.pipeline._workers import over_arrow
from headwater.pipeline.merge import rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_KINDS = ("run", "job", "dataset")
_TOLD = pa.schema([("key", pa.string()), ("told", pa.binary())])
_DONE = pa.schema([("proposals", pa.int64()), ("reason", pa.string()), ("refused", pa.binary())])
_BATCH = 1000
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Told).decode


class DataHub:
    """Tells DataHub what events say.

    Args:
        url: `datahub+rest://…` and its kin; every worker must reach it.
        options: how events become proposals, as in docs/datahub.md.
        coalesce: what is put together.
        state: a directory that Spark can write to, for groups that reach over batches.
        refused: a directory for proposals that DataHub refuses, with why; without it a warning counts them.
        transport: options of that transport.

    """

    keeps_log = True
    lacks: frozenset[str] = frozenset()

    def __init__(
        self,
        url: str,
        *,
        options: Mapping[str, Any] | str | None = None,
        coalesce: str = "application",
        state: str | None = None,
        refused: str | None = None,
        **transport: Any,
    ) -> None:
        self.url = url
        told = msgspec.json.decode(options) if isinstance(options, str) else dict(options or {})
        made = make(told)
        if not made.mended().group_aliases:
            raise ConfigError(
                "options: compat needs events in their order, which Spark does not keep: use datahub emit"
            )
        self._options, self._by, self._state, self._refused = told, coalesce, state, refused
        self._transport = {**transport, "coalesce": "none", "options": {"max_string": made.max_string}}
        Converter(made, coalesce)
        DataHubTransport(url, **self._transport).close()  # what is wrong is told here, not by a worker

    def write(self, parts: DataFrame, batch: str, counts: Mapping[str, int]) -> dict[str, int]:
        """Tell every group that the batch brought something for."""
        from pyspark.sql import functions as F  # noqa: N812

        log = rows_of(parts, "log").where(F.col("kind").isin(*_KINDS)).select("raw")
        told = over_arrow(log, partial(_fold, self._options, self._by), "key string, told binary")
        spark = parts.sparkSession
        if self._state is not None:
            told.write.mode("overwrite").parquet(f"{self._state}/batch={batch}")
            fresh = spark.read.parquet(f"{self._state}/batch={batch}").select("key").distinct()
            told = spark.read.parquet(self._state).select("key", "told").join(fresh, "key", "left_semi")
        ordered = told.repartition("key").sortWithinPartitions("key")
        telling = partial(_tell, self._options, self._by, self.url, self._transport)
        done = over_arrow(ordered, telling, "proposals bigint, reason string, refused binary").persist()
        try:
            sums = done.agg(
                F.sum("proposals"), F.count("reason"), F.first("reason", ignorenulls=True)
            ).first()
            if sums is not None and sums[1]:
                self._keep(done, int(sums[1]), str(sums[2]))
            return {"proposals": int(sums[0] or 0) if sums is not None else 0}
        finally:
            done.unpersist()

    def _keep(self, done: DataFrame, count: int, reason: str) -> None:
        import logging

        from pyspark.sql import functions as F  # noqa: N812

        if self._refused is not None:
            rows = done.where(F.col("reason").isNotNull())
            text = rows.select("reason", F.col("refused").cast("string").alias("refused"))
            text.write.mode("append").json(self._refused)
        logging.getLogger("headwater").warning("DataHub refused %d of a batch, the first: %s", count, reason)

    def rows(self, spark: SparkSession, table: str) -> DataFrame:
        """DataHub is written to, not read."""
        raise ConfigError("DataHub keeps no tables of ours: read another sink")

    def compact(self, spark: SparkSession) -> dict[str, int]:
        """What `state` holds of many batches, as if one had brought it."""
        if self._state is None:
            return {}
        state = spark.read.parquet(self._state).select("key", "told")
        ordered = state.repartition("key").sortWithinPartitions("key")
        whole = over_arrow(ordered, _joined, "key string, told binary")
        whole.write.mode("overwrite").parquet(f"{self._state}~")
        kept = spark.read.parquet(f"{self._state}~")
        kept.write.mode("overwrite").parquet(f"{self._state}/batch=compacted")
        return {"groups": kept.count()}

    def status(self, spark: SparkSession) -> dict[str, Any]:
        """Where it leads."""
        return {"url": self.url, "state": self._state}


Batches = Iterable[pa.RecordBatch]


def _fold(options: Mapping[str, Any], by: str, batches: Batches) -> Iterator[pa.RecordBatch]:
    """Events of a partition -> its groups, each once."""
    converter = Converter(make(options), by)
    groups: dict[str, Any] = {}
    for batch in batches:
        for raw in batch.column(0).to_pylist():
            try:
                told = converter.read(parse(raw))
            except EventError:  # it is in the quarantine
                continue
            key = f"{told.kind}\n{told.group}" + (f"\n{told.stamp[3].hex()}" if by == "none" else "")
            groups.setdefault(key, converter.group()).add(told)
    rows = [(key, _encode(group.told)) for key, group in groups.items()]
    for start in range(0, len(rows), _BATCH):
        part = rows[start : start + _BATCH]
        yield pa.RecordBatch.from_pydict(
            {"key": [key for key, _ in part], "told": [told for _, told in part]}, schema=_TOLD
        )


def _pairs(batches: Batches) -> Iterator[tuple[str, bytes]]:
    for batch in batches:
        yield from zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)


def _joined(batches: Batches) -> Iterator[pa.RecordBatch]:
    """Rows in the order of their keys -> one a group."""
    converter = Converter()
    for key, rows in groupby(_pairs(batches), key=lambda pair: pair[0]):
        group = converter.group()
        for _, told in rows:
            group.add(_decode(told))
        yield pa.RecordBatch.from_pydict({"key": [key], "told": [_encode(group.told)]}, schema=_TOLD)


def _tell(
    options: Mapping[str, Any], by: str, url: str, given: Mapping[str, Any], batches: Batches
) -> Iterator[pa.RecordBatch]:
    """Rows in the order of their keys -> their groups told; how many proposals, and which were refused."""
    converter, transport = Converter(make(options), by), DataHubTransport(url, **given)
    waiting: list[bytes] = []
    try:
        for _, rows in groupby(_pairs(batches), key=lambda pair: pair[0]):
            group = converter.group()
            for _, told in rows:
                group.add(_decode(told))
            result = group.result()
            waiting += [msgspec.json.encode(each) for each in converter.propose(result)] if result else []
            if len(waiting) >= _BATCH:
                yield _sent(transport, waiting)
                waiting = []
        if waiting:
            yield _sent(transport, waiting)
    finally:
        transport.close()


def _sent(transport: DataHubTransport, payloads: list[bytes]) -> pa.RecordBatch:
    refused: list[tuple[str, bytes]] = []
    try:
        transport.send(payloads)
    except TransportError as fault:
        if fault.pending:
            raise
        refused = list(fault.letters)
    count = len(payloads) - len(refused)
    return pa.RecordBatch.from_pydict(
        {
            "proposals": [count, *(0 for _ in refused)],
            "reason": [None, *(reason for reason, _ in refused)],
            "refused": [None, *(made for _, made in refused)],
        },
        schema=_DONE,
    )
