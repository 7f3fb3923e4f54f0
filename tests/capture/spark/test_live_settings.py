"""What has to be asked for, with a Spark that runs: texts, plans, the line of the program, counts of a database."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from checking import ends

from openlineage_schemas import assert_openlineage

PROGRAM = """
import os, sys
import headwater.spark
from pyspark.sql import SparkSession

os.environ["TEAM"], os.environ["TEAM_TOKEN"] = "shop", "hush"
folder = sys.argv[1]
ol = "spark.openlineage."
settings = {
    "spark.ui.enabled": "false",
    "spark.sql.warehouse.dir": folder + "/w",
    "spark.jars.ivy": folder + "/ivy",
    ol + "columnLineage.descriptionsEnabled": "true",
    ol + "facets.spark.logicalPlan.disabled": "false",
    ol + "facets.debug.disabled": "false",
    ol + "facets.custom_environment_variables": "[TEAM;TEAM_TOKEN;NONE]",
    ol + "run.tags": "adhoc",
    ol + "job.tags": "env:test",
    ol + "job.owners.team": "shop",
    ol + "dataset.removePath.pattern": "(?<remove>" + folder + ")/",
}
builder = SparkSession.builder.master("local[1]").appName("Asked")
for key, value in settings.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("OFF")
headwater.spark.install(spark, transport="file://" + folder + "/events.jsonl")
url = "jdbc:derby:memory:shop;create=true"
spark.range(5).write.parquet(folder + "/a")  # line a
frame = spark.read.parquet(folder + "/a")
frame.where("id > 1").selectExpr("id * 2 as twice", "id").write.parquet(folder + "/b")  # line b
spark.sql("CREATE TABLE t USING parquet AS SELECT id FROM parquet.`" + folder + "/a`")  # line c
frame.write.jdbc(url, "ORDERS")  # line d
spark.read.jdbc(url, "ORDERS").write.parquet(folder + "/e")  # line e

def inner():
    frame.write.mode("overwrite").parquet(folder + "/f")  # line f
inner()
frame.count()  # line g
frame.show()  # line h
frame.rdd.map(str).saveAsTextFile(folder + "/i")  # line i
stream = spark.readStream.schema("id long").parquet(folder + "/a").writeStream
stream.trigger(availableNow=True).option("checkpointLocation", folder + "/c").start(folder + "/j").awaitTermination()  # line j
frame.toPandas()  # line k
spark.sparkContext.setLogLevel("OFF")
spark.stop()
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, dict[str, dict[str, Any]], list[Any]]:
    """The folder, the commit, the ends by the line's letter, and all events."""
    pytest.importorskip("pyspark")
    folder = tmp_path_factory.mktemp("asked").resolve()
    (folder / "src").mkdir()
    (folder / "src" / "job.py").write_text(PROGRAM)
    git = ["git", "-C", str(folder), "-c", "user.name=t", "-c", "user.email=t@t"]
    for command in (
        ["init", "-q", "-b", "trunk"],
        ["remote", "add", "origin", "https://fred:hush@git.example.org/shop/jobs.git"],
        ["add", "src"],
        ["commit", "-qm", "x"],
    ):
        subprocess.run([*git, *command], check=True, capture_output=True)
    commit = subprocess.run(
        [*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()
    done = subprocess.run(
        [sys.executable, "src/job.py", str(folder)],
        cwd=folder, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    lines = {
        f"L{number}": text[-1]
        for number, text in enumerate(PROGRAM.splitlines(), 1)
        if text[:-1].endswith("# line ")
    }
    found: dict[str, dict[str, Any]] = {}
    for event in ends(events):
        if "." in event["job"]["name"]:
            line = event["job"]["facets"]["sourceCodeLocation"]["url"].rpartition("#")[2]
            assert found.setdefault(lines[line], event) is event
    return folder, commit, found, events


def test_every_event_is_valid(told: Any, shared: Path) -> None:
    for event in told[3]:
        assert_openlineage(event, shared)


def test_each_action_tells_its_line_and_its_commit(told: Any) -> None:
    _, commit, found, _ = told
    assert set(found) == set("abcdefghijk")
    where = found["f"]["job"]["facets"]["sourceCodeLocation"]
    assert where["type"] == "git"
    assert where["url"].startswith(f"https://git.example.org/shop/jobs/blob/{commit}/src/job.py#L")
    assert (where["path"], where["version"], where["branch"]) == ("src/job.py", commit, "trunk")
    assert where["repoUrl"] == "https://git.example.org/shop/jobs"


def test_texts_stand_beside_what_they_describe(told: Any) -> None:
    (out,) = told[2]["b"]["outputs"]
    lineage = out["facets"]["columnLineage"]
    (how,) = lineage["fields"]["twice"]["inputFields"][0]["transformations"]
    assert "id *" in how["description"]
    (same,) = lineage["fields"]["id"]["inputFields"][0]["transformations"]
    assert "description" not in same
    (rows,) = lineage["dataset"][0]["transformations"]
    assert rows["description"].startswith("WHERE (id > ")


def test_names_are_cut_as_asked(told: Any) -> None:
    assert [each["name"] for each in told[2]["b"]["inputs"]] == ["/a"]
    assert [each["name"] for each in told[2]["b"]["outputs"]] == ["/b"]


def test_plans_and_debug_on_demand(told: Any) -> None:
    facets = told[2]["b"]["run"]["facets"]
    assert any("LogicalRelation" in str(node) for node in facets["spark.logicalPlan"]["plan"])
    assert next(each["desc"] for each in facets["debug"]["logicalPlan"]["nodes"]) == "LogicalRelation"
    assert facets["debug"]["system"]["pythonVersion"]


def test_what_a_database_gave_is_counted(told: Any) -> None:
    (read,) = told[2]["e"]["inputs"]
    assert read["inputFacets"]["inputStatistics"]["rowCount"] == 5
    (written,) = told[2]["d"]["outputs"]
    assert written["name"] == read["name"]


def test_starts_tell_the_application(told: Any) -> None:
    for event in told[3]:
        if event["eventType"] == "START":
            facets = event["run"]["facets"]
            assert facets["spark_properties"]["properties"]["spark.app.name"] == "Asked"
            assert facets["spark_applicationDetails"]["master"] == "local[1]"
            assert facets["environmentVariables"]["environmentVariables"] == [
                {"name": "TEAM", "value": "shop"},
                {"name": "TEAM_TOKEN", "value": "***"},
            ]
        assert [each["key"] for each in event["run"]["facets"]["tags"]["tags"]] == ["adhoc"]
        assert event["job"]["facets"]["ownership"]["owners"] == [{"name": "shop", "type": "team"}]
    assert "hush" not in json.dumps(told[3])
