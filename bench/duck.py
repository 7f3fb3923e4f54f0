"""duck: a file of JSON lines -> the tables of the house as far as SQL makes them, in DuckDB.

It checks the fields that an event must have and sets the others aside, knows repeats by a digest of the line, and makes
the same rows of events, jobs, runs with state and parent, datasets, inputs, outputs, edges, schemas, facets with their
contents once each, column edges and their sources; every facet is understood once for each digest, as the house does.

It leaves out what costs the others too: exact bytes of numbers in facets, limits on depth and size, the reason and
position of a refusal, times and run ids in other forms, the merge at equal times by a state's rank, symlinks, aliases and
canonical identities, job versions, statistics, assertions, tags, old forms of facets, commands.
"""

from __future__ import annotations

_FACETS = '"MAP(VARCHAR, JSON)"'
_NAMED = f'{{"namespace":"VARCHAR","name":"VARCHAR","facets":{_FACETS}}}'
_EVENT = (
    f'{{"eventType":"VARCHAR","eventTime":"VARCHAR","producer":"VARCHAR","run":{{"runId":"VARCHAR","facets":{_FACETS}}},'
    f'"job":{_NAMED},"inputs":[{_NAMED}],"outputs":[{_NAMED}]}}'
)
_SOURCES = (
    '{"inputFields":[{"namespace":"VARCHAR","name":"VARCHAR","field":"VARCHAR",'
    '"transformations":[{"type":"VARCHAR","subtype":"VARCHAR"}]}]}'
)
_SEEN = "min(seen) first_seen, max(seen) last_seen"
_SIDE = "select run, job, seen, '{way}' direction, d.namespace || chr(10) || d.name dataset, d.facets facets"
_SIDE += " from (select run, job, seen, unnest({side}) d from ev where good)"
_BODY = "f.key name, md5(f.value::varchar) body, f.value raw"


def stages(source: str) -> list[str]:
    """What is made in memory, one after the other."""
    lines = (
        f"read_csv('{source}', columns={{'line':'VARCHAR'}}, delim=chr(1), quote='', escape='', header=false,"
        " auto_detect=false, max_line_size=20000000)"
    )
    unnamed = "coalesce(d.namespace, '') = '' or coalesce(d.name, '') = ''"
    return [
        f"""create table ev as
        with met as (select md5(line) digest, any_value(line) line from {lines} group by all),
        told as (select digest, line, json_transform(case when json_valid(line) then line else '{{}}' end, '{_EVENT}') e
            from met)
        select digest, line, e.run.runId run, e.job.namespace || chr(10) || e.job.name job, e.eventType kind,
            epoch_us(try_cast(e.eventTime as timestamptz)) seen, e.producer producer, e.run.facets run_facets,
            e.job.facets job_facets, e.inputs ins, e.outputs outs,
            (e.run.runId <> '' and e.job.namespace <> '' and e.job.name <> ''
                and try_cast(e.eventTime as timestamptz) is not null
                and len(list_filter(list_concat(e.inputs, e.outputs), lambda d: {unnamed})) = 0) is true good
        from told""",
        f"create table io as {_SIDE.format(way='in', side='ins')} union all {_SIDE.format(way='out', side='outs')}",
        f"""create table of_data as select run, job, direction, dataset, seen, {_BODY}
        from (select run, job, direction, dataset, seen, unnest(map_entries(facets)) f from io)""",
        f"create table of_run as select run, seen, {_BODY} from (select run, seen, unnest(map_entries(run_facets)) f from ev where good)",
        f"create table of_job as select job, seen, {_BODY} from (select job, seen, unnest(map_entries(job_facets)) f from ev where good)",
        """create table bodies as select body, any_value(name) name, any_value(raw) raw from (select body, name, raw from
        of_data union all select body, name, raw from of_run union all select body, name, raw from of_job) group by body""",
        """create table schema_of as select body, fields::varchar fields, md5(fields::varchar) schema from (select body,
        json_transform(raw->'fields', '[{"name":"VARCHAR","type":"VARCHAR"}]') fields from bodies where name = 'schema')""",
        f"""create table relation as
        select body, field, i.namespace || chr(10) || i.name dataset, i.field source, t.type kind, t.subtype subtype
        from (select body, field, i, unnest(i.transformations) t from (select body, o.key field,
            unnest(from_json(o.value, '{_SOURCES}').inputFields) i from (select body,
                unnest(map_entries(from_json(raw->'fields', '{_FACETS}'))) o from bodies where name = 'columnLineage')))""",
        """create table columns_of as select body, told, md5(told) fingerprint from (select body,
        list_sort(list([field, dataset, source, kind, subtype]))::varchar told from relation group by body)""",
        """create table parent as select run, seen, raw->>'$.run.runId' parent,
        (raw->>'$.job.namespace') || chr(10) || (raw->>'$.job.name') job from of_run where name = 'parent'""",
    ]


_STATE = "max((case when kind in ('COMPLETE','FAIL','ABORT') then 1 else 0 end, seen, kind))"
_USED = f"""select run, dataset, {_SEEN}, max((io.seen, schema)) schema, max((io.seen, fingerprint)) columns from (select run,
dataset, seen, md5(facets['schema']::varchar) shape, md5(facets['columnLineage']::varchar) flow from io where direction = '{{way}}') io
left join schema_of on schema_of.body = shape left join columns_of on columns_of.body = flow group by run, dataset"""

TABLES = {
    "events": "select digest, kind, seen from ev where good",
    "quarantine": "select digest, line from ev where not good",
    "jobs": f"select job, {_SEEN} from (select job, seen from ev where good union all select job, seen from parent) group by job",
    "runs": f"""select run, max((seen, job)) job, {_SEEN}, {_STATE} state, min(seen) filter (kind = 'START') started_at,
        max(seen) filter (kind in ('COMPLETE','FAIL','ABORT')) ended_at, max((seen, producer)) producer, max((seen, parent)) parent
        from (select run, job, seen, kind, producer, null parent from ev where good
        union all select run, null, seen, null, null, parent from parent
        union all select parent, job, seen, null, null, null from parent) group by run""",
    "datasets": f"select dataset, {_SEEN} from io group by dataset",
    "inputs": _USED.format(way="in"),
    "outputs": _USED.format(way="out"),
    "edges": f"select job, direction, dataset, {_SEEN} from io group by all",
    "schemas": f"select dataset, schema, {_SEEN} from of_data join schema_of using (body) group by all",
    "column_edges": f"select job, dataset, fingerprint, {_SEEN} from of_data join columns_of using (body) where direction = 'out' group by all",
    "column_sources": "select distinct fingerprint, dataset from relation join columns_of using (body)",
    "run_facets": f"select run, name, body, {_SEEN} from of_run group by all",
    "job_facets": f"select job, name, body, {_SEEN} from of_job group by all",
    "dataset_facets": f"select dataset, name, body, {_SEEN} from of_data group by all",
    "contents": """select body digest, any_value(raw) body from (select body, raw::varchar raw from bodies
        union all select schema, fields from schema_of union all select fingerprint, told from columns_of) group by body""",
}


def make(source: str, folder: str) -> dict[str, int]:
    """All tables as Parquet; how many rows each has."""
    import duckdb

    base = duckdb.connect()
    base.execute("set threads=2; set preserve_insertion_order=false")
    for stage in stages(source):
        base.execute(stage)
    rows: dict[str, int] = {}
    for table, query in TABLES.items():
        found = base.execute(f"copy ({query}) to '{folder}/{table}.parquet' (compression zstd)").fetchone()
        rows[table] = found[0] if found else 0
    return rows
