"""capture.spark.telling: an execution or a stream, and its state -> an OpenLineage event."""

from __future__ import annotations

import hashlib
import re
import uuid
from dataclasses import replace
from typing import Any

from headwater.capture.spark import facets, names
from headwater.capture.spark.extending import Added
from headwater.capture.spark.relation import Schema
from headwater.capture.spark.state import Event, Execution, State, Stream, naming, shown
from headwater.capture.spark.writes import Effect, Output, merged
from headwater.event import SPEC
from headwater.naming import Identity


def folded(x: Execution) -> tuple[dict[Identity, Schema], list[Output]]:
    """A root that names its outputs is believed; what it started then only counts, and tells where the table lies."""
    own = x.effect or Effect("")
    counted = [each.counts for each in (x, *x.nested) if each.counts[0] is not None]
    if own.outputs:
        inner = [out for each in x.nested if each.effect for out in each.effect.outputs]
        best = next(
            (counts for counts in counted if counts[0]), counted[0] if counted else (None, None, None)
        )
        several = x.writes if len(own.outputs) > 1 and len(x.writes) == len(own.outputs) else None
        for at, out in enumerate(own.outputs):
            out.counts = several[at] if several else best
            for other in inner:
                if other.named.identity != out.named.identity and _called(other) & _called(out):
                    out.named = other.named
        outputs = merged(own.outputs)
        for out in () if several else outputs:
            out.counts = best
        return own.inputs, outputs
    inputs, outputs = dict(own.inputs), []
    for each in x.nested:
        if each.effect:
            inputs.update(each.effect.inputs)
            for out in each.effect.outputs:
                out.counts = each.counts
                outputs.append(out)
    return inputs, merged(outputs)


def _called(out: Output) -> set[tuple[str, str]]:
    """The names of a table in its catalog; one that has no place yet is called nothing else."""
    links = {link[:2] for link in out.named.symlinks}
    return links if out.named.placed else {*links, (out.named.identity.namespace, out.named.identity.name)}


def run_id(s: State, key: str, ms: int) -> str:
    """A UUIDv7 whose random part is a digest: the same record gives the same run."""
    digest = int.from_bytes(hashlib.sha256(f"{s.run}{key}".encode()).digest()[:10], "big")
    number = (
        (ms & (1 << 48) - 1) << 80 | 7 << 76 | (digest >> 68 & 0xFFF) << 64 | 2 << 62 | digest & (1 << 62) - 1
    )
    return str(uuid.UUID(int=number))


def job_name(s: State, command: str, outputs: list[Output]) -> str:
    """`{app}.{command}.{table or directory}`, as the JVM agent names jobs."""
    suffix = ""
    if outputs and s.settings.append_dataset_name:
        named = outputs[0].named
        table = next((name for _, name, kind in named.symlinks if kind == "TABLE"), None)
        parts = (
            table.split(".")[-2:]
            if table
            else re.split(r"[/.]", shown(s).of(named.identity).name.strip("/"))[-2:]
        )
        suffix = "." + "_".join(facets.normalized(part) for part in parts if part)
    return f"{s.app}.{facets.normalized(command)}{suffix}"


def finished(s: State, x: Execution, ms: int, error: str | None, kind: str) -> Event:
    """An event of an execution with all that it started; `kind` START tells names and schemas, an end everything."""
    inputs, outputs = folded(x)
    whole = kind != "START"
    if not whole:  # an end may know where the table lies, and one dataset has one name
        outputs = [out for out in outputs if out.named.placed]
    versions = {identity: version for each in (*x.nested, x) for identity, version in each.versions.items()}
    for out in outputs:  # what a table was before is not what it is now
        out.named = replace(out.named, version=versions.get(out.named.identity))
    command = x.effect.command if x.effect and x.effect.command else "execution"
    x.job = x.job or job_name(s, command, outputs)
    told: dict[str, Any] = {"sql": facets.sql(x.sql)} if x.sql else {}
    told |= facets.located(x.site)
    run_facets: dict[str, Any] = dict(x.run_facets)
    done = [each.effect for each in (x, *x.nested) if each.effect]
    left_out = [text for each in done for text in each.missed] if whole else []
    left_out += facets.too_wide(outputs, s.settings) if whole else []
    if any(each.unread for each in (x, *x.nested)):
        left_out.append("the queue was full: the plan was left behind")
    run_facets |= facets.unknown({name for each in done for name in each.unknown})
    run_facets |= facets.degraded(*left_out)
    added = together(x)
    return event(
        s,
        kind,
        ms,
        run_id(s, str(x.id), x.start),
        x.job,
        "SQL_JOB" if x.id >= 0 else "RDD_JOB",
        "BATCH",
        added.onto(
            "inputs",
            [
                facets.read(
                    identity, schema, s.named.get(identity), scanned(s, x, identity) if whole else None
                )
                for identity, schema in inputs.items()
            ],
        ),
        added.onto("outputs", [facets.written(out, s.settings, whole=whole) for out in outputs]),
        error=error,
        job_facets={**told, **added.facets.get("job_facets", {})},
        run_facets={**run_facets, **added.of_run()},
    )


