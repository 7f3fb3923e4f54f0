"""capture.connect.events: what happened to a connector's run, and its lineage -> an OpenLineage event.

START, RUNNING and OTHER tell everything that is known: whoever reads one needs no other. The end of a run tells no datasets, so
that it makes no versions of them, unless that is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from headwater.capture._facets import schema_url
from headwater.capture.connect.fields import told as told_fields
from headwater.capture.connect.lifecycle import Moment
from headwater.capture.connect.lineage import Lineage, Told
from headwater.capture.connect.places import Naming
from headwater.capture.connect.records import Origin
from headwater.capture.connect.seed import in_words, name_in_words, retold
from headwater.capture.connect.snapshots import Connector, public_digest
from headwater.event import PRODUCER as HOUSE
from headwater.event import SPEC, TERMINAL
from headwater.naming import scrub

PRODUCER = f"{HOUSE}/kafka-connect"
MAX_REASONS = 20


@dataclass(frozen=True, slots=True)
class Teller:
    """What is the same in all events of a cluster."""

    namespace: str
    cluster: str
    version: str = ""
    """Of Connect."""
    adapter: str = ""
    """Of Headwater."""
    naming: Naming = "openlineage"
    terminal_datasets: bool = False
    """Whether the end of a run names its datasets again, for those who read nothing else."""

    def tell(self, moment: Moment, lineage: Lineage | None, now: float) -> dict[str, Any]:
        """The event of a moment; `lineage` is what is known of its connector then."""
        bare = moment.task is not None or (moment.kind in TERMINAL and not self.terminal_datasets)
        found = lineage if lineage is not None and not bare else Lineage()
        found = found if self.naming == "openlineage" else retold(found)
        return {
            "eventType": moment.kind,
            "eventTime": datetime.fromtimestamp(now, timezone.utc).isoformat(timespec="milliseconds"),
            "producer": PRODUCER,
            "schemaURL": f"{SPEC}#/$defs/RunEvent",
            "run": {"runId": moment.run, "facets": self._run(moment, lineage)},
            "job": {
                "namespace": self.namespace,
                "name": self._job(moment),
                "facets": {"jobType": self._job_type(moment)},
            },
            "inputs": [self._dataset(each) for each in found.inputs],
            "outputs": [self._dataset(each) for each in found.outputs],
        }

    def _run(self, moment: Moment, lineage: Lineage | None) -> dict[str, Any]:
        seen = moment.seen
        told: dict[str, Any] = {
            "processing_engine": facet(
                "processing_engine",
                version=self.version or "unknown",
                name="Kafka Connect",
                openlineageAdapterVersion=self.adapter or "unknown",
            ),
            "kafkaConnect": facet("kafkaConnect", **self._connect(moment, seen, lineage)),
        }
        if moment.kind == "FAIL":
            first = moment.error.strip().splitlines()[:1] or ["the connector failed"]
            told["errorMessage"] = facet(
                "errorMessage",
                message=scrub(first[0]),
                programmingLanguage="JAVA",
                stackTrace=scrub(moment.error),
            )
        if moment.task is not None:
            told["parent"] = facet(
                "parent",
                run={"runId": moment.parent},
                job={"namespace": self.namespace, "name": self._called(moment)},
            )
        return told

    def _connect(self, moment: Moment, seen: Connector | None, lineage: Lineage | None) -> dict[str, Any]:
        told: dict[str, Any] = {"cluster": self.cluster, "connector": moment.connector}
        if moment.reason:
            told["reason"] = moment.reason
        if moment.task is not None:
            told["task"] = moment.task
        if seen is None:
            return {**told, "state": "DELETED"}
        tasks = [{"id": task.id, "state": task.state, "worker": task.worker} for task in seen.tasks]
        told |= {
            "connectorClass": seen.kind,
            "type": seen.type,
            "state": seen.state,
            "worker": seen.worker,
            "tasks": tasks,
            "workers": sorted({seen.worker, *(task.worker for task in seen.tasks)} - {""}),
            "configHash": public_digest(seen.config),
            "version": seen.version,
        }
        if lineage is not None and lineage.why and moment.task is None:
            told["unresolved"] = [scrub(each) for each in lineage.why[:MAX_REASONS]]
        return {key: value for key, value in told.items() if value not in ("", [])}

    def _called(self, moment: Moment) -> str:
        """The connector's own name, or what the transform of the Factor House labs was told to call it."""
        return moment.job if moment.job and self.naming != "openlineage" else moment.connector

    def _job(self, moment: Moment) -> str:
        name = self._called(moment)
        return name if moment.task is None else f"{name}.{moment.task}"

    def _job_type(self, moment: Moment) -> dict[str, Any]:
        kind = moment.seen.type if moment.seen is not None else "unknown"
        word = "CONNECTOR" if kind == "unknown" else f"{kind.upper()}_CONNECTOR"
        if self.naming != "openlineage":
            word = "CUSTOM_CONNECTOR_TASK"
        elif moment.task is not None:
            word = "TASK"
        return facet(
            "jobType",
            processingType="STREAMING",
            integration="KAFKA_CONNECT",
            jobType=word,
            emissionPattern={"eventTrigger": "EVENT_BASED", "eventContentMode": "COMPLETE_SNAPSHOT"},
        )

    def _dataset(self, told: Told) -> dict[str, Any]:
        namespace, name = told.dataset.namespace, told.dataset.name
        facets: dict[str, Any] = {
            "datasetType": facet("datasetType", datasetType=told.kind),
            "dataSource": facet("dataSource", name=self._source_name(told), uri=namespace),
        }
        if told.fields:
            facets["schema"] = facet("schema", fields=told_fields(in_words(told.fields, self.naming)))
        if told.dataset.symlinks and self.naming == "openlineage":
            facets["symlinks"] = facet(
                "symlinks",
                identifiers=[
                    {"namespace": each.namespace, "name": each.name, "type": each.type}
                    for each in told.dataset.symlinks
                ],
            )
        if told.schemas:
            version = ",".join(f"{_part(each.subject)}:{each.version}" for each in told.schemas)
            facets["version"] = facet("version", datasetVersion=version)
            facets["kafkaSchema"] = facet(
                "kafkaSchema",
                schemas=[
                    {"subject": each.subject, "version": each.version, "id": each.id, "type": each.format}
                    for each in told.schemas
                ],
            )
        if told.columns or told.filters:
            facets["columnLineage"] = column_lineage(told, lambda path: name_in_words(path, self.naming))
        if told.sources:
            inputs = [{"type": "DATASET", "namespace": s.namespace, "name": s.name} for s in told.sources]
            facets["lineage"] = facet("lineage", inputs=inputs)
        return {"namespace": namespace, "name": name, "facets": facets}

    def _source_name(self, told: Told) -> str:
        namespace = told.dataset.namespace
        if self.naming == "openlineage":
            return namespace
        return "kafka" if told.kind == "TOPIC" else namespace.partition("://")[0]


