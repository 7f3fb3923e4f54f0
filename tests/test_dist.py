"""What is handed out: a wheel and an sdist with the web UI inside, installed where nothing else is, and used there."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.version import Version

import headwater
from test_layout import HEAVY

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "headwater"
OURS = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
"""The environment of whoever runs the tests, who may have an index and a cache: packages are fetched with it."""
UNREACHED = re.compile(
    r"client error|error sending request|dns error|timed out|Connection|Failed to fetch", re.I
)
Need = Callable[[str, str], None]


def program(need: Need) -> str:
    """The uv that is here, or the one that the Makefile got."""
    own = ROOT / ".tools" / "bin" / "uv"
    found = shutil.which("uv", path=OURS.get("PATH")) or (str(own) if own.exists() else None)
    if found is None:
        need("uv", "pip install uv")
    return str(found)


def uv(need: Need, *arguments: str | Path, cwd: Path) -> None:
    """Run uv; where packages cannot be fetched, skip and say so."""
    environment = {name: value for name, value in OURS.items() if name != "VIRTUAL_ENV"}
    done = subprocess.run(
        [program(need), *map(str, arguments)],
        cwd=cwd, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode and UNREACHED.search(done.stderr):
        need("an index of packages that answers", "see to the network, or to uv's settings")
    assert done.returncode == 0, done.stderr


@dataclass(frozen=True)
class Handed:
    """What `make dist` makes."""

    sdist: Path
    wheel: Path

    def files(self) -> dict[str, bytes]:
        """What the wheel holds."""
        with zipfile.ZipFile(self.wheel) as opened:
            return {name: opened.read(name) for name in opened.namelist()}


@pytest.fixture(scope="module")
def handed(tmp_path_factory: pytest.TempPathFactory, need: Need) -> Handed:
    if not (PACKAGE / "serve" / "built" / "index.html").exists():
        need("the web UI built into the package", "make web")
    folder = tmp_path_factory.mktemp("dist")
    uv(
        need, "build", "--quiet", "--out-dir", folder, ROOT, cwd=folder
    )  # as `make dist` does: the wheel from the sdist
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return Handed(sdist, wheel)


@dataclass(frozen=True)
class Place:
    """An environment that holds the wheel, what it asks for, and nothing else."""

    folder: Path

    @property
    def python(self) -> Path:
        """Its Python."""
        return self.folder / "env" / "bin" / "python"

    def run(self, *command: str | Path) -> str:
        """What a command there says; it must end well."""
        done = subprocess.run(
            [str(self.folder / "env" / "bin" / command[0]), *map(str, command[1:])],
            cwd=self.folder, env=self.environment(), capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def environment(self) -> dict[str, str]:
        """Nobody's: an empty home, none of our paths."""
        kept = {name: OURS[name] for name in ("LANG", "LC_ALL", "TZ") if name in OURS}
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        return {**kept, "HOME": str(home), "PATH": f"{self.folder}/env/bin:/usr/bin:/bin"}


@pytest.fixture(scope="module")
def place(handed: Handed, tmp_path_factory: pytest.TempPathFactory, need: Need) -> Place:
    folder = tmp_path_factory.mktemp("elsewhere")
    uv(need, "venv", "--quiet", "--no-project", "--python", sys.executable, folder / "env", cwd=folder)
    python = folder / "env" / "bin" / "python"
    uv(need, "pip", "install", "--quiet", "--python", python, f"{handed.wheel}[server]", cwd=folder)
    return Place(folder)


# --- what is inside


def in_the_tree() -> set[str]:
    """Every file of the package, as it stands here."""
    return {
        f"headwater/{each.relative_to(PACKAGE).as_posix()}"
        for each in PACKAGE.rglob("*")
        if each.is_file() and each.suffix != ".pyc"
    }


def test_the_wheel_holds_the_package_whole_and_nothing_else(handed: Handed) -> None:
    inside = set(handed.files())
    ours = {name for name in inside if not re.match(r"headwater-[^/]+\.dist-info/", name)}
    assert ours == in_the_tree()
    for wanted in (
        "headwater/py.typed",
        "headwater/serve/built/index.html",
        "headwater/cli/recorded/shop.jsonl",
    ):
        assert wanted in ours
    assert any(re.fullmatch(r"headwater/serve/built/assets/index-[\w-]+\.js", name) for name in ours)
    info = f"headwater-{headwater.__version__}.dist-info"
    assert f"{info}/licenses/LICENSE" in inside
    assert b"headwater = headwater.cli:main" in handed.files()[f"{info}/entry_points.txt"]


def test_the_sdist_makes_the_same_wheel_where_there_is_no_node(
    handed: Handed, tmp_path: Path, need: Need
) -> None:
    """From the tree and from the sdist: the same files, byte for byte."""
    uv(need, "build", "--quiet", "--wheel", "--out-dir", tmp_path, ROOT, cwd=tmp_path)
    (direct,) = tmp_path.glob("*.whl")
    assert Handed(handed.sdist, direct).files() == handed.files()


