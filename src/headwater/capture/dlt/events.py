"""capture.dlt.events: a record and what came before it -> OpenLineage events. Pure.

A run is one transaction of dlt's trace. It starts once and ends once: FAIL where a step or a load job failed, whether or
not dlt raised it, else COMPLETE; and it claims no output that was not written. A step called alone is a run of its own,
whose parent is the run that extracted what it works on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any, Literal
from uuid import UUID

from headwater.capture.dlt import facets
from headwater.capture.dlt.columns import column_lineage, table_facet
from headwater.capture.dlt.facets import PRODUCER, facet
from headwater.capture.dlt.places import output_of, seed_name
from headwater.capture.dlt.reading import Reading, inputs_of_package
from headwater.event import SPEC
from headwater.naming import Dataset, Symlink

Record = Mapping[str, Any]
Naming = Literal["openlineage", "dlt-openlineage"]
MOST_RUNS = 1_000
"""Runs remembered that never ended: a process that is killed in mid-run takes its own with it."""


@dataclass(slots=True)
class Run:
    """What is known of one transaction so far."""

    id: str
    start: Record
    packages: dict[str, dict[str, Any]] = field(default_factory=dict)
    loads: list[Record] = field(default_factory=list)
    error: Record | None = None


@dataclass(slots=True)
class State:
    """What one tracker remembers."""

    namespace: str = "dlt"
    naming: Naming = "openlineage"
    adapter: str = ""
    """Our own version"""
    runs: dict[str, Run] = field(default_factory=dict)


def run_id(tx: str, began: str) -> str:
    """The run of a transaction: always the same, and ordered by time (a UUID of version 7).

    >>> run_id("6a91ab8d71b7781958e617468d661384", "2026-01-01T00:00:00Z")
    '019b76da-a800-7c0f-877d-8bc7d46a4b3c'
    """
    moment = int(datetime.fromisoformat(began.replace("Z", "+00:00")).timestamp() * 1000)
    digest = int.from_bytes(sha256(tx.encode()).digest()[:10], "big")
    number = (moment & (1 << 48) - 1) << 80 | digest
    return str(UUID(int=number & ~(0xF << 76) & ~(0x3 << 62) | 7 << 76 | 2 << 62))


def interpret(record: Record, state: State) -> list[dict[str, Any]]:
    """The events that a record gives rise to, given those before it."""
    if record["kind"] == "start":
        return _start(record, state)
    run = state.runs.get(record["tx"])
    if run is None:  # begun before we were there
        return []
    return _KINDS[record["kind"]](record, state, run)


def _start(record: Record, state: State) -> list[dict[str, Any]]:
    while len(state.runs) >= MOST_RUNS:
        state.runs.pop(next(iter(state.runs)))
    run = state.runs[record["tx"]] = Run(run_id(record["tx"], record["at"]), record)
    return [_event("START", record, state, run, execution={"step": record["step"]})]


def _extract(record: Record, state: State, run: Run) -> list[dict[str, Any]]:
    for load_id, package in record["packages"].items():
        run.packages[load_id] = {**run.packages.get(load_id, {}), **package}
    return [
        _event(
            "RUNNING",
            record,
            state,
            run,
            inputs=_inputs(state, run, record["packages"]),
            execution={"step": "extract", "load_ids": sorted(record["packages"])},
        )
    ]


def _normalize(record: Record, state: State, run: Run) -> list[dict[str, Any]]:
    for load_id, package in record["packages"].items():
        run.packages[load_id] = {**run.packages.get(load_id, {}), **package}
    return []


def _load(record: Record, state: State, run: Run) -> list[dict[str, Any]]:
    """Packages that were extracted by other runs come with what was kept of them."""
    for load_id, known in (record.get("known") or {}).items():
        run.packages.setdefault(load_id, known)
    run.loads.append(record)
    return []


def _failed(record: Record, state: State, run: Run) -> list[dict[str, Any]]:
    """The step that failed tells more than the run around it, which fails with it."""
    if run.error is None or record["step"] != "run":
        run.error = record
    return []


def _end(record: Record, state: State, run: Run) -> list[dict[str, Any]]:
    del state.runs[record["tx"]]
    failed = [job for load in run.loads for package in load["packages"].values() for job in package["failed"]]
    broken = run.error is not None or bool(failed)
    loaded = {load_id for load in run.loads for load_id in load["packages"]}
    kept = {load_id: package for load_id, package in run.packages.items() if load_id in loaded}
    outputs = [each for load in run.loads for each in _outputs(state, run, load)]
    if not outputs and state.naming == "dlt-openlineage" and not broken:
        outputs = [_planned(state, table) for table in record.get("planned") or ()]
    return [
        _event(
            "FAIL" if broken else "COMPLETE",
            record,
            state,
            run,
            inputs=_inputs(state, run, kept if run.loads else run.packages),
            outputs=_merged(outputs),
            execution=_execution(run, record, outputs),
            more=facets.errors(run.error, failed),
        )
    ]


_KINDS: dict[str, Callable[[Record, State, Run], list[dict[str, Any]]]] = {
    "extract": _extract,
    "normalize": _normalize,
    "load": _load,
    "failed": _failed,
    "end": _end,
}


def _inputs(state: State, run: Run, packages: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Everything that the resources of these packages read, once each."""
    where = run.loads[-1]["where"] if run.loads else {}
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for package in packages.values():
        for reading in inputs_of_package(package, where, _dataset(run), state.namespace, state.naming):
            told = found.setdefault(
                (reading.dataset.namespace, reading.dataset.name),
                {"namespace": reading.dataset.namespace, "name": reading.dataset.name, "facets": {}},
            )
            _tell_input(told, reading)
    return [found[key] for key in sorted(found)]


