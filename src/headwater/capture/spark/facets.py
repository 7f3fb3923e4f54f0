"""capture.spark.facets: what a run read and wrote -> the parts of an OpenLineage event."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

import msgspec

from headwater.capture._facets import schema_url
from headwater.capture.spark.deps import DIRECT, KINDS, NONE, OPEN, Deps, union
from headwater.capture.spark.names import Named
from headwater.capture.spark.relation import Schema, refs
from headwater.capture.spark.settings import SparkSettings, Tag
from headwater.capture.spark.writes import Output
from headwater.event import PRODUCER as HOUSE
from headwater.naming import Identity, scrub, scrub_mapping

PRODUCER = f"{HOUSE}/spark"
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_LONGEST_SQL = 200_000
_LONGEST_ERROR = 50_000
_MOST_NODES = 1_000


def facet(name: str, /, **fields: Any) -> dict[str, Any]:
    """A facet with the two fields every facet has."""
    return {"_producer": PRODUCER, "_schemaURL": schema_url(name), **fields}


def stamp(ms: int) -> str:
    """Milliseconds -> a time on the wire."""
    return (_EPOCH + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def normalized(text: str) -> str:
    """A name as the JVM agent writes it in job names: snake case, letters and digits only.

    >>> normalized("My App (v2): ÜberLoad"), normalized("InsertIntoHadoopFsRelationCommand")
    ('my_app_v2_uber_load', 'insert_into_hadoop_fs_relation_command')
    """
    plain = unicodedata.normalize("NFKD", text)
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    plain = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", plain)
    return re.sub(r"[^a-zA-Z0-9]+", "_", plain).strip("_").lower()


def fields(schema: Iterable[tuple[str, str | None]]) -> list[dict[str, Any]]:
    """Columns with their types, structs opened.

    >>> fields([("a", "struct<city:string,zip:int>")])[0]["fields"]
    [{'name': 'city', 'type': 'string'}, {'name': 'zip', 'type': 'int'}]
    """
    out = []
    for name, kind in schema:
        row: dict[str, Any] = {"name": name}
        if kind:
            row["type"] = kind if len(kind) <= 1_000 else kind[:1_000] + "…"
            if inner := _inside(kind):
                row["type"] = kind.split("<", 1)[0]
                row["fields"] = fields(inner)
        out.append(row)
    return out


def _inside(kind: str) -> list[tuple[str, str]]:
    """What a struct, array or map holds; nothing for a plain type."""
    if "<" not in kind or not kind.endswith(">"):
        return []
    outer, body = kind.split("<", 1)
    parts = _split(body[:-1])
    if outer == "struct":
        return [_named(part) for part in parts]
    if outer == "array" and "<" in body:
        return [("_element", parts[0])]
    if outer == "map" and len(parts) == 2 and "<" in body[:-1]:
        return [("key", parts[0]), ("value", parts[1])]
    return []


def _named(part: str) -> tuple[str, str]:
    end = part.find("`", 1) if part.startswith("`") else -1
    if end > 0:
        return part[1:end], part[end + 2 :]
    name, _, kind = part.partition(":")
    return name, kind


def _split(body: str) -> list[str]:
    """A list of types, cut at the commas that are not inside another."""
    parts, depth, start, quoted = [], 0, 0, False
    for at, letter in enumerate(body):
        if letter == "`":
            quoted = not quoted
        elif quoted:
            continue
        elif letter in "<(":
            depth += 1
        elif letter in ">)":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(body[start:at])
            start = at + 1
    return [*parts, body[start:]] if body else []


def dataset(
    identity: Identity, schema: Iterable[tuple[str, str | None]], named: Named | None
) -> dict[str, Any]:
    """A dataset with the facets that are true of it whoever reads or writes it."""
    told: dict[str, Any] = {
        "dataSource": facet("dataSource", name=identity.namespace, uri=identity.namespace)
    }
    columns = fields(schema)
    if columns:
        told["schema"] = facet("schema", fields=columns)
    if named is not None:
        if named.symlinks:
            links = [{"namespace": a, "name": b, "type": c} for a, b, c in named.symlinks]
            told["symlinks"] = facet("symlinks", identifiers=links)
        if named.kind:
            told["datasetType"] = facet("datasetType", datasetType=named.kind)
        if named.version:
            told["version"] = facet("version", datasetVersion=str(named.version))
        if named.catalog:
            told["catalog"] = facet("catalog", **dict(named.catalog))
        if named.storage:
            layer, form = named.storage
            told["storage"] = facet("storage", storageLayer=layer or form, fileFormat=form)
    return {"namespace": identity.namespace, "name": identity.name, "facets": told}


def read(
    identity: Identity, schema: Schema, named: Named | None, counts: tuple[int | None, ...] | None
) -> dict[str, Any]:
    """An input."""
    out = dataset(identity, schema, named)
    statistics = _statistics(counts)
    if statistics:
        out["inputFacets"] = {"inputStatistics": facet("inputStatistics", **statistics)}
    return out


def written(out: Output, settings: SparkSettings, *, whole: bool) -> dict[str, Any]:
    """An output; `whole` with columns, counts and what became of it: only an end can tell."""
    made = dataset(out.named.identity, [(name, kind) for name, kind, _ in out.columns], out.named)
    if not whole:
        return made
    told = made["facets"]
    if not _too_wide(out, settings):
        told |= _lineage(out, settings)
    if out.change:
        change: dict[str, Any] = {"lifecycleStateChange": out.change}
        if out.previous is not None:
            change["previousIdentifier"] = {"namespace": out.previous.namespace, "name": out.previous.name}
        told["lifecycleStateChange"] = facet("lifecycleStateChange", **change)
    statistics = _statistics(out.counts)
    if statistics:
        made["outputFacets"] = {"outputStatistics": facet("outputStatistics", **statistics)}
    return made


def _lineage(out: Output, settings: SparkSettings) -> dict[str, Any]:
    """The columnLineage facet; what decided on rows once for the dataset, or for each column as older consumers expect."""
    every = NONE if settings.dataset_lineage else out.rows
    found = [(name, union([deps, every])) for name, _, deps in out.columns]
    lineage = {name: {"inputFields": input_fields(deps)} for name, deps in found if deps}
    rows = {"dataset": input_fields(out.rows)} if settings.dataset_lineage else {}
    if out.texts or out.reasons:
        _describe(out, lineage, rows.get("dataset", []))
    if not lineage and not out.rows:
        return {}
    return {"columnLineage": facet("columnLineage", fields=lineage, **rows)}


def _describe(out: Output, lineage: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    """How each column was made, and what decided on rows, as SQL beside each transformation."""
    reasons: dict[tuple[str, str, str, str], list[str]] = {}
    for kind, text, sources in out.reasons:
        for source in sources:
            key = (source.dataset.namespace, source.dataset.name, source.column, KINDS[kind])
            reasons.setdefault(key, []).append(scrub(text))
    listed = [(name, each) for name, field in lineage.items() for each in field["inputFields"]]
    for name, each in [*listed, *((None, each) for each in rows)]:
        said = []
        for how in each["transformations"]:
            place = (each["namespace"], each["name"], each["field"], how["subtype"])
            text = (
                scrub(out.texts[name])
                if how["type"] == "DIRECT" and name in out.texts
                else "; ".join(reasons.get(place, ()))
            )
            said.append({**how, "description": text} if text else how)
        each["transformations"] = said


def _too_wide(out: Output, settings: SparkSettings) -> bool:
    return settings.schema_limit is not None and len(out.columns) > settings.schema_limit


def too_wide(outputs: Iterable[Output], settings: SparkSettings) -> list[str]:
    """Which outputs have no column lineage because the settings say so."""
    return [
        f"no columnLineage of {out.named.identity.namespace}/{out.named.identity.name}: it has {len(out.columns)} columns,"
        f" and columnLineage.schemaSizeLimit is {settings.schema_limit}"
        for out in outputs
        if _too_wide(out, settings)
    ]


def degraded(*reasons: str) -> dict[str, Any]:
    """The run facet that says what is missing here, and why; nothing where all is told."""
    return {"headwater_degraded": facet("headwater_degraded", reasons=list(reasons))} if reasons else {}


def unknown(nodes: Collection[str]) -> dict[str, Any]:
    """The run facet that names the plan's nodes that nobody here knows."""
    return {"headwater_unknown": facet("headwater_unknown", nodes=sorted(nodes))} if nodes else {}


