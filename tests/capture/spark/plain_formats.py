"""Further programs that need nothing but Spark, as in `formats`; the tables are those of `programs.prepare`."""

from __future__ import annotations

from typing import Any

from formats import At, Steps, on


def _write(frame: Any, d: str, name: str) -> None:
    frame.write.parquet(f"{d}/plain/{name}")


def _sql(
    name: str,
    text: str,
    columns: dict[str, str],
    inputs: str = "shop.orders",
    indirect: str = "",
    since: str = "3.5",
    rows: int | None = None,
) -> None:
    """A query whose result is written to plain/<name>."""
    out = f"plain/{name}"
    expected: dict[str, Any] = {"inputs": inputs, "outputs": {out: columns}}
    if indirect:
        expected["indirect"] = {out: indirect}
    if rows is not None:
        expected["rows"] = {out: rows}

    @on("plain", name, since=since, **expected)
    def query(spark: Any, d: str, at: At) -> Steps:
        yield None
        _write(spark.sql(text), d, name)
        yield None
        yield {}


_sql(
    "exists_only",
    "SELECT 1 AS x WHERE EXISTS (SELECT 1 FROM shop.people WHERE pid = 100)",
    {"x": ""},
    "shop.people",
    "shop.people:pid",
    rows=1,
)
_sql(
    "scalar_only",
    "SELECT (SELECT max(amount) FROM shop.orders) AS top",
    {"top": "shop.orders:amount"},
    rows=1,
)
_sql(
    "unpivot",
    "SELECT id, k, v FROM (SELECT id, state, day FROM shop.orders) UNPIVOT (v FOR k IN (state, day))",
    {"id": "shop.orders:id", "k": "", "v": "shop.orders:state shop.orders:day"},
    indirect="shop.orders:state shop.orders:day",
    rows=10,
)
_sql(
    "lateral_alias",
    "SELECT amount * 2 AS twice, twice + 1 AS more FROM shop.orders",
    {"twice": "shop.orders:amount", "more": "shop.orders:amount"},
    rows=5,
)
_sql(
    "lateral_join",
    "SELECT p.name, t.top FROM shop.people p, LATERAL (SELECT max(amount) AS top FROM shop.orders o WHERE o.person = p.pid) t",
    {"name": "shop.people:name", "top": "shop.orders:amount"},
    "shop.orders shop.people",
    "shop.orders:person shop.people:pid",
    rows=3,
)
_sql(
    "struct_star",
    "SELECT address.* FROM shop.people",
    {"city": "shop.people:address.city", "zip": "shop.people:address.zip"},
    "shop.people",
    rows=3,
)
_sql(
    "array_map",
    "SELECT element_at(map('a', name), 'a') AS n, tags[0] AS t, exists(tags, x -> x = 'eu') AS e, size(filter(tags, x -> x <> 'eu')) AS f FROM shop.people",
    {"n": "shop.people:name", "t": "shop.people:tags", "e": "shop.people:tags", "f": "shop.people:tags"},
    "shop.people",
    rows=3,
)
_sql(
    "pipe",
    "FROM shop.orders |> WHERE state = 'open' |> AGGREGATE sum(amount) AS s GROUP BY person |> SELECT person, s",
    {"person": "shop.orders:person", "s": "shop.orders:amount"},
    indirect="shop.orders:state shop.orders:person",
    since="4.0",
    rows=2,
)
_sql(
    "recursive",
    "WITH RECURSIVE r(n, p) AS (SELECT id, person FROM shop.orders WHERE id = 1 UNION ALL SELECT n + 1, p FROM r WHERE n < 3) SELECT n, p FROM r",
    {"n": "shop.orders:id", "p": "shop.orders:person"},
    indirect="shop.orders:id",
    since="4.1",
    rows=3,
)
_sql(
    "variant",
    "SELECT variant_get(parse_json(concat('{\"a\":\"', state, '\"}')), '$.a', 'string') AS a FROM shop.orders",
    {"a": "shop.orders:state"},
    since="4.0",
    rows=5,
)
_sql(
    "collation",
    "SELECT state COLLATE UNICODE_CI AS s FROM shop.orders WHERE state COLLATE UTF8_LCASE = 'OPEN'",
    {"s": "shop.orders:state"},
    indirect="shop.orders:state",
    since="4.0",
    rows=2,
)


@on(
    "plain",
    inputs="shop.orders",
    outputs={"view:shop.over": {"key": "shop.orders:id"}},
    indirect={"view:shop.over": "shop.orders:state shop.orders:amount"},
    changes={"view:shop.over": "CREATE"},
)
def view_over_view(spark: Any, d: str, at: At) -> Steps:
    yield None
    spark.sql("CREATE VIEW shop.over AS SELECT id AS key FROM shop.open_orders WHERE open_amount > 1")
    yield None
    yield {}