def _tell_input(told: dict[str, Any], reading: Reading) -> None:
    if reading.dataset.symlinks:
        told["facets"]["symlinks"] = facets.symlinks(reading.dataset.symlinks)
    if reading.columns:
        fields = [{"name": name} for name in reading.columns]
        told["facets"].setdefault("schema", facet("schema", fields=fields))
    if reading.cursor:
        told["facets"]["dlt_incremental"] = facet(
            "dlt_incremental", resource=reading.resource, **reading.cursor
        )
    if reading.files:
        told["facets"]["dlt_files"] = facet("dlt_files", **reading.files)
    if reading.rows is not None:
        told["inputFacets"] = {
            "inputStatistics": facet("inputStatistics", rowCount=reading.rows, size=reading.bytes or 0)
        }


def _outputs(state: State, run: Run, load: Record) -> Iterable[dict[str, Any]]:
    for load_id, package in load["packages"].items():
        known = run.packages.get(load_id, {})
        readings = inputs_of_package(known, load["where"], load["dataset"], state.namespace, state.naming)
        for table in package["tables"]:
            if table.startswith(facets.GENERATED) or not _written(package, table):
                continue
            yield _output(state, load, load_id, package, known, readings, table)
        for table in package["dropped"]:
            if table not in package["completed"] and not table.startswith(facets.GENERATED):
                dataset = _named(state, load, table)
                yield {
                    "namespace": dataset.namespace,
                    "name": dataset.name,
                    "facets": {
                        "lifecycleStateChange": facet("lifecycleStateChange", lifecycleStateChange="DROP")
                    },
                }


def _written(package: Mapping[str, Any], table: str) -> bool:
    """Whether rows of a table reached the destination.

    In a package that failed, what is merged or replaced by way of staging tables did not, unless all of it was done.
    """
    if table not in package["completed"]:
        return table in package["truncated"]
    if package["state"] == "loaded" and not package["failed"]:
        return True
    if any(job["table"] == table for job in package["failed"]):
        return False
    root = _root(package["tables"], table)
    return bool(package["tables"][root].get("write_disposition", "append") == "append")


def _root(tables: Mapping[str, Any], table: str) -> str:
    while tables.get(table, {}).get("parent") in tables:
        table = tables[table]["parent"]
    return table


def _output(
    state: State,
    load: Record,
    load_id: str,
    package: Mapping[str, Any],
    known: Mapping[str, Any],
    readings: list[Reading],
    table: str,
) -> dict[str, Any]:
    described = package["tables"][table]
    root = _root(package["tables"], table)
    resource = package["tables"][root].get("resource") or root
    own = [each for each in readings if each.feeds == resource]
    dataset = _named(state, load, table)
    told: dict[str, Any] = {"schema": facets.schema(described)}
    if dataset.symlinks:
        told["symlinks"] = facets.symlinks(dataset.symlinks)
    if own:
        told["lineage"] = facets.lineage(each.dataset for each in own)
    if columns := column_lineage(table, described, known, own):
        told["columnLineage"] = facet("columnLineage", fields=columns)
    told["version"] = facet("version", datasetVersion=load_id)
    told["dlt_table"] = table_facet(table, described, package, known, resource, columns)
    if change := _lifecycle(package, table, root):
        told["lifecycleStateChange"] = facet("lifecycleStateChange", lifecycleStateChange=change)
    if text := described.get("description"):
        told["documentation"] = facet("documentation", description=text)
    for name, made in (("tags", facets.tags(described)), ("ownership", facets.owners(described))):
        if made is not None:
            told[name] = made
    counted = (known.get("counted") or {}).get(table) or {}
    files = [
        each for each in package["completed"].get(table, ()) if each["format"] not in ("sql", "reference")
    ]
    return {
        "namespace": dataset.namespace,
        "name": dataset.name,
        "facets": told,
        "outputFacets": {
            "outputStatistics": facet(
                "outputStatistics",
                **({"rowCount": counted["rows"]} if "rows" in counted else {}),
                size=sum(each["bytes"] for each in files),
                fileCount=len(files),
            )
        },
    }


