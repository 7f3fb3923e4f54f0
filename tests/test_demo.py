"""The demo as people start it: real dlt, real Spark, in processes of its own; amid hostile settings, and where parts are missing."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from headwater.demo.means import java_version, look
from headwater.demo.place import own_folder
from headwater.demo.programs import check_revenue
from headwater.demo.served import served
from headwater.demo.tale import Setting, tell
from headwater.errors import HeadwaterError
from headwater.ingest import ingest
from headwater.query.lineage import lineage
from headwater.store import open_store
from headwater.store._leases import holder_of
from headwater.work import LEASE

SECONDS = 900
HERE = Path(__file__).parent

# what must be told: who reads and writes what …
SPARK = "shop:build_revenue.insert_into_hadoop_fs_relation_command"
JOBS = {
    "shop:load_shop": (
        {"API:/v1/orders", "sqlite://FOLDER/shop.db:customers", "sqlite://FOLDER/shop.db:products"},
        {f"file:FOLDER/lake/raw/{name}" for name in ("orders", "orders__lines", "customers", "products")},
    ),
    f"{SPARK}.silver_sales": (
        {f"file:FOLDER/lake/raw/{name}" for name in ("orders", "orders__lines", "customers", "products")},
        {"file:FOLDER/lake/silver/sales"},
    ),
    f"{SPARK}.gold_revenue": ({"file:FOLDER/lake/silver/sales"}, {"file:FOLDER/lake/gold/revenue"}),
    f"{SPARK}.gold_board_report": ({"file:FOLDER/lake/gold/revenue"}, {"file:FOLDER/lake/gold/board_report"}),
    "shop:check_revenue": ({"file:FOLDER/lake/gold/revenue"}, set()),
}
# … and which fields of the shop the column `revenue` has to do with
MADE_OF = {("/v1/orders", "lines[*].price"), ("/v1/orders", "lines[*].quantity")}
HANGS_ON = {
    ("/v1/orders", "lines[*].sku"),
    ("/v1/orders", "status"),
    ("/v1/orders", "customer.id"),
    ("customers", "id"),
    ("customers", "country"),
    ("products", "sku"),
    ("products", "category"),
}
NOTHING_TO_DO_WITH = {
    ("/v1/orders", "id"),
    ("/v1/orders", "placedAt"),
    ("/v1/orders", "customer.name"),
    ("/v1/orders", "lines[*].giftWrap"),
    ("/v1/orders", "note"),
    ("customers", "name"),
    ("products", "title"),
    ("products", "cents"),
}

DEAD = "http://127.0.0.1:9"
HOSTILE = {
    "HEADWATER_URL": DEAD,
    "HEADWATER_STORE": "postgresql://nobody@127.0.0.1:9/none",
    "HEADWATER_TRANSPORT": "nonsense",
    "HEADWATER_DISABLED": "true",
    "HEADWATER_CONFIG": "/nonexistent",
    "HEADWATER_SERVE__PORT": "none",
    "HEADWATER_NO_SUCH__ROOM": "1",
    "OPENLINEAGE_URL": DEAD,
    "OPENLINEAGE_DISABLED": "true",
    "OPENLINEAGE_CONFIG": "/nonexistent",
    "_HEADWATER_RUN": '{"transport": "nonsense"}',
    "HTTP_PROXY": DEAD,
    "http_proxy": DEAD,
    "ALL_PROXY": DEAD,
    "SPARK_HOME": "/nonexistent",
    "SPARK_REMOTE": "sc://127.0.0.1:9",
    "PYSPARK_SUBMIT_ARGS": "--master yarn pyspark-shell",
    "PYSPARK_PYTHON": "/nonexistent",
    "JDK_JAVA_OPTIONS": "-XX:NoSuchOption",
    "DLT_DATA_DIR": "/nonexistent",
    "DLT_PROJECT_DIR": "/nonexistent",
    "SCHEMA__NAMING": "direct",
    "DESTINATION__FILESYSTEM__LAYOUT": "{table_name}.{load_id}.{file_id}.{ext}",
    "PYTHONHASHSEED": "7",
}


class Demo:
    """A folder with a home, a place for temporary files and one to work in: demos are started there."""

    def __init__(self, folder: Path) -> None:
        self.home, self.work = folder / "home", folder / "work"
        self.temporary = folder / "temporary files, & more"  # a path that a url would write otherwise
        self.started: list[subprocess.Popen[str]] = []
        for each in (self.home, self.work, self.temporary):
            each.mkdir()

    def start(self, *arguments: str, stdout: int = subprocess.PIPE, **environ: str) -> subprocess.Popen[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "DLT_"))}
        kept |= {"HOME": str(self.home), "TMPDIR": str(self.temporary), "COLUMNS": "200"}
        process = subprocess.Popen(
            [sys.executable, "-m", "headwater", "demo", *arguments],
            env=kept | environ,
            cwd=self.work,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def run(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return ended(self.start(*arguments, **environ))

    def check_nothing_is_left(self, *known: str) -> None:
        assert [str(each) for each in self.temporary.iterdir()] == []
        assert {str(each.relative_to(self.home)) for each in self.home.rglob("*") if each.is_file()} == {
            *known
        }
        assert processes(str(self.temporary)) == []


def ended(process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    try:
        out, err = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.terminate()
        out, err = process.communicate(timeout=60)
        raise AssertionError(f"the demo did not end\n{out}\n{err}") from None
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def processes(word: str) -> list[str]:
    """The command lines on this machine that hold a word."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            told = each.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it ended
            continue
        if word in told:
            found.append(told)
    return found