@on("plain", inputs="orders", outputs={"plain/global": {"id": "orders:id"}}, rows={"plain/global": 5})
def global_temporary_view(spark: Any, d: str, at: At) -> Steps:
    spark.read.parquet(f"{d}/orders").createOrReplaceGlobalTempView("everywhere")
    yield None
    _write(spark.newSession().sql("SELECT id FROM global_temp.everywhere"), d, "global")
    yield None
    yield {}


@on(
    "plain",
    inputs="orders",
    outputs={"plain/checkpoint": {"id": "orders:id"}},
    indirect={"plain/checkpoint": "orders:state"},
    rows={"plain/checkpoint": 2},
)
def checkpoint(spark: Any, d: str, at: At) -> Steps:
    spark.sparkContext.setCheckpointDir(f"{d}/checkpoints")
    frame = spark.read.parquet(f"{d}/orders").where("state = 'open'").checkpoint()
    yield None
    _write(frame.select("id"), d, "checkpoint")
    yield None
    yield {}


@on(
    "plain",
    inputs="shop.orders",
    outputs={"plain/cached_table": {"id": "shop.orders:id"}},
    rows={"plain/cached_table": 5},
)
def cache_table(spark: Any, d: str, at: At) -> Steps:
    spark.sql("CACHE TABLE kept AS SELECT id FROM shop.orders")
    yield None
    _write(spark.table("kept"), d, "cached_table")
    yield None
    yield {}


@on(
    "plain",
    inputs="orders",
    outputs={"plain/rdd": {"a": "orders:id orders:amount", "b": "orders:id orders:amount"}},
    rows={"plain/rdd": 5},
)
def rdd_to_frame(spark: Any, d: str, at: At) -> Steps:
    rows = spark.read.parquet(f"{d}/orders").select("id", "amount").rdd.map(lambda row: (row.id, row.amount))
    frame = rows.toDF("a long, b double")
    yield None
    _write(frame, d, "rdd")
    yield None
    yield {}


@on("plain", inputs="orders", outputs={"plain/again": {"id": "orders:id"}}, rows={"plain/again": 5})
def frame_of_rdd(spark: Any, d: str, at: At) -> Steps:
    source = spark.read.parquet(f"{d}/orders").select("id")
    frame = spark.createDataFrame(source.rdd, source.schema)
    yield None
    _write(frame, d, "again")
    yield None
    yield {}


def _saved(name: str, save: Any, jobs: int = 3) -> None:
    """Formats of Hadoop look at the first rows for their types, in two jobs of their own."""

    @on("plain", f"save_{name}", inputs="orders", outputs={f"plain/{name}": {}}, ends=("COMPLETE",) * jobs)
    def saved(spark: Any, d: str, at: At) -> Steps:
        pairs = spark.read.parquet(f"{d}/orders").rdd.map(lambda row: (row.id, row.state))
        yield None
        save(pairs, f"{d}/plain/{name}")
        yield None
        yield {}


_NEW = "org.apache.hadoop.mapreduce.lib.output.TextOutputFormat"
_OLD = "org.apache.hadoop.mapred.TextOutputFormat"
_saved("pickle", lambda rdd, path: rdd.saveAsPickleFile(path), jobs=1)
_saved("sequence", lambda rdd, path: rdd.saveAsSequenceFile(path))
_saved("new_hadoop", lambda rdd, path: rdd.saveAsNewAPIHadoopFile(path, _NEW))
_saved("old_hadoop", lambda rdd, path: rdd.saveAsHadoopFile(path, _OLD))


@on("plain", inputs="orders", ends=("COMPLETE",))
def noop_sink(spark: Any, d: str, at: At) -> Steps:
    yield None
    spark.read.parquet(f"{d}/orders").write.format("noop").mode("overwrite").save()
    yield None
    yield {}


def _sink(kind: str) -> None:
    @on("plain", f"{kind}_sink", inputs="orders_json")
    def sink(spark: Any, d: str, at: At) -> Steps:
        yield None
        source = spark.readStream.schema("id long, state string").json(f"{d}/orders_json")
        query = source.writeStream.format(kind).queryName(f"to_{kind}").trigger(availableNow=True).start()
        assert query.awaitTermination(120)
        yield None
        yield {}


_sink("console")
_sink("memory")


@on(
    "plain",
    inputs="orders_json shop.people",
    outputs={
        "shop.batches": {"id": "orders_json:id", "name": "shop.people:name"},
    },
    indirect={"shop.batches": "orders_json:person shop.people:pid"},
)
def foreach_batch_joined(spark: Any, d: str, at: At) -> Steps:
    spark.sql("CREATE TABLE shop.batches (id BIGINT, name STRING) USING parquet")
    yield None

    def each(batch: Any, number: int) -> None:
        people = batch.sparkSession.table("shop.people")
        batch.join(people, batch.person == people.pid).select("id", "name").write.insertInto("shop.batches")

    source = spark.readStream.schema("id long, person long").json(f"{d}/orders_json")
    query = source.writeStream.foreachBatch(each).trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    yield None
    yield {}