def _lifecycle(package: Mapping[str, Any], table: str, root: str) -> str | None:
    """What happened to the table itself: made, replaced, emptied, or given new columns."""
    changed = {each["name"] for each in package["update"].get(table, ())}
    every = {each["name"] for each in package["tables"][table]["columns"]}
    if changed and changed >= every and table not in package["dropped"]:
        return "CREATE"
    if table in package["dropped"] or package["tables"][root].get("write_disposition") == "replace":
        return "OVERWRITE"
    if table in package["truncated"]:
        return "TRUNCATE"
    return "ALTER" if changed else None


def _named(state: State, load: Record, table: str) -> Dataset:
    theirs = seed_name(load["where"], load["dataset"], table)
    if state.naming == "dlt-openlineage":
        return Dataset(theirs.namespace, theirs.name)
    found = output_of(load["where"], load["dataset"], table)
    if theirs.identity == found.identity:
        return found
    return Dataset(found.namespace, found.name, (Symlink(theirs.namespace, theirs.name, "FORMER"),))


def _planned(state: State, table: str) -> dict[str, Any]:
    return {"namespace": state.namespace, "name": table, "facets": {}}


def _merged(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One entry a dataset: several packages may load one table."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for each in outputs:
        key = (each["namespace"], each["name"])
        if key not in found:
            found[key] = each
            continue
        have = found[key]
        have["facets"] = {**have["facets"], **each["facets"]}
        mine = have.get("outputFacets", {}).get("outputStatistics", {})
        for name, value in each.get("outputFacets", {}).get("outputStatistics", {}).items():
            mine[name] = mine.get(name, 0) + value if isinstance(value, int) else value
        if mine:
            have["outputFacets"] = {"outputStatistics": mine}
    return list(found.values())


def _execution(run: Run, record: Record, outputs: list[dict[str, Any]]) -> dict[str, Any]:
    step = run.error["step"] if run.error is not None else "load" if run.loads else run.start["step"]
    told: dict[str, Any] = {"step": step, "load_ids": sorted(run.packages)}
    packages = [package for load in run.loads for package in load["packages"].values()]
    if run.loads:
        last = run.loads[-1]
        told |= {
            "destination_type": last["destination"]["type"],
            "destination_name": last["destination"]["name"],
            "dataset_name": last["dataset"],
            "load_ids": sorted({*run.packages, *(each for load in run.loads for each in load["packages"])}),
            "total_jobs": sum(len(files) for package in packages for files in package["completed"].values()),
            "failed_jobs": sum(len(package["failed"]) for package in packages),
        }
        if last["destination"].get("staging"):
            told["staging"] = last["destination"]["staging"]
        if last.get("state"):
            told["incremental"] = last["state"]
        refreshed = sorted({package["refresh"] for package in packages if package.get("refresh")})
        if refreshed:
            told["refresh"] = refreshed
    if not outputs:
        planned = {table for package in run.packages.values() for table in package.get("tables") or ()}
        told["planned_tables"] = sorted(
            each
            for each in planned | set(record.get("planned") or ())
            if not each.startswith(facets.GENERATED)
        )
    return told


def _dataset(run: Run) -> str:
    return str(run.loads[-1]["dataset"] if run.loads else run.start.get("dataset") or "")


def _event(
    kind: str,
    record: Record,
    state: State,
    run: Run,
    *,
    inputs: list[dict[str, Any]] | None = None,
    outputs: list[dict[str, Any]] | None = None,
    execution: Mapping[str, Any] | None = None,
    more: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    start = run.start
    told: dict[str, Any] = {
        "processing_engine": facet(
            "processing_engine",
            version=start.get("dlt") or "unknown",
            name="dlt",
            openlineageAdapterVersion=state.adapter or "unknown",
        ),
        "dlt_execution": facet("dlt_execution", transaction_id=record["tx"], **(execution or {})),
    }
    if parent := start.get("parent") or _family(state, run):
        told["parent"] = facet("parent", **parent)
    if start.get("nominal"):
        told["nominalTime"] = facet("nominalTime", nominalStartTime=start["nominal"])
    untold = sorted(
        {
            name
            for package in run.packages.values()
            for name, resource in (package.get("resources") or {}).items()
            if resource.get("untold")
        }
    )
    if untold:
        told["headwater_degraded"] = facet(
            "headwater_degraded",
            reasons=[
                f"dlt {start.get('dlt')} does not tell where resources read from; 1.30 does: {', '.join(untold)}"
            ],
        )
    return {
        "eventType": kind,
        "eventTime": record["at"],
        "producer": PRODUCER,
        "schemaURL": f"{SPEC}#/$defs/RunEvent",
        "run": {"runId": run.id, "facets": {**told, **(more or {})}},
        "job": {
            "namespace": state.namespace,
            "name": record["pipeline"],
            "facets": facets.job_facets(start),
        },
        "inputs": inputs or [],
        "outputs": outputs or [],
    }


def _family(state: State, run: Run) -> dict[str, Any] | None:
    """The run that extracted the packages of this one, where that was another."""
    for package in run.packages.values():
        began = package.get("run")
        if began and began != run.id:
            return {
                "run": {"runId": began},
                "job": {"namespace": state.namespace, "name": run.start["pipeline"]},
            }
    return None
