"""query.marquez.jobs: rows of jobs -> their models; a job -> its versions and its runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headwater.errors import NotFound
from headwater.facts import ref
from headwater.facts.contents import facet_of
from headwater.facts.versions import version_of
from headwater.query.marquez._words import STORED, job_type, job_uuid, job_version_uuid, state
from headwater.query.marquez.datasets import describe
from headwater.query.marquez.nodes import find_job, require_namespace
from headwater.query.marquez.runs import LARGEST_LISTED, Runs, raw, run_models
from headwater.query.nodes import iso
from headwater.store import Store

if TYPE_CHECKING:
    from headwater.store import Facets, Reader, Told

LATEST = 10
"""How many runs a job shows."""
_UNSETTLED = 200
_Said = dict[tuple[str, str], tuple[int, str]]


def job(store: Store, namespace: str, name: str) -> dict[str, Any]:
    """One job."""
    with store.read() as reader:
        return job_model(reader, find_job(reader, namespace, name))


def job_model(reader: Reader, number: int) -> dict[str, Any]:
    """One job by its number, hidden or not."""
    return job_models(reader, reader.catalogue().nodes("job", [number]))[number]


def job_page(
    store: Store, namespace: str | None, states: Collection[str], limit: int, offset: int
) -> dict[str, Any]:
    """Jobs, the newest first; with `states`, those whose last run is in one of them."""
    wanted = [stored for stored in STORED if state(stored) in states]
    with store.read() as reader:
        if namespace is not None:
            require_namespace(reader, namespace)
        rows, total = reader.catalogue().page("job", namespace, limit, offset, wanted)
        models = job_models(reader, {row["id"]: row for row in rows}, most=LARGEST_LISTED)
        return {"jobs": list(models.values()), "totalCount": total}


def job_models(
    reader: Reader, rows: Mapping[int, dict[str, Any]], *, most: int | None = None
) -> dict[int, dict[str, Any]]:
    """Models of jobs, all of them in a few questions to the store."""
    about = About(reader, rows)
    latest = reader.history().latest(rows, LATEST)
    runs = run_models(reader, [row for found in latest.values() for row in found], most=most)
    declared = _declared(reader, [number for number in rows if number not in latest])
    models: dict[int, dict[str, Any]] = {}
    for number, row in rows.items():
        mine = latest.get(number, [])
        model = about.model(number)
        version = _current(mine, runs)
        if version is None:
            version = declared.get(number)
        shown = [runs.models[each["id"]] for each in mine]
        model.update(
            latestRun=shown[0] if shown else None,
            latestRuns=shown or None,
            facets=raw(about.facets.get(number, {})),
            currentVersion=None
            if version is None
            else job_version_uuid(row["namespace"], row["name"], version),
            labels=[each for each in (row["kind"], row["integration"]) if each is not None],
            tags=about.tags.get(number, []),
        )
        models[number] = model
    return models


def _current(rows: list[dict[str, Any]], runs: Runs) -> bytes | None:
    """The version of the newest run that completed and named datasets; else of the newest that shows any."""
    settled = [row["id"] for row in rows if row["io"] is not None]
    every = [row["id"] for row in rows if row["id"] in runs.versions]
    return runs.versions[(settled or every)[0]] if every else None


def _declared(reader: Reader, jobs: Collection[int]) -> dict[int, bytes]:
    """The versions that job events told last, of jobs that never ran."""
    found: dict[int, bytes] = {}
    for number in jobs:
        told = reader.history().declared(number)
        if told:
            found[number] = _version_at(reader, told[max(told)])
    return found


def _version_at(reader: Reader, io: Mapping[str, list[int]]) -> bytes:
    names = reader.catalogue().nodes("dataset", {*io["in"], *io["out"]})
    return version_of(
        *([ref(names[each]["namespace"], names[each]["name"]) for each in io[side]] for side in ("in", "out"))
    )


class About:
    """What is true of jobs whatever runs they had: names, edges, facets, tags."""

    def __init__(self, reader: Reader, rows: Mapping[int, dict[str, Any]], *, brief: bool = False) -> None:
        catalogue = reader.catalogue()
        self.rows = rows
        self.edges = _Edges(reader, rows)
        self.facets: dict[int, Facets] = reader.history().facets(
            "job", rows, most=64 << 10 if brief else None
        )
        self._parents = catalogue.nodes(
            "job", {row["parent"] for row in rows.values() if row["parent"] is not None}
        )
        owners = {ref(row["namespace"], row["name"]): number for number, row in rows.items()}
        self.said: dict[int, _Said] = {
            owners[owner]: words for owner, words in catalogue.said("job", owners).items()
        }
        self.tags = {
            owners[owner]: [tag for _, tag in tags] for owner, tags in catalogue.tags("job", owners).items()
        }
        silent = [number for number in rows if "sourceCodeLocation" not in self.facets.get(number, {})]
        self._children = catalogue.child_locations(silent) if silent else {}
        self._bodies = reader.history().contents(set(self._children.values()))

    def model(self, number: int) -> dict[str, Any]:
        """What a graph's node and a list's entry have in common."""
        row, told, said = self.rows[number], self.facets.get(number, {}), self.said.get(number, {})
        parent = self._parents.get(row["parent"])
        name = row["name"]
        prefix = f"{parent['name']}." if parent is not None else ""
        times = [
            each
            for each in (row["last_seen"], row["first_seen"], *(at for at, _ in said.values()))
            if each is not None
        ]
        return {
            "id": {"namespace": row["namespace"], "name": name},
            "type": job_type(
                said["", "type"][1]
                if ("", "type") in said and row["processing"] is None
                else row["processing"]
            ),
            "name": name,
            "simpleName": name.removeprefix(prefix) or name,
            "parentJobName": None if parent is None else parent["name"],
            "parentJobUuid": None if parent is None else job_uuid(parent["namespace"], parent["name"]),
            "createdAt": iso(row["first_seen"]),
            "updatedAt": iso(max(times, default=None)),
            "namespace": row["namespace"],
            "inputs": self.edges.names("in", number),
            "outputs": self.edges.names("out", number),
            "location": self._location(number, told, said),
            "description": describe(told, said),
        }

    def _location(self, number: int, told: Mapping[str, Told], said: _Said) -> str | None:
        """Where its code stands: said by hand, or told; of a parent that tells none, where its last child's does."""
        if ("", "location") in said:
            return said["", "location"][1]
        facet: dict[str, Any] = {}
        if "sourceCodeLocation" in told:
            facet = told["sourceCodeLocation"].read()
        elif number in self._children:
            digest = self._children[number]
            facet = facet_of(digest, self._bodies[digest])
        url = facet.get("url")
        return url if isinstance(url, str) else None


