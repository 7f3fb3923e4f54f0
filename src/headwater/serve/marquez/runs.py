"""serve.marquez.runs: /jobs/runs/{id} and a job's runs -> runs; runs made by hand and state calls -> commands."""

from __future__ import annotations

import threading
from typing import Annotated, Any, Literal
from uuid import uuid4

import msgspec
from litestar import Request, Response, get, post
from litestar.datastructures import State
from litestar.exceptions import ClientException
from litestar.params import JSONBody, PathParameter, QueryParameter

from headwater.errors import NotFound
from headwater.facts.commands import SetRunState
from headwater.facts.definitions import DefineRun
from headwater.query.marquez import jobs, runs
from headwater.query.marquez._words import is_uuid
from headwater.query.marquez.nodes import find_job, require_namespace
from headwater.serve.auth import who
from headwater.serve.marquez import _asking as ask

_RUNS = f"{ask.BASE}/namespaces/{{namespace:str}}/jobs/{{name:str}}/runs"
_CALLS = {"start": "START", "complete": "COMPLETE", "fail": "FAIL", "abort": "ABORT"}
_making = threading.Lock()
"""Whether an id is free is asked and answered by one at a time."""


class RunBody(msgspec.Struct, rename="camel"):
    """A run to be made."""

    id: str | None = None
    nominal_start_time: str | None = None
    nominal_end_time: str | None = None
    args: dict[str, ask.Text] | None = None


@get(_RUNS, sync_to_thread=True, scope="read", responses=ask.responses(404))
def get_runs(
    state: State,
    namespace: ask.NamespaceName,
    name: ask.ThingName,
    limit: ask.Limit = 100,
    offset: ask.Offset = 0,
) -> dict[str, Any]:
    """A job's runs, the newest first."""
    return jobs.job_runs(state.store, namespace, name, ask.page(limit), offset)


@post(
    _RUNS,
    status_code=201,
    sync_to_thread=True,
    scope="ingest",
    responses=ask.responses(404),
    request_max_body_size=1 << 20,
)
def post_run(
    request: Request[Any, Any, State],
    state: State,
    namespace: ask.NamespaceName,
    name: ask.ThingName,
    data: JSONBody[RunBody | None] = None,
) -> Response[dict[str, Any]]:
    """Make a run of a job; it is NEW until it is started."""
    body = data or RunBody()
    if body.id is not None and not is_uuid(body.id):
        raise ClientException(f"id is {body.id!r}: write a UUID")
    run_id = body.id.lower() if body.id is not None else str(uuid4())
    start, end = (
        ask.stamp("nominalStartTime", body.nominal_start_time),
        ask.stamp("nominalEndTime", body.nominal_end_time),
    )
    with _making:
        with state.store.read() as reader:
            require_namespace(reader, namespace)
            number = find_job(reader, namespace, name)
            about = jobs.About(reader, reader.catalogue().nodes("job", [number])).model(number)
            if reader.history().run(run_id) is not None:
                raise ClientException(
                    f"Run '{run_id}' already exists for '{name}' under namespace '{namespace}'."
                )
        said = DefineRun(
            at=ask.now(),
            by=who(request),
            run_id=run_id,
            namespace=about["namespace"],
            job=about["name"],
            inputs=tuple((each["namespace"], each["name"]) for each in about["inputs"]),
            outputs=tuple((each["namespace"], each["name"]) for each in about["outputs"]),
            nominal_start=start,
            nominal_end=end,
            args={key: value for key, value in (body.args or {}).items() if key and value},
        )
        ask.tell(state.store, said)
    place = f"{state.serving.base_path}{ask.BASE}/jobs/runs/{run_id}"
    return Response(runs.run(state.store, run_id), status_code=201, headers={"Location": place})


@get(f"{ask.BASE}/jobs/runs/{{run_id:str}}", sync_to_thread=True, scope="read", responses=ask.responses(404))
def get_run(state: State, run_id: ask.RunId) -> dict[str, Any]:
    """One run."""
    return runs.run(state.store, run_id)


@get(
    f"{ask.BASE}/jobs/runs/{{run_id:str}}/facets",
    sync_to_thread=True,
    scope="read",
    responses=ask.responses(404),
)
def get_run_facets(
    state: State,
    run_id: ask.RunId,
    kind: Annotated[str, QueryParameter(name="type", description="`run` or `job`: whose facets.")],
) -> Response[Any]:
    """The facets of a run, or of its job."""
    word = str(ask.choice("type", kind, ("run", "job", "dataset")))
    found = runs.run_facets(state.store, run_id, word)
    return Response(b"" if found is None else found)


@post(
    f"{ask.BASE}/jobs/runs/{{run_id:str}}/{{call:str}}",
    status_code=200,
    sync_to_thread=True,
    scope="ingest",
    responses=ask.responses(404),
)
def post_state(
    request: Request[Any, Any, State],
    state: State,
    run_id: ask.RunId,
    call: Annotated[
        Literal["start", "complete", "fail", "abort"], PathParameter(description="What happened to it.")
    ],
    at: Annotated[str | None, QueryParameter(description="When; now, if it is not told.")] = None,
) -> dict[str, Any]:
    """Tell that a run started, completed, failed or was aborted. Of several ends, the last by time counts."""
    if call not in _CALLS:
        raise NotFound(f"a run can be told to {', '.join(_CALLS)}, not to {call}")
    when = ask.stamp("at", at)
    with state.store.read() as reader:
        row = runs.find_run(reader, run_id)
    said = SetRunState(
        at=ask.now() if when is None else when, by=who(request), run_id=row["run_id"], state=_CALLS[call]
    )
    ask.tell(state.store, said)
    return runs.run(state.store, run_id)


READS = [get_runs, get_run, get_run_facets]
WRITES = [post_run, post_state]
