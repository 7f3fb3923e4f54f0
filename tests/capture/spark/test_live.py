"""The programs on the Spark that is installed here: the same lineage as recorded, one end for each run, and no mixing."""

from __future__ import annotations

import importlib.util
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from checking import compare, ends, identity, lifecycle
from programs import PROGRAMS, prepare
from replaying import RECORDS, records
from sessions import Session

import headwater.spark
from openlineage_schemas import SHARED, assert_openlineage

# pyspark leaves sockets to the collector, and older ones use what newer Pythons warn of
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning:pyspark"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory, need: Callable[[str, str], None]) -> Iterator[Session]:
    """One application for all tests here."""
    if importlib.util.find_spec("pyspark") is None:
        need("pyspark", "pip install 'headwater[spark]'")
    if shutil.which("java") is None:
        need("Java", "apt install openjdk-17-jre-headless")
    found = Session(tmp_path_factory.mktemp("spark").resolve() / "data")
    prepare(found.spark, str(found.root))
    found.take()
    yield found
    found.stop()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program(name: str, session: Session, request: pytest.FixtureRequest) -> None:
    program = PROGRAMS[name]
    if not program.runs_on(session.minor):
        pytest.skip(f"Spark {session.minor} cannot do this")
    if program.needs:
        pytest.importorskip(program.needs)
    session.take()
    program.run(session.spark, str(session.root))
    told, events = session.take()
    for event in events if SHARED.is_dir() else ():
        assert_openlineage(event, SHARED)
    assert _shapes(told) <= _shapes_recorded(session.minor), (
        "record the programs again: scripts/record_spark.py"
    )
    if program.wrong and session.minor in (program.wrong_on or (session.minor,)):
        request.applymarker(pytest.mark.xfail(strict=True, reason=program.wrong))
    found = list(compare(program, events, str(session.root), session.minor))
    assert not found, "\n".join(found)


def _shapes(told: list[dict[str, Any]]) -> set[str]:
    """What kinds of records and nodes there are, each with its fields."""
    out = set()
    for each in told:
        out.add(f"{each['kind']}")
        out |= {f"{node['n']}: {' '.join(sorted(node))}" for node in each.get("plan", [])}
    return out


def _shapes_recorded(minor: str) -> set[str]:
    """Of all programs: which node a program has may depend on what ran before."""
    if not (RECORDS / minor).is_dir():
        pytest.skip(f"nothing is recorded of Spark {minor}")
    on = [name for name, program in PROGRAMS.items() if program.runs_on(minor)]
    return {shape for name in on for shape in _shapes(records(minor, name))}


def test_every_query_has_one_end(session: Session) -> None:
    session.take()
    frame = session.spark.read.parquet(f"{session.root}/orders")
    for number in range(200):
        frame.where(f"id > {number}").collect()
    told, events = session.take()
    started = [each for each in told if each["kind"] == "start"]
    assert len(started) == sum(each["kind"] == "end" for each in told) == 200
    assert Counter(each["eventType"] for each in ends(events)) == {"COMPLETE": 200}
    assert not list(lifecycle(events))


def test_threads_do_not_mix(session: Session) -> None:
    session.take()
    faults: list[BaseException] = []

    def copy(column: str) -> None:
        try:
            frame = session.spark.read.parquet(f"{session.root}/orders").where(f"{column} IS NOT NULL")
            for number in range(3):
                frame.select(column).write.parquet(f"{session.root}/threads/{column}{number}")
        except BaseException as fault:
            faults.append(fault)
            raise

    columns = ("id", "person", "amount", "state", "day")
    threads = [threading.Thread(target=copy, args=(column,)) for column in columns]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    _, events = session.take()
    assert not list(lifecycle(events))
    found = {}
    for event in ends(events):
        (output,) = event["outputs"]
        lineage = output["facets"]["columnLineage"]
        sources = {each["field"] for told in lineage["fields"].values() for each in told["inputFields"]}
        found[Path(output["name"]).name] = sources | {each["field"] for each in lineage["dataset"]}
    assert found == {f"{column}{number}": {column} for column in columns for number in range(3)}


def test_installing_twice_is_once(session: Session) -> None:
    import headwater.spark

    assert headwater.spark.install(session.spark) is session.capture
    session.take()
    session.spark.read.parquet(f"{session.root}/orders").collect()
    _, events = session.take()
    assert len(ends(events)) == 1


