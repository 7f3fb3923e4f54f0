"""`headwater config check` on other tools' files: every key with its verdict, 2 where something would not work, no value shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from headwater import config
from headwater.cli import build_app

SMT = "io.factorhouse.smt.OpenLineageLifecycleSmt"
SECRET = "hunter2-very-secret"


def check(path: Path, text: str) -> tuple[int, dict[str, Any]]:
    path.write_text(text)
    done = CliRunner().invoke(build_app(), ["config", "check", str(path), "--json"])
    assert SECRET not in done.output
    plain = CliRunner().invoke(build_app(), ["config", "check", str(path)])
    assert SECRET not in plain.output
    assert plain.exit_code == done.exit_code
    return done.exit_code, json.loads(done.stdout)


def verdicts(told: dict[str, Any]) -> dict[str, str]:
    return {each["key"]: each["verdict"] for each in told["keys"]}


# --- a connector

SINK = {
    "connector.class": "io.confluent.connect.s3.S3SinkConnector",
    "tasks.max": 1,
    "topics": "orders",
    "s3.bucket.name": "lake",
}
CARRIED = {
    **SINK,
    "transforms": "mask,openlineage",
    "transforms.mask.type": "org.apache.kafka.connect.transforms.MaskField$Value",
    "transforms.mask.fields": "email",
    "transforms.openlineage.type": SMT,
    "transforms.openlineage.connector.name": "orders",
    "transforms.openlineage.topics": "orders",
    "transforms.openlineage.value.converter.basic.auth.user.info": f"me:{SECRET}",
    "transforms.openlineage.something.new": "x",
}


def test_the_transform_is_taken_out_and_nothing_else(tmp_path: Path) -> None:
    code, told = check(tmp_path / "c.json", json.dumps({"name": "orders-s3", "config": CARRIED}))
    assert code == 0
    found = verdicts(told)
    assert {key for key, verdict in found.items() if verdict == "remove"} == {
        "transforms",
        *(key for key in CARRIED if key.startswith("transforms.openlineage.")),
    }
    (kept,) = (each for each in told["keys"] if each["key"] == "transforms")
    assert "leave mask" in kept["why"]


def test_what_the_watcher_would_tell_is_told_as_the_watcher_tells_it(tmp_path: Path) -> None:
    from headwater.capture.connect.lineage import lineage
    from headwater.capture.connect.places import Site
    from headwater.capture.connect.snapshots import Connector

    texts = {key: str(value) for key, value in SINK.items()}
    seen = lineage(Connector("orders-s3", "sink", texts), Site("connect"))
    _, told = check(tmp_path / "c.json", json.dumps({"name": "orders-s3", "config": SINK}))
    for each in (*seen.inputs, *seen.outputs):
        assert any(f"{each.dataset.namespace}/{each.dataset.name}" in note for note in told["notes"])


def test_the_configuration_alone_is_a_connector_too(tmp_path: Path) -> None:
    code, told = check(tmp_path / "c.json", json.dumps(SINK))
    assert (code, told["problems"]) == (0, [])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"name": "x", "config": {}}', "connector.class is missing"),
        ("[1]", "is no connector"),
        ("{", "is no JSON"),
        ('{"config": {"a": {"b": 1}}}', "is no connector"),
    ],
)
def test_what_is_no_connector_is_refused(text: str, problem: str, tmp_path: Path) -> None:
    code, told = check(tmp_path / "c.json", text)
    assert code == 2
    assert problem in json.dumps(told)


def test_an_unknown_connector_is_a_warning(tmp_path: Path) -> None:
    code, told = check(tmp_path / "c.json", json.dumps({"connector.class": "a.b.C", "topics": "t"}))
    assert code == 0
    assert any("a.b.C is not known" in each for each in told["warnings"])


def test_a_connector_of_which_nothing_can_be_told_is_a_problem(tmp_path: Path) -> None:
    code, told = check(tmp_path / "c.json", json.dumps({"connector.class": "a.b.SomeSource"}))
    assert code == 2
    assert told["problems"]


# --- variables


def test_variables_of_dlt_openlineage_are_honoured(tmp_path: Path) -> None:
    code, told = check(
        tmp_path / ".env",
        f"# lineage\nexport OPENLINEAGE_URL=http://localhost:5000\nOPENLINEAGE_NAMESPACE='my_project'\nOPENLINEAGE_API_KEY={SECRET} # key\nPATH=/bin\n",
    )
    assert (code, told["problems"]) == (0, [])
    assert verdicts(told) == dict.fromkeys(
        ["OPENLINEAGE_URL", "OPENLINEAGE_NAMESPACE", "OPENLINEAGE_API_KEY"], "honoured"
    )


@pytest.mark.parametrize("kind", ["correlator", "airflow_correlator.transport.CorrelatorTransport"])
def test_correlators_transport_becomes_ours(kind: str, tmp_path: Path) -> None:
    table = {"type": kind, "url": "http://c:8080", "api_key": SECRET, "timeout": 30, "verify_ssl": True}
    code, told = check(tmp_path / "airflow.env", f"AIRFLOW__OPENLINEAGE__TRANSPORT='{json.dumps(table)}'\n")
    name = "AIRFLOW__OPENLINEAGE__TRANSPORT"
    assert code == 2
    assert verdicts(told)[f"{name}.type"] == "becomes"
    (said,) = (each["to"] for each in told["keys"] if each["key"] == f"{name}.type")
    table["type"] = said.strip("`")
    code, told = check(tmp_path / "airflow.env", f"AIRFLOW__OPENLINEAGE__TRANSPORT='{json.dumps(table)}'\n")
    assert (code, told["problems"]) == (0, []), "what is advised must work"
    assert set(verdicts(told).values()) == {"honoured"}


@pytest.mark.parametrize(
    "form",
    ["{}", "'{}'", '"{}"', "  '{}'  # why", "'\n{}\n'"],
    ids=["bare", "single", "double", "comment", "lines"],
)
def test_json_in_a_variable_may_be_written_in_every_way(form: str, tmp_path: Path) -> None:
    table = json.dumps({"type": "headwater.airflow.Transport", "url": "http://h:5000"})
    text = form.format(table.replace('"', '\\"') if form.startswith('"') else table)
    code, told = check(
        tmp_path / ".env", f"AIRFLOW__OPENLINEAGE__TRANSPORT={text}\nOPENLINEAGE_NAMESPACE=a\n"
    )
    assert (code, told["problems"]) == (0, [])
    assert len(told["keys"]) == 4


def test_airflows_file_says_what_its_variables_say(tmp_path: Path) -> None:
    text = '[core]\nx = 1\n[openlineage]\nnamespace = prod\ntransport = {"type": "headwater.airflow.Transport", "url": "http://h:5000", "timeuot": 3}\n'
    code, told = check(tmp_path / "airflow.cfg", text)
    assert code == 2
    assert "did you mean 'timeout'" in " ".join(told["problems"])
    assert verdicts(told) == {
        "AIRFLOW__OPENLINEAGE__NAMESPACE": "honoured",
        "AIRFLOW__OPENLINEAGE__TRANSPORT": "honoured",
        "AIRFLOW__OPENLINEAGE__TRANSPORT.type": "honoured",
        "AIRFLOW__OPENLINEAGE__TRANSPORT.url": "honoured",
        "AIRFLOW__OPENLINEAGE__TRANSPORT.timeuot": "refused",
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("HEADWATER_TRANSPROT=x\n", "no setting of Headwater"),
        ("OPENLINEAGE__FILTERS=[]\n", "nothing like it"),
        ('OPENLINEAGE_CONFIG=\'{"transport": {}}\'\n', "names no file"),
        ("AIRFLOW__OPENLINEAGE__TRANSPORT=nonsense\n", "must be JSON"),
        ('AIRFLOW__OPENLINEAGE__TRANSPORT=\'{"type": "headwater.airflow.Transport", "url": "http://h", "api_key": "${NOT_SET}"}\'\n', "NOT_SET"),
        ("AIRFLOW__OPENLINEAGE__NAMESPCAE=x\n", "no option of the provider"),
        ("A='\n", "a quote is not closed"),
    ],
)  # fmt: skip
def test_variables_that_would_not_work(text: str, problem: str, tmp_path: Path) -> None:
    code, told = check(tmp_path / "lineage.env", text)
    assert code == 2
    assert problem in json.dumps(told)


def test_an_openlineage_yml_is_told_key_by_key_with_every_fault(tmp_path: Path) -> None:
    text = """
