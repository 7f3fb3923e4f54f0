"""dlt._explaining: the last trace that a pipeline left on this machine -> the events that tell of it."""

from __future__ import annotations

from typing import Any

from headwater import __version__, config
from headwater.capture.dlt import State, interpret, packages, recording
from headwater.dlt import Capturing
from headwater.errors import NotFound

_OF_FILES = ("shapes", "names", "models", "unread", "lineage")


def explain(name: str, settings: config.Settings, folder: str | None = None) -> list[dict[str, Any]]:
    """What was, or would have been, told of a pipeline's last run.

    Columns are known where Headwater was there when the run was extracted: the files it looked at are gone since.

    Raises:
        NotFound: there is no such pipeline here, or it never ran.

    """
    pipeline = _attached(name, folder)
    trace = pipeline.last_trace
    if trace is None or not trace.steps:
        raise NotFound(f"pipeline {name!r} has left no trace: it has not run here yet")
    capturing = Capturing(**settings.rooms.get("dlt", {}))
    named = settings.origins.get("namespace", "default") != "default"
    state = State(settings.namespace if named else "dlt", capturing.naming, __version__)
    events = interpret(recording.started(trace, str(trace.steps[-1].step), pipeline), state)
    home = str(pipeline.working_dir)
    for step in trace.steps:
        for record in _records(trace, step, pipeline, home):
            events += interpret(record, state)
    return events + interpret(recording.ended(trace, pipeline), state)


def _attached(name: str, folder: str | None) -> Any:
    from dlt.pipeline.exceptions import CannotRestorePipelineException, InvalidPipelineName

    import dlt

    try:
        return dlt.attach(name, pipelines_dir=folder) if folder else dlt.attach(name)
    except (CannotRestorePipelineException, InvalidPipelineName) as fault:
        raise NotFound(f"no pipeline {name!r} has run here: {str(fault).splitlines()[0]}") from None


def _records(trace: Any, step: Any, pipeline: Any, home: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if step.step_exception is not None:
        found.append(recording.failed(trace, step, pipeline))
    info = step.step_info
    if info is None:
        return found
    known = packages.find(home, [str(each.load_id) for each in getattr(info, "load_packages", ())])
    if step.step == "extract":
        found.append(_with(known, recording.extracted(trace, step, pipeline, info, {})))
    elif step.step == "normalize":
        found.append(_with(known, recording.normalised(trace, step, pipeline, info, {})))
    elif step.step == "load":
        record = {**recording.loaded(trace, step, pipeline, info), "known": known}
        where = next((each["where"] for each in known.values() if each.get("where")), None)
        if where:  # a pipeline that is attached does not know what its program told its destination
            record["where"] = where
        found.append(record)
    return found


def _with(known: dict[str, dict[str, Any]], record: dict[str, Any]) -> dict[str, Any]:
    """A record with what was kept of its packages; what is read from their files now, which are gone, says nothing."""
    for load_id, package in record["packages"].items():
        bare = {name: value for name, value in package.items() if name not in _OF_FILES}
        record["packages"][load_id] = {**bare, **known.get(load_id, {})}
    return record