def test_a_flush_brings_what_was_done_before_it(session: Session) -> None:
    session.take()
    for number in range(5):
        session.spark.range(3).write.parquet(f"{session.root}/flushed/{number}")
        session.settle()
        outputs = {identity(out)[1] for event in ends(session.peek()) for out in event["outputs"]}
        assert f"{session.root}/flushed/{number}" in outputs


def test_a_statement_whose_result_is_collected_has_run_once(session: Session) -> None:
    session.take()
    session.spark.sql("CREATE TABLE shop.collected USING parquet AS SELECT id FROM shop.orders").collect()
    session.spark.sql("INSERT INTO shop.collected SELECT id FROM shop.orders").toPandas()
    session.spark.sql(
        "FROM shop.orders INSERT INTO shop.collected SELECT id INSERT INTO shop.collected SELECT person"
    ).collect()
    _, events = session.take()
    told = [out["facets"].get("lifecycleStateChange") for event in ends(events) for out in event["outputs"]]
    assert len(told) == (4 if session.minor == "3.5" else 3)  # there each INSERT is an execution of its own
    assert sum(each is not None for each in told) == 1


def test_a_field_is_named_as_the_schema_spells_it(session: Session) -> None:
    session.take()
    people = session.spark.createDataFrame([(("Bern", 1), [(2,)])], "addr struct<City:string,zip:int>, items array<struct<qty:int>>")  # fmt: skip
    people.write.parquet(f"{session.root}/spelt")
    session.take()
    read = session.spark.read.parquet(f"{session.root}/spelt")
    read.selectExpr("ADDR.city AS a", "items.QTY AS b", "items[0].Qty AS c", "struct(addr.zip AS k).K AS d").write.parquet(f"{session.root}/spelt_out")  # fmt: skip
    _, events = session.take()
    (end,) = ends(events)
    fields = end["outputs"][0]["facets"]["columnLineage"]["fields"]
    found = {name: [each["field"] for each in of["inputFields"]] for name, of in fields.items()}
    assert found == {"a": ["addr.City"], "b": ["items.qty"], "c": ["items.qty"], "d": ["addr.zip"]}


def test_files_of_a_directory_are_that_directory(session: Session) -> None:
    """Named one by one, by a pattern, or by Spark itself where it looks for a schema; one file alone is itself."""
    root = session.root
    session.spark.range(6).repartition(3).write.csv(f"{root}/parts/a", header=True)
    session.spark.range(2).coalesce(1).write.csv(f"{root}/parts/b", header=True)
    one, *more = sorted(str(each) for each in (root / "parts/a").glob("*.csv"))
    for paths, expected in (
        ([f"{root}/parts/*/*.csv"], {f"{root}/parts/a", f"{root}/parts/b"}),
        ([one, *more], {f"{root}/parts/a"}),
        ([one, f"{root}/parts/b"], {f"{root}/parts/a", f"{root}/parts/b"}),
        ([one], {one}),
    ):
        session.take()
        session.spark.read.csv(paths, header=True).write.mode("overwrite").parquet(f"{root}/parts_out")
        _, events = session.take()
        assert {identity(each)[1] for event in ends(events) for each in event["inputs"]} == expected
        counts = [
            each["inputFacets"]["inputStatistics"]
            for each in ends(events)[-1]["inputs"]
            if "inputFacets" in each
        ]
        assert len(counts) == (1 if len(expected) == 1 else 0)


def test_a_table_saved_without_its_database_is_one_of_the_current(session: Session) -> None:
    session.take()
    session.spark.sql("USE shop")
    try:
        session.spark.range(2).write.saveAsTable("unqualified")
    finally:
        session.spark.sql("USE default")
    _, events = session.take()
    (end,) = ends(events)
    links = end["outputs"][0]["facets"]["symlinks"]["identifiers"]
    assert [each["name"] for each in links] == ["shop.unqualified"]


def test_secrets_stay_inside(session: Session) -> None:
    """Before a record leaves the JVM, and before an event leaves us."""
    session.take()
    secret = "hunter2"
    url = f"jdbc:nothing://fred:{secret}@db/shop?password={secret}"
    with pytest.raises(Exception):  # noqa: B017, PT011 - no such driver
        session.spark.read.jdbc(url, "orders", properties={"password": secret, "user": "fred"}).collect()
    from pyspark.sql.functions import udf

    def refuse(value):  # type: ignore[no-untyped-def]
        raise ValueError(f"cannot reach {url}")

    with pytest.raises(Exception):  # noqa: B017, PT011
        session.spark.range(1).select(udf(refuse, "string")("id")).write.parquet(f"{session.root}/secret")
    told, events = session.take()
    assert secret not in repr(told)
    assert secret not in repr(events)


