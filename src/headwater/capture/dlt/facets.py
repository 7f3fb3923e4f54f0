"""capture.dlt.facets: what records tell -> facets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from headwater.capture._facets import schema_url
from headwater.event import PRODUCER as HOUSE
from headwater.naming import Dataset, Symlink

PRODUCER = f"{HOUSE}/dlt"
GENERATED = "_dlt_"
"""How dlt's own columns and tables begin, in its usual naming."""


def facet(name: str, /, **fields: Any) -> dict[str, Any]:
    """A facet with the two fields every facet has."""
    return {"_producer": PRODUCER, "_schemaURL": schema_url(name), **fields}


def job_facets(pipeline: Mapping[str, Any]) -> dict[str, Any]:
    """What is true of a pipeline in each of its runs."""
    told: dict[str, Any] = {
        "jobType": facet("jobType", processingType="BATCH", integration="DLT", jobType="PIPELINE")
    }
    if code := pipeline.get("code"):
        told["sourceCodeLocation"] = facet("sourceCodeLocation", **code)
    return told


def schema(table: Mapping[str, Any]) -> dict[str, Any]:
    """Columns with dlt's types."""
    fields = [
        {
            "name": column["name"],
            "type": _type(column),
            **({"description": column["description"]} if column.get("description") else {}),
            "ordinal_position": at,
        }
        for at, column in enumerate(table["columns"], 1)
    ]
    return facet("schema", fields=fields)


def _type(column: Mapping[str, Any]) -> str:
    kind = str(column.get("data_type") or "unknown")
    if kind == "decimal" and column.get("precision"):
        return f"decimal({column['precision']},{column.get('scale') or 0})"
    return kind


def symlinks(links: Iterable[Symlink]) -> dict[str, Any]:
    """Other names."""
    return facet(
        "symlinks",
        identifiers=[{"namespace": each.namespace, "name": each.name, "type": each.type} for each in links],
    )


def tags(table: Mapping[str, Any]) -> dict[str, Any] | None:
    """What `x-annotation-…` hints say of a table and its columns: `x-annotation-pii: true` is the tag `pii`."""
    found = [
        {"key": key, "value": value, "source": "DLT"} for key, value in _annotations(table.get("notes") or {})
    ]
    for column in table["columns"]:
        found += [
            {"key": key, "value": value, "source": "DLT", "field": column["name"]}
            for key, value in _annotations(column.get("notes") or {})
        ]
    return facet("tags", tags=found) if found else None


def owners(table: Mapping[str, Any]) -> dict[str, Any] | None:
    """Who owns a table, by the hint `x-annotation-owner` (or `-owners`)."""
    said = {key.removeprefix("x-annotation-"): value for key, value in (table.get("notes") or {}).items()}
    names = said.get("owners", said.get("owner"))
    listed = names if isinstance(names, list) else [names] if names else []
    if not listed:
        return None
    return facet("ownership of Dataset", owners=[{"name": str(each), "type": "OWNER"} for each in listed])


def _annotations(notes: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    for key, value in sorted(notes.items()):
        name = key.removeprefix("x-annotation").lstrip("-_") or "annotation"
        if name in ("owner", "owners") or value is False:
            continue
        for each in value if isinstance(value, list) else [value]:
            yield name, str(each).lower() if isinstance(each, bool) else str(each)


def errors(record: Mapping[str, Any] | None, failed: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Why a run failed: the innermost exception that dlt tells of, or the load jobs that did."""
    told: dict[str, Any] = {}
    if record is not None:
        chain = record["errors"] or [{"message": record["message"]}]
        cause = chain[-1]
        kind = cause.get("type") or ""
        text = cause.get("message") or record["message"]
        told["errorMessage"] = facet(
            "errorMessage",
            message=f"{kind}: {text}" if kind else text,
            programmingLanguage="PYTHON",
            stackTrace="\n\n".join(each["stack"] for each in chain if each.get("stack")),
        )
        told["dlt_error"] = facet(
            "dlt_error",
            step=record["step"],
            errors=[{key: value for key, value in each.items() if key != "stack" and value is not None} for each in chain],
        )  # fmt: skip
    elif failed:
        tables = ", ".join(sorted({each["table"] for each in failed}))
        told["errorMessage"] = facet(
            "errorMessage",
            message=f"{len(failed)} load job(s) failed, of: {tables}. {failed[0]['message']}",
            programmingLanguage="PYTHON",
            stackTrace="\n\n".join(each["stack"] for each in failed),
        )
        told["dlt_error"] = facet(
            "dlt_error",
            step="load",
            errors=[{"table": each["table"], "message": each["message"]} for each in failed],
        )
    return told


def lineage(sources: Iterable[Dataset]) -> dict[str, Any]:
    """Which of the run's inputs feed this output: those of its resource, not all."""
    inputs = [{"type": "DATASET", "namespace": each.namespace, "name": each.name} for each in sources]
    return facet("lineage", inputs=inputs)