@on(
    "plain",
    inputs="orders",
    outputs={
        "plain/ml": {
            "id": "orders:id",
            "index": "orders:state",
            "features": "orders:amount orders:id",
            "prediction": "orders:amount orders:id",
        }
    },
)
def machine_learning(spark: Any, d: str, at: At) -> Steps:
    from pyspark.ml import Pipeline
    from pyspark.ml.classification import LogisticRegression
    from pyspark.ml.feature import StringIndexer, VectorAssembler

    frame = spark.read.parquet(f"{d}/orders")
    index = StringIndexer(inputCol="state", outputCol="index")
    features = VectorAssembler(inputCols=["amount", "id"], outputCol="features")
    model = Pipeline(stages=[index, features, LogisticRegression(labelCol="index", maxIter=1)]).fit(frame)
    yield None
    _write(model.transform(frame).select("id", "index", "features", "prediction"), d, "ml")
    yield None
    yield {}


@on(
    "plain",
    inputs="orders",
    outputs={"plain/pandas_on_spark": {"id": "orders:id", "twice": "orders:amount"}},
    rows={"plain/pandas_on_spark": 5},
    changes={"plain/pandas_on_spark": "OVERWRITE"},
)
def pandas_on_spark(spark: Any, d: str, at: At) -> Steps:
    import pyspark.pandas as ps

    ansi = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "false")  # 4.0 will not work with it
    frame = ps.read_parquet(f"{d}/orders")
    frame["twice"] = frame["amount"] * 2
    yield None
    frame[["id", "twice"]].to_parquet(f"{d}/plain/pandas_on_spark")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    yield None
    yield {}


@on(
    "plain",
    inputs="shop.orders",
    outputs={
        "shop.daily": {"id": "shop.orders:id", "amount": "shop.orders:amount", "day": "shop.orders:day"}
    },
    rows={"shop.daily": 5},
    changes={"shop.daily": "OVERWRITE"},
)
def dynamic_partition_overwrite(spark: Any, d: str, at: At) -> Steps:
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    yield None
    spark.table("shop.orders").select("id", "amount", "day").write.mode("overwrite").insertInto("shop.daily")
    yield None
    spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    yield {}


@on(
    "plain",
    inputs="shop.orders",
    outputs={"plain/dir": {"id": "shop.orders:id"}},
    changes={"plain/dir": "OVERWRITE"},
    rows={"plain/dir": 5},
)
def overwrite_directory(spark: Any, d: str, at: At) -> Steps:
    yield None
    spark.sql(f"INSERT OVERWRITE DIRECTORY '{d}/plain/dir' USING parquet SELECT id FROM shop.orders")
    yield None
    yield {}


@on(
    "plain",
    inputs="shop.orders",
    outputs={"shop.bucketed": {"id": "shop.orders:id", "day": "shop.orders:day"}},
    rows={"shop.bucketed": 5},
    changes={"shop.bucketed": "CREATE"},
)
def bucketed(spark: Any, d: str, at: At) -> Steps:
    yield None
    frame = spark.table("shop.orders").select("id", "day")
    frame.write.bucketBy(2, "id").sortBy("id").saveAsTable("shop.bucketed")
    yield None
    yield {}


@on(
    "plain",
    outputs={"shop.alike": {"id": "", "person": "", "amount": "", "state": "", "day": ""}},
    changes={"shop.alike": "CREATE"},
)
def create_like(spark: Any, d: str, at: At) -> Steps:
    yield None
    spark.sql("CREATE TABLE shop.alike LIKE shop.orders")
    yield None
    yield {}


@on(
    "plain",
    inputs="shop.orders",
    outputs={"plain/parameters": {"id": "shop.orders:id"}},
    indirect={"plain/parameters": "shop.orders:amount"},
    rows={"plain/parameters": 3},
)
def parameters(spark: Any, d: str, at: At) -> Steps:
    yield None
    _write(spark.sql("SELECT id FROM shop.orders WHERE amount > :least", args={"least": 8}), d, "parameters")
    yield None
    yield {}


@on(
    "plain",
    inputs="shop.orders",
    outputs={"plain/immediate": {"id": "shop.orders:id"}},
    indirect={"plain/immediate": "shop.orders:amount"},
    rows={"plain/immediate": 3},
    since="4.0",
)
def execute_immediate(spark: Any, d: str, at: At) -> Steps:
    yield None
    text = "EXECUTE IMMEDIATE 'SELECT id FROM shop.orders WHERE amount > ?' USING 8"
    _write(spark.sql(text), d, "immediate")
    yield None
    yield {}