@dataclass(slots=True)
class _Edges:
    """What jobs read and write now."""

    reader: Reader
    jobs: Collection[int]
    flows: dict[str, dict[int, list[int]]] = field(default_factory=dict)
    named: dict[int, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        edges = self.reader.edges()
        for direction in ("in", "out"):
            mine = self.flows[direction] = {}
            for flow in edges.datasets_of(self.jobs, direction, hidden=True):
                mine.setdefault(flow.job, []).append(flow.dataset)
        every = {each for mine in self.flows.values() for found in mine.values() for each in found}
        self.named = self.reader.catalogue().nodes("dataset", every)

    def names(self, direction: str, number: int) -> list[dict[str, str]]:
        """The names of what a job reads or writes."""
        return name_list([self.named[each] for each in set(self.flows[direction].get(number, ()))])


def name_list(rows: Collection[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Namespaces and names, sorted."""
    pairs = sorted((row["namespace"], row["name"]) for row in rows)
    return [{"namespace": namespace, "name": name} for namespace, name in pairs]


def job_runs(store: Store, namespace: str, name: str, limit: int, offset: int) -> dict[str, Any]:
    """A job's runs, the newest first."""
    with store.read() as reader:
        require_namespace(reader, namespace)
        rows, total = reader.history().page(find_job(reader, namespace, name), limit, offset)
        models = run_models(reader, rows).models
        return {"runs": [models[row["id"]] for row in rows], "totalCount": total}


def job_versions(store: Store, namespace: str, name: str, limit: int, offset: int) -> dict[str, Any]:
    """A job's versions, the newest first."""
    with store.read() as reader:
        found = _Versions(reader, find_job(reader, namespace, name))
        page = found.order[offset : offset + limit]
        return {"versions": found.models(page), "totalCount": len(found.order)}


def job_version(store: Store, namespace: str, name: str, version: str) -> dict[str, Any]:
    """One version of a job."""
    with store.read() as reader:
        number = find_job(reader, namespace, name)
        row = reader.catalogue().nodes("job", [number])[number]
        found = _Versions(reader, number)
        for digest in found.order:
            if job_version_uuid(row["namespace"], row["name"], digest) == version.lower():
                return found.models([digest])[0]
        raise NotFound(f"Job version '{version}' not found.")


class _Versions:
    """Every set of inputs and outputs that a job's runs showed, or that a job event told."""

    def __init__(self, reader: Reader, number: int) -> None:
        self._reader, self._number = reader, number
        history = reader.history()
        seen: dict[bytes, tuple[int, int]] = {
            bytes(digest): (first, last) for digest, first, last, _ in history.shown(number)
        }
        self._runs: dict[bytes, dict[str, Any]] = {}
        rows = history.unsettled(number, _UNSETTLED)
        versions = run_models(reader, rows, brief=True).versions
        for row in rows:
            digest = versions.get(row["id"])
            if digest is not None:
                first, last = seen.get(digest, (row["first_seen"], row["last_seen"]))
                seen[digest] = (min(first, row["first_seen"]), max(last, row["last_seen"]))
                self._runs.setdefault(digest, row)
        self._told: dict[bytes, dict[str, list[int]]] = {}
        for at, io in history.declared(number).items():
            digest = _version_at(reader, io)
            first, last = seen.get(digest, (at, at))
            seen[digest] = (min(first, at), max(last, at))
            self._told[digest] = io
        self._seen = seen
        self.order = sorted(seen, key=lambda digest: (seen[digest][1], digest), reverse=True)

    def models(self, versions: list[bytes]) -> list[dict[str, Any]]:
        """The models of these versions."""
        history, catalogue = self._reader.history(), self._reader.catalogue()
        row = catalogue.nodes("job", [self._number])[self._number]
        about = About(self._reader, {self._number: row})
        shown = {
            digest: history.showing(self._number, digest) or self._runs.get(digest) for digest in versions
        }
        runs = run_models(self._reader, [each for each in shown.values() if each is not None]).models
        job_facets = raw(about.facets.get(self._number, {}))
        found = []
        for digest in versions:
            newest = shown[digest]
            io = self._told.get(digest) or _io(history.io([newest["id"]] if newest else []))
            leaders = catalogue.leaders({*io["in"], *io["out"]})
            named = catalogue.nodes("dataset", set(leaders.values()))
            version = job_version_uuid(row["namespace"], row["name"], digest)
            model = None if newest is None else dict(runs[newest["id"]])
            if model is not None:
                model["facets"] = {**job_facets, **model["facets"]}  # Marquez puts the job's here
            found.append(
                {
                    "id": {"namespace": row["namespace"], "name": row["name"], "version": version},
                    "name": row["name"],
                    "namespace": row["namespace"],
                    "version": version,
                    "createdAt": iso(self._seen[digest][0]),
                    "location": about.model(self._number)["location"],
                    "inputs": name_list([named[each] for each in {leaders[x] for x in io["in"]}]),
                    "outputs": name_list([named[each] for each in {leaders[x] for x in io["out"]}]),
                    "latestRun": model,
                }
            )
        return found


def _io(io: Mapping[str, list[Any]]) -> dict[str, list[int]]:
    return {side: [each.dataset for each in found] for side, found in io.items()}
