"""serve.native: GET /hw/v1/… -> the models of `query`, as JSON."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from litestar import get
from litestar.datastructures import State
from litestar.params import QueryParameter

from headwater.query.lineage import MAX_DEPTH, lineage
from headwater.query.nodes import when
from headwater.query.search import search
from headwater.query.show import show
from headwater.query.status import status

NodeName = Annotated[
    str, QueryParameter(description="A node id, NAMESPACE/NAME, or a unique suffix of a name.")
]
At = Annotated[str | None, QueryParameter(description="As of this time: ISO 8601, or -24h.")]
Since = Annotated[
    str | None, QueryParameter(description="With `at`: all edges that held or were seen since then.")
]


@get("/hw/v1/graph", sync_to_thread=True, scope="read")
def get_graph(
    state: State,
    node: NodeName,
    direction: Annotated[Literal["up", "down", "both"], QueryParameter()] = "both",
    depth: Annotated[int, QueryParameter(ge=0, le=MAX_DEPTH)] = 20,
    columns: Annotated[bool, QueryParameter()] = False,
    at: At = None,
    since: Since = None,
) -> dict[str, Any]:
    """The graph around a node."""
    return lineage(state.store, node, direction=direction, depth=depth, columns=columns, when=when(at, since))


@get("/hw/v1/show", sync_to_thread=True, scope="read")
def get_show(state: State, node: NodeName, at: At = None) -> dict[str, Any]:
    """All that is known of a dataset, a job or a run."""
    return show(state.store, node, when=when(at))


@get("/hw/v1/search", sync_to_thread=True, scope="read")
def get_search(
    state: State,
    q: Annotated[str, QueryParameter(description="A part of a name or namespace.")],
    type: Annotated[Literal["dataset", "job"] | None, QueryParameter()] = None,
    namespace: Annotated[str | None, QueryParameter()] = None,
    limit: Annotated[int, QueryParameter(ge=1, le=1000)] = 25,
) -> list[dict[str, Any]]:
    """The datasets and jobs whose names hold `q`."""
    return search(state.store, q, kind=type, namespace=namespace, limit=limit)


@get("/hw/v1/status", sync_to_thread=True, scope="read")
def get_status(state: State, rejects: Annotated[int, QueryParameter(ge=0, le=1000)] = 0) -> dict[str, Any]:
    """How much the store holds, and what was refused."""
    return status(state.store, rejects=rejects)
