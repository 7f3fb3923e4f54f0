"""How a dataset is named in DataHub: the tables of names, symlinks, path specs, partitions and instances."""

from __future__ import annotations

from typing import Any

import pytest
from making import JAVA, aspect, columns, convert, dataset, event, options, short, symlinks, urn_of

from headwater.deliver.datahub import Converter
from headwater.deliver.datahub.paths import is_uri, match
from headwater.errors import ConfigError

GLUE = "arn:aws:glue:us-west-2:123456789012"

NAMES = [
    # namespace, name, platform and name
    ("postgres://h:5432", "db.sch.t", "postgres,db.sch.t"),
    ("mysql://h:3306", "db.t", "mysql,db.t"),
    ("redshift://c.r:5439", "db.sch.t", "redshift,db.sch.t"),
    ("snowflake://org-acct", "DB.SCH.T", "snowflake,DB.SCH.T"),
    ("bigquery", "p.d.t", "bigquery,p.d.t"),
    ("awsathena://athena.us-west-2.amazonaws.com", "c.d.t", "athena,c.d.t"),
    ("sqlserver://h:1433", "SQLPool1/sales.orders", "mssql,SQLPool1/sales.orders"),
    ("azurecosmos://x.documents.azure.com/dbs", "m.colls.o", "azurecosmos,m.colls.o"),
    ("kafka://b1:9092,b2:9092", "topic", "kafka,topic"),
    ("trino://h:443", "c.s.t", "trino,c.s.t"),
    ("hive://ms:9083", "db.t", "hive,db.t"),
    ("s3://b", "k/x.csv", "s3,b/k/x.csv"),
    ("gs://b", "/k", "gcs,b/k"),
    ("hdfs://nn:8020", "/a/b", "hdfs,/a/b"),
    ("file", "/a/b", "file,/a/b"),
    ("dbfs", "/a", "dbfs,/a"),
    ("s3a://b", "/x/y/", "s3,b/x/y"),
    ("s3n://b", "x", "s3,b/x"),
    ("gcs://b", "x", "gcs,b/x"),
    ("abfss://c@acc.dfs.core.windows.net", "p", "abs,c@acc.dfs.core.windows.net/p"),
    ("wasbs://c@acc.blob.core.windows.net", "/p", "abs,c@acc.blob.core.windows.net/p"),
    ("file://", "/a/b", "file,/a/b"),
    ("dbfs://", "/x", "dbfs,x"),
    ("gs", "b/k", "gs,b/k"),
    ("S3://b", "k", "S3,k"),
    ("hive", "db.t", "hive,db.t"),
]


@pytest.mark.parametrize("given", [{}, JAVA], ids=["default", "java"])
@pytest.mark.parametrize(("namespace", "name", "expected"), NAMES)
def test_names(namespace: str, name: str, expected: str, given: dict[str, Any]) -> None:
    assert short(urn_of(namespace, name, **given)) == expected


SYMLINKED = [
    # symlinks, by default, as Java has it
    ([(GLUE, "table/db/t")], "glue,db.t", "glue,db.t"),
    ([("aws:glue:us-west-2:123456789012", "table/db/t")], "glue,db.t", "glue,db.t"),
    ([("hive://ms:9083", "db.t")], "hive,db.t", "hive,db.t"),
    ([("s3://warehouse", "db.t")], "hive,db.t", "hive,db.t"),
    ([("file:/warehouse", "db.t")], "hive,db.t", "hive,db.t"),
    ([("iceberg://catalog", "db.t")], "iceberg,db.t", "hive,db.t"),
    ([("unity://workspace", "c.db.t")], "databricks,c.db.t", "hive,c.db.t"),
    ([("delta://x", "db.t")], "delta-lake,db.t", "hive,db.t"),
    ([("hive://ms", "db.t", "LOCATION")], "s3,b/k", "s3,b/k"),
    ([("hive://ms", "db.t", "table")], "s3,b/k", "s3,b/k"),
    ([("hive://ms", "db.first"), ("hive://ms", "db.last")], "hive,db.last", "hive,db.last"),
]


@pytest.mark.parametrize(("links", "default", "java"), SYMLINKED)
def test_symlinks(links: list[Any], default: str, java: str) -> None:
    facets = {"symlinks": symlinks(*links)}
    assert short(urn_of("s3://b", "k", facets)) == default
    assert short(urn_of("s3://b", "k", facets, **JAVA)) == java
    assert short(urn_of("s3://b", "k", facets, disable_symlinks=True)) == "s3,b/k"


