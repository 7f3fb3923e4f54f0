"""naming._platforms: a store's name -> how OpenLineage writes its namespace and its tables: the one table of stores.

To add a store, add one line to PLATFORMS and one row to docs/naming.md. In the templates, `{host}:{port}` gets the
store's default port when none is known, `{host}[:{port}]` shows a port only when it is not the default; a level that
nobody names is left out together with its separator. Stores that speak another store's wire protocol share its
namespace, because the same server may be reached through either driver.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Fold = Literal["", "lower", "upper"]


@dataclass(frozen=True, slots=True)
class Platform:
    """One kind of store.

    Args:
        namespace: template of the namespace.
        name: template of the name; its fields, left to right, are the levels of a qualified table name.
        port: the default port.
        fold: what the store does to the case of an unquoted identifier.
        insensitive: the store folds quoted identifiers too.
        schema: the level above the table when nobody names it.
        catalog: the topmost level when nobody names it.
        aliases: other names and url schemes of the store.
        host: how the host of a connection becomes the host of the namespace.
    """

    namespace: str
    name: str
    port: int | None = None
    fold: Fold = ""
    insensitive: bool = False
    schema: str | None = None
    catalog: str | None = None
    aliases: tuple[str, ...] = ()
    host: Callable[[str], str] | None = None

    @property
    def levels(self) -> tuple[str, ...]:
        """The fields of the name, outermost first."""
        return tuple(re.findall(r"\{(\w+)\}", self.name))


def redshift_host(host: str) -> str:
    """cluster.id.region.redshift.amazonaws.com -> cluster.region, and likewise for a serverless workgroup."""
    found = re.fullmatch(
        r"([^.]+)\.[^.]+\.([^.]+)\.redshift(?:-serverless)?\.amazonaws\.com(?:\.cn)?(:[0-9]+)?", host
    )
    return f"{found[1]}.{found[2]}{found[3] or ''}" if found else host


def snowflake_account(host: str) -> str:
    """An account's address or identifier -> org-account, or locator.region.cloud."""
    account = (
        host.split(":")[0].removesuffix(".snowflakecomputing.com").removesuffix(".snowflakecomputing.cn")
    )
    account = account.removesuffix(".global").removesuffix(".privatelink").replace("_", "-")
    # a region without its cloud is one of AWS: Snowflake leaves "aws" out of most of those addresses
    return f"{account}.aws" if account.count(".") == 1 else account


def kusto_host(host: str) -> str:
    """A cluster's short name -> its address."""
    return host if "." in host else f"{host}.kusto.windows.net"


_DST = "{database}.{schema}.{table}"
_DT = "{database}.{table}"
_CST = "{catalog}.{schema}.{table}"