def together(x: Execution) -> Added:
    """What extensions added to an execution and to what it started."""
    if not x.nested:
        return x.added
    out = Added()
    for each in (*x.nested, x):
        out.join(each.added)
    return out


def scanned(s: State, x: Execution, identity: Identity) -> tuple[int | None, ...] | None:
    """What scans of this dataset read, where each scan says what it scanned."""
    found: tuple[Any, ...] | None = None
    for each in (one for execution in (x, *x.nested) for one in execution.scans):
        places = _places(s, each[4])
        # what several datasets gave together cannot be shared out; parts of one are told as one
        if identity in places[:1] and len({shown(s).of(place) for place in places}) == 1:
            rows, files, size = each[1], each[2], each[3]
            found = (
                (rows, size, files)
                if found is None
                else tuple((a or 0) + (b or 0) for a, b in zip(found, (rows, size, files), strict=True))
            )
    return found


def _places(s: State, where: Any) -> list[Identity]:
    """What a scan says it scanned: paths, a table with a location, or a relation that names its one dataset."""
    if isinstance(where, dict) and where.get("t") == "relation":
        found, query = names.leaf(naming(s), {"n": "LogicalRelation", "relation": where})
        return [each.identity for each in found] if query is None and len(found) == 1 else []
    if isinstance(where, dict):
        where = [where.get("location") or (where.get("properties") or {}).get("location")]
    paths = [each for each in where or () if isinstance(each, str)]
    return [names.path(naming(s).above(each)).identity for each in paths]


def streamed(
    s: State,
    x: Stream,
    ms: int,
    kind: str,
    run_facets: dict[str, Any] | None = None,
    error: str | None = None,
) -> Event:
    """An event of a streaming query: a whole snapshot each time, so that no consumer takes a gap for an end."""
    outputs = list(x.outputs.values())
    if x.job is None:
        named = f"{s.app}.{facets.normalized(x.name)}" if x.name else None
        x.job = named or job_name(s, x.command, outputs)
    return event(
        s, kind, ms, x.run, x.job, "SQL_JOB", "STREAMING",
        x.added.onto("inputs", [facets.read(identity, schema, s.named.get(identity), None) for identity, schema in x.inputs.items()]),
        x.added.onto("outputs", [facets.written(out, s.settings, whole=kind != "START") for out in outputs]),
        error=error, job_facets={**facets.located(x.site), **x.added.facets.get("job_facets", {})},
        run_facets={
            **facets.unknown(x.unknown), **facets.degraded(*x.missed, *facets.too_wide(outputs, s.settings)),
            **(run_facets or {}), **x.added.of_run(),
        },
    )  # fmt: skip


def lasts(s: State, run: str) -> bool:
    """Whether a run may last so long that its process may well die before: the application, a streaming query."""
    return run == s.run or any(each.run == run for each in s.streams.values())


def abort(start: Event) -> Event:
    """The end of a run whose process dies before it can tell another."""
    run = {**start["run"], "facets": dict(start["run"]["facets"])}
    run["facets"]["errorMessage"] = facets.error_message(
        "the driver died before it could tell how the run ended"
    )
    return {**start, "eventType": "ABORT", "run": run}


def event(
    s: State,
    kind: str,
    ms: int,
    run: str,
    job: str,
    job_type: str,
    processing: str,
    inputs: list[dict[str, Any]] | None = None,
    outputs: list[dict[str, Any]] | None = None,
    *,
    error: str | None = None,
    job_facets: dict[str, Any] | None = None,
    run_facets: dict[str, Any] | None = None,
) -> Event:
    """An event with the facets that every run and job of the application has."""
    told: dict[str, Any] = {
        "processing_engine": facets.facet("processing_engine", name="spark", version=s.version or "unknown")
    }
    if run != s.run:
        root = s.root or s.parent or {"run": s.run, "namespace": s.namespace, "name": s.app}
        told["parent"] = facets.parent(s.run, s.namespace, s.app, root)
    elif s.parent:
        told["parent"] = facets.parent(
            s.parent["run"], s.parent["namespace"], s.parent["name"], s.root or s.parent
        )
    if error:
        told["errorMessage"] = facets.error_message(error)
    if kind == "START":
        told.update(s.common)
    told.update(run_facets or {})
    of_job = {"jobType": facets.job_type(job_type, processing), **(job_facets or {})}
    if s.settings.run_tags:
        told["tags"] = facets.tags("Run", s.settings.run_tags)
    if s.settings.job_tags:
        of_job["tags"] = facets.tags("Job", s.settings.job_tags)
    if s.settings.owners:
        owners = [{"name": name, "type": kind} for kind, name in s.settings.owners.items()]
        of_job["ownership"] = facets.facet("ownership", owners=owners)
    whole = {
        "eventType": kind,
        "eventTime": facets.stamp(ms),
        "producer": facets.PRODUCER,
        "schemaURL": f"{SPEC}#/$defs/RunEvent",
        "run": {"runId": run, "facets": told},
        "job": {
            "namespace": s.namespace,
            "name": job.replace(".", "_") if s.settings.replace_dots else job,
            "facets": of_job,
        },
        "inputs": inputs or [],
        "outputs": outputs or [],
    }
    return facets.without(shown(s).told(whole), s.settings.disabled_facets)
