"""What every test may lean on: a clean environment, the scale of repeats, and honest skips.

HEADWATER_SCALE         how much of the repeats and examples is run: 1 is all, 0.05 the default
HEADWATER_LIVE=1        run tests marked `live` too (as --live does); `more`: them and those that the scale changes, but no
                        other: `make test` has run it, and would run it again just so
HEADWATER_REQUIRE_LIVE  1: what would be skipped for want of a stack fails instead
HEADWATER_SHARED        where recorded events and contracts stand; else `../shared` beside the project
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import class_archive
import live_jars  # here, and not where it is used: it finds its cache in the home that is there before a test has its own
import marked
import pytest
from hypothesis import HealthCheck, settings

import databases
import kafka_broker
from databases import Postgres
from openlineage_schemas import SHARED

ROOT = Path(__file__).parents[1]
# read once, here: each test gets an environment without them
SCALE = float(os.environ.get("HEADWATER_SCALE") or 0.05)
LIVE = os.environ.get("HEADWATER_LIVE") in ("1", "more")
MORE = os.environ.get("HEADWATER_LIVE") == "more"
REQUIRE_LIVE = os.environ.get("HEADWATER_REQUIRE_LIVE") == "1"

TESTED_BY = f"TESTED_BY={uuid4().hex}"
"""In the environment of whatever this process starts, and what that starts."""
os.environ.update([TESTED_BY.split("=")])

os.environ.setdefault("JDK_JAVA_OPTIONS", class_archive.options())

# a shell's background job ignores Ctrl-C, and hands that on: what tests stop by it would never stop
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "scaled",
    max_examples=max(20, int(150 * SCALE)),
    deadline=None,  # figures and times belong in bench/
    suppress_health_check=[HealthCheck.too_slow],  # nor does a busy machine fail a property
)
settings.load_profile("scaled")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--live", action="store_true", help="run tests marked live, which need a real stack")


@pytest.hookimpl(trylast=True)  # when every item has its marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if MORE:
        more = [item for item in items if item.get_closest_marker("live") or _scaled(item)]
        config.hook.pytest_deselected(items=list({*items}.difference(more)))
        items[:] = more
    if LIVE or config.getoption("--live"):
        return
    skip = pytest.mark.skip(reason="live: run it with make live, or pytest --live")
    for item in items:
        if item.get_closest_marker("live"):  # not a keyword: a directory of that name is one too
            item.add_marker(skip)


def pytest_sessionfinish() -> None:
    """End the drainers of hosts that ended: it is theirs to outlive them, and where nobody listens by a quarter of an hour."""
    for pid, command in marked.carrying(TESTED_BY):
        if "headwater.transport.spool.detached" in command:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)


def _scaled(item: pytest.Item) -> bool:
    """Whether a test does more at a larger scale."""
    asks = {"repeats", "scale"} & set(getattr(item, "fixturenames", ()))
    return bool(asks) or getattr(getattr(item, "obj", None), "is_hypothesis_test", False)


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No setting of whoever runs the tests reaches them, and nothing they write reaches his home."""
    for name in list(os.environ):
        if name.startswith(("HEADWATER_", "OPENLINEAGE_")):
            monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    # but for the probe that each Spark compiles: a second of CPU in every JVM, if none kept it for the next
    probes = tmp_path_factory.getbasetemp() / "probes"
    probes.mkdir(mode=0o700, exist_ok=True)
    (home / ".cache" / "headwater").mkdir(parents=True)
    (home / ".cache" / "headwater" / "probe").symlink_to(probes)
    for kind in ("CONFIG", "STATE", "DATA", "CACHE"):
        monkeypatch.delenv(f"XDG_{kind}_HOME", raising=False)  # below HOME then


@pytest.fixture(scope="session")
def scale() -> float:
    """How much of the repeats is run: 1 is all."""
    return SCALE


@pytest.fixture(scope="session")
def repeats() -> Callable[[int], int]:
    """`repeats(n)`: how often to do what is done `n` times at scale 1; at least once."""
    return lambda n: max(1, round(n * SCALE))


@pytest.fixture(scope="session")
def need() -> Callable[[str, str], None]:
    """`need("Postgres", "apt install postgresql")`: skip for want of it, or fail where it is required."""

    def missing(what: str, command: str) -> None:
        reason = f"needs {what}; get it with: {command}"
        if REQUIRE_LIVE:
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)

    return missing


@pytest.fixture(scope="session")
def shared() -> Path:
    """Recorded events and contracts of other tools, kept beside the project."""
    if not SHARED.is_dir():
        pytest.skip("recorded events are not here: set HEADWATER_SHARED to the directory that holds them")
    return SHARED


@pytest.fixture(scope="session")
def postgres(need: Callable[[str, str], None]) -> Iterator[Postgres]:
    """One Postgres for all tests: `postgres.make()` is the url of a new, empty store."""
    if not databases.present():
        need("Postgres", "apt install postgresql")
    with databases.started() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The url of a new, empty store: the test is run on SQLite, then on Postgres."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/store.db"
    server: Postgres = request.getfixturevalue("postgres")
    return server.make()


@pytest.fixture(scope="session")
def broker(
    tmp_path_factory: pytest.TempPathFactory, need: Callable[[str, str], None]
) -> Iterator[kafka_broker.Broker]:
    """One Kafka broker for all tests."""
    if importlib.util.find_spec("confluent_kafka") is None:
        need("confluent-kafka", "pip install 'headwater[kafka]'")
    if shutil.which("java") is None:
        need("Java", "apt install openjdk-17-jre-headless")
    if not (jars := live_jars.have("broker")):
        need("the jars of a Kafka broker", "python scripts/live_jars.py broker")
    with kafka_broker.running(jars, tmp_path_factory.mktemp("kafka")) as running_broker:
        yield running_broker
