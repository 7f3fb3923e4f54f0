"""capture.spark.runs: a record of the probe, and what earlier records taught -> OpenLineage events. Pure.

One run per user action: executions that another one started fold into it. A streaming query is one run over all its
micro-batches. The same record always gives the same run id, so two readers of one application tell the same story.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from headwater.capture.spark import ddl, facets, names
from headwater.capture.spark.columns import Plan
from headwater.capture.spark.deps import NONE
from headwater.capture.spark.extending import Added
from headwater.capture.spark.extension import Dataset
from headwater.capture.spark.names import Named
from headwater.capture.spark.relation import Ground, Schema, refs
from headwater.capture.spark.state import Event, Execution, Record, State, Stream, naming
from headwater.capture.spark.telling import event, finished, folded, run_id, streamed
from headwater.capture.spark.writes import Counts, Effect, Output, added, aim, effect
from headwater.naming import Identity, scrub, scrub_mapping

_WRITERS = re.compile(
    r"DataWritingCommandExec|(Append|Overwrite|Replace|Write|Delta|CreateTableAsSelect|AtomicCreate).*Exec$"
)
_STREAM = re.compile(r"runId = ([0-9a-f-]{36})\s+batch = (\w+)")
_REMEMBERED = 20_000
_SAME_ERROR = 60_000
"""Milliseconds within which the driver's word of an error is that of the execution."""


def interpret(record: Record, state: State) -> list[Event]:
    """The events that follow from a record; a kind nobody knows gives none."""
    do = _HANDLERS.get(record["kind"])
    return do(record, state) if do else []


def _app_start(r: Record, s: State) -> list[Event]:
    if r.get("details"):
        s.common["spark_applicationDetails"] = facets.facet("spark_applicationDetails", **r["details"])
    if r.get("properties"):
        s.common["spark_properties"] = facets.facet("spark_properties", properties=r["properties"])
    if r.get("environment"):
        listed = [{"name": name, "value": value} for name, value in r["environment"].items()]
        s.common["environmentVariables"] = facets.facet("environmentVariables", environmentVariables=listed)
    if r.get("debug"):
        s.common["debug"] = facets.facet("debug", **r["debug"])
    return [event(s, "START", r["time"], s.run, s.app, "APPLICATION", "NONE")]


def _app_end(r: Record, s: State) -> list[Event]:
    open_runs = [x for x in s.executions.values() if x.told and x.id == x.root]
    left = [finished(s, x, r["time"], None, "ABORT") for x in open_runs]
    for stream in (each for each in s.streams.values() if not each.ended):
        left += [*_opened(s, stream), streamed(s, stream, r["time"], "ABORT")]
    s.executions.clear()
    s.streams.clear()
    kind = "ABORT" if r.get("aborted") else "FAIL" if r.get("error") else "COMPLETE"
    told = {}
    if r.get("error"):
        told["errorMessage"] = facets.error_message(r["error"], r.get("language", "JAVA"))
    if s.lost:
        told |= facets.degraded(f"{s.lost} records came while the queue was full: they are lost")
    return [*left, event(s, kind, r["time"], s.run, s.app, "APPLICATION", "NONE", run_facets=told)]


def _start(r: Record, s: State) -> list[Event]:
    x = Execution(
        r["id"], r["root"] if "root" in r else r["id"], r["time"], r.get("description", ""), r.get("sql")
    )
    x.site = r.get("site") or {}
    if "plan" in r and s.settings.asks_for("debug"):
        x.run_facets["debug"] = facets.debug(s.common.get("debug"), r["plan"])
    s.executions[x.id] = x
    x.unread = "full" in r
    if s.extensions:
        x.added.join(s.extensions.build(r))
    if "plan" in r:
        _understand(r, x, s)
    if x.denied and x.root == x.id:
        return []
    if x.root != x.id and x.root in s.executions:
        s.executions[x.root].nested.append(x)
        return []
    x.root = x.id
    found = _STREAM.search(x.description)
    if found:
        x.stream = found.group(1)
        _stream_of(s, x.stream, x.start)
        return []
    if _says(x):
        x.told = True
        return [finished(s, x, x.start, None, "START")]
    return []


