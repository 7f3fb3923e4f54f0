"""migrating: a configuration file, ours or another lineage tool's -> each of its keys with what becomes of it here.

A module for each tool holds its RULES; `of_…` read a kind of file with them. To take one more tool: a module with RULES, one line
in TABLES, and a page docs/migrating/<name>.md with the table's marks; the tests ask the code itself whether each verdict is true.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from headwater import config
from headwater.config._files import read
from headwater.errors import ConfigError
from headwater.migrating import (
    connect_smt,
    correlator_airflow,
    datahub_agent,
    dlt_openlineage,
    marquez,
    openlineage_spark,
)
from headwater.migrating._rules import Finding, Report, Rule, blamed, table

__all__ = ["TABLES", "Finding", "Report", "Rule", "check_file", "document"]

TABLES: Mapping[str, Sequence[Rule]] = {
    "openlineage-spark": openlineage_spark.RULES,
    "datahub-agent": (*datahub_agent.RULES, *datahub_agent.ENVIRONMENT),
    "dlt-openlineage": dlt_openlineage.RULES,
    "connect-smt": connect_smt.RULES,
    "correlator-airflow": correlator_airflow.RULES,
    "marquez": (*marquez.RULES, *marquez.ENVIRONMENT),
}
"""Tool -> what becomes of each of its settings."""


def document(tool: str) -> str:
    """A tool's table, as docs/migrating shows it.

    >>> document("marquez").splitlines()[0]
    '| key | verdict | |'
    """
    return table(TABLES[tool])


def check_file(path: Path) -> Report:
    """What becomes of a file, whoever's it is; nothing is opened or sent.

    Raises:
        ConfigError: it cannot be read, or is of no kind that is known.

    """
    name, kind = path.name, path.suffix.lower()
    if kind in (".yml", ".yaml"):
        return _yaml(path)
    if kind == ".toml":
        return Report("headwater.toml", problems=tuple(config.check_file(path)))
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise ConfigError(f"{name}: cannot be read: {fault}") from None
    if kind in (".conf", ".properties"):
        from headwater.migrating import of_spark  # each brings what the others do without

        return of_spark.check(text, name, path.parent)
    if kind == ".json":
        from headwater.migrating import of_connector

        return of_connector.check(text, name)
    if kind in (".env", ".cfg") or name.startswith(".env") or name.endswith(".env"):
        from headwater.migrating import of_variables

        given = (of_variables.of_airflow if kind == ".cfg" else of_variables.variables)(text, name)
        return of_variables.check(given, name, path.parent)
    raise ConfigError(
        f"{name}: what is it? headwater.toml, openlineage.yml, marquez.yml, spark-defaults.conf, a connector's .json,"
        " .env and airflow.cfg are known by their names"
    )


def _yaml(path: Path) -> Report:
    problems: list[str] = []
    values = read(path, problems)
    if problems:
        return Report("YAML", problems=tuple(problems))
    from headwater.migrating import of_server

    if set(values) & of_server.OWN and "transport" not in values:
        return of_server.check(values, path.name)
    problems = config.check_file(path)
    inner = values.get("transport")
    inside = [f"transport.{name}" for name in inner] if isinstance(inner, Mapping) else []
    warnings = []
    if isinstance(inner, Mapping) and inner.get("type") in correlator_airflow.THEIRS:
        warnings.append(
            f"inside Airflow, write `type: {correlator_airflow.OURS}`: no OpenLineage client finds {inner['type']!r}"
        )
    # of what a transport holds that is not known, nothing can be said
    unknown = blamed("transport.type", problems) or any(" transport:" in each for each in problems)
    keys = [(str(name), blamed(str(name), problems)) for name in values if name != "transport"]
    keys += [(name, unknown or blamed(name, problems)) for name in inside]
    told = tuple(Finding(name, "refused" if bad else "honoured") for name, bad in keys)
    return Report("openlineage.yml", told, tuple(problems), tuple(warnings))
