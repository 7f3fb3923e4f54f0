"""Where the answers of a real cluster stand, and a real cluster itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import live
import live_jars
import pytest

import services
from connect_workers import Workers, connect
from openlineage_schemas import SHARED

RECORDED = SHARED / "spikes" / "kafka" / "recorded"
PLUGINS = ("debezium-postgres", "debezium-jdbc", "iceberg-sink", "avro-converter")


@pytest.fixture
def recorded() -> Path:
    """The folder of recorded answers; a test that asks for it is skipped where there is none."""
    if not RECORDED.is_dir():
        pytest.skip(f"no recorded answers of Connect: {RECORDED} is not there")
    return RECORDED


@pytest.fixture(scope="session")
def jars(need: Callable[[str, str], None]) -> Callable[[str], list[Path]]:
    """`jars("broker")`: the jars of a profile."""

    def found(profile: str) -> list[Path]:
        here = live_jars.have(profile)
        if not here:
            need(f"the jars of {profile}", f"python scripts/live_jars.py {profile}")
        return here

    return found


@pytest.fixture(scope="session")
def workers(tmp_path_factory: pytest.TempPathFactory, jars: Callable[[str], list[Path]]) -> Iterator[Workers]:
    """A broker and two workers with every connector that can be had; one of them for all tests."""
    profiles = {each: jars(each) for each in PLUGINS}
    folder = tmp_path_factory.mktemp("connect").resolve()
    with connect(folder, jars("broker"), jars("connect"), profiles, 2) as made:
        yield made


@pytest.fixture
def eye(workers: Workers) -> Iterator[live.Eye]:
    """An eye on the workers; whatever connectors a test leaves are deleted after it."""
    with live.eye(workers) as made:
        yield made
    for name in workers.ask("GET", "/connectors"):
        workers.ask("DELETE", f"/connectors/{name}")


@pytest.fixture(scope="session")
def registry(
    tmp_path_factory: pytest.TempPathFactory, jars: Callable[[str], list[Path]]
) -> Iterator[tuple[str, int]]:
    """A real schema registry: its url, its pid."""
    with services.registry(jars("schema-registry"), tmp_path_factory.mktemp("registry")) as made:
        yield made
