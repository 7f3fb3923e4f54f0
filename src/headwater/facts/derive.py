"""facts.derive: an event -> its rows. Pure: no clock, no store, no order.

Rows carry the identities that the event gave. A facet that is not understood is kept like any other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from headwater.event import TERMINAL, Dataset, Event, Facets, micros, run_uuid
from headwater.facts.contents import columns_of, digest_of, facet_of, identity, objects, schema_of, text, word
from headwater.facts.tables import Row, ref

RANK = {"START": 1, "OTHER": 2, "RUNNING": 3, "COMPLETE": 4, "ABORT": 5, "FAIL": 6}
"""Which state wins at equal times; it leads the stored value, so every engine compares it alike."""
FINAL = 1 << 61
"""Added to a terminal state's stamp: it outranks any other, whatever the clocks say."""
HEARSAY = -(1 << 61)
"""Added to the stamp of what a child run says of its parent: the parent's own word outranks it."""
SPOKEN = 1 << 61
"""Added to the stamp of what people say by hand: it outlives what events say."""
_MAX_ERROR = 2_000
_ABSENT = (b"null", b"")

Seen = dict[str, Any]
Told = dict[str, tuple[bytes, bytes]]
"""facet -> (digest, bytes)"""


def derive(event: Event) -> list[Row]:
    """One event -> its rows. Rows may share a mapping: whoever merges them copies it first."""
    rows: list[Row] = []
    seen = {"first_seen": event.time, "last_seen": event.time}
    if event.kind == "dataset":
        dataset, told = _dataset(rows, event, seen, event.dataset)  # type: ignore[arg-type]  # it has one
        _assertions(rows, event, dataset, told)
        schema = schema_of(*told["schema"]) if "schema" in told else None
        described = {"schema": (event.time, schema[0])} if schema is not None else {}
        rows.append(("described", (dataset, event.time), described))
        return rows
    job = ref(event.job.namespace, event.job.name)  # type: ignore[union-attr]  # the other kinds have a job
    _job(rows, event, seen, job)
    if event.kind == "run":
        _run(rows, event, seen, job)
    for direction, datasets in (("in", event.inputs), ("out", event.outputs)):
        for each in datasets:
            dataset, told = _dataset(rows, event, seen, each)
            rows.append(("edges", (job, direction, dataset), seen))
            if event.kind == "run":
                _io(rows, event, seen, direction, dataset, each, told)
            else:
                rows.append(("declared", (job, event.time, direction, dataset), {}))
                _assertions(rows, event, dataset, told)
            if direction == "out" and "columnLineage" in told:
                columns = columns_of(*told["columnLineage"])
                if columns is not None:
                    rows.append(("column_edges", (job, dataset, columns.fingerprint), seen))
    return rows


def _facets(rows: list[Row], seen: Seen, table: str, owner: tuple[Any, ...], facets: Facets | None) -> Told:
    told: Told = {}
    for name, value in facets.items() if facets else ():
        raw = bytes(value)
        if raw in _ABSENT:
            continue
        digest = digest_of(raw)
        told[name] = (digest, raw)
        rows.append((table, (*owner, word(name) or name, digest), seen))
        rows.append(("contents", (digest,), {"body": raw}))
    return told


def _job(rows: list[Row], event: Event, seen: Seen, job: str) -> None:
    row = dict(seen)
    told = _facets(rows, seen, "job_facets", (job,), event.job.facets)  # type: ignore[union-attr]
    if "jobType" in told:
        facet = facet_of(*told["jobType"])
        for column, field in (
            ("processing", "processingType"),
            ("integration", "integration"),
            ("kind", "jobType"),
        ):
            _say(row, column, event.time, text(facet.get(field)))
    _tags(rows, event, "job", job, told)
    rows.append(("jobs", (job,), row))


def _run(rows: list[Row], event: Event, seen: Seen, job: str) -> None:
    run, at, final = event.run_id, event.time, event.type in TERMINAL
    row = dict(seen)
    row["job"] = (at, job)
    row["state"] = (at + FINAL if final else at, f"{RANK[event.type]} {event.type}")
    if event.producer:
        row["producer"] = (at, text(event.producer))
    if event.type == "START":
        row["started_at"] = at
    if final:
        row["ended_at"] = at
    told = _facets(rows, seen, "run_facets", (run,), event.run_facets)
    for name, read in _RUN_FACETS.items():
        if name in told:
            read(rows, row, event, job, facet_of(*told[name]))
    rows.append(("runs", (run,), row))


