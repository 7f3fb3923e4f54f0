"""Events of a program -> what is wrong with them, against what stands with the program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from programs import Program

Event = dict[str, Any]
TERMINAL = ("COMPLETE", "FAIL", "ABORT")


def place(short: str, root: str) -> tuple[str, str]:
    """A dataset as programs write it -> its whole identity; `namespace|name` is one already."""
    if "|" in short:
        namespace, name = short.split("|", 1)
        return namespace, name
    if short.startswith("view:"):
        return f"file:{root}/warehouse", short.removeprefix("view:")
    database, dot, table = short.partition(".")
    if dot and "/" not in short:
        return "file", f"{root}/warehouse/{database}.db/{table}"
    return "file", f"{root}/{short}"


def column(short: str, root: str) -> tuple[str, str, str]:
    dataset, name = short.rsplit(":", 1)
    return (*place(dataset, root), name)


def identity(dataset: dict[str, Any]) -> tuple[str, str]:
    return dataset["namespace"], dataset["name"]


def ends(events: list[Event]) -> list[Event]:
    """The last event of each run that is not the application's."""
    return [
        each
        for each in events
        if each["eventType"] in TERMINAL and each["job"]["facets"]["jobType"]["jobType"] != "APPLICATION"
    ]


def lifecycle(events: list[Event]) -> Iterator[str]:
    """Each run starts once, ends at most once, and says nothing after its end; a run has one job."""
    starts: Counter[str] = Counter()
    over: set[str] = set()
    jobs: dict[str, tuple[str, str]] = {}
    for each in events:
        run = each["run"]["runId"]
        if each["eventType"] == "START":
            starts[run] += 1
        elif not starts[run]:
            yield f"{each['job']['name']}: {each['eventType']} before START"
        if run in over:
            yield f"{each['job']['name']}: {each['eventType']} after the end"
        if each["eventType"] in TERMINAL:
            over.add(run)
        job = jobs.setdefault(run, identity(each["job"]))
        if job != identity(each["job"]):
            yield f"one run, two jobs: {job[1]} and {each['job']['name']}"
    yield from (f"run {run} started {n} times" for run, n in starts.items() if n != 1)


def _lineage(output: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = output.get("facets", {}).get("columnLineage", {})
    return found


def _sources(fields: list[dict[str, Any]], kind: str) -> set[tuple[str, str, str]]:
    return {
        (each["namespace"], each["name"], each["field"])
        for each in fields
        if any(how["type"] == kind for how in each["transformations"])
    }


def compare(program: Program, events: list[Event], root: str, version: str) -> Iterator[str]:
    """Everything that differs; `version` of Spark as 4.1."""
    yield from lifecycle(events)
    told = ends(events)
    states = tuple(sorted(each["eventType"] for each in told))
    wanted = tuple(sorted(program.ends_on.get(version, program.ends)))
    if states != wanted:
        yield f"ends: {states}, not {wanted}"
    inputs = {identity(each) for event in told for each in event["inputs"]}
    yield from _differ("inputs", inputs, {place(each, root) for each in program.inputs.split()})
    outputs = [each for event in told for each in event["outputs"]]
    yield from _differ(
        "outputs", {identity(each) for each in outputs}, {place(o, root) for o in program.outputs}
    )
    for short in program.outputs:
        found = [each for each in outputs if identity(each) == place(short, root)]
        if found:
            yield from _output(program, short, found, root)
    for short, rows in program.read.items():
        counts = {
            each.get("inputFacets", {}).get("inputStatistics", {}).get("rowCount")
            for event in told
            for each in event["inputs"]
            if identity(each) == place(short, root)
        }
        yield from _differ(f"rows read of {short}", counts, {rows})
    if program.error:
        texts = [str(event["run"]["facets"].get("errorMessage", {}).get("stackTrace")) for event in told]
        if not any(program.error in text for text in texts):
            yield f"no error says {program.error!r}: {[text[:200] for text in texts]}"


def _output(program: Program, short: str, found: list[dict[str, Any]], root: str) -> Iterator[str]:
    fields: dict[str, list[dict[str, Any]]] = {}
    indirect: set[tuple[str, str, str]] = set()
    for each in found:
        lineage = _lineage(each)
        indirect |= _sources(lineage.get("dataset", []), "INDIRECT")
        for name, told in lineage.get("fields", {}).items():
            fields[name] = told["inputFields"]
            indirect |= _sources(told["inputFields"], "INDIRECT")
    direct = {(name, source) for name, told in fields.items() for source in _sources(told, "DIRECT")}
    wanted = {
        (name, column(source, root))
        for name, sources in program.outputs[short].items()
        for source in sources.split()
    }
    yield from _differ(f"{short}: direct", direct, wanted)
    yield from _differ(
        f"{short}: indirect",
        indirect,
        {column(each, root) for each in program.indirect.get(short, "").split()},
    )
    if program.outputs[short]:
        names = {
            each["name"] for output in found for each in output["facets"].get("schema", {}).get("fields", [])
        }
        yield from _differ(f"{short}: schema", names, set(program.outputs[short]))
    hidden = {
        name
        for name, told in fields.items()
        if any(how["masking"] for each in told for how in each["transformations"])
    }
    yield from _differ(f"{short}: masked", hidden, set(program.masked.get(short, "").split()))
    for name, kinds in program.kinds.items():
        dataset, _, field = name.rpartition(":")
        if dataset == short:
            hows = [how for each in fields.get(field, []) for how in each["transformations"]]
            yield from _differ(
                f"{name}: kinds",
                {how["subtype"] for how in hows if how["type"] == "DIRECT"},
                set(kinds.split()),
            )
    counts = {each.get("outputFacets", {}).get("outputStatistics", {}).get("rowCount") for each in found} - {
        None
    }
    if short in program.rows:
        yield from _differ(f"{short}: rows", counts, {program.rows[short]})
    changes = {
        each["facets"]["lifecycleStateChange"]["lifecycleStateChange"]
        for each in found
        if "lifecycleStateChange" in each["facets"]
    }
    yield from _differ(f"{short}: changes", changes, set(program.changes.get(short, "").split()))


def _differ(what: str, found: set[Any], wanted: set[Any]) -> Iterator[str]:
    if found - wanted:
        yield f"{what}: too much {sorted(map(str, found - wanted))}"
    if wanted - found:
        yield f"{what}: missing {sorted(map(str, wanted - found))}"
