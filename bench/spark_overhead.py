"""spark_overhead: the same Spark programs without lineage, with Headwater, with openlineage-spark -> what each costs.

    python bench/spark_overhead.py [--full] [--only up,down,hanging,start,same] [--json FILE]

Three applications live side by side; one works at a time and the order turns each round, so what else the machine does
hits all three. Events go over HTTP to a server that takes them, to a port where nobody listens (down), and to a server that
accepts and never answers (hanging). wall = what the program waits for; CPU = seconds of the driver's JVM and its Python;
memory = resident memory of Python and live heap of the JVM after the work. Headwater delivers through its spool.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from noting import Notes
from states import server

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

PEER = "io.openlineage.spark.agent.OpenLineageSparkListener"
WHO = ("none", "headwater", "openlineage")
WORK = {  # name: queries a round, rounds when full, rounds else
    "small": (20, 12, 3),
    "writes": (5, 8, 3),
    "wide": (1, 8, 2),
    "deep": (1, 6, 2),
}
WORDS = {
    "small": "small query",
    "writes": "small write",
    "wide": "500 columns",
    "deep": "60 unions and joins",
}


# ---------------------------------------------------------------- the application


def application(who: str, folder: str, url: str) -> None:
    """Answers commands on stdin: `{"do": "small", "n": 20}`."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.chdir(folder)
    began = time.perf_counter()
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    conf = {
        "spark.master": "local[2]",
        "spark.app.name": "overhead",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
    }
    if who == "openlineage":
        conf |= {
            "spark.jars": os.environ["PEER_JARS"],
            "spark.extraListeners": PEER,
            "spark.openlineage.transport.type": "http",
            "spark.openlineage.transport.url": url,
            "spark.openlineage.namespace": "bench",
        }
    builder = SparkSession.builder
    for key, value in conf.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    lineage = None
    if who == "headwater":
        import headwater.spark

        lineage = headwater.spark.install(spark, transport=url, namespace="bench")
    started = time.perf_counter() - began
    jvm = spark._jvm.java.lang.ProcessHandle.current().pid()
    bus = spark.sparkContext._jsc.sc().listenerBus()

    def settle() -> None:
        bus.waitUntilEmpty(600_000)
        if lineage is not None:
            lineage.flush(60)

    def base():
        return spark.read.schema("id long, k long, v double").parquet(f"{folder}/base")

    def small(n: int) -> None:
        for i in range(n):
            if i % 2:
                base().where("k > 1").groupBy("k").count().count()
            else:
                base().selectExpr("id", "v * 2 as w").write.format("noop").mode("overwrite").save()

    def writes(n: int) -> None:
        for i in range(n):
            frame = base().where("k > 1").selectExpr("id", "v * 2 as w").coalesce(1)
            frame.write.mode("overwrite").parquet(f"{folder}/w{i}")

    def wide(n: int) -> None:
        for _ in range(n):
            columns = [f"c{i} + c{(i + 1) % 500} as d{i}" for i in range(500)]
            frame = spark.read.parquet(f"{folder}/wide").selectExpr(*columns)
            frame.write.mode("overwrite").parquet(f"{folder}/wide_out")

    def deep(n: int) -> None:
        for _ in range(n):
            all_of = base()
            for i in range(48):
                all_of = all_of.union(
                    base().where(f"k > {i % 7}").selectExpr("id", "k + 1 as k", "v * 2 as v")
                )
            joined = all_of.groupBy("id").agg(F.sum("v").alias("v"), F.max("k").alias("k"))
            for i in range(12):
                joined = joined.join(base().selectExpr("id", f"v as v{i}"), "id")
            joined.write.mode("overwrite").parquet(f"{folder}/deep_out")

    spark.range(200).selectExpr("id", "id % 10 as k", "id * 1.5D as v").coalesce(1).write.parquet(
        f"{folder}/base"
    )
    if os.environ.get("WIDE"):
        columns = [f"id + {i} as c{i}" for i in range(500)]
        spark.range(5).selectExpr(*columns).coalesce(1).write.parquet(f"{folder}/wide")
    if not os.environ.get("HURRY"):
        settle()
    say({"start": started})
    does = {"small": small, "writes": writes, "wide": wide, "deep": deep}
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["do"] == "stop":
            began = time.perf_counter()
            spark.stop()
            if lineage is not None:
                lineage.close()
            say({"stop": time.perf_counter() - began})
            return
        if asked["do"] == "memory":
            for _ in range(3):
                spark._jvm.java.lang.System.gc()
            runtime = spark._jvm.java.lang.Runtime.getRuntime()
            resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
            say({"python": resident, "heap": runtime.totalMemory() - runtime.freeMemory()})
            continue
        cpu, own, began = seconds(jvm), time.process_time(), time.perf_counter()
        does[asked["do"]](asked["n"])
        wall = time.perf_counter() - began
        if not asked.get("hurry"):
            settle()
        say({"wall": wall, "cpu": seconds(jvm) - cpu + time.process_time() - own})