@pytest.fixture
def demos(tmp_path: Path) -> Iterator[Callable[[str], Demo]]:
    """`demos("name")`: a place to start demos in; none of them outlives the test."""
    made: list[Demo] = []

    def make(name: str) -> Demo:
        (tmp_path / name).mkdir()
        made.append(Demo(tmp_path / name))
        return made[-1]

    yield make
    for each in (process for one in made for process in one.started):
        if each.poll() is None:
            each.terminate()
            each.communicate(timeout=60)


@pytest.fixture
def demo(demos: Callable[[str], Demo]) -> Demo:
    return demos("one")


@pytest.fixture
def has_dlt(need: Callable[[str, str], None]) -> None:
    if any(importlib.util.find_spec(name) is None for name in ("dlt", "pyarrow")):
        need("dlt", "pip install 'headwater[demo]'")


@pytest.fixture
def has_spark(has_dlt: None, need: Callable[[str, str], None]) -> None:
    if importlib.util.find_spec("pyspark") is None:
        need("pyspark", "pip install 'headwater[demo]'")
    if java_version(os.environ) is None:
        need("Java", "apt install openjdk-17-jre-headless")


# --- all of it


def test_two_at_once_tell_the_same_though_one_is_amid_hostile_settings(
    has_spark: None, demos: Callable[[str], Demo], tmp_path: Path
) -> None:
    calm, hostile = demos("calm"), demos("hostile")
    for path in ("home/.dlt/config.toml", "home/.config/headwater/headwater.toml", "work/.dlt/config.toml"):
        (hostile.work.parent / path).parent.mkdir(parents=True)
        (hostile.work.parent / path).write_text('[schema]\nnaming = "direct"\n')
    (hostile.work / "headwater.toml").write_text("transport = 5\n")
    (hostile.work / "openlineage.yml").write_text("transport: nonsense\n")
    serving = hostile.start("--port", "0", "--store", f"sqlite:///{tmp_path}/hostile.db", **HOSTILE)
    once = calm.run("--once", "--store", f"sqlite:///{tmp_path}/calm.db")
    assert once.returncode == 0, once.stderr
    check_what_is_told(f"sqlite:///{tmp_path}/calm.db", calm.temporary)
    check_what_is_shown(once.stdout, once.stderr)
    calm.check_nothing_is_left()

    assert serving.stdout is not None
    shown = ""
    while "OPENLINEAGE_URL=" not in shown:
        line = serving.stdout.readline()
        assert line, shown + ended(serving).stderr
        shown += line
    page = re.search(r"(http://127\.0\.0\.1:\d+)/incidents/(\d+)", shown)
    assert page, shown
    found = httpx.get(f"{page[1]}/hw/v1/incidents/{page[2]}", trust_env=False).json()
    assert (found["test"], found["column"], found["status"]) == ("not_null", "revenue", "open")
    assert found["blamed"]["job"] == f"job:{SPARK}.gold_revenue"
    assert httpx.get(page[0], trust_env=False).status_code in (200, 503)  # 503: the pages are not built here
    check_what_is_told(f"sqlite:///{tmp_path}/hostile.db", hostile.temporary)
    serving.send_signal(signal.SIGINT)
    done = ended(serving)
    assert done.returncode == 0, done.stderr
    check_what_is_shown(shown, done.stderr)
    hostile.check_nothing_is_left(".dlt/config.toml", ".config/headwater/headwater.toml")


