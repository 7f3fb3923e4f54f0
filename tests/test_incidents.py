"""Incidents from events as tools send them: what opens one, what ends it, who is blamed, what people decide."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import EventError, NotFound
from headwater.event import micros
from headwater.facts.commands import Command, SetAlias, SetIncident, Watch
from headwater.facts.flows import NOW as INFINITY
from headwater.incidents import Outcome, Verdict, breaks, incidents
from headwater.ingest import command, ingest, replay
from headwater.query.blame import show_incident
from headwater.query.incidents import count, gather, list_incidents
from headwater.store import Store, open_store
from streams import events

NOW = micros("2026-01-02T00:00:00Z")
DB = "postgres://db:5432"
HOUR = 3_600_000_000


def t(clock: str) -> str:
    return f"2026-01-01T{clock}:00Z"


def rid(name: str) -> str:
    return str(uuid5(NAMESPACE_URL, name))


def dataset(name: str, namespace: str = DB, **more: Any) -> dict[str, Any]:
    return {"namespace": namespace, "name": name, **more}


def checked(
    name: str, *tests: tuple[str, str | None, bool], where: str = "inputFacets", **more: Any
) -> dict[str, Any]:
    told = [{"assertion": test, "column": column, "success": passed} for test, column, passed in tests]
    return dataset(name, **more) | {where: {"dataQualityAssertions": {"assertions": told}}}


def run(
    job: str,
    clock: str,
    *,
    id: str | None = None,
    kind: str = "COMPLETE",
    inputs: Any = (),
    outputs: Any = (),
    root: str | None = None,
    facets: dict[str, Any] | None = None,
) -> dict[str, Any]:
    told = dict(facets or {})
    if root:
        above = {"run": {"runId": rid(root)}, "job": {"namespace": "airflow", "name": "dag"}}
        told["parent"] = {**above, "root": above}
    return {
        "eventType": kind,
        "eventTime": t(clock),
        "producer": "https://github.com/OpenLineage/OpenLineage/tree/1.0.0/integration/dbt",
        "run": {"runId": rid(id or f"{job} {clock}"), "facets": told},
        "job": {"namespace": "etl", "name": job},
        "inputs": list(inputs),
        "outputs": list(outputs),
    }


@pytest.fixture(params=["memory", "postgresql"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    url = "memory:" if request.param == "memory" else request.getfixturevalue("postgres").make()
    with closing(open_store(url)) as made:
        yield made


def take(store: Store, *events: dict[str, Any]) -> None:
    outcome = ingest(store, [json.dumps(each).encode() for each in events])
    assert not outcome.rejected, outcome.rejected


def listed(store: Store, status: str = "active", now: int = NOW, **more: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = list_incidents(store, status=status, now=now, **more)["incidents"]
    return found


def only(store: Store, status: str = "active", now: int = NOW) -> dict[str, Any]:
    (found,) = listed(store, status, now)
    return show_incident(store, int(found["id"]), now=now)


def decide(store: Store, incident: dict[str, Any], at: int, status: str, **more: Any) -> None:
    command(store, SetIncident(at=at, incident=int(incident["id"]), status=status, by="ann", **more))


# ---- what opens one ----------------------------------------------------------------------------------------


def test_the_run_before_the_test_is_blamed_not_the_last_one(store: Store) -> None:
    """Researched in the peer: a test at 10:00, runs at 09:00 and 11:00 -> it blames 11:00."""
    take(
        store,
        run("load", "09:00", outputs=[dataset("orders")]),
        run("dbt", "10:00", inputs=[checked("orders", ("not_null", "id", False))]),
        run("load", "11:00", outputs=[dataset("orders")]),
    )
    found = only(store)
    assert (found["kind"], found["test"], found["column"], found["orphan"]) == (
        "test",
        "not_null",
        "id",
        False,
    )
    assert found["blamed"]["runId"] == rid("load 09:00")
    assert found["suspects"][0]["runId"] == rid("load 09:00")


def test_a_run_that_had_not_ended_is_not_blamed(store: Store) -> None:
    take(
        store,
        run("load", "08:00", outputs=[dataset("orders")]),
        run("load", "09:00", id="long", kind="START", outputs=[dataset("orders")]),
        run("dbt", "10:00", inputs=[checked("orders", ("not_null", "id", False))]),
        run("load", "10:30", id="long", outputs=[dataset("orders")]),
    )
    assert only(store)["blamed"]["runId"] == rid("load 08:00")


def test_a_run_that_only_ever_says_it_runs_can_be_blamed(store: Store) -> None:
    """As correlator-dbt tells of its models."""
    take(
        store,
        run("model", "09:00", kind="RUNNING", outputs=[dataset("orders")]),
        run("dbt", "10:00", kind="RUNNING", inputs=[checked("orders", ("unique", "id", False))]),
    )
    assert only(store)["blamed"]["runId"] == rid("model 09:00")


def test_a_run_that_tests_what_it_writes_is_blamed_itself(store: Store) -> None:
    take(
        store,
        run("load", "09:00", outputs=[dataset("orders")]),
        run("load", "10:00", outputs=[checked("orders", ("row_count", None, False), where="outputFacets")]),
    )
    assert only(store)["blamed"]["runId"] == rid("load 10:00")


@pytest.mark.parametrize("where", ["inputFacets", "facets"])
def test_assertions_count_wherever_they_stand(store: Store, where: str) -> None:
    take(store, run("dbt", "10:00", inputs=[checked("orders", ("not_null", "id", False), where=where)]))
    found = only(store)
    assert found["test"] == "not_null"
    assert found["orphan"] is True
    assert found["blamed"] is None


@pytest.mark.parametrize("failed", ["orders", "shop.orders"])
def test_what_is_told_of_a_failure_is_not_what_passed_under_another_name(store: Store, failed: str) -> None:
    command(store, SetAlias(at=5, rule={"pattern": f"{DB}/shop.{{t}}", "canonical": f"{DB}/{{t}}"}))
    names = ("orders", "shop.orders")
    take(
        store, run("ge", "09:00", inputs=[checked(name, ("unique", "id", name != failed)) for name in names])
    )
    assert only(store)["details"]["success"] is False


def test_assertions_of_outputs_and_of_great_expectations_count(store: Store) -> None:
    ge = {"greatExpectations_assertions": {"assertions": [{"expectationType": "expect_x", "success": False}]}}
    take(
        store,
        run("ge", "10:00", inputs=[dataset("orders", inputFacets=ge)]),
        run("load", "10:00", outputs=[checked("bills", ("unique", "id", False), where="facets")]),
    )
    assert {each["test"] for each in listed(store)} == {"expect_x", "unique"}


def test_assertions_of_dataset_and_job_events_count(store: Store) -> None:
    told = checked("orders", ("fresh", None, False), where="facets")
    take(store, {"eventTime": t("10:00"), "dataset": told})
    take(
        store,
        {
            "eventTime": t("10:05"),
            "job": {"namespace": "etl", "name": "x"},
            "inputs": [told | {"name": "bills"}],
        },
    )
    assert len(listed(store)) == 2
    take(
        store, {"eventTime": t("11:00"), "dataset": checked("orders", ("fresh", None, True), where="facets")}
    )
    assert [each["dataset"] for each in listed(store)] == [f"dataset:{DB}:bills"]


def test_the_test_run_facet_counts_by_job_and_is_told_once(store: Store) -> None:
    tests = {
        "test": {
            "tests": [
                {"name": "no_orphans", "status": "fail", "severity": "warn", "description": "d"},
                {"name": "skipped", "status": "skip"},
                {"name": "fine", "status": "pass"},
                {"name": "not_null", "status": "fail"},
            ]
        }
    }
    take(
        store,
        run("load", "09:00", outputs=[dataset("orders")]),
        run("dbt", "10:00", inputs=[checked("orders", ("not_null", None, False))], facets=tests),
    )
    found = {each["test"]: each for each in listed(store)}
    assert set(found) == {"no_orphans", "not_null"}
    assert found["no_orphans"]["job"] == "job:etl:dbt"
    assert found["no_orphans"]["severity"] == "warn"
    assert "dataset" in found["not_null"], (
        "what an assertion tells of, with its dataset, the facet does not tell again"
    )
    blamed = show_incident(store, int(found["no_orphans"]["id"]), now=NOW)["blamed"]
    assert blamed["runId"] == rid("load 09:00"), "its run names one dataset: that is what was tested"


def test_a_failed_run_is_one_with_its_message(store: Store) -> None:
    error = {"errorMessage": {"message": "disk full", "programmingLanguage": "SQL"}}
    take(
        store,
        run("raw", "08:00", outputs=[dataset("raw")]),
        run("load", "09:00", kind="FAIL", inputs=[dataset("raw")], outputs=[dataset("orders")], facets=error),
        run("report", "07:00", inputs=[dataset("orders")], outputs=[dataset("report")]),
    )
    found = only(store)
    assert (found["kind"], found["job"], found["message"]) == ("run", "job:etl:load", "disk full")
    assert found["blamed"]["runId"] == rid("load 09:00")
    assert [each["runId"] for each in found["suspects"]] == [rid("raw 08:00")]
    assert [each["id"] for each in found["impact"]["datasets"]] == [f"dataset:{DB}:report"]
    take(store, run("load", "10:00", outputs=[dataset("orders")]))
    assert only(store, "resolved")["changedBy"] == "auto"


def test_a_failure_is_told_where_it_began_not_by_everyone_above(store: Store) -> None:
    def child(job: str, clock: str, parent: str, **more: Any) -> dict[str, Any]:
        made = run(job, clock, **more)
        made["run"]["facets"]["parent"] = {
            "run": {"runId": rid(parent)},
            "job": {"namespace": "etl", "name": parent.split()[0]},
        }
        return made

    take(
        store,
        child("query", "09:00", "task 09:01", kind="FAIL"),
        child("task", "09:01", "dag 09:02", kind="FAIL"),
        run("dag", "09:02", kind="FAIL"),
    )
    assert [each["job"] for each in listed(store)] == ["job:etl:query"]


def schema(*fields: tuple[str, str]) -> dict[str, Any]:
    return {"schema": {"fields": [{"name": name, "type": kind} for name, kind in fields]}}


def test_a_column_taken_away_or_narrowed_is_one_and_one_added_is_none(store: Store) -> None:
    full = schema(("id", "bigint"), ("total", "double"), ("note", "varchar(20)"))
    take(store, run("load", "08:00", outputs=[dataset("orders", facets=full)]))
    wider = schema(("id", "bigint"), ("total", "double"), ("note", "text"), ("new", "int"))
    take(store, run("load", "09:00", outputs=[dataset("orders", facets=wider)]))
    assert listed(store) == []
    narrow = schema(("id", "int"), ("note", "text"), ("new", "int"))
    take(store, run("load", "10:00", outputs=[dataset("orders", facets=narrow)]))
    found = {each["column"]: each["message"] for each in listed(store)}
    assert found == {"id": "column id changed from bigint to int", "total": "column total was removed"}
    one = next(each for each in listed(store) if each["column"] == "total")
    assert show_incident(store, int(one["id"]), now=NOW)["blamed"]["runId"] == rid("load 10:00")
    take(store, run("load", "11:00", outputs=[dataset("orders", facets=wider)]))
    assert listed(store) == [], "a schema of before is back"
    assert {each["column"] for each in listed(store, "resolved")} == {"id", "total"}


@pytest.mark.parametrize("facet", [{"fields": []}, {}, {"_deleted": True}, {"fields": None}, {"fields": "x"}])
def test_a_schema_that_names_no_column_takes_none_away(store: Store, facet: dict[str, Any]) -> None:
    before = run("load", "08:00", outputs=[dataset("orders", facets=schema(("id", "int")))])
    take(store, before, run("load", "09:00", outputs=[dataset("orders", facets={"schema": facet})]))
    assert listed(store) == []


def test_what_a_reader_knows_of_a_schema_breaks_nothing(store: Store) -> None:
    take(
        store,
        run("load", "08:00", outputs=[dataset("orders", facets=schema(("id", "int"), ("total", "int")))]),
        run("read", "09:00", inputs=[dataset("orders", facets=schema(("id", "int")))]),
    )
    assert listed(store) == []


@pytest.mark.parametrize(
    ("before", "after", "breaking"),
    [
        ("INTEGER", "bigint", False),
        ("bigint", "long", False),
        ("decimal(10,2)", "decimal(12,2)", False),
        ("decimal(12,2)", "decimal(10,2)", True),
        ("varchar(10)", "varchar(5)", True),
        ("text", "varchar(5)", True),
        ("date", "timestamp", False),
        ("timestamp", "date", True),
        ("array<int>", "array< int >", False),
        ("struct<a:int>", "struct<a:string>", True),
        ("", "int", False),
    ],
)
def test_which_types_break(before: str, after: str, breaking: bool) -> None:
    assert bool(breaks(before, after)) is breaking


# ---- history -----------------------------------------------------------------------------------------------


def counts(*rows: int) -> list[dict[str, Any]]:
    return [
        run(
            "load",
            f"{hour:02d}:00",
            outputs=[dataset("orders", outputFacets={"outputStatistics": {"rowCount": n}})],
        )
        for hour, n in enumerate(rows)
    ]


def test_row_counts_are_held_against_their_history_only_where_asked(store: Store) -> None:
    take(store, *counts(1000, 1010, 990, 1005, 995, 1002, 3))
    assert listed(store) == []
    command(store, Watch(at=1, pattern=f"{DB}/ord*", measure="volume"))
    found = only(store)
    assert (found["kind"], found["blamed"]["runId"]) == ("volume", rid("load 06:00"))
    assert found["message"] == "3 rows where about 1,001 are usual"
    take(store, *counts(1000, 1010, 990, 1005, 995, 1002, 3, 998)[-1:])
    assert listed(store) == []
    command(store, Watch(at=2, pattern=f"{DB}/ord*", measure="volume", live=False))
    assert listed(store, "all") == []


@pytest.mark.parametrize("counted", ["path", "table"])
@pytest.mark.parametrize("pattern", ["s3://lake/*", "hive/db.*"])
def test_a_dataset_is_watched_by_any_of_its_names(store: Store, pattern: str, counted: str) -> None:
    link = {"identifiers": [{"namespace": "hive", "name": "db.t", "type": "TABLE"}]}
    for hour, rows in enumerate((1000, 1010, 990, 1005, 995, 1002, 3)):
        path, table = dataset("t", "s3://lake", facets={"symlinks": link}), dataset("db.t", "hive")
        (path if counted == "path" else table)["outputFacets"] = {"outputStatistics": {"rowCount": rows}}
        take(store, run("load", f"{hour:02d}:00", outputs=[path, table]))
    command(store, Watch(at=1, pattern=pattern, measure="volume"))
    assert only(store)["message"] == "3 rows where about 1,001 are usual"


def test_what_is_not_written_in_time_is_late_until_it_is(store: Store) -> None:
    take(store, *counts(1, 1, 1, 1, 1, 1, 1))
    command(store, Watch(at=1, pattern="*", measure="freshness"))
    at = micros(t("06:00"))
    assert listed(store, now=at + HOUR) == []
    found = only(store, now=at + 3 * HOUR)
    assert (found["kind"], found["openedAt"]) == ("freshness", "2026-01-01T07:18:00Z")
    take(store, run("load", "09:00", outputs=[dataset("orders")]))
    assert [each["id"] for each in listed(store, "resolved", now=at + 4 * HOUR)] == [found["id"]]


@pytest.mark.parametrize("wrong", [{"measure": "mood"}, {"sensitivity": 0}, {"history": 1}, {"pattern": ""}])
def test_a_watch_that_makes_no_sense_is_refused(store: Store, wrong: dict[str, Any]) -> None:
    with pytest.raises(EventError):
        command(store, Watch(**{"at": 1, "pattern": "*", "measure": "volume", **wrong}))


# ---- episodes ----------------------------------------------------------------------------------------------


def test_two_columns_are_two_incidents(store: Store) -> None:
    take(
        store,
        run("dbt", "10:00", inputs=[checked("orders", ("not_null", "a", False), ("not_null", "b", False))]),
    )
    assert {each["column"] for each in listed(store)} == {"a", "b"}


def test_a_pass_ends_it_and_the_next_failure_is_another(store: Store) -> None:
    def tested(clock: str, passed: bool) -> dict[str, Any]:
        return run("dbt", clock, inputs=[checked("orders", ("not_null", "id", passed))])

    take(store, tested("09:00", False), tested("10:00", False))
    first = only(store)
    assert (first["failures"], first["openedAt"]) == (2, t("09:00"))
    take(store, tested("11:00", True))
    over = only(store, "resolved")
    assert (over["id"], over["changedBy"], over["reason"], over["changedAt"]) == (
        first["id"],
        "auto",
        "auto_pass",
        t("11:00"),
    )
    take(store, tested("12:00", False))
    assert only(store)["id"] != first["id"]
    assert count(store, now=NOW) == {"active": 1, "resolved": 1, "muted": 0}


def test_attempts_under_one_root_are_one_and_the_newest_counts(store: Store) -> None:
    def attempt(clock: str, passed: bool, root: str = "dag 1") -> dict[str, Any]:
        return run("dbt", clock, root=root, inputs=[checked("orders", ("not_null", "id", passed))])

    take(store, attempt("09:00", False), attempt("09:10", False))
    found = only(store)
    assert (found["failures"], found["attempts"]) == (1, 2)
    take(store, attempt("09:20", True))
    assert listed(store, "all") == [], "the last attempt passed: nothing went wrong"
    take(store, attempt("10:00", False, root="dag 2"))
    assert only(store)["openedAt"] == t("10:00")


def test_a_pass_that_was_tried_again_is_not_the_last_word(store: Store) -> None:
    """The quick look at what is open must tell the same story, and id, as the look at everything."""

    def attempt(clock: str, passed: bool, root: str) -> dict[str, Any]:
        return run("dbt", clock, root=root, inputs=[checked("orders", ("not_null", "id", passed))])

    take(store, attempt("08:00", False, "a"), attempt("09:00", True, "b"), attempt("09:10", False, "b"))
    (active,), (every,) = listed(store), listed(store, "all")
    assert active["id"] == every["id"]
    assert active["failures"] == 2


def test_a_late_alias_joins_histories_and_keeps_decisions(store: Store) -> None:
    take(
        store,
        run("load", "08:00", outputs=[dataset("shop.orders")]),
        run("ge", "09:00", inputs=[checked("orders", ("unique", "id", False), namespace="demo")]),
    )
    orphan = only(store)
    assert orphan["orphan"] is True
    decide(store, orphan, NOW - HOUR, "acknowledged")
    command(store, SetAlias(at=5, rule={"pattern": "demo/{t}", "canonical": f"{DB}/shop.{{t}}"}))
    joined = only(store)
    assert (joined["id"], joined["status"]) == (orphan["id"], "acknowledged")
    assert joined["dataset"] == f"dataset:{DB}:shop.orders"
    assert joined["orphan"] is False
    assert joined["blamed"]["runId"] == rid("load 08:00")
    take(store, run("dbt", "10:00", inputs=[checked("shop.orders", ("unique", "id", True))]))
    assert listed(store) == [], "under the other name it passed"


@pytest.mark.parametrize("kind", ["schema", "volume", "freshness"])
def test_a_late_alias_keeps_what_was_decided_of_what_runs_write(store: Store, kind: str) -> None:
    for measure in ("volume", "freshness"):
        if kind == measure:
            command(store, Watch(at=1, pattern="*", measure=measure))
    take(store, *counts(1000, 1010, 990, 1005, 995, 1002, 3))
    for hour, names in ((7, "ab"), (8, "a")) if kind == "schema" else ():
        told = schema(*((name, "int") for name in names))
        take(store, run("load", f"{hour:02d}:00", outputs=[dataset("orders", facets=told)]))
    found = only(store)
    decide(store, found, NOW - 9, "acknowledged")
    command(store, SetAlias(at=NOW - 8, rule={"pattern": f"{DB}/{{t}}", "canonical": "s3://lake/{t}"}))
    (now,) = listed(store)
    assert (now["id"], now["status"], now["kind"]) == (found["id"], "acknowledged", kind)
    assert now["dataset"] == "dataset:s3://lake:orders"


def test_a_failure_told_late_moves_the_start_and_keeps_the_decision(store: Store) -> None:
    def tested(clock: str) -> dict[str, Any]:
        return run("dbt", clock, inputs=[checked("orders", ("not_null", "id", False))])

    take(store, tested("10:00"))
    was = only(store)
    decide(store, was, NOW - HOUR, "acknowledged")
    take(store, tested("08:00"))
    now = only(store)
    assert (now["openedAt"], now["status"]) == (t("08:00"), "acknowledged")
    assert show_incident(store, int(was["id"]), now=NOW)["id"] == now["id"], "the old id still leads to it"


# ---- suspects and impact -----------------------------------------------------------------------------------


def columns(**told: tuple[str, str]) -> dict[str, Any]:
    fields = {
        out: {
            "inputFields": [
                {
                    "namespace": DB,
                    "name": name,
                    "field": column,
                    "transformations": [{"type": "DIRECT", "subtype": "IDENTITY"}],
                }
            ]
        }
        for out, (name, column) in told.items()
    }
    return {"columnLineage": {"fields": fields}}


def test_suspects_upstream_are_ranked_by_what_went_wrong_and_by_the_column(store: Store) -> None:
    lineage = columns(total=("payments", "amount"), name=("people", "name"))
    take(
        store,
        run("pay", "07:00", outputs=[dataset("payments")]),
        run("pay", "07:30", kind="FAIL", outputs=[dataset("payments")]),
        run("hire", "08:30", outputs=[dataset("people")]),
        run(
            "load",
            "09:00",
            inputs=[dataset("payments"), dataset("people")],
            outputs=[dataset("orders", facets=lineage)],
        ),
        run("report", "09:30", inputs=[dataset("orders")], outputs=[dataset("report", facets=columns(sum=("orders", "total")))]),
        run("other", "09:30", inputs=[dataset("orders")], outputs=[dataset("other", facets=columns(who=("orders", "name")))]),
        run("dbt", "10:00", inputs=[checked("orders", ("positive", "total", False))]),
    )  # fmt: skip
    (test,) = (each for each in listed(store) if each["kind"] == "test")
    found = show_incident(store, int(test["id"]), now=NOW)
    assert [each["job"] for each in found["suspects"]] == ["job:etl:pay", "job:etl:load", "job:etl:hire"]
    first, _, last = found["suspects"]
    assert first["runId"] == rid("pay 07:30")
    assert "failed" in first["reasons"]
    assert "makes the column" in first["reasons"]
    assert "does not make the column" in last["reasons"]
    reached = {each["id"]: each["columns"] for each in found["impact"]["datasets"]}
    assert reached == {f"dataset:{DB}:report": ["sum"], f"dataset:{DB}:other": []}


def test_a_run_upstream_that_wrote_too_little_is_suspect(store: Store) -> None:
    take(
        store,
        *counts(1000, 1010, 990, 1005, 995, 1002, 3),
        run("join", "06:30", inputs=[dataset("orders")], outputs=[dataset("wide")]),
        run("dbt", "07:00", inputs=[checked("wide", ("unique", "id", False))]),
    )
    first = only(store)["suspects"][0]
    assert first["runId"] == rid("load 06:00")
    assert any(reason.startswith("wrote 3 rows") for reason in first["reasons"])


# ---- what people decide ------------------------------------------------------------------------------------


@pytest.fixture
def failing(store: Store) -> dict[str, Any]:
    take(store, run("dbt", "10:00", inputs=[checked("orders", ("not_null", "id", False))]))
    return only(store)


def test_a_mute_runs_out(store: Store, failing: dict[str, Any]) -> None:
    at = micros(t("11:00"))
    decide(store, failing, at, "acknowledged")
    decide(store, failing, at + 1, "muted", reason="expected", until=at + 5 * HOUR)
    assert [each["status"] for each in listed(store, "all", at + 4 * HOUR)] == ["muted"]
    assert listed(store, now=at + 4 * HOUR) == []
    assert [each["status"] for each in listed(store, now=at + 5 * HOUR)] == ["acknowledged"]


def test_after_a_resolve_a_failure_is_a_new_incident(store: Store, failing: dict[str, Any]) -> None:
    decide(store, failing, micros(t("10:30")), "resolved", reason="manual", note="fixed")
    assert listed(store) == []
    over = only(store, "resolved")
    assert over["history"][0]["note"] == "fixed"
    assert over["history"][0]["by"] == "ann"
    take(store, run("dbt", "11:00", inputs=[checked("orders", ("not_null", "id", False))]))
    assert only(store)["id"] != failing["id"]
    assert only(store, "resolved")["id"] == failing["id"]


def test_a_retry_that_fails_after_a_resolve_opens_it_again(store: Store) -> None:
    def attempt(clock: str) -> dict[str, Any]:
        return run("dbt", clock, root="dag", inputs=[checked("orders", ("not_null", "id", False))])

    take(store, attempt("10:00"))
    was = only(store)
    decide(store, was, micros(t("10:30")), "resolved")
    take(store, attempt("11:00"))
    assert only(store)["id"] == was["id"]


def test_it_can_be_reopened_and_noted(store: Store, failing: dict[str, Any]) -> None:
    decide(store, failing, NOW - 3, "resolved")
    decide(store, failing, NOW - 2, "open")
    decide(store, failing, NOW - 1, "", note="still wrong")
    found = only(store)
    assert found["status"] == "open"
    assert [each["note"] for each in found["history"]] == [None, None, "still wrong"]
    with pytest.raises(EventError):
        decide(store, failing, NOW, "")
    with pytest.raises(EventError):
        decide(store, failing, NOW, "forgotten")
    with pytest.raises(NotFound):
        show_incident(store, 5, now=NOW)


@pytest.mark.parametrize("until", [-1, 1 << 60])
def test_a_mute_ends_at_a_time_that_can_be_told(store: Store, failing: dict[str, Any], until: int) -> None:
    """A log that is brought in may say anything: what no clock shows must not break the answers about it."""
    said = SetIncident(at=NOW, incident=int(failing["id"]), status="muted", until=until)
    with pytest.raises(EventError, match="until"):
        command(store, said)
    assert only(store)["status"] == "open"


def test_it_can_be_reopened_though_the_test_has_passed(store: Store, failing: dict[str, Any]) -> None:
    take(store, run("dbt", "11:00", inputs=[checked("orders", ("not_null", "id", True))]))
    assert listed(store) == []
    decide(store, failing, NOW - 2, "open", note="the test is wrong")
    assert only(store)["id"] == failing["id"]
    decide(store, failing, NOW - 1, "resolved")
    assert listed(store) == []


# ---- order, repeats, replay --------------------------------------------------------------------------------

verdicts = st.builds(
    SetIncident,
    at=st.integers(0, 20).map(lambda s: micros("2026-01-01T00:00:00Z") + s * 1_000_000),
    by=st.sampled_from(("ann", "bob")),
    incident=st.just(0),
    status=st.sampled_from(SetIncident.STATUSES),
    until=st.none() | st.integers(0, micros("9999-12-31T23:59:59Z")),
)
watches = st.builds(
    Watch,
    at=st.integers(0, 9),
    pattern=st.just("*"),
    measure=st.sampled_from(Watch.MEASURES),
    live=st.booleans(),
)


def story(stream: list[Any]) -> list[dict[str, Any]]:
    with closing(open_store("memory:")) as store:
        for each in stream:
            if isinstance(each, bytes):
                assert not ingest(store, [each]).rejected
            else:
                command(store, each)
        found = [
            show_incident(store, int(each["id"]), now=NOW)
            for each in listed(store, "all", days=90, limit=1000)
        ]
        replay(store)
        assert [each["id"] for each in listed(store, "all", days=90, limit=1000)] == [
            each["id"] for each in found
        ]
        active = {each["id"]: each for each in listed(store, limit=1000)}
        for each in found:  # the quick look, from the last pass on, is the same story
            if each["status"] in ("open", "acknowledged"):
                quick = active.pop(each["id"])
                assert {name: each[name] for name in quick} == quick
        assert not active
    return found


@given(
    st.lists(events, max_size=12), st.lists(verdicts, max_size=4), st.lists(watches, max_size=1), st.data()
)
def test_order_and_repeats_do_not_matter(
    stream: list[bytes], decided: list[SetIncident], watched: list[Watch], data: st.DataObject
) -> None:
    known = story([*stream, *watched])
    said: list[Command] = [*watched]
    for each in decided if known else ():
        one = data.draw(st.sampled_from(known))
        said.append(
            SetIncident(at=each.at, by=each.by, incident=int(one["id"]), status=each.status, until=each.until)
        )
    whole = [*stream, *said]
    expected = story(whole)
    again = data.draw(st.lists(st.sampled_from(whole), max_size=4)) if whole else []
    assert story(data.draw(st.permutations([*whole, *again]))) == expected


endings = st.lists(
    st.tuples(
        st.integers(0, 9),  # hour
        st.sampled_from(("demo/orders", "DB/shop.orders", "DB/alone")),
        st.booleans(),  # the test passes
        st.sampled_from(("COMPLETE", "FAIL")),
        st.sampled_from((None, "dag 1", "dag 2")),
    ),
    max_size=10,
)


@given(endings, st.integers(-1, 11))
def test_a_look_from_the_last_pass_on_tells_the_same_as_one_at_everything(
    told: list[tuple[int, str, bool, str, str | None]], hour: int
) -> None:
    since = micros(t(f"{max(hour, 0):02}:30")) if 0 <= hour < 10 else INFINITY
    with closing(open_store("memory:")) as store:
        command(store, SetAlias(at=1, rule={"pattern": "demo/{t}", "canonical": "DB/shop.{t}"}))
        for number, (clock, name, passes, kind, root) in enumerate(told):
            namespace, _, table = name.partition("/")
            test = checked(table, ("unique", "id", passes), namespace=namespace)
            take(store, run("dbt", f"{clock:02}:00", id=str(number), kind=kind, inputs=[test], root=root))
        with store.read() as reader:
            quick, whole = gather(reader, since=since, now=NOW), gather(reader, since=-INFINITY, now=NOW)
    shown = [each for each in whole.incidents if each.passed is None or each.passed.at >= since]
    assert [each for each in quick.incidents if each.passed is None or each.passed.at >= since] == shown


outcomes = st.lists(
    st.builds(
        lambda at, failed, run, root: Outcome("test", "a", "t", "", at, failed, str(run), root),
        st.integers(0, 9),
        st.booleans(),
        st.integers(0, 9),
        st.sampled_from(("", "r1", "r2")),
    ),
    max_size=10,
)


@given(outcomes, st.lists(st.tuples(st.integers(0, 12), st.sampled_from(SetIncident.STATUSES)), max_size=3))
def test_every_failure_is_in_exactly_one_incident(told: list[Outcome], said: list[tuple[int, str]]) -> None:
    plain = incidents(told, {})
    decided = {each.id: [Verdict(at, status) for at, status in said] for each in plain}
    found = incidents(told, decided)
    inside = [one.id for each in found for one in each.failures]
    assert len(inside) == len(set(inside))
    assert set(inside) == {one.id for each in plain for one in each.failures}
    for each in found:
        assert each.passed is None or each.passed.at >= each.last.at
        assert each.state(99).status in SetIncident.STATUSES