def _parent(rows: list[Row], row: dict[str, Any], event: Event, job: str, facet: dict[str, Any]) -> None:
    """The run and job that this run says it belongs to; they exist from then on."""
    of_job: dict[str, Any] = {}
    for column, value in (("parent", facet), ("root", facet.get("root"))):
        if not isinstance(value, dict):
            continue
        about, owner = value.get("run"), identity(value.get("job"))
        run = text(about.get("runId")) if isinstance(about, dict) else None
        if run is None or run_uuid(run) == event.run_id:
            continue
        row[column] = (event.time, run_uuid(run))
        theirs: dict[str, Any] = {"first_seen": event.time, "last_seen": event.time}
        if column == "parent":
            _nominal(
                rows, theirs, event, job, _nominal_facet(event), HEARSAY
            )  # of an Airflow task: its DAG run's
        if owner is not None:
            theirs["job"] = (event.time + HEARSAY, owner)
            if owner != job:
                of_job[column] = (event.time, owner)
            rows.append(("jobs", (owner,), {"first_seen": event.time, "last_seen": event.time}))
        rows.append(("runs", (run_uuid(run),), theirs))
    if of_job:
        rows.append(("jobs", (job,), of_job))


def _nominal_facet(event: Event) -> dict[str, Any]:
    raw = bytes((event.run_facets or {}).get("nominalTime", b""))
    return facet_of(digest_of(raw), raw) if raw else {}


def _nominal(
    rows: list[Row], row: dict[str, Any], event: Event, job: str, facet: dict[str, Any], shift: int = 0
) -> None:
    for column, field in (("nominal_start", "nominalStartTime"), ("nominal_end", "nominalEndTime")):
        try:
            _say(row, column, event.time + shift, micros(facet[field]))
        except (KeyError, AttributeError, ValueError, OverflowError):
            continue  # a time that is none: the facet keeps it


def _error(rows: list[Row], row: dict[str, Any], event: Event, job: str, facet: dict[str, Any]) -> None:
    message = text(facet.get("message"))
    _say(row, "error", event.time, message and message[:_MAX_ERROR])


def _tests(rows: list[Row], row: dict[str, Any], event: Event, job: str, facet: dict[str, Any]) -> None:
    """Tests that the run tells of by themselves; one that was skipped has not ended either way."""
    ended: Checks = {}
    for each in objects(facet.get("tests")):
        test, status = word(each.get("name")), (text(each.get("status")) or "").lower()
        if test is not None and status not in ("skip", "skipped"):
            _count_check(ended, (test,), each, status in _PASSED)
    for key, (each, passed) in ended.items():
        told = {"first_seen": event.time, "last_seen": event.time}
        rows.append(("tests", (event.run_id, *key), _ended(told, event.time, each, passed)))


_PASSED = ("pass", "passed", "success")


_RUN_FACETS: dict[str, Callable[[list[Row], dict[str, Any], Event, str, dict[str, Any]], None]] = {
    "parentRun": _parent,  # the name in the first spec versions; `parent` comes later and wins
    "parent": _parent,
    "nominalTime": _nominal,
    "errorMessage": _error,
    "test": _tests,
}


def _dataset(rows: list[Row], event: Event, seen: Seen, each: Dataset) -> tuple[str, Told]:
    """The dataset itself: what is true of it whoever reads or writes it."""
    dataset, at = ref(each.namespace, each.name), event.time
    row = dict(seen)
    told = _facets(rows, seen, "dataset_facets", (dataset,), each.facets)
    if "schema" in told and (found := schema_of(*told["schema"])) is not None:
        schema, body = found
        rows.append(("schemas", (dataset, schema), seen))
        rows.append(("contents", (schema,), {"body": body}))
    if "columnLineage" in told:
        _column_sources(rows, told["columnLineage"])
    if "symlinks" in told:
        for link in objects(facet_of(*told["symlinks"]).get("identifiers")):
            alias = identity(link)
            if alias is not None and alias != dataset and link.get("type") != "FORMER":
                rows.append(("symlinks", (dataset, alias, word(link.get("type")) or ""), seen))
    for name, field, column in _DATASET_COLUMNS:
        if name in told:
            _say(row, column, at, text(facet_of(*told[name]).get(field)))
    _tags(rows, event, "dataset", dataset, told)
    rows.append(("datasets", (dataset,), row))
    return dataset, told


_DATASET_COLUMNS = (
    ("datasetType", "datasetType", "kind"),
    ("dataSource", "name", "source"),
    ("lifecycleStateChange", "lifecycleStateChange", "lifecycle"),
)


def _column_sources(rows: list[Row], facet: tuple[bytes, bytes]) -> None:
    columns = columns_of(*facet)
    if columns is None:
        return
    rows.append(("contents", (columns.fingerprint,), {"body": columns.body}))
    for source in columns.sources:
        rows.append(("column_sources", (columns.fingerprint, source), {}))