def check_what_is_shown(out: str, err: str) -> None:
    assert re.search(r"✗ not_null\(revenue\) failed on lake/gold/revenue: 3 of 10 rows have no revenue", out)
    way = [
        r"http://127\.0\.0\.1:\d+/v1/orders +lines\[\*\]\.price",
        r"↓ load_shop  identity",
        r"lake/raw/orders__lines +price",
        r"↓ build_revenue\.\S+\.silver_sales  transformation",
        r"lake/silver/sales +amount",
        r"↓ build_revenue\.\S+\.gold_revenue  aggregation",
        r"lake/gold/revenue +revenue",
        r"Who is to blame:",
        r"build_revenue\.\S+\.gold_revenue",
        r"run \S+, which ended at ",
        r"What breaks with it:",
        r"lake/gold/board_report  revenue, verdict",
    ]
    assert re.search(r"\s+".join(rf"{each}[^\n]*\n" for each in way), out), out
    assert len(re.findall(r"^✓ .* s, \d+ events$", err, re.MULTILINE)) == 3, err


def check_what_is_told(url: str, temporary: Path) -> None:
    """The whole graph, each dataset one node, and the fields that the column is made of or hangs on: no more, no less."""

    def plain(node: str) -> str:
        bare = re.sub(re.escape(str(temporary)) + r"/headwater-demo-\w+", "FOLDER", node.replace("\n", ":"))
        return re.sub(r"http://127\.0\.0\.1:\d+", "API", bare)

    store = open_store(url)
    try:
        tables = store.dump()
        revenue = next(name for (name,) in tables["datasets"] if name.endswith("/gold/revenue"))
        told = lineage(store, f"datasetField:{revenue.replace(chr(10), ':')}:revenue", direction="up")
    finally:
        store.close()
    jobs: dict[str, tuple[set[str], set[str]]] = {}
    for job, way, dataset in tables["edges"]:
        jobs.setdefault(plain(job), (set(), set()))[way == "out"].add(plain(dataset))
    assert jobs == JOBS
    ends = {each for sides in JOBS.values() for side in sides for each in side}
    assert sorted(plain(name) for (name,) in tables["datasets"]) == sorted(ends)
    assert set(tables["symlinks"]) == set()
    fields = {
        (each["from"]["dataset"].rpartition(":")[2], each["from"]["field"])
        for each in told["columns"]
        if not each["from"]["dataset"].startswith("dataset:file:")
    }
    assert fields == MADE_OF | HANGS_ON