def test_the_hive_alias_holds_for_hive() -> None:
    facets = {"symlinks": symlinks(("hive://ms:9083", "db.t"))}
    assert short(urn_of("s3://b", "k", facets, hive_platform_alias="glue")) == "glue,db.t"


def test_a_bare_glue_arn_is_glue() -> None:
    assert short(urn_of(GLUE, "table/db/t")) == "glue,db.t"
    assert short(urn_of(GLUE, "table/db/t", **JAVA)) == f"{GLUE},table/db/t"


def test_a_symlink_may_be_mapped_by_an_option() -> None:
    facets = {"symlinks": symlinks(("nessie://n", "db.t"))}
    assert short(urn_of("s3://b", "k", facets, symlink_platforms={"nessie": "iceberg"})) == "iceberg,db.t"


ILLEGAL = [
    ("snowflake://a", 'DB.S."T"', 'snowflake,DB.S."T"'),
    ("gs://b", "p=2020-01-01 00:00:00", "gcs,b/p=2020-01-01 00:00:00"),
    ("s3://b", "mydata _output", "s3,b/mydata _output"),
    ("s3://b", "50%off", "s3,b/50%off"),
    ("my_scheme://h", "t", "my_scheme,t"),
]


@pytest.mark.parametrize(("namespace", "name", "kept"), ILLEGAL)
def test_names_that_are_no_uri_are_kept(namespace: str, name: str, kept: str) -> None:
    assert short(urn_of(namespace, name)) == kept
    assert urn_of(namespace, name, **JAVA) is None


@pytest.mark.parametrize(
    ("text", "legal"),
    [
        ("s3://b/a?x#y", True),
        ("db:None", False),
        ("mysql://db:None/x", True),
        ("http://h_1/x", True),
        ("s3://b/ä", True),
        ("s3://b/a\\b", False),
        ("s3://b/{a}", False),
        ("s3://b/[a]", False),
        ("s3://b/a|b", False),
        ("s3://b/%41", True),
        ("s3://b/%4", False),
        ("s3://", False),
        ("s3:///k", True),
        ("s3://b/\u2003", False),
        ("1s://b/k", False),
    ],
)
def test_what_java_takes_for_a_uri(text: str, legal: bool) -> None:
    assert is_uri(text) is legal


def test_reserved_characters_are_encoded_as_the_sdk_does() -> None:
    assert short(urn_of("postgres://h", "db.sum(a,b)")) == "postgres,db.sum%28a%2Cb%29"
    assert short(urn_of("postgres://h", "db.sum(a,b)", **JAVA)) == "postgres,db.sum(a,b)"
    assert short(urn_of("postgres://h", "a,b", encode_urns=False)) == "postgres,a,b"


def test_lower_case_holds_for_platform_and_name_not_for_columns_or_instances() -> None:
    given = {"lower_case_urns": True, "dataset_platform_instance": "Inst"}
    assert short(urn_of("snowflake://ORG", "DB.T", **given)) == "snowflake,Inst.db.t"
    facet = columns(Out=[("snowflake://ORG", "DB.S", "In")])
    made = convert(event(outputs=[dataset("snowflake://ORG", "DB.T", columnLineage=facet)]), **given)
    fine = aspect(made, "dataJobInputOutput")["fineGrainedLineages"][0]
    assert [each.rpartition(",")[2] for each in fine["upstreams"] + fine["downstreams"]] == ["In)", "Out)"]


PATTERNS = [
    # pattern, uri, what matches
    ("s3://b/{table}", "s3://b/orders/year=2026", "s3://b/orders"),
    ("s3://b/*/{table}", "s3://b/raw/orders/x", "s3://b/raw/orders"),
    ("s3://b/{table}/year=*/*", "s3://b/orders", "s3://b/orders"),
    ("s3://b/a*/{table}", "s3://b/abc/orders", None),
    ("s3a://b/{table}", "s3://b/orders", None),
    ("s3://b/x-{table}", "s3://b/x-orders", None),
    ("s3://b/*", "s3://b/orders", None),
    ("s3://b/*/*/{table}", "s3://b/orders", None),
]


@pytest.mark.parametrize(("pattern", "uri", "expected"), PATTERNS)
def test_path_specs(pattern: str, uri: str, expected: str | None) -> None:
    assert match(pattern, uri) == expected


