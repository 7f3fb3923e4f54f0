"""Jars and packages -> the whole story on real systems: Postgres, Debezium, Kafka, Iceberg, Spark, Delta, dlt, DuckDB, Airflow, one server.

Programs and settings are those of `config`, `dags` and `programs`, as docs/story.md shows them; `${…}` in a setting
stands for a place that is known only here. Nothing waits without an end, and what is waited for is told.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

import connect_workers
import services
from airflow_home import ROOT, Airflow
from serving import Server, serving

HERE = Path(__file__).parent
TOPIC = "shop.public.orders"
PROFILES = (
    "broker",
    "connect",
    "debezium-postgres",
    "iceberg-sink",
    "avro-converter",
    "schema-registry",
    "spark-4.1",
)
PASSWORD = "hunter2-of-the-story"
MARK = "STORY_MARK"
"""A variable that every process of a story inherits: by it those that outlive it are found."""
BIN = Path(sys.executable).parent
_BEGUN = time.monotonic()


def say(text: str) -> None:
    """Progress: `make live-story` shows it as it comes."""
    print(f"  {time.monotonic() - _BEGUN:4.0f}s {text}", file=sys.stderr, flush=True)


def until(what: str, true: Callable[[], Any], seconds: float = 180.0) -> Any:
    """Wait for something, and tell what it is; what it was at last is told where it never came."""
    say(f"waiting for {what}")
    end = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < end, f"{what}: still {found!r}"
        time.sleep(0.3)
    return found


def until_told(what: str, wanted: set[Any], told: Callable[[], set[Any]]) -> None:
    """Wait until all that is wanted has been told; what of it never was is said."""
    missing = set(wanted)

    def complete() -> bool:
        nonlocal missing
        missing = wanted - told()
        return not missing

    try:
        until(what, complete)
    except AssertionError as never:
        raise AssertionError(f"{what}: missing {sorted(missing)}") from never


@dataclass
class Story:
    """Everything that runs, and how to ask it."""

    root: Path
    workers: connect_workers.Workers
    postgres: int
    registry: str
    server: Server
    airflow: Airflow
    places: dict[str, str]
    stack: ExitStack
    pids: dict[str, int] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)

    # --- the systems

    def sql(self, statement: str, database: str = "shop") -> None:
        import psycopg

        with psycopg.connect(
            host="127.0.0.1", port=self.postgres, user="postgres", dbname=database, autocommit=True
        ) as connection:
            connection.execute(statement)

    def put(self, name: str) -> None:
        """A connector, by its file."""
        self.workers.put(name, json.loads(self.filled(f"{name}.json")))

    def filled(self, name: str) -> str:
        """A file of settings with its places filled in."""
        text = (HERE / "config" / name).read_text()
        return re.sub(r"\$\{(\w+)\}", lambda found: self.places[found[1]], text)

    def write(self, name: str) -> Path:
        file = self.root / name
        file.write_text(self.filled(name))
        return file

    def stream(self) -> None:
        """The stream, until it has read all there is."""
        program = [str(BIN / "spark-submit"), "--properties-file", str(self.root / "spark-defaults.conf")]
        arguments = [self.workers.bootstrap, f"{self.registry}/apis/ccompat/v7", self.places["LAKE"]]
        self.run("headwater", "run", "--", *program, str(HERE / "programs" / "fresh.py"), *arguments)

    @contextmanager
    def hung_server(self) -> Iterator[None]:
        """A server that answers nobody for a while."""
        os.kill(self.server.process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.server.process.pid, signal.SIGCONT)

    def nightly(self, date: str, *left_out: str) -> str:
        """The DAG for a date -> its log."""
        table = {
            "type": "headwater.airflow.Transport",
            "url": self.server.url,
            "spool": {"dir": self.places["SPOOL"], "linger": 3},
        }
        site = f"{ROOT / 'src/headwater/cli/_sitecustomize'}:{ROOT / 'src'}"
        own = {key: value for key, value in self.environment().items() if key.startswith(("DLT", "RUNTIME"))}
        return self.airflow.test(
            "nightly",
            date,
            **own,
            AIRFLOW__OPENLINEAGE__TRANSPORT=json.dumps(table),
            AIRFLOW__OPENLINEAGE__NAMESPACE="shop",
            AIRFLOW__OPENLINEAGE__SPARK_INJECT_PARENT_JOB_INFO="true",
            AIRFLOW__OPENLINEAGE__SPARK_INJECT_TRANSPORT_INFO="true",
            AIRFLOW_CONN_SPARK=json.dumps({"conn_type": "spark", "host": "local[1]"}),
            PATH=f"{os.environ['PATH']}:{BIN}",  # spark-submit: the provider takes no path to it
            PYSPARK_PYTHON=sys.executable,
            SPARK_LOCAL_IP="127.0.0.1",
            HEADWATER_CONFIG=str(self.root / "headwater.toml"),
            STORY=str(HERE / "programs"),
            STORY_LAKE=self.places["LAKE"],
            STORY_LEFT_OUT=" ".join(left_out),
            STORY_PYTHON=sys.executable,
            STORY_SITE=site,
            STORY_SPARK=str(self.root / "spark-defaults.conf"),
            **{MARK: str(self.root)},
        )

    def environment(self) -> dict[str, str]:
        """That of a program of the story: no setting of whoever runs the tests, and those of the story's file."""
        no = ("AIRFLOW", "OPENLINEAGE", "HEADWATER")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(no)}
        return {
            **kept,
            "PYTHONPATH": str(ROOT / "src"),
            "HOME": str(self.root / "home"),
            "HEADWATER_CONFIG": str(self.root / "headwater.toml"),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            "DLT_DATA_DIR": str(self.root / "dlt"),
            "RUNTIME__DLTHUB_TELEMETRY": "false",
            MARK: str(self.root),
        }

    def run(self, *command: str, ok: tuple[int, ...] = (0,), settings: str = "headwater.toml") -> str:
        """A program -> what it wrote to standard output. `headwater` is the one of this tree."""
        words = [sys.executable, "-m", *command] if command[0] == "headwater" else list(command)
        environment = {**self.environment(), "HEADWATER_CONFIG": str(self.root / settings)}
        done = subprocess.run(
            words, env=environment, cwd=self.root, capture_output=True, text=True, timeout=600
        )
        assert done.returncode in ok, (
            f"{command}: {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-4000:]}"
        )
        return done.stdout

    # --- what the server says

    def ask(self, path: str, **parameters: Any) -> Any:
        answer = httpx.get(f"{self.server.url}{path}", params=parameters, timeout=60)
        assert answer.is_success, f"{path}: {answer.status_code} {answer.text[:1000]}"
        return answer.json()

    def told(self, *command: str, ok: tuple[int, ...] = (0,)) -> Any:
        """A command that asks the server -> its JSON."""
        return json.loads(self.run("headwater", *command, "--url", self.server.url, "--json", ok=ok))

    def delivered(self) -> bool:
        """Whether nothing waits in the spool, for whichever destination; a dead letter is a fault."""
        status = json.loads(self.run("headwater", "spool", "status", "--dir", self.places["SPOOL"], "--json"))
        (self.root / "spool.json").write_text(json.dumps(status, indent=1))
        assert not any(each["dead"]["events"] for each in status), status
        return bool(status) and not any(each["waiting"]["events"] for each in status)

    # --- and its end

    def close(self) -> None:
        self.stack.close()

    def left(self) -> dict[int, str]:
        """Processes that bear the story's mark, or its folder in their command line: pid -> command line."""
        found = {}
        for each in Path("/proc").iterdir():
            if not each.name.isdigit() or int(each.name) == os.getpid():
                continue
            try:
                line = (each / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                marks = (each / "environ").read_bytes()
            except OSError:  # it is gone, or is another user's
                continue
            if f"{MARK}={self.root}".encode() in marks or str(self.root) in line:
                found[int(each.name)] = line
        return found


@contextmanager
def told(root: Path, jars: Callable[[str], list[Path]]) -> Iterator[Story]:
    """Every system, ready; all of them ended after it, by their pids."""
    os.environ[MARK] = str(root)
    with ExitStack() as stack:
        stack.callback(os.environ.pop, MARK, None)
        say("Postgres, a broker, a Connect worker, a registry and Headwater start")
        folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="hwpg"))
        )  # short, for the socket
        database = services.PostgresServer(folder, logical=True)
        stack.enter_context(database.running())
        plugins = {each: jars(each) for each in ("debezium-postgres", "iceberg-sink", "avro-converter")}
        workers = stack.enter_context(
            connect_workers.connect(root / "connect", jars("broker"), jars("connect"), plugins, 1)
        )
        registry, registry_pid = stack.enter_context(
            services.registry(jars("schema-registry"), root / "registry")
        )
        places = {
            "POSTGRES_HOST": "127.0.0.1",
            "POSTGRES_PORT": str(database.port),
            "POSTGRES_USER": "postgres",
            "POSTGRES_PASSWORD": PASSWORD,
            "REGISTRY": registry,
            "CONNECT_URL": workers.urls[0],
            "BROKERS": workers.bootstrap,
            "WAREHOUSE": str(root / "warehouse"),
            "LAKE": str(root / "lake"),
            "SPOOL": str(root / "spool"),
            "PROPOSALS": str(root / "proposals.json"),
            "SPARK_WAREHOUSE": str(root / "spark-warehouse"),
            "SPARK_JARS": ",".join(map(str, jars("spark-4.1"))),
        }
        for each in ("home", "lake", "airflow"):
            (root / each).mkdir()
        airflow = Airflow("3", root / "airflow", HERE / "dags")
        story = Story(root, workers, database.port, registry, None, airflow, places, stack)  # type: ignore[arg-type]
        settings = {"HEADWATER_CONFIG": str(story.write("server.toml"))}
        story.server = stack.enter_context(
            serving(f"sqlite:///{root}/lineage.db", environment=settings, fresh=True)
        )
        places["HEADWATER_URL"] = story.server.url
        for name in ("headwater.toml", "connect.toml", "spark-defaults.conf"):
            story.write(name)
        watch = [
            sys.executable,
            "-m",
            "headwater",
            "connect",
            "watch",
            "--config",
            str(root / "connect.toml"),
        ]
        log = root / "watch.log"
        watching = services.process(watch, log, lambda: b"watching" in log.read_bytes(), story.environment())
        watcher = stack.enter_context(watching)
        story.pids = {
            "Postgres": database.pid,
            "broker": workers.broker,
            "worker": workers.running[0].pid,
            "registry": registry_pid,
            "server": story.server.process.pid,
            "watcher": watcher.pid,
        }
        urls = {
            "broker": workers.bootstrap,
            "worker": workers.urls[0],
            "registry": registry,
            "server": story.server.url,
        }
        story.ports = {name: int(url.rpartition(":")[2]) for name, url in urls.items()} | {
            "Postgres": database.port
        }
        yield story
