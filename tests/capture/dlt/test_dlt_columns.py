"""Which column a field became, by an oracle that knows nothing of us: values put in, and found again in the destination.

Every value of a generated item is unique and stands at one path. After a real run the destination is searched for it; the
lineage must name exactly the pairs that were found, whatever the shape, the naming convention and the limit of nesting. Of
two fields that fall on one column, it names the ones that were loaded.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from dlt.pipeline.exceptions import PipelineStepFailed
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from oracle import loaded, values
from telling import Told, pairs

import dlt
import headwater.dlt
from headwater.capture.dlt.leaves import shown

KEYS = (
    "id",
    "Id",
    "Full Name",
    "fullName",
    "a",
    "A",
    "b",
    "a__b",
    "Größe",
    "order-id",
    "x.y",
    "VALUE",
    "value",
    "list",
    "_private",
    "99 bottles",
    "select",
    "a name that is so long that no database would take it, and that is therefore cut and given a hash of it all",
)
NAMINGS = ("snake_case", "direct", "sql_cs_v1", "sql_ci_v1", "duck_case", "s3_tables")
LEAVES = ("text", "text", "number", "null")

shapes = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from(KEYS), inner, min_size=1, max_size=4),
        st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=12,
)
items = st.lists(
    st.dictionaries(st.sampled_from(KEYS), shapes, min_size=1, max_size=6), min_size=1, max_size=4
)


def filled(shape: Any, numbers: Iterator[int]) -> Any:
    """The shape with a value of its own at every leaf."""
    if isinstance(shape, dict):
        return {key: filled(inner, numbers) for key, inner in shape.items()}
    if isinstance(shape, list):
        return [filled(inner, numbers) for inner in shape]
    number = 7_000_000 + next(numbers)
    return None if shape == "null" else number if shape == "number" else f"s{number}e"


def test_the_lineage_names_exactly_what_is_found_again(
    repeats: Callable[[int], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At scale 1 eighty shapes that dlt loads; the same each time, for a run of dlt takes a second."""
    loads = 0

    @settings(
        max_examples=repeats(90),
        derandomize=True,
        database=None,
        phases=[Phase.generate],  # a smaller example would take hundreds of runs to find
        suppress_health_check=list(HealthCheck),
    )
    @given(shape=items, naming=st.sampled_from(NAMINGS), nesting=st.sampled_from((None, 0, 1, 2, 3)))
    def one(shape: list[Any], naming: str, nesting: int | None) -> None:
        nonlocal loads
        numbers = itertools.count()
        data = [filled(each, numbers) for each in shape]
        try:
            there, told, of_json = loaded(data, naming, nesting, monkeypatch)
        except PipelineStepFailed:  # names that dlt itself cannot load: a dot in a table's name, say
            return
        loads += 1
        had_a_value = {shown(path) for item in data for _, path in values(item)}
        assert {each for each in told if each[2] in had_a_value} == there
        # a field that never had a value may be told where it is alone with its column, and inside of JSON
        others = {each[:2] for each in told if each[2] not in had_a_value}
        assert not (others - of_json) & {each[:2] for each in there}

    one()
    assert loads >= repeats(90) * 0.7  # else it is dlt's refusals that were tried


def framed(names: list[str], form: str, numbers: Iterator[int]) -> tuple[Any, dict[str, str]]:
    """A table with a value of its own in every cell, plain, in lists and in structs -> it, and value -> column."""
    cells: dict[str, str] = {}
    columns: dict[str, Any] = {}
    for at, name in enumerate(names):
        fresh = [f"s{7_000_000 + next(numbers)}e" for _ in range(2)]
        cells |= {each.strip("se"): name for each in fresh}
        if form != "pandas" and at % 3 == 1:
            columns[name] = pa.array([[each] for each in fresh])
        elif form != "pandas" and at % 3 == 2:
            columns[name] = pa.array([{"In Side": each} for each in fresh])
        else:
            columns[name] = pa.array(fresh)
    table = pa.table(columns)
    made = {"arrow": table, "batch": table.to_batches()[0]}.get(form)
    return table.to_pandas() if made is None else made, cells


