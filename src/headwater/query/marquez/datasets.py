"""query.marquez.datasets: rows of datasets -> their models; a dataset -> its versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.errors import NotFound
from headwater.facts import ref
from headwater.query.marquez._words import dataset_type, dataset_version_uuid, schema_uuid
from headwater.query.marquez.nodes import find_dataset, require_namespace
from headwater.query.marquez.runs import by_name, raw, run_models
from headwater.query.nodes import iso
from headwater.store import Store

if TYPE_CHECKING:
    from headwater.store import Facets, Reader, Told, Write

DEFAULT_SOURCE = "default"
_Said = dict[tuple[str, str], tuple[int, str]]
_PART = 1_000


def dataset(store: Store, namespace: str, name: str) -> dict[str, Any]:
    """One dataset."""
    with store.read() as reader:
        number = find_dataset(reader, namespace, name)
        return dataset_models(reader, reader.catalogue().nodes("dataset", [number]))[number]


def dataset_page(store: Store, namespace: str | None, limit: int, offset: int) -> dict[str, Any]:
    """The datasets of a namespace, or of all."""
    with store.read() as reader:
        if namespace is not None:
            require_namespace(reader, namespace)
        rows, total = reader.catalogue().page("dataset", namespace, limit, offset)
        models = dataset_models(reader, {row["id"]: row for row in rows})
        return {"datasets": list(models.values()), "totalCount": total}


def dataset_models(
    reader: Reader, rows: Mapping[int, dict[str, Any]], *, brief: bool = False
) -> dict[int, dict[str, Any]]:
    """Models of datasets, all of them in a few questions to the store; `brief`, for graphs, without facets."""
    history, catalogue = reader.history(), reader.catalogue()
    heads = catalogue.members(rows)
    current = {} if brief else history.current(heads)
    # of a graph's dataset only the schema's descriptions and the documentation are wanted
    facets = history.facets("dataset", heads, heads=heads, most=_BRIEF if brief else None)
    checks = {} if brief else history.input_facets(heads)
    latest = history.schemas(heads)
    schemas = {number: _schema(current.get(number), latest.get(number)) for number in rows}
    bodies = history.contents({digest for digest in schemas.values() if digest is not None})
    words = _Words(reader, rows, heads)
    models: dict[int, dict[str, Any]] = {}
    for number, row in rows.items():
        told = facets.get(number, {})
        said, tags = words.said.get(number, {}), words.tags.get(number, [])
        model = _head(row, told, said)
        write = current.get(number)
        digest = schemas[number]
        modified = None if write is None or write.run is None else iso(write.until)
        body = bodies.get(digest) if digest is not None else None
        model.update(
            createdAt=iso(row["first_seen"]),
            updatedAt=iso(_updated(row, said)),
            fields=_fields(body, told.get("schema"), said, tags),
            tags=[tag for field, tag in tags if not field],
            lastModifiedAt=modified,
            lastLifecycleState=row["lifecycle"] or "",
        )
        if not brief:
            model.update(
                currentVersion=_version(row, write),
                columnLineage=_column_lineage(told.get("columnLineage")),
                facets=raw({**told, **checks.get(number, {})}),
                deleted=(row["lifecycle"] or "").upper() == "DROP",
            )
        models[number] = model
    return models


_BRIEF = 64 << 10


class _Words:
    """What people said of datasets and how they are tagged, under all names of each."""

    def __init__(self, reader: Reader, rows: Mapping[int, dict[str, Any]], heads: Mapping[int, int]) -> None:
        catalogue = reader.catalogue()
        others = catalogue.nodes("dataset", [number for number in heads if number not in rows])
        owners = {
            ref(row["namespace"], row["name"]): heads[number] for number, row in ({**others, **rows}).items()
        }
        self.said: dict[int, _Said] = {}
        for owner, words in catalogue.said("dataset", owners).items():
            mine = self.said.setdefault(owners[owner], {})
            for key, word in words.items():
                mine[key] = max(word, mine.get(key, word))
        found: dict[int, set[tuple[str, str]]] = {}
        for owner, tags in catalogue.tags("dataset", owners).items():
            found.setdefault(owners[owner], set()).update(tags)
        self.tags = {number: sorted(tags) for number, tags in found.items()}


def _head(row: Mapping[str, Any], told: Mapping[str, Told], said: _Said) -> dict[str, Any]:
    kind = said["", "type"][1] if ("", "type") in said else dataset_type(row["kind"], row["namespace"])
    model = {
        "id": {"namespace": row["namespace"], "name": row["name"]},
        "type": kind,
        "name": row["name"],
        "physicalName": said.get(("", "physicalName"), (0, row["name"]))[1],
        "namespace": row["namespace"],
        "sourceName": row["source"] or said.get(("", "sourceName"), (0, DEFAULT_SOURCE))[1],
        "description": describe(told, said),
    }
    if kind == "STREAM":
        model["schemaLocation"] = said.get(("", "schemaLocation"), (0, None))[1]
    return model


def describe(told: Mapping[str, Told], said: _Said) -> str | None:
    """A description: what people said, else what the documentation facet says."""
    if ("", "description") in said:
        return said["", "description"][1]
    text = told["documentation"].read().get("description") if "documentation" in told else None
    return text if isinstance(text, str) else None


def _updated(row: Mapping[str, Any], said: _Said) -> int | None:
    times = [
        each
        for each in (row["last_seen"], row["first_seen"], *(at for at, _ in said.values()))
        if each is not None
    ]
    return max(times, default=None)


def _schema(write: Write | None, latest: bytes | None) -> bytes | None:
    return bytes(write.schema) if write is not None and write.schema is not None else latest


def _version(row: Mapping[str, Any], write: Write | None) -> str:
    run_id, at = (None, None) if write is None else (write.run_id, write.at)
    return dataset_version_uuid(row["namespace"], row["name"], run_id, at)


def _fields(
    schema: bytes | None, facet: Told | None, said: _Said, tags: list[tuple[str, str]]
) -> list[dict[str, Any]]:
    if schema is None:
        return []
    told: dict[str, Any] = {}
    listed = facet.read().get("fields") if facet is not None else None
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict) and isinstance(each.get("name"), str):
            told[each["name"]] = each.get("description")
    return [
        {
            "name": each["name"],
            "type": each["type"] or None,
            "tags": [tag for field, tag in tags if field == each["name"]],
            "description": said[each["name"], "description"][1]
            if (each["name"], "description") in said
            else told.get(each["name"]),
        }
        for each in msgspec.json.decode(schema)
    ]


def _column_lineage(facet: Told | None) -> list[dict[str, Any]] | None:
    fields = facet.read().get("fields") if facet is not None else None
    if not isinstance(fields, dict):
        return None
    found = []
    for name, told in fields.items():
        if not isinstance(told, dict):
            continue
        kind, description = _how(told)
        inputs = []
        for source in told.get("inputFields") or ():
            if isinstance(source, dict):
                own_kind, own_description = _how(source)
                inputs.append(
                    {
                        "namespace": source.get("namespace"),
                        "dataset": source.get("name"),
                        "field": source.get("field"),
                        "transformationDescription": own_description or description,
                        "transformationType": own_kind or kind,
                    }
                )
        first = inputs[0] if inputs else {}
        found.append(
            {
                "name": name,
                "inputFields": inputs,
                "transformationDescription": description or first.get("transformationDescription"),
                "transformationType": kind or first.get("transformationType"),
            }
        )
    return found


def _how(told: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """The old form, one word and one sentence; else the first of the new form's transformations."""
    kind, description = told.get("transformationType"), told.get("transformationDescription")
    steps = told.get("transformations")
    first = steps[0] if isinstance(steps, list) and steps and isinstance(steps[0], dict) else {}
    return kind or first.get("subtype") or first.get("type"), description or first.get("description")