def _statistics(counts: tuple[int | None, ...] | None) -> dict[str, int]:
    names = ("rowCount", "size", "fileCount")
    return {name: count for name, count in zip(names, counts or (), strict=False) if count is not None}


_TRANSFORMATIONS: dict[int, list[dict[str, Any]]] = {}


def input_fields(deps: Deps) -> list[dict[str, Any]]:
    """Dependencies as the columnLineage facet lists them."""
    out = []
    for source, mask in deps.items():
        how = _TRANSFORMATIONS.get(mask)
        if how is None:
            hidden = not mask & OPEN
            how = _TRANSFORMATIONS[mask] = [
                {
                    "type": "DIRECT" if bit & DIRECT else "INDIRECT",
                    "subtype": name,
                    "masking": bool(hidden and bit & DIRECT),
                }
                for bit, name in KINDS.items()
                if mask & bit
            ]
        identity, column = source.dataset, source.column
        out.append(
            {"namespace": identity.namespace, "name": identity.name, "field": column, "transformations": how}
        )
    return out


def error_message(error: str, language: str = "JAVA") -> dict[str, Any]:
    """The errorMessage facet, without secrets and of bounded length."""
    text = scrub(error)[:_LONGEST_ERROR]
    first = text.strip().split("\n", 1)[0][:2_000] or "failed without a message"
    causes = re.findall(r"^Caused by: (.+)$", text, re.MULTILINE)
    if (
        causes and causes[-1] not in first
    ):  # before 4.0 the first line says no more than that a task has failed
        first = f"{first} Caused by: {causes[-1][:2_000]}"
    return facet("errorMessage", message=first, programmingLanguage=language, stackTrace=text)


