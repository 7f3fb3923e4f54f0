"""capture.dlt.recording: the objects that dlt hands its trackers -> records, plain data; the probe.

Nothing is understood here but what only dlt's own objects can tell: which column a path became, and which settings of a
destination are no secret. It runs in the pipeline's thread, between its steps, under the tracker's guard.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import Any

from headwater.capture.dlt.extracted import SAMPLE, look, names_of, share, text_of
from headwater.capture.dlt.leaves import Shapes
from headwater.capture.dlt.loads import dataset_of, package_of, watermarks_of, where
from headwater.capture.dlt.models import read_model
from headwater.capture.dlt.normalised import columns_of
from headwater.capture.dlt.plain import columns_given, iso, plain
from headwater.guard import guard
from headwater.naming import scrub

Record = dict[str, Any]

_HINTS = ("write_disposition", "primary_key", "merge_key", "incremental", "table_name", "file_format")
_LONGEST = 20_000


@dataclass(slots=True)
class Heard:
    """What was heard of a package while it was extracted, and stands in no trace."""

    names: dict[str, dict[str, str]] = field(default_factory=dict)
    """table -> column as loaded -> column as it was, where an Arrow table was renamed on its way in"""
    readers: set[str] = field(default_factory=set)
    """Resources that are dlt's own readers of files"""


def started(trace: Any, step: str, pipeline: Any) -> Record:
    """A pipeline begins something: a run, or one of its steps alone."""
    return {
        "kind": "start",
        **_about(trace, pipeline),
        "at": iso(trace.started_at),
        "step": str(step),
        "dlt": str(((trace.execution_context or {}).get("library") or {}).get("version") or ""),
        "dataset": getattr(pipeline, "dataset_name", None) or "",
    }


def failed(trace: Any, step: Any, pipeline: Any) -> Record:
    """A step ended with an error; dlt tells what each exception of the chain said of itself."""
    chain = [
        {
            "type": str(each.get("exception_type") or ""),
            "message": scrub(str(each.get("message") or ""))[:_LONGEST],
            "stack": scrub("".join(map(str, each.get("stack_trace") or ())))[:_LONGEST],
            "terminal": each.get("is_terminal"),
            "resource": each.get("resource_name")
            or (each.get("exception_attrs") or {}).get("resource_name")
            or (each.get("exception_attrs") or {}).get("pipe_name"),
            "load_id": each.get("load_id"),
        }
        for each in step.exception_traces or ()
    ]
    return {
        "kind": "failed",
        **_about(trace, pipeline),
        "at": iso(step.finished_at),
        "step": str(step.step),
        "message": scrub(str(step.step_exception))[:_LONGEST],
        "errors": chain,
    }


def missed(trace: Any, step: Any, pipeline: Any, fault: Exception) -> Record:
    """A step ended, and what it did could not be recorded."""
    why = scrub(f"{type(fault).__name__}: {fault}")[:500]
    return {
        "kind": "missed",
        **_about(trace, pipeline),
        "at": iso(step.finished_at),
        "step": str(step.step),
        "why": why,
    }


def extracted(
    trace: Any, step: Any, pipeline: Any, info: Any, heard: Mapping[str, Heard], sample: int | None = SAMPLE
) -> Record:
    """What resources were read, from where, and what stands in the files they were extracted into.

    A sample of 0 follows no columns; None looks at every item.
    """
    packages: dict[str, Any] = {}
    for load_id, metrics in info.metrics.items():
        kept = packages.setdefault(str(load_id), {"resources": {}, "schema": ""})
        for each in metrics:
            kept["schema"] = each.get("schema_name") or kept["schema"]
            _resources(each, kept["resources"])
    for package in info.load_packages:
        kept = packages.setdefault(str(package.load_id), {"resources": {}, "schema": package.schema_name})
        kept["tables"] = {
            name: table.get("resource") or name
            for name, table in package.schema.tables.items()
            if not table.get("parent")
        }
        of_it = heard.get(str(package.load_id)) or Heard()
        for name in of_it.readers & kept["resources"].keys():
            kept["resources"][name]["reader"] = True
        _files(File(package.package_path) / "new_jobs", kept, of_it.names, sample)
    return {"kind": "extract", **_about(trace, pipeline), "at": iso(step.finished_at), "packages": packages}


def _resources(metrics: Mapping[str, Any], into: dict[str, Any]) -> None:
    for name, counted in (metrics.get("resource_metrics") or {}).items():
        hints = (metrics.get("hints") or {}).get(name) or {}
        into[name] = {
            "rows": counted.items_count,
            "bytes": counted.file_size,
            "inputs": [],
            "parents": [],
            "hints": {key: plain(hints[key]) for key in _HINTS if hints.get(key) is not None},
            "columns": columns_given(hints.get("columns")),
        }
    for name, hints in (metrics.get("hints") or {}).items():
        table = hints.get("table_name")
        if name not in into and isinstance(
            table, str
        ):  # dlt counts its items as those of the table's last resource
            into[name] = {"inputs": [], "parents": [], "hints": {}, "columns": [], "shares": table}
    for parent, name in metrics.get("dag") or ():
        if name in into and parent != name and parent not in into[name]["parents"]:
            into[name]["parents"].append(parent)
        into.setdefault(parent, {"inputs": [], "parents": [], "hints": {}, "columns": []})
    for location in metrics.get("inputs") or ():
        owner = into.setdefault(
            str(location.get("resource_name")), {"inputs": [], "parents": [], "hints": {}, "columns": []}
        )
        owner["inputs"].append(plain(_whole(location)))
    if "inputs" not in metrics:  # before dlt 1.30
        for each in into.values():
            each["untold"] = True


