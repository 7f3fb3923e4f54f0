"""capture.dlt.outputs: what a load wrote, and what is known of its packages -> the outputs of an event."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from headwater.capture.dlt import facets
from headwater.capture.dlt.columns import column_lineage, table_facet
from headwater.capture.dlt.facets import facet
from headwater.capture.dlt.places import output_of, seed_name
from headwater.capture.dlt.reading import Reading, inputs_of_package
from headwater.naming import Dataset, Symlink

Record = Mapping[str, Any]


def outputs_of(
    load: Record, packages: Mapping[str, Mapping[str, Any]], namespace: str, naming: str
) -> Iterable[dict[str, Any]]:
    """Every table that a load wrote or dropped; nothing that it did not."""
    for load_id, package in load["packages"].items():
        load = {**load, "where": {**load["where"], "schema_name": package["schema"]}}  # a layout may hold it
        known = packages.get(load_id, {})
        readings = inputs_of_package(known, load["where"], load["dataset"], namespace, naming)
        for table in package["tables"]:
            if table.startswith(facets.GENERATED) or not _written(package, table):
                continue
            yield _output(naming, load, load_id, package, known, readings, table)
        for table in package["dropped"]:
            if table not in package["completed"] and not table.startswith(facets.GENERATED):
                dataset = _named(naming, load, table)
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
    naming: str,
    load: Record,
    load_id: str,
    package: Mapping[str, Any],
    known: Mapping[str, Any],
    readings: list[Reading],
    table: str,
) -> dict[str, Any]:
    described = package["tables"][table]
    root = _root(package["tables"], table)
    # as it was when the package was extracted: another resource may have loaded the table since
    resource = (known.get("tables") or {}).get(root) or package["tables"][root].get("resource") or root
    own = [each for each in readings if each.feeds == resource]
    dataset = _named(naming, load, table)
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


def _named(naming: str, load: Record, table: str) -> Dataset:
    theirs = seed_name(load["where"], load["dataset"], table)
    if naming == "dlt-openlineage":
        return Dataset(theirs.namespace, theirs.name)
    found = output_of(load["where"], load["dataset"], table)
    if theirs.identity == found.identity:
        return found
    return Dataset(found.namespace, found.name, (Symlink(theirs.namespace, theirs.name, "FORMER"),))


def merged(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One entry a dataset: several packages may load one table, and each knows of its own items."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for each in outputs:
        key = (each["namespace"], each["name"])
        found[key] = _joined(found[key], each) if key in found else each
    return list(found.values())


def _joined(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    facets = {**first["facets"], **second["facets"]}
    for name, join in (
        ("columnLineage", _columns),
        ("lineage", _sources),
        ("dlt_table", _tables),
        ("lifecycleStateChange", lambda one, _: one),  # what came first: it was made, then filled once more
    ):
        if name in first["facets"] and name in second["facets"]:
            facets[name] = join(first["facets"][name], second["facets"][name])
    made = {**first, "facets": facets}
    if counted := _statistics(first, second):
        made["outputFacets"] = {"outputStatistics": counted}
    return made


def _columns(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    fields = dict(one["fields"])
    for column, told in other["fields"].items():
        known = fields.get(column, {"inputFields": []})["inputFields"]
        there = {(each["namespace"], each["name"], each["field"]) for each in known}
        new = [
            each
            for each in told["inputFields"]
            if (each["namespace"], each["name"], each["field"]) not in there
        ]
        fields[column] = {"inputFields": [*known, *new]}
    return {**other, "fields": fields}


def _sources(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **other,
        "inputs": [*one["inputs"], *(each for each in other["inputs"] if each not in one["inputs"])],
    }


def _tables(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """A column is of unknown source where no package knows it."""
    told = {**one, **other}
    for name in ("new_columns", "columns_of_unknown_source"):
        mine, theirs = one.get(name, []), other.get(name, [])
        both = [each for each in mine if each in theirs] if name.endswith("source") else [*mine, *theirs]
        told[name] = both
    if not told["columns_of_unknown_source"]:
        told.pop("why", None)
    return {name: value for name, value in told.items() if value != []}


def _statistics(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    mine = dict((one.get("outputFacets") or {}).get("outputStatistics") or {})
    for name, value in ((other.get("outputFacets") or {}).get("outputStatistics") or {}).items():
        mine[name] = mine.get(name, 0) + value if isinstance(value, int) else value
    return mine
