"""deliver.datahub.proposing: what a run group, a job or a dataset tells -> change proposals, in the order of the Java agent."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

from headwater.deliver.datahub import patching
from headwater.deliver.datahub.jobs import Names
from headwater.deliver.datahub.options import Options
from headwater.deliver.datahub.told import Column, Seen, Told
from headwater.deliver.datahub.urns import (
    ACTOR,
    Urns,
    instance,
    key_of,
    platform,
    platform_instance,
    platform_of,
)

Proposal = dict[str, Any]
"""{entityType, entityUrn, changeType, aspectName, aspect: {json}}, as `datahub ingest` reads it."""
Fine = dict[str, Any]
_ALIVE = {"removed": False}


def proposal(kind: str, urn: str, name: str, aspect: Any, change: str = "UPSERT") -> Proposal:
    """One change proposal."""
    return {
        "entityType": kind,
        "entityUrn": urn,
        "changeType": change,
        "aspectName": name,
        "aspect": {"json": aspect},
    }


class Proposing:
    """Makes change proposals as one configuration says."""

    def __init__(self, options: Options) -> None:
        self._options, self._fixes = options, options.mended()
        self._urns = Urns(encode=self._fixes.encode_urns)

    def propose(self, told: Told) -> list[Proposal]:
        """Every proposal of what was told, aliases resolved."""
        if told.kind == "dataset":
            return [each for seen in told.outputs.values() for each in self._dataset(seen, told)]
        return list(self._job(told))

    def _job(self, told: Told) -> Iterator[Proposal]:
        assert told.names is not None
        names: Names = told.names[1]
        flow = self._urns.flow(names.orchestrator, names.flow, names.cluster)
        job = self._urns.job(flow, names.flow if told.collapsed else names.job)
        yield from self._flow(told, names, flow)
        if self._options.platform_instance is not None:
            of = self._platform_instance(names.orchestrator)
            yield proposal("dataFlow", flow, "dataPlatformInstance", of)
            if not told.collapsed or self._fixes.job_instance:
                yield proposal("dataJob", job, "dataPlatformInstance", of)
        yield proposal("dataJob", job, "dataJobInfo", self._job_info(told, names, flow))
        yield proposal("dataJob", job, "status", _ALIVE)
        yield from self._flow_labels(told, flow)
        yield from self._job_labels(told, job)
        for urn in sorted(told.inputs):
            yield from self._dataset(told.inputs[urn], told)
        for urn in sorted(told.outputs):
            yield from self._dataset(told.outputs[urn], told)
            if self._options.legacy_cleanup:
                yield from self._cleaned(told.outputs[urn])
        yield from self._lineage(told, job)
        if told.kind == "run":
            yield from self._run(told, job)

    def _flow(self, told: Told, names: Names, flow: str) -> Iterator[Proposal]:
        custom = {name: told.flow_properties[name][1] for name in sorted(told.flow_properties)}
        if told.collapsed:
            custom["finishedAt"] = _iso(told.time)
            if told.started is not None:
                custom["startedAt"] = _iso(told.started)
            custom |= {name: value for name, (_, value) in sorted(told.application.items())}
        info: dict[str, Any] = {"name": names.flow, "customProperties": custom}
        if told.description is not None and told.description[1]:
            info["description"] = told.description[1]
        yield proposal("dataFlow", flow, "dataFlowInfo", info)
        yield proposal("dataFlow", flow, "status", _ALIVE)

    def _job_info(self, told: Told, names: Names, flow: str) -> dict[str, Any]:
        info: dict[str, Any] = {
            "name": names.flow if told.collapsed else names.title,
            "type": {"string": names.orchestrator},
            "flowUrn": flow,
            "customProperties": {name: told.job_properties[name][1] for name in sorted(told.job_properties)},
        }
        if told.created is not None:
            info["created"] = {"time": told.created[1]}
        if told.description is not None and told.description[1]:
            info["description"] = told.description[1]
        return info

    def _flow_labels(self, told: Told, flow: str) -> Iterator[Proposal]:
        java_coalesced = told.collapsed and not self._fixes.job_tags  # it forgets the tags of events
        tags = list(self._options.tags) or ([] if java_coalesced else told.flow_tags)
        if tags:
            yield self._tagged("dataFlow", flow, tags)
        domains = [each for each in self._options.domains if each.startswith("urn:li:domain:")]
        if domains:
            kind = "dataFlow" if self._fixes.domain_entity else "dataflow"
            yield proposal(kind, flow, "domains", {"domains": domains})

    def _tagged(self, kind: str, urn: str, names: list[str]) -> Proposal:
        tags = list(dict.fromkeys(self._urns.tag(each) for each in names))
        if self._options.patch:
            return proposal(kind, urn, "globalTags", patching.add_tags(tags), "PATCH")
        return proposal(kind, urn, "globalTags", {"tags": [{"tag": each} for each in tags]})

    def _job_labels(self, told: Told, job: str) -> Iterator[Proposal]:
        if told.job_tags:
            yield self._tagged("dataJob", job, told.job_tags)
        stamp = {"time": told.time, "actor": ACTOR}
        if told.owners:
            owners = [
                {"owner": urn, "type": kind, "source": {"type": "SERVICE"}}
                for urn, kind in sorted(told.owners.items())
            ]
            yield proposal("dataJob", job, "ownership", {"owners": owners, "lastModified": stamp})
        if told.links:
            elements = [
                {"url": link, "description": "Source code", "createStamp": stamp} for link in told.links
            ]
            yield proposal("dataJob", job, "institutionalMemory", {"elements": elements})

    def _dataset(self, seen: Seen, told: Told) -> Iterator[Proposal]:
        if self._options.materialize:
            yield proposal("dataset", seen.urn, "datasetKey", key_of(seen.urn))
            yield proposal("dataset", seen.urn, "status", _ALIVE)
        if seen.schema is not None:
            yield proposal("dataset", seen.urn, "schemaMetadata", self._schema(seen))
        if told.kind == "dataset" and seen.columns:
            yield proposal("dataset", seen.urn, "upstreamLineage", self._upstreams(seen, told))
        if seen.operation is not None:
            yield proposal("dataset", seen.urn, "operation", seen.operation[1])
        if seen.profile is not None:
            yield proposal("dataset", seen.urn, "datasetProfile", seen.profile[1])

    def _schema(self, seen: Seen) -> dict[str, Any]:
        assert seen.schema is not None
        schema = seen.schema[1]
        return {
            "schemaName": "",
            "platform": platform_of(seen.urn) if self._fixes.schema_platform else schema.platform,
            "version": 1,
            "hash": "",
            "platformSchema": {"com.linkedin.schema.MySqlDDL": {"tableSchema": schema.ddl}},
            "fields": schema.fields,
        }

    def _upstreams(self, seen: Seen, told: Told) -> dict[str, Any]:
        """Column lineage of a dataset that no job is named for."""
        stamp = {"time": told.time, "actor": ACTOR}
        upstreams = sorted({urn for column in (seen.columns or {}).values() for urn, _ in column.sources})
        return {
            "upstreams": [{"dataset": urn, "type": "TRANSFORMED", "auditStamp": stamp} for urn in upstreams],
            "fineGrainedLineages": self._fine(seen),
        }

    def _fine(self, seen: Seen) -> list[Fine]:
        columns = seen.columns or {}
        ordered = sorted(columns.items()) if self._fixes.union_columns else columns.items()
        return [self._column(seen.urn, name, column) for name, column in ordered]

    def _column(self, urn: str, name: str, column: Column) -> Fine:
        sources = [self._urns.field(source, field) for source, field in column.sources]
        if len(sources) > 1:
            sources = sorted(set(sources) if self._fixes.union_columns else sources)
        operation = column.texts[0] if len(column.texts) == 1 else _joined(column.texts)
        if column.query is not None:
            query = column.query[1]
            operation = f"-- {operation}\n{query}" if operation else query
        return {
            "upstreamType": "FIELD_SET",
            "upstreams": sources,
            "downstreamType": "FIELD_SET",
            "downstreams": [self._urns.field(urn, name)],
            "transformOperation": operation,
            "confidenceScore": 0.5,
        }

    def _cleaned(self, seen: Seen) -> Iterator[Proposal]:
        if not seen.columns:
            return
        if self._options.patch:
            upstreams = sorted({urn for column in seen.columns.values() for urn, _ in column.sources})
            ops = patching.remove_upstreams(upstreams, self._fine(seen), escape=self._fixes.escape_patches)
            yield proposal("dataset", seen.urn, "upstreamLineage", ops, "PATCH")
        else:
            yield proposal("dataset", seen.urn, "upstreamLineage", {"upstreams": []})

    def _lineage(self, told: Told, job: str) -> Iterator[Proposal]:
        parents = [self._options.parent_job] if self._options.parent_job and told.collapsed else []
        if self._options.parent_edges and told.parent is not None and told.parent[1][1]:
            parents.append(told.parent[1][1])
        inputs, outputs = sorted(told.inputs), sorted(told.outputs)
        sides = ((told.inputs, inputs), (told.outputs, outputs))
        fine = [each for side, urns in sides for urn in urns for each in self._fine(side[urn])]
        empty = not inputs and not outputs and not parents
        if self._options.patch:
            if not empty:
                ops = patching.add_lineage(
                    inputs, outputs, parents, fine, told.time, escape=self._fixes.escape_patches
                )
                yield proposal("dataJob", job, "dataJobInputOutput", ops, "PATCH")
            return
        if empty and self._fixes.keep_edges:
            return
        stamp = {"time": told.time, "actor": ACTOR}
        aspect = {
            "inputDatasets": [],
            "outputDatasets": [],
            "inputDatasetEdges": [{"destinationUrn": urn, "lastModified": stamp} for urn in inputs],
            "outputDatasetEdges": [{"destinationUrn": urn, "lastModified": stamp} for urn in outputs],
            "inputDatajobs": parents,
            "fineGrainedLineages": fine,
        }
        yield proposal("dataJob", job, "dataJobInputOutput", aspect)

    def _run(self, told: Told, job: str) -> Iterator[Proposal]:
        assert told.run is not None
        assert told.named is not None
        urn, kind = instance(told.run[1]), "dataProcessInstance"
        if not (told.silent and self._fixes.keep_edges):
            yield proposal(kind, urn, "dataProcessInstanceInput", {"inputs": sorted(told.inputs)})
            yield proposal(kind, urn, "dataProcessInstanceOutput", {"outputs": sorted(told.outputs)})
        about: dict[str, Any] = {
            "name": told.named[2],
            "created": {"time": told.named[0], "actor": ACTOR},
            "customProperties": {name: value for name, (_, value) in sorted(told.run_properties.items())},
        }
        yield proposal(kind, urn, "dataProcessInstanceProperties", about)
        for event in self._run_events(told):
            yield proposal(kind, urn, "dataProcessInstanceRunEvent", event)
        relations: dict[str, Any] = {"parentTemplate": job, "upstreamInstances": []}
        if told.parent is not None:
            relations["parentInstance"] = instance(told.parent[1][0])
        yield proposal(kind, urn, "dataProcessInstanceRelationships", relations)

    def _run_events(self, told: Told) -> Iterator[dict[str, Any]]:
        spans = self._fixes.run_span
        if told.started is not None and (spans or not told.collapsed):
            yield {"timestampMillis": told.started, "status": "STARTED"}
        ended = told.failed or told.succeeded
        if ended is None:
            return
        time, native = ended[1]
        if native == "OTHER":  # what Java sends: no status, and a result that DataHub does not know
            yield {"timestampMillis": time, "result": {"type": "$UNKNOWN", "nativeResultType": native}}
            return
        result = {"type": "FAILURE" if told.failed else "SUCCESS", "nativeResultType": native}
        event: dict[str, Any] = {"timestampMillis": time, "status": "COMPLETE", "result": result}
        if spans:
            event["timestampMillis"] = told.ended if told.ended is not None else time
            if told.started is not None and event["timestampMillis"] >= told.started:
                event["durationMillis"] = event["timestampMillis"] - told.started
        yield event

    def _platform_instance(self, orchestrator: str) -> dict[str, str]:
        name = self._options.platform_instance or ""
        return {"platform": platform(orchestrator), "instance": platform_instance(orchestrator, name)}


def _joined(texts: list[str]) -> str:
    return ",".join(sorted(texts, key=lambda each: (each.lower(), each)))


def _iso(millis: int) -> str:
    return (
        datetime.fromtimestamp(millis / 1000, timezone.utc)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )
