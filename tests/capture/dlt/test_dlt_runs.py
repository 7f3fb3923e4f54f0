"""What real runs do over time -> what is told of them: models, cursors, refreshes, packages that wait, owners, code."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from dlt.extract.hints import make_hints
from telling import VERSION, Told, pairs

import dlt
from openlineage_schemas import assert_openlineage

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:dlt")  # of its own older options


def facets(event: dict[str, Any], table: str) -> dict[str, Any]:
    """The facets of the output of that name."""
    return next(each["facets"] for each in event["outputs"] if each["name"] == table)  # type: ignore[no-any-return]


def change(event: dict[str, Any], table: str) -> str | None:
    told = facets(event, table).get("lifecycleStateChange") or {}
    return told.get("lifecycleStateChange")


# --- models: resources that are SQL


def test_a_model_reads_tables_of_the_destination_column_by_column(
    told: Told, duck: Any, shared: Path
) -> None:
    pipeline = duck()
    pipeline.run(
        [
            dlt.resource([{"id": 1, "name": "Ann", "amt": 2.5}], name="orders"),
            dlt.resource([{"id": 1, "city": "Rome"}], name="cities"),
        ]
    )
    told.clear()
    dataset = pipeline.dataset()

    @dlt.resource(write_disposition="replace")
    def report() -> Any:
        relation = dataset(
            'SELECT o.id AS "Person Id", upper(o.name) AS nm, o.amt * 2 AS dbl, c.city'
            " FROM orders AS o JOIN (SELECT id, city FROM cities) AS c ON o.id = c.id"
        )
        yield dlt.mark.with_hints(relation, hints=make_hints(columns=relation.columns_schema))

    pipeline.run(report())
    end = told.end()
    assert end["eventType"] == "COMPLETE"
    place = end["outputs"][0]["namespace"]
    assert {(each["namespace"], each["name"]) for each in end["inputs"]} == {
        (place, "raw.orders"),
        (place, "raw.cities"),
    }
    assert pairs(end) == {
        ("report", "person_id", "raw.orders", "id"),
        ("report", "nm", "raw.orders", "name"),
        ("report", "dbl", "raw.orders", "amt"),
        ("report", "city", "raw.cities", "city"),
    }
    with pipeline.sql_client() as client:
        assert client.execute_sql("SELECT person_id, nm, dbl, city FROM report") == [(1, "ANN", 5.0, "Rome")]
    fields = facets(end, "raw.report")["columnLineage"]["fields"]
    kinds = {name: field["inputFields"][0]["transformations"][0]["subtype"] for name, field in fields.items()}
    assert kinds == {
        "person_id": "IDENTITY",
        "nm": "TRANSFORMATION",
        "dbl": "TRANSFORMATION",
        "city": "IDENTITY",
    }
    assert "upper(" in facets(end, "raw.report")["dlt_table"]["sql"].lower()
    for event in told():
        assert_openlineage(event, shared)


def test_a_model_claims_no_column_that_its_table_lacks(told: Told, duck: Any) -> None:
    pipeline = duck()
    pipeline.run([{"id": 1}], table_name="orders")
    told.clear()
    relation = pipeline.dataset()("SELECT id AS pid FROM orders")
    pipeline.run(dlt.resource([relation], name="report"))  # without hints dlt makes none of its columns
    with pipeline.sql_client() as client:
        columns = client.execute_sql(
            "SELECT column_name FROM information_schema.columns WHERE table_name = 'report'"
        )
    assert {column for _, column, _, _ in pairs(told.end())} == {name for (name,) in columns} - {
        "_dlt_load_id"
    }


# --- cursors


def test_a_cursor_is_told_with_its_bounds_and_where_it_stands(told: Told, duck: Any) -> None:
    @dlt.resource(primary_key="id")
    def events(at: Any = dlt.sources.incremental("meta.at", initial_value=3)) -> Any:  # noqa: B008 - dlt's own way
        yield [{"id": n, "meta": {"at": n}} for n in range(10)]

    duck().run(events())
    end = told.end()
    (source,) = end["inputs"]
    cursor = source["facets"]["dlt_incremental"]
    assert (cursor["resource"], cursor["cursor_path"], cursor["initial_value"]) == ("events", "meta.at", 3)
    assert end["run"]["facets"]["dlt_execution"]["incremental"] == {"events": {"meta.at": 9}}


# --- what happens to tables


def test_a_refresh_of_a_source_drops_what_is_no_longer_loaded(told: Told, duck: Any) -> None:
    @dlt.source(name="shop")
    def shop(names: tuple[str, ...]) -> Any:
        return [dlt.resource([{"id": 1}], name=name) for name in names]

    pipeline = duck()
    pipeline.run(shop(("orders", "returns")))
    assert change(told.end(), "raw.orders") == "CREATE"
    told.clear()
    pipeline.run(shop(("orders",)), refresh="drop_sources")
    end = told.end()
    assert change(end, "raw.orders") == "OVERWRITE"
    assert change(end, "raw.returns") == "DROP"
    assert "columnLineage" not in facets(end, "raw.returns")
    if VERSION >= (1, 30):  # older packages do not keep it
        assert end["run"]["facets"]["dlt_execution"]["refresh"] == ["drop_sources"]
    with pipeline.sql_client() as client:
        assert not client.execute_sql(
            "SELECT 1 FROM information_schema.tables WHERE table_schema = 'raw' AND table_name = 'returns'"
        )


def test_a_refresh_of_data_empties_the_table_and_keeps_it(told: Told, duck: Any) -> None:
    pipeline = duck()
    pipeline.run(dlt.resource([{"id": 1}], name="orders"))
    told.clear()
    pipeline.run(dlt.resource([{"id": 2}], name="orders"), refresh="drop_data")
    assert change(told.end(), "raw.orders") == "TRUNCATE"
    with pipeline.sql_client() as client:
        assert client.execute_sql("SELECT id FROM orders") == [(2,)]


def test_a_refresh_of_a_resource_makes_its_table_anew(told: Told, duck: Any) -> None:
    pipeline = duck()
    pipeline.run(dlt.resource([{"id": 1, "old": 1}], name="orders"))
    told.clear()
    pipeline.run(dlt.resource([{"id": 2}], name="orders"), refresh="drop_resources")
    end = told.end()
    assert change(end, "raw.orders") == "OVERWRITE"
    assert "old" not in {each["name"] for each in facets(end, "raw.orders")["schema"]["fields"]}


def test_new_columns_are_an_alteration_and_nothing_new_is_none(told: Told, duck: Any) -> None:
    pipeline = duck()
    for rows, expected in (([{"id": 1}], "CREATE"), ([{"id": 2, "new": 1}], "ALTER"), ([{"id": 3}], None)):
        told.clear()
        pipeline.run(rows, table_name="t")
        assert change(told.end(), "raw.t") == expected


def test_a_merge_tells_its_strategy_and_keys(told: Told, duck: Any) -> None:
    rows = dlt.resource(
        [{"id": 1, "v": "a"}],
        name="dim",
        primary_key="id",
        write_disposition={"disposition": "merge", "strategy": "scd2"},
    )
    duck().run(rows)
    facet = facets(told.end(), "raw.dim")["dlt_table"]
    assert (facet["write_disposition"], facet["merge_strategy"], facet["primary_key"]) == (
        "merge",
        "scd2",
        ["id"],
    )
    assert {"_dlt_valid_from", "_dlt_valid_to"} <= set(facet["generated_columns"])
    assert "columns_of_unknown_source" not in facet


# --- packages


def test_a_package_that_waited_is_loaded_by_the_next_run_with_its_own_inputs(told: Told, duck: Any) -> None:
    pipeline = duck()
    pipeline.run([{"id": 1}], table_name="before")  # one that never loaded forgets what waits
    pipeline.extract(dlt.resource([{"First": 1}], name="first"))
    pipeline.normalize()
    told.clear()
    second = dlt.resource([{"Second": 1}, {"Second": 2}], name="second")
    for name, rows in (
        ("first", 1),
        ("second", 2),
    ):  # dlt loads what waits, and leaves the new for the next time
        told.clear()
        pipeline.run(second)
        end = told.end()
        assert end["eventType"] == "COMPLETE"
        counts = {
            each["name"]: each["outputFacets"]["outputStatistics"]["rowCount"] for each in end["outputs"]
        }
        assert counts == {f"raw.{name}": rows}
        assert {each["name"] for each in end["inputs"]} == {f"dlt/{name}"}
        assert pairs(end) == {(name, name, f"dlt/{name}", name.capitalize())}


def test_two_packages_of_one_table_are_one_output_with_what_both_know(
    told: Told, duck: Any, shared: Path
) -> None:
    pipeline = duck()
    pipeline.run([{"id": 0}], table_name="before")
    for name, rows in (
        ("web", [{"Id": 1, "Web Page": "x"}]),
        ("app", [{"Id": 2, "App Screen": "y"}, {"ID": 3}]),
    ):
        pipeline.extract(dlt.resource(rows, name=name, table_name="clicks"))
    pipeline.normalize()
    told.clear()
    pipeline.load()
    end = told.end()
    (out,) = end["outputs"]
    assert out["outputFacets"]["outputStatistics"]["rowCount"] == 3
    assert pairs(end) == {
        ("clicks", "id", "dlt/web", "Id"),
        ("clicks", "web_page", "dlt/web", "Web Page"),
        ("clicks", "id", "dlt/app", "Id"),
        ("clicks", "id", "dlt/app", "ID"),
        ("clicks", "app_screen", "dlt/app", "App Screen"),
    }
    assert {each["name"] for each in out["facets"]["lineage"]["inputs"]} == {"dlt/web", "dlt/app"}
    assert "columns_of_unknown_source" not in out["facets"]["dlt_table"]
    assert change(end, "raw.clicks") == "CREATE"
    assert_openlineage(end, shared)


def test_a_resource_that_yields_nothing_is_no_input(told: Told, duck: Any) -> None:
    pipeline = duck()
    for rows in ([{"id": 1}], []):
        told.clear()
        pipeline.run(
            [dlt.resource(rows, name="web", table_name="clicks"), dlt.resource([{"id": 1}], name="other")]
        )
    assert [each["name"] for each in told.end()["inputs"]] == ["dlt/other"]
    assert [each["name"] for each in told.end()["outputs"]] == ["raw.other"]


def test_two_resources_of_one_package_that_load_one_table(told: Told, duck: Any) -> None:
    duck().run(
        [
            dlt.resource([{"Id": 1}], name="web", table_name="clicks"),
            dlt.resource([{"Id": 2}], name="app", table_name="clicks"),
        ]
    )
    (out,) = told.end()["outputs"]
    assert out["outputFacets"]["outputStatistics"]["rowCount"] == 2
    assert {each["name"] for each in told.end()["inputs"]} == {"dlt/web", "dlt/app"}
    assert {each["name"] for each in out["facets"]["lineage"]["inputs"]} == {"dlt/web", "dlt/app"}
    # the files of one table do not say whose items they hold: no field is claimed for one of them alone
    assert pairs(told.end()) == set()
    assert out["facets"]["dlt_table"]["columns_of_unknown_source"] == ["id"]


def test_a_package_extracted_by_another_program_still_has_its_columns(
    told: Told, duck: Any, tmp_path: Path, captured: Any
) -> None:
    script = (
        "import dlt; dlt.pipeline('shop', destination=dlt.destinations.duckdb('shop.duckdb'), dataset_name='raw',"
        f" pipelines_dir={str(tmp_path / 'pipelines')!r}).extract([{{'Order ID': 1}}], table_name='orders')"
    )
    (extract,) = {each["run"]["runId"] for each in captured("-c", script)()}
    pipeline = duck()
    pipeline.normalize()
    pipeline.load()
    end = told("COMPLETE")[-1]
    assert pairs(end) == {("orders", "order_id", "dlt/orders", "Order ID")}
    assert end["run"]["facets"]["parent"]["run"]["runId"] == extract


def test_a_package_that_was_extracted_unseen_says_so(told: Told, duck: Any) -> None:
    import headwater.dlt

    headwater.dlt.uninstall()
    pipeline = duck()
    pipeline.extract([{"id": 1}], table_name="t")
    headwater.dlt.install(transport=f"file://{told.file}")
    pipeline.normalize()
    pipeline.load()
    end = told("COMPLETE")[-1]
    facet = facets(end, "raw.t")["dlt_table"]
    assert facet["columns_of_unknown_source"] == ["id"]
    assert facet["why"] == "the package was extracted without Headwater"


# --- who, what, when


def test_owners_tags_and_words_come_from_hints(told: Told, duck: Any, shared: Path) -> None:
    @dlt.resource(
        columns={
            "email": {"x-annotation-pii": True, "description": "where to write to"},  # type: ignore[typeddict-unknown-key]
            "id": {"x-annotation-pii": False},  # type: ignore[typeddict-unknown-key]
        }
    )
    def people() -> Any:
        yield {"id": 1, "email": "a@example.org"}

    made = people()
    made.apply_hints(
        additional_table_hints={
            "x-annotation-owner": ["ann@example.org", "team-crm"],
            "x-annotation-domain": "crm",
            "description": "Everybody.",
        }
    )
    duck().run(made)
    found = facets(told.end(), "raw.people")
    assert [(each["name"], each["type"]) for each in found["ownership"]["owners"]] == [
        ("ann@example.org", "OWNER"),
        ("team-crm", "OWNER"),
    ]
    assert {(each["key"], each["value"], each.get("field")) for each in found["tags"]["tags"]} == {
        ("domain", "crm", None),
        ("pii", "true", "email"),
    }
    assert found["documentation"]["description"] == "Everybody."
    words = {each["name"]: each.get("description") for each in found["schema"]["fields"]}
    assert words["email"] == "where to write to"
    assert_openlineage(told.end(), shared)


def test_an_error_names_the_resource_and_whether_it_may_be_tried_again(told: Told, duck: Any) -> None:
    @dlt.resource
    def orders() -> Any:
        yield {"id": 1}
        raise ValueError("the well is dry")

    with pytest.raises(Exception, match="the well is dry"):
        duck().run(orders())
    errors = told.end()["run"]["facets"]["dlt_error"]["errors"]
    assert "orders" in {each.get("resource") for each in errors}
    assert errors[-1]["type"] == "ValueError"


def test_the_program_is_told_by_its_line_and_its_commit(tmp_path: Path, captured: Any) -> None:
    home = tmp_path / "repo"
    home.mkdir()
    (home / "job.py").write_text(
        "import dlt\n"
        "p = dlt.pipeline('plain', destination=dlt.destinations.duckdb('x.duckdb'), dataset_name='raw')\n"
        "p.run([{'a': 1}], table_name='t')\n"
    )
    for command in (
        "init -q -b trunk",
        "add job.py",
        "-c user.name=a -c user.email=a@example.org commit -q -m first",
        "remote add origin https://fred:hunter2@example.org/team/jobs.git",
    ):
        subprocess.run(["git", *command.split()], cwd=home, check=True)
    events = captured("job.py", cwd=home)
    for event in events():
        code = event["job"]["facets"]["sourceCodeLocation"]
        assert (code["type"], code["path"], code["branch"]) == ("git", "job.py", "trunk")
        assert code["url"] == f"https://example.org/team/jobs/blob/{code['version']}/job.py#L3"
    assert "hunter2" not in events.file.read_text()


def test_a_run_under_way_is_told_to_its_end_though_the_capture_is_taken_out(told: Told, duck: Any) -> None:
    import headwater.dlt

    @dlt.resource
    def users() -> Any:
        yield {"id": 1}
        headwater.dlt.uninstall()

    duck("first").run(users())
    duck("second").run([{"id": 1}], table_name="users")
    assert [(each["job"]["name"], each["eventType"]) for each in told()] == [
        ("first", "START"),
        ("first", "RUNNING"),
        ("first", "COMPLETE"),
    ]
