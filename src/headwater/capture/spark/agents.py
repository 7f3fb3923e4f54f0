"""capture.spark.agents: Spark settings or spark-submit arguments -> the lineage agents in them, and the same without them.

OpenLineage and DataHub capture by a listener from a jar. Beside the probe it would tell everything twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

_LISTENER = re.compile(
    r"(^|\.)(OpenLineageSparkListener|DatahubSparkListener|DatahubEventEmitter)$", re.IGNORECASE
)
_PACKAGE = re.compile(
    r"io\.openlineage:|io\.acryl:|openlineage-spark|(acryl|datahub)-spark-lineage", re.IGNORECASE
)
LISTS: Mapping[str, tuple[re.Pattern[str], str]] = {
    "spark.extraListeners": (_LISTENER, ","),
    "spark.sql.queryExecutionListeners": (_LISTENER, ","),
    "spark.sql.streaming.streamingQueryListeners": (_LISTENER, ","),
    "spark.jars.packages": (_PACKAGE, ","),
    "spark.jars": (_PACKAGE, ","),
    "spark.driver.extraClassPath": (_PACKAGE, ":"),
    "spark.executor.extraClassPath": (_PACKAGE, ":"),
}
"""Settings that are lists an agent may stand in, with what gives it away and what parts the list."""
_FLAGS = {
    "--packages": "spark.jars.packages",
    "--jars": "spark.jars",
    "--driver-class-path": "spark.driver.extraClassPath",
}


def listeners(conf: Mapping[str, str]) -> list[str]:
    """The listeners of other lineage agents.

    >>> listeners({"spark.extraListeners": "a.B, io.openlineage.spark.agent.OpenLineageSparkListener"})
    ['io.openlineage.spark.agent.OpenLineageSparkListener']
    """
    found = []
    for key, (pattern, part) in LISTS.items():
        if pattern is _LISTENER:
            found += [one.strip() for one in conf.get(key, "").split(part) if pattern.search(one.strip())]
    return found


def without(key: str, value: str) -> str:
    """The value of a setting without agents; as it was where there is none.

    >>> without("spark.jars.packages", "io.openlineage:openlineage-spark_2.13:1.53.0,a:b:1")
    'a:b:1'
    """
    if key not in LISTS:
        return value
    pattern, part = LISTS[key]
    each = value.split(part)
    kept = [one for one in each if not pattern.search(one.strip())]
    return value if len(kept) == len(each) else part.join(kept)


def without_arguments(arguments: Sequence[str]) -> list[str]:
    """The arguments of spark-submit without agents; options left empty go with them.

    >>> without_arguments(["--packages", "io.acryl:acryl-spark-lineage_2.13:0.2.18", "job.py", "--jars", "x"])
    ['job.py', '--jars', 'x']
    """
    out: list[str] = []
    given = iter(_parted(arguments))
    for flag, value, form in given:
        if flag is None:  # the program: what follows is its own
            out += [form, *(text for _, _, text in given)]
            break
        if value is None:
            out.append(flag)
            continue
        key, equals, text = (
            value.partition("=") if flag in ("--conf", "-c") else (_FLAGS.get(flag, ""), "", value)
        )
        kept = without(key, text)
        if kept == text:
            out += [f"{flag}={value}"] if form == "=" else [flag, value]
        elif kept:
            out += [flag, f"{key}{equals}{kept}" if equals else kept]
    return out


def overriding(defaults: Mapping[str, str], given: Iterable[str]) -> dict[str, str]:
    """What must be said to take the agents of a file of defaults out; a setting that is given besides hides the file's.

    >>> overriding({"spark.extraListeners": "a.B,io.openlineage.spark.agent.OpenLineageSparkListener"}, ())
    {'spark.extraListeners': 'a.B'}
    """
    changed = {key: without(key, value) for key, value in defaults.items()}
    return {key: kept for key, kept in changed.items() if kept != defaults[key] and key not in set(given)}


def given(arguments: Sequence[str]) -> set[str]:
    """The settings that spark-submit arguments name, by `--conf` or by a flag of their own."""
    found = set()
    for flag, value, _ in _parted(arguments):
        if flag is None:
            break
        if value is not None:
            conf = flag in ("--conf", "-c")
            found.add(value.partition("=")[0].strip() if conf else _FLAGS.get(flag, flag))
    return found


def setting(arguments: Sequence[str], key: str, *flags: str) -> str | None:
    """What spark-submit arguments say of a setting, by `--conf` or by a flag of its own; the last one counts.

    >>> setting(["--conf", "spark.submit.deployMode=cluster", "job.py"], "spark.submit.deployMode", "--deploy-mode")
    'cluster'
    """
    found = None
    for flag, value, _ in _parted(arguments):
        if flag is None:
            break
        if value is not None and flag in flags:
            found = value
        elif value is not None and flag in ("--conf", "-c") and value.partition("=")[0].strip() == key:
            found = value.partition("=")[2].strip()
    return found


_ALONE = frozenset({"--help", "-h", "--verbose", "-v", "--version", "--supervise", "--usage-error"})


def _parted(arguments: Iterable[str]) -> Iterable[tuple[str | None, str | None, str]]:
    """(option, value, how it was written) up to the program, then (None, None, text) for each of what follows."""
    rest = iter(arguments)
    for text in rest:
        if not text.startswith("-"):
            yield None, None, text
            yield from ((None, None, more) for more in rest)
            return
        flag, equals, value = text.partition("=")
        if equals and flag.startswith("--"):
            yield flag, value, "="
        elif text in _ALONE:
            yield text, None, text
        else:
            yield text, next(rest, None), ""
