"""serve.marquez.datasets: /namespaces/{ns}/datasets -> datasets and their versions; PUT and DELETE -> commands."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from litestar import Request, delete, get, put
from litestar.datastructures import State
from litestar.params import JSONBody, PathParameter

from headwater.facts.commands import Hide
from headwater.facts.definitions import DefineDataset, DefineField
from headwater.query.marquez import datasets, lists
from headwater.query.marquez.nodes import require_namespace
from headwater.query.marquez.runs import find_run
from headwater.serve.auth import who
from headwater.serve.marquez import _asking as ask

_PATH = f"{ask.BASE}/namespaces/{{namespace:str}}/datasets"
Version = Annotated[str, PathParameter(description="A version's UUID.")]


class FieldBody(msgspec.Struct):
    """A field of a dataset."""

    name: ask.Short
    type: ask.Text | None = None
    tags: list[ask.Short] | None = None
    description: ask.Text | None = None


class DatasetBody(msgspec.Struct, rename="camel"):
    """What is said of a dataset."""

    type: Literal["DB_TABLE", "STREAM"]
    physical_name: ask.Name
    source_name: ask.Name
    fields: list[FieldBody] | None = None
    tags: list[ask.Short] | None = None
    description: ask.Text | None = None
    schema_location: ask.Text | None = None
    run_id: str | None = None


@get(_PATH, sync_to_thread=True, scope="read", responses=ask.responses(404))
def get_datasets(
    state: State, namespace: ask.NamespaceName, limit: ask.Limit = 100, offset: ask.Offset = 0
) -> dict[str, Any]:
    """The datasets of a namespace by name, each with its facets."""
    return datasets.dataset_page(state.store, namespace, ask.page(limit), offset)


@get(f"{_PATH}/{{name:str}}", sync_to_thread=True, scope="read", responses=ask.responses(404))
def get_dataset(state: State, namespace: ask.NamespaceName, name: ask.ThingName) -> dict[str, Any]:
    """One dataset, by any of its names."""
    return datasets.dataset(state.store, namespace, name)


@get(f"{_PATH}/{{name:str}}/versions", sync_to_thread=True, scope="read", responses=ask.responses(404))
def get_versions(
    state: State,
    namespace: ask.NamespaceName,
    name: ask.ThingName,
    limit: ask.Limit = 100,
    offset: ask.Offset = 0,
) -> dict[str, Any]:
    """The versions of a dataset, the newest first."""
    return datasets.dataset_versions(state.store, namespace, name, ask.page(limit), offset)


@get(
    f"{_PATH}/{{name:str}}/versions/{{version:str}}",
    sync_to_thread=True,
    scope="read",
    responses=ask.responses(404),
)
def get_version(
    state: State, namespace: ask.NamespaceName, name: ask.ThingName, version: Version
) -> dict[str, Any]:
    """One version of a dataset."""
    return datasets.dataset_version(state.store, namespace, name, version)


@put(
    f"{_PATH}/{{name:str}}",
    sync_to_thread=True,
    scope="ingest",
    responses=ask.responses(404),
    request_max_body_size=8 << 20,
)
def put_dataset(
    request: Request[Any, Any, State],
    state: State,
    namespace: ask.NamespaceName,
    name: ask.ThingName,
    data: JSONBody[DatasetBody],
) -> dict[str, Any]:
    """Define a dataset; its namespace, its source and the run that wrote it must be there."""
    ask.name_of("a dataset's name", name)
    lists.source(state.store, data.source_name)
    job = run_id = None
    with state.store.read() as reader:
        require_namespace(reader, namespace)
        hidden, _, _ = reader.catalogue().hidden_at("dataset", namespace, name)
        if data.run_id is not None:
            row = find_run(reader, data.run_id)
            run_id = row["run_id"]
            of = reader.catalogue().nodes("job", [row["job"]] if row["job"] is not None else [])
            job = next(((each["namespace"], each["name"]) for each in of.values()), None)
    said = DefineDataset(
        at=ask.now(),
        by=who(request),
        namespace=namespace,
        name=name,
        type=data.type,
        source=data.source_name,
        physical_name=data.physical_name,
        schema_location=data.schema_location or "",
        description=data.description,
        fields=tuple(
            DefineField(
                each.name, each.type or "", each.description, tuple(tag.upper() for tag in each.tags or ())
            )
            for each in data.fields or ()
        ),
        tags=tuple(data.tags or ()),
        run_id=run_id,
        job=job,
        shown_at=None if hidden is None else hidden + 1,
    )
    ask.tell(state.store, said)
    return datasets.dataset(state.store, namespace, name)


@delete(
    f"{_PATH}/{{name:str}}", status_code=200, sync_to_thread=True, scope="admin", responses=ask.responses(404)
)
def delete_dataset(
    request: Request[Any, Any, State], state: State, namespace: ask.NamespaceName, name: ask.ThingName
) -> dict[str, Any]:
    """Hide a dataset until an event names it again."""
    model = datasets.dataset(state.store, namespace, name)
    identity = model["id"]
    with state.store.read() as reader:
        _, shown, last = reader.catalogue().hidden_at("dataset", **identity)
    ask.tell(
        state.store,
        Hide(at=ask.now(), by=who(request), kind="dataset", after=max(shown or 0, last or 0), **identity),
    )
    return model


READS = [get_datasets, get_dataset, get_versions, get_version]
WRITES = [put_dataset, delete_dataset]
