"""The layout is a rule, not a wish: ranks, siblings, headers, size, names, wide excepts, light imports."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "headwater"
MAX_LINES = 400

RANK = {
    name: rank
    for rank, names in enumerate(
        (
            "errors",
            "plugins guard naming",
            "config event",
            "facts capture transport redact",
            "graph incidents emitter store migrating",
            "ingest query deliver keys",
            "pipeline work exchange",
            "serve spark dlt airflow connect",
            "demo",
            "cli",
            "__main__",
        )
    )
    for name in names.split()
}
"""A module imports only from lower ranks; equals stay apart."""

ROOT_IMPORTS = {"errors", "event", "emitter"}
"""What the root package may take its public names from."""

PROGRAMS, SURFACE = "demo.programs.", {"Event", "emit", "emit_many", "parse", "spark", "dlt"}
"""Programs that are run by themselves, as a user writes them: they know the public surface, and no more."""

FLOWS: dict[str, tuple[str, ...]] = {
    "facts": (
        "tables flows",
        "contents canonical changes",
        "derive",
        "definitions",
        "commands versions",
        "fold",
        "remains",
        "oblivion",
    ),
    "incidents": ("episodes", "history suspects"),
    "migrating": (
        "openlineage_spark datahub_agent dlt_openlineage connect_smt correlator_airflow marquez",
        "of_spark of_connector of_variables of_server",
    ),
    "query": (
        "nodes",
        "runs schemas",
        "lineage moments search show status diff events edits audit marquez incidents correlation messages",
        "impact blame",
    ),
    "query.marquez": ("nodes runs", "datasets", "jobs", "lists events stats lineage columns upstream"),
    "pipeline": (
        "session steps",
        "merge gather",
        "sources sinks settle",
        "measures",
        "reading flow",
        "upkeep rebuild",
    ),
    "serve": (
        "settings buckets journal oidc wire schemas intake bodies consume paths strict refusals",
        "metrics auth",
        "deciding",
        "faults lineage native logged editing health running marquez correlator incidents admin deliveries ui",
        "app",
    ),
    "capture.spark": (
        "deps sqltext names agents settings extension",
        "expressions relation trimming",
        "leaves",
        "columns",
        "writes",
        "ddl facets",
        "extending",
        "state",
        "telling",
        "runs",
    ),
    "capture.dlt": (
        "leaves places facets packages models plain",
        "extracted normalised reading loads",
        "columns recording",
        "outputs",
        "events",
    ),
    "capture.connect": (
        "snapshots java records templates catalogue kcql queries",
        "remembered smt fields history",
        "lifecycle",
        "chain schemas",
        "subjects places",
        "sources sinks",
        "lineage",
        "seed",
        "events",
    ),
    "deliver.datahub": (
        "options urns facets",
        "paths properties fields jobs patching",
        "datasets told",
        "measures folding",
        "reading proposing",
        "converting wire",
        "sinks groups",
        "opening comparing",
        "transport",
        "settings",
        "following",
    ),
    "transport.spool": (
        "identity breaker witness",
        "segment",
        "place",
        "dead",
        "backlog",
        "wills syncing",
        "drainer",
        "detached report news census",
        "metrics",
    ),
    "demo": ("shop means served tale programs", "place", "acts"),
    "cli": ("graph", "*"),  # `graph` is the view that others print with
}
"""Folders whose members are steps, not alternatives: each imports only from steps before its own; `*` is any other."""

WIDE = {
    "guard": "it is the one guard: what it catches it counts and logs",
    "cli": "click's errors have no common class in typer's interface; all others are raised again",
}
"""Who may catch everything without raising it again, and why."""

FORBIDDEN_NAMES = {"utils", "util", "common", "helpers", "helper", "manager", "base", "misc"}
HEAVY = (
    "pyspark",
    "pyarrow",
    "numpy",
    "sqlglot",
    "dlt",
    "litestar",
    "sqlalchemy",
    "alembic",
    "uvicorn",
    "httpx",
    "yaml",
    "rich",
    "typer",
    "prometheus_client",
)


def dotted(path: Path) -> str:
    """`facts/derive.py` -> `facts.derive`; a folder's `__init__` is the folder; the root is empty."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = sorted(PACKAGE.rglob("*.py"))
MODULES = {dotted(path) for path in FILES}
FOLDERS = {dotted(path) for path in FILES if path.name == "__init__.py"}


# --- the checks: each takes a module's dotted name and its source, and yields what is wrong