def column_lineage(told: Told, words: Callable[[str], str] = str) -> dict[str, Any]:
    """The columnLineage facet: identity, or what a transform did; a masked column says so. `words` tells a column's name."""
    fields = {
        words(name): {"inputFields": [_input(origin, name, words) for origin in origins]}
        for name, origins in told.columns
    }
    more: dict[str, Any] = {}
    if told.filters:
        more["dataset"] = [
            {
                **_named(each, words),
                "transformations": [_way("INDIRECT", "FILTER", "decides which records pass", False)],
            }
            for each in told.filters
        ]
    return facet("columnLineage", fields=fields, **more)


def _input(origin: Origin, column: str, words: Callable[[str], str]) -> dict[str, Any]:
    ways = list(origin.ways)
    if origin.path[-1] != column.rpartition(".")[2] and not any(way.startswith("NEST") for way in ways):
        ways.insert(0, "RENAME")
    same = not [way for way in ways if way != "RENAME"]
    way = _way("DIRECT", "IDENTITY" if same else "TRANSFORMATION", ", ".join(ways), "MASK" in ways)
    return {**_named(origin, words), "transformations": [way]}


def _named(origin: Origin, words: Callable[[str], str]) -> dict[str, Any]:
    return {
        "namespace": origin.dataset.namespace,
        "name": origin.dataset.name,
        "field": words(".".join(origin.path)),
    }


def _way(kind: str, subtype: str, description: str, masking: bool) -> dict[str, Any]:
    return {"type": kind, "subtype": subtype, "description": description, "masking": masking}


def _part(subject: str) -> str:
    return "key" if subject.endswith("-key") else "value"


def facet(name: str, /, **fields: Any) -> dict[str, Any]:
    """A facet with the two fields every facet has."""
    return {"_producer": PRODUCER, "_schemaURL": schema_url(name), **fields}