def test_the_column_changes_with_what_it_is_told_to_be_made_of_and_with_nothing_else(
    has_spark: None, tmp_path: Path, scale: float
) -> None:
    """An oracle that knows nothing of lineage: the programs, on shops whose values stand elsewhere."""
    claimed = sorted(MADE_OF | HANGS_ON) if scale == 1 else sorted(MADE_OF)
    shops = [[], sorted(NOTHING_TO_DO_WITH), *([each] for each in claimed)]
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))
    }
    done = subprocess.run(
        [sys.executable, str(HERE / "demo_oracle.py"), str(tmp_path), json.dumps(shops)],
        env={
            **environ,
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "DLT_DATA_DIR": str(tmp_path / "dlt"),
            "RUNTIME__DLTHUB_TELEMETRY": "false",
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    plain, others, *stirred = json.loads(done.stdout)
    assert "None" in plain  # what the check finds
    assert others == plain
    assert {field for field, made in zip(claimed, stirred, strict=True) if made == plain} == set()


# --- where parts are missing


def blocking(folder: Path, *names: str) -> dict[str, str]:
    """An environment in which these modules cannot be imported, in a program that the demo starts, neither."""
    text = f"""
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if any(name == each or name.startswith(each + ".") for each in {names!r}):
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Block())
"""
    (folder / "blocking").mkdir()
    (folder / "blocking" / "sitecustomize.py").write_text(text)
    return {"PYTHONPATH": os.pathsep.join([str(folder / "blocking"), os.environ.get("PYTHONPATH", "")])}


def check_what_dlt_shows(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr
    way = r"/v1/orders +lines\[\*\]\.price\s+↓ load_shop  identity\s+lake/raw/orders__lines +price"
    assert re.search(way, done.stdout), done.stdout
    assert "Without it, only what dlt does is shown" in done.stderr


def test_without_java_dlt_is_shown_and_how_to_get_the_rest(has_dlt: None, demo: Demo, tmp_path: Path) -> None:
    done = demo.run("--once", PATH=str(tmp_path), JAVA_HOME="")
    check_what_dlt_shows(done)
    assert "Spark needs Java, and there is none" in done.stderr
    assert "apt install openjdk-17-jre-headless" in done.stderr
    demo.check_nothing_is_left()


def test_without_pyspark_dlt_is_shown_and_how_to_get_the_rest(
    has_dlt: None, demo: Demo, tmp_path: Path
) -> None:
    done = demo.run("--once", **blocking(tmp_path, "pyspark"))
    check_what_dlt_shows(done)
    assert "pyspark is not installed: pip install 'headwater[demo]'" in done.stderr
    demo.check_nothing_is_left()


@pytest.mark.parametrize("missing", ["dlt", "pyarrow", "dlt,pyspark"])
def test_without_dlt_a_recorded_day_is_shown(demo: Demo, tmp_path: Path, missing: str) -> None:
    done = demo.run("--once", **blocking(tmp_path, *missing.split(",")))
    assert done.returncode == 0, done.stderr
    assert f"{missing.split(',')[0]} is not installed: pip install 'headwater[demo]'" in done.stderr
    assert "FAILED  not_null(day)" in done.stdout
    demo.check_nothing_is_left()


def test_without_a_server_it_says_what_to_install(demo: Demo, tmp_path: Path) -> None:
    done = demo.run("--once", **blocking(tmp_path, "litestar"))
    assert done.returncode == 2
    assert done.stderr == "headwater: headwater demo needs: pip install 'headwater[demo]'\n"
    demo.check_nothing_is_left()


def test_the_recorded_day_needs_nothing_else(demo: Demo, tmp_path: Path) -> None:
    done = demo.run("--once", "--recorded", PATH="", JAVA_HOME="", **blocking(tmp_path, "dlt", "pyspark"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "FAILED  not_null(day)" in done.stdout
    demo.check_nothing_is_left()


def test_who_only_looks_lets_nothing_go(tmp_path: Path) -> None:
    """`--store` may be one of years: what is old in it, and its hooks, are not the demo's."""
    with closing(open_store(f"sqlite:///{tmp_path}/years.db")) as store, served(store, 0) as address:
        until = time.monotonic() + 3
        while time.monotonic() < until:
            assert httpx.get(f"{address}/ready").is_success
            with store.read() as reader:
                assert holder_of(reader.connection, LEASE, 0) is None
            time.sleep(0.2)


# --- when something goes wrong


def test_a_program_that_fails_is_told_with_what_it_said(has_dlt: None, demo: Demo, tmp_path: Path) -> None:
    done = demo.run("--once", **blocking(tmp_path, "dlt.sources.rest_api"))
    assert done.returncode == 1
    assert "load_shop.py failed with exit code 1" in done.stderr
    assert "No module named 'dlt.sources.rest_api'" in done.stderr
    demo.check_nothing_is_left()


def test_a_store_that_tells_something_else_fails_the_demo(tmp_path: Path) -> None:
    """Nothing happened, so nothing may be shown."""
    store = open_store("memory:")
    with pytest.raises(HeadwaterError):
        tell(store, Setting("http://127.0.0.1:1", tmp_path / "shop.db", tmp_path), spark=True)
    store.close()


def test_a_way_that_is_broken_is_told(tmp_path: Path) -> None:
    """All that happened is there, but for what one column is made of."""
    setting = Setting("http://127.0.0.1:1", tmp_path / "shop.db", tmp_path)
    source, revenue, report = (
        setting.source,
        setting.table("gold/revenue"),
        setting.table("gold/board_report"),
    )

    def written(number: int, job: str, inputs: list[Any], outputs: list[Any]) -> bytes:
        run = {"runId": f"01890000-0000-7000-8000-{number:012}"}
        time, job_ = f"2026-01-31T12:00:0{number}Z", {"namespace": "shop", "name": job}
        event = {"eventTime": time, "eventType": "COMPLETE", "run": run, "job": job_}
        return json.dumps({**event, "inputs": inputs, "outputs": outputs}).encode()

    def dataset(node: str, **facets: Any) -> dict[str, Any]:
        namespace = setting.api if node == source else "file"
        name = node.removeprefix(f"dataset:{namespace}:")
        return {"namespace": namespace, "name": name, "facets": facets}

    fields = {"fields": [{"name": "revenue", "type": "double"}]}
    failed = {"assertions": [{"assertion": "not_null", "column": "revenue", "success": False}]}
    with closing(open_store("memory:")) as store:
        events = [
            written(1, "build", [dataset(source)], [dataset(revenue, schema=fields)]),
            written(2, "report", [dataset(revenue)], [dataset(report)]),
            written(3, "check", [dataset(revenue, dataQualityAssertions=failed)], []),
        ]
        assert ingest(store, events).stored == len(events)
        with pytest.raises(HeadwaterError, match="the column comes from the API's field"):
            tell(store, setting, spark=True)


def test_the_folder_is_named_as_every_tool_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some follow a link in a path that they tell, and some do not."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "link"))
    with own_folder() as folder:
        assert folder.parent == (tmp_path / "real").resolve()
    assert list((tmp_path / "real").iterdir()) == []


@pytest.mark.parametrize(
    ("number", "moment"),
    [
        (signal.SIGINT, "load_shop.log"),  # dlt starts
        (signal.SIGTERM, "spool/*"),  # its first event is written: a drainer starts
        (signal.SIGTERM, "lake/silver"),  # Spark writes
    ],
)
def test_one_that_is_stopped_midway_leaves_nothing(
    request: pytest.FixtureRequest, demo: Demo, number: int, moment: str
) -> None:
    request.getfixturevalue("has_spark" if moment == "lake/silver" else "has_dlt")
    running = demo.start("--once")
    until = time.monotonic() + SECONDS
    while not list(demo.temporary.glob(f"*/{moment}")) and time.monotonic() < until:
        assert running.poll() is None, ended(running).stderr
        time.sleep(0.02)
    running.send_signal(number)
    done = ended(running)
    assert done.returncode == {signal.SIGTERM: 143, signal.SIGINT: 130}[number], done.stderr
    until = time.monotonic() + 30
    while processes(str(demo.temporary)) and time.monotonic() < until:
        time.sleep(0.1)
    demo.check_nothing_is_left()


# --- whoever sits before a screen


@pytest.mark.skipif(os.name == "nt", reason="no such terminals there")
@pytest.mark.parametrize(
    ("options", "display", "opens"), [([], ":0", True), (["--no-browser"], ":0", False), ([], "", False)]
)
def test_a_browser_is_opened_where_there_is_a_screen(
    demo: Demo, tmp_path: Path, options: list[str], display: str, opens: bool
) -> None:
    opened = tmp_path / "opened"
    (tmp_path / "browser").write_text(f'#!/bin/sh\necho "$1" >>{opened}\n')
    (tmp_path / "browser").chmod(0o755)
    ours, theirs = os.openpty()
    environ = {"BROWSER": f"{tmp_path}/browser %s", "DISPLAY": display, "WAYLAND_DISPLAY": ""}
    running = demo.start("--recorded", "--port", "0", *options, stdout=theirs, **environ)
    os.close(theirs)
    shown = b""
    while b"OPENLINEAGE_URL=" not in shown:
        shown += os.read(ours, 10_000)
    page = re.search(rb"http://127\.0\.0\.1:\d+/incidents", shown)
    assert page
    until = time.monotonic() + 60
    while opens and not opened.exists() and time.monotonic() < until:
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    assert ended(running).returncode == 0
    os.close(ours)
    assert (opened.read_text().split() if opened.exists() else []) == ([page[0].decode()] if opens else [])


# --- its parts


def test_the_check_finds_what_is_wrong() -> None:
    pyarrow = pytest.importorskip("pyarrow")

    def found(values: list[Any]) -> set[str]:
        table = pyarrow.table({"revenue": pyarrow.array(values, pyarrow.float64())})
        return {each["assertion"] for each in check_revenue.check(table) if not each["success"]}

    assert found([1.0, 2.0]) == set()
    assert found([1.0, None]) == {"not_null"}
    assert found([-1.0, None]) == {"not_null", "not_negative"}
    assert found([]) == {"not_empty"}


@pytest.mark.parametrize("home", [True, False])
@pytest.mark.parametrize(
    ("said", "lacks"),
    [
        ("echo 'openjdk version \"17.0.15\" 2025-04-15' >&2", None),
        ("echo 'openjdk version \"21\" 2023-09-19' >&2", None),
        ("echo 'java version \"1.8.0_392\"' >&2", "this is 8"),
        ("echo 'Unable to locate a Java Runtime.' >&2; exit 1", "there is none"),
        (None, "there is none"),
    ],
)
def test_the_java_that_spark_would_start_is_asked(
    tmp_path: Path, said: str | None, lacks: str | None, home: bool
) -> None:
    pytest.importorskip("pyspark")
    (tmp_path / "bin").mkdir()
    if said:
        (tmp_path / "bin" / "java").write_text(f"#!/bin/sh\n{said}\n")
        (tmp_path / "bin" / "java").chmod(0o755)
    missing = look({"JAVA_HOME": str(tmp_path)} if home else {"PATH": str(tmp_path / "bin")}).spark
    assert missing is None if lacks is None else missing and lacks in missing
