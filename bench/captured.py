"""captured: who ran what, when -> events in the shapes that the captures of the house, and Airflow's provider, tell them in.

What each facet holds is that of recorded events (`tests/bench/test_month.py` holds both side by side); sizes are those of tables
with a handful of columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from headwater.capture._facets import schema_url
from headwater.event import PRODUCER, SPEC

Told = dict[str, Any]

SPARK, CONNECT, DLT, CHECKS = (f"{PRODUCER}/{each}" for each in ("spark", "kafka-connect", "dlt", "checks"))
AIRFLOW = "https://github.com/apache/airflow/tree/providers-openlineage/2.20.0"
CATALOG = "https://catalog:8181"
TYPES = {"id": "bigint", "amount": "decimal(18,2)", "discount": "double"}
"""The columns that every table of the company has."""


@dataclass(frozen=True)
class Table:
    """A dataset by its first name; `alias` is what a catalog calls it."""

    namespace: str
    name: str
    alias: str = ""


@dataclass(frozen=True)
class Run:
    """An execution: its id, its job's namespace and name, and the runs above it."""

    id: str
    namespace: str
    job: str
    parent: Run | None = None

    @property
    def root(self) -> Run:
        """The highest of those above, or itself."""
        return self.parent.root if self.parent else self


def facet(producer: str, name: str, /, **fields: Any) -> Told:
    """A facet with the two fields that every one has."""
    return {"_producer": producer, "_schemaURL": schema_url(name), **fields}


def event(producer: str, kind: str, at: str, run: Run, run_facets: Told, job_facets: Told, inputs: Sequence[Told] = (), outputs: Sequence[Told] = ()) -> Told:  # fmt: skip
    """A run event."""
    return {
        "eventType": kind,
        "eventTime": at,
        "producer": producer,
        "schemaURL": f"{SPEC}#/$defs/RunEvent",
        "run": {"runId": run.id, "facets": run_facets},
        "job": {"namespace": run.namespace, "name": run.job, "facets": job_facets},
        "inputs": list(inputs),
        "outputs": list(outputs),
    }


def _named(run: Run) -> Told:
    return {"run": {"runId": run.id}, "job": {"namespace": run.namespace, "name": run.job}}


def _parent(producer: str, run: Run, *, root: bool) -> Told:
    above = run.parent
    if above is None:
        return {}
    more = {"root": _named(run.root)} if root else {}
    return {"parent": facet(producer, "parent", **_named(above), **more)}


def _fields(columns: tuple[str, ...]) -> list[Told]:
    return [{"name": name, "type": TYPES[name]} for name in columns]


# --- Spark


@cache
def _spark_dataset(table: Table, columns: tuple[str, ...]) -> Told:
    """By its place."""
    told = {
        "dataSource": facet(SPARK, "dataSource", name=table.namespace, uri=table.namespace),
        "schema": facet(SPARK, "schema", fields=_fields(columns)),
    }
    return {"namespace": table.namespace, "name": table.name, "facets": told}


@cache
def _spark_table(table: Table, columns: tuple[str, ...]) -> Told:
    """What is written through a catalog tells of that, too."""
    told = _spark_dataset(table, columns)
    if not table.alias:
        return told
    link = {"namespace": CATALOG, "name": table.alias, "type": "TABLE"}
    more = {
        "symlinks": facet(SPARK, "symlinks", identifiers=[link]),
        "datasetType": facet(SPARK, "datasetType", datasetType="TABLE"),
        "catalog": facet(SPARK, "catalog", framework="iceberg", type="rest", name="lake", warehouseUri=CATALOG),
        "storage": facet(SPARK, "storage", storageLayer="iceberg", fileFormat="parquet"),
    }  # fmt: skip
    return {**told, "facets": {**told["facets"], **more}}


