"""Flows, jobs and runs: their names, aspects, properties, tags, states and parents."""

from __future__ import annotations

from typing import Any

import pytest
from making import JAVA, PARENT, RUN, SPARK, aspect, aspects, convert, dataset, event, schema, symlinks, urns

from headwater.errors import EventError

OL = "https://github.com/OpenLineage/OpenLineage"
ORCHESTRATORS = [
    # producer, processing engine, jobType.integration, expected, as Java has it (None: it fails)
    (f"{OL}/tree/1.50.0/integration/spark", None, None, "spark", "spark"),
    (f"{OL}/tree/1.0/integration/dbt", None, None, "dbt", "dbt"),
    (f"{OL}/blob/v1-0-0/client", None, None, "client", "client"),
    ("https://github.com/apache/airflow/tree/providers-openlineage/2.0", None, None, "airflow", "airflow"),
    ("https://github.com/trinodb/trino/plugin", None, None, "trino", "trino"),
    ("https://example.org", "Debezium", None, "debezium", "debezium"),
    (f"{OL}/tree/1.0/integration/spark", "Flink", None, "flink", "flink"),
    ("https://example.org", "Kafka Connect", "KAFKA_CONNECT", "kafka-connect", "kafka connect"),
    ("https://example.org/tools/Loader", None, "DLT", "dlt", None),
    ("https://example.org/tools/Loader", None, None, "loader", None),
    ("https://example.org/?x=1", None, None, "openlineage", None),
    ("", None, None, "openlineage", None),
]


@pytest.mark.parametrize(("producer", "engine", "integration", "expected", "java"), ORCHESTRATORS)
def test_orchestrators(
    producer: str, engine: str | None, integration: str | None, expected: str, java: str | None
) -> None:
    told = event(
        producer=producer,
        run_facets={"processing_engine": {"name": engine, "version": "1"}} if engine else {},
        job_facets={"jobType": {"integration": integration}} if integration else {},
    )
    assert aspect(convert(told), "dataJobInfo")["type"] == {"string": expected}
    if java is None:
        with pytest.raises(EventError, match="Unable to determine orchestrator"):
            convert(told, **JAVA)
        assert aspect(convert(told, orchestrator="mine", **JAVA), "dataJobInfo")["type"] == {"string": "mine"}
    else:
        assert aspect(convert(told, **JAVA), "dataJobInfo")["type"] == {"string": java}


NAMES = [
    # job, options, flow, job's urn, title
    ("app.step.x", {}, "(spark,app,ns)", "app.step.x", "step.x"),
    ("alone", {}, "(spark,alone,ns)", "alone", "alone"),
    ("app.step", {"pipeline_name": "my_flow"}, "(spark,my_flow,ns)", "app.step", "step"),
    ("app.step", {"platform_instance": "inst"}, "(spark,app,inst)", "app.step", "step"),
    ("app.step", {"platform_instance": "i", "pipeline_name": "i.app"}, "(spark,i.app,i)", "app.step", "step"),
]


@pytest.mark.parametrize("java", [{}, JAVA], ids=["default", "java"])
@pytest.mark.parametrize(("job", "given", "flow", "name", "title"), NAMES)
def test_names(
    job: str, given: dict[str, Any], flow: str, name: str, title: str, java: dict[str, Any]
) -> None:
    made = convert(event(job=job), **given, **java)
    assert urns(made, "dataFlow") == {f"urn:li:dataFlow:{flow}"}
    assert urns(made, "dataJob") == {f"urn:li:dataJob:(urn:li:dataFlow:{flow},{name})"}
    assert aspect(made, "dataJobInfo")["name"] == title
    assert urns(made, "dataProcessInstance") == {f"urn:li:dataProcessInstance:{RUN}"}


EDGE = "app.execute_merge_into_command_edge"
MERGES = [
    # sql, outputs, the job's name
    ("-- x\n  merge into `db`.`Orders` t using s", [], f"{EDGE}.db_orders"),
    (None, [dataset("hive", "db.My Table")], f"{EDGE}.db_my_table"),
    (None, [dataset("file", "/x.y", symlinks=symlinks(("glue", "table/db/t")))], f"{EDGE}.db_t"),
    (None, [dataset("s3://b", "/warehouse/shop.db/orders/")], f"{EDGE}.shop_orders"),
    (None, [dataset("file", "/nowhere")], EDGE),
]


