"""company: a size and a seed -> a month of a large company: what its tools tell, in the order in which it arrives, and the ledger of it.

A department has fifty jobs: six tables of its own database go through Kafka Connect (a source and a sink each) into the
lake, six dlt pipelines bring in what its services tell, and a DAG of Airflow runs six Spark applications of three queries one after
another, each on what the one before it made, and a job that tests the last table: twenty tables in a row. Departments read each
other's last table, ten in a row.

Queries fail and are tried again, or fail for good; drivers die (ABORT), or only seem to; pipelines are killed; connectors fail and begin
anew; tests fail for a while; columns are taken away. Events come late by hours to days, out of order, and some come twice.
"""

from __future__ import annotations

import heapq
import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import cached_property
from hashlib import blake2b
from itertools import count

import msgspec

from captured import TYPES, Run, Table, Told, airflow, check, connect, dlt, spark
from ledger import Ledger

BEGIN = datetime(2026, 1, 1, tzinfo=timezone.utc)
DAYS = 30
TENTHS = 10
JOBS, EVENTS = 50, 86
"""Of a department; and of one cycle of it, when nothing goes wrong."""
THINGS = ("orders", "items", "customers", "payments", "stock", "returns")
APPS, QUERIES = 6, 3
LATE, REPEATED = 0.01, 0.02
TESTS = (("not_null", "id"), ("positive", "amount"))
MINUTE = 60_000
"""Times are milliseconds since the month began."""
MONTH = DAYS * 24 * 60 * MINUTE
_ERROR = "org.apache.spark.SparkException: Job aborted due to stage failure: Task 3 in stage 12.0 failed 4 times\n\tat org.apache.spark.scheduler.DAGScheduler.failJobAndIndependentStages(DAGScheduler.scala:2844)"


