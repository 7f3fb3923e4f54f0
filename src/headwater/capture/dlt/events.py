"""capture.dlt.events: a record and what came before it -> OpenLineage events. Pure.

A run is one transaction of dlt's trace. It starts once and ends once: FAIL where a step or a load job failed, whether or
not dlt raised it, else COMPLETE; and it claims no output that was not written. A step called alone is a run of its own,
whose parent is the run that extracted what it works on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any, Literal
from uuid import UUID

from headwater.capture.dlt import facets
from headwater.capture.dlt.facets import PRODUCER, facet
from headwater.capture.dlt.outputs import merged, outputs_of
from headwater.capture.dlt.reading import Reading, inputs_of_package
from headwater.event import SPEC

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
    missed: list[str] = field(default_factory=list)
    """What of the run could not be read, and why"""


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
    '019b76da-a800-71d0-b052-2d7ed33d7f5e'
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


def _missed(record: Record, state: State, run: Run) -> list[dict[str, Any]]:
    """A step of which nothing could be recorded: the run is told without it, and says so."""
    run.missed.append(f"the step {record['step']} could not be read: {record['why']}")
    return []


def _end(record: Record, state: State, run: Run) -> list[dict[str, Any]]:
    del state.runs[record["tx"]]
    failed = [job for load in run.loads for package in load["packages"].values() for job in package["failed"]]
    broken = run.error is not None or bool(failed)
    loaded = {load_id for load in run.loads for load_id in load["packages"]}
    kept = {load_id: package for load_id, package in run.packages.items() if load_id in loaded}
    outputs = [
        each for load in run.loads for each in outputs_of(load, run.packages, state.namespace, state.naming)
    ]
    if not outputs and state.naming == "dlt-openlineage" and not broken:
        outputs = [
            {"namespace": state.namespace, "name": table, "facets": {}} for table in _planned(run, record)
        ]
    return [
        _event(
            "FAIL" if broken else "COMPLETE",
            record,
            state,
            run,
            inputs=_inputs(state, run, kept if run.loads else run.packages),
            outputs=merged(outputs),
            execution=_execution(run, record, outputs),
            more=facets.errors(run.error, failed),
        )
    ]


_KINDS: dict[str, Callable[[Record, State, Run], list[dict[str, Any]]]] = {
    "extract": _extract,
    "normalize": _normalize,
    "load": _load,
    "failed": _failed,
    "missed": _missed,
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
        told["planned_tables"] = _planned(run, record)
    return told


def _planned(run: Run, record: Record) -> list[str]:
    """The tables that would be written: those of the pipeline's schema, and of what was extracted."""
    found = {table for package in run.packages.values() for table in package.get("tables") or ()}
    return sorted(
        each for each in found | set(record.get("planned") or ()) if not each.startswith(facets.GENERATED)
    )


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
    if reasons := [*_untold(run), *run.missed]:
        told["headwater_degraded"] = facet("headwater_degraded", reasons=reasons)
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


def _untold(run: Run) -> list[str]:
    """What the traces of an older dlt lack."""
    names = sorted(
        {
            name
            for package in run.packages.values()
            for name, resource in (package.get("resources") or {}).items()
            if resource.get("untold") and not name.startswith(facets.GENERATED)
        }
    )
    version = run.start.get("dlt")
    return (
        [f"dlt {version} does not tell where resources read from; 1.30 does: {', '.join(names)}"]
        if names
        else []
    )
