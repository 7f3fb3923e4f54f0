"""query.marquez.runs: rows of runs -> their models, with facets and the dataset versions they read and wrote."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.errors import NotFound
from headwater.facts import ref
from headwater.facts.versions import version_of
from headwater.query.marquez._words import dataset_version_uuid, is_uuid, job_version_uuid, state
from headwater.query.nodes import iso
from headwater.store import Store

if TYPE_CHECKING:
    from headwater.store import Facets, Reader, Told

LARGEST_LISTED = 16 << 10
"""In lists of jobs, a run's facet that is longer is left to the run's own calls: a Spark plan may have megabytes."""
_Datasets = dict[tuple[str, str, str], dict[str, msgspec.Raw]]
"""Namespace, name and version of datasets -> their facets."""
_Sides = dict[int, _Datasets]
_ENDED = ("COMPLETED", "ABORTED", "FAILED")


@dataclass(frozen=True, slots=True)
class Runs:
    """Models of runs, and for each (by its number) the version of its job that it shows."""

    models: dict[int, dict[str, Any]] = field(default_factory=dict)
    versions: dict[int, bytes] = field(default_factory=dict)


def raw(facets: Mapping[str, Told]) -> dict[str, msgspec.Raw]:
    """Facets as they were sent."""
    return {name: msgspec.Raw(told.body) for name, told in facets.items()}


def run_models(
    reader: Reader, rows: Sequence[dict[str, Any]], *, most: int | None = None, brief: bool = False
) -> Runs:
    """Models of runs, all of them in a few questions to the store.

    `brief` is for graphs: no facets of the run, and of what it read only what has facets of its own to show.
    """
    history, catalogue = reader.history(), reader.catalogue()
    numbers = [row["id"] for row in rows]
    io, io_facets = history.io(numbers), history.io_facets(numbers)
    facets: dict[int, Facets] = {} if brief else history.facets("run", numbers, most=most)
    jobs = catalogue.nodes("job", {row["job"] for row in rows if row["job"] is not None})
    datasets = {each.dataset for side in io.values() for each in side}
    leaders = catalogue.leaders(datasets)
    named = catalogue.nodes("dataset", {*leaders.values(), *datasets})
    reads = history.read_versions(
        [each for each in io["in"] if not brief or (each.run, "in", each.dataset) in io_facets]
    )
    args = catalogue.said("run", [row["run_id"] for row in rows])
    heads = {each: (named[leaders[each]]["namespace"], named[leaders[each]]["name"]) for each in datasets}
    run_ids = {row["id"]: row["run_id"] for row in rows}
    place = {dataset: at for at, dataset in enumerate(sorted(datasets, key=by_name(leaders, named)))}
    # a run that shows no version of its own has that of the names it told
    names: dict[int, tuple[list[str], list[str]]] = {}
    unsettled = {row["id"] for row in rows if row["io"] is None}
    sides: dict[str, _Sides] = {"in": {}, "out": {}}
    for position, (direction, found) in enumerate(sides.items()):
        for each in sorted(io[direction], key=lambda each: place[each.dataset]):
            if each.run in unsettled:
                spoken = named[each.dataset]
                names.setdefault(each.run, ([], []))[position].append(
                    ref(spoken["namespace"], spoken["name"])
                )
            own = io_facets.get((each.run, direction, each.dataset))
            if brief and direction == "in" and not own:
                continue
            head = heads[each.dataset]
            if direction == "out":
                version = dataset_version_uuid(*head, run_ids[each.run], None)
            else:
                write = reads.get((each.run, each.dataset))
                at = None if write is None else write.at
                version = dataset_version_uuid(*head, write and write.run_id, at)
            facets_of = found.setdefault(each.run, {}).setdefault((*head, version), {})
            if own:  # under several names it is one dataset: what its own name tells comes last, and wins
                facets_of.update(raw(own))
    out = Runs()
    for row in rows:
        number = row["id"]
        told = facets.get(number, {})
        shown = _state(row)
        if row["io"] is not None:
            out.versions[number] = bytes(row["io"])
        elif shown in _ENDED or number in names:
            out.versions[number] = version_of(*names.get(number, ((), ())))
        out.models[number] = {
            **_times(row, shown),
            "args": _args(told, args.get(row["run_id"], {})),
            "jobVersion": _job_version(jobs.get(row["job"]), out.versions.get(number)),
            "inputDatasetVersions": _versions(sides["in"].get(number, {})),
            "outputDatasetVersions": _versions(sides["out"].get(number, {})),
            "facets": raw(told),
        }
    return out


def by_name(
    leaders: Mapping[int, int], named: Mapping[int, Mapping[str, Any]]
) -> Callable[[int], tuple[bool, str, str]]:
    """The order in which datasets are told under several names: by name, the one that stands for all of them last."""

    def key(dataset: int) -> tuple[bool, str, str]:
        return dataset == leaders[dataset], named[dataset]["namespace"], named[dataset]["name"]

    return key


def _versions(found: _Datasets) -> list[dict[str, Any]]:
    return [
        {"datasetVersionId": {"namespace": namespace, "name": name, "version": version}, "facets": facets}
        for (namespace, name, version), facets in sorted(found.items(), key=lambda each: each[0])
    ]


def _state(row: Mapping[str, Any]) -> str:
    return state(row["state"])


def _times(row: Mapping[str, Any], shown: str) -> dict[str, Any]:
    started = row["started_at"]
    if started is None and shown != "NEW":
        started = row["first_seen"]  # nobody told when it began: not later than this
    ended = row["ended_at"]
    return {
        "id": row["run_id"],
        "createdAt": iso(row["first_seen"]),
        "updatedAt": iso(row["last_seen"]),
        "nominalStartTime": iso(row["nominal_start"]),
        "nominalEndTime": iso(row["nominal_end"]),
        "state": shown,
        "startedAt": iso(started),
        "endedAt": iso(ended),
        "durationMs": None if ended is None or started is None else max(0, ended - started) // 1000,
    }


def _args(facets: Mapping[str, Told], said: Mapping[tuple[str, str], tuple[int, str]]) -> dict[str, str]:
    """What the run was given: said by hand, or, as Marquez has it, its nominal time and its parent."""
    args: dict[str, str] = {}
    for name, fields in _ARGS:
        value: Any = facets[name].read() if name in facets else {}
        for path, key in fields:
            inner = value
            for step in path:
                inner = inner.get(step) if isinstance(inner, dict) else None
            if isinstance(inner, str):
                args[key] = inner
    args.update({name: told for (kind, name), (_, told) in said.items() if kind == "args"})
    return args


_ARGS: tuple[tuple[str, tuple[tuple[tuple[str, ...], str], ...]], ...] = (
    (
        "nominalTime",
        ((("nominalStartTime",), "nominal_start_time"), (("nominalEndTime",), "nominal_end_time")),
    ),
    (
        "parent",
        ((("run", "runId"), "run_id"), (("job", "name"), "name"), (("job", "namespace"), "namespace")),
    ),
)


def _job_version(job: Mapping[str, Any] | None, version: bytes | None) -> dict[str, str] | None:
    if job is None or version is None:
        return None
    return {
        "namespace": job["namespace"],
        "name": job["name"],
        "version": job_version_uuid(job["namespace"], job["name"], version),
    }


def run(store: Store, run_id: str) -> dict[str, Any]:
    """One run."""
    with store.read() as reader:
        row = find_run(reader, run_id)
        return run_models(reader, [row]).models[row["id"]]


def find_run(reader: Reader, run_id: str) -> dict[str, Any]:
    """The row of a run."""
    row = reader.history().run(run_id.lower()) if is_uuid(run_id) else None
    if row is None:
        raise NotFound(f"Run '{run_id}' not found.")
    return row


def run_facets(store: Store, run_id: str, kind: str) -> dict[str, Any] | None:
    """The facets of a run (`run`), or of its job (`job`); nothing for `dataset`, as Marquez answers."""
    with store.read() as reader:
        row = find_run(reader, run_id)
        if kind == "dataset":
            return None
        owner = row["id"] if kind == "run" else row["job"]
        found = reader.history().facets(kind, [owner]) if owner is not None else {}
        return {"runId": row["run_id"], "facets": raw(found.get(owner, {}))}
