"""Items -> their shapes: what is kept of them, and how much."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.capture.dlt import leaves
from headwater.capture.dlt.extracted import look, share
from headwater.capture.dlt.leaves import Shapes, shape_of


def test_a_shape_holds_kinds_and_no_value() -> None:
    item = {"id": 7, "ok": True, "at": "\uf0272026-01-01", "name": "Ann", "geo": {"lat": 1.5}, "none": None}
    assert shape_of(item) == {
        "id": "bigint",
        "ok": "bool",
        "at": "timestamp",
        "name": "text",
        "geo": {"lat": "double"},
        "none": None,
    }


def test_elements_of_a_list_that_look_alike_are_one() -> None:
    assert shape_of([{"a": 1}, {"a": 2}, {"a": None}, "x", "y", []]) == [{"a": "bigint"}, {"a": None}, "text", []]  # fmt: skip


def test_the_order_of_keys_makes_another_shape_for_the_last_of_two_names_wins() -> None:
    shapes = Shapes()
    for item in ({"a": 1, "A": 2}, {"A": 1, "a": 2}, {"a": 3, "A": 4}):
        shapes.add(item)
    assert [list(each) for each in shapes.told()] == [["a", "A"], ["A", "a"]]


def test_items_whose_keys_are_data_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaves, "MOST_PATHS", 20)
    shapes = Shapes()
    for at in range(1_000):
        shapes.add({f"key{at}": 1})
    assert len(shapes.told()) == 20


def test_beyond_the_most_a_shape_is_kept_for_what_is_new_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaves, "MOST_SHAPES", 2)
    shapes = Shapes()
    for item in ({"a": 1}, {"b": 1}, {"a": 1, "b": 1}, {"a": 1, "c": 1}):
        shapes.add(item)
    assert shapes.told() == [{"a": "bigint"}, {"b": "bigint"}, {"a": "bigint", "c": "bigint"}]


def test_a_sample_stops_inside_of_a_line_and_many_files_get_less_of_it(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    file.write_text('[{"a": 1}, {"b": 1}]\n[{"c": 1}, {"d": 1}]\n')
    shapes = Shapes()
    assert look(file, shapes, 3) == 3
    assert [list(each) for each in shapes.told()] == [["a"], ["b"], ["c"]]
    assert look(file, Shapes(), None) == 4
    assert [share(10, seen) for seen in (0, 99, 100, 5_000)] == [10, 10, 1, 1]
