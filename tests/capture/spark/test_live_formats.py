"""Iceberg, Delta, Kafka, JDBC, Hive and friends, really: what is told is what the services themselves say happened."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import live_jars
import plain_formats  # noqa: F401 - its programs enrol themselves
import pytest
from checking import compare, ends, identity, place
from formats import FORMATS
from programs import Program

import services
from openlineage_schemas import SHARED, assert_openlineage

NEEDS = {
    "iceberg": ("spark", "rest", "postgres", "metastore"),
    "delta": ("spark",),
    "kafka": ("spark", "broker"),
    "jdbc": ("spark", "postgres"),
    "hive": (),  # nothing that pyspark does not bring: the smoke test of make test
    "metastore": ("metastore",),
    "plain": (),
}
Told = dict[str, Any]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, need: Callable[[str, str], None]) -> Callable[[str], Told]:
    """A group -> what its programs told; each group runs once, in a process of its own."""
    if importlib.util.find_spec("pyspark") is None:
        need("pyspark", "pip install 'headwater[spark]'")
    if shutil.which("java") is None:
        need("Java", "apt install openjdk-17-jdk-headless")
    done: dict[str, Told] = {}

    def once(group: str) -> Told:
        if group not in done:
            done[group] = _run(group, tmp_path_factory.mktemp(group).resolve(), need)
        return done[group]

    return once


def _jars(profile: str, need: Callable[[str, str], None]) -> list[Path]:
    found = live_jars.have(profile)
    if not found:
        need(f"the jars of {profile}", f"make live-jars (or python scripts/live_jars.py {profile})")
    return found


def _run(group: str, folder: Path, need: Callable[[str, str], None]) -> Told:
    import pyspark

    minor = ".".join(pyspark.__version__.split(".")[:2])
    at = {"root": str(folder / "data")}
    jars: list[Path] = []
    with ExitStack() as stack:
        if "spark" in NEEDS[group]:
            if f"spark-{minor}" not in live_jars.profiles():
                pytest.skip(
                    f"nobody has released these formats for Spark {minor}: no such profile in tests/jars/pom.xml"
                )
            jars = _jars(f"spark-{minor}", need)
        if "broker" in NEEDS[group]:
            at["kafka"], _ = stack.enter_context(services.kafka(_jars("broker", need), folder / "kafka"))
        if "rest" in NEEDS[group]:
            at["rest"] = stack.enter_context(services.rest_catalog(_jars("rest", need), folder / "rest"))
        if "metastore" in NEEDS[group]:
            at["metastore"] = stack.enter_context(services.metastore(folder / "metastore"))
            at["metastore_host"] = at["metastore"].removeprefix("thrift://")
        if "postgres" in NEEDS[group]:
            if services.postgres_bin() is None:
                need("Postgres", "apt install postgresql")
            at["postgres"] = f"127.0.0.1:{stack.enter_context(services.postgres())}"
        worker = Path(__file__).with_name("format_worker.py")
        given = json.dumps({"at": at, "jars": [str(each) for each in jars]})
        with (folder / "log").open("wb") as log:
            command = [sys.executable, str(worker), group, at["root"], given]
            ran = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, timeout=900, cwd=folder)
        text = (folder / "log").read_text(errors="replace")
        assert ran.returncode == 0, text[-4000:]
        return {"at": at, "log": text, **json.loads((folder / "data" / "told.json").read_text())}


def _filled(value: Any, at: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {_filled(key, at): _filled(each, at) for key, each in value.items()}
    if isinstance(value, str):
        for key, text in at.items():
            value = value.replace(f"{{{key}}}", text)
    return value


def _case(name: str) -> Any:
    """`conftest` keeps those of one group in one worker: in each that has one of them, all its programs would run."""
    return pytest.param(name, marks=[] if FORMATS[name].group == "hive" else [pytest.mark.live])


@pytest.mark.parametrize("name", [_case(name) for name in FORMATS])
def test_a_program(name: str, run: Callable[[str], Told]) -> None:
    program = FORMATS[name]
    told = run(program.group)
    found = told["programs"][name]
    if "skip" in found:
        pytest.skip(found["skip"])
    assert "error" not in found, found["error"]
    facts, root = found["facts"], told["at"]["root"]
    at = {**told["at"], **facts.get("names", {})}
    expected = Program(run=lambda spark, d: None, name=name, **_filled(program.expected, at))
    wrong = list(compare(expected, found["events"], root, told["version"]))
    wrong += _versions(found["events"], _filled(facts.get("version", {}), at), "outputs", root)
    wrong += _versions(found["events"], _filled(facts.get("read_version", {}), at), "inputs", root)
    wrong += _links(found["events"], _filled(program.links, at), root)
    assert not wrong, "\n".join(wrong)
    for event in found["events"] if SHARED.is_dir() else ():
        assert_openlineage(event, SHARED)
    for word in program.absent:
        assert word not in json.dumps(found["events"])
        assert word not in json.dumps(found["records"])


def _datasets(events: list[Told], side: str, short: str, root: str) -> list[Told]:
    return [each for event in ends(events) for each in event[side] if identity(each) == place(short, root)]


def _versions(events: list[Told], wanted: dict[str, str], side: str, root: str) -> Iterator[str]:
    for short, version in wanted.items():
        found = {
            each["facets"].get("version", {}).get("datasetVersion")
            for each in _datasets(events, side, short, root)
        }
        if found != {version}:
            yield f"{side}: {short} has versions {found}, not {version}"


def _links(events: list[Told], wanted: dict[str, str], root: str) -> Iterator[str]:
    for short, link in wanted.items():
        both = _datasets(events, "inputs", short, root) + _datasets(events, "outputs", short, root)
        if not both:
            yield f"no dataset {short}"
        for each in both:
            links = {identity(one) for one in each["facets"].get("symlinks", {}).get("identifiers", [])}
            if place(link, root) not in links:
                yield f"{short} is linked to {links}, not to {link}"
