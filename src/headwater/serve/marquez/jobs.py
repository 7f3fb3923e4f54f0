"""serve.marquez.jobs: /jobs and /namespaces/{ns}/jobs -> jobs and their versions; PUT and DELETE -> commands."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from litestar import Request, delete, get, post, put
from litestar.datastructures import State
from litestar.params import JSONBody, PathParameter, QueryParameter

from headwater.errors import NotFound
from headwater.facts.commands import Hide
from headwater.facts.definitions import DefineJob
from headwater.query.marquez import jobs
from headwater.query.marquez._words import RUN_STATES
from headwater.query.marquez.nodes import require_namespace
from headwater.query.marquez.runs import find_run
from headwater.serve.auth import who
from headwater.serve.marquez import _asking as ask

_PATH = f"{ask.BASE}/namespaces/{{namespace:str}}/jobs"
Version = Annotated[str, PathParameter(description="A version's UUID.")]
States = Annotated[
    list[str] | None,
    QueryParameter(name="lastRunStates", description="Only jobs whose last run is in one of these states."),
]


class DatasetId(msgspec.Struct):
    """A dataset by its names."""

    namespace: ask.Name
    name: ask.Name


class JobBody(msgspec.Struct, rename="camel"):
    """What is said of a job."""

    type: Literal["BATCH", "STREAM", "SERVICE"]
    inputs: list[DatasetId] | None = None
    outputs: list[DatasetId] | None = None
    location: ask.Text | None = None
    description: ask.Text | None = None
    run_id: str | None = None


def _states(given: list[str] | None) -> list[str]:
    return [str(ask.choice("lastRunStates", each, RUN_STATES)) for each in given or ()]


@get(f"{ask.BASE}/jobs", sync_to_thread=True, scope="read", responses=ask.responses())
def get_jobs(
    state: State, states: States = None, limit: ask.Limit = 100, offset: ask.Offset = 0
) -> dict[str, Any]:
    """Jobs of all namespaces, the newest first."""
    return jobs.job_page(state.store, None, _states(states), ask.page(limit), offset)


@post(f"{ask.BASE}/jobs", status_code=200, sync_to_thread=True, scope="read", responses=ask.responses())
def post_jobs(
    state: State,
    run_state: Annotated[
        str | None, QueryParameter(name="runState", description="The state of the last run.")
    ] = None,
    limit: ask.Limit = 100,
    offset: ask.Offset = 0,
) -> dict[str, Any]:
    """Jobs by the state of their last run, as Marquez's web UI asks for them."""
    states = _states([run_state] if run_state else None)
    return jobs.job_page(state.store, None, states, ask.page(limit), offset)


@get(_PATH, sync_to_thread=True, scope="read", responses=ask.responses(404))
def get_namespace_jobs(
    state: State,
    namespace: ask.NamespaceName,
    states: States = None,
    limit: ask.Limit = 100,
    offset: ask.Offset = 0,
) -> dict[str, Any]:
    """The jobs of a namespace, the newest first."""
    return jobs.job_page(state.store, namespace, _states(states), ask.page(limit), offset)


@get(f"{_PATH}/{{name:str}}", sync_to_thread=True, scope="read", responses=ask.responses(404))
def get_job(state: State, namespace: ask.NamespaceName, name: ask.ThingName) -> dict[str, Any]:
    """One job, by its name or by `PARENT.NAME`."""
    return jobs.job(state.store, namespace, name)


@get(f"{_PATH}/{{name:str}}/versions", sync_to_thread=True, scope="read", responses=ask.responses(404))
def get_job_versions(
    state: State,
    namespace: ask.NamespaceName,
    name: ask.ThingName,
    limit: ask.Limit = 100,
    offset: ask.Offset = 0,
) -> dict[str, Any]:
    """The versions of a job (sets of inputs and outputs), the newest first."""
    return jobs.job_versions(state.store, namespace, name, ask.page(limit), offset)


@get(
    f"{_PATH}/{{name:str}}/versions/{{version:str}}",
    sync_to_thread=True,
    scope="read",
    responses=ask.responses(404),
)
def get_job_version(
    state: State, namespace: ask.NamespaceName, name: ask.ThingName, version: Version
) -> dict[str, Any]:
    """One version of a job."""
    return jobs.job_version(state.store, namespace, name, version)


@put(
    f"{_PATH}/{{name:str}}",
    sync_to_thread=True,
    scope="ingest",
    responses=ask.responses(404),
    request_max_body_size=8 << 20,
)
def put_job(
    request: Request[Any, Any, State],
    state: State,
    namespace: ask.NamespaceName,
    name: ask.ThingName,
    data: JSONBody[JobBody],
) -> dict[str, Any]:
    """Define a job; its namespace, its datasets and its run must be there."""
    ask.name_of("a job's name", name)
    sides = {
        side: [(each.namespace, each.name) for each in getattr(data, side) or ()]
        for side in ("inputs", "outputs")
    }
    run_id = None
    with state.store.read() as reader:
        require_namespace(reader, namespace)
        wanted = [*sides["inputs"], *sides["outputs"]]
        known = set(reader.catalogue().known("dataset", wanted))
        for pair in wanted:
            if pair not in known:
                raise NotFound(f"Dataset '{pair[1]}' not found.")
        if data.run_id is not None:
            run_id = find_run(reader, data.run_id)["run_id"]
        hidden, _, _ = reader.catalogue().hidden_at("job", namespace, name)
    said = DefineJob(
        at=ask.now(),
        by=who(request),
        namespace=namespace,
        name=name,
        type=data.type,
        inputs=tuple(sides["inputs"]),
        outputs=tuple(sides["outputs"]),
        location=data.location,
        description=data.description,
        run_id=run_id,
        shown_at=None if hidden is None else hidden + 1,
    )
    ask.tell(state.store, said)
    return jobs.job(state.store, namespace, name)


@delete(
    f"{_PATH}/{{name:str}}", status_code=200, sync_to_thread=True, scope="admin", responses=ask.responses(404)
)
def delete_job(
    request: Request[Any, Any, State], state: State, namespace: ask.NamespaceName, name: ask.ThingName
) -> dict[str, Any]:
    """Hide a job until an event names it again."""
    model = jobs.job(state.store, namespace, name)
    identity = model["id"]
    with state.store.read() as reader:
        _, shown, last = reader.catalogue().hidden_at("job", **identity)
    ask.tell(
        state.store,
        Hide(at=ask.now(), by=who(request), kind="job", after=max(shown or 0, last or 0), **identity),
    )
    return model


READS = [get_jobs, post_jobs, get_namespace_jobs, get_job, get_job_versions, get_job_version]
WRITES = [put_job, delete_job]