def _end(r: Record, s: State) -> list[Event]:
    x = s.executions.pop(r["id"], None) or Execution(r["id"], r["id"], r["time"])
    x.unread |= "full" in r
    if s.extensions:
        x.added.join(s.extensions.build(r))
    if "plan" in r:
        _understand(r, x, s)
    elif x.plan is not None and "after" in r:  # a table as the statement left it
        x.effect = ddl.statement(x.plan, x.before, r["after"].get("tables") or {}) or x.effect
    x.writes = _written(r)
    x.counts = x.writes[0] if x.writes else (None, None, None)
    x.versions = {names.path(where).identity: version for where, version in (r.get("versions") or {}).items()}
    x.scans = [each for each in r.get("metrics", []) if len(each) > 4]
    if r.get("logicalPlan"):
        x.run_facets["spark.logicalPlan"] = facets.logical_plan(r["logicalPlan"])
    error = r.get("error")
    if x.root != x.id or x.denied:
        return []  # folded into its root, or not to be told
    if error:
        s.errors = [*s.errors[-20:], (_first_line(error), r["time"])]
    if x.stream is not None:
        return _batch(r, x, s)
    if not error and not any(_says(each) or each.unread for each in (x, *x.nested)):
        return []
    out = [] if x.told else [finished(s, x, x.start, None, "START")]
    return [*out, finished(s, x, r["time"], error, "FAIL" if error else "COMPLETE")]


def _says(x: Execution) -> bool:
    """Whether it reads or writes anything."""
    return bool(x.effect and (x.effect.inputs or x.effect.outputs)) or x.added.names_datasets()


def _written(r: Record) -> list[Counts]:
    """Rows, bytes and files of each write: the write nodes of the plan, else what the stages wrote."""
    found: list[Counts] = [
        (each[1], each[3] if len(each) > 3 else None, each[2] if len(each) > 2 else None)
        for each in r.get("metrics", [])
        if _WRITERS.search(each[0])
    ]
    return found or ([(r["written"][0], r["written"][1], None)] if "written" in r else [])


def _batch(r: Record, x: Execution, s: State) -> list[Event]:
    """A micro-batch has ended: the stream goes on, and we know what it reads and writes."""
    stream = _stream_of(s, x.stream or "", x.start)
    inputs, outputs = folded(x)
    stream.inputs.update(inputs)
    for each in (x, *x.nested):
        stream.added.join(each.added)
        if each.effect:
            stream.unknown |= each.effect.unknown
            stream.missed |= dict.fromkeys(each.effect.missed)
    for out in outputs:
        have = stream.outputs.get(out.named.identity)
        if have is not None:  # a stream's counts are those of all its batches
            out.counts = added(have.counts, out.counts)
        stream.outputs[out.named.identity] = out
    if x.effect and x.effect.command:
        stream.command = x.effect.command
    if stream.ended or r.get("error"):
        return []
    return [*_opened(s, stream), streamed(s, stream, r["time"], "RUNNING")]


def _opened(s: State, stream: Stream) -> list[Event]:
    """The START of a stream, once: when it is known where it writes, or when it ends."""
    return [streamed(s, stream, stream.start, "START")] if stream.job is None else []


def _stream_of(s: State, run: str, at: int) -> Stream:
    if run not in s.streams:
        s.streams[run] = Stream(run_id(s, f"stream{run}", at), at)
    return s.streams[run]


def _stream_start(r: Record, s: State) -> list[Event]:
    stream = _stream_of(s, r["run"], r["time"])
    stream.name, stream.query = r.get("name"), r.get("query")
    return _opened(s, stream) if stream.name else []


def _stream_progress(r: Record, s: State) -> list[Event]:
    stream = _stream_of(s, r["run"], r["time"])
    stream.site = r.get("site") or stream.site
    if stream.ended or (not stream.outputs and not stream.inputs):
        return []
    progress = r.get("progress") or {}
    told = facets.facet(
        "headwater_stream",
        queryId=r.get("query"),
        queryRunId=r["run"],
        batchId=progress.get("batchId"),
        inputRows=progress.get("numInputRows"),
        sources=[
            {k: _clean(each.get(k)) for k in ("description", "startOffset", "endOffset", "numInputRows")}
            for each in progress.get("sources", [])
        ],
        sink={
            k: _clean(v)
            for k, v in (progress.get("sink") or {}).items()
            if k in ("description", "numOutputRows")
        },
    )
    return [*_opened(s, stream), streamed(s, stream, r["time"], "RUNNING", {"headwater_stream": told})]


def _clean(value: Any) -> Any:
    return scrub(value) if isinstance(value, str) else value


def _stream_end(r: Record, s: State) -> list[Event]:
    stream = _stream_of(s, r["run"], r["time"])
    if stream.ended:
        return []
    stream.ended, stream.site = True, r.get("site") or stream.site
    error = r.get("error")
    out = [*_opened(s, stream), streamed(s, stream, r["time"], "FAIL" if error else "COMPLETE", error=error)]
    if error:
        s.errors = [*s.errors[-20:], (_first_line(error), r["time"])]
    s.streams.pop(r["run"], None)
    return out


