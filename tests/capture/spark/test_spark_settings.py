"""What each setting of Spark changes in the events: the same records, told another way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from checking import ends
from replaying import START, VERSIONS, records, replay, state

from headwater.capture.spark import State, interpret
from headwater.capture.spark.settings import read
from headwater.capture.spark.trimming import DatasetNames
from headwater.errors import ConfigError
from headwater.naming import Identity
from openlineage_schemas import assert_openlineage

NEWEST = VERSIONS[-1]
OL = "spark.openlineage."


def set_to(**keys: str) -> State:
    s = state()
    s.settings = read({OL + key.replace("__", "."): value for key, value in keys.items()})
    return s


def files(path: str, *columns: tuple[int, str]) -> dict[str, Any]:
    return {
        "n": "LogicalRelation",
        "relation": {"t": "files", "format": "ParquetFileFormat", "paths": path.split(",")},
        "isStreaming": False,
        "o": [[number, name, "string"] for number, name in columns],
    }


def write(path: str, child: int, *columns: tuple[int, str]) -> dict[str, Any]:
    return {
        "n": "InsertIntoHadoopFsRelationCommand",
        "outputPath": path,
        "mode": "Overwrite",
        "query": {"#": child},
        "q": [[number, name, "string"] for number, name in columns],
        "outputColumnNames": [name for _, name in columns],
        "o": [],
    }


def filtered(child: int, column: int, **more: Any) -> dict[str, Any]:
    return {
        "n": "Filter",
        "child": {"#": child},
        "condition": ["IsNotNull", ["@", column, "x"]],
        **more,
    }


COPY = [files("s3a://lake/a", (1, "x"), (2, "y")), filtered(0, 2), write("s3a://lake/b", 1, (1, "x"))]


def ran(plan: list[dict[str, Any]], s: State, **more: Any) -> list[dict[str, Any]]:
    """The ends of what such an execution tells."""
    told = [
        {"kind": "start", "id": 1, "time": 10, "description": "x", "plan": plan},
        {"kind": "end", "id": 1, "time": 20, "metrics": [], **more},
    ]
    return ends(replay(told, s))


def lineage(end: dict[str, Any]) -> dict[str, Any]:
    (out,) = end["outputs"]
    return dict(out["facets"].get("columnLineage") or {})


def sources(listed: list[dict[str, Any]]) -> dict[str, set[str]]:
    return {
        f"{each['name']}:{each['field']}": {how["subtype"] for how in each["transformations"]}
        for each in listed
    }


# --- columns


def test_what_decides_on_rows_is_told_once_or_for_each_column(shared: Path) -> None:
    (once,) = ran(COPY, set_to())
    assert sources(lineage(once)["dataset"]) == {"a:y": {"FILTER"}}
    assert sources(lineage(once)["fields"]["x"]["inputFields"]) == {"a:x": {"IDENTITY"}}
    (each,) = ran(COPY, set_to(columnLineage__datasetLineageEnabled="false"))
    assert "dataset" not in lineage(each)
    assert sources(lineage(each)["fields"]["x"]["inputFields"]) == {"a:x": {"IDENTITY"}, "a:y": {"FILTER"}}
    assert_openlineage(each, shared)


@pytest.mark.parametrize("name", ["left_join", "rollup", "correlated_subquery", "multi_insert"])
def test_both_ways_tell_the_same_edges(name: str) -> None:
    """On what was recorded: the union over columns is what the dataset says."""
    told = records(NEWEST, name)
    once = ends(replay(told, set_to()))
    each = ends(replay(told, set_to(columnLineage__datasetLineageEnabled="false")))
    for a, b in zip(once, each, strict=True):
        for one, other in zip(a["outputs"], b["outputs"], strict=True):
            mine = one["facets"].get("columnLineage", {"fields": {}, "dataset": []})
            theirs = other["facets"].get("columnLineage", {"fields": {}})
            rows = sources(mine["dataset"])
            for column, field in theirs["fields"].items():
                own = sources(mine["fields"].get(column, {}).get("inputFields", []))
                want = {key: own.get(key, set()) | rows.get(key, set()) for key in {*own, *rows}}
                assert sources(field["inputFields"]) == want


def test_a_field_of_a_struct_is_told_as_itself_or_as_its_column() -> None:
    """On every recorded program: the same edges, once with leaves and once folded to their columns."""

    def told(leaves: str, name: str) -> set[tuple[str, str, str, str]]:
        found = replay(records(NEWEST, name), set_to(columnLineage__nestedFieldsEnabled=leaves))
        return {
            (out["name"], column, each["name"], each["field"])
            for event in ends(found)
            for out in event["outputs"]
            for column, field in out["facets"].get("columnLineage", {"fields": {}})["fields"].items()
            for each in field["inputFields"]
        }

    deeper = 0
    for path in sorted((Path(__file__).parent / "records" / NEWEST).glob("*.jsonl")):
        leaves, columns = told("true", path.stem), told("false", path.stem)
        if leaves != columns:
            deeper += 1
            for edge in leaves - columns:
                assert any(edge[:3] == each[:3] and edge[3].startswith(f"{each[3]}.") for each in columns)
            for edge in columns - leaves:
                assert any(edge[:3] == each[:3] and each[3].startswith(f"{edge[3]}.") for each in leaves)
    assert deeper  # some programs do read leaves


def test_a_dataset_that_is_too_wide_is_told_without_columns_and_why(shared: Path) -> None:
    plan = [files("/a", (1, "x"), (2, "y")), write("/b", 0, (1, "x"), (2, "y"))]
    (end,) = ran(plan, set_to(columnLineage__schemaSizeLimit="1"))
    assert lineage(end) == {}
    assert [each["name"] for each in end["outputs"][0]["facets"]["schema"]["fields"]] == ["x", "y"]
    (reason,) = end["run"]["facets"]["headwater_degraded"]["reasons"]
    assert "/b" in reason
    assert "2 columns" in reason
    assert_openlineage(end, shared)
    (end,) = ran(plan, set_to(columnLineage__schemaSizeLimit="2"))
    assert lineage(end)
    assert "headwater_degraded" not in end["run"]["facets"]


# --- names


def test_days_of_a_dataset_are_one_dataset(shared: Path) -> None:
    paths = "s3a://lake/a/2024-01-01,s3a://lake/a/2024-01-02"
    plan = [files(paths, (1, "x")), write("s3a://lake/b/year=2024/20240103T01", 0, (1, "x"))]
    metrics = [
        ["FileScan", 5, 1, 10, ["s3a://lake/a/2024-01-01"]],
        ["FileScan", 7, 2, 20, ["s3a://lake/a/2024-01-02"]],
    ]
    (end,) = ran(plan, set_to(), metrics=metrics)
    assert [(each["namespace"], each["name"]) for each in end["inputs"]] == [("s3://lake", "a")]
    told = end["inputs"][0]["inputFacets"]
    assert told["subset"]["inputCondition"]["locations"] == [
        "s3://lake/a/2024-01-01",
        "s3://lake/a/2024-01-02",
    ]
    assert {k: v for k, v in told["inputStatistics"].items() if k[0] != "_"} == {
        "rowCount": 12, "size": 30, "fileCount": 3,
    }  # fmt: skip
    assert end["outputs"][0]["name"] == "b"
    assert sources(lineage(end)["fields"]["x"]["inputFields"]) == {"a:x": {"IDENTITY"}}
    assert end["job"]["name"].endswith(".b")
    assert_openlineage(end, shared)


@pytest.mark.parametrize(
    ("disabled", "name"),
    [
        ("", "a"),
        ("[io.openlineage.client.dataset.partition.trimmer.DateTrimmer]", "a/2024-01-01"),
        ("KeyValueTrimmer", "a/2024-01-01/h=1"),
        ("YearMonthTrimmer;MultiDirDateTrimmer", "a"),
    ],
)
def test_a_trimmer_can_be_switched_off(disabled: str, name: str) -> None:
    plan = [files("s3a://lake/a/2024-01-01/h=1", (1, "x")), write("/b", 0, (1, "x"))]
    (end,) = ran(plan, set_to(dataset__disabledTrimmers=disabled))
    assert [each["name"] for each in end["inputs"]] == [name]
    assert sources(lineage(end)["fields"]["x"]["inputFields"]) == {f"{name}:x": {"IDENTITY"}}


def test_a_part_of_paths_can_be_removed() -> None:
    plan = [files("/data/run_17/a", (1, "x")), write("/data/run_17/b", 0, (1, "x"))]
    (end,) = ran(plan, set_to(dataset__removePath__pattern=r"/data(?<remove>/run_\d+)/.*"))
    assert (end["inputs"][0]["name"], end["outputs"][0]["name"]) == ("/data/a", "/data/b")
    assert sources(lineage(end)["fields"]["x"]["inputFields"]) == {"/data/a:x": {"IDENTITY"}}


@pytest.mark.parametrize(
    ("keys", "namespace", "resolved"),
    [
        ({"type": "hostList", "hosts": "[b1.x.org;b2.x.org]"}, "kafka://B2.x.org:9092", "kafka://prod:9092"),
        ({"type": "hostList", "hosts": "[b1.x.org]", "schema": "hdfs"}, "kafka://b1.x.org:1", "kafka://b1.x.org:1"),
        ({"type": "pattern", "regex": r"b\d\.x\.org"}, "kafka://b7.x.org:9092", "kafka://prod:9092"),
        ({"type": "pattern", "regex": r"b\d\.x\.org"}, "kafka://c7.x.org:9092", "kafka://c7.x.org:9092"),
        (
            {"type": "patternGroup", "regex": r"(?<cluster>[a-z]+)-\d+\.x\.org:\d*", "matchingGroup": "cluster", "schema": "kafka"},
            "kafka://east-13.x.org:9092",
            "kafka://east",
        ),
    ],
)  # fmt: skip
def test_hosts_of_a_cluster_get_one_name(keys: dict[str, str], namespace: str, resolved: str) -> None:
    said = read({f"{OL}dataset.namespaceResolvers.prod.{key}": value for key, value in keys.items()})
    assert said.unsupported == ()
    assert DatasetNames(said).of(Identity(namespace, "orders")) == Identity(resolved, "orders")


@pytest.mark.parametrize(
    ("keys", "match"),
    [
        ({"type": "magic"}, "not offered"),
        ({"type": "hostList"}, "hosts: is missing"),
        ({"type": "pattern", "regex": "("}, "no regular expression"),
        ({"type": "patternGroup", "regex": "a", "matchingGroup": "g"}, "no group"),
    ],
)
def test_a_wrong_resolver_is_refused(keys: dict[str, str], match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        DatasetNames(read({f"{OL}dataset.namespaceResolvers.prod.{k}": v for k, v in keys.items()}))


def test_a_trimmer_nobody_knows_is_refused() -> None:
    with pytest.raises(ConfigError, match="did you mean 'DateTrimmer'"):
        read({f"{OL}dataset.disabledTrimmers": "a.b.DatTrimmer"})


# --- what is told at all


def test_nodes_can_be_denied() -> None:
    command = "org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand"
    assert len(ran(COPY, set_to())) == 1
    assert ran(COPY, set_to(filter__deniedSparkNodes=f"[{command};x.Y]")) == []
    assert ran(COPY, set_to(filter__deniedSparkNodes=command), error="it failed") == []
    both = set_to(filter__deniedSparkNodes=command, filter__allowedSparkNodes=f"[{command}]")
    assert len(ran(COPY, both)) == 1


def test_a_denied_statement_about_a_table_stays_untold() -> None:
    told = records(NEWEST, "save_as_table")
    roots = {each["plan"][-1]["n"] for each in told if "plan" in each}
    assert ends(replay(told, set_to(filter__deniedSparkNodes=";".join(roots)))) == []


def test_jobs_of_rdds_can_be_left_out() -> None:
    told = [
        {"kind": "job_start", "id": 1, "time": START, "path": "file:/out", "names": []},
        {"kind": "job_end", "id": 1, "time": START + 5},
    ]
    assert len(ends(replay(told, set_to()))) == 1
    assert ends(replay(told, set_to(filter__rddEventsDisabled="true"))) == []


def test_job_names() -> None:
    (end,) = ran(COPY, set_to())
    assert end["job"]["name"] == "programs.insert_into_hadoop_fs_relation_command.b"
    (end,) = ran(COPY, set_to(jobName__replaceDotWithUnderscore="true"))
    assert end["job"]["name"] == "programs_insert_into_hadoop_fs_relation_command_b"
    (end,) = ran(COPY, set_to(jobName__appendDatasetName="false"))
    assert end["job"]["name"] == "programs.insert_into_hadoop_fs_relation_command"


# --- the keys of DataHub's agent


def test_datahub_keys_are_followed_or_named_once() -> None:
    said = read(
        {
            "spark.datahub.flow_name": "nightly",
            "spark.datahub.captureColumnLevelLineage": "false",
            "spark.datahub.capture_spark_plan": "true",
            "spark.datahub.metadata.dataset.openLineageTrimmersEnabled": "false",
            "spark.datahub.rest.server": "http://gms:8080",
            "spark.datahub.rest.token": "hush",
            "spark.datahub.metadata.pipeline.platformInstance": "eu",
        }
    )
    assert said.app_name == "nightly"
    assert said.disabled_facets == {"columnLineage"}
    assert said.asks_for("spark.logicalPlan")
    assert len(said.disabled_trimmers) == 4
    assert said.warnings == ()
    assert "hush" not in json.dumps([said.warnings, said.unsupported])
    assert said.unsupported == ()


def test_the_openlineage_word_goes_before_datahubs() -> None:
    assert read({"spark.datahub.flow_name": "a", f"{OL}appName": "b"}).app_name == "b"


def test_every_recorded_program_survives_every_setting() -> None:
    s = {
        "columnLineage__datasetLineageEnabled": "false",
        "columnLineage__schemaSizeLimit": "2",
        "dataset__removePath__pattern": "(?<remove>/data)",
        "jobName__replaceDotWithUnderscore": "true",
        "filter__rddEventsDisabled": "true",
        "facets__schema__disabled": "true",
    }
    for path in sorted((Path(__file__).parent / "records" / NEWEST).glob("*.jsonl")):
        for event in replay(records(NEWEST, path.stem), set_to(**s)):
            assert "." not in event["job"]["name"]
            assert all("schema" not in each["facets"] for each in event["outputs"])


def test_an_application_ends_as_before() -> None:
    (event,) = interpret({"kind": "app_end", "time": 1}, set_to())
    assert event["eventType"] == "COMPLETE"


# --- a spark-defaults.conf, checked

DEFAULTS = """
# as Java reads it
spark.openlineage.transport.type     http
spark.openlineage.transport.url=http://h:5000
spark.openlineage.circuitBreaker.type: simpleMemory
spark.extraListeners a.B,\\
    io.openlineage.spark.agent.OpenLineageSparkListener
"""


def check(path: Path, text: str) -> tuple[int, str, str]:
    from typer.testing import CliRunner

    from headwater.cli import build_app

    path.write_text(text)
    done = CliRunner().invoke(build_app(), ["config", "check", str(path)])
    return done.exit_code, done.stdout, done.stderr


def test_config_check_reads_spark_defaults(tmp_path: Path) -> None:
    file = tmp_path / "spark-defaults.conf"
    code, out, err = check(file, DEFAULTS)
    assert code == 0
    assert out.endswith("nothing wrong\n")
    assert "spark.openlineage.circuitBreaker.type has no effect" in err
    assert "OpenLineageSparkListener captures lineage too" in err
    for wrong, told in [
        ("spark.openlineage.columnLineage.schemaSizeLimit many", "no whole number"),
        ("spark.headwater.transprot x", "did you mean 'transport'"),
        ("spark.openlineage.dataset.namespaceResolvers.p.type magic", "not offered"),
        ("spark.headwater.transport http://h\nspark.headwater.transport.timeuot 3", "did you mean 'timeout'"),
    ]:
        code, out, _ = check(file, wrong)
        assert code == 2
        assert told in out
