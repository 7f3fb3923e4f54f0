"""serve.marquez.namespaces: /namespaces and /sources -> pages of them; PUT and DELETE -> commands."""

from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec
from litestar import Request, delete, get, put
from litestar.datastructures import State
from litestar.exceptions import ClientException
from litestar.params import JSONBody, PathParameter

from headwater.facts.commands import Command, Hide, Say
from headwater.facts.definitions import Name
from headwater.naming import scrub
from headwater.query.marquez import lists
from headwater.serve.auth import who
from headwater.serve.marquez import _asking as ask

_NAME = re.compile(r"[a-zA-Z0-9:;=/_\-.@+]{1,1024}")
Source = Annotated[str, PathParameter(description="A source; `/` and `:` percent-encoded.")]


class NamespaceBody(msgspec.Struct, rename="camel"):
    """What is said of a namespace."""

    owner_name: ask.Name
    description: ask.Text | None = None


class SourceBody(msgspec.Struct, rename="camel"):
    """What is said of a source."""

    type: ask.Name
    connection_url: ask.Text
    description: ask.Text | None = None


@get(f"{ask.BASE}/namespaces", sync_to_thread=True, scope="read", responses=ask.responses())
def get_namespaces(state: State, limit: ask.Limit = 100, offset: ask.Offset = 0) -> dict[str, Any]:
    """Namespaces by name; those that were hidden say so."""
    return lists.namespace_page(state.store, ask.page(limit), offset)


@get(
    f"{ask.BASE}/namespaces/{{namespace:str}}",
    sync_to_thread=True,
    scope="read",
    responses=ask.responses(404),
)
def get_namespace(state: State, namespace: ask.NamespaceName) -> dict[str, Any]:
    """One namespace."""
    return lists.namespace(state.store, namespace)


@put(
    f"{ask.BASE}/namespaces/{{namespace:str}}",
    sync_to_thread=True,
    scope="ingest",
    responses=ask.responses(),
    request_max_body_size=1 << 20,
)
def put_namespace(
    request: Request[Any, Any, State],
    state: State,
    namespace: ask.NamespaceName,
    data: JSONBody[NamespaceBody],
) -> dict[str, Any]:
    """Say whose a namespace is; a hidden one is shown again."""
    if not _NAME.fullmatch(namespace):
        raise ClientException(
            f"the namespace {namespace!r} must have 1 to 1,024 letters, digits or characters of : ; = / _ - . @ +"
        )
    at, by = ask.now(), who(request)
    with state.store.read() as reader:
        hidden, _, _ = reader.catalogue().hidden_at("namespace", namespace)
    words = {"owner": data.owner_name, "description": data.description}
    ask.tell(
        state.store,
        Name(at=at, by=by, kind="namespace", name=namespace, shown_at=None if hidden is None else hidden + 1),
        Say(
            at=at,
            by=by,
            kind="namespace",
            name=namespace,
            values={k: v for k, v in words.items() if v is not None},
        ),
    )
    return lists.namespace(state.store, namespace)


@delete(
    f"{ask.BASE}/namespaces/{{namespace:str}}",
    status_code=200,
    sync_to_thread=True,
    scope="admin",
    responses=ask.responses(404),
)
def delete_namespace(
    request: Request[Any, Any, State], state: State, namespace: ask.NamespaceName
) -> dict[str, Any]:
    """Hide a namespace with its jobs and datasets, until an event names them again."""
    lists.namespace(state.store, namespace)
    at, by = ask.now(), who(request)
    said: list[Command] = []
    latest = 0
    with state.store.read() as reader:
        catalogue = reader.catalogue()
        for kind, name, shown, last in catalogue.shown_in(namespace):
            after = max(shown or 0, last or 0)
            said.append(Hide(at=at, by=by, kind=kind, namespace=namespace, name=name, after=after))
        _, shown_at, _ = catalogue.hidden_at("namespace", namespace)
        row = catalogue.namespaces(1, 0, namespace)[0]
        latest = max(row["told"] or 0, row["shown_at"] or 0, shown_at or 0)
    ask.tell(state.store, *said, Hide(at=at, by=by, kind="namespace", namespace=namespace, after=latest))
    return lists.namespace(state.store, namespace)


@get(f"{ask.BASE}/sources", sync_to_thread=True, scope="read", responses=ask.responses())
def get_sources(state: State, limit: ask.Limit = 100, offset: ask.Offset = 0) -> dict[str, Any]:
    """Sources by name."""
    return lists.source_page(state.store, ask.page(limit), offset)


@get(f"{ask.BASE}/sources/{{source:str}}", sync_to_thread=True, scope="read", responses=ask.responses(404))
def get_source(state: State, source: Source) -> dict[str, Any]:
    """One source."""
    return lists.source(state.store, source)


@put(
    f"{ask.BASE}/sources/{{source:str}}",
    sync_to_thread=True,
    scope="ingest",
    responses=ask.responses(),
    request_max_body_size=1 << 20,
)
def put_source(
    request: Request[Any, Any, State], state: State, source: Source, data: JSONBody[SourceBody]
) -> dict[str, Any]:
    """Say what a source is; a password in its url is not kept, as in the facet `dataSource`."""
    name = ask.name_of("a source's name", source)
    at, by = ask.now(), who(request)
    url = scrub(data.connection_url) if state.redaction.secrets else data.connection_url
    words: dict[str, str | None] = {"type": data.type, "connectionUrl": url}
    if data.description is not None:
        words["description"] = data.description
    ask.tell(
        state.store,
        Name(at=at, by=by, kind="source", name=name),
        Say(at=at, by=by, kind="source", name=name, values=words),
    )
    return lists.source(state.store, name)


READS = [get_namespaces, get_namespace, get_sources, get_source]
WRITES = [put_namespace, delete_namespace, put_source]