def sql(query: str) -> dict[str, Any]:
    """The sql facet, without secrets and of bounded length."""
    return facet("sql", query=scrub(query)[:_LONGEST_SQL], dialect="spark")


def located(site: Mapping[str, str]) -> dict[str, Any]:
    """The sourceCodeLocation facet, where the line that acted is known."""
    return {"sourceCodeLocation": facet("sourceCodeLocation", **site)} if site else {}


def job_type(kind: str, processing: str) -> dict[str, Any]:
    """The jobType facet."""
    return facet("jobType", processingType=processing, integration="SPARK", jobType=kind)


def parent(run: str, namespace: str, name: str, root: Mapping[str, str] | None) -> dict[str, Any]:
    """The parent facet, with the root where one is known."""
    told: dict[str, Any] = {"run": {"runId": run}, "job": {"namespace": namespace, "name": name}}
    if root:
        told["root"] = {
            "run": {"runId": root["run"]},
            "job": {"namespace": root["namespace"], "name": root["name"]},
        }
    return facet("parent", **told)


def logical_plan(text: str) -> dict[str, Any]:
    """The plan as the OpenLineage agent tells it, without secrets."""
    try:
        plan = scrub_mapping({"plan": msgspec.json.decode(text)})["plan"]
    except msgspec.DecodeError:
        plan = scrub(text)
    return facet("spark.logicalPlan", plan=plan)


def debug(common: Mapping[str, Any] | None, plan: list[dict[str, Any]]) -> dict[str, Any]:
    """What of the application helps to find a fault, and the nodes of the plan."""
    nodes = [
        {
            "id": str(at),
            "desc": node["n"],
            "children": [str(ref) for value in node.values() for ref in refs(value)],
        }
        for at, node in enumerate(plan[:_MOST_NODES])
    ]
    return {**(common or facet("debug")), "logicalPlan": {"nodes": nodes}}


def tags(of: str, given: Iterable[Tag]) -> dict[str, Any]:
    """The tags facet of a Job or a Run."""
    return facet(
        f"tags of {of}",
        tags=[{"key": each.key, "value": each.value, "source": each.source} for each in given],
    )


def without(event: dict[str, Any], disabled: Collection[str]) -> dict[str, Any]:
    """The event without the facets that were switched off."""
    if not disabled:
        return event
    holders = [event["run"], event["job"], *event["inputs"], *event["outputs"]]
    for told in (
        holder.get(kind) for holder in holders for kind in ("facets", "inputFacets", "outputFacets")
    ):
        for name in disabled:
            if told:
                told.pop(name, None)
    return event
