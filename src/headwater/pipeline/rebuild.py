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
        store: the store's url; beside a SQLite file, or for Postgres in the temporary directory, there must be
            room for a second one.

    """
    if store.startswith("postgresql:"):
        place: Path | None = None  # the new tables are made in a temporary directory
    elif store.startswith("sqlite:"):
        place = Path(store.partition("?")[0].removeprefix("sqlite:///")).expanduser()
        if not place.is_file():
            raise ConfigError(f"store {store}: there is no file {place}")
    else:
        raise ConfigError(f"store {store!r}: only a store in a SQLite file or in Postgres can be rebuilt")
    name, folder_of = (f".{place.name}.rebuild-", place.parent) if place else ("headwater-rebuild-", None)
    with tempfile.TemporaryDirectory(prefix=name, dir=folder_of) as folder:
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
