"""streams: hypothesis -> streams of events as several tools would send them, with everything that can collide.

Few names, few times, few values: so that runs change their jobs, facets tie at one stamp, symlinks and alias
rules join groups, and a run's inputs are told in another event than its outputs.
"""

from __future__ import annotations

from typing import Any
from uuid import NAMESPACE_URL, uuid5

import msgspec
from hypothesis import strategies as st

SCHEMA = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/"
NAMESPACES = (
    "s3://lake",
    "s3a://lake",
    "postgres://db:5432",
    "postgresql://db",
    "hive://m:9083",
    "kafka://b:9092",
)
NAMES = ("orders", "raw/orders", "shop.public.orders", "naïve ☃")


def at(second: int) -> str:
    return f"2026-01-01T00:{second // 60:02d}:{second % 60:02d}Z"


def run_id(number: int) -> str:
    return str(uuid5(NAMESPACE_URL, f"run {number}"))


def facet(**fields: Any) -> dict[str, Any]:
    return {"_producer": "https://example.org", "_schemaURL": "https://example.org/facet.json", **fields}


seconds = st.integers(0, 12)
identities = st.builds(
    lambda ns, n: {"namespace": ns, "name": n}, st.sampled_from(NAMESPACES), st.sampled_from(NAMES)
)
fields = st.sampled_from(("id", "total", "größe"))
schemas = st.lists(
    st.builds(lambda n, t: {"name": n, "type": t}, fields, st.sampled_from(("int", "string"))), max_size=3
)
transformations = st.lists(
    st.builds(
        lambda t, s, m: {"type": t, "subtype": s, "masking": m},
        st.sampled_from(("DIRECT", "INDIRECT")),
        st.sampled_from(("IDENTITY", "FILTER")),
        st.booleans(),
    ),
    max_size=2,
)
input_fields = st.builds(
    lambda d, f, t: {**d, "field": f, "transformations": t}, identities, fields, transformations
)
column_lineage = st.builds(
    lambda told, whole: facet(fields={f: {"inputFields": i} for f, i in told.items()}, dataset=whole),
    st.dictionaries(fields, st.lists(input_fields, max_size=2), max_size=2),
    st.lists(input_fields, max_size=1),
)
symlinks = st.builds(
    lambda ids: facet(identifiers=[{**each, "type": "TABLE"} for each in ids]),
    st.lists(identities, max_size=2),
)
small = st.integers(0, 3)
assertions = st.builds(
    lambda rows: facet(assertions=[{"assertion": a, "column": c, "success": s} for a, c, s in rows]),
    st.lists(st.tuples(st.sampled_from(("not_null", "unique")), fields, st.booleans()), max_size=2),
)


def _maybe(**facets: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Any part of these facets; some of them null, as producers send them."""
    return st.fixed_dictionaries({}, optional={name: value | st.none() for name, value in facets.items()})


dataset_facets = _maybe(
    schema=schemas.map(lambda f: facet(fields=f)),
    columnLineage=column_lineage,
    symlinks=symlinks,
    version=small.map(lambda v: facet(datasetVersion=str(v))),
    lifecycleStateChange=st.sampled_from(("OVERWRITE", "DROP")).map(lambda s: facet(lifecycleStateChange=s)),
    dataSource=small.map(lambda v: facet(name=f"source {v}")),
    tags=small.map(lambda v: facet(tags=[{"key": "pii", "value": str(v)}])),
    dataQualityAssertions=assertions,
    documentation=small.map(lambda v: facet(description=f"about {v}")),
    ownership=small.map(lambda v: facet(owners=[{"name": f"team {v}", "type": "OWNER"}])),
    custom=st.builds(lambda a, b: facet(a=a, b=b), small, st.text(max_size=3)),
)
inputs = st.builds(
    lambda d, f, i: {**d, "facets": f, "inputFacets": i},
    identities,
    dataset_facets,
    _maybe(inputStatistics=small.map(lambda v: facet(rowCount=v)), dataQualityAssertions=assertions),
)
outputs = st.builds(
    lambda d, f, o: {**d, "facets": f, "outputFacets": o},
    identities,
    dataset_facets,
    _maybe(outputStatistics=st.builds(lambda r, s: facet(rowCount=r, size=s), small, small)),
)
jobs = st.builds(
    lambda n, f: {"namespace": "etl", "name": n, "facets": f},
    st.sampled_from(("load", "join", "report")),
    _maybe(
        jobType=st.sampled_from(("BATCH", "STREAMING")).map(
            lambda p: facet(processingType=p, integration="SPARK")
        ),
        sql=small.map(lambda v: facet(query=f"SELECT {v}")),
    ),
)
parents = st.builds(
    lambda n, j, r: facet(
        run={"runId": run_id(n)},
        job={"namespace": "etl", "name": j},
        **({"root": {"run": {"runId": run_id(r)}, "job": {"namespace": "etl", "name": "dag"}}} if r else {}),
    ),
    st.integers(0, 5),
    st.sampled_from(("load", "dag")),
    st.integers(0, 2),
)
runs = st.builds(
    lambda n, f: {"runId": run_id(n), "facets": f},
    st.integers(0, 5),
    _maybe(
        parent=parents,
        errorMessage=small.map(lambda v: facet(message=f"broken {v}")),
        nominalTime=seconds.map(lambda s: facet(nominalStartTime=at(s))),
        test=st.sampled_from(("pass", "fail", "skip")).map(
            lambda s: facet(tests=[{"name": "no_orphans", "status": s, "severity": "warn"}])
        ),
    ),
)
run_events = st.builds(
    lambda t, s, r, j, i, o: {
        "eventType": t,
        "eventTime": at(s),
        "producer": "https://example.org",
        "schemaURL": SCHEMA + "RunEvent",
        "run": r,
        "job": j,
        "inputs": i,
        "outputs": o,
    },
    st.sampled_from(("START", "RUNNING", "COMPLETE", "FAIL", "ABORT", "OTHER", None)),
    seconds,
    runs,
    jobs,
    st.lists(inputs, max_size=2),
    st.lists(outputs, max_size=2),
)
job_events = st.builds(
    lambda s, j, i, o: {
        "eventTime": at(s),
        "producer": "https://example.org",
        "schemaURL": SCHEMA + "JobEvent",
        "job": j,
        "inputs": i,
        "outputs": o,
    },
    seconds,
    jobs,
    st.lists(inputs, max_size=1),
    st.lists(outputs, max_size=1),
)
dataset_events = st.builds(
    lambda s, d, f: {
        "eventTime": at(s),
        "producer": "https://example.org",
        "schemaURL": SCHEMA + "DatasetEvent",
        "dataset": {**d, "facets": f},
    },
    seconds,
    identities,
    dataset_facets,
)
events = (run_events | run_events | run_events | job_events | dataset_events).map(msgspec.json.encode)
"""Encoded events."""
