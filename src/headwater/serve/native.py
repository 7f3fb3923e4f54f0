"""serve.native: GET /hw/v1/… -> the models of `query`, as JSON."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from litestar import get
from litestar.datastructures import State
from litestar.params import PathParameter, QueryParameter

from headwater.query.diff import diff
from headwater.query.impact import impact
from headwater.query.lineage import FAN, MAX_DEPTH, lineage
from headwater.query.moments import moments
from headwater.query.nodes import moment, when
from headwater.query.runs import run_graph, runs
from headwater.query.schemas import schemas
from headwater.query.search import search
from headwater.query.show import show
from headwater.query.status import status

NodeName = Annotated[
    str,
    QueryParameter(description="A node id, NAMESPACE/NAME, or a unique suffix of a name.", max_length=10_000),
]
MaybeNode = Annotated[
    str | None,
    QueryParameter(description="A node id, NAMESPACE/NAME, or a unique suffix of a name.", max_length=10_000),
]
Time = Annotated[str, QueryParameter(description="ISO 8601, or so long ago: -24h.", max_length=64)]
At = Annotated[str | None, QueryParameter(description="As of this time: ISO 8601, or -24h.", max_length=64)]
Since = Annotated[
    str | None,
    QueryParameter(description="With `at`: all edges that held or were seen since then.", max_length=64),
]
Words = Annotated[str | None, QueryParameter(max_length=1_000)]
Depth = Annotated[int, QueryParameter(description="How many dataset hops.", ge=0, le=MAX_DEPTH)]
Way = Annotated[Literal["up", "down", "both"], QueryParameter()]


@get("/hw/v1/graph", sync_to_thread=True, scope="read")
def get_graph(
    state: State,
    node: NodeName,
    direction: Way = "both",
    depth: Depth = 20,
    columns: Annotated[bool, QueryParameter()] = False,
    granularity: Annotated[
        Literal["all", "dataset", "job", "application", "run"],
        QueryParameter(description="Which nodes: both kinds, one, applications with datasets, or runs."),
    ] = "all",
    fan: Annotated[
        int, QueryParameter(description="How many nodes next to one are followed each way.", ge=1, le=100_000)
    ] = FAN,
    limit: Annotated[int, QueryParameter(description="How many nodes in all.", ge=1, le=100_000)] = 10_000,
    at: At = None,
    since: Since = None,
    states: Annotated[bool, QueryParameter(description="Tell each job's last run.")] = False,
) -> dict[str, Any]:
    """The graph around a node; `more` at a node counts what stands next to it and was left out."""
    return lineage(
        state.store,
        node,
        direction=direction,
        depth=depth,
        columns=columns,
        when=when(at, since),
        granularity=granularity,
        fan=fan,
        limit=limit,
        states=states,
    )


@get("/hw/v1/moments", sync_to_thread=True, scope="read")
def get_moments(state: State, node: NodeName, direction: Way = "both", depth: Depth = 3) -> dict[str, Any]:
    """When the graph around a node changed: a job began, its edges or a schema became others."""
    return moments(state.store, node, direction=direction, depth=depth)


@get("/hw/v1/impact", sync_to_thread=True, scope="read")
def get_impact(
    state: State,
    node: NodeName,
    column: Annotated[
        str | None, QueryParameter(description="A column of the dataset.", max_length=1_000)
    ] = None,
    depth: Depth = MAX_DEPTH,
    at: At = None,
) -> dict[str, Any]:
    """What breaks downstream of a node or column: the nearest first, with owners and the run that wrote each last."""
    return impact(state.store, node, column=column, depth=depth, when=when(at))


@get("/hw/v1/diff", sync_to_thread=True, scope="read")
def get_diff(
    state: State,
    before: Annotated[str, QueryParameter(name="from", description="ISO 8601, or -24h.", max_length=64)],
    after: Annotated[str, QueryParameter(name="to", description="ISO 8601, or -24h.", max_length=64)] = "now",
    node: MaybeNode = None,
    depth: Depth = 20,
) -> dict[str, Any]:
    """What was added, removed and changed between two times: nodes, edges, column relations, schemas."""
    return diff(state.store, moment(before), moment(after), node=node, depth=depth)


@get("/hw/v1/schemas", sync_to_thread=True, scope="read")
def get_schemas(state: State, node: NodeName) -> dict[str, Any]:
    """The schemas a dataset has had, the run that brought each, and what it changed."""
    return schemas(state.store, node)


@get("/hw/v1/runs", sync_to_thread=True, scope="read")
def get_runs(
    state: State,
    job: MaybeNode = None,
    dataset: Annotated[
        str | None,
        QueryParameter(description="Only runs that read or wrote this dataset.", max_length=10_000),
    ] = None,
    state_: Annotated[
        Literal["START", "RUNNING", "COMPLETE", "FAIL", "ABORT", "OTHER"] | None, QueryParameter(name="state")
    ] = None,
    since: At = None,
    until: At = None,
    limit: Annotated[int, QueryParameter(ge=1, le=1000)] = 50,
) -> list[dict[str, Any]]:
    """Runs, the newest first."""
    return runs(
        state.store,
        job=job,
        dataset=dataset,
        state=state_,
        since=moment(since) if since else None,
        until=moment(until) if until else None,
        limit=limit,
    )


@get("/hw/v1/runs/{run_id:str}/graph", sync_to_thread=True, scope="read")
def get_run_graph(
    state: State,
    run_id: Annotated[str, PathParameter(description="The id of a run.")],
    direction: Way = "both",
    depth: Annotated[int, QueryParameter(description="How many runs away.", ge=0, le=100)] = 20,
    limit: Annotated[int, QueryParameter(description="How many runs in all.", ge=1, le=10_000)] = 1_000,
) -> dict[str, Any]:
    """The runs that wrote what a run read, and those that read what it wrote, hop by hop."""
    return run_graph(state.store, run_id, direction=direction, depth=depth, limit=limit)


@get("/hw/v1/show", sync_to_thread=True, scope="read")
def get_show(state: State, node: NodeName, at: At = None) -> dict[str, Any]:
    """All that is known of a dataset, a job or a run."""
    return show(state.store, node, when=when(at))


@get("/hw/v1/search", sync_to_thread=True, scope="read")
def get_search(
    state: State,
    q: Annotated[
        str,
        QueryParameter(
            description="Words, or the beginnings of words: of names, columns, SQL, descriptions, tags, owners.",
            max_length=1_000,
        ),
    ],
    type: Annotated[Literal["dataset", "job"] | None, QueryParameter()] = None,
    namespace: Words = None,
    tag: Words = None,
    owner: Words = None,
    limit: Annotated[int, QueryParameter(ge=1, le=1000)] = 25,
) -> list[dict[str, Any]]:
    """The datasets and jobs that `q` means, the closest first, and where they have it."""
    return search(state.store, q, kind=type, namespace=namespace, tag=tag, owner=owner, limit=limit)


@get("/hw/v1/status", sync_to_thread=True, scope="read")
def get_status(state: State, rejects: Annotated[int, QueryParameter(ge=0, le=1000)] = 0) -> dict[str, Any]:
    """How much the store holds, and what was refused."""
    return status(state.store, rejects=rejects)


READS = [
    get_graph,
    get_moments,
    get_impact,
    get_diff,
    get_schemas,
    get_runs,
    get_run_graph,
    get_show,
    get_search,
    get_status,
]