def test_the_sdist_holds_its_sources_and_nothing_that_is_made(handed: Handed) -> None:
    with tarfile.open(handed.sdist) as opened:
        names = {each.name.partition("/")[2] for each in opened if each.isfile()}
    for wanted in (
        "pyproject.toml",
        "LICENSE",
        "README.md",
        "CHANGELOG.md",
        "web/package-lock.json",
        "tests/test_dist.py",
    ):
        assert wanted in names
    assert {f"src/{name}" for name in in_the_tree()} <= names
    made = [
        name
        for name in names
        if re.search(r"node_modules|__pycache__|\.venv|\.db$|web/shots|(^|/)\.git/", name)
    ]
    assert made == []


# --- used


def test_the_command_tells_its_version(place: Place) -> None:
    assert place.run("headwater", "--version").strip() == f"headwater {headwater.__version__}"


def test_the_demo_runs_with_the_server_alone(place: Place) -> None:
    told = place.run("headwater", "demo", "--once")
    assert "revenue" in told


@contextmanager
def served(place: Place) -> Iterator[str]:
    command = [
        place.folder / "env" / "bin" / "headwater",
        "serve",
        "--port",
        "0",
        "--store",
        "sqlite:///x.db",
    ]
    process = subprocess.Popen(
        list(map(str, command)),
        cwd=place.folder, env=place.environment(), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    try:
        first = process.stderr.readline()
        found = re.search(r"at (http://\S+)", first)
        assert found, first + process.stderr.read()
        yield found[1]
    finally:
        process.terminate()
        process.wait(30)
        process.stderr.close()


def fetched(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=30) as answer:
        body: bytes = answer.read()
        return body


def test_the_server_has_its_pages_and_one_version(place: Place) -> None:
    with served(place) as url:
        page = fetched(f"{url}/").decode()
        script = re.search(r'<script[^>]+src="\./(assets/[\w.-]+\.js)"', page)
        assert script, page
        built = PACKAGE / "serve" / "built" / script[1]
        assert fetched(f"{url}/{script[1]}") == built.read_bytes()
        told = {
            json.loads(fetched(f"{url}/openapi.json"))["info"]["version"],
            json.loads(fetched(f"{url}/hw/v1/server"))["version"],  # what the web UI shows
            json.loads(fetched(f"{url}/health"))["version"],
        }
        assert told == {headwater.__version__}


def test_others_see_its_types(place: Place, tmp_path: Path) -> None:
    """mypy, as somebody else runs it, on the installed package: `py.typed` is found, and a wrong use with it."""
    (tmp_path / "theirs.py").write_text(
        "from headwater import Event, parse\n"
        "from headwater.naming import from_path\n"
        "told: Event = parse(b'{}')\n"
        "reveal_type(from_path('s3://lake/x').namespace)\n"
        "from_path(7)\n"
    )
    mypy = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache")]
    done = subprocess.run(
        [*mypy, "--python-executable", str(place.python), "theirs.py"],
        cwd=tmp_path, env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert 'theirs.py:4: note: Revealed type is "str"' in done.stdout.replace("builtins.", ""), done.stdout
    assert "theirs.py:5: error: Argument 1" in done.stdout
    assert "Found 1 error in 1 file" in done.stdout


def test_the_import_is_light_and_an_extra_that_is_missing_is_named(place: Place) -> None:
    code = f"import sys, headwater, headwater.emitter; print([name for name in {HEAVY!r} if name in sys.modules])"
    assert place.run("python", "-c", code).strip() == "[]"
    code = (
        "import headwater.store, headwater.errors\n"
        "try: headwater.store.open_store('postgresql://nowhere/x')\n"
        "except headwater.errors.NotInstalled as fault: print(fault)"
    )
    assert "pip install 'headwater[postgres]'" in place.run("python", "-c", code)


# --- one version


def test_the_version_is_told_in_one_place(handed: Handed) -> None:
    version = headwater.__version__
    assert handed.wheel.name == f"headwater-{version}-py3-none-any.whl"
    assert handed.sdist.name == f"headwater-{version}.tar.gz"
    metadata = handed.files()[f"headwater-{version}.dist-info/METADATA"].decode()
    assert re.search(rf"^Version: {re.escape(version)}$", metadata, re.MULTILINE)


def test_the_changelog_knows_the_version() -> None:
    """The newest release it tells of is this one; or this one is not released, and what is new stands in Unreleased."""
    headings = re.findall(r"^## \[([^\]]+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    released = [each for each in headings if each != "Unreleased"]
    parts = [Version(each) for each in released]
    assert parts == sorted(parts, reverse=True), "the newest first"
    version = Version(headwater.__version__)
    if headwater.__version__ in released:
        assert released[0] == headwater.__version__
    else:
        assert headings[0] == "Unreleased"
        assert all(version > each for each in parts)


def test_the_web_ui_has_no_version_of_its_own() -> None:
    assert "version" not in json.loads((ROOT / "web" / "package.json").read_text())
    assert "{it.version}" in (ROOT / "web" / "src" / "pages" / "Admin.tsx").read_text()
