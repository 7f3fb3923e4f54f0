"""deliver.datahub.properties: run facets -> the custom properties of a flow and of a job, as Java would print them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from headwater.deliver.datahub.facets import Engine, Reader
from headwater.errors import EventError
from headwater.event import Facets

_SKIPPED = ("_producer", "_schemaURL")
_DETAILS = ("jobId", "jobDescription", "jobGroup", "jobCallSite")
_VERSIONS = ("spark-version", "openlineage-spark-version")


def of_run(
    facets: Facets, engine: Engine | None, reader: Reader, *, nulls: bool, dotted: bool
) -> tuple[dict[str, str], dict[str, str]]:
    """The properties of the flow and of the job. `nulls`: one that is null fails the event; `dotted`: keys keep their path."""
    flow: dict[str, str] = {}
    if engine is not None:
        told = (
            ("processingEngine", engine.name),
            ("processingEngineVersion", engine.version),
            ("openlineageAdapterVersion", engine.openlineageAdapterVersion),
        )
        flow = {name: value for name, value in told if value is not None}
    job = dict(flow)
    if not facets:
        return flow, job

    def leaves(table: Any) -> dict[str, str]:
        return dict(_flat(table, nulls, "" if dotted else None))

    for name, wanted in (("spark_jobDetails", _DETAILS), ("spark_version", _VERSIONS)):
        if name in facets and (found := reader.table(facets, name)):
            made = {key: java_text(found[key]) for key in wanted if found.get(key) is not None}
            flow |= made
            job |= made
    if "spark_properties" in facets and (found := reader.table(facets, "spark_properties")):
        made = leaves(found.get("properties"))
        flow |= made
        job |= made
    if "airflow" in facets and (found := reader.table(facets, "airflow")):
        flow |= leaves(found.get("dag"))
        job |= leaves(found.get("task"))
    if "spark.logicalPlan" in facets and (found := reader.table(facets, "spark.logicalPlan")):
        flow["spark.logicalPlan"] = _json({key: found[key] for key in found if key not in _SKIPPED})
    if "unknownSourceAttribute" in facets and (found := reader.table(facets, "unknownSourceAttribute")):
        items = found.get("unknownItems")
        for item in items if isinstance(items, list) else ():
            job |= leaves(item)
    return flow, job


def airflow_tags(facets: Facets, reader: Reader, *, strict: bool) -> list[str]:
    """The tags of an Airflow DAG, sorted as Java does; `strict`: only in the one form that the provider writes."""
    found = reader.table(facets, "airflow") if "airflow" in facets else None
    dag = found.get("dag") if found else None
    tags = dag.get("tags") if isinstance(dag, dict) else None
    if tags is None:
        return []
    if isinstance(tags, str):
        try:
            tags = msgspec.json.decode(tags.replace("'", '"'))
        except msgspec.DecodeError:
            return []
    elif strict:
        raise EventError("run.facets.airflow.dag.tags", "is no text")
    if not isinstance(tags, list):
        return []
    return sorted({each for each in tags if isinstance(each, str)}, key=lambda tag: (tag.lower(), tag))


def java_text(value: Any) -> str:
    """A value as Java's toString prints it.

    >>> java_text([True, None, {"a": 1.0}]), java_text(1.5e10)
    ('[true, null, {a=1.0}]', '1.5E10')
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _java_double(value)
    if isinstance(value, list):
        return f"[{', '.join(map(java_text, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}={java_text(inner)}' for key, inner in value.items())}}}"
    return str(value)


def _flat(table: Any, nulls: bool, above: str | None) -> Iterator[tuple[str, str]]:
    """The leaves of a table; of two with one name the later stays. `above` is the path so far, None where it is not told."""
    if not isinstance(table, Mapping):
        return
    for key, value in table.items():
        path = key if not above else f"{above}.{key}"
        if isinstance(value, Mapping):
            yield from _flat(value, nulls, None if above is None else path)
        elif value is None:
            if nulls:
                raise EventError(f"run.facets: {key}", "is null")
        else:
            yield (key if above is None else path), java_text(value)


def _java_double(value: float) -> str:
    size = abs(value)
    if size == 0 or 1e-3 <= size < 1e7:
        return repr(value)
    if size != size or size == float("inf"):
        return str(value)
    digits, _, exponent = f"{value!r}".partition("e")
    if not exponent:
        mantissa = f"{value:.17e}"
        power = int(mantissa.partition("e")[2])
        whole = repr(value / 10.0**power) if power else repr(value)
        return f"{whole}E{power}"
    return f"{digits if '.' in digits else digits + '.0'}E{int(exponent)}"


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