def test_columns_of_arrow_tables_and_frames_by_the_names_they_had(
    repeats: Callable[[int], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    loads = 0

    @settings(
        max_examples=repeats(40),
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(
        names=st.lists(st.sampled_from(KEYS), min_size=1, max_size=6, unique=True),
        form=st.sampled_from(("arrow", "batch", "pandas")),
        naming=st.sampled_from(NAMINGS),
    )
    def one(names: list[str], form: str, naming: str) -> None:
        nonlocal loads
        data, cells = framed(names, form, itertools.count())
        try:
            there, told, _ = loaded([data], naming, None, monkeypatch, cells)
        except PipelineStepFailed:  # two names that fall on one: dlt refuses them in tables
            return
        loads += 1
        assert told == there != set()

    one()
    assert loads >= repeats(40) * 0.5


def test_a_column_of_json_comes_from_everything_inside(told: Told, duck: Any) -> None:
    rows = [{"id": 1, "address": {"City": "Rome", "geo": [{"Lat": 1.0}]}}]
    duck().run(dlt.resource(rows, name="users", columns={"address": {"data_type": "json"}}))
    assert {(column, field) for _, column, _, field in pairs(told.end())} == {
        ("id", "id"),
        ("address", "address.City"),
        ("address", "address.geo[*].Lat"),
    }
    fields = told.end()["outputs"][0]["facets"]["columnLineage"]["fields"]
    assert {each["transformations"][0]["subtype"] for each in fields["address"]["inputFields"]} == {
        "TRANSFORMATION"
    }
    assert fields["id"]["inputFields"][0]["transformations"][0]["subtype"] == "IDENTITY"


def test_what_dlt_makes_itself_is_marked_so_and_what_was_not_seen_is_said(told: Told, duck: Any) -> None:
    headwater.dlt.uninstall()
    headwater.dlt.install(transport=f"file://{told.file}", sample=2)
    rows = [{"id": at} for at in range(5)] + [{"id": 9, "late": 1}]
    duck().run(dlt.resource([[each] for each in rows], name="t"))
    facet = told.end()["outputs"][0]["facets"]["dlt_table"]
    assert facet["generated_columns"] == ["_dlt_load_id", "_dlt_id"]
    assert facet["columns_of_unknown_source"] == ["late"]
    assert facet["why"] == "not among the items that were looked at"


def test_sample_nought_looks_at_everything(told: Told, duck: Any) -> None:
    headwater.dlt.uninstall()
    headwater.dlt.install(transport=f"file://{told.file}", sample=0)
    duck().run(dlt.resource([[{"id": at}] for at in range(3)] + [[{"id": 9, "late": 1}]], name="t"))
    assert ("t", "late", "dlt/t", "late") in pairs(told.end())


@pytest.mark.parametrize("contract", ["discard_value", "discard_row"])
def test_a_field_that_the_schema_refuses_is_no_source(told: Told, duck: Any, contract: Any) -> None:
    pipeline = duck()
    pipeline.run(dlt.resource([{"Order ID": 1, "note": "a"}], name="t"))
    told.clear()
    rows = [{"Order ID": 2, "note": "b"}, {"Order ID": 3, "Secret": "s7000001e"}]
    pipeline.run(dlt.resource(rows, name="t", schema_contract={"columns": contract}))
    with pipeline.sql_client() as client:
        loaded_rows = client.execute_sql("SELECT * FROM t")
    assert "s7000001e" not in str(loaded_rows)
    assert len(loaded_rows) == (3 if contract == "discard_value" else 2)
    assert pairs(told.end()) == {("t", "order_id", "dlt/t", "Order ID"), ("t", "note", "dlt/t", "note")}


def test_what_add_map_makes_of_items_is_what_is_told(told: Told, duck: Any) -> None:
    rows = dlt.resource([{"a": 1, "b": 2}], name="t").add_map(lambda item: {"Sum Of": item["a"] + item["b"]})
    duck().run(rows)
    assert pairs(told.end()) == {("t", "sum_of", "dlt/t", "Sum Of")}


def test_tables_that_are_named_by_their_items(told: Told, duck: Any) -> None:
    rows = [{"kind": "click", "X Pos": 1}, {"kind": "view", "Page": "a"}]
    duck().run(dlt.resource(rows, name="events", table_name=lambda item: f"ev_{item['kind']}"))
    assert pairs(told.end()) == {
        ("ev_click", "kind", "dlt/events", "kind"),
        ("ev_click", "x_pos", "dlt/events", "X Pos"),
        ("ev_view", "kind", "dlt/events", "kind"),
        ("ev_view", "page", "dlt/events", "Page"),
    }