@pytest.mark.parametrize(("sql", "outputs", "expected"), MERGES)
def test_the_target_of_a_merge_is_part_of_the_name(
    sql: str | None, outputs: list[Any], expected: str
) -> None:
    told = event(job=EDGE, outputs=outputs, job_facets={"sql": {"query": sql}} if sql else {})
    made = convert(told, merge_into=True, **JAVA)
    (job,) = urns(made, "dataJob")
    assert job == f"urn:li:dataJob:(urn:li:dataFlow:(spark,app,ns),{expected})"
    assert aspect(made, "dataJobInfo")["name"] == expected.removeprefix("app.")
    assert urns(convert(told), "dataJob") == {f"urn:li:dataJob:(urn:li:dataFlow:(spark,app,ns),{EDGE})"}


def test_aspects_come_in_the_order_of_the_agent() -> None:
    told = event(
        inputs=[dataset("hive", "b", schema=schema(x="int")), dataset("hive", "a")],
        outputs=[dataset("hive", "c")],
    )
    made = convert(told, platform_instance="i", tags="t", domains="urn:li:domain:d", **JAVA)
    assert [(each["entityType"], each["aspectName"]) for each in made] == [
        ("dataFlow", "dataFlowInfo"),
        ("dataFlow", "status"),
        ("dataFlow", "dataPlatformInstance"),
        ("dataJob", "dataPlatformInstance"),
        ("dataJob", "dataJobInfo"),
        ("dataJob", "status"),
        ("dataFlow", "globalTags"),
        ("dataflow", "domains"),
        ("dataset", "datasetKey"),
        ("dataset", "status"),
        ("dataset", "datasetKey"),
        ("dataset", "status"),
        ("dataset", "schemaMetadata"),
        ("dataset", "datasetKey"),
        ("dataset", "status"),
        ("dataJob", "dataJobInputOutput"),
        ("dataProcessInstance", "dataProcessInstanceInput"),
        ("dataProcessInstance", "dataProcessInstanceOutput"),
        ("dataProcessInstance", "dataProcessInstanceProperties"),
        ("dataProcessInstance", "dataProcessInstanceRunEvent"),
        ("dataProcessInstance", "dataProcessInstanceRelationships"),
    ]
    of = "urn:li:dataPlatform:spark"
    assert aspects(made, "dataPlatformInstance")[0] == {
        "platform": of,
        "instance": f"urn:li:dataPlatformInstance:({of},i)",
    }
    assert aspects(made, "datasetKey")[0] == {
        "platform": "urn:li:dataPlatform:hive",
        "name": "a",
        "origin": "PROD",
    }


def test_datasets_are_made_only_where_asked_for() -> None:
    told = event(inputs=[dataset("hive", "t", schema=schema(x="int"))])
    assert urns(convert(told, materialize=False), "dataset") == set()
    assert aspects(convert(told, include_schema=False), "schemaMetadata") == []


def test_descriptions_come_from_the_documentation() -> None:
    made = convert(event(job_facets={"documentation": {"description": "nightly"}}))
    assert (
        aspect(made, "dataFlowInfo")["description"] == aspect(made, "dataJobInfo")["description"] == "nightly"
    )


PROPERTIES = [
    # run facets, of the flow, of the job
    (
        {"processing_engine": {"name": "spark", "version": "3.5", "openlineageAdapterVersion": "1.50"}},
        {"processingEngine": "spark", "processingEngineVersion": "3.5", "openlineageAdapterVersion": "1.50"},
        {"processingEngine": "spark", "processingEngineVersion": "3.5", "openlineageAdapterVersion": "1.50"},
    ),
    (
        {"spark_jobDetails": {"jobId": 7, "jobDescription": "d", "jobGroup": None, "more": 1}},
        {"jobId": "7", "jobDescription": "d"},
        {"jobId": "7", "jobDescription": "d"},
    ),
    (
        {"spark_version": {"spark-version": "3.5", "openlineage-spark-version": "1.5", "x": "y"}},
        {"spark-version": "3.5", "openlineage-spark-version": "1.5"},
        {"spark-version": "3.5", "openlineage-spark-version": "1.5"},
    ),
    (
        {"spark_properties": {"properties": {"a": {"b": True, "c": [1, "x"]}, "d": 1.5}}},
        {"b": "true", "c": "[1, x]", "d": "1.5"},
        {"b": "true", "c": "[1, x]", "d": "1.5"},
    ),
    ({"airflow": {"dag": {"dag_id": "d"}, "task": {"task_id": "t"}}}, {"dag_id": "d"}, {"task_id": "t"}),
    (
        {"spark.logicalPlan": {"_producer": "p", "_schemaURL": "s", "plan": [{"x": 1}]}},
        {"spark.logicalPlan": '{"plan":[{"x":1}]}'},
        {},
    ),
    (
        {"unknownSourceAttribute": {"unknownItems": [{"name": "op", "properties": {"k": "v"}}]}},
        {},
        {"name": "op", "k": "v"},
    ),
    ({"nominalTime": {"nominalStartTime": "x"}, "gcp_dataproc": {"a": "b"}}, {}, {}),
]