def seconds(pid: int) -> float:
    """CPU seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def say(answer: dict) -> None:
    print("@@" + json.dumps(answer), flush=True)


# ---------------------------------------------------------------- the bench


class Application:
    """A process of the above."""

    def __init__(
        self,
        who: str,
        folder: Path,
        url: str,
        *,
        wide: bool = False,
        hurry: bool = False,
        first: bool = False,
    ) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        env = {**os.environ, "HEADWATER_SPOOL": str(folder / "spool"), **({"WIDE": "1"} if wide else {})}
        env |= {"HURRY": "1"} if hurry else {}
        env |= {"XDG_CACHE_HOME": str(folder / "cache")} if first else {}  # no probe was compiled before
        command = [sys.executable, __file__, "--application", who, str(folder), url]
        self.who = who
        with open(folder / "log.txt", "w") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=env
            )
        self.started = self._read()["start"]

    def _read(self) -> dict:
        for line in self._process.stdout:
            if line.startswith("@@"):
                return json.loads(line[2:])
        raise SystemExit(f"the application {self.who} died, see its log.txt")

    def do(self, what: str, n: int = 1, **more: object) -> dict:
        self._process.stdin.write(json.dumps({"do": what, "n": n, **more}) + "\n")
        self._process.stdin.flush()
        return self._read()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def stop(self) -> dict:
        began = time.perf_counter()
        told = self.do("stop")
        self._process.wait(600)
        return {**told, "exit": time.perf_counter() - began}


def turn(order: tuple, by: int) -> tuple:
    at = by % len(order)
    return order[at:] + order[:at]


def ratios(rows: dict[str, list[dict]], what: str) -> dict[str, float]:
    """Median of each round's ratio to the application without lineage: neighbours in time."""
    return {
        who: statistics.median(a[what] / b[what] for a, b in zip(rows[who], rows["none"], strict=True))
        for who in WHO[1:]
    }


def measure(state: str, root: Path, full: bool, only: tuple[str, ...], kept: Kept) -> None:
    hurry = state == "hanging"  # nobody could wait until the peer has told what it has to tell
    with server(state) as url:
        apps = {
            who: Application(who, root / state / who, url, wide="wide" in only, hurry=hurry) for who in WHO
        }
        for name in only:
            n, many, few = WORK[name]
            for app in apps.values():
                app.do(name, n, hurry=hurry)  # warm
            rows: dict[str, list[dict]] = {who: [] for who in WHO}
            for i in range(many if full else few):
                for who in turn(WHO, i):
                    rows[who].append(apps[who].do(name, n, hurry=hurry))
            wall, cpu = ratios(rows, "wall"), ratios(rows, "cpu")
            plain = statistics.median(each["wall"] for each in rows["none"]) / n
            kept.ratios[state, name] = {"plain": plain, "wall": wall, "cpu": cpu}
            told = "; ".join(f"{who} {wall[who]:.3f} by wall, {cpu[who]:.3f} by CPU" for who in WHO[1:])
            print(f"  server {state}, {WORDS[name]}: {told}", file=sys.stderr, flush=True)
        if hurry:
            for app in apps.values():
                app.kill()
            return
        memory = {who: app.do("memory") for who, app in apps.items()}
        if state == "up":
            kept.memory = {
                who: [(memory[who][part] - memory["none"][part]) / 1e6 for part in ("python", "heap")]
                for who in WHO[1:]
            }
        for app in apps.values():
            app.do("writes", 5, hurry=True)
        ends = {who: app.stop() for who, app in apps.items()}
        kept.ends[state] = {who: told["stop"] for who, told in ends.items()}


def starts(root: Path, times: int, kept: Kept) -> None:
    """An application that starts, does nothing and stops; for Headwater also the first of its Spark, which compiles the probe."""
    every = (*WHO, "first")
    rows: dict[str, list[dict]] = {who: [] for who in every}
    with server("up") as url:
        for i in range(times):
            for who in turn(every, i):
                name, folder = "headwater" if who == "first" else who, root / "start" / f"{i}{who}"
                app = Application(name, folder, url, first=who == "first")
                rows[who].append({"start": app.started, **app.stop()})
    for part in ("start", "stop", "exit"):
        kept.starts[part] = {who: statistics.median(each[part] for each in rows[who]) for who in every}


def same(root: Path, full: bool, notes: Notes) -> None:
    """Three applications without lineage beside each other: what equal things differ by here."""
    table = []
    with server("up") as url:
        apps = [Application("none", root / "same" / str(i), url) for i in range(3)]
        for name in ("small", "deep"):
            n, many, few = WORK[name]
            rows: list[list[dict]] = [[] for _ in apps]
            for app in apps:
                app.do(name, n)  # warm
            for i in range(many if full else few):
                for at in turn((0, 1, 2), i):
                    rows[at].append(apps[at].do(name, n))
            for what in ("wall", "cpu"):
                found = [
                    statistics.median(a[what] / b[what] for a, b in zip(each, rows[0], strict=True))
                    for each in rows[1:]
                ]
                table.append((WORDS[name], what, *(f"{each:.3f}" for each in found)))
        for app in apps:
            app.stop()
    notes.table("same", ("the same application three times, without lineage", "", "second to first", "third to first"), table)  # fmt: skip