@cache
def _spark_columns(out: tuple[str, ...], inputs: tuple[Table, ...]) -> Told:
    """The first input gives the columns; the others are joined by their id."""
    first = inputs[0]

    def source(table: Table, column: str, kind: str, subtype: str) -> Told:
        how = {"type": kind, "subtype": subtype, "masking": False}
        return {"namespace": table.namespace, "name": table.name, "field": column, "transformations": [how]}

    fields = {
        name: {
            "inputFields": [
                source(first, name, "DIRECT", "TRANSFORMATION" if name == "amount" else "IDENTITY")
            ]
        }
        for name in out
    }
    joined = [source(each, "id", "INDIRECT", "JOIN") for each in inputs] if len(inputs) > 1 else []
    return facet(SPARK, "columnLineage", fields=fields, dataset=joined)


def spark(kind: str, at: str, run: Run, job_type: str, *, inputs: Sequence[Table] = (), output: Table | None = None, columns: tuple[str, ...] = tuple(TYPES), rows: int = 0, error: str = "") -> Told:  # fmt: skip
    """An event of an application (`APPLICATION`) or of one of its queries (`SQL_JOB`)."""
    whole = kind != "START"
    told = {"processing_engine": facet(SPARK, "processing_engine", name="spark", version="4.1.4")}
    told |= _parent(SPARK, run, root=True)
    if error:
        told["errorMessage"] = facet(SPARK, "errorMessage", message=error.partition("\n")[0], programmingLanguage="JAVA", stackTrace=error)  # fmt: skip
    batch = "BATCH" if job_type == "SQL_JOB" else "NONE"
    job = {"jobType": facet(SPARK, "jobType", processingType=batch, integration="SPARK", jobType=job_type)}
    reads, writes = [], []
    if output is not None:
        names = ", ".join(columns)
        job["sql"] = facet(SPARK, "sql", query=f"INSERT OVERWRITE {output.alias or output.name} SELECT {names} FROM …", dialect="spark")  # fmt: skip
        for each in inputs:
            read = _spark_dataset(each, tuple(TYPES))
            if whole:
                counted = facet(SPARK, "inputStatistics", rowCount=rows, size=40 * rows, fileCount=4)
                read = {**read, "inputFacets": {"inputStatistics": counted}}
            reads.append(read)
        written = _spark_table(output, columns)
        if whole:
            more = {"columnLineage": _spark_columns(columns, tuple(inputs))}
            if kind == "COMPLETE":
                more["lifecycleStateChange"] = facet(SPARK, "lifecycleStateChange", lifecycleStateChange="OVERWRITE")  # fmt: skip
            counted = facet(SPARK, "outputStatistics", rowCount=rows, size=40 * rows, fileCount=2)
            written = {
                **written,
                "facets": {**written["facets"], **more},
                "outputFacets": {"outputStatistics": counted},
            }
        writes.append(written)
    return event(SPARK, kind, at, run, told, job, reads, writes)


# --- Kafka Connect


@cache
def _connect_dataset(table: Table, kind: str, source: Table | None) -> Told:
    told = {
        "datasetType": facet(CONNECT, "datasetType", datasetType=kind),
        "dataSource": facet(CONNECT, "dataSource", name=table.namespace, uri=table.namespace),
        "schema": facet(CONNECT, "schema", fields=_fields(tuple(TYPES))),
    }
    if table.alias:
        link = {"namespace": CATALOG, "name": table.alias, "type": "TABLE"}
        told["symlinks"] = facet(CONNECT, "symlinks", identifiers=[link])
    if kind == "TOPIC":
        told["version"] = facet(CONNECT, "version", datasetVersion="value:1")
        schema = {"subject": f"{table.name}-value", "version": 1, "id": 1, "type": "AVRO"}
        told["kafkaSchema"] = facet(CONNECT, "kafkaSchema", schemas=[schema])
    if source is not None:
        way = {"type": "DIRECT", "subtype": "IDENTITY", "description": "", "masking": False}
        here = {"namespace": source.namespace, "name": source.name}
        fields = {
            name: {"inputFields": [{**here, "field": name, "transformations": [way]}]} for name in TYPES
        }
        told["columnLineage"] = facet(CONNECT, "columnLineage", fields=fields)
        told["lineage"] = facet(CONNECT, "lineage", inputs=[{"type": "DATASET", **here}])
    return {"namespace": table.namespace, "name": table.name, "facets": told}


