"""headwater datahub: convert, emit and diff, as they are typed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from gms import Answer, Gms
from making import dataset, raw
from typer.testing import CliRunner

from headwater.cli import build_app
from headwater.errors import ConfigError, TransportError

EVENTS = [
    raw("START", at=1, inputs=[dataset("s3://b", "in,put")]),
    raw("COMPLETE", at=2, outputs=[dataset("hive", "out")]),
]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "events.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in EVENTS))
    return path


def headwater(*arguments: object) -> Any:
    return CliRunner().invoke(build_app(), ["datahub", *map(str, arguments)])


def lineage(made: list[Any]) -> list[Any]:
    return [each["aspect"]["json"] for each in made if each["aspectName"] == "dataJobInputOutput"]


def test_convert_writes_an_array_with_a_run_put_together(file: Path) -> None:
    done = headwater("convert", file)
    assert done.exit_code == 0, done.output
    (told,) = lineage(json.loads(done.stdout))
    assert len(told["inputDatasetEdges"]) == len(told["outputDatasetEdges"]) == 1
    assert "in%2Cput" in told["inputDatasetEdges"][0]["destinationUrn"]


def test_compat_tells_each_event_and_options_are_set_by_name(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "mcps.json"
    done = headwater("convert", file, "--compat", "datahub-java", "--set", "env=dev", "-o", out, "--json")
    assert json.loads(done.stdout)["events"] == 2
    made = json.loads(out.read_text())
    assert len(lineage(made)) == 2
    assert any(each["entityUrn"].endswith("b/in,put,DEV)") for each in made)
    mixed = headwater("convert", file, "--compat", "datahub-java", "--set", "encode_urns=yes").stdout
    assert "in%2Cput" in mixed


def test_a_dry_run_writes_nothing(file: Path, tmp_path: Path) -> None:
    done = headwater("convert", file, "-o", tmp_path / "x.json", "--dry-run")
    assert "2 events: " in done.stdout
    assert not (tmp_path / "x.json").exists()


def test_what_cannot_be_converted_is_told_and_the_others_go_on(file: Path) -> None:
    file.write_text(file.read_text() + '{"eventTime": 5}\n{"password": "hush"}\n')
    done = headwater("convert", file)
    assert done.exit_code == 5
    assert len(lineage(json.loads(done.stdout))) == 1
    assert "eventTime" in done.stderr
    assert "hush" not in done.stderr


def test_long_texts_are_cut_as_datahubs_own_variable_says(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INGESTION_MAX_SERIALIZED_STRING_LENGTH", "3000")
    file.write_text(json.dumps(raw(run_facets={"spark.logicalPlan": {"plan": "x" * 9000}})))
    done = headwater("convert", file)
    assert done.exit_code == 0
    assert "[cut: " in done.stdout


def test_wrong_options_are_refused(file: Path) -> None:
    for given, why in ((["--set", "envv=x"], "did you mean 'env'"), (["--set", "env"], "name=value")):
        with pytest.raises(ConfigError, match=why):
            raise headwater("convert", file, *given).exception


def test_emit_delivers(file: Path, gms: Gms) -> None:
    to = gms.url.replace("http", "datahub+rest")
    done = headwater("emit", file, "--to", to, "--token", "t", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["proposals"] == len(gms.taken) > 5
    assert gms.headers[0]["Authorization"] == "Bearer t"


def test_emit_takes_to_a_file_nothing_that_is_said_of_rest(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATAHUB_GMS_TOKEN", "t")
    (tmp_path / "headwater.toml").write_text(
        '[deliver.datahub]\nto = "datahub+rest://gms"\ntls = true\nenv = "QA"\n'
    )
    done = headwater("emit", file, "--to", f"datahub+file://{tmp_path}/mcps.json")
    assert done.exit_code == 0, done.output
    assert ",QA)" in (tmp_path / "mcps.json").read_text()


def test_a_pattern_may_begin_as_a_table_does(file: Path) -> None:
    done = headwater("convert", file, "--set", "partition_pattern=[a-z]+,put")
    assert done.exit_code == 0, done.output
    assert "in%2Cput" not in done.stdout


def test_emit_tells_what_was_refused(file: Path, gms: Gms) -> None:
    gms.refuses = lambda each: "not that" if each["aspectName"] == "status" else None
    done = headwater("emit", file, "--to", gms.url.replace("http", "datahub+rest"))
    assert done.exit_code == 5
    assert "not that" in done.stderr
    assert len(gms.taken) > 3


def test_emit_that_reaches_nobody_fails(file: Path, gms: Gms) -> None:
    gms.answers.extend([Answer(401, {"message": "who are you"})] * 9)
    done = headwater("emit", file, "--to", gms.url.replace("http", "datahub+rest"))
    assert isinstance(done.exception, TransportError)
    assert done.exception.exit_code == 4


def test_emit_needs_to_know_where_to_and_takes_it_from_the_settings(
    file: Path, gms: Gms, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="where is DataHub"):
        raise headwater("emit", file).exception
    with pytest.raises(ConfigError, match=r"does not begin with datahub\+"):
        raise headwater("emit", file, "--to", gms.url).exception
    assert headwater("emit", file, "--dry-run").exit_code == 0
    to = gms.url.replace("http", "datahub+rest")
    (tmp_path / "headwater.toml").write_text(f'[deliver.datahub]\nto = "{to}"\ntoken = "x"\nenv = "QA"\n')
    assert headwater("emit", file).exit_code == 0
    assert any(each["entityUrn"].endswith(",QA)") for each in gms.taken)
    (tmp_path / "headwater.toml").write_text('[deliver.datahub]\nto = "http://gms"\n')
    with pytest.raises(ConfigError, match=r"datahub\+rest"):
        raise headwater("emit", file).exception


def test_diff_tells_what_would_change(file: Path, tmp_path: Path) -> None:
    old = tmp_path / "old.json"
    headwater("convert", file, "-o", old)
    assert headwater("diff", file, "--against", old).stdout == ""
    done = headwater("diff", file, "--against", old, "--set", "env=DEV", "--json")
    kinds = {each["kind"] for each in json.loads(done.stdout)}
    assert kinds == {"added", "gone", "changed"}
    text = headwater("diff", file, "--against", old, "--set", "tags=x").stdout
    assert text.startswith("+ urn:li:dataFlow:(spark,app,ns) globalTags")
    legacy = [
        {**each, "aspect": {"value": json.dumps(each["aspect"]["json"]), "contentType": "application/json"}}
        for each in json.loads(old.read_text())
    ]
    old.write_text(json.dumps(legacy))
    assert headwater("diff", file, "--against", old).stdout == ""


def test_diff_against_something_else_is_refused(file: Path) -> None:
    with pytest.raises(ConfigError, match="no array of proposals"):
        raise headwater("diff", file, "--against", file).exception


@pytest.mark.parametrize(
    "wrong",
    [{"aspect": "x"}, {"aspect": {"value": "{"}}, {"aspect": {"value": {"x": 1}}}, {"entityUrn": None}],
    ids=str,
)
def test_diff_against_a_malformed_proposal_says_which(file: Path, tmp_path: Path, wrong: Any) -> None:
    old = tmp_path / "old.json"
    fine = {"entityUrn": "urn:li:tag:x", "aspectName": "status", "aspect": {"json": {"timestampMillis": []}}}
    old.write_text(json.dumps([{"proposedSnapshot": {}}, fine, {**fine, **wrong}]))
    with pytest.raises(ConfigError, match=r"old\.json: proposal 3: "):
        raise headwater("diff", file, "--against", old).exception
    old.write_text(json.dumps([fine]))
    assert headwater("diff", file, "--against", old).exit_code == 0