def _io(
    rows: list[Row], event: Event, seen: Seen, direction: str, dataset: str, each: Dataset, told: Told
) -> None:
    """What this run read or wrote of it: counts, versions, schema, checks."""
    run, at = event.run_id, event.time
    row = dict(seen)
    own = each.inputFacets if direction == "in" else each.outputFacets
    more = _facets(rows, seen, "io_facets", (run, direction, dataset), own)
    every = told | more
    for name, fields in _COUNTS[direction]:
        if name in every:
            facet = facet_of(*every[name])
            for field, column in fields:
                _say(row, column, at, _count(facet.get(field)))
    if "version" in told:
        _say(row, "version", at, text(facet_of(*told["version"]).get("datasetVersion")))
    if "schema" in told and (found := schema_of(*told["schema"])) is not None:
        schema = found[0]
        row["schema"] = (at, schema)
        if direction == "out":
            rows.append(("schemas", (dataset, schema), {"first_written": at, "last_written": at}))
    if direction == "out":
        if "lifecycleStateChange" in told:
            _say(
                row,
                "lifecycle",
                at,
                text(facet_of(*told["lifecycleStateChange"]).get("lifecycleStateChange")),
            )
        if "columnLineage" in told and (columns := columns_of(*told["columnLineage"])) is not None:
            row["columns"] = (at, columns.fingerprint)
    _assertions(rows, event, dataset, every)
    rows.append(("inputs" if direction == "in" else "outputs", (run, dataset), row))


_STATISTICS = (("rowCount", "rows"), ("size", "bytes"), ("fileCount", "files"))
_COUNTS: dict[str, tuple[tuple[str, tuple[tuple[str, str], ...]], ...]] = {
    "in": (
        ("dataQualityMetrics", (("rowCount", "rows"), ("bytes", "bytes"), ("fileCount", "files"))),
        ("inputStatistics", _STATISTICS),
    ),
    "out": (("outputStatistics", _STATISTICS),),
}


_CHECKS = (("dataQualityAssertions", "assertion"), ("greatExpectations_assertions", "expectationType"))


def _assertions(rows: list[Row], event: Event, dataset: str, facets: Told) -> None:
    """The checks of a dataset, wherever they stand: in its own facets or in those of an input or output."""
    ended: Checks = {}
    for name, field in _CHECKS:
        for each in objects(facet_of(*facets[name]).get("assertions")) if name in facets else ():
            test = word(each.get("name")) or word(each.get(field)) or ""
            passed = each.get("success") is True  # what does not say that it passed has failed
            if passed or not _skipped(event):
                _count_check(ended, (test, word(each.get("column")) or ""), each, passed)
    for key, (each, passed) in ended.items():
        if event.kind == "run":
            told = {"first_seen": event.time, "last_seen": event.time}
            rows.append(("assertions", (event.run_id, dataset, *key), _ended(told, event.time, each, passed)))
        else:
            told = _ended({}, event.time, each, passed)
            told["failed"] = int(not passed)
            rows.append(("checks", (dataset, event.time, *key), told))


Checks = dict[tuple[str, ...], tuple[dict[str, Any], bool]]
"""test, and column -> what was told of it, and whether it passed"""


def _count_check(ended: Checks, key: tuple[str, ...], told: dict[str, Any], passed: bool) -> None:
    """Of two checks of one name in one event the one that failed counts, with its own words, not with those of the other."""
    if key not in ended or not passed:
        ended[key] = (told, passed)


def _skipped(event: Event) -> bool:
    """Whether the run is that of a test, and ended before it: dbt tells a test that it skips as failed, and its run as aborted."""
    raw = event.job.facets.get("jobType") if event.job is not None and event.job.facets else None
    if event.type != "ABORT" or raw is None or bytes(raw) in _ABSENT:
        return False
    return text(facet_of(digest_of(bytes(raw)), bytes(raw)).get("jobType")) == "TEST"


def _ended(row: dict[str, Any], at: int, told: dict[str, Any], passed: bool) -> dict[str, Any]:
    """How a check ended; at equal times a failure is what counts."""
    row["failed"] = (at, int(not passed))
    row["details"] = (at, msgspec.json.encode(told, order="sorted").decode())
    _say(row, "severity", at, text(told.get("severity")))
    return row


def _tags(rows: list[Row], event: Event, kind: str, owner: str, told: Told) -> None:
    if "tags" not in told:
        return
    for each in objects(facet_of(*told["tags"]).get("tags")):
        tag = word(each.get("key"))
        if tag is None:
            continue
        row: dict[str, Any] = {"live": (event.time, 1)}
        _say(row, "value", event.time, text(each.get("value")))
        _say(row, "source", event.time, text(each.get("source")))
        rows.append(("tags", (kind, owner, word(each.get("field")) or "", tag), row))


def _say(row: dict[str, Any], column: str, at: int, value: Any) -> None:
    if value is not None:
        row[column] = (at, value)


def _count(value: Any) -> int | None:
    """A number of rows or bytes; some producers write it as 1.0E7."""
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or value != value
        or abs(value) >= 1 << 63
    ):
        return None
    return int(value)