@pytest.mark.parametrize("java", [{}, JAVA], ids=["default", "java"])
@pytest.mark.parametrize(("facets", "flow", "job"), PROPERTIES)
def test_properties(
    facets: dict[str, Any], flow: dict[str, str], job: dict[str, str], java: dict[str, Any]
) -> None:
    made = convert(event(run_facets=facets), **java)
    assert aspect(made, "dataFlowInfo")["customProperties"] == flow
    assert aspect(made, "dataJobInfo")["customProperties"] == job


def test_properties_that_are_null_are_left_out_and_paths_may_be_kept() -> None:
    facets = {"spark_properties": {"properties": {"a": {"x": 1, "y": None}, "b": {"x": 2}}}}
    assert aspect(convert(event(run_facets=facets)), "dataJobInfo")["customProperties"] == {"x": "2"}
    dotted = convert(event(run_facets=facets), dotted_keys=True)
    assert aspect(dotted, "dataJobInfo")["customProperties"] == {"a.x": "1", "b.x": "2"}
    with pytest.raises(EventError, match="is null"):
        convert(event(run_facets=facets), **JAVA)


TAGS = [
    # airflow.dag.tags, by default, as Java has it (None: it fails)
    ("['b', 'A']", ["A", "b"], ["A", "b"]),
    ("broken [", [], []),
    (["x"], ["x"], None),
    (None, [], []),
]


@pytest.mark.parametrize(("tags", "expected", "java"), TAGS)
def test_tags_of_airflow(tags: Any, expected: list[str], java: list[str] | None) -> None:
    told = event(run_facets={"airflow": {"dag": {"tags": tags}} if tags is not None else {"dag": {}}})

    def names(**given: Any) -> list[str]:
        found = aspect(convert(told, **given), "globalTags", {"tags": []})["tags"]
        return [each["tag"].removeprefix("urn:li:tag:") for each in found]

    assert names() == expected
    if java is None:
        with pytest.raises(EventError):
            names(**JAVA)
    else:
        assert names(**JAVA) == java


def test_configured_tags_replace_those_of_events_and_invalid_domains_are_dropped() -> None:
    told = event(run_facets={"airflow": {"dag": {"tags": "['x']"}}})
    made = convert(told, tags="one,two", domains="urn:li:domain:a,nonsense")
    assert aspect(made, "globalTags")["tags"] == [{"tag": "urn:li:tag:one"}, {"tag": "urn:li:tag:two"}]
    assert aspect(made, "domains") == {"domains": ["urn:li:domain:a"]}
    assert urns([each for each in made if each["aspectName"] == "domains"], "dataFlow")


def test_owners_tags_and_source_of_a_job_are_told() -> None:
    facets = {
        "ownership": {
            "owners": [{"name": "team:data", "type": "DATA_STEWARD"}, {"name": "ada", "type": "x"}]
        },
        "tags": {"tags": [{"key": "tier", "value": "gold"}, {"key": "pii"}]},
        "sourceCodeLocation": {"type": "git", "url": "https://git.example.org/x"},
    }
    made = convert(event(job_facets=facets))
    assert [(each["owner"], each["type"]) for each in aspect(made, "ownership")["owners"]] == [
        ("urn:li:corpGroup:data", "DATA_STEWARD"),
        ("urn:li:corpuser:ada", "TECHNICAL_OWNER"),
    ]
    assert aspect(made, "globalTags", kind="dataJob")["tags"] == [
        {"tag": "urn:li:tag:pii"},
        {"tag": "urn:li:tag:tier:gold"},
    ]
    assert aspect(made, "institutionalMemory")["elements"][0]["url"] == "https://git.example.org/x"
    for name in ("ownership", "globalTags", "institutionalMemory"):
        assert aspects(convert(event(job_facets=facets), **JAVA), name) == []
        off = {"ownership": "ownership", "globalTags": "job_tags", "institutionalMemory": "source_location"}
        assert aspects(convert(event(job_facets=facets), **{off[name]: False}), name) == []


