"""The docs are true: generated parts are fresh, every block runs or is checked, links lead somewhere, nothing lacks its heading."""

from __future__ import annotations

import doctest
import gc
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import warnings
from collections.abc import Callable
from html.parser import HTMLParser
from importlib import import_module
from inspect import signature
from pathlib import Path
from pkgutil import walk_packages
from urllib.parse import unquote

import docs
import docs_http
import docs_modules
import docs_site
import pytest

import doc_blocks
import headwater
from doc_blocks import Block, blocks
from headwater import config, migrating
from headwater.cli import COMMANDS
from headwater.store import STORES
from headwater.store.memory import open_memory
from headwater.store.postgres import open_postgres
from headwater.store.sqlite import open_sqlite
from headwater.transport import TRANSPORTS

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = docs_site.pages()
TEXTS = [README, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", ROOT / "bench" / "RESULTS.md", *PAGES]
MADE = ("cli.md", "http-reference.md", "modules.md")
"""Pages that are written from the code, whole."""
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
SECONDS = 60


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text()


def headings(text: str) -> list[str]:
    bare = FENCE.sub("", text)
    return [line.lstrip("#").strip() for line in bare.splitlines() if re.match(r"#+ ", line)]


def titles(*names: str) -> set[str]:
    return {each.strip("`") for name in names for each in headings(page(name))}


def anchors(text: str) -> set[str]:
    """As a forge makes them of headings: those that are there twice are numbered."""
    found: set[str] = set()
    for each in headings(text):
        bare = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", each)
        slug = re.sub(r"[^\w\- ]", "", bare.lower()).replace(" ", "-")
        found.add(
            slug if slug not in found else next(s for n in range(1, 99) if (s := f"{slug}-{n}") not in found)
        )
    return found


# --- what must have its heading


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["settings.md"], [each.name for each in config.SETTINGS]),
        (["settings.md"], list(config.ROOMS)),
        ([f"stores/{each.name}" for each in (ROOT / "docs" / "stores").glob("*.md")], list(STORES)),
        (
            [f"transports/{each.name}" for each in (ROOT / "docs" / "transports").glob("*.md")],
            [each for each in TRANSPORTS if each != "spool"],  # docs/delivery.md is all about it
        ),
        (["cli.md"], [f"headwater {name}" for name in COMMANDS]),
    ],
    ids=["settings", "rooms", "stores", "transports", "commands"],
)
def test_everything_has_its_heading(files: list[str], names: list[str]) -> None:
    assert names
    missing = set(names) - titles(*files)
    assert not missing, f"docs/{files[0]} … has no heading for: {', '.join(sorted(missing))}"


SOURCES = ("spark.md", "connect.md", "dlt.md", "airflow.md", "anything.md")
SHAPE = ("Install", "What you see", "Settings", "What it cannot see", "Trouble")


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_has_the_same_shape(name: str) -> None:
    parts = re.findall(r"^## (.+)$", FENCE.sub("", page(name)), re.MULTILINE)
    assert [each for each in parts if each in SHAPE] == list(SHAPE)


def test_every_endpoint_is_told() -> None:
    from headwater.serve.app import READS, WRITES

    paths = {re.sub(r":\w+}", "}", path) for handler in [*READS, *WRITES] for path in handler.paths}
    missing = {path for path in paths if f"{path}`" not in page("http.md")}
    assert not missing


@pytest.mark.parametrize(
    ("name", "factory"), [("sqlite", open_sqlite), ("postgresql", open_postgres), ("memory", open_memory)]
)
def test_every_option_of_a_store_is_told(name: str, factory: object) -> None:
    for option in list(signature(factory).parameters)[1:]:  # type: ignore[arg-type]
        assert f"`{option}`" in page(f"stores/{name}.md"), option


@pytest.mark.parametrize("name", [each for each in TRANSPORTS if each != "memory"])
def test_every_option_of_a_transport_is_told(name: str) -> None:
    target = import_module(TRANSPORTS[name][0].partition(":")[0])
    factory = getattr(target, TRANSPORTS[name][0].partition(":")[2])
    files = [*(ROOT / "docs" / "transports").glob("*.md"), ROOT / "docs" / "delivery.md"]
    (text,) = (
        (each.read_text() for each in files if f"## `{name}`" in each.read_text())
        if name != "spool"
        else (page("delivery.md"),)
    )
    for option, each in signature(factory).parameters.items():
        if option != "url" and each.default is not each.empty:
            assert f"`{option}`" in text, option


