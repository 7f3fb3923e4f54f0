"""dictionary: events of every kind -> the pieces that they have in common, for packing bodies in a store.

    python scripts/dictionary.py src/headwater/store/NAME.zdict

A packed body can only be read with its dictionary, so a file that a release has shipped is never written anew: make another, and let
`store/_packing.py` read both.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import zstandard

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "bench"))

from company import Month, Size  # noqa: E402
from headwater.cli.demo import recorded  # noqa: E402

SIZE = 8192  # more saves less of events that are unlike the examples


def examples() -> Iterator[bytes]:
    """Events as the captures of the house, Airflow and others tell them."""
    yield from recorded()
    yield from (ROOT / "tests" / "golden" / "names_and_versions" / "events.jsonl").read_bytes().splitlines()
    yield from (line for _, line in islice(Month(Size.of(2_000)).arrivals(), 1_000))


def main(target: Path) -> None:
    """Write a dictionary that does not exist yet."""
    if target.exists():
        sys.exit(
            f"{target} exists, and what is packed with it could not be read any more: choose another name"
        )
    made = zstandard.train_dictionary(SIZE, list(examples()), level=1)
    target.write_bytes(made.as_bytes())
    print(f"{target}: {len(made.as_bytes())} bytes, number {made.dict_id()}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