STATES = [
    # type, run event by default, as Java has it
    ("START", {"status": "STARTED"}, {"status": "STARTED"}),
    ("RUNNING", {"status": "STARTED"}, {"status": "STARTED"}),
    ("COMPLETE", {"status": "COMPLETE", "result": ("SUCCESS", "COMPLETE")}, ...),
    ("FAIL", {"status": "COMPLETE", "result": ("FAILURE", "FAIL")}, ...),
    ("ABORT", {"status": "COMPLETE", "result": ("FAILURE", "ABORT")}, ...),
    ("OTHER", None, {"result": ("$UNKNOWN", "OTHER")}),
    ("complete", {"status": "COMPLETE", "result": ("SUCCESS", "COMPLETE")}, ...),
]


@pytest.mark.parametrize(("kind", "default", "java"), STATES)
def test_states(kind: str, default: dict[str, Any] | None, java: Any) -> None:
    def state(**given: Any) -> dict[str, Any] | None:
        told = aspect(convert(event(kind, at=1), **given), "dataProcessInstanceRunEvent", None)
        if told is None:
            return None
        assert told.pop("timestampMillis") == 1767225601000
        if "result" in told:
            told["result"] = (told["result"]["type"], told["result"]["nativeResultType"])
        return told

    assert state() == default
    assert state(**JAVA) == (default if java is ... else java)


def test_the_instance_is_named_for_its_run() -> None:
    made = convert(event(at=1))
    told = aspect(made, "dataProcessInstanceProperties")
    assert told["name"] == RUN
    assert told["created"] == {"time": 1767225601000, "actor": "urn:li:corpuser:datahub"}
    (job,) = urns(made, "dataJob")
    assert aspect(made, "dataProcessInstanceRelationships") == {
        "parentTemplate": job,
        "upstreamInstances": [],
    }


def test_parents_are_told() -> None:
    parent = {"run": {"runId": PARENT}, "job": {"namespace": "airflow", "name": "dag.task"}}
    told = event(run_facets={"parent": {**parent, "_producer": "https://github.com/apache/airflow/x"}})
    made = convert(told, parent_edges=True)
    relations = aspect(made, "dataProcessInstanceRelationships")
    assert relations["parentInstance"] == f"urn:li:dataProcessInstance:{PARENT}"
    assert aspect(made, "dataJobInputOutput")["inputDatajobs"] == [
        "urn:li:dataJob:(urn:li:dataFlow:(airflow,dag,airflow),dag.task)"
    ]
    assert "parentInstance" not in aspect(convert(told, **JAVA), "dataProcessInstanceRelationships")
    nobody = event(run_facets={"parent": {**parent, "_producer": "https://example.org"}})
    assert convert(nobody)
    with pytest.raises(EventError, match="orchestrator"):
        convert(nobody, **JAVA)


def test_what_a_run_says_of_itself_is_a_property_of_it() -> None:
    facets = {
        "errorMessage": {"message": "boom", "programmingLanguage": "JAVA", "stackTrace": "at x"},
        "nominalTime": {"nominalStartTime": "2026-01-01T00:00:00Z"},
        "externalQuery": {"externalQueryId": "q1", "source": "bigquery"},
    }
    told = aspect(convert(event("FAIL", run_facets=facets)), "dataProcessInstanceProperties")
    assert told["customProperties"] == {
        "errorMessage": "boom",
        "programmingLanguage": "JAVA",
        "stackTrace": "at x",
        "nominalStartTime": "2026-01-01T00:00:00Z",
        "externalQueryId": "q1",
        "externalQuerySource": "bigquery",
    }
    java = convert(event("FAIL", run_facets=facets), **JAVA)
    assert aspect(java, "dataProcessInstanceProperties")["customProperties"] == {}