def test_every_setting_of_a_room_with_a_page_is_told() -> None:
    from headwater.connect import Cluster, Watching

    for struct in (Cluster, Watching):
        for name in struct.__struct_fields__:
            assert f"`{name}`" in page("connect.md") or name == "clusters", name


def test_every_page_is_in_the_index() -> None:
    top = [each for each in PAGES if each.parent == ROOT / "docs" and each.name != "index.md"]
    assert [each.name for each in top if f"({each.name})" not in page("index.md")] == []


def test_every_page_can_be_reached_from_the_index() -> None:
    seen, waiting = set(), [ROOT / "docs" / "index.md"]
    while waiting:
        file = waiting.pop()
        if file in seen or file.suffix != ".md" or not file.exists():
            continue
        seen.add(file)
        for target in docs_site.links(file.read_text()):
            waiting.append((file.parent / target.partition("#")[0]).resolve())
    lost = [each.relative_to(ROOT).as_posix() for each in PAGES if each not in seen]
    assert lost == [], "link to them from docs/index.md"


# --- what is generated


def test_the_commands_are_as_their_help_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")  # nor may the terminal matter
    assert docs.cli() == page("cli.md"), "run make docs"


@pytest.mark.parametrize(
    "file", [each for each in PAGES if "<!-- made: " in each.read_text()], ids=lambda each: each.name
)
def test_what_is_made_is_as_the_code_says(file: Path) -> None:
    assert docs.made(file.read_text()) == file.read_text(), "run make docs"


def test_every_made_part_stands_somewhere() -> None:
    told = {found[1] for file in PAGES for found in docs.MADE.findall(file.read_text())}
    assert told == set(docs.PARTS)
    assert {f"migrating-{tool}" for tool in migrating.TABLES} <= told


def test_the_reference_has_every_route_that_is_described() -> None:
    told = docs_http.description()["paths"]
    wanted = {f"{method.upper()} {path}" for path, each in told.items() for method in each}
    assert wanted <= titles("http-reference.md")
    scopes = [operation.get("x-scope") for each in told.values() for operation in each.values()]
    assert None not in scopes


def test_every_module_is_told() -> None:
    names = set(re.findall(r"^(?:## |\| )`([\w.]+)`", page("modules.md"), re.MULTILINE))
    assert set(docs_modules.first_lines()) - {"headwater", "__main__"} == names


# --- blocks


def all_blocks() -> list[Block]:
    files = [README, ROOT / "CONTRIBUTING.md", *(each for each in PAGES if each.name not in MADE)]
    return [each for file in files for each in blocks(file)]


def name_of(block: Block) -> str:
    return f"{block.page}-{block.number}"


