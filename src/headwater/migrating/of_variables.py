"""migrating.of_variables: an environment file or an airflow.cfg -> what becomes of each variable that is about lineage."""

from __future__ import annotations

import configparser
import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headwater import config
from headwater.config.openlineage import ours
from headwater.errors import ConfigError
from headwater.migrating import connect_smt, correlator_airflow, datahub_agent, dlt_openlineage, marquez
from headwater.migrating._rules import Finding, Report, blamed, found

KIND = "variables"
_AIRFLOW = "AIRFLOW__OPENLINEAGE__"
_RULES = (
    *correlator_airflow.ENVIRONMENT,
    *dlt_openlineage.ENVIRONMENT,
    *connect_smt.ENVIRONMENT,
    *datahub_agent.ENVIRONMENT,
    *marquez.ENVIRONMENT,
)
_PARENTS = ("OPENLINEAGE_PARENT_ID", "OPENLINEAGE_ROOT_PARENT_ID")
_PREFIXES = ("HEADWATER_", "OPENLINEAGE_", _AIRFLOW)


def variables(text: str, name: str) -> dict[str, str]:
    r"""`NAME=value` a line, as a shell or Docker reads it: `export`, `#`, quotes, and JSON without any.

    >>> variables("export A='http://h:5000' # why\n# no\nB={\"type\": \"console\"}\n", ".env")
    {'A': 'http://h:5000', 'B': '{"type": "console"}'}
    """
    out: dict[str, str] = {}
    lines = iter(text.splitlines())
    for line in lines:
        key, equals, value = line.strip().removeprefix("export ").partition("=")
        if not equals or not key.strip().isidentifier():
            continue
        value = value.strip()
        while value[:1] in ("'", '"') and value:
            try:
                value = "".join(shlex.split(value, comments=True)[:1])
                break
            except ValueError:  # a quote that is open goes on in the next line
                more = next(lines, None)
                if more is None:
                    raise ConfigError(f"{name}: {key.strip()}: a quote is not closed") from None
                value = f"{value}\n{more}"
        else:
            value = value.partition(" #")[0].rstrip()
        out[key.strip()] = value
    return out


def of_airflow(text: str, name: str) -> dict[str, str]:
    """The section [openlineage] of an airflow.cfg, as the variables that say the same."""
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(text)
    except configparser.Error as fault:
        raise ConfigError(f"{name}: cannot be read: {fault.message.splitlines()[0]}") from None
    given = dict(parser["openlineage"]) if parser.has_section("openlineage") else {}
    return {f"{_AIRFLOW}{key.upper()}": value for key, value in given.items()}


def check(given: Mapping[str, str], name: str, folder: Path) -> Report:
    """What becomes of the variables; those of other matters are passed over."""
    keys: list[Finding] = []
    problems: list[str] = []
    warnings: list[str] = []
    for key in given:
        told = found(_RULES, key) or _other(key, given[key], folder, problems)
        if told is not None:
            keys.append(told)
    try:
        lineage = {key: text for key, text in given.items() if not key.startswith(_AIRFLOW)}
        settings = config.load(environ={**lineage, "HOME": str(folder)}, cwd=folder, home=folder)
        problems += config.check_rooms(settings)
        problems += [f"{each} is no setting of Headwater" for each in settings.strays]
    except ConfigError as fault:
        problems += str(fault).splitlines()
    if text := given.get(f"{_AIRFLOW}TRANSPORT"):
        keys += _transport(text, given, problems, warnings)
    if not keys:
        warnings.append(f"{name}: nothing in it is about lineage")
    return Report(KIND, tuple(keys), tuple(problems), tuple(warnings))


def _other(key: str, value: str, folder: Path, problems: list[str]) -> Finding | None:
    """What becomes of a variable that no rule is about."""
    if not key.startswith(_PREFIXES):
        return None
    if key.startswith(_AIRFLOW):
        problems.append(
            f"{key}: no option of the provider that is known here: look it up in its documentation"
        )
        return Finding(key, "no effect", "not known here")
    if key in _PARENTS:
        return Finding(key, "honoured", "of jobs that this process runs")
    if not key.startswith("HEADWATER_"):
        return Finding(key, "no effect", "no variable of OpenLineage's client that is read here")
    try:  # asked alone: one that is wrong must not hide what the others are
        alone = config.load(environ={key: value, "HOME": str(folder)}, cwd=folder, home=folder)
        known = not alone.strays and not config.check_rooms(alone)
    except ConfigError:
        known = False
    return Finding(key, "honoured" if known else "refused", "ours" if known else "the reason stands below")


def _transport(
    text: str, given: Mapping[str, str], problems: list[str], warnings: list[str]
) -> list[Finding]:
    """What becomes of the transport that Airflow's provider is given."""
    name = f"{_AIRFLOW}TRANSPORT"
    try:
        table: dict[str, Any] = json.loads(text)
        kind = table["type"]
    except (ValueError, KeyError, TypeError):
        problems.append(f"{name}: must be JSON with a `type`")
        return []
    options = {key: value for key, value in table.items() if key != "type"}
    keys = [Finding(f"{name}.type", "honoured", "ours")]
    if kind in correlator_airflow.THEIRS:
        rule = correlator_airflow.TRANSPORT[0]
        keys = [Finding(f"{name}.type", rule.verdict, rule.why, rule.to)]
        problems.append(f"{name}: {kind!r} sends nothing: write {correlator_airflow.OURS!r}")
    elif kind != correlator_airflow.OURS:
        keys = [
            Finding(
                f"{name}.type", "honoured", "of OpenLineage's client, sends to Headwater as to any server"
            )
        ]
        warnings.append(
            f"{name}: with {kind!r} a task waits for the server, or loses events; {correlator_airflow.OURS!r} does neither"
        )
        return keys
    faults = _of_options(name, options, given)
    for key in options:
        told = found(correlator_airflow.TRANSPORT, key)
        if blamed(key, faults):
            keys.append(Finding(f"{name}.{key}", "refused", "the reason stands below"))
        else:
            why = told.why if told else "an option of the transport"
            keys.append(Finding(f"{name}.{key}", "honoured", why))
    problems += faults
    return keys


def _of_options(name: str, options: Mapping[str, Any], given: Mapping[str, str]) -> list[str]:
    try:
        table = ours(config.expand(dict(options), given))
        table.pop("spool", None)
        if not table:
            return []
        if not isinstance(table.get("url"), str):
            raise ConfigError("url: is missing")
        return [
            f"{name}: {each}" for each in config.check_rooms(config.load({"transport": table}, environ={}))
        ]
    except ConfigError as fault:
        return [f"{name}: {line}" for line in str(fault).splitlines()]