def connect(kind: str, at: str, run: Run, cluster: str, type_: str, read: Table, written: Table, error: str = "") -> Told:  # fmt: skip
    """An event of a connector; the end of a run names no datasets."""
    state = "FAILED" if kind == "FAIL" else "RUNNING"
    worker = "worker-1:8083"
    about = {
        "cluster": cluster,
        "connector": run.job,
        "reason": "task failed" if kind == "FAIL" else "seen",
        "connectorClass": "io.debezium.connector.postgresql.PostgresConnector"
        if type_ == "source"
        else "org.apache.iceberg.connect.IcebergSinkConnector",
        "type": type_,
        "state": "RUNNING",
        "worker": worker,
        "tasks": [{"id": 0, "state": state, "worker": worker}],
        "workers": [worker],
        "configHash": "5f0e2d6c9a7b41d8",
        "version": "3.2.0",
    }
    told = {
        "processing_engine": facet(
            CONNECT, "processing_engine", version="4.1.0", name="Kafka Connect", openlineageAdapterVersion="0.1.0"
        ),
        "kafkaConnect": facet(CONNECT, "kafkaConnect", **about),
    }  # fmt: skip
    if error:
        told["errorMessage"] = facet(CONNECT, "errorMessage", message=error.partition("\n")[0], programmingLanguage="JAVA", stackTrace=error)  # fmt: skip
    pattern = {"eventTrigger": "EVENT_BASED", "eventContentMode": "COMPLETE_SNAPSHOT"}
    job_type = facet(
        CONNECT, "jobType", processingType="STREAMING", integration="KAFKA_CONNECT",
        jobType=f"{type_.upper()}_CONNECTOR", emissionPattern=pattern,
    )  # fmt: skip
    if kind in ("FAIL", "COMPLETE", "ABORT"):
        return event(CONNECT, kind, at, run, told, {"jobType": job_type})
    kinds = ("TABLE", "TOPIC") if type_ == "source" else ("TOPIC", "TABLE")
    inputs = [_connect_dataset(read, kinds[0], None)]
    return event(
        CONNECT,
        kind,
        at,
        run,
        told,
        {"jobType": job_type},
        inputs,
        [_connect_dataset(written, kinds[1], read)],
    )


# --- dlt


def dlt(kind: str, at: str, run: Run, read: Table, written: Table, rows: int = 0, error: str = "") -> Told:
    """An event of a pipeline: START, RUNNING once it has extracted, and its end."""
    load = run.id[:8]
    execution: Told = {"transaction_id": run.id.replace("-", ""), "step": "run"}
    if kind == "RUNNING":
        execution |= {"step": "extract", "load_ids": [load]}
    elif kind != "START":
        execution |= {"step": "load", "load_ids": [load], "destination_type": "filesystem", "destination_name": "lake"}  # fmt: skip
        execution |= {"dataset_name": "raw", "total_jobs": 1, "failed_jobs": int(kind == "FAIL")}
    told = {
        "processing_engine": facet(
            DLT, "processing_engine", version="1.31.0", name="dlt", openlineageAdapterVersion="0.1.0"
        ),
        "dlt_execution": facet(DLT, "dlt_execution", **execution),
    }
    if error:
        told["errorMessage"] = facet(DLT, "errorMessage", message=error.partition("\n")[0], programmingLanguage="PYTHON", stackTrace=error)  # fmt: skip
    job = {"jobType": facet(DLT, "jobType", processingType="BATCH", integration="DLT", jobType="PIPELINE")}
    inputs, outputs = [], []
    if kind != "START":
        counted = facet(DLT, "inputStatistics", rowCount=rows, size=60 * rows)
        schema = facet(DLT, "schema", fields=[{"name": name} for name in TYPES])
        inputs = [{"namespace": read.namespace, "name": read.name, "facets": {"schema": schema}, "inputFacets": {"inputStatistics": counted}}]  # fmt: skip
    if kind == "COMPLETE":
        facets = {
            **_dlt_output(read, written),
            "version": facet(DLT, "version", datasetVersion=load),
        }
        counted = facet(DLT, "outputStatistics", rowCount=rows, size=30 * rows, fileCount=1)
        outputs = [{"namespace": written.namespace, "name": written.name, "facets": facets, "outputFacets": {"outputStatistics": counted}}]  # fmt: skip
    return event(DLT, kind, at, run, told, job, inputs, outputs)