class Kept:
    """What the parts of the bench tell together."""

    def __init__(self) -> None:
        self.ratios: dict[tuple[str, str], dict] = {}
        self.memory: dict[str, list[float]] = {}
        self.ends: dict[str, dict[str, float]] = {}
        self.starts: dict[str, dict[str, float]] = {}

    def tell(self, notes: Notes) -> None:
        """The tables and the aims."""
        if self.ratios:
            notes.table(
                "queries",
                ("server", "", "alone", "Headwater wall, CPU", "openlineage-spark wall, CPU"),
                [
                    (state, WORDS[name], f"{1000 * each['plain']:,.0f} ms", *(f"{each['wall'][who]:.3f}, {each['cpu'][who]:.3f}" for who in WHO[1:]))
                    for (state, name), each in self.ratios.items()
                ],
            )  # fmt: skip
            worst = {what: max((each[what]["headwater"], f"{WORDS[name]}, server {state}") for (state, name), each in self.ratios.items()) for what in ("wall", "cpu")}  # fmt: skip
            notes.aim("CPU of an application at most 1.10", f"at most {worst['cpu'][0]:.3f} ({worst['cpu'][1]})", worst["cpu"][0] <= 1.10)  # fmt: skip
            notes.aim("wall time of an application at most 1.03", f"at most {worst['wall'][0]:.3f} ({worst['wall'][1]})", worst["wall"][0] <= 1.03)  # fmt: skip
            lines = {who: [(f"{WORDS[name]},\n{state}", each["cpu"][who]) for (state, name), each in self.ratios.items()] for who in WHO[1:]}  # fmt: skip
            notes.plot(
                "cpu", "bar", "Spark: CPU of an application, times without lineage", "", "times", lines
            )
            for (state, name), each in self.ratios.items():
                if state == "up":
                    more = [max(0.001, each["cpu"][who] - 1) for who in WHO[1:]]
                    notes.ratio("openlineage-spark 1.53.0", f"CPU added to: {WORDS[name]}", more[1] / more[0])
        self._tell_starts(notes)

    def _tell_starts(self, notes: Notes) -> None:
        rows = []
        if self.starts:
            start, stop = self.starts["start"], self.starts["stop"]
            rows += [
                ("start of an application", f"{start['none']:.2f} s", *(f"{start[who] - start['none']:+.2f} s" for who in WHO[1:])),
                ("start of the first application of a Spark, which compiles the probe", f"{start['none']:.2f} s", f"{start['first'] - start['none']:+.2f} s", ""),
                ("stop", f"{stop['none']:.2f} s", *(f"{stop[who] - stop['none']:+.2f} s" for who in WHO[1:])),
            ]  # fmt: skip
            added, first = start["headwater"] - start["none"], start["first"] - start["none"]
            notes.aim("0.5 s at the start of an application", f"{added:+.2f} s", added <= 0.5)
            notes.aim("0.5 s at the start of the first application of a Spark", f"{first:+.2f} s", first <= 0.5)  # fmt: skip
        for state, ends in self.ends.items():
            rows.append((f"stop with a backlog, server {state}", f"{ends['none']:.2f} s", *(f"{ends[who] - ends['none']:+.2f} s" for who in WHO[1:])))  # fmt: skip
        if self.memory:
            rows.append(("memory of Python; live heap of the JVM", "", *("; ".join(f"{each:+.0f} MB" for each in self.memory[who]) for who in WHO[1:])))  # fmt: skip
            most = max(self.memory["headwater"])
            notes.aim("50 MB of memory", f"{most:+.0f} MB", most <= 50)
        if rows:
            notes.table("starts", ("", "alone", "Headwater", "openlineage-spark"), rows)


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--full", action="store_true")
    options.add_argument("--only", default="up,down,hanging,start,same")
    options.add_argument("--application", nargs=3, help=argparse.SUPPRESS)
    notes, kept = Notes("spark_overhead", packages=("pyspark",)), Kept()
    chosen = options.parse_args()
    if chosen.application:
        application(*chosen.application)
        return
    import live_jars

    if not live_jars.have("openlineage"):
        live_jars.resolve("openlineage")
    os.environ["PEER_JARS"] = ",".join(map(str, live_jars.have("openlineage")))
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for state in chosen.only.split(","):
            if state == "start":
                starts(root, 5 if chosen.full else 2, kept)
            elif state == "same":
                same(root, chosen.full, notes)
            else:
                every = tuple(WORK) if state == "up" else ("small", "writes")
                measure(state, root, chosen.full, every, kept)
    kept.tell(notes)
    notes.keep()


if __name__ == "__main__":
    main()