def run(command: list[str], folder: Path) -> str:
    path = f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}"
    running = subprocess.Popen(
        command,
        cwd=folder,
        env={
            **os.environ,
            "PATH": path,
            "DLT_DATA_DIR": str(folder / "dlt"),
            "RUNTIME__DLTHUB_TELEMETRY": "false",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        told, _ = running.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGKILL)  # with what it started in the background
        told, _ = running.communicate()
    assert running.returncode == 0, f"{command[-1]}\n{told}"
    return told


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def play(some: list[Block], folder: Path) -> str:
    """Run blocks one after another in one folder; what serves in the background is stopped by its own id."""
    port, told = str(free_port()), ""
    for each in some:
        code = each.code.replace("5055", port)
        if each.language == "python":
            told += run([sys.executable, "-c", code], folder)
        else:
            stop = "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n"
            told += run(["bash", "-euo", "pipefail", "-c", stop + code], folder)
    return told


def test_the_readme_runs(tmp_path: Path) -> None:
    some = [each for each in blocks(README) if each.run is not None]
    assert {each.language for each in some} == {"python", "bash"}
    told = play(some, tmp_path)
    for expected in (
        "1 event: 1 stored",
        "job shop/load_orders",
        '"state": "COMPLETE"',
        "sound: 1 event read",
    ):
        assert expected in told


RUN = [
    each for each in all_blocks() if each.run == "" and each.page != "README.md" and each.language != "python"
]


@pytest.mark.parametrize("file", sorted({each.page for each in RUN}))
def test_what_is_marked_runs(file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder of its own; after `run: store` with a store that holds the event of the README."""
    some = [each for each in RUN if each.page == file]
    if any(each.run == "store" for each in some):
        play([each for each in blocks(README) if each.language == "python"], tmp_path)
        monkeypatch.setenv("HEADWATER_STORE", f"sqlite:///{tmp_path / 'lineage.db'}")
        run([sys.executable, "-m", "headwater", "ingest", "events.jsonl"], tmp_path)
    assert play(some, tmp_path)


PYTHON = [each for each in all_blocks() if each.language == "python" and each.page != "README.md"]


@pytest.mark.parametrize("block", PYTHON, ids=name_of)
def test_python_in_the_docs_runs(block: Block, tmp_path: Path) -> None:
    run([sys.executable, "-c", block.code], tmp_path)


SERVED = [each for each in all_blocks() if each.run == "server"]


@pytest.mark.parametrize("file", sorted({each.page for each in SERVED}))
def test_what_asks_a_server_is_answered(file: str, tmp_path: Path) -> None:
    """Against a real one that holds the events of the README."""
    from serving import serving

    play([each for each in blocks(README) if each.language == "python"], tmp_path)
    with serving(f"sqlite:///{tmp_path / 'lineage.db'}") as server:
        run([sys.executable, "-m", "headwater", "ingest", "events.jsonl", "--url", server.url], tmp_path)
        for each in SERVED:
            if each.page == file:
                code = each.code.replace("http://localhost:5000", server.url).replace(
                    "curl ", "curl -sS --fail-with-body "
                )
                run(["bash", "-euo", "pipefail", "-c", code], tmp_path)


@pytest.mark.parametrize("block", [each for each in all_blocks() if each.language != "python"], ids=name_of)
def test_every_other_block_is_checked(block: Block, tmp_path: Path) -> None:
    found = list(doc_blocks.faults(block, tmp_path))
    assert not found, f"{name_of(block)}:\n{block.code}\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("", "x"),
        ("sh", "headwater serve --prot 1"),
        ("dockerfile", "FROM scratch"),
        ("", "headwater serve --prot 1"),
        ("", "import headwater"),
        ("properties", "spark.headwater.transprot x"),
        ("bash", "python bench/nothing.py"),
        ("bash", "curl -s ${URL}/hw/v1/exprot > log.jsonl"),
        ("text", "headwater serve --prot 1"),
        ("bash", "headwater sevre"),
        ("bash", "headwater store chekc"),
        ("bash", "A=1 headwater serve --prot 5000  # why"),
        ("bash", "pip install 'headwater[sevrer]'"),
        ("bash", "true && docker run x"),
        ("bash", "curl http://localhost:5000/hw/v1/grpah"),
        ("bash", "curl -X DELETE http://localhost:5000/hw/v1/graph"),
        ("bash", "curl http://localhost:5000/api/v1/lineage -d '{'"),
        ("bash", "make dmeo"),
        ("bash", "echo 'open"),
        ("json", "{…}"),
        ("toml", "[sevre]\nport = 1"),
        ("toml", '[[clusters]]\nname = "a"\nulr = "x"'),
        ("toml", '[project.entry-points."headwater.nothing"]\na = "b"'),
        ("yaml", "transport: {type: http}"),
        ("yaml", "a: ["),
        ("py", "x = 1"),
        ("py", "x = "),
    ],
)
def test_a_planted_fault_in_a_block_is_found(language: str, code: str, tmp_path: Path) -> None:
    assert list(doc_blocks.faults(Block("a.md", 0, "", language, code), tmp_path))


def test_commands_in_a_line_of_text_exist() -> None:
    """Each `headwater word …` in a text is a command, and each of its options is one."""
    seen = 0
    for file in TEXTS:
        if file.name in MADE:
            continue
        for line in re.findall(r"`(headwater [a-z][^`\n|#]*)`", FENCE.sub("", file.read_text())):
            seen += 1
            assert list(doc_blocks.headwater(line.split()[1:])) == [], f"{file.name}: {line}"
    assert seen > 50


# --- links


def test_links_lead_somewhere() -> None:
    for file in TEXTS:
        for target in docs_site.links(file.read_text()):
            if target.startswith(("http://", "https://")):
                continue
            path, _, anchor = target.partition("#")
            there = (file.parent / path).resolve() if path else file
            assert there.exists(), f"{file.name}: {target}"
            assert there.is_relative_to(ROOT), f"{file.name}: {target}"
            if anchor and there.suffix == ".md":
                assert anchor in anchors(there.read_text()), f"{file.name}: {target}"


def test_links_elsewhere_are_addresses() -> None:
    """They are listed, not asked: tests need no network."""
    listed = {each for file in TEXTS for each in docs_site.links(file.read_text()) if "://" in each}
    assert listed
    assert [each for each in sorted(listed) if not re.match(r"https?://[\w.-]+\.\w+(/|$)", each)] == []


class _Page(HTMLParser):
    """The ids, links and loaded things of a page of the site."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids |= {given[name] or "" for name in ("id", "name") if name in given}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"] or "")
        elif tag in ("script", "img", "iframe") and given.get("src"):
            self.loads.append(given["src"] or "")
        elif tag == "link" and given.get("href") and given.get("rel") not in ("canonical", "prev", "next"):
            self.loads.append(given["href"] or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it, elsewhere."""
    if sys.version_info < (3, 11):
        pytest.skip("zensical, which builds the site, needs Python 3.11")
    folder = tmp_path_factory.mktemp("site")
    return docs_site.build(folder / "build", folder / "site")


def test_the_site_leads_nowhere_wrong_and_asks_nobody(site: Path) -> None:
    made = {file: _Page(file.read_text(encoding="utf-8")) for file in site.rglob("*.html")}
    assert len(made) > len(PAGES)
    for file, each in made.items():
        for target in each.loads:
            assert not re.match(r"(https?:)?//", target), f"{file.name} loads {target}"
        for target in [*each.links, *each.loads]:
            if re.match(r"(https?:|mailto:|data:|javascript:)", target) or file.name == "404.html":
                continue
            path, _, anchor = target.partition("#")
            there = (file.parent / unquote(path.partition("?")[0])).resolve() if path else file
            there = there / "index.html" if there.is_dir() else there
            assert there.exists(), f"{file.relative_to(site)}: {target}"
            if anchor and there in made:
                assert unquote(anchor) in made[there].ids, f"{file.relative_to(site)}: {target}"
        text = file.read_text(encoding="utf-8")
        assert str(ROOT) not in text
        assert str(site.parent) not in text


def test_every_page_is_in_the_site_and_its_search(site: Path) -> None:
    index = (site / "search.json").read_text(encoding="utf-8")
    for file in PAGES:
        name = file.relative_to(ROOT / "docs").with_suffix(".html").as_posix()
        assert (site / name).exists()
        assert name in index


def test_the_site_is_searched_from_the_file_system(site: Path, need: Callable[[str, str], None]) -> None:
    """In Chromium, with nobody serving it and nobody else asked."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None or shutil.which("node") is None:
        need("Chromium and Node", "apt install chromium nodejs npm")
    if not (ROOT / "web" / "node_modules" / "playwright-core").exists():
        need("playwright-core", "make web")
    script = Path(__file__).with_name("docs_search.mjs")
    for page_of_it in ("index.html", "migrating/marquez.html"):
        told = run(
            ["node", str(script), str(ROOT / "web"), str(site / page_of_it), str(browser), "drainer"], site
        )
        seen = json.loads(told)
        assert seen["results"] > 5
        assert seen["asked"] == []
        assert seen["scheme"] == "slate"


def test_a_link_that_leads_nowhere_breaks_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "index.md").write_text("# A\n\n## B\n\n[b](b.md)\n")
    (folder / "b.md").write_text("# B\n\n[a](index.md#nowhere)\n")
    monkeypatch.setattr(docs_site, "DOCS", folder)
    with pytest.raises(SystemExit):
        docs_site.build(tmp_path / "build", tmp_path / "site")


# --- examples in docstrings


MODULES = [
    each.name
    for each in walk_packages(headwater.__path__, "headwater.")
    # what runs when it is imported: the command line, and what Alembic calls
    if not each.name.endswith("__main__") and not each.name.startswith("headwater.store.migrations.")
]


def examples(name: str) -> list[doctest.DocTest]:
    module = import_module(name)
    return [each for each in doctest.DocTestFinder(exclude_empty=True).find(module) if each.examples]


@pytest.mark.parametrize("name", ["headwater", *MODULES])
def test_examples_in_docstrings(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # an example need not close what it opens
        result = doctest.testmod(import_module(name), optionflags=doctest.ELLIPSIS)
        gc.collect()
    assert result.failed == 0


def test_there_are_examples() -> None:
    assert sum(len(examples(name)) for name in MODULES) >= 20
