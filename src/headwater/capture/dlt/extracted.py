"""capture.dlt.extracted: the files that a resource's items were extracted into -> the shapes, names or query in them.

They lie in the package's folder until it is normalised. A thousand items of a file are looked at unless all are asked for:
reading all would cost as much as an eighth of the run. A table in many small files is not read whole either: from the tenth
thousand on, a tenth as many of each.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path as File

import msgspec

from headwater.capture.dlt.leaves import Shapes

SAMPLE = 1_000
_GZIP = b"\x1f\x8b"


def look(file: File, shapes: Shapes, sample: int | None = SAMPLE) -> int:
    """Add the shapes of a file of JSON lines -> how many items were looked at. A line holds an item, or a list of them."""
    seen = 0
    for line in _lines(file):
        said = msgspec.json.decode(line)
        items = said if isinstance(said, list) else [said]
        if sample is not None:
            items = items[: sample - seen]
        for item in items:
            shapes.add(item)
        seen += len(items)
        if sample is not None and seen >= sample:
            break
    return seen


def share(sample: int | None, seen: int) -> int | None:
    """How many items to look at in a table's next file, when so many were looked at before.

    >>> share(1000, 0), share(1000, 10_000), share(None, 10_000)
    (1000, 100, None)
    """
    return sample if not sample or seen < 10 * sample else max(1, sample // 10)


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
