"""pipeline.rebuild: a serving store's own log -> all its tables anew, beside it; then taken in, in one transaction.

The server stays up. Readers see the old tables until the new ones are taken in; what was written to the log meanwhile
is derived then, so nothing is missing.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.errors import ConfigError
from headwater.ingest import rows_of
from headwater.pipeline.flow import Report, run
from headwater.pipeline.sinks.serving import Serving
from headwater.pipeline.sources.log import Log
from headwater.store import open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def rebuild(spark: SparkSession, store: str) -> Report:
    """Make every table of a store anew from its log while it is in use.

    Args:
        spark: a session.
        store: the store's url, `sqlite:///…`; its directory must have room for a second one.

    """
    if not store.startswith("sqlite:"):
        raise ConfigError(f"store {store!r}: only a store in a SQLite file can be rebuilt beside itself")
    place = Path(store.partition("?")[0].removeprefix("sqlite:///")).expanduser()
    if not place.is_file():
        raise ConfigError(f"store {store}: there is no file {place}")
    with tempfile.TemporaryDirectory(prefix=f".{place.name}.rebuild-", dir=place.parent) as folder:
        beside = Path(folder) / "store.db"
        source = Log(store)
        report = run(spark, source, Serving(f"sqlite:///{beside}", log=False, synchronous="off"))
        live = open_store(store)
        try:
            with report.timed("swap"):
                live.adopt(beside, source.last, rows_of)
        finally:
            live.close()
    return report