@pytest.mark.parametrize("step", ["map", "map_partitions", "flatmap", "filter", "distinct"])
@pytest.mark.parametrize("source", ["parallel_collection", "text_file", "hadoopfile"])
def test_rdd_jobs_that_write_nothing_have_inputs_alone(step: str, source: str) -> None:
    same = [dataset("s3://b", "x")]
    rdd = {"job_facets": {"jobType": {"jobType": "RDD_JOB", "integration": "SPARK"}}}
    for given in ({}, JAVA):
        told = event(job=f"app.{step}_{source}", inputs=same, outputs=same, **rdd)
        edges = aspect(convert(told, **given), "dataJobInputOutput")
        assert (len(edges["inputDatasetEdges"]), len(edges["outputDatasetEdges"])) == (1, 0)
        other = event(job=f"app.{step}_{source}", inputs=same, outputs=[dataset("s3://b", "y")], **rdd)
        assert len(aspect(convert(other, **given), "dataJobInputOutput")["outputDatasetEdges"]) == 1


FAILS = [
    # what Java cannot convert
    {"kind": None},
    {"run": "nightly-7"},
    {"job": "app.f(x"},
    {"job": "app)x"},
    {"producer": "https://example.org"},
]


@pytest.mark.parametrize("told", FAILS, ids=str)
def test_what_fails_in_java_is_converted_here(told: dict[str, Any]) -> None:
    kind = told.get("kind", "COMPLETE")
    one = event(kind, **{name: value for name, value in told.items() if name != "kind"})
    assert convert(one)
    with pytest.raises(EventError):
        convert(one, **JAVA)


def test_job_events_have_edges_and_no_run() -> None:
    body = {
        "eventTime": "2026-01-01T00:00:00Z",
        "producer": SPARK,
        "job": {"namespace": "ns", "name": "app.step"},
        "outputs": [dataset("hive", "t")],
    }
    made = convert(body)
    assert urns(made, "dataProcessInstance") == set()
    assert len(aspect(made, "dataJobInputOutput")["outputDatasetEdges"]) == 1
    with pytest.raises(EventError):
        convert(body, **JAVA)


def test_dataset_events_have_the_dataset_alone() -> None:
    body = {
        "eventTime": "2026-01-01T00:00:00Z",
        "producer": SPARK,
        "dataset": dataset("hive", "t", schema=schema(x="int")),
    }
    made = convert(body)
    assert {each["entityType"] for each in made} == {"dataset"}
    assert [each["aspectName"] for each in made] == ["datasetKey", "status", "schemaMetadata"]
    with pytest.raises(EventError):
        convert(body, **JAVA)


def test_operations_and_profiles_are_told() -> None:
    out = dataset(
        "hive", "t", lifecycleStateChange={"lifecycleStateChange": "OVERWRITE"},
        outputFacets={"outputStatistics": {"rowCount": 5, "size": 10}},
    )  # fmt: skip
    metrics = {
        "rowCount": 3,
        "bytes": 9,
        "columnMetrics": {"x": {"nullCount": 1, "distinctCount": 2, "min": 0}},
    }
    source = dataset("hive", "s", inputFacets={"dataQualityMetrics": metrics})
    made = convert(event(inputs=[source], outputs=[out], at=1))
    done = aspect(made, "operation")
    assert (done["operationType"], done["numAffectedRows"], done["lastUpdatedTimestamp"]) == (
        "UPDATE",
        5,
        1767225601000,
    )
    profile = aspect(made, "datasetProfile")
    assert (profile["rowCount"], profile["sizeInBytes"], profile["columnCount"]) == (3, 9, 1)
    assert profile["fieldProfiles"] == [{"fieldPath": "x", "uniqueCount": 2, "nullCount": 1, "min": "0"}]
    assert aspects(convert(event(inputs=[source], outputs=[out]), **JAVA), "operation") == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [("CREATE", "CREATE"), ("DROP", "DROP"), ("TRUNCATE", "DELETE"), ("ALTER", "ALTER"), ("RENAME", "ALTER")],
)
def test_what_became_of_a_dataset(change: str, expected: str) -> None:
    out = dataset("hive", "t", lifecycleStateChange={"lifecycleStateChange": change})
    assert aspect(convert(event(outputs=[out])), "operation")["operationType"] == expected
