"""What dlt-openlineage documents is here, line by line; and what it does wrong is not."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from dlt.common.destination.exceptions import DestinationTerminalException
from telling import VERSION, Told, needs_inputs, pairs

import dlt
import headwater.dlt
from headwater.errors import ConfigError
from openlineage_schemas import assert_openlineage

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:dlt")  # of its own older options

USERS = [
    {"id": 1, "name": "Alice", "email": "alice@example.com", "addresses": [{"city": "Rome"}]},
    {"id": 2, "name": "Bob", "email": "bob@example.com", "addresses": []},
]


@dlt.resource
def users() -> Any:
    yield USERS


# --- as documented


def test_a_start_a_running_with_inputs_and_a_complete_with_both(told: Told, duck: Any, shared: Path) -> None:
    duck("my_pipeline").run(users())
    assert [each["eventType"] for each in told()] == ["START", "RUNNING", "COMPLETE"]
    start, running, complete = told()
    assert start["inputs"] == start["outputs"] == running["outputs"] == []
    assert [(each["namespace"], each["name"]) for each in running["inputs"]] == [("dlt", "dlt/users")]
    assert complete["inputs"] == running["inputs"]
    assert {each["name"] for each in complete["outputs"]} == {"raw.users", "raw.users__addresses"}
    assert len({each["run"]["runId"] for each in told()}) == 1
    assert {(each["job"]["namespace"], each["job"]["name"]) for each in told()} == {("dlt", "my_pipeline")}
    for event in told():
        assert_openlineage(event, shared)


def test_schemas_have_dlts_types_and_row_counts_those_of_the_normaliser(told: Told, duck: Any) -> None:
    duck().run(users())
    outputs = {each["name"]: each for each in told.end()["outputs"]}
    fields = {each["name"]: each["type"] for each in outputs["raw.users"]["facets"]["schema"]["fields"]}
    assert fields["id"] == "bigint"
    assert fields["email"] == "text"
    counts = {name: each["outputFacets"]["outputStatistics"]["rowCount"] for name, each in outputs.items()}
    assert counts == {"raw.users": 2, "raw.users__addresses": 1}


def test_every_event_has_the_job_type_and_the_engine(told: Told, duck: Any) -> None:
    duck().run(users())
    for event in told():
        kind = event["job"]["facets"]["jobType"]
        assert (kind["processingType"], kind["integration"], kind["jobType"]) == ("BATCH", "DLT", "PIPELINE")
        engine = event["run"]["facets"]["processing_engine"]
        assert (engine["name"], engine["version"]) == ("dlt", dlt.__version__)
        assert engine["openlineageAdapterVersion"] == headwater.__version__


def test_dlt_execution_has_the_documented_fields(told: Told, duck: Any) -> None:
    duck().run(users())
    said = told.end()["run"]["facets"]["dlt_execution"]
    assert said["step"] == "load"
    assert said["destination_type"].endswith("duckdb")
    assert said["destination_name"] == "duckdb"
    assert said["dataset_name"] == "raw"
    assert said["failed_jobs"] == 0
    assert said["total_jobs"] >= 2


def test_tables_of_dlt_itself_are_left_out(told: Told, duck: Any) -> None:
    duck().run(users())
    names = [each["name"] for event in told() for each in (*event["inputs"], *event["outputs"])]
    assert names
    assert not [name for name in names if "_dlt" in name]


def test_two_lines_are_enough_and_the_url_is_where_events_go(duck: Any, web: Any) -> None:
    headwater.dlt.install(url=f"{web.url}?direct=1", namespace="mine", api_key="k-9")
    duck().run(users())
    assert [each["eventType"] for each in web.events] == ["START", "RUNNING", "COMPLETE"]
    assert {each["job"]["namespace"] for each in web.events} == {"mine"}
    assert web.keys == {"Bearer k-9"}


def test_a_url_and_a_transport_are_one_too_many() -> None:
    with pytest.raises(ConfigError, match="not both"):
        headwater.dlt.install(url="http://127.0.0.1:9", transport="console:")


def test_a_failed_step_is_a_fail_with_message_and_stack(told: Told, duck: Any, shared: Path) -> None:
    @dlt.resource
    def broken() -> Any:
        yield {"a": 1}
        raise ValueError("no more of it")

    with pytest.raises(Exception, match="no more of it"):
        duck().run(broken())
    event = told.end()
    assert event["eventType"] == "FAIL"
    error = event["run"]["facets"]["errorMessage"]
    assert error["message"] == "ValueError: no more of it"
    assert error["programmingLanguage"] == "PYTHON"
    assert "raise ValueError" in error["stackTrace"]
    assert event["run"]["facets"]["dlt_error"]["step"] == "extract"
    assert_openlineage(event, shared)


def test_the_documented_names_on_request(tmp_path: Path, duck: Any) -> None:
    file = tmp_path / "seed.jsonl"
    headwater.dlt.install(transport=f"file://{file}", naming="dlt-openlineage", namespace="my_project")
    duck().run(users())
    end = Told(file).end()
    assert [(each["namespace"], each["name"]) for each in end["inputs"]] == [("my_project", "users")]
    assert ("duckdb://local", "raw.users") in {(each["namespace"], each["name"]) for each in end["outputs"]}


def test_the_fallback_of_an_extract_only_run(tmp_path: Path, duck: Any) -> None:
    file = tmp_path / "seed.jsonl"
    headwater.dlt.install(transport=f"file://{file}", naming="dlt-openlineage")
    duck().extract(users())
    end = Told(file).end()
    assert end["eventType"] == "COMPLETE"
    assert [(each["namespace"], each["name"]) for each in end["outputs"]] == [("dlt", "users")]


def test_by_default_an_extract_only_run_claims_no_output_and_lists_what_is_planned(
    told: Told, duck: Any
) -> None:
    duck().extract(users())
    assert told.end()["outputs"] == []
    assert told.end()["run"]["facets"]["dlt_execution"]["planned_tables"] == ["users"]


def test_environment_variables(tmp_path: Path, duck: Any, monkeypatch: pytest.MonkeyPatch, web: Any) -> None:
    monkeypatch.setenv(
        "OPENLINEAGE_URL", f"{web.url}?direct=1"
    )  # no spool, so that nothing has to be waited for
    monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "my_project")
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "k-123")
    headwater.dlt.install()
    duck().run(users())
    assert len(web.events) == 3
    assert {each["job"]["namespace"] for each in web.events} == {"my_project"}
    assert web.keys == {"Bearer k-123"}


# --- the fifteen defects that were reproduced there


def test_1_two_files_are_two_namespaces_and_physical(told: Told, duck: Any, tmp_path: Path) -> None:
    for name in ("one", "two"):
        duck(name).run(users())
    spaces = {each["namespace"] for name in ("one", "two") for each in told.end(name)["outputs"]}
    assert spaces == {f"duckdb://{tmp_path}/one.duckdb", f"duckdb://{tmp_path}/two.duckdb"}
    links = told.end("one")["outputs"][0]["facets"]["symlinks"]["identifiers"]
    assert {(each["namespace"], each["type"]) for each in links} == {("duckdb://local", "FORMER")}


# 2, pipelines in threads that mix: test_dlt_parallel.py


def test_3_a_failure_is_told_once_with_what_was_read(told: Told, duck: Any) -> None:
    pipeline = duck()
    pipeline.run(users())
    told.clear()
    pipeline.extract(users())
    pipeline.normalize()
    told.clear()
    sqlite_like = Path(pipeline.working_dir) / "load" / "normalized"
    for file in sqlite_like.rglob("users.*insert_values*"):
        file.write_bytes(b"INSERT INTO nonsense !!")
    with pytest.raises(Exception, match=r"(?i)load"):
        pipeline.load()
    assert [each["eventType"] for each in told() if each["eventType"] != "START"] == ["FAIL"]
    assert [each["name"] for each in told.end()["inputs"]] == ["dlt/users"]


def test_4_failed_load_jobs_are_a_fail_also_where_dlt_does_not_raise(
    told: Told, duck: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOAD__RAISE_ON_FAILED_JOBS", "false")
    pipeline = duck()
    pipeline.extract(users())
    pipeline.normalize()
    told.clear()
    for file in (Path(pipeline.working_dir) / "load" / "normalized").rglob("users.*insert_values*"):
        file.write_bytes(b"INSERT INTO nonsense !!")
    pipeline.load()
    end = told.end()
    assert end["eventType"] == "FAIL"
    assert "raw.users" not in {each["name"] for each in end["outputs"]}
    assert end["run"]["facets"]["dlt_execution"]["failed_jobs"] >= 1
    (why,) = end["run"]["facets"]["dlt_error"]["errors"]
    assert why["table"] == "users"
    assert "Traceback" not in why["message"]
    assert "  File " not in why["message"]
    message = end["run"]["facets"]["errorMessage"]["message"]
    assert message == f"1 load job(s) failed, of: users. {why['message']}"


def test_4_the_reason_of_a_failed_job_is_told_however_long_its_chain_of_tracebacks(
    told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOAD__RAISE_ON_FAILED_JOBS", "false")

    @dlt.destination(name="mailer")
    def mailer(items: Any, table: Any) -> None:
        try:
            raise ValueError("x" * 5_000)
        except ValueError as fault:
            raise DestinationTerminalException("the address is unknown") from fault

    dlt.pipeline("post", destination=mailer, pipelines_dir=str(tmp_path)).run([{"id": 1}], table_name="users")
    facets = told.end()["run"]["facets"]
    assert facets["errorMessage"]["message"].endswith(" the address is unknown")
    assert facets["dlt_error"]["errors"][0]["message"].endswith("the address is unknown")
    if VERSION >= (1, 30):  # before, dlt told the last words alone
        assert facets["dlt_error"]["errors"][0]["message"].endswith("Exception: the address is unknown")
        assert "ValueError" in facets["errorMessage"]["stackTrace"]


def test_5_a_run_that_loads_nothing_claims_no_output(told: Told, duck: Any) -> None:
    @dlt.resource(primary_key="id", write_disposition="append")
    def events(at: Any = dlt.sources.incremental("at", initial_value=0)) -> Any:  # noqa: B008 - dlt's own way
        yield [{"id": 1, "at": 5}]

    pipeline = duck()
    pipeline.run(events())
    told.clear()
    pipeline.run(events())
    assert told.end()["eventType"] == "COMPLETE"
    assert told.end()["outputs"] == []
    told.clear()
    pipeline.run()
    assert told.end()["outputs"] == told.end()["inputs"] == []


def test_6_every_schema_of_a_pipeline_is_told(told: Told, duck: Any) -> None:
    @dlt.source
    def first() -> Any:
        return dlt.resource([{"a": 1}], name="alpha")

    @dlt.source
    def second() -> Any:
        return dlt.resource([{"b": "x"}], name="beta")

    duck().run([first(), second()])
    found = {
        each["name"]: [field["name"] for field in each["facets"]["schema"]["fields"]]
        for each in told.end()["outputs"]
    }
    assert "a" in found["raw.alpha"]
    assert "b" in found["raw.beta"]


def test_7_steps_one_by_one_are_one_family_tied_by_load_ids(told: Told, duck: Any) -> None:
    pipeline = duck()
    pipeline.extract(users())
    pipeline.normalize()
    pipeline.load()
    ends = told("COMPLETE")
    assert len(ends) == 3
    extract, normalize, load = ends
    for each in (normalize, load):
        assert each["run"]["facets"]["parent"]["run"]["runId"] == extract["run"]["runId"]
    assert len({tuple(each["run"]["facets"]["dlt_execution"]["load_ids"]) for each in ends}) == 1
    assert extract["outputs"] == normalize["outputs"] == []
    assert [each["name"] for each in load["inputs"]] == ["dlt/users"]
    counts = {each["name"]: each["outputFacets"]["outputStatistics"]["rowCount"] for each in load["outputs"]}
    assert counts["raw.users"] == 2
    assert ("users__addresses", "city", "dlt/users", "addresses[*].city") in pairs(load)


def test_8_the_namespace_of_the_environment_is_heard(
    tmp_path: Path, duck: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "team_a")
    file = tmp_path / "ns.jsonl"
    headwater.dlt.install(transport=f"file://{file}")
    duck().run(users())
    assert {each["job"]["namespace"] for each in Told(file)()} == {"team_a"}
    assert [each["name"] for each in Told(file).end()["inputs"]] == ["team_a/users"]


@needs_inputs
def test_9_a_sql_table_is_named_as_the_database_names_it(told: Told, duck: Any, tmp_path: Path) -> None:
    from dlt.sources.sql_database import sql_database

    with sqlite3.connect(tmp_path / "shop.db") as made:
        made.execute('CREATE TABLE "Order Items" ("Order ID" INTEGER PRIMARY KEY, "unitPrice" REAL)')
        made.execute('INSERT INTO "Order Items" VALUES (1, 2.5)')
    made.close()
    for backend in ("sqlalchemy", "pyarrow"):
        told.clear()
        duck(f"orders_{backend}").run(sql_database(f"sqlite:///{tmp_path}/shop.db", backend=backend))
        end = told.end()
        assert [(each["namespace"], each["name"]) for each in end["inputs"]] == [
            (f"sqlite://{tmp_path}/shop.db", "Order Items")
        ]
        assert {
            ("order_items", "order_id", "Order Items", "Order ID"),
            ("order_items", "unit_price", "Order Items", "unitPrice"),
        } <= pairs(end)


@needs_inputs
def test_9_files_are_named_by_where_they_lie(told: Told, duck: Any, tmp_path: Path) -> None:
    from dlt.sources.filesystem import filesystem, read_csv

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("Cust Id,total\n7,1.5\n")
    rows = filesystem(bucket_url=str(tmp_path / "in"), file_glob="*.csv") | read_csv()
    duck().run(rows.with_name("sales"))
    end = told.end()
    assert ("file", f"{tmp_path}/in") in {(each["namespace"], each["name"]) for each in end["inputs"]}


@needs_inputs
def test_9_an_endpoint_is_named_by_its_address_without_who_calls(told: Told, duck: Any, web: Any) -> None:
    from dlt.sources.rest_api import rest_api_source

    source = rest_api_source(
        {
            "client": {"base_url": web.url.replace("http://", "http://fred:hunter2@") + "/v1/"},
            "resources": [{"name": "posts", "endpoint": {"path": "posts"}}],
        }
    )
    duck().run(source)
    end = told.end()
    assert [(each["namespace"], each["name"]) for each in end["inputs"]] == [(web.url, "/v1/posts")]
    assert ("posts__tags", "value", "/v1/posts", "tags[*]") in pairs(end)
    assert "hunter2" not in told.file.read_text()


def test_10_a_table_comes_from_its_own_resource_only(told: Told, duck: Any) -> None:
    @dlt.resource
    def events() -> Any:
        yield {"kind": "click"}

    duck().run([users(), events()])
    found = {
        each["name"]: [source["name"] for source in each["facets"]["lineage"]["inputs"]]
        for each in told.end()["outputs"]
    }
    assert found == {
        "raw.users": ["dlt/users"],
        "raw.users__addresses": ["dlt/users"],
        "raw.events": ["dlt/events"],
    }
    assert {(table, source) for table, _, source, _ in pairs(told.end())} == {
        ("users", "dlt/users"),
        ("users__addresses", "dlt/users"),
        ("events", "dlt/events"),
    }


def test_11_inside_an_airflow_task_the_task_is_the_parent(
    told: Told, duck: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = "0192c3a4-0000-7000-8000-000000000001"
    monkeypatch.setenv("OPENLINEAGE_PARENT_ID", f"prod/daily.load/{run}")
    monkeypatch.setenv("AIRFLOW_CTX_LOGICAL_DATE", "2026-01-01T00:00:00+00:00")
    duck().run(users())
    for event in told():
        parent = event["run"]["facets"]["parent"]
        assert (parent["job"]["name"], parent["run"]["runId"]) == ("daily.load", run)
        assert event["run"]["facets"]["nominalTime"]["nominalStartTime"] == "2026-01-01T00:00:00+00:00"


def test_12_a_server_that_is_down_loses_nothing_and_is_not_waited_for(
    tmp_path: Path, duck: Any, monkeypatch: pytest.MonkeyPatch, environment: Any
) -> None:
    monkeypatch.setenv("HEADWATER_SPOOL", str(tmp_path / "spool"))
    headwater.dlt.install(url="http://127.0.0.1:9")  # nobody listens there
    duck().run(users())
    waiting = subprocess.run(
        [sys.executable, "-m", "headwater", "spool", "status", "--dir", str(tmp_path / "spool"), "--json"],
        capture_output=True,
        text=True,
        check=True,
        env=environment(),
    )
    assert '"waiting": 3' in waiting.stdout or '"events": 3' in waiting.stdout, waiting.stdout
    assert any("127-0-0-1-9" in each.name for each in (tmp_path / "spool").iterdir())  # for that server


def test_13_facets_that_were_missing(told: Told, duck: Any) -> None:
    @dlt.resource(
        write_disposition="replace",
        columns={"email": {"x-annotation-pii": True}},  # type: ignore[typeddict-unknown-key]
    )
    def people() -> Any:
        """Everybody."""
        yield {"id": 1, "email": "a@example.org"}

    pipeline = duck()
    pipeline.run(people())
    first = {each["name"]: each["facets"] for each in told.end()["outputs"]}["raw.people"]
    assert first["lifecycleStateChange"]["lifecycleStateChange"] == "CREATE"
    assert first["tags"]["tags"] == [{"key": "pii", "value": "true", "source": "DLT", "field": "email"}]
    assert first["dlt_table"]["write_disposition"] == "replace"
    assert first["version"]["datasetVersion"] in told.end()["run"]["facets"]["dlt_execution"]["load_ids"]
    told.clear()

    @dlt.resource(name="people", write_disposition="replace")
    def more() -> Any:
        yield {"id": 1, "email": "a@example.org", "phone": "1"}

    pipeline.run(more())
    again = {each["name"]: each["facets"] for each in told.end()["outputs"]}["raw.people"]
    assert again["lifecycleStateChange"]["lifecycleStateChange"] == "OVERWRITE"
    assert again["dlt_table"]["new_columns"] == ["phone"]


def test_14_the_run_id_is_that_of_the_transaction(told: Told, duck: Any) -> None:
    from headwater.capture.dlt.events import run_id

    pipeline = duck()
    pipeline.run(users())
    trace = pipeline.last_trace
    began = trace.started_at.isoformat(timespec="milliseconds")
    assert told.end()["run"]["runId"] == run_id(trace.transaction_id, began)
    assert told.end()["run"]["facets"]["dlt_execution"]["transaction_id"] == trace.transaction_id


def test_15_without_any_code_where_headwater_is_configured_and_never_otherwise(
    tmp_path: Path, environment: Any
) -> None:
    script = tmp_path / "job.py"
    script.write_text(
        "import dlt\n"
        "p = dlt.pipeline('plain', destination=dlt.destinations.duckdb('x.duckdb'), dataset_name='raw')\n"
        "p.run([{'a': 1}], table_name='t')\n"
    )
    file = tmp_path / "zero.jsonl"
    by_plugin = (
        3 if VERSION >= (1, 27) else 0
    )  # an older dlt loads only plugins that are called dlt-something
    for more, expected in (({}, 0), ({"HEADWATER_TRANSPORT": f"file://{file}"}, by_plugin)):
        subprocess.run([sys.executable, str(script)], env=environment(**more), cwd=tmp_path, check=True)
        assert len(Told(file)()) == expected
    file.unlink(missing_ok=True)
    run = [sys.executable, "-m", "headwater", "run", "--transport", f"file://{file}", "--"]
    subprocess.run([*run, sys.executable, str(script)], env=environment(), cwd=tmp_path, check=True)
    assert len(Told(file)()) == 3


@pytest.mark.skipif(VERSION >= (1, 30), reason="dlt tells where resources read from since 1.30")
def test_what_an_older_dlt_does_not_tell_is_said(told: Told, duck: Any) -> None:
    duck().run(users())
    (reason,) = told.end()["run"]["facets"]["headwater_degraded"]["reasons"]
    assert reason == f"dlt {dlt.__version__} does not tell where resources read from; 1.30 does: users"


def test_nothing_is_said_to_be_missing_where_nothing_is(told: Told, duck: Any) -> None:
    duck().run(users())
    assert ("headwater_degraded" in told.end()["run"]["facets"]) == (VERSION < (1, 30))
