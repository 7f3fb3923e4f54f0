"""What an event says, fact by fact: small events, and the rows that must come of them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from headwater.event import micros, of
from headwater.facts import derive, fold, ref, settle, unref
from headwater.facts.contents import columns_of, digest_of, schema_of, word
from headwater.facts.fold import Tables
from headwater.naming import Aliases
from streams import at, facet, run_id

TABLE = {"namespace": "s3://lake", "name": "t"}
T = ref("s3://lake", "t")
JOB = ref("etl", "load")


def event(second: int = 1, kind: str | None = "COMPLETE", run: int = 1, **parts: Any) -> dict[str, Any]:
    job = {"namespace": "etl", "name": "load", "facets": parts.pop("job_facets", {})}
    return {
        "eventTime": at(second),
        "eventType": kind,
        "run": {"runId": run_id(run), "facets": parts.pop("run_facets", {})},
        "job": job,
        **parts,
    }


def tables(*events: dict[str, Any]) -> Tables:
    return fold(row for each in events for row in derive(of(each)))


def stamp(second: int) -> int:
    return micros(at(second))


def state(*events: dict[str, Any]) -> str:
    return str(tables(*events)["runs"][(run_id(1),)]["state"][1]).split(" ")[1]


def test_the_latest_terminal_event_wins_and_failure_at_equal_times() -> None:
    assert state(event(5, "COMPLETE"), event(9, "START"), event(9, "RUNNING")) == "COMPLETE", (
        "a late START reopens nothing"
    )
    assert state(event(5, "FAIL"), event(6, "COMPLETE")) == "COMPLETE"
    assert state(event(6, "FAIL"), event(5, "COMPLETE")) == "FAIL"
    assert state(event(5, "COMPLETE"), event(5, "FAIL")) == "FAIL"
    assert state(event(1, "START"), event(2, None)) == "OTHER"
    run = tables(event(1, "START"), event(4, "RUNNING"), event(5, "COMPLETE"))["runs"][(run_id(1),)]
    assert (run["started_at"], run["ended_at"]) == (stamp(1), stamp(5))


def test_a_run_s_version_is_told_over_all_its_events() -> None:
    one = event(1, "START", inputs=[TABLE]), event(5, "COMPLETE", outputs=[{"namespace": "x", "name": "o"}])
    other = event(3, "COMPLETE", run=2, inputs=[TABLE], outputs=[{"namespace": "x", "name": "o"}])
    failed = event(4, "FAIL", run=3, inputs=[TABLE])
    whole = settle(tables(*one, other, failed), Aliases(()))
    runs = whole["runs"]
    assert runs[(run_id(1),)]["io"] == runs[(run_id(2),)]["io"]
    assert "io" not in runs[(run_id(3),)]
    assert list(whole["job_versions"].values()) == [{"first_seen": stamp(3), "last_seen": stamp(5)}]


def test_parents_exist_from_their_child_s_word_but_their_own_word_wins() -> None:
    parent = facet(
        run={"runId": run_id(7)},
        job={"namespace": "etl", "name": "dag"},
        root={"run": {"runId": "nightly"}, "job": {"namespace": "etl", "name": "root"}},
    )
    told = tables(event(9, run_facets={"parent": parent}))
    assert told["runs"][(run_id(7),)]["job"][1] == ref("etl", "dag")
    assert told["jobs"][(JOB,)]["parent"][1] == ref("etl", "dag")
    assert told["jobs"][(JOB,)]["root"][1] == ref("etl", "root")
    own = {**event(1, "START", run=7), "job": {"namespace": "etl", "name": "its own name"}}
    assert tables(event(9, run_facets={"parent": parent}), own)["runs"][(run_id(7),)]["job"][1] == ref(
        "etl", "its own name"
    )
    old = tables(event(9, run_facets={"parentRun": parent}))
    assert old["runs"][(run_id(1),)]["parent"][1] == run_id(7)
    itself = facet(run={"runId": run_id(1)}, job={"namespace": "etl", "name": "load"})
    assert "parent" not in tables(event(run_facets={"parent": itself}))["runs"][(run_id(1),)]


def test_counts_versions_and_lifecycle_of_what_a_run_wrote() -> None:
    written = {
        **TABLE,
        "facets": {
            "version": facet(datasetVersion="7"),
            "lifecycleStateChange": facet(lifecycleStateChange="OVERWRITE"),
        },
        "outputFacets": {"outputStatistics": facet(rowCount=10, size=1.0e3, fileCount=None)},
    }
    read = {
        **TABLE,
        "inputFacets": {
            "inputStatistics": facet(rowCount=True, size=2**70),
            "dataQualityMetrics": facet(rowCount=5, bytes=6),
        },
    }
    told = tables(event(outputs=[written], inputs=[read]))
    out, into = told["outputs"][(run_id(1), T)], told["inputs"][(run_id(1), T)]
    assert {key: out[key][1] for key in ("rows", "bytes", "version", "lifecycle")} == {
        "rows": 10,
        "bytes": 1000,
        "version": "7",
        "lifecycle": "OVERWRITE",
    }
    assert "files" not in out
    assert (into["rows"][1], into["bytes"][1]) == (5, 6), "a count that is none is left alone"
    assert told["datasets"][(T,)]["lifecycle"][1] == "OVERWRITE"


def columns(told: dict[str, Any]) -> list[list[Any]]:
    raw = msgspec.json.encode(told)
    found = columns_of(digest_of(raw), raw)
    assert found is not None
    rows: list[list[Any]] = msgspec.json.decode(found.body)
    return rows


def test_column_lineage_new_and_old() -> None:
    source = {"namespace": "pg", "name": "a", "field": "x"}
    new = facet(
        fields={"o": {"inputFields": [{**source, "transformations": [{"type": "DIRECT", "subtype": "identity", "masking": True, "description": "sha2"}, {"type": "INDIRECT", "subtype": "JOIN"}]}]}},
        dataset=[{**source, "field": "f", "transformations": [{"type": "INDIRECT", "subtype": "FILTER"}]}],
    )  # fmt: skip
    assert columns(new) == [
        ["", "pg\na", "f", "INDIRECT", "FILTER", False, ""],
        ["o", "pg\na", "x", "DIRECT", "IDENTITY", True, "sha2"],
        ["o", "pg\na", "x", "INDIRECT", "JOIN", False, ""],
    ]
    old = facet(
        fields={
            "o": {
                "inputFields": [source],
                "transformationType": "MASKED",
                "transformationDescription": "hidden",
            }
        }
    )
    assert columns(old) == [["o", "pg\na", "x", "DIRECT", "MASKED", True, "hidden"]]
    assert columns(facet(fields={"o": {"inputFields": [source]}})) == [
        ["o", "pg\na", "x", "DIRECT", "", False, ""]
    ]


def test_the_fingerprint_is_that_of_the_relations_not_of_their_wording() -> None:
    source = [{"namespace": "pg", "name": "a", "field": field} for field in ("x", "y")]
    one = columns_of(b"1", msgspec.json.encode({"fields": {"o": {"inputFields": source}}, "_producer": "v1"}))
    two = columns_of(
        b"2", msgspec.json.encode({"_producer": "v2", "fields": {"o": {"inputFields": source[::-1]}}})
    )
    assert one is not None
    assert two is not None
    assert one == two


def test_schemas_are_versions_by_content() -> None:
    nested = [{"name": "a", "type": "struct", "fields": [{"name": "b", "type": "int"}], "description": "one"}]
    same = [{**nested[0], "description": "another", "tags": []}]
    read = [
        schema_of(digest_of(raw), raw)
        for raw in (msgspec.json.encode({"fields": f}) for f in (nested, same, [*nested, {"name": "c"}]))
    ]
    assert read[0] is not None
    assert read[0] == read[1] != read[2]
    assert msgspec.json.decode(read[0][1]) == [
        {"name": "a", "type": "struct", "fields": [{"name": "b", "type": "int"}]}
    ]


def test_assertions_wherever_they_stand() -> None:
    rows = [
        {"assertion": "not_null", "column": "id", "success": True},
        {"assertion": "not_null", "column": "total", "success": False, "severity": "warn"},
        {"assertion": "custom"},
        {"assertion": "not_null", "column": "id", "success": False},
    ]
    where = [
        {"inputs": [{**TABLE, "inputFacets": {"dataQualityAssertions": facet(assertions=rows)}}]},
        {"outputs": [{**TABLE, "facets": {"dataQualityAssertions": facet(assertions=rows)}}]},
    ]
    for place in where:
        found = {key[2:]: row["failed"][1] for key, row in tables(event(**place))["assertions"].items()}
        assert found == {("not_null", "id"): 1, ("not_null", "total"): 1, ("custom", ""): 1}


@pytest.mark.parametrize("order", [1, -1])
def test_of_two_checks_of_one_name_the_one_that_failed_is_told(order: int) -> None:
    ranges = [
        {"assertion": "between", "column": "id", "success": True, "severity": "warn", "expected": "0 to 9"},
        {"assertion": "between", "column": "id", "success": False, "severity": "error", "expected": "0 to 5"},
    ][::order]
    limits = [
        {"name": "limits", "status": "pass", "severity": "warn", "expected": "9"},
        {"name": "limits", "status": "fail", "severity": "error", "expected": "5"},
    ][::order]
    checked = [{**TABLE, "inputFacets": {"dataQualityAssertions": facet(assertions=ranges)}}]
    told = tables(event(inputs=checked, run_facets={"test": facet(tests=limits)}))
    for table, expected in (("assertions", "0 to 5"), ("tests", "5")):
        (row,) = told[table].values()
        assert (row["failed"][1], row["severity"][1]) == (1, "error")
        assert msgspec.json.decode(row["details"][1])["expected"] == expected


@pytest.mark.parametrize(
    ("kind", "job", "failed"),
    [
        ("ABORT", {"jobType": facet(jobType="TEST")}, {}),  # dbt tells so of a test that it skips
        ("FAIL", {"jobType": facet(jobType="TEST")}, {"not_null": 1}),
        (
            "ABORT",
            {"jobType": facet(jobType="APPLICATION")},
            {"not_null": 1},
        ),  # somebody stopped what had seen it fail
        ("ABORT", {}, {"not_null": 1}),
    ],
)
def test_a_test_that_was_never_run_has_not_failed(
    kind: str, job: dict[str, Any], failed: dict[str, int]
) -> None:
    check = facet(assertions=[{"assertion": "not_null", "success": False}])
    told = event(
        kind=kind, job_facets=job, inputs=[{**TABLE, "inputFacets": {"dataQualityAssertions": check}}]
    )
    assert {key[2]: row["failed"][1] for key, row in tables(told).get("assertions", {}).items()} == failed


@pytest.mark.parametrize("strange", [[], "text", 5, True, {"fields": 5}, {"fields": {"o": 5}}, {"fields": {"o": {"inputFields": [5, {}]}}}, {"identifiers": [5, {"namespace": "a"}]}, {"assertions": 3}, {"run": 5, "job": []}, {"nominalStartTime": 5}])  # fmt: skip
def test_a_facet_of_a_strange_shape_is_kept_and_does_no_harm(strange: Any) -> None:
    names = (
        "schema",
        "columnLineage",
        "symlinks",
        "version",
        "tags",
        "dataQualityAssertions",
        "lifecycleStateChange",
    )
    odd = {**TABLE, "facets": dict.fromkeys(names, strange), "outputFacets": {"outputStatistics": strange}}
    run = dict.fromkeys(("parent", "nominalTime", "errorMessage"), strange)
    told = tables(event(outputs=[odd], run_facets=run, job_facets={"jobType": strange}))
    assert {key[1] for key in told["dataset_facets"]} == set(names)
    assert not told["schemas"], "what is not understood is no schema without columns"
    assert "schema" not in told["outputs"][(run_id(1), T)]
    assert msgspec.json.encode(strange) in {row["body"] for row in told["contents"].values()}


def test_a_long_text_in_a_key_is_its_beginning_and_its_digest() -> None:
    sql = f"SELECT count(*) FROM orders WHERE id IN ({', '.join(map(str, range(500)))})"
    short, other = word(sql), word(f"{sql} ")
    assert short is not None
    assert len(short.encode()) < 850
    assert sql.startswith(short.partition("…")[0])
    assert short != other
    assert word("é" * 400) == "é" * 400
    assert word("not_null") == "not_null"


@pytest.mark.parametrize("field", ["namespace", "name"])
def test_a_name_that_no_event_may_have_is_none_in_a_facet(field: str) -> None:
    far = {"namespace": "x", "name": "y", field: "n" * 5_000}
    links = facet(identifiers=[{**far, "type": "TABLE"}])
    columns = facet(fields={"a": {"inputFields": [{**far, "field": "b"}]}})
    parent = facet(run={"runId": run_id(9)}, job=far)
    odd = {**TABLE, "facets": {"symlinks": links, "columnLineage": columns}}
    told = tables(event(outputs=[odd], run_facets={"parent": parent}))
    assert not told["symlinks"]
    assert not told["column_edges"]
    assert list(told["jobs"]) == [(JOB,)]
    assert told["runs"][(run_id(1),)]["parent"][1] == run_id(9)


def test_an_event_that_says_nothing_leaves_all_alone() -> None:
    full = event(
        5,
        outputs=[{**TABLE, "facets": {"schema": facet(fields=[{"name": "a"}])}}],
        job_facets={"jobType": facet(processingType="BATCH")},
    )
    bare = event(9, "RUNNING")
    before, after = tables(full), tables(full, bare)
    for name in ("datasets", "outputs", "edges", "schemas", "job_facets"):
        assert after[name] == before[name]
    assert after["jobs"][(JOB,)]["processing"] == before["jobs"][(JOB,)]["processing"]


def test_references_hold_any_name() -> None:
    assert unref(ref("a\nb", "c\nd")) == ("a b", "c\nd")
