"""pipeline.session: a master's url and settings -> a Spark session, with this package on its workers."""

from __future__ import annotations

import os
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.errors import NotInstalled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.python.worker.reuse": "true",
    "spark.driver.memory": "2g",
    # the log of each Delta table is read in so many tasks, 50 by default, though its tables are small and many
    "spark.databricks.delta.snapshotPartitions": "4",
    # events of a topic or a table come in pieces that a worker can hold
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),
}


def open_session(
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    app: str = "headwater-pipeline",
    *,
    alone: bool = False,
) -> SparkSession:
    """A session for the pipeline.

    Args:
        master: Spark's master, `local[*]` where nothing is said.
        conf: Spark's own settings; they go before ours.
        app: the application's name.
        alone: nothing but the pipeline runs in the session: then what Python workers need is loaded once for all of them, and
            pandas, which pyarrow would load too, not at all.

    """
    try:
        from pyspark.sql import SparkSession
    except ModuleNotFoundError as fault:
        raise NotInstalled("the pipeline", "pipeline") from fault
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else any `python3`, perhaps without pyarrow
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    where = master or "local[*]"
    builder = SparkSession.builder.appName(app).master(where)
    settings = {**DEFAULTS, **(conf or {})}
    if where.startswith("local") or "127.0.0.1" in where or "localhost" in where:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        settings = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", **settings}
    if where.startswith("local"):
        settings.setdefault("spark.sql.shuffle.partitions", str(4 * (os.cpu_count() or 2)))
        if alone:  # workers elsewhere get this package with their first task, too late for their daemon
            settings.setdefault("spark.python.daemon.module", "headwater.pipeline._daemon")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    if not where.startswith("local"):
        ship(spark)
    return spark


def ship(spark: SparkSession) -> None:
    """Send this package to the workers; msgspec, zstandard and pyarrow they must have themselves."""
    root = Path(__file__).parents[1]
    folder = Path(tempfile.mkdtemp(prefix="headwater-"))
    target = folder / "headwater_package.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
        for each in sorted(root.rglob("*")):
            if each.is_file() and "__pycache__" not in each.parts:
                packed.write(each, Path("headwater") / each.relative_to(root))
    spark.sparkContext.addPyFile(str(target))