PLATFORMS: dict[str, Platform] = {
    # relational, as the specification has them
    "postgres": Platform("postgres://{host}:{port}", _DST, 5432, "lower", schema="public", aliases=("postgresql", "pgsql", "postgis", "edb")),
    "mysql": Platform("mysql://{host}:{port}", _DT, 3306, aliases=("mysqlx",)),
    "mssql": Platform("mssql://{host}:{port}/{instance}", _DST, 1433, schema="dbo", aliases=("sqlserver", "microsoft", "azuresql")),
    "synapse": Platform("sqlserver://{host}:{port}", "{schema}.{table}", 1433, schema="dbo", aliases=("azuresynapse",)),
    "fabric": Platform("fabric-warehouse://{host}[:{port}]", _DST, 1433, schema="dbo", aliases=("fabric-warehouse",)),
    "oracle": Platform("oracle://{host}:{port}", "{service}.{schema}.{table}", 1521, "upper"),
    "db2": Platform("db2://{host}:{port}", _DST, 6789, "upper", aliases=("ibm_db_sa", "db2j", "as400")),
    "crate": Platform("crate://{host}:{port}", _DST, 5432, "lower", schema="doc", aliases=("cratedb",)),
    "oceanbase": Platform("oceanbase://{host}:{port}", _DT, 2881),
    "teradata": Platform("teradata://{host}:{port}", _DT, 1025, aliases=("teradatasql",)),
    # warehouses and lakes, as the specification has them
    "redshift": Platform("redshift://{host}:{port}", _DST, 5439, "lower", schema="public", host=redshift_host),
    "snowflake": Platform("snowflake://{host}", _DST, None, "upper", schema="PUBLIC", host=snowflake_account),
    "bigquery": Platform("bigquery", "{project}.{dataset}.{table}"),
    "athena": Platform("awsathena://athena.{region}.amazonaws.com", "{catalog}.{database}.{table}", None, "lower", True, "default", "AwsDataCatalog", ("awsathena",)),
    "glue": Platform("arn:aws:glue:{region}:{account}", "table/{database}/{table}", None, "lower", True, "default"),
    "unity": Platform("unitycatalog://{host}[:{port}]", _CST, 443, "lower", True, "default", aliases=("unitycatalog", "databricks", "spark")),
    "hive": Platform("hive://{host}:{port}", _DT, 10000, "lower", True, "default", aliases=("hive2",)),
    "trino": Platform("trino://{host}:{port}", _CST, 443, "lower", True, aliases=("starburst",)),
    "spanner": Platform("spanner://{project}:{instance}", _DST, aliases=("cloudspanner",)),
    "cassandra": Platform("cassandra://{host}:{port}", "{keyspace}.{table}", 9042, "lower", aliases=("scylla", "scylladb")),
    "cosmos": Platform("azurecosmos://{host}/dbs/{database}", "colls/{table}", aliases=("azurecosmos", "cosmosdb")),
    "kusto": Platform("azurekusto://{host}", "{database}/{table}", aliases=("azurekusto", "adx"), host=kusto_host),
    "milvus": Platform("milvus://{host}:{port}", "{database}.{collection}", 19530, schema="default"),
    # documents and messages, as the specification has them
    "kafka": Platform("kafka://{host}:{port}", "{topic}", 9092),
    "pubsub": Platform("pubsub", "topic:{project}:{topic}"),
    "pubsub_subscription": Platform("pubsub", "subscription:{project}:{subscription}"),
    "box": Platform("box://{host}:{port}/{enterprise}", "{object}"),
    "filenet": Platform("filenet://{host}:{port}/{repository}", "{object}"),
    "sharepoint": Platform("mssharepoint://{host}:{port}/{site}", "{object}", aliases=("mssharepoint",)),
    # not in the specification: those that speak the wire of one that is
    "mariadb": Platform("mysql://{host}:{port}", _DT, 3306),
    "singlestore": Platform("mysql://{host}:{port}", _DT, 3306, aliases=("memsql", "singlestoredb")),
    "tidb": Platform("mysql://{host}:{port}", _DT, 4000),
    "starrocks": Platform("mysql://{host}:{port}", _DT, 9030),
    "doris": Platform("mysql://{host}:{port}", _DT, 9030, aliases=("pydoris",)),
    "vitess": Platform("mysql://{host}:{port}", "{keyspace}.{table}", 15306),
    "greenplum": Platform("postgres://{host}:{port}", _DST, 5432, "lower", schema="public", aliases=("pivotal",)),
    "cockroach": Platform("postgres://{host}:{port}", _DST, 26257, "lower", schema="public", aliases=("cockroachdb",)),
    "yugabyte": Platform("postgres://{host}:{port}", _DST, 5433, "lower", schema="public", aliases=("yugabytedb",)),
    "timescale": Platform("postgres://{host}:{port}", _DST, 5432, "lower", schema="public", aliases=("timescaledb",)),
    "risingwave": Platform("postgres://{host}:{port}", _DST, 4566, "lower", schema="public"),
    "materialize": Platform("postgres://{host}:{port}", _DST, 6875, "lower", schema="public"),
    # not in the specification: other databases
    "clickhouse": Platform("clickhouse://{host}:{port}", _DT, 8123, schema="default", aliases=("ch", "clickhousedb")),
    "presto": Platform("presto://{host}:{port}", _CST, 8080, "lower", True, aliases=("prestodb",)),
    "impala": Platform("impala://{host}:{port}", _DT, 21050, "lower", True, "default"),
    "vertica": Platform("vertica://{host}:{port}", _DST, 5433, schema="public"),
    "hana": Platform("hana://{host}:{port}", _DST, 30015, "upper", aliases=("sap", "saphana")),
    "exasol": Platform("exasol://{host}:{port}", "{schema}.{table}", 8563, "upper", aliases=("exa",)),
    "netezza": Platform("netezza://{host}:{port}", _DST, 5480, "upper", aliases=("nzpy",)),
    "sybase": Platform("sybase://{host}:{port}", _DST, 5000, schema="dbo"),
    "informix": Platform("informix://{host}:{port}", _DST, 9088, "lower", aliases=("informix-sqli",)),
    "firebird": Platform("firebird://{host}:{port}", _DT, 3050, "upper", aliases=("firebirdsql",)),
    "monetdb": Platform("monetdb://{host}:{port}", _DST, 50000, "lower", schema="sys"),
    "phoenix": Platform("phoenix://{host}:{port}", "{schema}.{table}", 2181, "upper"),
    "hbase": Platform("hbase://{host}:{port}", "{namespace}:{table}", 2181, schema="default"),
    "kudu": Platform("kudu://{host}:{port}", "{table}", 7051),
    "ignite": Platform("ignite://{host}:{port}", "{schema}.{table}", 10800, "upper", schema="PUBLIC"),
    "dremio": Platform("dremio://{host}:{port}", "{source}.{schema}.{table}", 31010, aliases=("arrow-flight-sql",)),
    "druid": Platform("druid://{host}:{port}", "{table}", 8888),
    "pinot": Platform("pinot://{host}:{port}", "{table}", 8099),
    "questdb": Platform("questdb://{host}:{port}", "{table}", 8812),
    "influxdb": Platform("influxdb://{host}:{port}", "{bucket}.{measurement}", 8086, aliases=("influx",)),
    "neo4j": Platform("neo4j://{host}:{port}", "{database}.{label}", 7687, schema="neo4j", aliases=("bolt",)),
    "derby": Platform("file:{path}", "{schema}.{table}", None, "upper"),
    "derby_server": Platform("derby://{host}:{port}", _DST, 1527, "upper"),
    "h2": Platform("h2://{path}", "{schema}.{table}", None, "upper", schema="PUBLIC"),
    "sqlite": Platform("sqlite://{path}", "{table}", aliases=("sqlite3",)),
    "duckdb": Platform("duckdb://{path}", "{schema}.{table}", schema="main"),
    "motherduck": Platform("motherduck://md", _DST, schema="main", aliases=("md",)),
    "ducklake": Platform("ducklake://{path}", _CST, schema="main"),
    "lancedb": Platform("lancedb://{path}", "{table}", aliases=("lance",)),
    "mongodb": Platform("mongodb://{host}:{port}", "{database}.{collection}", 27017, aliases=("mongo",)),
    "couchbase": Platform("couchbase://{host}:{port}", "{bucket}.{scope}.{collection}", 8091, schema="_default"),
    "elasticsearch": Platform("elasticsearch://{host}:{port}", "{index}", 9200, "lower", True, aliases=("elastic", "es")),
    "opensearch": Platform("opensearch://{host}:{port}", "{index}", 9200, "lower", True),
    "solr": Platform("solr://{host}:{port}", "{collection}", 8983),
    "redis": Platform("redis://{host}:{port}", "{key}", 6379, aliases=("rediss",)),
    "weaviate": Platform("weaviate://{host}:{port}", "{collection}", 8080),
    "qdrant": Platform("qdrant://{host}:{port}", "{collection}", 6333),
    # not in the specification: clouds' own stores, streams and queues
    "dynamodb": Platform("arn:aws:dynamodb:{region}:{account}", "table/{table}"),
    "kinesis": Platform("arn:aws:kinesis:{region}:{account}", "stream/{stream}"),
    "sqs": Platform("arn:aws:sqs:{region}:{account}", "{queue}"),
    "sns": Platform("arn:aws:sns:{region}:{account}", "{topic}"),
    "pulsar": Platform("pulsar://{host}:{port}", "{topic}", 6650, aliases=("pulsar+ssl",)),
    "rabbitmq": Platform("amqp://{host}:{port}", "{vhost}.{queue}", 5672, aliases=("amqp", "amqps")),
    "mqtt": Platform("mqtt://{host}:{port}", "{topic}", 1883, aliases=("mqtts",)),
    "jms": Platform("jms://{host}:{port}", "{queue}", 61616, aliases=("activemq",)),
    "ibmmq": Platform("ibmmq://{host}:{port}", "{manager}.{queue}", 1414),
    "nats": Platform("nats://{host}:{port}", "{subject}", 4222),
    "splunk": Platform("splunk://{host}:{port}", "{index}", 8088),
    "dlt_sink": Platform("dlt-sink://{host}", "{table}", aliases=("dlt-sink",)),
}  # fmt: skip

_BY_NAME = {alias: key for key, platform in PLATFORMS.items() for alias in (key, *platform.aliases)}


def platform_key(name: str) -> str | None:
    """The key in PLATFORMS of a store's name, alias or url scheme (`postgresql+psycopg`); None if nobody knows it."""
    name = name.lower()
    return _BY_NAME.get(name) or _BY_NAME.get(name.partition("+")[0])
