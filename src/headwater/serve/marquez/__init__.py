"""serve.marquez: Marquez's HTTP API -> the models of `query.marquez`, and commands for what clients write.

namespaces  /namespaces, /sources
tags        /tags, and tags on jobs, datasets and fields
datasets    /namespaces/{ns}/datasets
jobs        /jobs, /namespaces/{ns}/jobs
runs        /jobs/runs/{id}, and the state calls
graphs      /lineage, /column-lineage, /runlineage/upstream
events      /events/lineage, /events, /search, /stats
graphql     /api/v1-beta/graphql
"""

from headwater.serve.marquez import datasets, events, graphql, graphs, jobs, namespaces, runs, tags

READS = [
    *namespaces.READS,
    *tags.READS,
    *datasets.READS,
    *jobs.READS,
    *runs.READS,
    *graphs.READS,
    *events.READS,
    *graphql.READS,
]
WRITES = [*namespaces.WRITES, *tags.WRITES, *datasets.WRITES, *jobs.WRITES, *runs.WRITES]
