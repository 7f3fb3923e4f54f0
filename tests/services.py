"""Jars and packages -> real services for the live tests: Kafka, a Hive metastore, Iceberg's REST catalog, Postgres.

Everything listens on 127.0.0.1 at a free port, and is ended by its pid.
"""

from __future__ import annotations

import base64
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

JARS = Path(__file__).with_name("jars")
_JVM = ["java", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


def listens(port: int) -> bool:
    with socket.socket() as s:
        s.settimeout(1)
        return s.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def process(
    command: list[str], log: Path, ready: Callable[[], bool], environment: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is ready, until it is no longer wanted."""
    with log.open("wb") as out:
        env = {**os.environ, **(environment or {})}
        running = subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=env
        )
    try:
        until = time.monotonic() + 120
        while not ready():
            if running.poll() is not None or time.monotonic() > until:
                raise AssertionError(
                    f"{command[0]} did not start:\n{log.read_text(errors='replace')[-3000:]}"
                )
            time.sleep(0.2)
        yield running
    finally:
        if running.poll() is None:
            running.terminate()
            try:
                running.wait(20)
            except subprocess.TimeoutExpired:
                running.kill()
                running.wait(10)


@contextmanager
def kafka(
    jars: list[Path], folder: Path, partitions: int = 1, *, topics_by_hand: bool = False
) -> Iterator[tuple[str, int]]:
    """A broker whose topics have so many partitions -> its bootstrap servers, its pid."""
    port, controller = free_port(), free_port()
    settings = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
        "log.dirs": folder / "data",
        "num.partitions": partitions,
        "auto.create.topics.enable": str(not topics_by_hand).lower(),
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 2,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "group.initial.rebalance.delay.ms": 0,
        "log.cleaner.dedupe.buffer.size": 16777216,
    }
    folder.mkdir(parents=True, exist_ok=True)
    conf = folder / "broker.properties"
    conf.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    (folder / "log4j2.properties").write_text(
        "appender.c.type=Console\nappender.c.name=C\nrootLogger.level=info\nrootLogger.appenderRef.c.ref=C\n"
    )
    run = [*_JVM, f"-Dlog4j2.configurationFile={folder}/log4j2.properties"]
    run += ["-cp", os.pathsep.join(map(str, jars))]
    cluster = "A" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[1:22]  # may not begin with a dash
    form = ["kafka.tools.StorageTool", "format", "--standalone", "-t", cluster, "-c", str(conf)]
    subprocess.run([*run, *form], check=True, capture_output=True)
    log = folder / "broker.log"
    started = lambda: b"Kafka Server started" in log.read_bytes()  # noqa: E731
    with process([*run, "kafka.Kafka", str(conf)], log, started) as broker:
        yield f"127.0.0.1:{port}", broker.pid


@contextmanager
def rest_catalog(jars: list[Path], folder: Path) -> Iterator[str]:
    """Iceberg's own REST catalog -> its url."""
    port = free_port()
    folder.mkdir(parents=True, exist_ok=True)
    command = [*_JVM, "-cp", os.pathsep.join(map(str, jars)), str(JARS / "RestCatalog.java")]
    log = folder / "rest.log"
    with process([*command, str(folder / "warehouse"), str(port)], log, lambda: listens(port)):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def schema_registry(jars: list[Path], folder: Path) -> Iterator[str]:
    """Apicurio's registry in memory -> the url at which it speaks as Confluent's does."""
    port = free_port()
    folder.mkdir(parents=True, exist_ok=True)
    (runner,) = [each for each in jars if each.name.endswith("runner.jar")]
    said = {"QUARKUS_HTTP_HOST": "127.0.0.1", "QUARKUS_HTTP_PORT": str(port)}
    url = f"http://127.0.0.1:{port}/apis/ccompat/v7"

    def answers() -> bool:
        try:
            with urllib.request.urlopen(f"{url}/subjects", timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    with process([*_JVM, "-jar", str(runner)], folder / "registry.log", answers, said):
        yield url


@contextmanager
def metastore(folder: Path) -> Iterator[str]:
    """A Hive metastore on Derby, from the jars that pyspark brings -> its thrift url."""
    import pyspark

    port = free_port()
    folder.mkdir(parents=True, exist_ok=True)
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    said = {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/derby;create=true",
        "datanucleus.schema.autoCreateAll": "true",
        "hive.metastore.schema.verification": "false",
        "hive.async.log.enabled": "false",  # wants a jar that pyspark does not bring
        "hive.metastore.warehouse.dir": f"file:{folder}/warehouse",
    }
    command = [*_JVM, f"-Dderby.stream.error.file={folder}/derby.log"]
    command += [f"-D{key}={value}" for key, value in said.items()]
    command += ["--add-opens=java.base/java.net=ALL-UNNAMED", "--add-opens=java.base/java.lang=ALL-UNNAMED"]
    command += ["-cp", str(jars), "org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(port)]
    for key, value in said.items():
        command += ["--hiveconf", f"{key}={value}"]
    with process(command, folder / "metastore.log", lambda: listens(port)):
        yield f"thrift://127.0.0.1:{port}"


def postgres_bin() -> Path | None:
    """Where Postgres' own programs lie."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    named = shutil.which("initdb")
    return found[-1].parent if found else Path(named).parent if named else None


class PostgresServer:
    """A Postgres of its own, that can be killed and started again; user and database are `postgres`."""

    def __init__(self, folder: Path, *, durable: bool = False) -> None:
        programs = postgres_bin()
        assert programs is not None
        self._fsync = "on" if durable else "off"
        self._programs, self._folder, self.port = programs, folder, free_port()
        root = os.geteuid() == 0
        if root:  # it refuses to run as root
            shutil.chown(folder, "postgres")
        self._as_user = (
            ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"] if root else []
        )
        init = [
            str(programs / "initdb"),
            "-D",
            f"{folder}/data",
            "-A",
            "trust",
            "-U",
            "postgres",
            "--no-sync",
        ]
        subprocess.run([*self._as_user, *init], check=True, capture_output=True, cwd="/")
        self._process: subprocess.Popen[bytes] | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        """Ready, until it is no longer wanted."""
        command = [str(self._programs / "postgres"), "-D", f"{self._folder}/data", "-p", str(self.port)]
        command += ["-c", f"fsync={self._fsync}", "-c", "listen_addresses=127.0.0.1"]
        command += ["-c", f"unix_socket_directories={self._folder}"]
        ready = [str(self._programs / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        with process(
            [*self._as_user, *command],
            self._folder / "log",
            lambda: subprocess.run(ready, check=False).returncode == 0,
        ) as self._process:
            yield

    @property
    def pid(self) -> int:
        """Its first process."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """As a crash would: no goodbye, of none of its processes."""
        assert self._process is not None
        pid = self._process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for each in (pid, *map(int, children)):
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        self._process.wait(10)
        until = time.monotonic() + 20
        while any(Path(f"/proc/{each}").exists() for each in children) and time.monotonic() < until:
            time.sleep(0.02)


@contextmanager
def postgres() -> Iterator[int]:
    """A Postgres of its own -> its port; user and database are `postgres`."""
    with tempfile.TemporaryDirectory(prefix="hwpg") as text:  # short, for the socket
        server = PostgresServer(Path(text))
        with server.running():
            yield server.port