def dataset_versions(store: Store, namespace: str, name: str, limit: int, offset: int) -> dict[str, Any]:
    """The versions of a dataset, the newest first."""
    with store.read() as reader:
        number = find_dataset(reader, namespace, name)
        heads = reader.catalogue().members([number])
        writes, total = reader.history().writes(heads, limit, offset)
        if not total:
            first = _first(reader, number)
            return {
                "versions": _versions(reader, number, [first] if limit and not offset else []),
                "totalCount": 1,
            }
        return {"versions": _versions(reader, number, writes), "totalCount": total}


def dataset_version(store: Store, namespace: str, name: str, version: str) -> dict[str, Any]:
    """One version of a dataset."""
    with store.read() as reader:
        number = find_dataset(reader, namespace, name)
        return _versions(reader, number, [find_version(reader, number, version)])[0]


def find_version(reader: Reader, number: int, version: str) -> Write:
    """The write that a version's id stands for."""
    row = reader.catalogue().nodes("dataset", [number])[number]
    heads = reader.catalogue().members([number])
    offset = 0
    while True:
        writes, total = reader.history().writes(heads, _PART, offset)
        for write in writes if total else [_first(reader, number)]:
            if _version(row, write) == version.lower():
                return write
        offset += _PART
        if offset >= total:
            raise NotFound(f"Dataset version '{version}' not found.")


def _first(reader: Reader, number: int) -> Write:
    """Nobody wrote it or told of it by itself: the one version is that it was seen."""
    row = reader.catalogue().nodes("dataset", [number])[number]
    latest = reader.history().schemas(reader.catalogue().members([number]))
    write: Write = reader.history().seen(number, row["first_seen"], latest.get(number), row["last_seen"])
    return write


def _versions(reader: Reader, number: int, writes: list[Write]) -> list[dict[str, Any]]:
    history = reader.history()
    row = reader.catalogue().nodes("dataset", [number])[number]
    heads = reader.catalogue().members([number])
    words = _Words(reader, {number: row}, heads)
    said, tags = words.said.get(number, {}), words.tags.get(number, [])
    runs = history.runs({write.run for write in writes if write.run is not None})
    models = run_models(reader, list(runs.values())).models
    facets: dict[int, Facets] = history.facets_until(heads, {write.until for write in writes})
    written = history.io_facets(runs)
    names = sorted(heads, key=by_name(heads, reader.catalogue().nodes("dataset", heads)))
    latest = history.schemas(heads).get(number)
    schemas = {write: _schema(write, latest) for write in writes}
    bodies = history.contents({digest for digest in schemas.values() if digest is not None})
    found = []
    for write in writes:
        told, digest = facets.get(write.until, {}), schemas[write]
        own: Facets = {}
        if write.run is not None:
            for spoken in names:
                own |= written.get((write.run, "out", spoken), {})
        body = bodies.get(digest) if digest is not None else None
        found.append(
            {
                **_head(row, told, said),
                "createdAt": iso(write.at),
                "version": _version(row, write),
                "fields": _fields(body, told.get("schema"), said, tags),
                "tags": [tag for field, tag in tags if not field],
                "lifecycleState": write.lifecycle or "",
                "createdByRun": models.get(write.run) if write.run is not None else None,
                "currentSchemaVersion": schema_uuid(digest),
                "facets": raw({**told, **own}),
            }
        )
    return found
