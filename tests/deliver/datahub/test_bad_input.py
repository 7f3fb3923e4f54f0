"""Events as nobody should send them: converted, or kept with a reason; nothing else ever comes out of the stream."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from making import JAVA, PARENT, aspect, columns, convert, dataset, options, raw, schema, symlinks
from test_fixes import ROWS

from headwater.deliver.datahub import Converter, Refused
from headwater.deliver.datahub.transport import DataHubTransport
from headwater.errors import EventError, TransportError
from headwater.event import parse

RICH = raw(
    "COMPLETE",
    job="app.execute_merge_into_command_edge",
    run_facets={
        "parent": {"run": {"runId": PARENT}, "job": {"namespace": "a", "name": "d.t"}, "root": {"run": {"runId": PARENT}}},
        "processing_engine": {"name": "spark", "version": "3"},
        "spark_properties": {"properties": {"a": {"b": [1, None]}}},
        "spark_jobDetails": {"jobId": 3},
        "spark_applicationDetails": {"applicationId": "x", "userName": "y"},
        "spark.logicalPlan": {"plan": []},
        "airflow": {"dag": {"tags": "['a']"}, "task": {"x": 1}},
        "unknownSourceAttribute": {"unknownItems": [{"name": "n"}]},
        "errorMessage": {"message": "m"},
        "nominalTime": {"nominalStartTime": "t"},
        "externalQuery": {"externalQueryId": "q"},
        "extractionError": {"errors": [{"task": "t"}]},
    },
    job_facets={
        "sql": {"query": "MERGE INTO x"},
        "jobType": {"jobType": "RDD_JOB", "integration": "SPARK", "processingType": "STREAMING"},
        "documentation": {"description": "d"},
        "ownership": {"owners": [{"name": "n", "type": "t"}]},
        "tags": {"tags": [{"key": "k", "value": "v"}]},
        "sourceCodeLocation": {"url": "u"},
    },
    inputs=[dataset("s3://b", "k", schema=schema(a="int"), symlinks=symlinks(("hive://m", "t")),
                    inputFacets={"dataQualityMetrics": {"rowCount": 1, "columnMetrics": {"a": {"min": 1}}}})],
    outputs=[dataset("hive", "t", schema={"fields": [{"name": "s", "type": "struct", "fields": [{"name": "x"}]}]},
                     columnLineage=columns(a=[("s3://b", "k", "a", "DIRECT:IDENTITY")]),
                     lifecycleStateChange={"lifecycleStateChange": "CREATE"},
                     outputFacets={"outputStatistics": {"rowCount": 1}})],
)  # fmt: skip

NASTY = st.one_of(
    st.sampled_from(
        [None, True, 0, -1, 1.5e300, 10**30, "", " ", "(", "))((", "a,b", "a b", "␟", "\u0000", "\ud800".encode("utf-16", "surrogatepass").decode("utf-16", "replace"),
         "x" * 5000, "://", "s3://", "urn:li:tag:x", "%", "'", '"', "['", [], {}, [None], {"": None}, [[[]]], {"a": {"b": {"c": None}}}]
    ),
    st.text(max_size=20),
    st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3), max_leaves=6),
)  # fmt: skip


def paths(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if at:
        yield at
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths(inner, (*at, key))
    elif isinstance(value, list):
        for key, inner in enumerate(value):
            yield from paths(inner, (*at, key))


PATHS = sorted(paths(RICH), key=str)


def mangled(changes: list[tuple[tuple[Any, ...], Any]]) -> dict[str, Any]:
    """The rich event with other values at some places, where those still are."""
    out = copy.deepcopy(RICH)
    for path, value in changes:
        inner: Any = out
        try:
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = copy.deepcopy(value)
        except (KeyError, IndexError, TypeError):
            continue
    return out


CHANGES = st.lists(st.tuples(st.sampled_from(PATHS), NASTY), min_size=1, max_size=4)


@given(changes=CHANGES, patch=st.booleans())
def test_mangled_events_are_converted_or_refused_with_a_reason(
    changes: list[tuple[tuple[Any, ...], Any]], patch: bool
) -> None:
    payload = json.dumps(mangled(changes)).encode()
    for settings in (
        {},
        JAVA,
        {"merge_into": True, "lower_case_urns": True, "field_paths": "v2", "parent_edges": True},
    ):
        for by in ("none", "application"):
            refused: list[Refused] = []
            made = list(
                Converter(options(patch=patch, **settings), by).convert_all([payload], refused.append)
            )
            assert made or refused or by == "application"
            assert all(each.reason for each in refused)
            json.dumps(made)  # plain values, all of them
            if refused and not settings.get("compat"):  # ours refuses only what is no event at all
                with pytest.raises(EventError):
                    parse(payload)


@given(changes=CHANGES)
def test_a_stream_goes_on_after_a_mangled_event(changes: list[tuple[tuple[Any, ...], Any]]) -> None:
    good = json.dumps(RICH).encode()
    payloads = [good, json.dumps(mangled(changes)).encode(), b"{", b"\xff\xfe", b"[]", b"null", good]
    transport = DataHubTransport("datahub+file:///dev/null/x", coalesce="none")
    taken: list[Any] = []
    transport._sink = type(
        "Sink", (), {"emit": lambda self, made, name: taken.extend(made), "close": lambda self: None}
    )()
    with pytest.raises(TransportError) as caught:
        transport.send(payloads)
    transport.close()
    assert {2, 3, 4, 5} <= set(caught.value.refused)
    assert not {0, 6} & set(caught.value.refused)
    assert caught.value.pending == frozenset()
    assert taken


NAMES = [
    "a(b",
    "a)b",
    "((",
    "a,b",
    "a b",
    " a",
    "a%b",
    "ä␟ö",
    "a\nb",
    "a" * 4000,
    "urn:li:dataset:(x,y)",
    "{}",
    "'\"`",
]


@pytest.mark.live
@pytest.mark.parametrize("name", NAMES, ids=lambda name: name[:12])
def test_strange_names_are_converted_and_stay_apart(
    name: str, wrong: Callable[[list[dict[str, Any]]], list[Any]]
) -> None:
    facet = columns(**{name: [("postgres://h", name, name)], f"{name}2": [("s3://b", name, "x")]})
    told = raw(job=name, namespace=name, inputs=[dataset("postgres://h", name), dataset("s3://b", name)],
               outputs=[dataset("hive", f"{name}.t", columnLineage=facet, schema=schema(**{name: "int"}))])  # fmt: skip
    made = convert(told)
    edges = aspect(made, "dataJobInputOutput")
    assert len(edges["inputDatasetEdges"]) == 2
    assert len(edges["fineGrainedLineages"]) == 2
    if len(name) < 100 and name.strip() == name and "\n" not in name:
        assert wrong(made) == []


@pytest.mark.parametrize("facet", ["schema", "columnLineage", "symlinks", "lifecycleStateChange", "unknown"])
@pytest.mark.parametrize(
    "value", [None, [], "x", 5, {}, {"fields": None}, {"fields": "x"}, {"identifiers": [None]}]
)
def test_facets_that_are_null_or_something_else_are_left_out(facet: str, value: Any) -> None:
    made = convert(raw(outputs=[dataset("hive", "t", **{facet: value})]))
    assert len(aspect(made, "dataJobInputOutput")["outputDatasetEdges"]) == 1


def test_facets_of_another_shape_are_noted() -> None:
    notes: list[str] = []
    Converter().read(parse(json.dumps(raw(outputs=[dataset("hive", "t", schema={"fields": 5})]))), notes)
    assert len(notes) == 1
    assert notes[0].startswith("schema: ")


def test_absurd_sizes_are_converted_in_time_that_follows_them() -> None:
    wide = {f"column_{n}": "string" for n in range(5000)}
    lineage = columns(**{name: [("hive", "in", name, "DIRECT:IDENTITY")] for name in wide})
    deep: Any = {"name": "leaf", "type": "int"}
    for _ in range(200):
        deep = {"name": "s", "type": "struct", "fields": [deep]}
    told = raw(
        inputs=[dataset("hive", f"t{n}") for n in range(2000)],
        outputs=[dataset("hive", "o", schema=schema(**wide), columnLineage=lineage), dataset("hive", "d", schema={"fields": [deep]})],
        run_facets={"spark_properties": {"properties": {f"k{n}": "v" * 100 for n in range(2000)}}},
    )  # fmt: skip
    made = convert(told)
    edges = aspect(made, "dataJobInputOutput")
    assert (len(edges["inputDatasetEdges"]), len(edges["fineGrainedLineages"])) == (2000, 5000)


def test_everything_of_the_tables_goes_through_a_group_at_once() -> None:
    refused: list[Refused] = []
    events = [each.raw for row in ROWS for each in row.told]
    assert list(Converter(by="group").convert_all(events, refused.append))
    assert refused == []