def imports(source: str) -> Iterator[str]:
    """Every module of ours that a source imports, wherever it does so: a hidden import is an import."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (
                each.name.removeprefix("headwater.")
                for each in node.names
                if each.name.startswith("headwater.")
            )
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                yield "." * node.level + (node.module or "")
            elif node.module == "headwater" or (node.module or "").startswith("headwater."):
                base = node.module.removeprefix("headwater").lstrip(".")  # type: ignore[union-attr]
                for each in node.names:
                    inner = f"{base}.{each.name}".lstrip(".")
                    yield inner if inner in MODULES or not base else base
    if any(
        isinstance(node, ast.Import) and any(a.name == "headwater" for a in node.names)
        for node in ast.walk(tree)
    ):
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == "headwater"
            ):
                yield node.attr


def check_imports(name: str, source: str) -> Iterator[str]:
    """Ranks between rooms, order or isolation within one."""
    room = name.split(".")[0]
    if room and room not in RANK:
        yield f"{room} has no rank: give it one in RANK"
        return
    for target in sorted(set(imports(source))):
        other = target.split(".")[0]
        if target.startswith("."):
            yield f"{name} imports {target}: write the whole name"
        elif target == "__version__":
            continue
        elif name.startswith(PROGRAMS):
            if target not in SURFACE:
                yield f"{name} is a user's program, so it may not import {target}"
        elif not name:
            if other not in ROOT_IMPORTS:
                yield f"the root package may not import {target}"
        elif other not in RANK:
            yield f"{name} imports {target} of the root package: take it from where it stands"
        elif other != room:
            if RANK[other] >= RANK[room]:
                yield f"{name} (rank {RANK[room]}) may not import {target} (rank {RANK[other]})"
        else:
            yield from _within(name, target)


def _within(name: str, target: str) -> Iterator[str]:
    """Inside a room: `__init__` and private modules are shared; members stay apart, or keep the folder's order."""
    if name in FOLDERS or name == target or name.startswith(f"{target}."):
        return
    mine, theirs = name.split("."), target.split(".")
    depth = next(i for i, pair in enumerate(zip(mine, theirs, strict=False)) if pair[0] != pair[1])
    folder, here, there = ".".join(mine[:depth]), mine[depth], theirs[depth]
    if there.startswith("_"):
        return
    if folder not in FLOWS:
        yield f"siblings stay apart: {name} imports {target}"
        return
    steps = {step: i for i, line in enumerate(FLOWS[folder]) for step in line.split()}
    if here.startswith("_"):
        yield f"{name} is shared, so it may not import the step {target}"
    elif not {here, "*"} & steps.keys() or not {there, "*"} & steps.keys():
        yield f"{name} or {target} has no place in FLOWS[{folder!r}]: give it one"
    elif steps.get(there, steps.get("*", 0)) >= steps.get(here, steps.get("*", 0)):
        yield f"{name} may not import {target}: it is no earlier step of {folder}"


def check_header(name: str, source: str) -> Iterator[str]:
    """The first line tells the flow, under the module's own name."""
    first = source.partition("\n")[0]
    if not re.match(rf'"""{re.escape(name or "headwater")}: \S.* <?-> \S', first):
        yield f'{name}: the first line is not """{name or "headwater"}: what comes in -> what goes out'


def check_size(name: str, source: str) -> Iterator[str]:
    lines = source.count("\n")
    if lines > MAX_LINES:
        yield f"{name} has {lines} lines, {MAX_LINES} are the most: split it"


def check_name(name: str, source: str) -> Iterator[str]:
    for part in name.split("."):
        if part.strip("_") in FORBIDDEN_NAMES or re.search(r"_v\d+$", part):
            yield f"{name}: {part!r} says nothing; name it for what it holds"


def check_excepts(name: str, source: str) -> Iterator[str]:
    """Nobody catches everything, unless to raise it again."""
    if name in WIDE:
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ExceptHandler) and _catches_all(node.type):
            last = node.body[-1]
            if not (isinstance(last, ast.Raise) and last.exc is None):
                yield f"{name}:{node.lineno} catches everything: name the errors, or use guard"
        elif _suppresses_all(node):
            yield f"{name} line {node.lineno} suppresses everything: name the errors, or use guard"


def _suppresses_all(node: ast.AST) -> bool:
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "suppress"
    return called and any(_catches_all(each) for each in node.args)


def _catches_all(caught: ast.expr | None) -> bool:
    if caught is None:
        return True
    kinds = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(isinstance(each, ast.Name) and each.id in ("Exception", "BaseException") for each in kinds)


CHECKS = (check_imports, check_header, check_size, check_name, check_excepts)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_module(check, path: Path) -> None:
    found = list(check(dotted(path), path.read_text()))
    assert not found, "\n".join(found)


def test_every_wide_except_that_is_allowed_exists() -> None:
    assert set(WIDE) <= MODULES


def test_flows_name_modules_that_exist() -> None:
    for folder, lines in FLOWS.items():
        for step in " ".join(lines).split():
            assert step == "*" or f"{folder}.{step}" in MODULES, f"FLOWS[{folder!r}]: {step}"


