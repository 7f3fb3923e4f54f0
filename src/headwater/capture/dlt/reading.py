"""capture.dlt.reading: what is known of a package's resources -> the datasets that each of them read.

A resource reads what it says it reads; a transformer without a source of its own reads what its parents read. A resource
that tells nothing stands for itself: its data came from code. dlt's own readers of files yield what stands in the files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from headwater.capture.dlt.places import inputs_of, output_of
from headwater.naming import Dataset

LOGICAL = "dlt"
"""The namespace of resources whose source nobody tells."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A dataset that a resource read."""

    dataset: Dataset
    resource: str
    """Who read it"""
    feeds: str
    """Whose tables it went into: the resource itself, or a transformer behind it"""
    direct: bool = True
    """Whether the items that were loaded are the ones that were read here"""
    rows: int | None = None
    bytes: int | None = None
    columns: tuple[str, ...] = ()
    cursor: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, Any] = field(default_factory=dict)
    model: bool = False


def inputs_of_package(
    package: Mapping[str, Any], where: Mapping[str, Any], dataset: str, namespace: str, naming: str
) -> list[Reading]:
    """What the resources of a package read, each with whom it feeds."""
    resources: Mapping[str, Any] = package.get("resources") or {}
    models: Mapping[str, Any] = package.get("models") or {}
    owners: Mapping[str, str] = package.get("tables") or {}
    found: list[Reading] = []
    for name, about in resources.items():
        feeds = name if "rows" in about else _sharer(name, about, resources, owners)
        if name.startswith("_dlt") or feeds is None:
            continue  # dlt's own, or one that only feeds others
        if naming == "dlt-openlineage":
            tables = [table for table, owner in owners.items() if owner == name] or [name]
            found += [_reading(Dataset(namespace, table), name, feeds, about) for table in tables]
            continue
        tables = [table for table, owner in owners.items() if owner == name and table in models]
        if tables:
            found += [
                Reading(_of_query(each, where, dataset), name, feeds, model=True)
                for table in tables
                for each in models[table]["tables"]
            ]
            continue
        own = [each for location in about["inputs"] for each in _located(location, name, feeds, about)]
        above = [] if own else list(_above(resources, namespace, name, feeds, {name}))
        if above and about.get("reader"):
            alone = about if len(above) == 1 else {}
            found += [
                replace(each, direct=True, rows=alone.get("rows"), bytes=alone.get("bytes")) for each in above
            ]
            continue
        found += own or [_reading(_logical(namespace, name), name, feeds, about)]
        found += above
    return found


def _sharer(
    name: str, about: Mapping[str, Any], resources: Mapping[str, Any], owners: Mapping[str, str]
) -> str | None:
    """The resource that is counted for a table which this one loads too."""
    owner = owners.get(str(about.get("shares")))
    return owner if owner is not None and owner != name and "rows" in resources.get(owner, {}) else None


def _above(
    resources: Mapping[str, Any], namespace: str, name: str, feeds: str, seen: set[str]
) -> Iterator[Reading]:
    """What the nearest parents with a source of their own read; one without any stands for itself."""
    for parent in resources[name]["parents"]:
        if parent in seen or parent not in resources:
            continue
        seen.add(parent)
        about = resources[parent]
        found = [
            Reading(each.dataset, parent, feeds, direct=False, files=each.files)
            for location in about["inputs"]
            for each in _located(location, parent, feeds, about)
        ]
        found = found or list(_above(resources, namespace, parent, feeds, seen))
        yield from found or [Reading(_logical(namespace, parent), parent, feeds, direct=False)]


def _located(
    location: Mapping[str, Any], name: str, feeds: str, about: Mapping[str, Any]
) -> Iterator[Reading]:
    files = {}
    if location.get("kind") == "filesystem" and location.get("glob"):
        files = {"glob": location["glob"]}
    named = inputs_of(location)
    for dataset in named:
        made = _reading(
            dataset, name, feeds, about, files, alone=len(named) == 1 and len(about["inputs"]) == 1
        )
        yield made


def _reading(
    dataset: Dataset,
    name: str,
    feeds: str,
    about: Mapping[str, Any],
    files: Mapping[str, Any] | None = None,
    *,
    alone: bool = True,
) -> Reading:
    cursor = (about.get("hints") or {}).get("incremental")
    return Reading(
        dataset,
        name,
        feeds,
        rows=about.get("rows") if alone else None,
        bytes=about.get("bytes") if alone else None,
        columns=tuple(about.get("columns") or ()),
        cursor={key: value for key, value in cursor.items() if value is not None} if isinstance(cursor, Mapping) else {},
        files=files or {},
    )  # fmt: skip


def _logical(namespace: str, resource: str) -> Dataset:
    return Dataset(LOGICAL, f"{namespace}/{resource}")


def _of_query(table: str, where: Mapping[str, Any], dataset: str) -> Dataset:
    """A table that a model reads stands in the destination itself."""
    parts = table.split(".")
    return output_of(where, parts[-2] if len(parts) > 1 else dataset, parts[-1])
