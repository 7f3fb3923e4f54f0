"""capture.dlt.extracted: the files that a resource's items were extracted into -> the paths, names or query in them.

They lie in the package's folder until it is normalised. A thousand items of a file are looked at unless all are asked for:
reading all would cost as much as an eighth of the run.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path as File

import msgspec

from headwater.capture.dlt.leaves import Path, collect

SAMPLE = 1_000
_GZIP = b"\x1f\x8b"


def paths_of(file: File, sample: int | None = SAMPLE) -> set[Path]:
    """The paths in a file of JSON lines; a line holds an item, or a list of them."""
    found: set[Path] = set()
    left = sample
    for line in _lines(file):
        said = msgspec.json.decode(line)
        items = said if isinstance(said, list) else [said]
        for item in items if left is None else items[:left]:
            collect(item, found)
        if left is not None:
            left -= len(items)
            if left <= 0:
                break
    return found


def names_of(file: File) -> list[str]:
    """The columns of a Parquet file."""
    from pyarrow import parquet

    return [str(name) for name in parquet.read_schema(file).names]


def text_of(file: File) -> str:
    """A file of text, whole: the query of a model."""
    return b"".join(_lines(file)).decode("utf-8", "replace")


def _lines(file: File) -> Iterator[bytes]:
    with file.open("rb") as raw:
        packed = raw.read(2) == _GZIP
        raw.seek(0)
        with gzip.GzipFile(fileobj=raw) if packed else nullcontext(raw) as lines:
            yield from (line for line in lines if line.strip())