@pytest.mark.parametrize(
    "module",
    [
        "headwater",
        "headwater.event",
        "headwater.config",
        "headwater.naming",
        "headwater.emitter",
        "headwater.guard",
    ],
)
def test_a_host_pays_for_no_server_and_no_database(module: str) -> None:
    code = f"import sys, {module}; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


# --- the checks themselves: what is planted must be found


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("event", "def f():\n    from headwater.store import open_store\n"),
        ("event", "def f():\n    import headwater.store.sqlite\n"),
        ("event", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from headwater import ingest\n"),
        ("transport.http", "from headwater.facts import derive\n"),  # an equal
        ("serve.app", "from headwater import cli\n"),
        ("transport.http", "from headwater.transport.file import FileTransport\n"),
        ("transport.http", "from headwater.transport import file\n"),
        ("store._sql", "from headwater.store.sqlite import open_sqlite\n"),
        ("facts.tables", "from headwater.facts.fold import fold\n"),
        ("facts.commands", "from headwater.facts.versions import version_of\n"),
        ("facts.unheard_of", "from headwater.facts.tables import ref\n"),
        ("query.show", "from headwater.query import lineage\n"),
        ("cli.show", "from headwater.cli.search import run\n"),
        ("cli._ask", "from headwater.cli.graph import print_graph\n"),
        ("cli.show", "from .graph import print_graph\n"),
        ("cli.show", "from headwater import emit\n"),
        ("cli.show", "import headwater\nheadwater.emit({})\n"),
        ("demo.programs.load_shop", "from headwater.emitter import emit\n"),
        ("demo.programs.load_shop", "from headwater.demo import shop\n"),
        ("demo.tale", "from headwater.demo import acts\n"),
        ("", "from headwater.ingest import ingest\n"),
        ("attic", "x = 1\n"),
    ],
)
def test_planted_imports_are_found(name: str, source: str) -> None:
    assert list(check_imports(name, source))


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("serve.app", "import headwater\nprint(headwater.__version__)\n"),
        ("serve.app", "from headwater.serve import faults, health\n"),
        ("transport.http", "from headwater.transport import Transport\n"),
        ("transport.http", "from headwater.transport._options import flag\n"),
        ("store.migrations.env", "from headwater.store._schema import metadata\n"),
        ("cli.demo", "from headwater.cli.graph import print_graph\n"),
        ("demo.programs.load_shop", "import headwater\nheadwater.emit({})\n"),
        ("demo.programs.load_shop", "import headwater.spark\n"),
        ("facts.fold", "from headwater.facts.versions import job_versions\n"),
        ("", "from headwater import emitter\n"),
    ],
)
def test_what_is_allowed_is_not_found(name: str, source: str) -> None:
    assert list(check_imports(name, source)) == []


@pytest.mark.parametrize(
    ("check", "name", "source"),
    [
        (check_header, "event", "from __future__ import annotations\n"),
        (check_header, "event", '"""Everything about events."""\n'),
        (check_header, "transport.http", '"""http: events -> wire."""\n'),
        (check_size, "event", "x = 1\n" * (MAX_LINES + 1)),
        (check_name, "store.utils", ""),
        (check_name, "store._common", ""),
        (check_name, "event_v2", ""),
        (check_excepts, "event", "try:\n    f()\nexcept Exception:\n    pass\n"),
        (check_excepts, "event", "try:\n    f()\nexcept (ValueError, BaseException) as e:\n    log(e)\n"),
        (check_excepts, "event", "try:\n    f()\nexcept:\n    raise ValueError from None\n"),
        (check_excepts, "event", "with suppress(Exception):\n    f()\n"),
    ],
)
def test_other_planted_faults_are_found(check, name: str, source: str) -> None:
    assert list(check(name, source))


def test_a_wide_except_that_raises_again_is_allowed() -> None:
    assert list(check_excepts("event", "try:\n    f()\nexcept BaseException:\n    undo()\n    raise\n")) == []


def test_no_two_test_files_share_a_name() -> None:
    """pytest imports them by their names alone: of two it would run one, and only where both are asked for."""
    names = [path.name for path in Path(__file__).parent.rglob("test_*.py")]
    assert len(names) > 100
    assert sorted(names) == sorted(set(names))


def test_tests_begin_with_the_core_alone() -> None:
    """Environments of other Sparks and dlts have neither Postgres' driver nor the server: tests must begin there, too."""
    code = (
        "import sys\n"
        "sys.path.append('../scripts')\n"  # as pytest's own settings have it
        "for name in ('psycopg', 'sqlalchemy', 'alembic', 'litestar', 'confluent_kafka'): sys.modules[name] = None\n"
        "import conftest\n"
    )
    tests = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tests, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