def test_a_path_spec_names_the_table_its_instance_and_env() -> None:
    platforms = {"s3": {"path_spec_list": ["s3://b/*/{table}"], "platform_instance": "lake", "env": "DEV"}}
    given = {"platforms": platforms, "dataset_platform_instance": "common"}
    assert short(urn_of("s3://b", "raw/orders/p=1", **given)) == "s3,lake.b/raw/orders,DEV"
    assert short(urn_of("s3://b", "raw/orders/p=1", **given, **JAVA)) == "s3,lake.b/raw/orders"
    bare = {
        "platforms": {"s3": {"path_spec_list": ["s3://b/{table}"]}},
        "dataset_platform_instance": "common",
    }
    assert short(urn_of("s3://b", "orders/p=1", **bare)) == "s3,common.b/orders"
    assert short(urn_of("s3://b", "orders/p=1", **bare, **JAVA)) == "s3,b/orders"
    assert short(urn_of("s3://c", "orders", **bare, **JAVA)) == "s3,common.c/orders"


def test_path_aliases_have_their_own_instance() -> None:
    aliases = {"lake": {"path_spec_list": ["s3://b/{table}"], "platform_instance": "one", "env": "QA"}}
    given = {"platforms": {"s3": {"aliases": aliases}}}
    assert short(urn_of("s3://b", "orders/p=1", **given)) == "s3,one.b/orders,QA"
    assert short(urn_of("s3://b", "orders/p=1", **given, **JAVA)) == "s3,b/orders/p=1"


PARTITIONS = [
    ("s3://b", "orders/year=2026", "s3,b/orders"),
    ("s3://b", "orders/year=2026/", "s3,b/orders"),
    ("s3://b", "year=2026/orders", "s3,b/year=2026/orders"),
    ("file", "/orders/year=2026", "file,/orders"),
    ("hive", "orders/year=2026", "hive,orders/year=2026"),
]


@pytest.mark.parametrize(("namespace", "name", "expected"), PARTITIONS)
def test_partitions_are_cut_off(namespace: str, name: str, expected: str) -> None:
    assert short(urn_of(namespace, name, partition_pattern=r"year=\d+/?")) == expected


def test_a_wrong_pattern_is_refused() -> None:
    with pytest.raises(ConfigError, match="partition_pattern"):
        options(partition_pattern="(")


INSTANCES = [
    # options, namespace, name, expected
    ({"dataset_platform_instance": "all"}, "mysql://h", "t", "mysql,all.t"),
    ({"dataset_platform_instance": ""}, "mysql://h", "t", "mysql,.t"),
    ({"platforms": {"mysql": {"platform_instance": "p"}}, "dataset_platform_instance": "all"}, "mysql://h", "t", "mysql,p.t"),
    ({"connections": {"mysql://h": {"platform_instance": "c"}}, "platforms": {"mysql": {"platform_instance": "p"}}}, "mysql://h", "t", "mysql,c.t"),
    ({"connections": {"mysql://h": {"platform_instance": "c"}}}, "mysql://other", "t", "mysql,t"),
    ({"connections": {"mysql://h": {"env": "dev"}}, "env": "qa"}, "mysql://h", "t", "mysql,t,DEV"),
    ({"connections": {"mysql://h": {"env": "dev"}}, "env": "qa"}, "mysql://x", "t", "mysql,t,QA"),
    ({"platforms": {"mysql": {"env": "UAT"}}}, "mysql://h", "t", "mysql,t,UAT"),
    ({"platforms": {"mysql": {"env": "nowhere"}}, "env": "qa"}, "mysql://h", "t", "mysql,t,QA"),
    ({"env": "nowhere"}, "mysql://h", "t", "mysql,t"),
    ({"env": "sbx"}, "bigquery", "p.d.t", "bigquery,p.d.t,SBX"),
    ({"connections": {"mysql://h": {"platform_instance": "c"}}, "lower_case_urns": True}, "MYSQL://H", "T", "mysql,c.t"),
]  # fmt: skip


@pytest.mark.parametrize("java", [{}, JAVA], ids=["default", "java"])
@pytest.mark.parametrize(("given", "namespace", "name", "expected"), INSTANCES)
def test_instances_and_envs(
    given: dict[str, Any], namespace: str, name: str, expected: str, java: dict[str, Any]
) -> None:
    assert short(urn_of(namespace, name, **given, **java)) == expected


def test_the_env_of_a_platform_may_be_in_lower_case() -> None:
    given = {"platforms": {"mysql": {"env": "uat"}, "s3": {"env": "uat"}}}
    assert short(urn_of("mysql://h", "t", **given)) == "mysql,t,UAT"
    assert short(urn_of("s3://b", "t", **given)) == "s3,b/t,UAT"
    assert short(urn_of("mysql://h", "t", **given, **JAVA)) == "mysql,t"


