"""The rules tell the truth: the code itself is asked, key by key, and no key that the other tools document is missing."""

from __future__ import annotations

import re
import runpy
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from headwater import config
from headwater.capture.spark.settings import read
from headwater.errors import ConfigError
from headwater.migrating import (
    TABLES,
    Rule,
    connect_smt,
    correlator_airflow,
    datahub_agent,
    dlt_openlineage,
    openlineage_spark,
)
from headwater.migrating._rules import rule_for

VERDICTS = {"honoured", "becomes", "no effect", "remove", "refused"}
SPARK = [
    rule
    for rule in (*openlineage_spark.RULES, *datahub_agent.RULES)
    if rule.key.startswith(("spark.openlineage.", "spark.datahub."))
]


def outcome(conf: dict[str, str], cwd: Path) -> Any:
    """What a Spark configuration leads to, but for what is only said about it."""
    try:
        return replace(read(conf, cwd=cwd), unsupported=(), warnings=())
    except ConfigError as fault:
        return fault


@pytest.mark.parametrize("rule", SPARK, ids=lambda rule: rule.key)
def test_a_key_of_spark_does_what_its_rule_says(rule: Rule, tmp_path: Path) -> None:
    without = {key: text for key, text in rule.beside.items() if key != rule.sample}
    before, after = (outcome(conf, tmp_path) for conf in (without, {**without, rule.sample: rule.example}))
    if rule.verdict == "refused":
        assert isinstance(after, ConfigError)
    elif rule.verdict == "no effect":
        assert after == before
        assert not isinstance(after, ConfigError)
    else:
        assert rule.verdict == "honoured"
        assert not isinstance(after, ConfigError), after
        assert repr(after) != repr(before)


@pytest.mark.parametrize("rule", SPARK, ids=lambda rule: rule.key)
def test_the_special_stands_before_the_general(rule: Rule) -> None:
    table = openlineage_spark.RULES if rule.key.startswith("spark.openlineage.") else datahub_agent.RULES
    assert rule_for(table, rule.sample) is rule


@pytest.mark.parametrize("rule", dlt_openlineage.ENVIRONMENT[:5], ids=lambda rule: rule.key)
def test_a_variable_of_a_client_changes_the_settings(rule: Rule, tmp_path: Path) -> None:
    beside = {} if rule.key == "OPENLINEAGE_URL" else {"OPENLINEAGE_URL": "http://h:5000"}

    def settings(environ: dict[str, str]) -> Any:
        made = config.load(environ=environ, cwd=tmp_path, home=tmp_path)
        return replace(made, origins={}), made.api_key

    assert rule.verdict == "honoured"
    assert settings({**beside, rule.key: rule.example}) != settings(beside)


@pytest.mark.parametrize("rule", correlator_airflow.TRANSPORT[1:], ids=lambda rule: rule.key)
def test_a_key_of_correlators_transport_is_one_of_ours(rule: Rule) -> None:
    from headwater.config.openlineage import ours

    assert rule.verdict == "honoured"
    told = ours({"url": "http://g:5000", rule.key: rule.example})
    assert told != ours({"url": "http://g:5000"})
    assert config.check_rooms(config.load({"transport": told}, environ={})) in ([], None)


@pytest.mark.parametrize("tool", TABLES)
def test_a_table_is_whole(tool: str) -> None:
    keys = [rule.key for rule in TABLES[tool]]
    assert len(keys) == len(set(keys))
    for rule in TABLES[tool]:
        assert rule.verdict in VERDICTS
        assert rule.verdict != "becomes" or rule.to, rule.key
        assert rule.verdict == "honoured" or rule.why or rule.to, f"{rule.key}: why?"
        assert (Path(__file__).parents[2] / "docs" / "migrating" / f"{tool}.md").exists()


# --- nothing that the other tools document is missing

SEEDS = {
    "openlineage-spark-listener.md": ("openlineage-spark",),
    "datahub-event-emitter.md": ("datahub-agent",),
    "dlt-openlineage.md": ("dlt-openlineage",),
    "kafka-connect-smt.md": ("connect-smt",),
    "correlator-airflow.md": ("correlator-airflow",),
}
NAMED = re.compile(
    r"spark\.(?:openlineage|datahub)\.[\w.]+\w|\b(?:OPENLINEAGE|CONNECT|AIRFLOW_|CORRELATOR)_[A-Z_]+\b"
)
ROWS = {
    "openlineage-spark": "host version namespace parentJobName parentRunId apiKey url.param.xyz",
    "connect-smt": "OPENLINEAGE_NAMESPACE CONNECT_BOOTSTRAP_SERVERS",
}
"""The keys that the seeds' tables name: held here, too, for who has no seeds."""


def known(tool: str, key: str) -> bool:
    return rule_for(TABLES[tool], key) is not None


def test_every_key_of_the_seeds_tables_is_told() -> None:
    for key in ROWS["openlineage-spark"].split():
        assert known("openlineage-spark", f"spark.openlineage.{key}")
    for key in ROWS["connect-smt"].split():
        assert known("connect-smt", key)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_key_that_a_seed_names_is_told(seed: str, shared: Path) -> None:
    text = (shared / "seeds" / seed).read_text()
    keys = {each.rstrip("_") for each in NAMED.findall(text)} - {"OPENLINEAGE_ROOT"}  # where its source lies
    keys |= (
        {f"transport.{each}" for each in re.findall(r"^  (\w+): ", text, re.MULTILINE)}
        if "correlator" in seed
        else set()
    )
    if "kafka" in seed:  # its own words for what it is told
        keys |= {
            f"transforms.o.{each}"
            for each in ("topics", "connector.class", "s3.bucket.name", "iceberg.catalog")
        }
        keys |= {each for each in ("tasks.max",) if each in text}
    if "dlt" in seed or "openlineage-spark" in seed or "correlator" in seed:
        assert keys
    for key in keys:
        assert any(known(tool, key) for tool in SEEDS[seed]), f"{seed}: {key}"