@cache
def _dlt_output(read: Table, written: Table) -> Told:
    fields = [{**each, "ordinal_position": at} for at, each in enumerate(_fields(tuple(TYPES)), 1)]
    way = {"type": "DIRECT", "subtype": "IDENTITY", "description": "", "masking": False}
    here = {"namespace": read.namespace, "name": read.name}
    columns = {name: {"inputFields": [{**here, "field": name, "transformations": [way]}]} for name in TYPES}
    return {
        "schema": facet(DLT, "schema", fields=fields),
        "lineage": facet(DLT, "lineage", inputs=[{"type": "DATASET", **here}]),
        "columnLineage": facet(DLT, "columnLineage", fields=columns),
        "dlt_table": facet(DLT, "dlt_table", table=written.name.rpartition("/")[2], write_disposition="append"),
    }  # fmt: skip


# --- Airflow's provider


def airflow(kind: str, at: str, run: Run, nominal: str, *, tries: int = 1, error: str = "") -> Told:
    """An event of a DAG run, or of a task within one."""
    dag_id = (run.parent or run).job
    dag = {"dag_id": dag_id, "owner": "data", "schedule_interval": "@hourly", "tags": ["prod"]}
    dag_run = {"conf": {}, "dag_id": dag_id, "run_id": f"scheduled__{nominal}", "run_type": "scheduled", "start_date": nominal}  # fmt: skip
    told = {
        "nominalTime": facet(AIRFLOW, "nominalTime", nominalStartTime=nominal, nominalEndTime=nominal),
        "processing_engine": facet(
            AIRFLOW, "processing_engine", version="3.3.2", name="Airflow", openlineageAdapterVersion="2.20.0"
        ),
    }
    if run.parent is None:
        told["airflowDagRun"] = facet(AIRFLOW, "airflowDagRun", dag=dag, dagRun=dag_run)
    else:
        task = {"task_id": run.job.rpartition(".")[2], "operator_class": "SparkSubmitOperator", "retries": 1, "trigger_rule": "all_success"}  # fmt: skip
        instance = {"pool": "default_pool", "try_number": tries}
        told["airflow"] = facet(AIRFLOW, "airflow", dag=dag, dagRun=dag_run, task=task, taskInstance=instance, taskUuid=run.id)  # fmt: skip
    told |= _parent(AIRFLOW, run, root=True)
    if error:
        told["errorMessage"] = facet(AIRFLOW, "errorMessage", message=error, programmingLanguage="python")
    kinds = "TASK" if run.parent else "DAG"
    job = {
        "jobType": facet(AIRFLOW, "jobType", processingType="BATCH", integration="AIRFLOW", jobType=kinds),
        "ownership": facet(AIRFLOW, "ownership", owners=[{"name": "data"}]),
    }
    return event(AIRFLOW, kind, at, run, told, job)


# --- checks, as a step after a load tells them


def check(kind: str, at: str, run: Run, table: Table, passed: dict[tuple[str, str], bool], error: str = "") -> Told:  # fmt: skip
    """An event of a job that tests a table, which it knows by its catalog's name; its end tells how each test went."""
    told = _parent(CHECKS, run, root=True)
    if error:
        told["errorMessage"] = facet(CHECKS, "errorMessage", message=error, programmingLanguage="python")
    every = [
        {"assertion": test, "column": column, "success": good, "severity": "error"}
        for (test, column), good in passed.items()
    ]
    inputs = []
    if every:
        facets = {"dataQualityAssertions": facet(CHECKS, "dataQualityAssertions", assertions=every)}
        inputs = [{"namespace": CATALOG, "name": table.alias, "facets": {}, "inputFacets": facets}]
    return event(CHECKS, kind, at, run, told, {}, inputs)