def _job_start(r: Record, s: State) -> list[Event]:
    """A job outside SQL: files under its RDD, the directory it commits to."""
    if not s.settings.rdd_events:
        return []
    inputs: dict[Identity, Schema] = {}
    for source in r.get("rdd", {}).get("sources", []):
        for identity in names.under_rdd(naming(s), source):
            s.named.setdefault(identity, Named(identity))
            inputs[identity] = names.read_of(source)
    outputs = [Output(names.path(r["path"]))] if r.get("path") else []
    number = -1 - r["id"]
    x = s.jobs[r["id"]] = Execution(number, number, r["time"], effect=Effect("rdd", inputs, outputs))
    x.added, x.site = s.beside.get(r["id"], x.added), r.get("site") or {}
    x.told = _says(x)
    return [finished(s, x, x.start, None, "START")] if x.told else []


def _job_end(r: Record, s: State) -> list[Event]:
    x, _ = s.jobs.pop(r["id"], None), s.beside.pop(r["id"], None)
    if x is None or not _says(x):
        return []
    x.counts = next(iter(_written(r)), (None, None, None))
    out = [] if x.told else [finished(s, x, x.start, None, "START")]
    return [*out, finished(s, x, r["time"], r.get("error"), "FAIL" if r.get("error") else "COMPLETE")]


def _beside(r: Record, s: State) -> list[Event]:
    """A job or a stage, for extensions: what they say of it belongs to the execution that runs it."""
    if r["kind"] == "x_job_start":
        s.owner[r["id"]] = r.get("execution")
    job = r["id"] if r["kind"] != "x_stage_end" else r.get("job")
    number = r.get("execution", s.owner.get(job) if job is not None else None)
    if r["kind"] == "x_job_end":
        s.owner.pop(r["id"], None)
    if number is None and job is not None:
        s.beside.setdefault(job, Added()).join(s.extensions.build(r))
    elif number in s.executions:
        s.executions[number].added.join(s.extensions.build(r))
    return []


def _lost(r: Record, s: State) -> list[Event]:
    s.lost += r["count"]
    return []


def _refused(r: Record, s: State) -> list[Event]:
    """An error that reached the driver program; one that an execution has told already is not told twice."""
    said = _first_line(r["error"])
    known = next(
        (each for each in s.errors if each[0] == said and abs(r["time"] - each[1]) < _SAME_ERROR), None
    )
    if known is not None:
        s.errors.remove(known)
        return []
    run = run_id(s, f"refused{r['time']}{r['error']}", r["time"])
    name = f"{s.app}.{facets.normalized(r.get('command', 'sql'))}"
    told = {"sql": facets.sql(r["sql"])} if r.get("sql") else {}
    return [
        event(
            s,
            kind,
            r["time"],
            run,
            name,
            "SQL_JOB",
            "BATCH",
            error=r["error"] if kind == "FAIL" else None,
            job_facets=told,
        )
        for kind in ("START", "FAIL")
    ]


_HANDLERS: dict[str, Callable[[Record, State], list[Event]]] = {
    "app_start": _app_start,
    "app_end": _app_end,
    "start": _start,
    "end": _end,
    "job_start": _job_start,
    "job_end": _job_end,
    "refused": _refused,
    "stream_start": _stream_start,
    "stream_progress": _stream_progress,
    "stream_end": _stream_end,
    "x_job_start": _beside,
    "x_stage_end": _beside,
    "x_job_end": _beside,
    "lost": _lost,
}


def _understand(r: Record, x: Execution, s: State) -> None:
    if "conf" in r:  # a session with other catalogs than before
        s.conf = {**s.conf, **{key: str(value) for key, value in scrub_mapping(r["conf"]).items()}}
    read, written, added = s.extensions.visit(r["plan"])
    for at, found in read.items():
        if not any(refs(value) for value in r["plan"][at].values()):  # of a leaf: its columns are theirs
            r["plan"][at]["named"] = [_named(each) for each in found]
    plan = Plan(r["plan"], Ground(s.sources, s.named, s.registry, s.frames, naming(s), s.settings.leaves))
    after = (r.get("after") or {}).get("tables") or {}
    x.plan = plan if ddl.statement(plan, r.get("tables") or {}, after) is not None else None
    x.before = r.get("tables") or {}
    x.effect = ddl.statement(plan, x.before, after) or effect(plan)
    if x.effect.command in s.settings.denied_commands:
        x.denied, x.effect, x.plan = True, None, None
        return
    for at, found in written.items():
        aim(plan, x.effect, at, [_named(each) for each in found])
    x.added.join(added)
    rel = x.effect.gives
    if rel is not None:
        for number, _ in rel.outs:
            s.registry[number] = (rel.env.get(number, NONE), rel.rows, rel.inputs)
            s.registry.move_to_end(number)
        while len(s.registry) > _REMEMBERED:
            s.registry.popitem(last=False)


def _named(found: Dataset) -> Named:
    return Named(Identity(found.namespace, found.name))


def _first_line(text: str) -> str:
    return (
        re.sub(r"^[\w.$]+(Exception|Error): ", "", text.strip()).split("\n", 1)[0].split(" SQLSTATE")[0][:200]
    )