def test_every_key_of_the_research_on_datahub_is_told(shared: Path) -> None:
    text = (shared / "research" / "datahub.md").read_text()
    table = text[text.index("## 6. spark.datahub.* options") : text.index("Parsing: keys are rendered")]
    seen = 0
    for row in re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE)[1:]:
        if row.startswith("-"):
            continue
        for key in re.split(r" / |, ", re.sub(r"\(.*?\)", "", row)):
            key = (
                key.strip()
                .replace("<p>", "s3")
                .replace("<alias>", "lake")
                .replace('"<ns>"', '"postgres://db"')
                .strip("`")
            )
            if not key or key.startswith(("…", ".")):
                continue
            key = re.sub(r"\.platformInstance$|\.\*$", lambda hit: hit[0].replace("*", "env"), key)
            seen += 1
            told = key if "path_alias_list" not in key else f"platform.s3.{key}"
            assert known("datahub-agent", f"spark.datahub.{told}"), key
    assert seen >= 40


def test_every_key_of_the_research_on_the_agent_is_told(shared: Path) -> None:
    text = (shared / "research" / "openlineage_spark.md").read_text()
    table = text[text.index("## 6. Configuration") : text.index("Activation: `spark.extraListeners`")]
    keys = set()
    for row in re.findall(r"^\| (`[^|]+) \|", table, re.MULTILINE):
        for each in re.findall(r"`([^`]+)`", row):
            head, _, several = each.partition("{")
            names = re.split(r",", several.rstrip("}")) if several else [""]
            keys |= {f"{head}{re.sub(chr(92) + '(.*', '', name)}" for name in names}
    keys = {re.sub(r"<\w+>|\*", "x", each) for each in keys if "(" not in each and "{" not in each}
    assert len(keys) >= 30
    for key in keys - {"extraTrimmers", "deniedSparkNodes"}:  # written without what stands before them
        assert known("openlineage-spark", f"spark.openlineage.{key}"), key


@pytest.mark.parametrize("version", ["3", "2.11"])
def test_every_option_of_airflows_provider_is_told(version: str) -> None:
    (found,) = list(
        (Path(__file__).parents[2] / ".venvs" / f"airflow-{version}" / "lib").glob(
            "python*/site-packages/airflow/providers/openlineage/get_provider_info.py"
        )
    )[:1] or [None]
    if found is None:
        pytest.skip("needs Airflow's provider: make live-airflow sets it up")
    options = runpy.run_path(str(found))["get_provider_info"]()["config"]["openlineage"]["options"]
    for name in options:
        assert rule_for(correlator_airflow.ENVIRONMENT, f"AIRFLOW__OPENLINEAGE__{name.upper()}"), name


def test_the_keys_that_the_watcher_reads_of_the_transform_are_told() -> None:
    """Those that `headwater connect` itself looks for, where a connector still carries the transform."""
    folder = Path(config.__file__).parents[1] / "capture" / "connect"
    text = "\n".join(file.read_text() for file in folder.glob("*.py"))
    read_keys = set(re.findall(r"seed(?:_settings)?(?:\([^)]*\))?(?:\.get\(|\[)\"([a-z.]+)\"", text))
    for key in read_keys:
        assert rule_for(connect_smt.TRANSFORM, key), key


# --- what a key becomes is there


@cache
def places() -> set[str]:
    """Every setting, as `log_level` and as `serve.port`."""
    found = {each.name for each in config.SETTINGS}
    for part in re.split(r"^### ", config.document(), flags=re.MULTILINE)[1:]:
        room = part.partition("\n")[0].strip("`")
        found |= {f"{room}.{option}" for option in re.findall(r"^- .*?`(\w+)` \(", part, re.MULTILINE)}
    return found


@pytest.mark.parametrize(
    ("tool", "rule"),
    [(tool, rule) for tool, rules in TABLES.items() for rule in rules if rule.to],
    ids=lambda each: each if isinstance(each, str) else each.key,
)
def test_what_a_key_becomes_is_there(tool: str, rule: Rule) -> None:
    from headwater.connect import Cluster

    known = places()
    for word in re.findall(r"`([^`]+)`", rule.to):
        name = word.partition(" = ")[0]
        if re.fullmatch(r"HEADWATER_[A-Z_]+", name):
            lowered = name.removeprefix("HEADWATER_").lower().replace("__", ".")
            assert lowered in {*known, "config"}, word
        elif re.fullmatch(r"[a-z]+\.[a-z_]+", name) or name in ("store", "log_level"):
            assert name in known, word
        elif tool == "connect-smt" and re.fullmatch(r"[a-z_]+", name) and name != "none":
            assert name in Cluster.__struct_fields__, word
        elif found := re.search(r"headwater\[(\w+)\]", name):
            text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
            assert re.search(rf"^{found[1]} = \[", text, re.MULTILINE), word
