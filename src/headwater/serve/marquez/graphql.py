"""serve.marquez.graphql: a GraphQL query at /api/v1-beta/graphql -> what it asks of namespaces, jobs, datasets and lineage."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from litestar import post
from litestar.datastructures import State
from litestar.params import JSONBody

from headwater.errors import NotFound
from headwater.query.marquez import datasets, jobs, lists
from headwater.query.marquez.lineage import lineage
from headwater.query.nodes import node_id
from headwater.serve.marquez import _asking as ask
from headwater.store import Store

if TYPE_CHECKING:
    from graphql import GraphQLSchema

_MOST_TOKENS = 5_000
_SCHEMA = """
scalar DateTime
scalar Json
scalar UUID

type Query {
  "The newest jobs, at most 1,000."
  jobs(limit: Int = 100, offset: Int = 0): [Job]
  job(namespace: String!, name: String!): Job
  "Datasets of all namespaces by name, at most 1,000."
  datasets(limit: Int = 100, offset: Int = 0): [Dataset]
  dataset(namespace: String!, name: String!): Dataset
  namespace(name: String!): Namespace
  lineageFromJob(namespace: String!, name: String!, depth: Int = 10): Lineage
  lineage(nodeId: String!, depth: Int = 10): Lineage
}

type Lineage { graph: [Node] }
type Node { id: String! type: String! data: NodeData! inEdges: [Edge] outEdges: [Edge] }
union NodeData = Dataset | Job
type Edge { origin: String! destination: String! }

type Owner { name: String }
type Namespace {
  name: String
  createdAt: DateTime
  updatedAt: DateTime
  description: String
  isHidden: Boolean
  currentOwner: Owner
  jobs(limit: Int = 100, offset: Int = 0): [Job]
  datasets(limit: Int = 100, offset: Int = 0): [Dataset]
}

type Id { namespace: String name: String }
type VersionId { namespace: String name: String version: UUID }

type Job {
  id: Id
  type: String
  name: String
  simpleName: String
  parentJobName: String
  createdAt: DateTime
  updatedAt: DateTime
  namespace: String
  inputs: [Id]
  outputs: [Id]
  location: String
  description: String
  currentVersion: UUID
  labels: [String]
  tags: [String]
  facets: Json
  latestRun: Run
  latestRuns: [Run]
}

type DatasetVersion { datasetVersionId: VersionId facets: Json }
type Run {
  id: UUID
  createdAt: DateTime
  updatedAt: DateTime
  nominalStartTime: DateTime
  nominalEndTime: DateTime
  state: String
  startedAt: DateTime
  endedAt: DateTime
  durationMs: Float
  args: Json
  jobVersion: VersionId
  inputDatasetVersions: [DatasetVersion]
  outputDatasetVersions: [DatasetVersion]
  facets: Json
}

type Field { name: String type: String tags: [String] description: String }
type Dataset {
  id: Id
  type: String
  name: String
  physicalName: String
  createdAt: DateTime
  updatedAt: DateTime
  namespace: String
  sourceName: String
  fields: [Field]
  tags: [String]
  lastModifiedAt: DateTime
  lastLifecycleState: String
  description: String
  currentVersion: UUID
  facets: Json
  deleted: Boolean
}
"""


class QueryBody(msgspec.Struct, rename="camel"):
    """A GraphQL request."""

    query: Annotated[str, msgspec.Meta(max_length=100_000)]
    variables: dict[str, Any] | None = None
    operation_name: str | None = None


def _page(limit: int, offset: int) -> tuple[int, int]:
    return ask.page(max(0, limit)), max(0, offset)


class _Query:
    """What can be asked: each method answers the field of its name."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def jobs(self, _: Any, limit: int = 100, offset: int = 0) -> Any:
        return jobs.job_page(self._store, None, (), *_page(limit, offset))["jobs"]

    def job(self, _: Any, namespace: str, name: str) -> Any:
        return _found(lambda: jobs.job(self._store, namespace, name))

    def datasets(self, _: Any, limit: int = 100, offset: int = 0) -> Any:
        return datasets.dataset_page(self._store, None, *_page(limit, offset))["datasets"]

    def dataset(self, _: Any, namespace: str, name: str) -> Any:
        return _found(lambda: datasets.dataset(self._store, namespace, name))

    def namespace(self, _: Any, name: str) -> Any:
        found = _found(lambda: lists.namespace(self._store, name))
        return None if found is None else _Namespace(self._store, found)

    def lineage(self, _: Any, nodeId: str, depth: int = 10) -> Any:  # noqa: N803 - the argument's name
        return _found(lambda: lineage(self._store, nodeId, max(0, depth)))

    def lineageFromJob(self, _: Any, namespace: str, name: str, depth: int = 10) -> Any:  # noqa: N802 - the field's name
        return self.lineage(_, node_id("job", namespace, name), depth)


class _Namespace:
    def __init__(self, store: Store, model: dict[str, Any]) -> None:
        self._store = store
        self.name, self.description = model["name"], model["description"]
        self.createdAt, self.updatedAt = model["createdAt"], model["updatedAt"]
        self.isHidden = model["isHidden"]
        self.currentOwner = {"name": model["ownerName"]}

    def jobs(self, _: Any, limit: int = 100, offset: int = 0) -> Any:
        return jobs.job_page(self._store, self.name, (), *_page(limit, offset))["jobs"]

    def datasets(self, _: Any, limit: int = 100, offset: int = 0) -> Any:
        return datasets.dataset_page(self._store, self.name, *_page(limit, offset))["datasets"]


def _found(ask_for: Any) -> Any:
    """What is not there is null, as GraphQL has it."""
    try:
        return ask_for()
    except NotFound:
        return None


@cache
def _schema() -> GraphQLSchema:
    from graphql import GraphQLScalarType, GraphQLUnionType, build_schema

    schema = build_schema(_SCHEMA)
    for name, kind in schema.type_map.items():
        if name == "Json" and isinstance(kind, GraphQLScalarType):
            kind.serialize = lambda value: msgspec.json.decode(msgspec.json.encode(value))  # type: ignore[method-assign]
        if isinstance(kind, GraphQLUnionType):
            kind.resolve_type = lambda value, _info, _kind: "Job" if "latestRun" in value else "Dataset"
    return schema


@post(
    "/api/v1-beta/graphql",
    status_code=200,
    sync_to_thread=True,
    scope="read",
    responses=ask.responses(),
    request_max_body_size=1 << 20,
)
def post_graphql(state: State, data: JSONBody[QueryBody]) -> dict[str, Any]:
    """Answer a GraphQL query; what is wrong with it stands under `errors`."""
    from graphql import GraphQLError, execute_sync, parse, validate

    schema = _schema()
    try:
        document = parse(data.query, max_tokens=_MOST_TOKENS)
    except GraphQLError as fault:
        return {"data": None, "errors": [fault.formatted]}
    faults = validate(schema, document, max_errors=20)
    if faults:
        return {"data": None, "errors": [fault.formatted for fault in faults]}
    done = execute_sync(
        schema,
        document,
        _Query(state.store),
        variable_values=data.variables,
        operation_name=data.operation_name,
    )
    return {
        "data": done.data,
        **({"errors": [fault.formatted for fault in done.errors]} if done.errors else {}),
    }


READS = [post_graphql]
