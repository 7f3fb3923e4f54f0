"""exchange.parquet: entries of the raw log <-> a Parquet file: the event as it came, and columns to filter by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from headwater.errors import ConfigError
from headwater.query.events import head_of, job_of
from headwater.store import Entry

_ROWS = 5_000
MAGIC = b"PAR1"


def _arrow() -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise ConfigError(
            "Parquet needs: pip install 'pyarrow>=18'"
        ) from None  # the extra for it brings Spark
    return pyarrow


def _schema(arrow: Any) -> Any:
    return arrow.schema(
        [
            ("number", arrow.int64()),
            ("time", arrow.timestamp("us", tz="UTC")),
            ("kind", arrow.string()),
            ("type", arrow.string()),
            ("job_namespace", arrow.string()),
            ("job_name", arrow.string()),
            ("run", arrow.string()),
            ("body", arrow.binary()),
        ]
    )


def write_parquet(
    entries: Iterable[tuple[int, Entry]], file: Path, progress: Callable[[int], None] | None = None
) -> int:
    """Write entries into one file, whole or not at all; how many there were."""
    arrow = _arrow()
    schema = _schema(arrow)
    part = file.with_name(f".{file.name}.part")
    done, source = 0, iter(entries)
    try:
        with arrow.parquet.ParquetWriter(part, schema, compression="zstd") as writer:
            while rows := [_row(number, entry) for number, entry in islice(source, _ROWS)]:
                columns = [list(column) for column in zip(*rows, strict=True)]
                writer.write_table(arrow.table(columns, schema=schema))
                done += len(rows)
                if progress is not None:
                    progress(done)
        part.replace(file)
    except OSError as fault:
        raise ConfigError(f"{file} cannot be written: {fault.strerror or fault}") from fault
    finally:
        part.unlink(missing_ok=True)
    return done


def _row(number: int, entry: Entry) -> tuple[Any, ...]:
    told = head_of(entry, number)
    namespace, name = job_of(entry)
    return number, entry.time, entry.kind, told.get("type"), namespace, name, told.get("run"), entry.raw


def is_parquet(name: str) -> bool:
    """Whether a file is one, by what it is rather than by what it is called."""
    try:
        with Path(name).open("rb") as opened:
            return opened.read(4) == MAGIC
    except OSError:
        return False


def read_parquet(name: str) -> Iterator[bytes]:
    """The events and commands of a file that `write_parquet` wrote: its column `body`."""
    arrow = _arrow()
    try:
        with arrow.parquet.ParquetFile(name) as opened:
            if "body" not in opened.schema_arrow.names:
                raise ConfigError(f"{name}: there is no column body; is it an export of a raw log?")
            for batch in opened.iter_batches(batch_size=_ROWS, columns=["body"]):
                for value in batch.column(0).to_pylist():
                    yield value if isinstance(value, bytes) else str(value).encode()
    except (arrow.ArrowInvalid, OSError) as fault:
        raise ConfigError(f"{name}: cannot be read: {fault}") from fault
