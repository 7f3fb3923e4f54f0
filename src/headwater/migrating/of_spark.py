"""migrating.of_spark: the text of a spark-defaults.conf -> what becomes of each key of a lineage agent in it."""

from __future__ import annotations

from pathlib import Path

from headwater import config
from headwater.capture.spark._properties import properties
from headwater.capture.spark.agents import LISTS, listeners, without
from headwater.capture.spark.settings import SparkSettings, read
from headwater.capture.spark.trimming import DatasetNames
from headwater.errors import ConfigError
from headwater.migrating import datahub_agent, openlineage_spark
from headwater.migrating._rules import Finding, Report, found

KIND = "spark-defaults.conf"
_AGENTS = {"spark.openlineage.": openlineage_spark.RULES, "spark.datahub.": datahub_agent.RULES}


def check(text: str, name: str, folder: Path) -> Report:
    """What becomes of it; paths in it start from `folder`."""
    conf = properties(text)
    said, problems = SparkSettings(), []
    try:
        said = read(conf, cwd=folder)
        DatasetNames(said)
        settings = config.load(between=said.layers, environ={}, cwd=folder, home=folder)
        problems = config.check_rooms(settings)
    except ConfigError as fault:
        problems = [f"{name}: {line}" for line in str(fault).splitlines()]
    warnings = [f"{key} has no effect on Headwater" for key in said.unsupported] + list(said.warnings)
    warnings += [f"{each} captures lineage too: `headwater run --replace-agents`" for each in listeners(conf)]
    return Report(KIND, _keys(conf, folder), tuple(problems), tuple(warnings))


def _ours(key: str, value: str, folder: Path) -> Finding:
    """What becomes of a key of ours, asked alone: one that is wrong must not hide what the others are."""
    try:
        dead = key in read({key: value}, cwd=folder).unsupported
    except ConfigError:
        return Finding(key, "refused", "the reason stands below")
    return Finding(key, "no effect" if dead else "honoured", "no key of ours" if dead else "ours")


def _keys(conf: dict[str, str], folder: Path) -> tuple[Finding, ...]:
    out = []
    for key, value in conf.items():
        if key in LISTS and without(key, value) != value:
            rest = without(key, value)
            out.append(Finding(key, "remove", f"leave {rest}" if rest else "leave it out", ""))
        elif key.startswith("spark.headwater."):
            out.append(_ours(key, value, folder))
        for prefix, rules in _AGENTS.items():
            if key.startswith(prefix):
                unknown = Finding(key, "no effect", "no setting that the agent documents")
                out.append(found(rules, key, unknown) or unknown)
    return tuple(out)
