"""serve.marquez.tags: /tags -> the tags there are; tags put on jobs, datasets and fields, or taken off -> commands."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import Request, delete, get, post, put
from litestar.datastructures import State
from litestar.params import JSONBody, PathParameter

from headwater.errors import NotFound
from headwater.facts.commands import Command, Say, SetTag
from headwater.facts.definitions import Name
from headwater.query.edits import said_elsewhere
from headwater.query.marquez import lists
from headwater.query.marquez.datasets import dataset
from headwater.query.marquez.jobs import job
from headwater.query.marquez.nodes import find_dataset
from headwater.serve.auth import who
from headwater.serve.marquez import _asking as ask

TagName = Annotated[str, PathParameter(description="A tag.")]
FieldName = Annotated[str, PathParameter(description="A field of the dataset; `/` and `:` percent-encoded.")]
_LONGEST = 255
_DATASET = f"{ask.BASE}/namespaces/{{namespace:str}}/datasets/{{name:str}}"
_JOB = f"{ask.BASE}/namespaces/{{namespace:str}}/jobs/{{name:str}}"


class TagBody(msgspec.Struct):
    """What a tag means."""

    description: ask.Text | None = None


@get(f"{ask.BASE}/tags", sync_to_thread=True, scope="read", responses=ask.responses())
def get_tags(state: State, limit: ask.Limit = 100, offset: ask.Offset = 0) -> dict[str, Any]:
    """Tags by name."""
    return lists.tag_page(state.store, ask.page(limit), offset)


@put(
    f"{ask.BASE}/tags/{{tag:str}}",
    sync_to_thread=True,
    scope="ingest",
    responses=ask.responses(),
    request_max_body_size=1 << 20,
)
def put_tag(
    request: Request[Any, Any, State], state: State, tag: TagName, data: JSONBody[TagBody | None] = None
) -> dict[str, Any]:
    """Say what a tag means."""
    name = ask.name_of("a tag", tag, _LONGEST)
    at, by = ask.now(), who(request)
    said: list[Command] = [Name(at=at, by=by, kind="tag", name=name)]
    if data is not None and data.description is not None:
        said.append(Say(at=at, by=by, kind="tag", name=name, values={"description": data.description}))
    ask.tell(state.store, *said)
    return lists.tag(state.store, name)


def _set(
    request: Request[Any, Any, State], kind: str, model: dict[str, Any], tag: str, live: bool, field: str = ""
) -> None:
    """Put a tag on, or take it off. Marquez writes a field's tags in capitals."""
    name = ask.name_of("a tag", tag.upper() if field else tag, _LONGEST)
    store, at, by = request.app.state.store, ask.now(), who(request)
    own = (model["id"]["namespace"], model["id"]["name"])
    named = [(own, name)]
    if kind == "dataset" and not live:
        # events tag as they like: in small letters, or under another of its names
        on = [tag for each in model["fields"] if each["name"] == field for tag in each["tags"]]
        spelt = {name, *(tag for tag in on if tag.upper() == name)}
        with store.read() as reader:
            others = said_elsewhere(reader, find_dataset(reader, *own), field)
        named = [(own, tag) for tag in sorted(spelt)]
        named += [((each.namespace, each.name), tag) for each in others for tag in sorted(spelt & each.tags)]
    said = [
        SetTag(at=at, by=by, kind=kind, namespace=whose, name=called, field=field, tag=tag, live=live)
        for (whose, called), tag in named
    ]
    ask.tell(store, *said)


def _tag_dataset(
    request: Request[Any, Any, State], namespace: str, name: str, tag: str, live: bool, field: str = ""
) -> dict[str, Any]:
    store = request.app.state.store
    model = dataset(store, namespace, name)
    if field and field not in {each["name"] for each in model["fields"]}:
        raise NotFound(f"Field '{field}' not found for dataset '{name}'.")
    _set(request, "dataset", model, tag, live, field)
    return dataset(store, namespace, name)


def _tag_job(
    request: Request[Any, Any, State], namespace: str, name: str, tag: str, live: bool
) -> dict[str, Any]:
    store = request.app.state.store
    _set(request, "job", job(store, namespace, name), tag, live)
    return job(store, namespace, name)


@post(
    f"{_DATASET}/tags/{{tag:str}}",
    status_code=200,
    sync_to_thread=True,
    scope="ingest",
    responses=ask.responses(404),
)
def tag_dataset(
    request: Request[Any, Any, State], namespace: ask.NamespaceName, name: ask.ThingName, tag: TagName
) -> dict[str, Any]:
    """Put a tag on a dataset."""
    return _tag_dataset(request, namespace, name, tag, True)


@delete(
    f"{_DATASET}/tags/{{tag:str}}",
    status_code=200,
    sync_to_thread=True,
    scope="ingest",
    responses=ask.responses(404),
)
def untag_dataset(
    request: Request[Any, Any, State], namespace: ask.NamespaceName, name: ask.ThingName, tag: TagName
) -> dict[str, Any]:
    """Take a tag off a dataset."""
    return _tag_dataset(request, namespace, name, tag, False)


@post(
    f"{_DATASET}/fields/{{field:str}}/tags/{{tag:str}}",
    status_code=200,
    sync_to_thread=True,
    scope="ingest",
    responses=ask.responses(404),
)
def tag_field(
    request: Request[Any, Any, State],
    namespace: ask.NamespaceName,
    name: ask.ThingName,
    field: FieldName,
    tag: TagName,
) -> dict[str, Any]:
    """Put a tag on a dataset's field."""
    return _tag_dataset(request, namespace, name, tag, True, field)


@delete(
    f"{_DATASET}/fields/{{field:str}}/tags/{{tag:str}}",
    status_code=200,
    sync_to_thread=True,
    scope="ingest",
    responses=ask.responses(404),
)
def untag_field(
    request: Request[Any, Any, State],
    namespace: ask.NamespaceName,
    name: ask.ThingName,
    field: FieldName,
    tag: TagName,
) -> dict[str, Any]:
    """Take a tag off a dataset's field."""
    return _tag_dataset(request, namespace, name, tag, False, field)


@post(
    f"{_JOB}/tags/{{tag:str}}",
    status_code=200,
    sync_to_thread=True,
    scope="ingest",
    responses=ask.responses(404),
)
def tag_job(
    request: Request[Any, Any, State], namespace: ask.NamespaceName, name: ask.ThingName, tag: TagName
) -> dict[str, Any]:
    """Put a tag on a job."""
    return _tag_job(request, namespace, name, tag, True)


@delete(
    f"{_JOB}/tags/{{tag:str}}",
    status_code=200,
    sync_to_thread=True,
    scope="ingest",
    responses=ask.responses(404),
)
def untag_job(
    request: Request[Any, Any, State], namespace: ask.NamespaceName, name: ask.ThingName, tag: TagName
) -> dict[str, Any]:
    """Take a tag off a job."""
    return _tag_job(request, namespace, name, tag, False)


READS = [get_tags]
WRITES = [put_tag, tag_dataset, untag_dataset, tag_field, untag_field, tag_job, untag_job]
