"""However rows are cut into parts and shares, what is gathered is the fold of all of them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.event import parse
from headwater.facts import TABLES, Tables, derive, fold
from headwater.pipeline import gather
from headwater.pipeline._columns import KEPT, from_arrow, pack, to_arrow
from headwater.pipeline.gather import Share, cut, gathered
from headwater.pipeline.sinks._files import Stored, reopen, save
from streams import events


def parts(stream: list[bytes], dice: random.Random) -> list[Tables]:
    """Folded rows of stretches of the stream, which overlap."""
    shuffled = [*stream, *dice.choices(stream, k=len(stream) // 2)]
    dice.shuffle(shuffled)
    cuts = sorted(dice.choices(range(len(shuffled)), k=3))
    stretches = [shuffled[a:b] for a, b in zip([0, *cuts], [*cuts, len(shuffled)], strict=True)]
    return [fold(row for each in part for row in derive(parse(each))) for part in stretches]


def spread(every: list[Tables], shares: int) -> list[Share]:
    return [
        share
        for tables in every
        for name, rows in tables.items()
        if rows
        for share in cut(name, to_arrow(name, rows), shares)
    ]


def taken(found: list[Any]) -> list[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    return [
        (name, *pair)
        for name, rows in found
        for batch in rows.to_batches()
        for pair in from_arrow(name, batch)
    ]


@given(
    stream=st.lists(events, min_size=1, max_size=30), seed=st.integers(0, 1 << 30), shares=st.integers(1, 5)
)
def test_gathered_shares_are_the_fold_of_all(stream: list[bytes], seed: int, shares: int) -> None:
    every = parts(stream, random.Random(seed))
    expected = fold(row for each in stream for row in derive(parse(each)))
    cuts = spread(every, shares)
    found: Tables = {name: {} for name in TABLES}
    for number in range(shares):
        goes = list(gathered(each for each in cuts if each.share == number))
        assert len(goes) <= 1
        for name, key, row in taken([(each.table, each.rows) for go in goes for each in go]):
            assert key not in found[name], f"{name} {key} twice"
            found[name][key] = row
    assert found == expected


@settings(max_examples=20)
@given(stream=st.lists(events, min_size=1, max_size=30), seed=st.integers(0, 1 << 30))
def test_a_share_too_large_is_folded_in_goes_and_says_so(
    tmp_path_factory: pytest.TempPathFactory, stream: list[bytes], seed: int
) -> None:
    """Nothing is lost, what is not whole is marked, and read again and gathered it is."""
    root = str(tmp_path_factory.mktemp("goes"))
    every = parts(stream, random.Random(seed))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gather, "MOST_HELD", 500)
        written = list(save(root, "parquet", lambda table: table).run(iter(spread(every, 1))))
    for each in written:
        rows = parquet.read_table(f"{root}/{each.file}")
        keys = rows.select(list(KEPT[each.table].key)).to_pylist()
        if each.whole:
            assert len({str(key) for key in keys}) == len(keys)
        assert each.rows == rows.num_rows
    again = reopen(root, "parquet", 1).run(iter([Stored(each.table, each.file) for each in written]))
    (go,) = gathered(again)
    found = fold(taken([(each.table, each.rows) for each in go]))
    assert found == fold(row for each in stream for row in derive(parse(each)))


def test_json_lines_come_back_as_they_were(tmp_path: Path) -> None:
    """Bytes, missing values and all."""
    rows = {(b"\x00\xff" * 8,): {"body": b"\xfe"}, (b"\x01" * 16,): {}}
    share = Share(0, "contents", 1, pack(to_arrow("contents", rows)))
    (written,) = save(str(tmp_path), "json", lambda table: table).run(iter([share]))
    (back,) = reopen(str(tmp_path), "json", 1).run(iter([Stored("contents", written.file)]))
    with pa.ipc.open_stream(back.body) as stream:
        assert dict(pair for batch in stream for pair in from_arrow("contents", batch)) == rows