@on(
    "plain",
    inputs="shop.orders",
    outputs={"shop.scripted": {"id": "shop.orders:id"}},
    indirect={"shop.scripted": "shop.orders:amount"},
    changes={"shop.scripted": "CREATE"},
    ends=("COMPLETE", "COMPLETE"),
    since="4.0",
)
def scripting(spark: Any, d: str, at: At) -> Steps:
    spark.conf.set("spark.sql.scripting.enabled", "true")
    yield None
    spark.sql(
        "BEGIN DECLARE least DOUBLE DEFAULT 8; CREATE TABLE shop.scripted (id BIGINT) USING parquet;"
        " INSERT INTO shop.scripted SELECT id FROM shop.orders WHERE amount > least; END"
    )
    yield None
    assert spark.table("shop.scripted").count() == 3
    yield {}


@on("plain", inputs="orders", outputs={"plain/observed": {"id": "orders:id"}}, rows={"plain/observed": 5})
def observe(spark: Any, d: str, at: At) -> Steps:
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    yield None
    frame = (
        spark.read.parquet(f"{d}/orders")
        .select("id")
        .observe(Observation("seen"), f.count(f.lit(1)).alias("n"))
    )
    _write(frame, d, "observed")
    yield None
    yield {}


@on(
    "plain",
    inputs="people",
    outputs={"plain/fields": {"city": "people:address.city people:name", "rest": "people:address.zip"}},
    rows={"plain/fields": 3},
)
def with_and_without_fields(spark: Any, d: str, at: At) -> Steps:
    from pyspark.sql import functions as f

    yield None
    frame = spark.read.parquet(f"{d}/people")
    changed = frame.select(
        f.concat(f.col("address").withField("n", f.col("name")).getField("n"), f.col("address.city")).alias(
            "city"
        ),
        f.col("address").dropFields("city").getField("zip").alias("rest"),
    )
    _write(changed, d, "fields")
    yield None
    yield {}


@on(
    "plain",
    inputs="orders",
    outputs={"plain/arrow": {"id": "orders:id orders:amount"}},
    rows={"plain/arrow": 5},
)
def map_in_arrow(spark: Any, d: str, at: At) -> Steps:
    yield None

    def each(batches: Any) -> Any:
        for batch in batches:
            yield batch.select(["id"])

    _write(spark.read.parquet(f"{d}/orders").select("id", "amount").mapInArrow(each, "id long"), d, "arrow")
    yield None
    yield {}


@on(
    "plain",
    inputs="orders people",
    outputs={"plain/cogroup": {"n": "orders:person orders:amount people:pid people:name"}},
    indirect={"plain/cogroup": "orders:person people:pid"},
)
def cogroup(spark: Any, d: str, at: At) -> Steps:
    yield None

    def both(left, right):  # type: ignore[no-untyped-def]
        import pandas

        return pandas.DataFrame({"n": [len(left) + len(right)]})

    o = spark.read.parquet(f"{d}/orders").select("person", "amount").groupBy("person")
    p = spark.read.parquet(f"{d}/people").select("pid", "name").groupBy("pid")
    _write(o.cogroup(p).applyInPandas(both, "n long"), d, "cogroup")
    yield None
    yield {}


@on(
    "plain",
    inputs="shop.orders",
    outputs={"plain/udtf": {"id": "shop.orders:id", "twice": "shop.orders:id"}},
    rows={"plain/udtf": 5},
)
def table_function(spark: Any, d: str, at: At) -> Steps:
    from pyspark.sql.functions import udtf

    @udtf(returnType="twice long")
    class Twice:
        def eval(self, n: int):  # type: ignore[no-untyped-def]
            yield (n * 2,)

    spark.udtf.register("twice_of", Twice)
    yield None
    _write(spark.sql("SELECT id, twice FROM shop.orders, LATERAL twice_of(id)"), d, "udtf")
    yield None
    yield {}


@on(
    "plain",
    inputs="python|fake",
    outputs={"plain/python_source": {"n": "python|fake:n"}},
    rows={"plain/python_source": 2},
    since="4.0",
)
def python_source(spark: Any, d: str, at: At) -> Steps:
    _register(spark)
    yield None
    _write(spark.read.format("fake").load(), d, "python_source")
    yield None
    yield {}


def _register(spark: Any) -> None:
    from pyspark.sql.datasource import DataSource, DataSourceReader

    class Reader(DataSourceReader):
        def read(self, partition):  # type: ignore[no-untyped-def]
            yield (1,)
            yield (2,)

    class Fake(DataSource):
        @classmethod
        def name(cls) -> str:
            return "fake"

        def schema(self) -> str:
            return "n int"

        def reader(self, schema):  # type: ignore[no-untyped-def]
            return Reader()

    spark.dataSource.register(Fake)