def stamp(ms: int) -> str:
    """A time on the wire."""
    return (BEGIN + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def micros(ms: int) -> int:
    """A time as the house keeps it."""
    return (int(BEGIN.timestamp()) * 1000 + ms) * 1000


@dataclass(frozen=True)
class Size:
    """How much a month holds."""

    departments: int
    cycles: int
    seed: int = 1

    @classmethod
    def of(cls, events: int, seed: int = 1) -> Size:
        """About so many events: at most 5,000 jobs, then each the more often; and several departments, if there are few."""
        departments = max(1, min(5_000 // JOBS, events // (60 * JOBS)), min(4, events // 500))
        return cls(departments, max(2, round(events / (EVENTS * departments))), seed)

    @property
    def interval(self) -> float:
        """Milliseconds between two cycles."""
        return MONTH / self.cycles


class Department:
    """One department: its tables, and what has become of it so far."""

    def __init__(self, size: Size, number: int, ledger: Ledger) -> None:
        self.size, self.number, self.ledger = size, number, ledger
        self.dice = random.Random(f"{size.seed} {number}")
        self.phase = self.dice.random() * 0.9
        self.unit = min(8 * MINUTE, size.interval / 12)
        self.failing = dict.fromkeys(TESTS, False)
        self.connectors: dict[str, Run] = {}
        breaks = self.dice.random() < 0.3 and size.cycles > 4
        self.lacks_from = self.dice.randrange(1, size.cycles - 1) if breaks else size.cycles
        back = breaks and self.dice.random() < 0.5
        self.lacks_until = self.dice.randrange(self.lacks_from + 1, size.cycles) if back else size.cycles
        self._out: list[tuple[int, Told]] = []
        self._ended: dict[str, tuple[int, bool]] = {}

    def starts(self, cycle: int) -> int:
        """When a cycle begins."""
        return int((cycle + self.phase * 0.3) * self.size.interval)

    # --- its tables

    def own(self, thing: str) -> Table:
        return Table(f"postgres://erp-{self.number:03d}:5432", f"erp.public.{thing}")

    def topic(self, thing: str) -> Table:
        return Table(f"kafka://broker-{self.number % 5}:9092", f"erp{self.number:03d}.public.{thing}")

    def bronze(self, thing: str) -> Table:
        return Table("s3://lake", f"bronze/d{self.number:03d}/{thing}", f"bronze.d{self.number:03d}_{thing}")

    def endpoint(self, thing: str) -> Table:
        return Table(f"https://api-{self.number:03d}.example.com", f"/v1/{thing}")

    def raw(self, thing: str) -> Table:
        return Table("s3://lake", f"raw/d{self.number:03d}/{thing}")

    def silver(self, app: int, query: int, department: int | None = None) -> Table:
        """What an application makes: its last table is in the catalog, what leads to it is written by path."""
        number = self.number if department is None else department
        alias = f"silver.d{number:03d}_t{app}{query}" if query == QUERIES - 1 else ""
        return Table("s3://lake", f"silver/d{number:03d}/t{app}{query}", alias)

    def reads(self, app: int, query: int) -> list[Table]:
        """What a query reads: what the one before it wrote, and at an application's start something new."""
        if query:
            return [self.silver(app, query - 1)]
        if app:
            return [
                self.silver(app - 1, QUERIES - 1),
                (self.raw if app % 2 else self.bronze)(THINGS[app]),
            ]
        other = self.number - 1 if self.number % 10 else None
        above = [self.silver(APPS - 1, QUERIES - 1, other)] if other is not None else []
        return [self.bronze(THINGS[0]), self.raw(THINGS[0]), *above]

    # --- telling

    def run(self, at: int, key: str, namespace: str, job: str, parent: Run | None = None) -> Run:
        """A run with an id that begins with its time, the same for the same seed."""
        rest = blake2b(f"{self.size.seed} {self.number} {key}".encode(), digest_size=10).digest()
        number = int(BEGIN.timestamp() * 1000 + at) << 80 | int.from_bytes(rest, "big")
        number = number & ~(0xF << 76) & ~(0x3 << 62) | 7 << 76 | 2 << 62
        return Run(str(uuid.UUID(int=number)), namespace, job, parent)

    def tell(self, at: float, event: Told) -> None:
        self._out.append((int(at), event))

    def cycle(self, number: int) -> list[tuple[int, Told]]:
        """All that a cycle of the department tells, with the times of the events."""
        self._out = []
        begun = self.starts(number)
        for at, thing in enumerate(THINGS):
            self._connect(number, begun + at * 1_000, thing)
            self._dlt(number, begun + at * 2_000, thing)
        self._dag(number, begun)
        if number == self.size.cycles - 1:
            for run in self.connectors.values():  # they go on after the month
                self.ledger.run(run, "RUNNING")
        return self._out

    def _connect(self, cycle: int, at: int, thing: str) -> None:
        ways = {
            "source": (self.own(thing), self.topic(thing)),
            "sink": (self.topic(thing), self.bronze(thing)),
        }
        for type_, (read, written) in ways.items():
            name = f"d{self.number:03d}-{thing}-{type_}"
            run = self.connectors.get(name)
            if run is None:
                run = self.connectors[name] = self.run(at, f"{name} {cycle}", "connect", name)
                self.tell(at, connect("START", stamp(at), run, "main", type_, read, written))
                self._running(at, run, type_, read, written)
            elif (cycle + len(name)) % 3 == 0:  # something of it changed
                self._running(at, run, type_, read, written)
            if self.dice.random() < 0.003 and cycle < self.size.cycles - 1:
                later = at + int(4 * self.unit)
                error = "java.net.SocketTimeoutException: connect timed out"
                self.tell(later, connect("FAIL", stamp(later), run, "main", type_, read, written, error))
                self.ledger.run(run, "FAIL")
                self.ledger.outcome(("run", f"job:connect:{name}", "run", ""), micros(later), True)
                del self.connectors[name]

    def _running(self, at: int, run: Run, type_: str, read: Table, written: Table) -> None:
        self.tell(at + 500, connect("RUNNING", stamp(at + 500), run, "main", type_, read, written))

    def _dlt(self, cycle: int, at: int, thing: str) -> None:
        name = f"d{self.number:03d}_{thing}"
        run = self.run(at, f"dlt {thing} {cycle}", "dlt", name)
        read, written, rows = self.endpoint(thing), self.raw(thing), self.dice.randrange(100, 100_000)
        extracted, ended = int(at + 0.3 * self.unit), int(at + 0.8 * self.unit)
        self.tell(at, dlt("START", stamp(at), run, read, written))
        self.tell(extracted, dlt("RUNNING", stamp(extracted), run, read, written, rows))
        luck = self.dice.random()
        if luck < 0.005:  # its process was killed
            self.ledger.run(run, "RUNNING")
            return
        failed = luck < 0.025
        error = "LoadClientJobFailed: the bucket refused the file" if failed else ""
        kind = "FAIL" if failed else "COMPLETE"
        self.tell(ended, dlt(kind, stamp(ended), run, read, written, rows, error))
        self.ledger.run(run, kind)
        self.ledger.outcome(("run", f"job:dlt:{name}", "run", ""), micros(ended), failed)

    def _dag(self, cycle: int, begun: int) -> None:
        name, nominal = f"nightly_d{self.number:03d}", stamp(begun)
        run = self.run(begun, f"dag {cycle}", "airflow", name)
        self.tell(begun, airflow("START", stamp(begun), run, nominal))
        luck, unlucky = self.dice.random(), self.dice.randrange(APPS)
        good, self._ended = True, {}
        for app in range(APPS):
            fate = _fate(luck) if app == unlucky else "good"
            at = begun + (1 + app) * self.unit
            if fate in ("retried", "failed", "died"):
                self._task(cycle, run, nominal, app, at, 0.45 * self.unit, 1, fate)
                again = "failed" if fate == "failed" else "good"
                good = self._task(cycle, run, nominal, app, at + self.unit / 2, 0.45 * self.unit, 2, again)
            else:
                good = self._task(cycle, run, nominal, app, at, 0.95 * self.unit, 1, fate)
            if not good:
                break
        for query, (at, failed) in self._ended.items():
            self.ledger.outcome(("run", f"job:spark:{query}", "run", ""), micros(at), failed)
        if good:
            good = self._check(cycle, run, begun + int(7.2 * self.unit))
        ended, kind = begun + int(8 * self.unit), "COMPLETE" if good else "FAIL"
        self.tell(
            ended,
            airflow(
                kind,
                stamp(ended),
                run,
                nominal,
                error="" if good else "a task failed",
            ),
        )
        self.ledger.run(run, kind)

    def _task(self, cycle: int, dag: Run, nominal: str, app: int, begun: float, long: float, tries: int, fate: str) -> bool:  # fmt: skip
        """A task that submits an application; whether both ended well."""
        at, ended = int(begun), int(begun + long)
        task = self.run(at, f"task {cycle} {app} {tries}", "airflow", f"{dag.job}.app_{app}", dag)
        self.tell(at, airflow("START", stamp(at), task, nominal, tries=tries))
        name = f"d{self.number:03d}_app_{app}"
        run = self.run(at + 10, f"app {cycle} {app} {tries}", "spark", name, task)
        self.tell(at + 10, spark("START", stamp(at + 10), run, "APPLICATION"))
        stops = self.dice.randrange(QUERIES) if fate in ("retried", "failed", "died") else QUERIES
        for query in range(min(QUERIES, stops + 1)):
            here = int(begun + long * (0.1 + 0.25 * query))
            how = "good" if query < stops else fate
            self._query(cycle, run, app, query, here, int(here + 0.2 * long), tries, how)
        last = int(begun + 0.9 * long)
        if fate == "seemed dead":  # its host was cut off: a will was sent for it, and then its own word
            middle = int(begun + 0.5 * long)
            self.tell(middle, spark("ABORT", stamp(middle), run, "APPLICATION", error="the driver died before it could tell how the run ended"))  # fmt: skip
        kind = {"died": "ABORT", "retried": "FAIL", "failed": "FAIL"}.get(fate, "COMPLETE")
        error = "" if kind == "COMPLETE" else "the driver died before it could tell how the run ended" if kind == "ABORT" else _ERROR  # fmt: skip
        self.tell(last, spark(kind, stamp(last), run, "APPLICATION", error=error))
        self.ledger.run(run, kind)
        good = kind == "COMPLETE"
        error = "" if good else "SparkSubmitOperator: error code is 1"
        self.tell(ended, airflow("COMPLETE" if good else "FAIL", stamp(ended), task, nominal, tries=tries, error=error))  # fmt: skip
        self.ledger.run(task, "COMPLETE" if good else "FAIL")
        return good

    def _query(self, cycle: int, app_run: Run, app: int, query: int, at: int, ended: int, tries: int, fate: str) -> None:  # fmt: skip
        output = self.silver(app, query)
        name = f"{app_run.job}.overwrite_by_expression_exec.silver_d{self.number:03d}_t{app}{query}"
        run = self.run(at, f"query {cycle} {app} {query} {tries}", "spark", name, app_run)
        breakable = (app, query) == (2, 1)
        lacks = breakable and self.lacks_from <= cycle < self.lacks_until
        columns = tuple(each for each in TYPES if not (lacks and each == "discount"))
        rows, reads = self.dice.randrange(100, 1_000_000), self.reads(app, query)
        moments = [(at, "START", "")]
        if fate != "died":
            failed = fate in ("retried", "failed")
            moments.append((ended, "FAIL" if failed else "COMPLETE", _ERROR if failed else ""))
        for when, kind, error in moments:
            self.tell(when, spark(kind, stamp(when), run, "SQL_JOB", inputs=reads, output=output, columns=columns, rows=rows, error=error))  # fmt: skip
            if breakable:
                self.ledger.wrote(f"{output.namespace}\n{output.name}", "discount", lacks, micros(when))
        self.ledger.run(run, moments[-1][1])
        if fate != "died":  # of attempts under one root the newest counts
            self._ended[name] = (ended, moments[-1][1] == "FAIL")

    def _check(self, cycle: int, dag: Run, at: int) -> bool:
        """The tests of the last table; half of the departments let a failed test fail the run."""
        table, ended = self.silver(APPS - 1, QUERIES - 1), int(at + 0.2 * self.unit)
        name = f"gold_d{self.number:03d}"
        run = self.run(at, f"check {cycle}", "checks", name, dag)
        for test in TESTS:
            self.failing[test] = self.dice.random() < (0.5 if self.failing[test] else 0.04)
        failed = [test for test in TESTS if self.failing[test]]
        strict = self.number % 2 == 0
        kind = "FAIL" if failed and strict else "COMPLETE"
        self.tell(at, check("START", stamp(at), run, table, {}))
        passed = {test: not self.failing[test] for test in TESTS}
        error = f"{len(failed)} of {len(TESTS)} checks failed" if kind == "FAIL" else ""
        self.tell(ended, check(kind, stamp(ended), run, table, passed, error))
        self.ledger.run(run, kind)
        node = f"dataset:{table.namespace}:{table.name}"
        for test, column in TESTS:
            self.ledger.outcome(("test", node, test, column), micros(ended), self.failing[test, column])
        self.ledger.outcome(("run", f"job:checks:{name}", "run", ""), micros(ended), kind == "FAIL")
        return kind == "COMPLETE"


def _fate(luck: float) -> str:
    """What becomes of the application that is unlucky, if one is."""
    for limit, fate in ((0.03, "retried"), (0.05, "failed"), (0.06, "died"), (0.07, "seemed dead")):
        if luck < limit:
            return fate
    return "good"


class Month:
    """The share of one host: every `of`-th department, beginning with `host`."""

    def __init__(self, size: Size, host: int = 0, of: int = 1) -> None:
        self.size, self.ledger = size, Ledger()
        self._departments = [
            Department(size, number, self.ledger) for number in range(host, size.departments, of)
        ]
        self._dice = random.Random(f"{size.seed} arrivals {host}")

    @cached_property
    def _plan(self) -> Iterator[tuple[int, Department, int]]:
        return heapq.merge(
            *(
                [(department.starts(number), at, department, number) for number in range(self.size.cycles)]
                for at, department in enumerate(self._departments)
            )
        )

    def arrivals(self) -> Iterator[tuple[int, bytes]]:
        """(when it arrives, the event), in the order of arrival. The ledger is whole when this has ended."""
        waiting: list[tuple[int, int, bytes, int]] = []
        numbers = count()
        newest = 0

        def due(until: float) -> Iterator[tuple[int, bytes]]:
            nonlocal newest
            while waiting and waiting[0][0] <= until:
                arrives, _, raw, happened = heapq.heappop(waiting)
                told = self.ledger.told
                told["sent"] += 1
                told["bytes"] += len(raw)
                told["disordered"] += happened < newest
                newest = max(newest, happened)
                yield arrives, raw

        for starts, _, department, number in self._plan:
            yield from due(starts)
            for happened, body in department.cycle(number):
                raw = msgspec.json.encode(body)
                self.ledger.event(body, raw)
                arrives = happened + self._delay()
                heapq.heappush(waiting, (arrives, next(numbers), raw, happened))
                if self._dice.random() < REPEATED:
                    again = arrives + int(1_000 * 86_400 ** self._dice.random())  # a second to a day later
                    heapq.heappush(waiting, (again, next(numbers), raw, happened))
                    self.ledger.told["repeats"] += 1
        yield from due(float("inf"))

    def _delay(self) -> int:
        """Half a minute as a rule; one in a hundred takes hours to days."""
        if self._dice.random() < LATE:
            self.ledger.told["late"] += 1
            return int(60 * MINUTE * 72 ** self._dice.random())
        return int(self._dice.expovariate(1 / 30_000))


def tenth_of(arrives: int) -> int:
    """In which tenth of the month something arrives; what comes after its end, in the last."""
    return min(TENTHS - 1, TENTHS * arrives // MONTH)
