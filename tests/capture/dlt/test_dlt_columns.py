"""Which column a field became, by an oracle that knows nothing of us: values put in, and found again in the destination.

Every value of a generated item is unique and stands at one path. After a real run the destination is searched for it; the
lineage must name exactly the pairs that were found, whatever the shape, the naming convention and the limit of nesting. Only
where two fields fall on one column may it name one more: which of them an item loads hangs on the item.
"""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dlt
import duckdb
import pyarrow as pa
import pytest
from dlt.pipeline.exceptions import PipelineStepFailed
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from telling import Told, pairs

import headwater.dlt
from headwater.capture.dlt.leaves import collect, shown

SCALE = float(os.environ.get("HEADWATER_SCALE") or 0.05)
KEYS = (
    "id",
    "Full Name",
    "fullName",
    "a",
    "b",
    "a__b",
    "Größe",
    "order-id",
    "x.y",
    "VALUE",
    "list",
    "_private",
)
NAMINGS = ("snake_case", "direct", "sql_cs_v1", "sql_ci_v1", "duck_case")

shapes = st.recursive(
    st.just("leaf"),
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from(KEYS), inner, min_size=1, max_size=4),
        st.lists(inner, min_size=1, max_size=2),
    ),
    max_leaves=10,
)
items = st.lists(
    st.dictionaries(st.sampled_from(KEYS), shapes, min_size=1, max_size=5), min_size=1, max_size=3
)


def filled(shape: Any, numbers: Iterator[int]) -> Any:
    """The shape with a value of its own at every leaf."""
    if isinstance(shape, dict):
        return {key: filled(inner, numbers) for key, inner in shape.items()}
    if isinstance(shape, list):
        return [filled(inner, numbers) for inner in shape]
    return f"s{next(numbers):05d}e"


def values(item: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Each value, and the path it stands at."""
    if isinstance(item, dict):
        for key, inner in item.items():
            yield from values(inner, (*path, key))
    elif isinstance(item, list):
        for inner in item:
            yield from values(inner, (*path, None))
    else:
        yield item, path


def found(file: Path, dataset: str, sentinels: dict[str, str]) -> set[tuple[str, str, str]]:
    """(table, column, path) of every value that is found again."""
    out: set[tuple[str, str, str]] = set()
    with duckdb.connect(str(file)) as base:
        tables = base.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = ?", [dataset]
        ).fetchall()
        for (table,) in tables:
            if table.lower().startswith("_dlt"):
                continue
            rows = base.execute(f'SELECT * FROM "{dataset}"."{table}"')
            names = [each[0] for each in rows.description]
            for row in rows.fetchall():
                for column, value in zip(names, row, strict=True):
                    text = str(value)
                    for sentinel, path in sentinels.items():
                        if sentinel in text:
                            out.add((table, column, path))
    return out


def loaded(
    data: Any, naming: str, nesting: int | None, monkeypatch: pytest.MonkeyPatch
) -> tuple[set[Any], set[Any]]:
    """Run it -> what the destination holds, and what the lineage tells."""
    folder = Path(tempfile.mkdtemp(prefix="hwdlt"))
    try:
        with monkeypatch.context() as patched:
            patched.setenv("SCHEMA__NAMING", naming)
            headwater.dlt.uninstall()
            headwater.dlt.install(transport=f"file://{folder}/events.jsonl")
            pipeline = dlt.pipeline(
                "shapes",
                destination=dlt.destinations.duckdb(str(folder / "x.duckdb")),
                dataset_name="raw",
                pipelines_dir=str(folder / "pipelines"),
            )
            pipeline.run(dlt.resource(data, name="things", max_table_nesting=nesting))
        sentinels = {value: shown(path) for item in data for value, path in values(item)}
        end = Told(folder / "events.jsonl").end()
        told = {(table, column, field) for table, column, _, field in pairs(end)}
        schema = end["outputs"][0]["name"].rpartition(".")[0] if end["outputs"] else "raw"
        return found(folder / "x.duckdb", schema, sentinels), told
    finally:
        headwater.dlt.uninstall()
        shutil.rmtree(folder, ignore_errors=True)


@settings(
    max_examples=max(3, int(60 * SCALE)),
    deadline=None,
    derandomize=True,  # a run of dlt takes seconds: the same shapes each time, more of them at scale 1
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(shape=items, naming=st.sampled_from(NAMINGS), nesting=st.sampled_from((None, 0, 1, 2, 3)))
def test_the_lineage_names_exactly_what_is_found_again(
    shape: list[Any], naming: str, nesting: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = itertools.count()
    try:
        there, told = loaded([filled(each, numbers) for each in shape], naming, nesting, monkeypatch)
    except PipelineStepFailed:  # names that dlt itself cannot load: a dot in a table's name, say
        assume(False)
        return
    assert told >= there
    made_of: dict[tuple[str, str], set[str]] = {}
    for table, column, field in told:
        made_of.setdefault((table, column), set()).add(field)
    # of two fields that fall on one column, an item that has both loads one: each is told as a source
    alone = {key for key, fields in made_of.items() if len(fields) == 1}
    assert {each for each in told if each[:2] in alone} == {each for each in there if each[:2] in alone}
    assert {each[:2] for each in told} == {each[:2] for each in there}


@pytest.mark.parametrize("form", ["arrow", "pandas"])
@pytest.mark.parametrize("naming", ["snake_case", "direct"])
def test_columns_of_arrow_tables_and_frames_by_the_names_they_had(
    form: str, naming: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    data = {"Order ID": ["s00001e"], "unitPrice": ["s00002e"], "Größe": ["s00003e"]}
    table: Any = pa.table(data)
    monkeypatch.setenv("SCHEMA__NAMING", naming)
    headwater.dlt.install(transport=f"file://{tmp_path}/events.jsonl")
    pipeline = dlt.pipeline(
        "frames", destination=dlt.destinations.duckdb(str(tmp_path / "x.duckdb")), dataset_name="raw"
    )
    pipeline.run(dlt.resource([table.to_pandas() if form == "pandas" else table], name="things"))
    sentinels = {column[0]: name for name, column in data.items()}
    told = {
        (table, column, field) for table, column, _, field in pairs(Told(tmp_path / "events.jsonl").end())
    }
    assert told == found(tmp_path / "x.duckdb", "raw", sentinels) != set()


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


def test_paths_of_items() -> None:
    seen: set[Any] = set()
    collect({"a": {"b": [1, {"c": None}], "d": {}}, "e": []}, seen)
    assert seen == {("a", "b", None), ("a", "b", None, "c")}