def _whole(location: Mapping[str, Any]) -> Mapping[str, Any]:
    """A location; a database that is a file by its whole path: what it is relative to nobody knows later."""
    scheme, file = (
        str(location.get("location") or "").partition("://")[0],
        str(location.get("database") or ""),
    )
    if scheme not in ("sqlite", "duckdb") or not file or ":" in file:  # `:memory:`, `file:…?mode=ro`
        return location
    return {**location, "location": f"{scheme}:///{os.path.abspath(file)}"}


def _files(
    folder: File, kept: dict[str, Any], names: Mapping[str, Mapping[str, str]], sample: int | None
) -> None:
    shapes: dict[str, Shapes] = {}
    seen: dict[str, int] = {}
    columns: dict[str, dict[str, str]] = {}
    models: dict[str, Any] = {}
    unread: list[str] = []
    for file in sorted(folder.iterdir()) if folder.is_dir() else ():
        table = _table_of(file.name)
        if table is None or table.startswith("_dlt"):
            continue
        with guard("reading what dlt extracted") as reading:
            if ".model" in file.name:
                models[table] = _model(text_of(file), follow=sample != 0)
            elif sample == 0:
                kept["unfollowed"] = True
            elif file.suffix == ".parquet":
                given = names.get(table) or {}
                columns.setdefault(table, {}).update({name: given.get(name, name) for name in names_of(file)})
            elif "jsonl" in file.name:
                found = shapes.setdefault(table, Shapes())
                seen[table] = seen.get(table, 0) + look(file, found, share(sample, seen.get(table, 0)))
            else:
                unread.append(table)
        if reading.fault is not None:
            unread.append(table)
    kept["shapes"] = {table: found.told() for table, found in shapes.items()}
    kept["names"], kept["models"], kept["unread"] = columns, models, sorted(set(unread))


def _table_of(file: str) -> str | None:
    from dlt.common.storages.load_package import ParsedLoadJobFileName

    with guard("naming the table of a file"):
        return str(ParsedLoadJobFileName.parse(file).table_name)
    return None


def _model(text: str, *, follow: bool) -> dict[str, Any]:
    found = read_model(text)
    return {
        "sql": scrub(found.sql)[:_LONGEST],
        "tables": list(found.tables),
        "columns": {
            column: [list(each) for each in sources] for column, sources in found.columns.items() if follow
        },
    }


def normalised(
    trace: Any, step: Any, pipeline: Any, info: Any, known: Mapping[str, Mapping[str, Any]]
) -> Record:
    """How many rows each table got, and which column each path of the items became."""
    packages: dict[str, Any] = {}
    for package in info.load_packages:
        load_id = str(package.load_id)
        counted: dict[str, Any] = {}
        for each in info.metrics.get(load_id) or ():
            for table, metrics in each["table_metrics"].items():
                counted[table] = {"rows": metrics.items_count, "bytes": metrics.file_size}
        packages[load_id] = {"counted": counted}
        if (extracted := known.get(load_id)) is not None:
            packages[load_id] |= {
                "lineage": _lineage(package.schema, extracted),
                "models": _renamed(package.schema, extracted.get("models") or {}),
            }
    return {
        "kind": "normalize",
        **_about(trace, pipeline),
        "at": iso(step.finished_at),
        "packages": packages,
    }


def _lineage(schema: Any, package: Mapping[str, Any]) -> dict[str, Any]:
    """table -> column -> [[root table, path], …]"""
    found: dict[str, dict[str, list[Any]]] = {}
    for table, shapes in (package.get("shapes") or {}).items():
        with guard("following columns through dlt's normaliser"):
            for name, columns in columns_of(schema, table, shapes).items():
                for column, sources in columns.items():
                    found.setdefault(name, {}).setdefault(column, []).extend(
                        [table, list(path)] for path in sources
                    )
    for table, names in (package.get("names") or {}).items():
        known = schema.tables.get(table, {}).get("columns", {})
        for column, original in names.items():
            if column in known and not column.startswith("_dlt"):
                found.setdefault(table, {}).setdefault(column, []).append([table, [original]])
    return found


def _renamed(schema: Any, models: Mapping[str, Any]) -> dict[str, Any]:
    """Models with their columns as the destination calls them."""
    found: dict[str, Any] = dict(models)
    for table, model in models.items():
        with guard("naming the columns of a model"):
            columns = {schema.naming.normalize_path(name): each for name, each in model["columns"].items()}
            found[table] = {**model, "columns": columns}
    return found


def loaded(trace: Any, step: Any, pipeline: Any, info: Any) -> Record:
    """What was loaded, into which tables, and what of it failed."""
    return {
        "kind": "load",
        **_about(trace, pipeline),
        "at": iso(step.finished_at),
        "where": where(pipeline, info),
        "destination": {
            "type": str(info.destination_type),
            "name": str(info.destination_name),
            "staging": str(info.staging_type or "").rpartition(".")[2] or None,
        },
        "dataset": dataset_of(info),
        "packages": {str(each.load_id): package_of(each, info) for each in info.load_packages},
        "state": watermarks_of(pipeline),
    }


def ended(trace: Any, pipeline: Any) -> Record:
    """All of it is over."""
    return {"kind": "end", **_about(trace, pipeline), "at": iso(trace.finished_at)}


def _about(trace: Any, pipeline: Any) -> Record:
    return {"tx": str(trace.transaction_id), "pipeline": str(pipeline.pipeline_name)}
