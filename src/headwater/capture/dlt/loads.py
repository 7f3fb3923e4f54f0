"""capture.dlt.loads: a load package and its destination, as dlt has them -> plain data."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from headwater.capture.dlt.places import SETTINGS
from headwater.capture.dlt.plain import plain
from headwater.guard import guard
from headwater.naming import is_secret, scrub

_COLUMN = ("data_type", "nullable", "description", "precision", "scale", "variant")
_KEPT = ("parent", "resource", "write_disposition", "description", "table_format", "x-merge-strategy")


def dataset_of(info: Any) -> str:
    """The dataset as the destination calls it."""
    for metrics in info.metrics.values():
        for each in metrics:
            if each.get("dataset_name"):
                return str(each["dataset_name"])
    return str(info.dataset_name or "")


def package_of(package: Any, info: Any) -> dict[str, Any]:
    """What was loaded of a package and what failed, its tables, and what happened to them."""
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
            {"table": job.job_file_info.table_name, **_failure(scrub(str(job.failed_message or "")))}
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


def _failure(told: str) -> dict[str, str]:
    """Why a job failed: dlt keeps a traceback, or a chain of them, whose reason stands at its end."""
    lines = told.rpartition("Traceback (most recent call last):")[2].splitlines()
    frames = next((at for at, line in enumerate(lines) if line.strip() and not line.startswith(" ")), 0)
    return {"message": "\n".join(lines[frames:]).strip()[:2_000], "stack": told[-20_000:]}


def _names(package: Any, field: str) -> list[str]:
    """Tables that were dropped or emptied; older traces lack them, the state of the package has them."""
    found = getattr(package, field, None) or ()
    if not hasattr(package, field):
        with guard("reading the state of a package"):
            file = Path(package.package_path) / "load_package_state.json"
            if file.exists():
                found = msgspec.json.decode(file.read_bytes()).get(field) or ()
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
        **{key: plain(table[key]) for key in _KEPT if table.get(key) is not None},
        "notes": {key: plain(value) for key, value in table.items() if key.startswith("x-annotation")},
        "columns": [
            {
                "name": name,
                **{key: plain(column[key]) for key in _COLUMN if column.get(key) is not None},
                "keys": [
                    key
                    for key in ("primary_key", "unique", "row_key", "parent_key", "root_key")
                    if column.get(key)
                ],
                "notes": {
                    key: plain(value) for key, value in column.items() if key.startswith("x-annotation")
                },
            }
            for name, column in (table.get("columns") or {}).items()
            if column.get("data_type")
        ],
    }


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
        of_file = found["type"] == "duckdb" or str(found.get("drivername") or "").startswith("sqlite")
        if of_file and ":" not in str(found.get("database") or ":"):  # `:memory:` is no file
            found["database"] = os.path.abspath(str(found["database"]))
        if "://" not in str(found.get("bucket_url") or "://"):
            found["bucket_url"] = os.path.abspath(str(found["bucket_url"]))
    return found


def watermarks_of(pipeline: Any) -> dict[str, Any]:
    """Where each incremental cursor stands now: resource -> cursor -> value."""
    found: dict[str, Any] = {}
    with guard("reading the pipeline's cursors"):
        for source in (pipeline.state.get("sources") or {}).values():
            for name, kept in (source.get("resources") or {}).items():
                for cursor, said in (kept.get("incremental") or {}).items():
                    found.setdefault(name, {})[cursor] = plain(said.get("last_value"))
    return found
