"""capture.dlt.recording: the objects that dlt hands its trackers -> records, plain data; the probe.

Nothing is understood here but what only dlt's own objects can tell: which column a path became, and which settings of a
destination are no secret. It runs in the pipeline's thread, between its steps, under the tracker's guard.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path as File
from typing import Any

import yaml

from headwater.capture.dlt.extracted import SAMPLE, look, names_of, share, text_of
from headwater.capture.dlt.leaves import Shapes
from headwater.capture.dlt.models import read_model
from headwater.capture.dlt.normalised import columns_of
from headwater.capture.dlt.places import SETTINGS
from headwater.guard import guard
from headwater.naming import is_secret, scrub

Record = dict[str, Any]
Names = Mapping[str, Mapping[str, str]]
"""table -> column as loaded -> column as it was, where an Arrow table was renamed on its way in"""

_HINTS = ("write_disposition", "primary_key", "merge_key", "incremental", "table_name", "file_format")
_COLUMN = ("data_type", "nullable", "description", "precision", "scale", "variant")
_KEPT = ("parent", "resource", "write_disposition", "description", "table_format", "x-merge-strategy")
_LONGEST = 20_000


def started(trace: Any, step: str, pipeline: Any) -> Record:
    """A pipeline begins something: a run, or one of its steps alone."""
    return {
        "kind": "start",
        **_about(trace, pipeline),
        "at": _iso(trace.started_at),
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
            "resource": each.get("resource_name") or (each.get("exception_attrs") or {}).get("resource_name"),
            "load_id": each.get("load_id"),
        }
        for each in step.exception_traces or ()
    ]
    return {
        "kind": "failed",
        **_about(trace, pipeline),
        "at": _iso(step.finished_at),
        "step": str(step.step),
        "message": scrub(str(step.step_exception))[:_LONGEST],
        "errors": chain,
    }


def extracted(
    trace: Any, step: Any, pipeline: Any, info: Any, arrows: Mapping[str, Names], sample: int | None = SAMPLE
) -> Record:
    """What resources were read, from where, and what stands in the files they were extracted into."""
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
        _files(File(package.package_path) / "new_jobs", kept, arrows.get(str(package.load_id), {}), sample)
    return {"kind": "extract", **_about(trace, pipeline), "at": _iso(step.finished_at), "packages": packages}


def _resources(metrics: Mapping[str, Any], into: dict[str, Any]) -> None:
    for name, counted in (metrics.get("resource_metrics") or {}).items():
        hints = (metrics.get("hints") or {}).get(name) or {}
        into[name] = {
            "rows": counted.items_count,
            "bytes": counted.file_size,
            "inputs": [],
            "parents": [],
            "hints": {key: _plain(hints[key]) for key in _HINTS if hints.get(key) is not None},
            "columns": _columns_of(hints.get("columns")),
        }
    for parent, name in metrics.get("dag") or ():
        if name in into and parent != name and parent not in into[name]["parents"]:
            into[name]["parents"].append(parent)
        into.setdefault(parent, {"inputs": [], "parents": [], "hints": {}, "columns": []})
    for location in metrics.get("inputs") or ():
        owner = into.setdefault(
            str(location.get("resource_name")), {"inputs": [], "parents": [], "hints": {}, "columns": []}
        )
        owner["inputs"].append(_plain(location))
    if "inputs" not in metrics:  # before dlt 1.30
        for each in into.values():
            each["untold"] = True


def _files(folder: File, kept: dict[str, Any], names: Names, sample: int | None) -> None:
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
                models[table] = _model(text_of(file))
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


def _model(text: str) -> dict[str, Any]:
    found = read_model(text)
    return {
        "sql": scrub(found.sql)[:_LONGEST],
        "tables": list(found.tables),
        "columns": {column: [list(each) for each in sources] for column, sources in found.columns.items()},
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
        packages[load_id] = {
            "counted": counted,
            "lineage": _lineage(package.schema, known.get(load_id) or {}),
        }
    return {
        "kind": "normalize",
        **_about(trace, pipeline),
        "at": _iso(step.finished_at),
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


def loaded(trace: Any, step: Any, pipeline: Any, info: Any) -> Record:
    """What was loaded, into which tables, and what of it failed."""
    return {
        "kind": "load",
        **_about(trace, pipeline),
        "at": _iso(step.finished_at),
        "where": where(pipeline, info),
        "destination": {
            "type": str(info.destination_type),
            "name": str(info.destination_name),
            "staging": str(info.staging_type or "").rpartition(".")[2] or None,
        },
        "dataset": _physical(info),
        "packages": {str(each.load_id): _package(each, info) for each in info.load_packages},
        "state": _watermarks(pipeline),
    }


def _physical(info: Any) -> str:
    for metrics in info.metrics.values():
        for each in metrics:
            if each.get("dataset_name"):
                return str(each["dataset_name"])
    return str(info.dataset_name or "")


def _package(package: Any, info: Any) -> dict[str, Any]:
    jobs = package.jobs
    files: dict[str, list[dict[str, Any]]] = {}
    for job in jobs.get("completed_jobs") or ():
        files.setdefault(job.job_file_info.table_name, []).append(
            {"format": job.job_file_info.file_format, "bytes": job.file_size}
        )
    told_of = {
        *files,
        *(job.job_file_info.table_name for state in jobs.values() for job in state),
        *(package.schema_update or ()),
        *_names(package, "dropped_tables"),
        *_names(package, "truncated_tables"),
    }
    return {
        "schema": package.schema_name,
        "version": str(package.schema.version_hash or ""),
        "state": str(package.state),
        "completed": files,
        "failed": [
            {"table": job.job_file_info.table_name, "message": scrub(str(job.failed_message or ""))[:2_000]}
            for job in jobs.get("failed_jobs") or ()
        ],
        "waiting": sum(len(jobs.get(state) or ()) for state in ("new_jobs", "started_jobs")),
        "tables": {
            name: _table(package.schema.tables[name])
            for name in _with_parents(package.schema.tables, told_of)
        },
        "update": {
            table: [
                {"name": name, "type": column.get("data_type")}
                for name, column in (changed.get("columns") or {}).items()
            ]
            for table, changed in (package.schema_update or {}).items()
        },
        "refresh": getattr(package, "refresh", None),
        "dropped": _names(package, "dropped_tables"),
        "truncated": _names(package, "truncated_tables"),
        "urls": _urls(info, str(package.load_id)),
    }


def _names(package: Any, field: str) -> list[str]:
    found = getattr(package, field, None) or ()
    return [str(each if isinstance(each, str) else each.get("name")) for each in found]


def _urls(info: Any, load_id: str) -> int:
    """How many files a destination of files holds of this package."""
    metrics = info.metrics.get(load_id) or ()
    return sum(1 for each in metrics for job in each["job_metrics"].values() if job.remote_url)


def _with_parents(tables: Mapping[str, Any], names: set[str]) -> Iterator[str]:
    seen: set[str] = set()
    for name in sorted(names):
        at: str | None = name
        while at is not None and at in tables and at not in seen:
            seen.add(at)
            yield at
            at = tables[at].get("parent")


def _table(table: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **{key: _plain(table[key]) for key in _KEPT if table.get(key) is not None},
        "notes": {key: _plain(value) for key, value in table.items() if key.startswith("x-annotation")},
        "columns": [
            {
                "name": name,
                **{key: _plain(column[key]) for key in _COLUMN if column.get(key) is not None},
                "keys": [
                    key
                    for key in ("primary_key", "unique", "row_key", "parent_key", "root_key")
                    if column.get(key)
                ],
                "notes": {
                    key: _plain(value) for key, value in column.items() if key.startswith("x-annotation")
                },
            }
            for name, column in (table.get("columns") or {}).items()
            if column.get("data_type")
        ],
    }


def ended(trace: Any, pipeline: Any) -> Record:
    """All of it is over."""
    return {"kind": "end", **_about(trace, pipeline), "at": _iso(trace.finished_at)}


def where(pipeline: Any, info: Any = None) -> dict[str, Any]:
    """The destination: its short name and those of its settings that make names."""
    kind = getattr(info, "destination_type", None) or getattr(pipeline.destination, "destination_type", "")
    name = getattr(info, "destination_name", None) or getattr(pipeline.destination, "destination_name", "")
    found: dict[str, Any] = {"type": str(kind).rpartition(".")[2], "name": str(name)}
    with guard("reading the destination's settings"):
        config = pipeline.destination_client().config
        for owner in (config, getattr(config, "credentials", None)):
            for key in SETTINGS:
                value = getattr(owner, key, None)
                if isinstance(value, (str, int)) and value != "" and not is_secret(key):
                    found.setdefault(key, scrub(value) if isinstance(value, str) else value)
        if found["type"] == "duckdb" and "database" in found:
            found["database"] = os.path.abspath(str(found["database"]))
        if "://" not in str(found.get("bucket_url") or "://"):
            found["bucket_url"] = os.path.abspath(str(found["bucket_url"]))
    return found


def _watermarks(pipeline: Any) -> dict[str, Any]:
    """Where each incremental cursor stands now: resource -> cursor -> value."""
    found: dict[str, Any] = {}
    with guard("reading the pipeline's cursors"):
        for source in (pipeline.state.get("sources") or {}).values():
            for name, kept in (source.get("resources") or {}).items():
                for cursor, said in (kept.get("incremental") or {}).items():
                    found.setdefault(name, {})[cursor] = _plain(said.get("last_value"))
    return found


def _about(trace: Any, pipeline: Any) -> Record:
    return {"tx": str(trace.transaction_id), "pipeline": str(pipeline.pipeline_name)}


def _iso(at: Any) -> str:
    moment: datetime = at if at is not None else datetime.now(timezone.utc)
    return moment.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _plain(value: Any) -> Any:
    """A value as JSON has it, without a secret; what is no JSON by its text."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return scrub(str(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items() if not is_secret(str(key))}
    if isinstance(value, (list, tuple, set)):
        return [_plain(inner) for inner in value]
    return scrub(str(value))[:500]


class _Names(yaml.SafeLoader):
    """Reads the columns that a resource was given: SQLAlchemy's quoted names are texts, nothing else is made."""


def _quoted_name(loader: yaml.SafeLoader, suffix: str, node: Any) -> str:
    parts = loader.construct_sequence(node)
    return str(parts[0]) if parts else ""


_Names.add_multi_constructor("tag:yaml.org,2002:python/object/apply:", _quoted_name)


def _columns_of(text: Any) -> list[str]:
    """The columns that a resource was given by hand or by its source, as they are called there."""
    if not isinstance(text, str):
        return [str(name) for name in text] if isinstance(text, Mapping) else []
    with guard("reading a resource's columns"):
        said = yaml.load(text, Loader=_Names)  # a SafeLoader
        return [str(name) for name in said] if isinstance(said, Mapping) else []
    return []