def test_the_end_of_the_application(tmp_path: Path) -> None:
    """In a process of its own: one JVM has one application."""
    import subprocess
    import sys

    code = f"""
import json, pathlib, sys
sys.path[:0] = [{str(Path(__file__).parent)!r}]
from sessions import Session
session = Session(pathlib.Path({str(tmp_path)!r}))
session.spark.range(3).write.parquet({str(tmp_path / "out")!r})
session.spark.stop()
session.capture.close()
session.capture.close()
assert session.capture.flush(1)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=180, capture_output=True)
    import json

    events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert not list(lifecycle(events))
    assert [each["eventType"] for each in events] == ["START", "START", "COMPLETE", "COMPLETE"]
    assert events[0]["job"]["name"] == events[-1]["job"]["name"] == "programs"


def test_an_extension_sees_jobs_stages_and_rdds_of_a_real_application(session: Session) -> None:
    session.take()
    headwater.spark.install(session.spark, extensions=[Watching])
    Watching.seen.clear()
    frame = session.spark.read.parquet(str(session.root / "orders"))
    frame.groupBy("state").count().write.mode("overwrite").parquet(str(session.root / "out" / "watched"))
    context = session.spark.sparkContext
    context.textFile(str(session.root / "orders")).map(len).saveAsTextFile(
        str(session.root / "out" / "lengths")
    )
    _, events = session.take()
    Watching.on = False
    assert set(Watching.seen) == {
        "SqlStart", "SqlEnd", "JobStart", "JobEnd", "ActiveJob", "Stage", "StageInfo", "Rdd", "HadoopRDD",
    }  # fmt: skip
    sql, rdd = ends(events)
    assert sql["run"]["facets"]["watched"]["execution"] is not None
    assert "headwater_extensions" not in sql["run"]["facets"]
    assert rdd["inputs"][0]["inputFacets"]["watched_paths"]["paths"]


class HadoopRDD(headwater.spark.Rdd):
    """Spark's."""


class Watching(headwater.spark.Extension):
    """Notes what it is given."""

    seen: ClassVar[list[str]] = []
    on = True

    def run_facets(self, context: headwater.spark.Context) -> list[Callable[[Any], Any]]:
        """Of everything."""
        return [self._keep, self._execution]

    def input_facets(self, context: headwater.spark.Context) -> list[Callable[[Any], Any]]:
        """Of files."""
        return [self._paths]

    def _keep(self, given: Any) -> None:
        self.seen.append(type(given).__name__)

    def _execution(self, begun: headwater.spark.JobStart) -> dict[str, Any] | None:
        return {"watched": {"execution": begun.execution}} if self.on else None

    def _paths(self, rdd: HadoopRDD) -> dict[str, Any] | None:
        self.seen.append(type(rdd).__name__)
        return {"watched_paths": {"paths": list(rdd.paths)}} if self.on else None


def test_a_full_queue_loses_no_end(session: Session) -> None:
    """Nobody reads for a while: plans are left behind, runs are not."""
    session.take()
    capture, frame = session.capture, session.spark.read.parquet(str(session.root / "orders"))
    capture._probe.bound(3_000)
    plain, capture._read = capture._read, lambda wait: False  # type: ignore[method-assign]
    for _ in range(12):
        frame.write.format("noop").mode("overwrite").save()
    session.spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(60_000)
    capture._probe.bound(1 << 26)
    capture._read = plain  # type: ignore[method-assign]
    frame.write.format("noop").mode("overwrite").save()
    _, events = session.take()
    left_behind = ["headwater_degraded" in each["run"]["facets"] for each in ends(events)]
    assert len(left_behind) == 13
    assert any(left_behind)
    assert session.state.lost == 0
    assert "headwater_degraded" not in ends(events)[-1]["run"]["facets"]


@pytest.mark.live
def test_ten_thousand_queries_each_with_an_end_in_flat_memory(
    session: Session, repeats: Callable[[int], int]
) -> None:
    session.take()
    frame = session.spark.read.parquet(str(session.root / "orders")).select("id", "amount")
    total, sizes, told = repeats(10_000), [], 0
    for number in range(total):
        frame.write.format("noop").mode("overwrite").save()
        if number % 500 == 499 or number == total - 1:
            _, events = session.take()
            told += len(ends(events))
            sizes.append(int(Path("/proc/self/statm").read_text().split()[1]) * 4096)
    assert told == total
    assert session.capture._probe.size() == 0
    assert sizes[-1] - sizes[len(sizes) // 4] < 30_000_000, sizes
