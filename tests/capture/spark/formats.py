"""Programs on real catalogs, formats and services, with the lineage that is expected of them; for test_live_formats.

A program is a generator: what it prepares, `yield`, what is looked at, `yield` of what the services themselves say about it
(the oracle: snapshot ids, locations, row counts). In what is expected `{name}` is a place that the services or the oracle tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from programs import ORDER, ORDERS, PEOPLE, PERSON

At = dict[str, str]
Steps = Iterator[dict[str, Any] | None]


@dataclass(frozen=True)
class Format:
    """A program and what must be told of it: as in `programs`, and versions and links besides."""

    run: Callable[[Any, str, At], Steps]
    group: str
    name: str
    expected: dict[str, Any] = field(default_factory=dict)
    """arguments of `programs.Program`"""
    links: dict[str, str] = field(default_factory=dict)
    """dataset -> the other name that must be told with it, as `namespace|name`"""
    since: str = "3.5"
    absent: tuple[str, ...] = ()
    """words that no event may hold"""


FORMATS: dict[str, Format] = {}


def on(
    group: str, name: str = "", links: dict[str, str] | None = None, since: str = "3.5", **expected: Any
) -> Callable[[Callable[..., Steps]], Callable[..., Steps]]:
    absent = expected.pop("absent", ())

    def enrol(run: Callable[..., Steps]) -> Callable[..., Steps]:
        named = f"{group}_{name or run.__name__}"
        FORMATS[named] = Format(run, group, named, expected, links or {}, since, absent)
        return run

    return enrol


def prepare(spark: Any, d: str) -> None:
    spark.createDataFrame(ORDERS, ORDER).coalesce(1).write.parquet(f"{d}/orders")
    spark.createDataFrame(PEOPLE, PERSON).coalesce(1).write.parquet(f"{d}/people")


def settings(group: str, root: str, at: At) -> dict[str, str]:
    """The session of a group."""
    if group == "iceberg":
        prefix = "spark.sql.catalog."
        kinds = {
            "had": {"type": "hadoop", "warehouse": f"{root}/had"},
            "jd": {"type": "jdbc", "uri": f"jdbc:postgresql://{at['postgres']}/postgres?password=hunter2"}
            | {"jdbc.user": "postgres", "jdbc.password": "hunter2", "warehouse": f"{root}/jd"},
            "hv": {"type": "hive", "uri": at["metastore"], "warehouse": f"{root}/hv"},
            "rs": {"type": "rest", "uri": at["rest"]},
        }
        out = {"spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"}
        out["spark.hadoop.iceberg.engine.hive.lock-enabled"] = "false"  # Derby has no tables for locks
        for name, told in kinds.items():
            out[prefix + name] = "org.apache.iceberg.spark.SparkCatalog"
            out |= {f"{prefix}{name}.{key}": value for key, value in told.items()}
        return out
    if group == "delta":
        return {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.databricks.delta.snapshotPartitions": "2",
        }
    if group == "jdbc":
        url = f"jdbc:postgresql://{at['postgres']}/postgres?user=postgres&password=hunter2"
        name = "spark.sql.catalog.pg"
        return {
            name: "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
            f"{name}.url": url,
            f"{name}.driver": "org.postgresql.Driver",
        }
    if group == "hive":  # the metastore inside the driver, on Derby
        return {
            "spark.sql.catalogImplementation": "hive",
            "spark.driver.extraJavaOptions": f"-Dderby.system.home={root}/derby",
        }
    if group == "metastore":
        return {
            "spark.sql.catalogImplementation": "hive",
            "spark.hadoop.hive.metastore.uris": at["metastore"],
        }
    return {}


# --- Iceberg


def _snapshot(spark: Any, table: str) -> str:
    return str(spark.sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at DESC").first()[0])


def _lies(spark: Any, table: str) -> str:
    told = {row[0]: row[1] for row in spark.sql(f"DESCRIBE EXTENDED {table}").collect()}
    return "file|" + str(told["Location"]).removeprefix("file:").replace("//", "/")


_CATALOGS = {
    "had": "file:{root}/had|shop.src",
    "jd": "postgres://{postgres}/postgres|shop.src",
    "hv": "hive://{metastore_host}|shop.src",
    "rs": "{rest}|shop.src",
}


def _catalog(c: str, link: str) -> None:
    @on(
        "iceberg",
        f"{c}_create_as_select",
        links={"{src}": link},
        inputs="orders",
        outputs={"{src}": {"id": "orders:id", "amount": "orders:amount", "state": "orders:state"}},
        rows={"{src}": 5},
        changes={"{src}": "CREATE"},
    )
    def create_as_select(spark: Any, d: str, at: At) -> Steps:
        spark.sql(f"CREATE NAMESPACE {c}.shop")
        spark.read.parquet(f"{d}/orders").createOrReplaceTempView("orders")
        yield None
        spark.sql(f"CREATE TABLE {c}.shop.src USING iceberg AS SELECT id, amount, state FROM orders")
        yield None
        src = f"{c}.shop.src"
        yield {"names": {"src": _lies(spark, src)}, "version": {"{src}": _snapshot(spark, src)}}

    @on(
        "iceberg",
        f"{c}_merge",
        inputs="{src} {tgt}",
        outputs={"{tgt}": {"id": "{src}:id {tgt}:id", "amount": "{src}:amount {tgt}:amount"}},
        indirect={"{tgt}": "{src}:id {tgt}:id {src}:state"},
    )
    def merge(spark: Any, d: str, at: At) -> Steps:
        spark.sql(f"CREATE TABLE {c}.shop.tgt (id BIGINT, amount DOUBLE) USING iceberg")
        spark.sql(f"INSERT INTO {c}.shop.tgt VALUES (1, 0.0), (9, 9.0)")
        before = _snapshot(spark, f"{c}.shop.tgt")
        yield None
        spark.sql(
            f"MERGE INTO {c}.shop.tgt t USING {c}.shop.src s ON t.id = s.id"
            " WHEN MATCHED AND s.state = 'open' THEN UPDATE SET amount = s.amount"
            " WHEN NOT MATCHED THEN INSERT (id, amount) VALUES (s.id, s.amount)"
        )
        yield None
        src, tgt = f"{c}.shop.src", f"{c}.shop.tgt"
        assert spark.table(tgt).count() == 6
        names = {"src": _lies(spark, src), "tgt": _lies(spark, tgt)}
        yield {
            "names": names,
            "version": {"{tgt}": _snapshot(spark, tgt)},
            "read_version": {"{src}": _snapshot(spark, src), "{tgt}": before},
        }


for _c, _link in _CATALOGS.items():
    _catalog(_c, _link)


@on(
    "iceberg",
    inputs="{src}",
    outputs={"{tgt}": {"id": "{src}:id", "amount": "{src}:amount"}},
    indirect={"{tgt}": "{src}:state"},
    rows={"{tgt}": 2},
)
def append(spark: Any, d: str, at: At) -> Steps:
    yield None
    found = spark.table("had.shop.src").where("state = 'paid'").selectExpr("id", "amount * 2 AS amount")
    found.writeTo("had.shop.tgt").append()
    yield None
    yield {
        "names": {"src": _lies(spark, "had.shop.src"), "tgt": _lies(spark, "had.shop.tgt")},
        "version": {"{tgt}": _snapshot(spark, "had.shop.tgt")},
    }


@on(
    "iceberg",
    inputs="{tgt}",
    outputs={"{tgt}": {"id": "{tgt}:id", "amount": "{tgt}:amount"}},
    indirect={"{tgt}": "{tgt}:id"},
)
def update(spark: Any, d: str, at: At) -> Steps:
    yield None
    spark.sql("UPDATE had.shop.tgt SET amount = amount + 1 WHERE id = 9")
    yield None
    assert spark.table("had.shop.tgt").where("id = 9").first().amount == 10.0
    yield {
        "names": {"tgt": _lies(spark, "had.shop.tgt")},
        "version": {"{tgt}": _snapshot(spark, "had.shop.tgt")},
    }


@on(
    "iceberg",
    inputs="{tgt} {src}",
    outputs={"{tgt}": {"id": "{tgt}:id", "amount": "{tgt}:amount"}},
    indirect={"{tgt}": "{tgt}:id {src}:id {src}:amount"},
)
def delete(spark: Any, d: str, at: At) -> Steps:
    yield None
    spark.sql("DELETE FROM had.shop.tgt WHERE id IN (SELECT id FROM had.shop.src WHERE amount > 50)")
    yield None
    yield {
        "names": {"src": _lies(spark, "had.shop.src"), "tgt": _lies(spark, "had.shop.tgt")},
        "version": {"{tgt}": _snapshot(spark, "had.shop.tgt")},
    }


@on("iceberg", inputs="{src}", outputs={"out/travel": {"id": "{src}:id"}}, rows={"out/travel": 5})
def time_travel(spark: Any, d: str, at: At) -> Steps:
    first = _snapshot(spark, "had.shop.src")
    spark.sql("INSERT INTO had.shop.src VALUES (99, 1.0, 'new')")
    assert _snapshot(spark, "had.shop.src") != first
    yield None
    spark.sql(f"SELECT id FROM had.shop.src VERSION AS OF {first}").write.parquet(f"{d}/out/travel")
    yield None
    yield {"names": {"src": _lies(spark, "had.shop.src")}, "read_version": {"{src}": first}}


@on(
    "iceberg",
    inputs="{src}",
    outputs={"{days}": {"id": "{src}:id", "state": "{src}:state"}},
    rows={"{days}": 6},
    changes={"{days}": "OVERWRITE"},
)
def overwrite_partitions(spark: Any, d: str, at: At) -> Steps:
    spark.sql("CREATE TABLE had.shop.days (id BIGINT, state STRING) USING iceberg PARTITIONED BY (state)")
    yield None
    spark.table("had.shop.src").select("id", "state").writeTo("had.shop.days").overwritePartitions()
    yield None
    yield {
        "names": {"src": _lies(spark, "had.shop.src"), "days": _lies(spark, "had.shop.days")},
        "version": {"{days}": _snapshot(spark, "had.shop.days")},
    }


@on("iceberg", inputs="{src}", outputs={"out/audited": {"id": "{src}:id", "operation": ""}})
def metadata_tables(spark: Any, d: str, at: At) -> Steps:
    """What a table says of itself is not what is in it."""
    yield None
    src = spark.table("had.shop.src")
    said = spark.table("had.shop.src.snapshots").select("operation")
    src.select("id").crossJoin(said).write.parquet(f"{d}/out/audited")
    spark.table("had.shop.src.files").select("file_path").rdd.count()
    spark.read.format("iceberg").load(f"{d}/had/shop/src#history").collect()
    yield None
    yield {
        "names": {"src": _lies(spark, "had.shop.src")},
        "read_version": {"{src}": _snapshot(spark, "had.shop.src")},
    }


@on("iceberg", inputs="{src}", outputs={"out/changed": {"id": "{src}:id", "_change_type": ""}})
def changes(spark: Any, d: str, at: At) -> Steps:
    yield None
    spark.sql("SELECT id, _change_type FROM had.shop.src.changes").write.parquet(f"{d}/out/changed")
    yield None
    yield {"names": {"src": _lies(spark, "had.shop.src")}}


@on("iceberg", inputs="{src}", outputs={"{out}": {"id": "{src}:id"}})
def stream(spark: Any, d: str, at: At) -> Steps:
    spark.sql("CREATE TABLE had.shop.streamed (id BIGINT) USING iceberg")
    yield None
    query = (
        spark.readStream.table("had.shop.src").select("id").writeStream.format("iceberg")
        .option("checkpointLocation", f"{d}/check/ice").trigger(availableNow=True).toTable("had.shop.streamed")
    )  # fmt: skip
    assert query.awaitTermination(120)
    yield None
    assert spark.table("had.shop.streamed").count() == 6
    yield {"names": {"src": _lies(spark, "had.shop.src"), "out": _lies(spark, "had.shop.streamed")}}


# --- Delta


def _delta(spark: Any, where: str) -> str:
    return str(spark.sql(f"DESCRIBE HISTORY {where}").orderBy("version", ascending=False).first().version)


@on(
    "delta",
    inputs="orders",
    outputs={"by/path": {"id": "orders:id", "amount": "orders:amount"}},
    rows={"by/path": 5},
)
def path_write(spark: Any, d: str, at: At) -> Steps:
    yield None
    spark.read.parquet(f"{d}/orders").select("id", "amount").write.format("delta").save(f"{d}/by/path")
    yield None
    yield {"version": {"by/path": _delta(spark, f"delta.`{d}/by/path`")}}


@on(
    "delta",
    links={"warehouse/named": "file:{root}/warehouse|default.named"},
    inputs="by/path",
    outputs={"warehouse/named": {"id": "by/path:id", "amount": "by/path:amount"}},
    indirect={"warehouse/named": "by/path:amount"},
    rows={"warehouse/named": 4},
    changes={"warehouse/named": "CREATE"},
)
def named_write(spark: Any, d: str, at: At) -> Steps:
    yield None
    spark.read.format("delta").load(f"{d}/by/path").where("amount > 5").write.format("delta").saveAsTable(
        "named"
    )
    yield None
    yield {"version": {"warehouse/named": _delta(spark, "named")}, "read_version": {"by/path": "0"}}


@on(
    "delta",
    inputs="by/path warehouse/named",
    outputs={
        "warehouse/named": {
            "id": "by/path:id warehouse/named:id",
            "amount": "by/path:amount warehouse/named:amount",
        }
    },
    indirect={"warehouse/named": "by/path:id warehouse/named:id"},
)
def merge_into(spark: Any, d: str, at: At) -> Steps:
    yield None
    spark.sql(
        f"MERGE INTO named t USING delta.`{d}/by/path` s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET amount = s.amount WHEN NOT MATCHED THEN INSERT *"
    )
    yield None
    assert spark.table("named").count() == 5
    yield {"version": {"warehouse/named": _delta(spark, "named")}}


@on(
    "delta",
    "update",
    inputs="warehouse/named",
    outputs={"warehouse/named": {"id": "warehouse/named:id", "amount": "warehouse/named:amount"}},
    indirect={"warehouse/named": "warehouse/named:id"},
)
def delta_update(spark: Any, d: str, at: At) -> Steps:
    yield None
    spark.sql("UPDATE named SET amount = amount + 1 WHERE id = 1")
    yield None
    yield {"version": {"warehouse/named": _delta(spark, "named")}}


@on(
    "delta",
    "delete",
    inputs="warehouse/named",
    outputs={"warehouse/named": {"id": "warehouse/named:id", "amount": "warehouse/named:amount"}},
    indirect={"warehouse/named": "warehouse/named:id"},
)
def delta_delete(spark: Any, d: str, at: At) -> Steps:
    yield None
    spark.sql("DELETE FROM named WHERE id = 2")
    yield None
    yield {"version": {"warehouse/named": _delta(spark, "named")}}


@on(
    "delta",
    "time_travel",
    inputs="warehouse/named",
    outputs={"out/travel": {"id": "warehouse/named:id"}},
    rows={"out/travel": 4},
)
def delta_travel(spark: Any, d: str, at: At) -> Steps:
    yield None
    spark.sql("SELECT id FROM named VERSION AS OF 0").write.parquet(f"{d}/out/travel")
    yield None
    yield {"read_version": {"warehouse/named": "0"}}


@on("delta", "path_travel", inputs="by/path", outputs={"out/old": {"id": "by/path:id"}}, rows={"out/old": 5})
def delta_path_travel(spark: Any, d: str, at: At) -> Steps:
    spark.createDataFrame([(7, 7.0)], "id long, amount double").write.format("delta").mode("append").save(
        f"{d}/by/path"
    )
    yield None
    found = spark.read.format("delta").option("versionAsOf", 0).load(f"{d}/by/path")
    found.select("id").write.parquet(f"{d}/out/old")
    yield None
    yield {"read_version": {"by/path": "0"}}


@on("delta", "stream", inputs="by/path", outputs={"out/stream": {"id": "by/path:id"}})
def delta_stream(spark: Any, d: str, at: At) -> Steps:
    yield None
    query = (
        spark.readStream.format("delta").load(f"{d}/by/path").select("id").writeStream.format("delta")
        .option("checkpointLocation", f"{d}/check/delta").trigger(availableNow=True).start(f"{d}/out/stream")
    )  # fmt: skip
    assert query.awaitTermination(120)
    yield None
    assert spark.read.format("delta").load(f"{d}/out/stream").count() == 6
    yield {}


@on(
    "delta",
    inputs="by/path",
    outputs={"warehouse/copied": {"id": "by/path:id", "amount": "by/path:amount"}},
    changes={"warehouse/copied": "CREATE"},
    links={"warehouse/copied": "file:{root}/warehouse|default.copied"},
)
def clone(spark: Any, d: str, at: At) -> Steps:
    yield None
    spark.sql(f"CREATE TABLE copied SHALLOW CLONE delta.`{d}/by/path` VERSION AS OF 0")
    yield None
    assert spark.table("copied").count() == 5
    yield {"version": {"warehouse/copied": _delta(spark, "copied")}, "read_version": {"by/path": "0"}}


@on(
    "delta", outputs={"warehouse/copied": {"id": "", "amount": ""}}, changes={"warehouse/copied": "OVERWRITE"}
)
def restore(spark: Any, d: str, at: At) -> Steps:
    spark.sql("DELETE FROM copied")
    spark.sql("ALTER TABLE copied ADD COLUMN note STRING")
    yield None
    spark.sql("RESTORE TABLE copied TO VERSION AS OF 0")
    yield None
    assert spark.table("copied").columns == ["id", "amount"]
    assert spark.table("copied").count() == 5
    yield {"version": {"warehouse/copied": _delta(spark, "copied")}}


# --- Kafka


def _topics(spark: Any, d: str, at: At, *names: str) -> None:
    frame = spark.read.parquet(f"{d}/orders").selectExpr("CAST(id AS STRING) AS key", "state AS value")
    for name in names:
        frame.write.format("kafka").option("kafka.bootstrap.servers", at["kafka"]).option(
            "topic", name
        ).save()


@on("kafka", inputs="orders", outputs={"kafka://{kafka}|one": {"key": "orders:id", "value": "orders:state"}})
def batch_out(spark: Any, d: str, at: At) -> Steps:
    yield None
    _topics(spark, d, at, "one")
    yield None
    assert _reader(spark, at, subscribe="one").count() == 5
    yield {}


def _reader(spark: Any, at: At, **options: str) -> Any:
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", at["kafka"])
    return reader.options(**options).load()


_READ = {
    "subscribe": ({"subscribe": "one,two"}, ("one", "two")),
    "pattern": ({"subscribePattern": "o.e"}, ("o.e",)),
    "assign": ({"assign": '{"one":[0]}'}, ("one",)),
}


def _read(name: str, options: dict[str, str], topics: tuple[str, ...]) -> None:
    places = [f"kafka://{{kafka}}|{topic}" for topic in topics]
    out = f"out/{name}"

    @on(
        "kafka",
        f"read_{name}",
        inputs=" ".join(places),
        outputs={out: {"v": " ".join(f"{each}:value" for each in places)}},
        rows={out: 5 * len(topics)},
    )
    def read(spark: Any, d: str, at: At) -> Steps:
        _topics(spark, d, at, *(topic for topic in topics if topic == "two"))
        yield None
        _reader(spark, at, **options).selectExpr("CAST(value AS STRING) AS v").write.parquet(f"{d}/{out}")
        yield None
        yield {}


for _name, (_options, _found) in _READ.items():
    _read(_name, _options, _found)


@on(
    "kafka",
    inputs="orders",
    outputs={
        "kafka://{kafka}|big": {"topic": "", "value": "orders:state"},
        "kafka://{kafka}|small": {"topic": "", "value": "orders:state"},
    },
    indirect={"kafka://{kafka}|big": "orders:amount", "kafka://{kafka}|small": "orders:amount"},
)
def topic_by_row(spark: Any, d: str, at: At) -> Steps:
    yield None
    found = spark.read.parquet(f"{d}/orders").selectExpr(
        "CASE WHEN amount > 20 THEN 'big' ELSE 'small' END AS topic", "state AS value"
    )
    found.write.format("kafka").option("kafka.bootstrap.servers", at["kafka"]).save()
    yield None
    assert (_reader(spark, at, subscribe="big").count(), _reader(spark, at, subscribe="small").count()) == (
        2,
        3,
    )
    yield {}


@on(
    "kafka",
    inputs="kafka://{kafka}|one",
    outputs={"kafka://{kafka}|three": {"value": "kafka://{kafka}|one:value"}},
)
def stream_through(spark: Any, d: str, at: At) -> Steps:
    yield None
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", at["kafka"])
    query = (
        source.option("subscribe", "one").option("startingOffsets", "earliest").load()
        .selectExpr("upper(CAST(value AS STRING)) AS value").writeStream.format("kafka")
        .option("kafka.bootstrap.servers", at["kafka"]).option("topic", "three")
        .option("checkpointLocation", f"{d}/check/kafka").trigger(availableNow=True).start()
    )  # fmt: skip
    assert query.awaitTermination(120)
    yield None
    assert _reader(spark, at, subscribe="three").count() == 5
    yield {}


@on(
    "kafka",
    inputs="kafka://{kafka}|json",
    outputs={
        "out/decoded": {
            "id": "kafka://{kafka}|json:id kafka://{kafka}|json:value",
            "loud": "kafka://{kafka}|json:state kafka://{kafka}|json:value",
        }
    },
    rows={"out/decoded": 5},
)
def decoded(spark: Any, d: str, at: At) -> Steps:
    frame = spark.read.parquet(f"{d}/orders").selectExpr("to_json(struct(id, state)) AS value")
    frame.write.format("kafka").option("kafka.bootstrap.servers", at["kafka"]).option("topic", "json").save()
    yield None
    rows = _reader(spark, at, subscribe="json").selectExpr(
        "from_json(CAST(value AS STRING), 'id BIGINT, state STRING') AS row"
    )
    rows.selectExpr("row.id", "upper(row.state) AS loud").write.parquet(f"{d}/out/decoded")
    yield None
    yield {}


@on("kafka", inputs="kafka://{kafka}|one", outputs={"out/from_kafka": {"k": "kafka://{kafka}|one:key"}})
def stream_in(spark: Any, d: str, at: At) -> Steps:
    yield None
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", at["kafka"])
    query = (
        source.option("subscribe", "one").option("startingOffsets", "earliest").load()
        .selectExpr("CAST(key AS STRING) AS k").writeStream.format("parquet")
        .option("checkpointLocation", f"{d}/check/kafka_in").trigger(availableNow=True).start(f"{d}/out/from_kafka")
    )  # fmt: skip
    assert query.awaitTermination(120)
    yield None
    assert spark.read.parquet(f"{d}/out/from_kafka").count() == 5
    yield {}


# --- JDBC


def _url(at: At) -> str:
    return f"jdbc:postgresql://{at['postgres']}/postgres?user=postgres&password=hunter2"


_DRIVER = {"password": "hunter2", "driver": "org.postgresql.Driver"}
_PG = "postgres://{postgres}|postgres.public."


@on(
    "jdbc",
    inputs="orders",
    outputs={f"{_PG}orders": {"id": "orders:id", "amount": "orders:amount"}},
    rows={f"{_PG}orders": 5},
    absent=("hunter2",),
)
def table_out(spark: Any, d: str, at: At) -> Steps:
    yield None
    frame = spark.read.parquet(f"{d}/orders").select("id", "amount")
    frame.write.jdbc(_url(at), "orders", properties=_DRIVER)
    yield None
    assert spark.read.jdbc(_url(at), "orders", properties=_DRIVER).count() == 5
    yield {}


@on(
    "jdbc",
    inputs=f"{_PG}orders",
    outputs={"out/jdbc": {"id": f"{_PG}orders:id"}},
    indirect={"out/jdbc": f"{_PG}orders:amount"},
    rows={"out/jdbc": 3},
    absent=("hunter2",),
)
def table_in(spark: Any, d: str, at: At) -> Steps:
    yield None
    found = spark.read.jdbc(_url(at), "public.orders", properties=_DRIVER).where("amount > 8")
    found.select("id").write.parquet(f"{d}/out/jdbc")
    yield None
    yield {}


@on(
    "jdbc",
    inputs=f"{_PG}orders",
    outputs={"out/query": {"total": f"{_PG}orders:amount"}},
    indirect={"out/query": f"{_PG}orders:id"},
    rows={"out/query": 1},
    absent=("hunter2",),
)
def query_in(spark: Any, d: str, at: At) -> Steps:
    yield None
    text = "SELECT sum(o.amount) AS total FROM public.orders o WHERE o.id > 1"
    spark.read.format("jdbc").option("url", _url(at)).option("query", text).options(
        **_DRIVER
    ).load().write.parquet(f"{d}/out/query")
    yield None
    yield {}


@on(
    "jdbc",
    inputs=f"{_PG}orders",
    outputs={f"{_PG}copied": {"id": f"{_PG}orders:id"}},
    changes={f"{_PG}copied": "CREATE"},
    absent=("hunter2",),
)
def catalog(spark: Any, d: str, at: At) -> Steps:
    yield None
    spark.sql("CREATE TABLE pg.public.copied AS SELECT id FROM pg.public.orders")
    yield None
    assert spark.table("pg.public.copied").count() == 5
    yield {}


@on(
    "jdbc",
    inputs="orders",
    outputs={"out/avro": {"id": "orders:id", "day": "orders:day"}},
    rows={"out/avro": 5},
)
def avro_out(spark: Any, d: str, at: At) -> Steps:
    yield None
    spark.read.parquet(f"{d}/orders").select("id", "day").write.format("avro").save(f"{d}/out/avro")
    yield None
    yield {}


@on("jdbc", inputs="out/avro", outputs={"out/from_avro": {"day": "out/avro:day"}}, rows={"out/from_avro": 5})
def avro_in(spark: Any, d: str, at: At) -> Steps:
    yield None
    spark.read.format("avro").load(f"{d}/out/avro").select("day").write.parquet(f"{d}/out/from_avro")
    yield None
    yield {}


# --- Hive


@on(
    "hive",
    inputs="orders",
    outputs={"out/xml": {"id": "orders:id", "day": "orders:day"}},
    rows={"out/xml": 5},
    since="4.0",
)
def xml_out(spark: Any, d: str, at: At) -> Steps:
    yield None
    frame = spark.read.parquet(f"{d}/orders").select("id", "day")
    frame.write.format("xml").option("rowTag", "order").save(f"{d}/out/xml")
    yield None
    yield {}


@on(
    "hive",
    inputs="out/xml",
    outputs={"out/from_xml": {"day": "out/xml:day"}},
    rows={"out/from_xml": 5},
    since="4.0",
)
def xml_in(spark: Any, d: str, at: At) -> Steps:
    yield None
    found = (
        spark.read.format("xml").schema("id LONG, day STRING").option("rowTag", "order").load(f"{d}/out/xml")
    )
    found.select("day").write.parquet(f"{d}/out/from_xml")
    yield None
    yield {}


@on(
    "hive",
    inputs="orders",
    outputs={"hv.text": {"id": "orders:id", "state": "orders:state"}},
    rows={"hv.text": 5},
    changes={"hv.text": "CREATE"},
    links={"hv.text": "file:{root}/warehouse|hv.text"},
)
def create_as_select(spark: Any, d: str, at: At) -> Steps:
    spark.sql("CREATE DATABASE hv")
    spark.read.parquet(f"{d}/orders").createOrReplaceTempView("orders")
    yield None
    spark.sql("CREATE TABLE hv.text STORED AS TEXTFILE AS SELECT id, state FROM orders")
    yield None
    yield {}


@on(
    "hive",
    inputs="hv.text",
    outputs={"hv.orc": {"id": "hv.text:id", "state": "hv.text:state"}},
    indirect={"hv.orc": "hv.text:id"},
    rows={"hv.orc": 4},
    changes={"hv.orc": "OVERWRITE"},
)
def insert_overwrite(spark: Any, d: str, at: At) -> Steps:
    spark.sql("CREATE TABLE hv.orc (id BIGINT) PARTITIONED BY (state STRING) STORED AS ORC")
    spark.sql("SET hive.exec.dynamic.partition.mode=nonstrict")
    yield None
    spark.sql("INSERT OVERWRITE TABLE hv.orc PARTITION (state) SELECT id, state FROM hv.text WHERE id > 1")
    yield None
    assert spark.table("hv.orc").count() == 4
    yield {}


@on(
    "hive",
    inputs="hv.orc",
    outputs={"out/directory": {"id": "hv.orc:id"}},
    changes={"out/directory": "OVERWRITE"},
)
def insert_directory(spark: Any, d: str, at: At) -> Steps:
    yield None
    spark.sql(f"INSERT OVERWRITE DIRECTORY '{d}/out/directory' STORED AS ORC SELECT id FROM hv.orc")
    yield None
    yield {}


@on("hive", inputs="in/load.txt", outputs={"hv.loaded": {"line": ""}})
def load_data(spark: Any, d: str, at: At) -> Steps:
    Path(d, "in").mkdir()
    with open(f"{d}/in/load.txt", "w") as out:
        out.write("a\nb\n")
    spark.sql("CREATE TABLE hv.loaded (line STRING) STORED AS TEXTFILE")
    yield None
    spark.sql(f"LOAD DATA LOCAL INPATH '{d}/in/load.txt' INTO TABLE hv.loaded")
    yield None
    assert spark.table("hv.loaded").count() == 2
    yield {}


@on(
    "hive",
    inputs="hv.text",
    outputs={"out/transform": {"k": "hv.text:id hv.text:state", "v": "hv.text:id hv.text:state"}},
    rows={"out/transform": 5},
)
def transform(spark: Any, d: str, at: At) -> Steps:
    yield None
    found = spark.sql("SELECT TRANSFORM(id, state) USING 'cat' AS (k STRING, v STRING) FROM hv.text")
    found.write.parquet(f"{d}/out/transform")
    yield None
    yield {}


@on(
    "metastore",
    links={"{t}": "hive://{metastore_host}|ms.orders"},
    inputs="orders",
    outputs={"{t}": {"id": "orders:id"}},
    rows={"{t}": 5},
    changes={"{t}": "CREATE"},
)
def save_as_table(spark: Any, d: str, at: At) -> Steps:
    spark.sql(f"CREATE DATABASE ms LOCATION '{d}/ms'")
    yield None
    spark.read.parquet(f"{d}/orders").select("id").write.saveAsTable("ms.orders")
    yield None
    yield {"names": {"t": _lies(spark, "ms.orders")}}


@on(
    "metastore",
    links={"{t}": "hive://{metastore_host}|ms.orders"},
    inputs="{t}",
    outputs={"out/ms": {"id": "{t}:id"}},
    rows={"out/ms": 5},
)
def read_table(spark: Any, d: str, at: At) -> Steps:
    yield None
    spark.table("ms.orders").write.parquet(f"{d}/out/ms")
    yield None
    yield {"names": {"t": _lies(spark, "ms.orders")}}
