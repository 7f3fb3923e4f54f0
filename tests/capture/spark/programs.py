"""Small PySpark programs, one family each, with the lineage that is expected of them on every version of Spark.

Datasets are written short: `orders` is a directory below the root, `shop.orders` a table of the session catalog named by
where it lies, `view:shop.open_orders` a view named by its catalog. A column is `dataset:column`, several stand in a row.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

Columns = dict[str, str]
"""column -> its direct sources; all of them"""


@dataclass(frozen=True)
class Program:
    """A program and what must be told of it; whatever is not named here must not be told."""

    run: Callable[[Any, str], None]
    name: str
    inputs: str = ""
    outputs: dict[str, Columns] = field(default_factory=dict)
    indirect: dict[str, str] = field(default_factory=dict)
    """output -> the columns that decided on its rows or values without being in them"""
    masked: dict[str, str] = field(default_factory=dict)
    """output -> its columns that hide their sources"""
    kinds: dict[str, str] = field(default_factory=dict)
    """`output:column` -> the kinds of its direct sources, where worth telling"""
    rows: dict[str, int] = field(default_factory=dict)
    read: dict[str, int] = field(default_factory=dict)
    """input -> rows read"""
    changes: dict[str, str] = field(default_factory=dict)
    """output -> lifecycle change"""
    ends: tuple[str, ...] = ("COMPLETE",)
    """the state each run ends in, sorted"""
    ends_on: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """the versions where Spark itself runs it in another number of executions; the reason stands beside it"""
    error: str = ""
    """words of the error message"""
    wrong: str = ""
    """why interpretation does not get there yet: the test must fail until it does"""
    wrong_on: tuple[str, ...] = ()
    """the versions (`3.5`) that `wrong` is about; all where it is empty"""
    needs: str = ""
    """a module that the program imports"""
    since: str = "3.5"
    """the first version that can run it"""

    def runs_on(self, version: str) -> bool:
        """Whether a version (`4.1`) can run it."""
        return tuple(map(int, version.split("."))) >= tuple(map(int, self.since.split(".")))


PROGRAMS: dict[str, Program] = {}


def program(**expected: Any) -> Callable[[Callable[[Any, str], None]], Callable[[Any, str], None]]:
    def enrol(run: Callable[[Any, str], None]) -> Callable[[Any, str], None]:
        PROGRAMS[run.__name__] = Program(run, run.__name__, **expected)
        return run

    return enrol


ORDERS = [
    (1, 100, 10.0, "open", "2026-03-01"),
    (2, 100, 25.5, "paid", "2026-03-01"),
    (3, 200, 7.25, "open", "2026-03-02"),
    (4, 300, 99.0, "paid", "2026-03-02"),
    (5, 200, 3.5, "void", "2026-03-03"),
]
ORDER = "id long, person long, amount double, state string, day string"
PEOPLE = [
    (100, "Ada", "ada@example.org", ("Bern", "3000"), ["new", "eu"]),
    (200, "Bo", "bo@example.org", ("Oslo", "0150"), ["eu"]),
    (300, "Cy", "cy@example.org", ("Lima", "15001"), ["far"]),
]
PERSON = "pid long, name string, mail string, address struct<city:string,zip:string>, tags array<string>"


def prepare(spark: Any, d: str) -> None:
    """The data that all programs read; made once."""
    orders = spark.createDataFrame(ORDERS, ORDER).coalesce(1)
    people = spark.createDataFrame(PEOPLE, PERSON).coalesce(1)
    for name in ("orders", "orders_old"):
        orders.write.parquet(f"{d}/{name}")
    people.write.parquet(f"{d}/people")
    orders.write.option("header", True).csv(f"{d}/orders_csv")
    orders.write.json(f"{d}/orders_json")
    orders.write.orc(f"{d}/orders_orc")
    orders.write.partitionBy("day").parquet(f"{d}/orders_by_day")
    spark.sql("CREATE DATABASE shop")
    orders.write.saveAsTable("shop.orders")
    people.write.saveAsTable("shop.people")
    spark.sql(
        "CREATE VIEW shop.open_orders AS SELECT id, amount AS open_amount FROM shop.orders WHERE state = 'open'"
    )
    spark.sql(
        "CREATE TABLE shop.daily (id BIGINT, amount DOUBLE, day STRING) USING parquet PARTITIONED BY (day)"
    )


# --- files


@program(
    inputs="orders",
    outputs={"out/parquet": {"id": "orders:id", "gross": "orders:amount"}},
    indirect={"out/parquet": "orders:state"},
    kinds={"out/parquet:id": "IDENTITY", "out/parquet:gross": "TRANSFORMATION"},
    rows={"out/parquet": 2},
)
def parquet_files(spark: Any, d: str) -> None:
    found = spark.read.parquet(f"{d}/orders").where("state = 'paid'")
    found.selectExpr("id", "amount * 1.19 AS gross").write.parquet(f"{d}/out/parquet")


@program(
    inputs="orders_csv",
    outputs={"out/csv": {"what": "orders_csv:id orders_csv:state"}},
    rows={"out/csv": 5},
)
def csv_files(spark: Any, d: str) -> None:
    found = spark.read.schema(ORDER).option("header", True).csv(f"{d}/orders_csv")
    found.selectExpr("concat(id, '-', state) AS what").write.csv(f"{d}/out/csv", header=True)


@program(
    inputs="orders_json",
    outputs={"out/json": {"day": "orders_json:day", "amount": "orders_json:amount"}},
    rows={"out/json": 5},
    changes={"out/json": "OVERWRITE"},
)
def json_files(spark: Any, d: str) -> None:
    spark.read.schema(ORDER).json(f"{d}/orders_json").select("day", "amount").write.mode("overwrite").json(
        f"{d}/out/json"
    )


@program(
    inputs="orders_orc",
    outputs={"out/orc": {"id": "orders_orc:id", "big": ""}},
    indirect={"out/orc": "orders_orc:amount"},
    rows={"out/orc": 3},
)
def orc_files(spark: Any, d: str) -> None:
    found = spark.read.orc(f"{d}/orders_orc").orderBy("amount").limit(3)
    found.selectExpr("id", "true AS big").write.orc(f"{d}/out/orc")


@program(
    inputs="orders_by_day",
    outputs={"out/one_day": {"id": "orders_by_day:id", "on": "orders_by_day:day"}},
    indirect={"out/one_day": "orders_by_day:day"},
    rows={"out/one_day": 2},
)
def partitioned_read(spark: Any, d: str) -> None:
    found = spark.read.parquet(f"{d}/orders_by_day").where("day = '2026-03-01'")
    found.selectExpr("id", "day AS on").write.parquet(f"{d}/out/one_day")


@program(
    inputs="orders_by_day",
    outputs={"out/one_directory": {"id": "orders_by_day:id"}},
    rows={"out/one_directory": 2},
)
def one_partition_directory(spark: Any, d: str) -> None:
    spark.read.parquet(f"{d}/orders_by_day/day=2026-03-02").select("id").write.parquet(
        f"{d}/out/one_directory"
    )


@program(
    inputs="orders orders_old",
    outputs={"out/both": {"amount": "orders:amount orders_old:amount"}},
    rows={"out/both": 10},
)
def two_paths(spark: Any, d: str) -> None:
    spark.read.parquet(f"{d}/orders", f"{d}/orders_old").select("amount").write.parquet(f"{d}/out/both")


# --- tables and views


@program(
    inputs="orders",
    outputs={"shop.saved": {"id": "orders:id", "day": "orders:day"}},
    rows={"shop.saved": 5},
    changes={"shop.saved": "CREATE"},
)
def save_as_table(spark: Any, d: str) -> None:
    spark.read.parquet(f"{d}/orders").select("id", "day").write.saveAsTable("shop.saved")


@program(
    inputs="shop.orders",
    outputs={"shop.daily": {"id": "shop.orders:id", "amount": "shop.orders:amount", "day": ""}},
    indirect={"shop.daily": "shop.orders:day"},
    rows={"shop.daily": 2},
    changes={"shop.daily": "OVERWRITE"},
)
def insert_overwrite(spark: Any, d: str) -> None:
    spark.sql(
        "INSERT OVERWRITE shop.daily PARTITION (day = '2026-03-02')"
        " SELECT id, amount FROM shop.orders WHERE day = '2026-03-02'"
    )


@program(
    inputs="shop.orders shop.people",
    outputs={"shop.ctas": {"name": "shop.people:name", "total": "shop.orders:amount"}},
    indirect={"shop.ctas": "shop.orders:person shop.people:pid shop.people:name"},
    kinds={"shop.ctas:total": "AGGREGATION"},
    rows={"shop.ctas": 3},
    changes={"shop.ctas": "CREATE"},
)
def create_table_as_select(spark: Any, d: str) -> None:
    spark.sql(
        "CREATE TABLE shop.ctas USING parquet AS SELECT p.name, sum(o.amount) AS total"
        " FROM shop.orders o JOIN shop.people p ON o.person = p.pid GROUP BY p.name"
    )


@program(
    inputs="shop.orders",
    outputs={"view:shop.paid": {"number": "shop.orders:id", "sum": "shop.orders:amount"}},
    indirect={"view:shop.paid": "shop.orders:state"},
    changes={"view:shop.paid": "CREATE"},
)
def create_view(spark: Any, d: str) -> None:
    spark.sql(
        "CREATE VIEW shop.paid (number, sum) AS SELECT id, amount FROM shop.orders WHERE state = 'paid'"
    )


@program(
    inputs="shop.orders",
    outputs={"out/view": {"id": "shop.orders:id", "half": "shop.orders:amount"}},
    indirect={"out/view": "shop.orders:state"},
    rows={"out/view": 2},
)
def read_view(spark: Any, d: str) -> None:
    spark.table("shop.open_orders").selectExpr("id", "open_amount / 2 AS half").write.parquet(f"{d}/out/view")


@program(
    inputs="orders",
    outputs={"out/temp_view": {"id": "orders:id", "n": "orders:amount"}},
    rows={"out/temp_view": 5},
)
def temporary_view(spark: Any, d: str) -> None:
    spark.read.parquet(f"{d}/orders").createOrReplaceTempView("mine")
    spark.sql("SELECT id, CAST(amount AS INT) AS n FROM mine").write.parquet(f"{d}/out/temp_view")


# --- relational algebra


@program(
    inputs="orders people",
    outputs={"out/left_join": {"id": "orders:id", "who": "people:name", "mark": "orders:state people:mail"}},
    indirect={"out/left_join": "orders:person people:pid"},
    rows={"out/left_join": 5},
)
def left_join(spark: Any, d: str) -> None:
    o, p = spark.read.parquet(f"{d}/orders"), spark.read.parquet(f"{d}/people")
    joined = o.join(p, o.person == p.pid, "left")
    joined.selectExpr("id", "name AS who", "concat_ws('/', state, mail) AS mark").write.parquet(
        f"{d}/out/left_join"
    )


@program(
    inputs="orders people",
    outputs={"out/anti": {"id": "orders:id"}},
    indirect={"out/anti": "orders:person people:pid people:name"},
    rows={"out/anti": 3},
)
def anti_join(spark: Any, d: str) -> None:
    o, p = spark.read.parquet(f"{d}/orders"), spark.read.parquet(f"{d}/people").where("name <> 'Ada'")
    o.join(p, o.person == p.pid, "left_anti").unionByName(
        o.join(p, o.person == p.pid, "left_semi").limit(1)
    ).select("id").write.parquet(f"{d}/out/anti")


@program(
    inputs="shop.orders",
    outputs={
        "out/self": {"first": "shop.orders:id", "second": "shop.orders:id", "gap": "shop.orders:amount"}
    },
    indirect={"out/self": "shop.orders:person shop.orders:day"},
    rows={"out/self": 1},
)
def self_join(spark: Any, d: str) -> None:
    spark.sql(
        "SELECT a.id AS first, b.id AS second, b.amount - a.amount AS gap FROM shop.orders a"
        " JOIN shop.orders b ON a.person = b.person AND a.day < b.day"
    ).write.parquet(f"{d}/out/self")


@program(
    inputs="orders people",
    outputs={
        "out/union": {"key": "orders:id people:pid", "text": "orders:day people:name", "mail": "people:mail"}
    },
    rows={"out/union": 8},
)
def union_by_name(spark: Any, d: str) -> None:
    a = spark.read.parquet(f"{d}/orders").selectExpr("day AS text", "id AS key")
    b = spark.read.parquet(f"{d}/people").selectExpr("pid AS key", "mail", "name AS text")
    a.unionByName(b, allowMissingColumns=True).select("key", "text", "mail").write.parquet(f"{d}/out/union")


@program(
    inputs="orders orders_old",
    outputs={"out/except": {"id": "orders:id"}},
    indirect={"out/except": "orders_old:id orders_old:state"},
    rows={"out/except": 3},
)
def set_difference(spark: Any, d: str) -> None:
    old = spark.read.parquet(f"{d}/orders_old").where("state = 'paid'").select("id")
    spark.read.parquet(f"{d}/orders").select("id").exceptAll(old).write.parquet(f"{d}/out/except")


@program(
    inputs="orders",
    outputs={"out/rollup": {"state": "orders:state", "day": "orders:day", "top": "orders:amount", "n": ""}},
    indirect={"out/rollup": "orders:state orders:day"},
    rows={"out/rollup": 9},
)
def rollup(spark: Any, d: str) -> None:
    spark.read.parquet(f"{d}/orders").createOrReplaceTempView("o")
    spark.sql(
        "SELECT state, day, max(amount) AS top, count(*) AS n FROM o GROUP BY ROLLUP (state, day)"
    ).write.parquet(f"{d}/out/rollup")


@program(
    inputs="orders",
    outputs={"out/window": {"id": "orders:id", "place": "", "so_far": "orders:amount"}},
    indirect={"out/window": "orders:person orders:day"},
    rows={"out/window": 5},
)
def window(spark: Any, d: str) -> None:
    spark.read.parquet(f"{d}/orders").createOrReplaceTempView("o")
    spark.sql(
        "SELECT id, dense_rank() OVER w AS place, sum(amount) OVER w AS so_far FROM o"
        " WINDOW w AS (PARTITION BY person ORDER BY day)"
    ).write.parquet(f"{d}/out/window")


@program(
    inputs="people",
    outputs={"out/explode": {"pid": "people:pid", "tag": "people:tags"}},
    rows={"out/explode": 4},
)
def explode(spark: Any, d: str) -> None:
    spark.read.parquet(f"{d}/people").selectExpr("pid", "explode(tags) AS tag").write.parquet(
        f"{d}/out/explode"
    )


@program(
    inputs="people",
    outputs={
        "out/nested": {"city": "people:address.city", "whole": "people:address", "first": "people:tags"}
    },
    indirect={"out/nested": "people:address.zip"},
    rows={"out/nested": 2},
)
def nested_struct(spark: Any, d: str) -> None:
    found = spark.read.parquet(f"{d}/people").where("address.zip < '2'")
    found.selectExpr("address.city", "address AS whole", "tags[0] AS first").write.parquet(f"{d}/out/nested")


@program(
    inputs="orders",
    outputs={
        "out/pivot": {"day": "orders:day", "open": "orders:amount", "paid": "orders:amount"},
    },
    indirect={"out/pivot": "orders:day orders:state"},
    rows={"out/pivot": 3},
)
def pivot(spark: Any, d: str) -> None:
    found = spark.read.parquet(f"{d}/orders").groupBy("day").pivot("state", ["open", "paid"]).sum("amount")
    found.write.parquet(f"{d}/out/pivot")


@program(
    inputs="shop.orders",
    outputs={"out/cte": {"person": "shop.orders:person", "share": "shop.orders:amount"}},
    indirect={"out/cte": "shop.orders:person shop.orders:state"},
    rows={"out/cte": 3},
)
def cte_twice(spark: Any, d: str) -> None:
    spark.sql(
        "WITH t AS (SELECT person, sum(amount) AS total FROM shop.orders WHERE state <> 'void' GROUP BY person)"
        " SELECT a.person, a.total / b.total AS share FROM t a JOIN t b ON a.person = b.person"
    ).write.parquet(f"{d}/out/cte")


@program(
    inputs="shop.orders shop.people",
    outputs={"out/scalar": {"id": "shop.orders:id", "of_max": "shop.orders:amount"}},
    indirect={"out/scalar": "shop.orders:person shop.people:pid shop.people:name"},
    rows={"out/scalar": 2},
)
def scalar_and_in_subquery(spark: Any, d: str) -> None:
    spark.sql(
        "SELECT id, amount / (SELECT max(amount) FROM shop.orders) AS of_max FROM shop.orders"
        " WHERE person IN (SELECT pid FROM shop.people WHERE name = 'Ada')"
    ).write.parquet(f"{d}/out/scalar")


@program(
    inputs="shop.orders shop.people",
    outputs={"out/correlated": {"name": "shop.people:name", "last": "shop.orders:day"}},
    indirect={"out/correlated": "shop.orders:person shop.people:pid"},
    rows={"out/correlated": 3},
)
def correlated_subquery(spark: Any, d: str) -> None:
    spark.sql(
        "SELECT p.name, (SELECT max(o.day) FROM shop.orders o WHERE o.person = p.pid) AS last FROM shop.people p"
    ).write.parquet(f"{d}/out/correlated")


@program(
    inputs="orders",
    outputs={"out/case": {"size": "", "label": "orders:day orders:person", "either": "orders:amount"}},
    indirect={"out/case": "orders:amount orders:state"},
    rows={"out/case": 5},
)
def case_and_coalesce(spark: Any, d: str) -> None:
    spark.read.parquet(f"{d}/orders").selectExpr(
        "CASE WHEN amount > 50 THEN 'big' ELSE 'small' END AS size",
        "coalesce(day, CAST(person AS STRING)) AS label",
        "if(state = 'void', 0, amount) AS either",
    ).write.parquet(f"{d}/out/case")


# --- functions


@program(
    inputs="orders",
    outputs={"out/udf": {"id": "orders:id", "told": "orders:state orders:day"}},
    rows={"out/udf": 5},
)
def python_udf(spark: Any, d: str) -> None:
    from pyspark.sql.functions import udf

    tell = udf(lambda state, day: f"{state} on {day}", "string")
    spark.read.parquet(f"{d}/orders").select("id", tell("state", "day").alias("told")).write.parquet(
        f"{d}/out/udf"
    )


@program(
    inputs="orders",
    outputs={"out/pandas_udf": {"amount": "orders:amount", "rounded": "orders:amount"}},
    rows={"out/pandas_udf": 5},
    needs="pandas",
)
def pandas_udf(spark: Any, d: str) -> None:
    import pandas
    from pyspark.sql.functions import pandas_udf as vectorised

    def round_all(values):  # type: ignore[no-untyped-def]
        return values.round()

    # what the function takes must be told as types, not as the text that it would be here
    round_all.__annotations__ = {"values": pandas.Series, "return": pandas.Series}
    rounded = vectorised(round_all, "double")
    spark.read.parquet(f"{d}/orders").select("amount", rounded("amount").alias("rounded")).write.parquet(
        f"{d}/out/pandas_udf"
    )


@program(
    inputs="orders",
    outputs={"out/map": {"id": "orders:id orders:amount", "twice": "orders:id orders:amount"}},
    rows={"out/map": 5},
    needs="pandas",
)
def map_in_pandas(spark: Any, d: str) -> None:
    def double(frames: Iterator[Any]) -> Iterator[Any]:
        for frame in frames:
            yield frame.assign(twice=frame["amount"] * 2)[["id", "twice"]]

    found = spark.read.parquet(f"{d}/orders").select("id", "amount")
    found.mapInPandas(double, "id long, twice double").write.parquet(f"{d}/out/map")


@program(
    inputs="people",
    outputs={
        "out/masked": {
            "pid": "people:pid",
            "mail_hash": "people:mail",
            "mail": "people:mail",
            "both": "people:name",
        }
    },
    masked={"out/masked": "mail_hash both"},
    rows={"out/masked": 3},
)
def masking(spark: Any, d: str) -> None:
    spark.read.parquet(f"{d}/people").selectExpr(
        "pid", "sha2(mail, 256) AS mail_hash", "lower(mail) AS mail", "concat('x', md5(upper(name))) AS both"
    ).write.parquet(f"{d}/out/masked")


# --- what is kept between queries


@program(
    inputs="orders",
    outputs={"out/cached": {"person": "orders:person", "n": "orders:id"}},
    indirect={"out/cached": "orders:person orders:state"},
    rows={"out/cached": 2},
    ends=("COMPLETE", "COMPLETE"),  # the count reads too
)
def cache_then_write(spark: Any, d: str) -> None:
    kept = spark.read.parquet(f"{d}/orders").where("state = 'open'").cache()
    kept.count()
    kept.groupBy("person").agg({"id": "count"}).withColumnRenamed("count(id)", "n").write.parquet(
        f"{d}/out/cached"
    )
    kept.unpersist()


@program(
    inputs="orders",
    outputs={"out/checkpoint": {"id": "orders:id", "more": "orders:amount"}},
    indirect={"out/checkpoint": "orders:day"},
    rows={"out/checkpoint": 2},
    ends=("COMPLETE", "COMPLETE"),  # the checkpoint is an action of its own
)
def local_checkpoint(spark: Any, d: str) -> None:
    kept = (
        spark.read.parquet(f"{d}/orders").where("day = '2026-03-01'").selectExpr("id", "amount + 1 AS more")
    )
    kept.localCheckpoint().write.parquet(f"{d}/out/checkpoint")


@program(
    inputs="orders",
    outputs={"out/text": {}},
    rows={"out/text": 5},
)
def rdd_save(spark: Any, d: str) -> None:
    spark.read.parquet(f"{d}/orders").rdd.map(lambda row: f"{row.id}").saveAsTextFile(f"{d}/out/text")


@program(inputs="orders", ends=("COMPLETE",))
def read_only(spark: Any, d: str) -> None:
    spark.read.parquet(f"{d}/orders").groupBy("state").count().collect()


# --- failures


@program(
    inputs="orders",
    outputs={"out/failed": {"id": "orders:id", "bad": "orders:state"}},
    ends=("FAIL",),
    error="will not do",
)
def failing_task(spark: Any, d: str) -> None:
    from pyspark.sql.functions import udf

    def refuse(value):  # type: ignore[no-untyped-def]
        raise ValueError("will not do")

    bad = udf(refuse, "string")
    with contextlib.suppress(Exception):
        spark.read.parquet(f"{d}/orders").select("id", bad("state").alias("bad")).write.parquet(
            f"{d}/out/failed"
        )


@program(ends=("FAIL",), error="no_such_column")
def analysis_error(spark: Any, d: str) -> None:
    with contextlib.suppress(Exception):
        spark.sql("CREATE TABLE shop.never USING parquet AS SELECT no_such_column FROM shop.orders")


@program(ends=("FAIL",), error="PARSE_SYNTAX_ERROR")
def syntax_error(spark: Any, d: str) -> None:
    with contextlib.suppress(Exception):
        spark.sql("SELEKT 1 FROM shop.orders")


# --- streams


@program(
    inputs="orders_json",
    outputs={"out/stream": {"id": "orders_json:id", "cents": "orders_json:amount"}},
    indirect={"out/stream": "orders_json:state"},
)
def stream_files(spark: Any, d: str) -> None:
    source = spark.readStream.schema(ORDER).json(f"{d}/orders_json").where("state <> 'void'")
    _await(
        source.selectExpr("id", "amount * 100 AS cents")
        .writeStream.format("parquet")
        .option("checkpointLocation", f"{d}/check/stream")
        .trigger(availableNow=True)
        .start(f"{d}/out/stream")
    )


@program(
    inputs="orders_json",
    outputs={"out/each_batch": {"id": "orders_json:id", "day": "orders_json:day"}},
)
def for_each_batch(spark: Any, d: str) -> None:
    def write(batch: Any, number: int) -> None:
        batch.select("id", "day").write.mode("append").parquet(f"{d}/out/each_batch")

    source = spark.readStream.schema(ORDER).json(f"{d}/orders_json")
    _await(
        source.writeStream.foreachBatch(write)
        .queryName("copy orders")
        .option("checkpointLocation", f"{d}/check/each")
        .trigger(availableNow=True)
        .start()
    )


def _counted(frame: Any, d: str, name: str) -> None:
    writer = frame.writeStream.format("parquet").option("checkpointLocation", f"{d}/check/{name}")
    _await(writer.trigger(availableNow=True).start(f"{d}/out/{name}"))


@program(
    inputs="orders_json",
    outputs={"out/with_state": dict.fromkeys(("state", "n"), "orders_json:id orders_json:state")},
    indirect={"out/with_state": "orders_json:state"},
    needs="pandas",
)
def state_by_group(spark: Any, d: str) -> None:
    from pyspark.sql.streaming.state import GroupStateTimeout

    def count(key, parts, state):  # type: ignore[no-untyped-def]
        import pandas

        yield pandas.DataFrame({"state": [key[0]], "n": [sum(len(part) for part in parts)]})

    source = spark.readStream.schema(ORDER).json(f"{d}/orders_json").select("id", "state").groupBy("state")
    types = ("state string, n long", "n long", "append", GroupStateTimeout.NoTimeout)
    _counted(source.applyInPandasWithState(count, *types), d, "with_state")


@program(
    inputs="orders_json",
    outputs={"out/with_frames": dict.fromkeys(("state", "n"), "orders_json:id orders_json:state")},
    indirect={"out/with_frames": "orders_json:state"},
    needs="grpc",  # Spark's own side of it speaks protobuf
    since="4.0",
)
def state_of_frames(spark: Any, d: str) -> None:
    def count(state, parts):  # type: ignore[no-untyped-def]
        import pandas

        return pandas.DataFrame({"state": [state], "n": [sum(len(part) for part in parts)]})

    _processed(spark, d, "transformWithStateInPandas", count, "with_frames")


@program(
    inputs="orders_json",
    outputs={"out/with_rows": dict.fromkeys(("state", "n"), "orders_json:id orders_json:state")},
    indirect={"out/with_rows": "orders_json:state"},
    needs="grpc",
    since="4.1",
)
def state_of_rows(spark: Any, d: str) -> None:
    def count(state, rows):  # type: ignore[no-untyped-def]
        from pyspark.sql import Row

        return Row(state=state, n=sum(1 for _ in rows))

    _processed(spark, d, "transformWithState", count, "with_rows")


def _processed(spark: Any, d: str, method: str, count: Callable[[Any, Any], Any], name: str) -> None:
    """A stream whose groups go through a processor that keeps a state; RocksDB is the only store for that."""
    from pyspark.sql.streaming import StatefulProcessor

    class Processor(StatefulProcessor):  # type: ignore[misc]
        def init(self, handle):  # type: ignore[no-untyped-def]
            self.seen = handle.getValueState("seen", "n long")

        def handleInputRows(self, key, rows, timers):  # type: ignore[no-untyped-def]
            yield count(key[0], rows)

        def close(self):  # type: ignore[no-untyped-def]
            pass

    key = "spark.sql.streaming.stateStore.providerClass"
    before = spark.conf.get(key)
    spark.conf.set(key, "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
    groups = spark.readStream.schema(ORDER).json(f"{d}/orders_json").select("id", "state").groupBy("state")
    types = {"outputStructType": "state string, n long", "outputMode": "Append", "timeMode": "None"}
    _counted(getattr(groups, method)(statefulProcessor=Processor(), **types), d, name)
    spark.conf.set(key, before)


@program(
    inputs="orders_json python|numbers",
    outputs={
        "out/from_python": {"y": "python|numbers:x"},
        "python|numbers": {"x": "orders_json:id"},
    },
    ends=("COMPLETE", "COMPLETE"),
    since="4.0",
)
def stream_of_a_python_source(spark: Any, d: str) -> None:
    from pyspark.sql import datasource as api

    class Reader(api.SimpleDataSourceStreamReader):  # type: ignore[misc]
        def initialOffset(self):  # type: ignore[no-untyped-def]
            return {"at": 0}

        def read(self, start):  # type: ignore[no-untyped-def]
            return iter([(n,) for n in range(start["at"], 2)]), {"at": 2}

        def readBetweenOffsets(self, start, end):  # type: ignore[no-untyped-def]
            return iter([(n,) for n in range(start["at"], end["at"])])

    class Writer(api.DataSourceStreamWriter):  # type: ignore[misc]
        def write(self, rows):  # type: ignore[no-untyped-def]
            list(rows)
            return api.WriterCommitMessage()

        def commit(self, messages, batch):  # type: ignore[no-untyped-def]
            pass

        def abort(self, messages, batch):  # type: ignore[no-untyped-def]
            pass

    class Numbers(api.DataSource):  # type: ignore[misc]
        @classmethod
        def name(cls):  # type: ignore[no-untyped-def]
            return "numbers"

        def schema(self):  # type: ignore[no-untyped-def]
            return "x long"

        def simpleStreamReader(self, schema):  # type: ignore[no-untyped-def]
            return Reader()

        def streamWriter(self, schema, overwrite):  # type: ignore[no-untyped-def]
            return Writer()

    spark.dataSource.register(Numbers)
    frame = spark.readStream.format("numbers").load().selectExpr("x * 2 AS y")
    query = frame.writeStream.option("checkpointLocation", f"{d}/check/python").start(f"{d}/out/from_python")
    query.processAllAvailable()
    query.stop()
    orders = spark.readStream.schema(ORDER).json(f"{d}/orders_json").selectExpr("id AS x")
    writer = orders.writeStream.format("numbers").option("checkpointLocation", f"{d}/check/to_python")
    _await(writer.trigger(availableNow=True).start())


def _await(query: Any) -> None:
    assert query.awaitTermination(120)


# --- definitions


@program(
    outputs={"shop.defined": {}},
    changes={"shop.defined": "CREATE ALTER DROP"},
    ends=("COMPLETE", "COMPLETE", "COMPLETE"),
)
def definitions(spark: Any, d: str) -> None:
    spark.sql("CREATE TABLE shop.defined (a INT, b STRING) USING parquet")
    spark.sql("ALTER TABLE shop.defined ADD COLUMNS (c DOUBLE)")
    spark.sql("DROP TABLE shop.defined")


# --- further shapes


@program(
    inputs="shop.orders",
    outputs={
        "shop.big": {"id": "shop.orders:id"},
        "shop.small": {"day": "shop.orders:day", "amount": "shop.orders:amount"},
    },
    indirect={"shop.big": "shop.orders:amount", "shop.small": "shop.orders:amount"},
    rows={"shop.big": 1, "shop.small": 4},
    changes={"shop.big": "CREATE", "shop.small": "CREATE"},
    ends=("COMPLETE", "COMPLETE", "COMPLETE"),
    ends_on={"3.5": ("COMPLETE",) * 4},  # each INSERT is an execution of its own, without a common root
)
def multi_insert(spark: Any, d: str) -> None:
    spark.sql("CREATE TABLE shop.big (id BIGINT) USING parquet")
    spark.sql("CREATE TABLE shop.small (day STRING, amount DOUBLE) USING parquet")
    spark.sql(
        "FROM shop.orders INSERT INTO shop.big SELECT id WHERE amount > 50"
        " INSERT INTO shop.small SELECT day, amount WHERE amount <= 50"
    )


@program(
    inputs="orders",
    outputs={"out/apply": {"person": "orders:person orders:amount", "best": "orders:person orders:amount"}},
    indirect={"out/apply": "orders:person"},
    rows={"out/apply": 3},
    needs="pandas",
)
def apply_in_pandas(spark: Any, d: str) -> None:
    def best(frame):  # type: ignore[no-untyped-def]
        return frame.groupby("person", as_index=False).agg(best=("amount", "max"))

    found = spark.read.parquet(f"{d}/orders").select("person", "amount").groupBy("person")
    found.applyInPandas(best, "person long, best double").write.parquet(f"{d}/out/apply")


@program(
    inputs="orders",
    outputs={"out/unpivot": {"id": "orders:id", "field": "", "text": "orders:state orders:day"}},
    rows={"out/unpivot": 10},
)
def unpivot(spark: Any, d: str) -> None:
    found = spark.read.parquet(f"{d}/orders").unpivot("id", ["state", "day"], "field", "text")
    found.write.parquet(f"{d}/out/unpivot")


@program(
    inputs="shop.people",
    outputs={
        "out/lateral": {"name": "shop.people:name", "at": "shop.people:tags", "tag": "shop.people:tags"}
    },
    indirect={"out/lateral": "shop.people:tags"},
    rows={"out/lateral": 2},
)
def lateral_view(spark: Any, d: str) -> None:
    spark.sql(
        "SELECT name, at, tag FROM shop.people LATERAL VIEW posexplode(tags) AS at, tag WHERE tag = 'eu'"
    ).write.parquet(f"{d}/out/lateral")


@program(
    inputs="orders",
    outputs={"out/distinct": {"person": "orders:person", "state": "orders:state"}},
    indirect={"out/distinct": "orders:person"},
    rows={"out/distinct": 3},
)
def drop_duplicates(spark: Any, d: str) -> None:
    found = spark.read.parquet(f"{d}/orders").select("person", "state").dropDuplicates(["person"])
    found.write.parquet(f"{d}/out/distinct")


@program(
    inputs="shop.orders",
    outputs={"shop.v2": {"key": "shop.orders:id", "value": "shop.orders:state"}},
    rows={"shop.v2": 5},
    changes={"shop.v2": "CREATE"},
)
def write_to_create(spark: Any, d: str) -> None:
    spark.table("shop.orders").selectExpr("id AS key", "state AS value").writeTo("shop.v2").using(
        "parquet"
    ).create()


@program(
    inputs="shop.orders",
    outputs={"shop.dynamic": {"amount": "shop.orders:amount", "day": "shop.orders:day"}},
    rows={"shop.dynamic": 5},
    changes={"shop.dynamic": "CREATE"},
    ends=("COMPLETE", "COMPLETE"),
)
def insert_by_name(spark: Any, d: str) -> None:
    spark.sql("CREATE TABLE shop.dynamic (amount DOUBLE, day STRING) USING parquet PARTITIONED BY (day)")
    spark.sql("INSERT INTO shop.dynamic (day, amount) SELECT day, amount FROM shop.orders")


@program(
    inputs="orders_json",
    outputs={"shop.streamed": {"id": "orders_json:id", "day": "orders_json:day"}},
    changes={"shop.streamed": "CREATE"},
    ends=("COMPLETE", "COMPLETE"),
)
def stream_to_table(spark: Any, d: str) -> None:
    spark.sql("CREATE TABLE shop.streamed (id BIGINT, day STRING) USING parquet")
    source = spark.readStream.schema(ORDER).json(f"{d}/orders_json").select("id", "day")
    _await(
        source.writeStream.queryName("to table")
        .option("checkpointLocation", f"{d}/check/table")
        .trigger(availableNow=True)
        .toTable("shop.streamed")
    )


@program(
    inputs="orders_json",
    outputs={"out/stream_failed": {"bad": "orders_json:state"}},
    ends=("FAIL",),
    error="will not do",
)
def failing_stream(spark: Any, d: str) -> None:
    from pyspark.sql.functions import udf

    def refuse(value):  # type: ignore[no-untyped-def]
        raise ValueError("will not do")

    source = spark.readStream.schema(ORDER).json(f"{d}/orders_json")
    with contextlib.suppress(Exception):
        _await(
            source.select(udf(refuse, "string")("state").alias("bad"))
            .writeStream.format("parquet")
            .queryName("broken")
            .option("checkpointLocation", f"{d}/check/failed")
            .trigger(availableNow=True)
            .start(f"{d}/out/stream_failed")
        )


@program(
    outputs={"shop.old_name": {}, "shop.new_name": {}},
    changes={"shop.old_name": "CREATE", "shop.new_name": "RENAME TRUNCATE"},
    ends=("COMPLETE", "COMPLETE", "COMPLETE"),
)
def rename_and_truncate(spark: Any, d: str) -> None:
    spark.sql("CREATE TABLE shop.old_name (a INT) USING parquet")
    spark.sql("ALTER TABLE shop.old_name RENAME TO shop.new_name")
    spark.sql("TRUNCATE TABLE shop.new_name")


@program(
    inputs="orders people",
    outputs={"out/renamed": {"a": "orders:id", "b": "people:name"}},
    indirect={"out/renamed": "orders:person people:pid orders:amount people:name"},
    read={"orders": 5, "people": 3},
    rows={"out/renamed": 2},
)
def counts_of_what_is_read(spark: Any, d: str) -> None:
    o, p = spark.read.parquet(f"{d}/orders"), spark.read.parquet(f"{d}/people")
    joined = (
        o.join(p, o.person == p.pid).selectExpr("id", "name", "amount + length(name) AS w").where("w > 20")
    )
    joined.toDF("a", "b", "w").select("a", "b").write.parquet(f"{d}/out/renamed")


@program(
    inputs="people",
    outputs={"out/lambda": {"loud": "people:tags", "made": "people:name people:address.city"}},
    rows={"out/lambda": 3},
)
def higher_order_functions(spark: Any, d: str) -> None:
    spark.read.parquet(f"{d}/people").selectExpr(
        "transform(tags, t -> upper(t)) AS loud", "named_struct('n', name, 'c', address.city) AS made"
    ).write.parquet(f"{d}/out/lambda")


@program(
    inputs="orders",
    outputs={
        "out/odd ö": {
            "a.b": "orders:id",
            "c d": "orders:state",
            "ü`x": "orders:day",
            "n\ufffdl": "orders:amount",
        }
    },
    rows={"out/odd ö": 5},
)
def odd_names(spark: Any, d: str) -> None:
    found = spark.read.parquet(f"{d}/orders").select("id", "state", "day", "amount")
    found.toDF("a.b", "c d", "ü`x", "n\0l").write.json(f"{d}/out/odd ö")
