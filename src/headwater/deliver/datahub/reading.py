"""deliver.datahub.reading: an event -> what it tells DataHub, with the stamp of the event on each part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from headwater.deliver.datahub import facets as of
from headwater.deliver.datahub import properties
from headwater.deliver.datahub.datasets import Datasets
from headwater.deliver.datahub.facets import Reader
from headwater.deliver.datahub.fields import all_fields, java_fields
from headwater.deliver.datahub.jobs import group_of, names_of, only_reads, orchestrator_of
from headwater.deliver.datahub.measures import operation_of, profile_of
from headwater.deliver.datahub.options import Options
from headwater.deliver.datahub.told import RANK, Column, First, Schema, Seen, Stamp, Told
from headwater.deliver.datahub.urns import Urns, owner, platform_of
from headwater.errors import EventError
from headwater.event import TERMINAL, Dataset, Event, run_uuid

_OWNERS = frozenset(
    [
        "TECHNICAL_OWNER",
        "BUSINESS_OWNER",
        "DATA_STEWARD",
        "DATAOWNER",
        "DEVELOPER",
        "PRODUCER",
        "CONSUMER",
        "STAKEHOLDER",
        "DELEGATE",
    ]
)
_KEPT = 5_000
"""Schemas remembered."""


class _Strict(msgspec.Struct):
    run: of.RunId | None = None
    eventType: str | None = None  # noqa: N815 - the wire's own names


_strict = msgspec.json.Decoder(_Strict).decode


class Reading:
    """Reads events as one configuration says. It remembers names and schemas, and is not shared by threads."""

    def __init__(self, options: Options) -> None:
        self.options, self.fixes = options, options.mended()
        self.urns = Urns(encode=self.fixes.encode_urns)
        self.datasets = Datasets(options, self.fixes, self.urns)
        self._schemas: dict[bytes, tuple[list[dict[str, Any]], str] | None] = {}

    def read(self, event: Event, notes: list[str] | None = None) -> Told:
        """What an event tells; `notes` takes what of it could not be read.

        Raises:
            EventError: only with fixes switched off: what the Java converter refuses, too.

        """
        reader = Reader()
        stamp: Stamp = (event.time, RANK[event.type], event.run_id or "", event.digest)
        if event.kind == "run":
            told = self._run(event, stamp, reader)
        elif not self.fixes.all_events:
            raise EventError("run", "is not there: only run events are converted")
        elif event.kind == "job":
            told = self._job(event, stamp, reader)
        else:
            told = self._dataset(event, stamp, reader)
        if notes is not None:
            notes.extend(reader.notes)
        return told

    def _run(self, event: Event, stamp: Stamp, reader: Reader) -> Told:
        self._check_strictly(event)
        told = self._job(event, stamp, reader, "run")
        assert told.names is not None
        assert event.job is not None
        assert event.run_id is not None
        facets, run_id = event.run_facets, event.run_id
        kind = reader.read(event.job.facets, "jobType", of.JOB_TYPE)
        parent = reader.read(facets, "parent", of.PARENT)
        told.group = group_of(event.job, run_id, kind, parent, told.names[1].orchestrator)
        told.run, told.named = (stamp, run_id), (told.time, stamp, run_id)
        told.streaming = kind is not None and (kind.processingType or "").upper() == "STREAMING"
        if event.type in TERMINAL:
            told.ended, ended = told.time, (stamp, (told.time, event.type))
            if event.type == "COMPLETE":
                told.succeeded = ended
            else:
                told.failed = ended
            told.complete = run_id == told.group
        elif event.type in ("START", "RUNNING"):
            told.started = told.time
        elif not self.fixes.skip_other_runs:
            told.succeeded = (stamp, (told.time, event.type))
        if parent is not None:
            told.parent = self._parent(parent, stamp)
        told.run_properties = {name: (stamp, text) for name, text in self._of_run(facets, reader)}
        told.application = {name: (stamp, text) for name, text in _application(facets, reader)}
        return told

    def _parent(self, parent: of.Parent, stamp: Stamp) -> First | None:
        """The run that started this one."""
        above = parent.run.runId if parent.run is not None else None
        job = parent.job if parent.job is not None and parent.job.namespace and parent.job.name else None
        runs = orchestrator_of(parent.producer or "", None, None, self.options, self.fixes) if job else ""
        if not self.fixes.parent_instances or not above:
            return None
        urn = None
        if job is not None and job.name is not None and job.namespace is not None:
            flow = self.urns.flow(runs, job.name.partition(".")[0], job.namespace)
            urn = self.urns.job(flow, job.name)
        return stamp, (run_uuid(above), urn)

    def _check_strictly(self, event: Event) -> None:
        """What the Java converter cannot read of a run event."""
        if self.fixes.all_events:
            return
        seen = _strict(event.raw)
        if not seen.eventType:
            raise EventError("eventType", "missing")
        if seen.run is None or seen.run.runId is None or run_uuid(seen.run.runId) != seen.run.runId.lower():
            raise EventError("run.runId", "is no UUID")

    def _job(self, event: Event, stamp: Stamp, reader: Reader, kind: str = "job") -> Told:
        """What run and job events tell alike."""
        job, fixes, facets = event.job, self.fixes, event.run_facets
        assert job is not None
        engine = reader.read(facets, "processing_engine", of.ENGINE)
        job_type = reader.read(job.facets, "jobType", of.JOB_TYPE)
        orchestrator = orchestrator_of(event.producer, engine, job_type, self.options, fixes)
        sql = reader.read(job.facets, "sql", of.SQL)
        query = sql.query if sql is not None and sql.query and sql.query.strip() else None
        names = names_of(event, orchestrator, query, self.options, reader)
        time = event.time // 1000
        told = Told(kind, f"{job.namespace}\n{job.name}", stamp, time, names=(stamp, names))
        told.created = (stamp, time)
        about = reader.read(job.facets, "documentation", of.DOCUMENTATION)
        text = about.description if about is not None else None
        if text or self.options.compat:  # Java takes the first event's, even where it has none
            told.description = (stamp, text)
        flow, own = properties.of_run(
            facets, engine, reader, nulls=not fixes.skip_nulls, dotted=self.options.dotted_keys
        )
        told.flow_properties = {name: (stamp, text) for name, text in flow.items()}
        told.job_properties = {name: (stamp, text) for name, text in own.items()}
        told.flow_tags = properties.airflow_tags(facets, reader, strict=not fixes.skip_nulls)
        if job.facets:
            self._of_job(job.facets, told, reader)
        told.inputs = self._datasets(event.inputs, stamp, query, told, reader, written=False)
        if not only_reads(event, job_type, orchestrator == "spark"):
            told.outputs = self._datasets(event.outputs, stamp, query, told, reader, written=True)
        told.silent = not told.inputs and not told.outputs
        return told

    def _dataset(self, event: Event, stamp: Stamp, reader: Reader) -> Told:
        dataset = event.dataset
        assert dataset is not None
        group = f"{dataset.namespace}\n{dataset.name}"
        told = Told("dataset", group, stamp, event.time // 1000, silent=False)
        told.outputs = self._datasets([dataset], stamp, None, told, reader, written=True)
        return told

    def _of_job(self, facets: dict[str, msgspec.Raw], told: Told, reader: Reader) -> None:
        if self.fixes.job_tags and (tags := reader.read(facets, "tags", of.TAGS)):
            named = {
                each.key if each.value is None else f"{each.key}:{properties.java_text(each.value)}"
                for each in tags.tags or ()
                if each.key
            }
            told.job_tags = sorted(named, key=lambda tag: (tag.lower(), tag))
        if self.fixes.ownership and (owners := reader.read(facets, "ownership", of.OWNERSHIP)):
            for each in sorted(owners.owners or (), key=lambda one: (one.name or "", one.type or "")):
                if each.name:
                    kind = (each.type or "").upper().replace(" ", "_")
                    told.owners[owner(each.name)] = kind if kind in _OWNERS else "TECHNICAL_OWNER"
        if self.fixes.source_location and (source := reader.read(facets, "sourceCodeLocation", of.SOURCE)):
            link = source.url or source.repoUrl
            told.links = [link] if link else []

    def _of_run(self, facets: dict[str, msgspec.Raw], reader: Reader) -> Iterable[tuple[str, str]]:
        if not self.fixes.run_facets or not facets:
            return
        if due := reader.read(facets, "nominalTime", of.NOMINAL):
            yield from _present(nominalStartTime=due.nominalStartTime, nominalEndTime=due.nominalEndTime)
        if wrong := reader.read(facets, "errorMessage", of.ERROR):
            yield from _present(
                errorMessage=wrong.message,
                programmingLanguage=wrong.programmingLanguage,
                stackTrace=wrong.stackTrace,
            )
        if query := reader.read(facets, "externalQuery", of.EXTERNAL):
            yield from _present(externalQueryId=query.externalQueryId, externalQuerySource=query.source)
        if found := reader.table(facets, "extractionError") if "extractionError" in facets else None:
            yield from _present(extractionErrors=properties.java_text(found.get("errors")))

    def _datasets(
        self,
        datasets: Sequence[Dataset],
        stamp: Stamp,
        query: str | None,
        told: Told,
        reader: Reader,
        *,
        written: bool,
    ) -> dict[str, Seen]:
        out: dict[str, Seen] = {}
        for each in datasets:
            links = reader.read(each.facets, "symlinks", of.SYMLINKS) if each.facets else None
            named = self.datasets.name(
                each.namespace, each.name, (links.identifiers if links is not None else None) or ()
            )
            if named is None:
                reader.notes.append(f"{each.namespace}/{each.name}: is no URI: left out")
                continue
            if named.urn in out and not self.fixes.union_columns:  # as in Java's sorted set: the first stays
                continue
            seen = Seen(named.urn)
            if named.original != named.urn:
                seen.original = named.original
                told.aliases[named.original] = (stamp, named.urn)
            if each.facets:
                seen.schema = self._schema(each, stamp, named.original, reader)
                if self.options.column_lineage:
                    seen.columns = self._columns(each, stamp, query, reader)
                    seen.columns_at = stamp if seen.columns is not None else None
            if self.fixes.operations and written:
                seen.operation = operation_of(each, stamp, reader)
            if self.fixes.profiles:
                seen.profile = profile_of(each, stamp, reader)
            if out.setdefault(seen.urn, seen) is not seen:
                _join(out[seen.urn], seen)
        return out

    def _schema(
        self, dataset: Dataset, stamp: Stamp, original: str, reader: Reader
    ) -> tuple[Stamp, Schema] | None:
        raw = (dataset.facets or {}).get("schema")
        if raw is None or not (self.options.materialize and self.options.include_schema):
            return None
        key = bytes(raw)
        if key not in self._schemas:
            if len(self._schemas) >= _KEPT:
                self._schemas.clear()
            self._schemas[key] = self._fields(dataset, raw, reader)
        made = self._schemas[key]
        return None if made is None else (stamp, Schema(made[0], made[1], platform_of(original)))

    def _fields(
        self, dataset: Dataset, raw: msgspec.Raw, reader: Reader
    ) -> tuple[list[dict[str, Any]], str] | None:
        schema = reader.read(dataset.facets, "schema", of.SCHEMA)
        if schema is None or schema.fields is None:
            return None
        ddl = bytes(
            msgspec.json.decode(raw, type=_Ddl).fields
        ).decode()  # as it came: `parse` took the spaces out
        if self.fixes.full_types:
            return all_fields(schema.fields, self.options.field_paths), ddl
        return java_fields(schema.fields), ddl

    def _columns(
        self, dataset: Dataset, stamp: Stamp, query: str | None, reader: Reader
    ) -> dict[str, Column] | None:
        lineage = reader.read(dataset.facets, "columnLineage", of.COLUMNS)
        if lineage is None or lineage.fields is None:
            return None
        asked: Any = (stamp, query) if query else None
        out: dict[str, Column] = {}
        for name, field in lineage.fields.items():
            inputs = field.inputFields if field is not None else None
            texts: list[str] = []
            sources: list[tuple[str, str]] = []
            for each in inputs or ():
                ways = each.transformations or ()
                for way in ways:
                    text = f"{way.type}:{'null' if way.subtype is None else way.subtype}"
                    if text not in texts:
                        texts.append(text)
                left_out = ways and not self.options.include_indirect
                if left_out and all((way.type or "").upper() == "INDIRECT" for way in ways):
                    continue
                if each.namespace is None or each.name is None or each.field is None:
                    continue
                urn = self.datasets.plain(each.namespace, each.name)
                if urn is not None:
                    sources.append((urn, each.field))
            if sources:
                out[name] = Column(texts, sources, asked)
        return out


def _join(have: Seen, more: Seen) -> None:
    """What an event tells of a dataset that it names twice: two of its partitions, or its path and its table."""
    have.schema = have.schema or more.schema
    have.operation, have.profile = have.operation or more.operation, have.profile or more.profile
    if more.columns is None:
        return
    have.columns, have.columns_at = have.columns or {}, more.columns_at
    for name, column in more.columns.items():
        known = have.columns.setdefault(name, column)
        known.texts = list(dict.fromkeys([*known.texts, *column.texts]))
        known.sources = list(dict.fromkeys([*known.sources, *column.sources]))


class _Ddl(msgspec.Struct):
    fields: msgspec.Raw


def _present(**told: str | None) -> Iterable[tuple[str, str]]:
    return ((name, text) for name, text in told.items() if text)


def _application(facets: dict[str, msgspec.Raw], reader: Reader) -> Iterable[tuple[str, str]]:
    if "spark_applicationDetails" not in facets:
        return ()
    found = reader.read(facets, "spark_applicationDetails", of.APPLICATION)
    if found is None:
        return ()
    return _present(appId=found.applicationId, sparkUser=found.userName, attemptId=found.attemptId)
