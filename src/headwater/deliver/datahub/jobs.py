"""deliver.datahub.jobs: a job as an event names it -> its orchestrator, the names of its flow and of itself, its run group."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from headwater.deliver.datahub.facets import SYMLINKS, Engine, JobType, Parent, Reader
from headwater.deliver.datahub.options import Fixes, Options
from headwater.errors import EventError
from headwater.event import Dataset, Event, Job, run_uuid

_OPENLINEAGE = re.compile(r"https://github\.com/OpenLineage/OpenLineage/.*/(.*)", re.DOTALL).fullmatch
_PREFIXES = {
    "https://github.com/apache/airflow/": "airflow",
    "https://github.com/trinodb/trino/": "trino",
}
_MERGE = "execute_merge_into_command_edge"
_RDD = tuple(
    f"{step}_{source}"
    for step in ("map", "map_partitions", "flatmap", "filter", "distinct")
    for source in ("parallel_collection", "text_file", "hadoopfile")
)
_ROOTS = frozenset({"APPLICATION", "DAG"})
_INSIDE = frozenset({"SQL_JOB", "RDD_JOB", "TASK", "MODEL", "TEST", "SEED", "SNAPSHOT"})


class Names(NamedTuple):
    """What a job is called."""

    orchestrator: str
    flow: str
    cluster: str
    job: str
    title: str
    """What people read."""


def orchestrator_of(
    producer: str, engine: Engine | None, kind: JobType | None, options: Options, fixes: Fixes
) -> str:
    """Who ran it.

    Raises:
        EventError: nobody can tell, and guessing is switched off.

    """
    if options.orchestrator:
        return options.orchestrator
    if engine is not None and engine.name:
        said = engine.name.lower()
        return said.replace(" ", "-") if fixes.guess_orchestrator else said  # DataHub knows `kafka-connect`
    found = _OPENLINEAGE(producer)
    if found and (found[1] or not fixes.guess_orchestrator):
        return found[1]
    for prefix, name in _PREFIXES.items():
        if producer.startswith(prefix):
            return name
    if not fixes.guess_orchestrator:
        raise EventError("producer", "Unable to determine orchestrator")
    if kind is not None and kind.integration and kind.integration.strip():
        return kind.integration.strip().lower()
    words = [word for word in re.split(r"[/?#]", producer.partition("://")[2] or producer) if word.strip()]
    last = words[-1].strip().lower() if words else ""
    return last if re.fullmatch(r"[a-z][a-z0-9_\-.]*", last) else options.default_orchestrator


def names_of(event: Event, orchestrator: str, query: str | None, options: Options, reader: Reader) -> Names:
    """The names of a flow and a job."""
    job = event.job
    assert job is not None  # whoever asks has one
    flow = options.pipeline_name or job.name.partition(".")[0]
    cluster = options.platform_instance or job.namespace
    name = job.name
    if options.merge_into and _MERGE in name:
        target = _merged(query, event.outputs, reader)
        if target:
            name = f"{name}.{re.sub('[. ]', '_', target.lower())}"
    title = name.partition(".")[2] or name if "." in name else name
    return Names(orchestrator, flow, cluster, name, title)


def _merged(query: str | None, outputs: Sequence[Dataset], reader: Reader) -> str | None:
    """The target of a MERGE INTO: as its SQL says, else an output's name, symlink or path."""
    for line in (query or "").split("\n"):
        if line.strip().upper().startswith("MERGE INTO"):
            words = line.split()
            if len(words) > 2:
                return words[2].replace("`", "")
    for each in outputs:
        if "." in each.name and not each.name.startswith("/"):
            return each.name
    for each in outputs:
        links = reader.read(each.facets, "symlinks", SYMLINKS)
        for link in (links.identifiers if links else None) or ():
            if link.type == "TABLE" and link.name:
                name = link.name
                return name.removeprefix("table/").replace("/", ".") if name.startswith("table/") else name
    for each in outputs:
        if "/warehouse/" in each.name and ".db/" in each.name:
            tail = each.name.rpartition("/warehouse/")[2]
            database, _, table = tail.rpartition(".db/")
            return f"{database}.{table.rstrip('/')}"
    return None


def only_reads(event: Event, kind: JobType | None, spark: bool) -> bool:
    """Whether an RDD job wrote nothing, though its outputs repeat its inputs."""
    job = event.job
    if not spark or job is None or kind is None or kind.jobType != "RDD_JOB" or not job.name.endswith(_RDD):
        return False
    inputs, outputs = event.inputs, event.outputs
    return (
        bool(inputs)
        and len(inputs) == len(outputs)
        and {each.name for each in inputs} == {each.name for each in outputs}
    )


def group_of(job: Job, run_id: str, kind: JobType | None, parent: Parent | None, orchestrator: str) -> str:
    """The run that a run is part of: the application or the DAG run, never the orchestrator above an application."""
    what = (kind.jobType or "").upper() if kind is not None else ""
    told = parent.run.runId if parent is not None and parent.run is not None else None
    above = run_uuid(told) if told else None
    if not above or what in _ROOTS:
        return run_id
    of = parent.job if parent is not None else None
    if of is None or of.name is None or of.namespace is None:
        return run_id
    within = job.name == of.name or job.name.startswith(f"{of.name}.")
    if of.namespace == job.namespace and (within or (what in _INSIDE and orchestrator != "spark")):
        return above
    # Spark's own children name the application; what an orchestrator injected is above the application
    return above if what in ("SQL_JOB", "RDD_JOB") and of.namespace == job.namespace else run_id