def test_connections_are_known_by_the_symlink_of_a_table() -> None:
    given = {"connections": {GLUE: {"platform_instance": "domain_a"}}}
    facets = {"symlinks": symlinks((f"{GLUE}", "table/db/t"))}
    for more in ({}, JAVA):
        assert short(urn_of("s3://b", "k", facets, **given, **more)) == "glue,domain_a.db.t"


def test_a_bucket_may_have_an_instance() -> None:
    given = {"connections": {"s3://b": {"platform_instance": "prod-lake", "env": "CORP"}}}
    assert short(urn_of("s3a://b", "k", **given)) == "s3,prod-lake.b/k,CORP"
    assert short(urn_of("s3://b", "k", **given, **JAVA)) == "s3,b/k"


DESCRIBED = [
    # what Spark says of a stream's source or sink, platform and name
    ("KafkaV2[Subscribe[my-topic]]", "kafka,my-topic"),
    ("KafkaV2[SubscribePattern[shop.*]]", "kafka,shop.*"),
    ("DeltaSink[s3://b/orders]", "s3,b/orders"),
    ("FileSink[file:///tmp/out]", "file,/tmp/out"),
    ("FileStreamSource[/tmp/in]", "hdfs,/tmp/in"),
    ("CloudFilesSource[/mnt/in]", "dbfs,/mnt/in"),
    ("RateStreamSource[x]", "RateStreamSource,x"),
    ("MemoryStream", None),
]


@pytest.mark.parametrize(("text", "expected"), DESCRIBED)
def test_what_spark_says_of_streams(text: str, expected: str | None) -> None:
    assert short(Converter().reading.datasets.described(text)) == expected


def test_hdfs_and_azure_have_their_options() -> None:
    assert short(urn_of("hdfs://nn:8020", "/a/b/", hdfs_as_files=True)) == "hdfs,nn:8020/a/b"
    azure = urn_of("abfss://c@acc.dfs.core.windows.net", "p/q", abs_style="source")
    assert short(azure) == "abs,c/p/q"


def test_a_platform_may_be_mapped_by_an_option() -> None:
    assert short(urn_of("postgresql://h", "t", platform_map={"postgresql": "postgres"})) == "postgres,t"


def test_columns_and_facetless_datasets_reach_the_table_that_a_symlink_named() -> None:
    """In Java only once the symlink was seen: here the input comes before the output that refers to it."""
    table = dataset("s3://b", "in", symlinks=symlinks(("hive://ms", "db.t")))
    facet = columns(x=[("s3://b", "in", "y")])
    told = event(inputs=[table], outputs=[dataset("s3://b", "out", columnLineage=facet)])
    for given in ({}, JAVA):
        fine = aspect(convert(told, **given), "dataJobInputOutput")["fineGrainedLineages"][0]
        assert fine["upstreams"] == [
            "urn:li:schemaField:(urn:li:dataset:(urn:li:dataPlatform:hive,db.t,PROD),y)"
        ]


def test_an_alias_that_is_named_later_holds_for_earlier_events_of_the_group() -> None:
    plain, linked = dataset("s3://b", "t"), dataset("s3://b", "t", symlinks=symlinks(("hive://ms", "db.t")))
    events = [event("START", at=1, inputs=[plain]).raw, event("COMPLETE", at=2, inputs=[linked]).raw]

    def inputs(**given: Any) -> list[str | None]:
        made = list(Converter(options(**given), "run").convert_all(events, pytest.fail))
        edges = aspect(made, "dataJobInputOutput")["inputDatasetEdges"]
        return [short(each["destinationUrn"]) for each in edges]

    assert inputs() == ["hive,db.t"]
    assert inputs(**JAVA) == ["hive,db.t", "s3,b/t"]


def test_a_dataset_that_an_event_names_twice_has_the_columns_and_the_names_of_both() -> None:
    table = dataset("hive://ms", "db.t", columnLineage=columns(a=[("mysql://h", "in", "x")]))
    links = symlinks(("hive://ms", "db.t"))
    path = dataset("s3://b", "t", symlinks=links, columnLineage=columns(b=[("s3://b", "t", "b")]))
    told = event(outputs=[table, path])
    fine = aspect(convert(told), "dataJobInputOutput")["fineGrainedLineages"]
    hive = "urn:li:schemaField:(urn:li:dataset:(urn:li:dataPlatform:hive,db.t,PROD),"
    assert [each["downstreams"] for each in fine] == [[f"{hive}a)"], [f"{hive}b)"]]
    assert fine[1]["upstreams"] == [f"{hive}b)"]
    assert len(aspect(convert(told, **JAVA), "dataJobInputOutput")["fineGrainedLineages"]) == 1