transport: {type: http, url: http://h:5000, timeoutt: 3, retrry: {total: 1}, timeout: 5}
filters: []
7: {}
"""
    code, told = check(tmp_path / "openlineage.yml", text)
    assert code == 2
    assert [each.split(": ")[1] for each in told["problems"]] == [
        "filters",
        "7",
        "transport.timeoutt",
        "transport.retrry",
    ]
    refused = dict.fromkeys(("filters", "7", "transport.timeoutt", "transport.retrry"), "refused")
    taken = dict.fromkeys(("transport.type", "transport.url", "transport.timeout"), "honoured")
    assert verdicts(told) == refused | taken


def test_of_a_transport_that_is_not_known_nothing_is_honoured(tmp_path: Path) -> None:
    code, told = check(tmp_path / "openlineage.yml", "transport: {type: htp, url: http://h:5000}\n")
    assert code == 2
    assert verdicts(told) == {"transport.type": "refused", "transport.url": "refused"}


# --- Marquez

MARQUEZ = """
server:
  applicationConnectors:
  - type: http
    port: ${MARQUEZ_PORT:-8080}
    httpCompliance: RFC7230_LEGACY
  adminConnectors:
  - type: http
    port: ${MARQUEZ_ADMIN_PORT:-8081}
db:
  driverClass: org.postgresql.Driver
  url: jdbc:postgresql://${POSTGRES_HOST:-localhost}:${POSTGRES_PORT:-5432}/${POSTGRES_DB}
  user: marquez
  password: hunter2-very-secret
migrateOnStartup: ${MIGRATE_ON_STARTUP:-true}
graphql:
  enabled: ${GRAPHQL_ENABLED:-true}
logging:
  level: ${LOG_LEVEL:-WARN}
  appenders:
    - type: console
dbRetention:
  retentionDays: 30
tags:
  - name: PII
    description: Personally identifiable information
"""


def test_marquez_settings_become_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARQUEZ_PORT", "5001")
    code, told = check(tmp_path / "marquez.yml", MARQUEZ)
    assert (code, told["problems"]) == (0, [])
    ours = tmp_path / "headwater.toml"
    ours.write_text(told["settings"])
    assert config.check_file(ours) == []
    settings = config.load(environ={"HEADWATER_CONFIG": str(ours)}, cwd=tmp_path, home=tmp_path)
    assert settings.store == "postgresql://marquez@localhost:5432/headwater"
    assert settings.rooms["serve"] == {"port": 5001}
    assert settings.log_level == "WARNING"
    assert settings.rooms["retention"] == {"runs": "30d", "events": "30d"}
    assert "on this machine alone" in told["warnings"][0]
    bound = MARQUEZ.replace("httpCompliance: RFC7230_LEGACY", "bindHost: 0.0.0.0")
    assert "warnings" not in check(tmp_path / "marquez.yml", bound)[1]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("server:\n  applicationConnectors:\n  - type: https\n    port: 443\n", "https is not offered"),
        ("db:\n  url: jdbc:h2:mem:x\n", "SQLite or Postgres"),
        ("exclude:\n  namespaces:\n    onWrite:\n      enabled: true\n      pattern: dev\nserver: {}\n", "every namespace is kept"),
        ("db: {}\nsevrer:\n  port: 1\n", "no setting of Marquez"),
        ("server:\n  applicationConnectors:\n  - {type: http, port: 1}\n  - {type: http, port: 2}\n", "one port"),
        ("server:\n  applicationConnectors:\n  - {type: http, port: '${NOT_SET}'}\n", "is no port"),
        ("server: [\n", "cannot be read"),
    ],
)  # fmt: skip
def test_what_headwater_cannot_do_for_marquez_is_a_problem(text: str, problem: str, tmp_path: Path) -> None:
    code, told = check(tmp_path / "marquez.yml", text)
    assert code == 2
    assert problem in json.dumps(told)


# --- the others


def test_an_openlineage_yml_of_correlator_is_honoured_with_a_warning(tmp_path: Path) -> None:
    code, told = check(
        tmp_path / "openlineage.yml", "transport:\n  type: correlator\n  url: http://c:8080\n  timeout: 30\n"
    )
    assert code == 0
    assert verdicts(told) == dict.fromkeys(
        ["transport.type", "transport.url", "transport.timeout"], "honoured"
    )
    assert "headwater.airflow.Transport" in told["warnings"][0]


def test_spark_defaults_are_told_key_by_key(tmp_path: Path) -> None:
    text = (
        "spark.openlineage.host http://h:5000\nspark.openlineage.metrics.type x\nspark.openlineage.nonsense x\n"
        f"spark.openlineage.apiKey {SECRET}\nspark.datahub.flow_name nightly\nspark.headwater.namespace shop\n"
        "spark.jars.packages io.openlineage:openlineage-spark_2.13:1.53.0\nspark.master local\n"
    )
    code, told = check(tmp_path / "spark-defaults.conf", text)
    assert code == 0
    assert verdicts(told) == {
        "spark.openlineage.host": "honoured",
        "spark.openlineage.metrics.type": "no effect",
        "spark.openlineage.nonsense": "no effect",
        "spark.openlineage.apiKey": "honoured",
        "spark.datahub.flow_name": "honoured",
        "spark.headwater.namespace": "honoured",
        "spark.jars.packages": "remove",
    }


def test_a_connect_toml_is_checked(tmp_path: Path) -> None:
    good = '[[clusters]]\nname = "a"\nurl = "http://c:8083"\n'
    assert check(tmp_path / "connect.toml", good) == (0, {"file": "connect.toml", "keys": [], "problems": []})
    code, told = check(tmp_path / "connect.toml", good + "intreval = 3\n")
    assert code == 2
    assert "intreval" in told["problems"][0]


def test_a_file_of_no_known_kind_is_refused(tmp_path: Path) -> None:
    code, told = check(tmp_path / "notes.txt", "hello")
    assert code == 2
    assert "what is it?" in told["problems"][0]


def test_a_key_of_ours_that_is_unknown_is_refused_and_hides_no_other(tmp_path: Path) -> None:
    text = "spark.headwater.transport http://h:5000\nspark.headwater.trnsport http://h:5000\n"
    code, told = check(tmp_path / "spark-defaults.conf", text)
    assert code == 2
    assert verdicts(told) == {"spark.headwater.transport": "honoured", "spark.headwater.trnsport": "refused"}
    assert "did you mean 'transport'" in told["problems"][0]


def test_a_variable_that_nobody_reads_is_not_called_honoured(tmp_path: Path) -> None:
    given = {
        "OPENLINEAGE_NAMESPCE": "no effect",
        "OPENLINEAGE_PARENT_ID": "honoured",
        "HEADWATER_NAMESPACE": "honoured",
        "HEADWATER_NAMESPCE": "refused",
        "HEADWATER_SERVE__PRT": "refused",
        "HEADWATER_TRANSPORT__TIMEOUT": "honoured",
    }
    code, told = check(tmp_path / ".env", "".join(f"{name}=1\n" for name in given))
    assert (code, verdicts(told)) == (2, given)
