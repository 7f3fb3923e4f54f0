"""Jars of the live pipeline tests: resolved by Maven once, into a cache directory; and a broker made of them."""

from __future__ import annotations

import base64
import os
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

POM = Path(__file__).parents[1] / "jars" / "pipeline" / "pom.xml"
# asked for once, here: each test gets a home of its own
CACHE = Path(os.environ.get("HEADWATER_JARS") or Path.home() / ".cache" / "headwater-tests") / "pipeline"


def jars(profile: str) -> list[str]:
    """The jars of a profile of the pom; none where Maven cannot get them."""
    folder = CACHE / profile
    if not list(folder.glob("*.jar")):
        command = ["mvn", "-q", "-B", "-f", str(POM), "-P", profile, "dependency:copy-dependencies"]
        try:
            subprocess.run(
                [*command, "-DincludeScope=runtime", f"-DoutputDirectory={folder}"],
                check=True, capture_output=True, timeout=600,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError):
            return []
    return sorted(map(str, folder.glob("*.jar")))


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@contextmanager
def broker(folder: Path) -> Iterator[str]:
    """A KRaft broker on loopback -> its address; stopped by its process when done."""
    port, control = free_port(), free_port()
    settings = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{control}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{control}",
        "log.dirs": folder / "data",
        "num.partitions": 2,
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "log.cleaner.dedupe.buffer.size": 16777216,
    }
    folder.mkdir(parents=True, exist_ok=True)
    conf = folder / "broker.properties"
    conf.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    java = [
        "java",
        "-Xmx256m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-cp",
        ":".join(jars("broker")),
    ]
    cluster = "A" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")[1:]
    subprocess.run(
        [*java, "kafka.tools.StorageTool", "format", "--standalone", "-t", cluster, "-c", str(conf)],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    log = folder / "broker.log"
    with log.open("wb") as out:
        process = subprocess.Popen([*java, "kafka.Kafka", str(conf)], stdout=out, stderr=out)
    try:
        patience = time.monotonic() + 120
        while True:
            with socket.socket() as probe:
                probe.settimeout(1)
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None, log.read_text()[-2000:]
            assert time.monotonic() < patience, log.read_text()[-2000:]
            time.sleep(0.2)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)
