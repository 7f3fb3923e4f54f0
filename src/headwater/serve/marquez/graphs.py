"""serve.marquez.graphs: /lineage, /column-lineage, /runlineage/upstream -> graphs around a node or a run."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import get
from litestar.datastructures import State
from litestar.exceptions import ClientException
from litestar.params import QueryParameter

from headwater.query.marquez.columns import column_lineage
from headwater.query.marquez.lineage import lineage
from headwater.query.marquez.nodes import parse_node
from headwater.query.marquez.upstream import run_upstream
from headwater.serve.marquez import _asking as ask

NodeId = Annotated[
    str,
    QueryParameter(
        name="nodeId",
        min_length=1,
        max_length=8192,
        description="`dataset:NAMESPACE:NAME`, `job:NAMESPACE:NAME`, or `datasetField:NAMESPACE:NAME:FIELD`.",
    ),
]


@get(f"{ask.BASE}/lineage", sync_to_thread=True, scope="read", responses=ask.responses(404))
def get_lineage(state: State, node_id: NodeId, depth: ask.Depth = 20) -> dict[str, Any]:
    """The graph of jobs and datasets around a node; `depth` counts hops from job to job."""
    if node_id.startswith("datasetField:"):
        raise ClientException(f"nodeId is {node_id!r}: ask /column-lineage about fields")
    return lineage(state.store, node_id, depth)


@get(f"{ask.BASE}/column-lineage", sync_to_thread=True, scope="read", responses=ask.responses(404))
def get_column_lineage(
    state: State,
    node_id: NodeId,
    depth: ask.Depth = 20,
    with_downstream: Annotated[
        bool, QueryParameter(name="withDownstream", description="Downstream too, not upstream alone.")
    ] = False,
) -> dict[str, Any]:
    """The graph of columns around a dataset, a field or a job's outputs."""
    if with_downstream and parse_node(node_id).version is not None:
        raise ClientException("Node version cannot be specified when withDownstream is true")
    return column_lineage(state.store, node_id, depth, with_downstream)


@get(f"{ask.BASE}/runlineage/upstream", sync_to_thread=True, scope="read", responses=ask.responses(404))
def get_upstream(
    state: State,
    run_id: Annotated[str, QueryParameter(name="runId", min_length=1, description="A run's UUID.")],
    depth: ask.Depth = 20,
) -> dict[str, Any]:
    """The runs that wrote what a run read, and so on, the nearest first."""
    return run_upstream(state.store, run_id, depth)


READS = [get_lineage, get_column_lineage, get_upstream]
