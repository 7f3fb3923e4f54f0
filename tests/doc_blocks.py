"""Blocks of code in Markdown -> what is wrong with each, without running it: unknown commands, options, extras, routes, settings.

A block says by its language how it is held: `python` and what stands after `<!-- run -->` is run; `bash`, `toml`, `yaml` and `json` are
checked here; `text` is a picture or an output. What can be neither run nor checked says why: `<!-- not run: needs a cluster -->`.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import docs
import docs_http
import yaml

from headwater import config, connect
from headwater.capture.connect.catalogue import with_own
from headwater.capture.spark._properties import properties
from headwater.errors import ConfigError
from headwater.migrating import check_file

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"((?:^<!-- [^\n]+ -->\n)*)^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
GROUPS = ("headwater.transport", "headwater.store", "headwater.spark_extension", "headwater.smt")
"""Entry points that packages outside may register."""
_TOOLS = re.compile(r"\s*(?:\$ )?(?:[A-Z_]+=\S* )*(?:headwater|pip|curl|make|export)\b")
_DRAWN = re.compile("[─│┌└├┐┘┤►▶→✓]")


class Anything(dict[str, str]):
    """An environment in which every variable of an example is set."""

    def __missing__(self, name: str) -> str:
        return "http://example.org"

    def get(self, name: str, other: Any = None) -> Any:
        """The same for whoever asks so."""
        return self[name]


@dataclass(frozen=True)
class Block:
    """One block of a page, and what is said before it."""

    page: str
    number: int
    mark: str
    language: str
    code: str

    @property
    def run(self) -> str | None:
        """`""` to run it as it is, `store` with a store, `server` with a server at port 5000; None: it is not run."""
        found = re.search(r"<!-- run(?:: (\w+))? -->", self.mark)
        return None if found is None else found[1] or ""

    @property
    def why_not(self) -> str:
        """Why it is neither run nor checked; one that shows a file of the live story is compared with it, where that runs."""
        found = re.search(r"<!-- (?:not run|file): (.+?) -->", self.mark)
        return found[1] if found else ""


def blocks(file: Path) -> list[Block]:
    """Every block of a page."""
    name = file.relative_to(ROOT).as_posix()
    return [
        Block(name, at, *found) for at, found in enumerate(BLOCK.findall(file.read_text(encoding="utf-8")))
    ]


def faults(block: Block, folder: Path) -> Iterator[str]:
    """What is wrong with a block that is not run; one that says why it is not held is let be."""
    if block.run is not None or (block.why_not and block.language != "py"):
        return
    check = CHECKS.get(block.language)
    if check is None:
        known = ", ".join(sorted({*CHECKS, "python"} - {""}))
        yield f"```{block.language}: say what it is, {known}; or before it <!-- not run: why -->"
        return
    try:
        yield from check(block, folder)
    except (ValueError, SyntaxError, ConfigError, yaml.YAMLError) as fault:
        yield str(fault)


def _unnamed(block: Block, folder: Path) -> Iterator[str]:
    """Without a language: commands, or a picture that was drawn; nobody can know of anything else."""
    if _TOOLS.match(block.code):
        yield from _bash(block, folder)
    elif not _DRAWN.search(block.code):
        known = ", ".join(sorted({*CHECKS, "python"} - {""}))
        yield f"say what it is, {known}; or before it <!-- not run: why -->"


def _properties(block: Block, folder: Path) -> Iterator[str]:
    """Spark's are checked; of others it is known only that they can be read."""
    if re.search(r"^spark\.", block.code, re.MULTILINE):
        file = folder / "spark-defaults.conf"
        file.write_text(block.code, encoding="utf-8")
        yield from check_file(file).problems
    elif not properties(block.code):
        yield "no properties"


def _text(block: Block, folder: Path) -> Iterator[str]:
    if re.search(r"^(\$ )?(headwater|pip|curl) \w", block.code, re.MULTILINE):
        yield "commands belong into ```bash, where they are checked; or say <!-- not run: why -->"


def _python(block: Block, folder: Path) -> Iterator[str]:
    """`py` is Python that is not run."""
    ast.parse(block.code.replace("…", "..."))
    if not block.why_not:
        yield "```py is not run: say <!-- not run: why -->, or write ```python"


def _json(block: Block, folder: Path) -> Iterator[str]:
    json.loads(block.code)
    yield from ()


def _toml(block: Block, folder: Path) -> Iterator[str]:
    table: dict[str, Any] = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli").loads(
        block.code
    )
    if "project" in table:
        for group in table["project"]["entry-points"]:
            if group not in GROUPS:
                yield f"no entry points of group {group}"
        return
    if "connector" in table:
        file = folder / "connectors.toml"
        file.write_text(block.code, encoding="utf-8")
        with_own(file)
    elif "clusters" in table:
        file = folder / "connect.toml"
        file.write_text(block.code, encoding="utf-8")
        connect.load(file, Anything())
    else:
        file = folder / "headwater.toml"
        file.write_text(block.code, encoding="utf-8")
        yield from config.check_file(file)


def _yaml(block: Block, folder: Path) -> Iterator[str]:
    table = yaml.safe_load(block.code)
    if not isinstance(table, dict) or "transport" not in table:
        return  # somebody else's: that it is YAML is all that can be known
    file = folder / "openlineage.yml"
    file.write_text(re.sub(r"\$\{\w+\}", "k", block.code), encoding="utf-8")
    yield from check_file(file).problems


# --- command lines


def _bash(block: Block, folder: Path) -> Iterator[str]:
    for words in commands(block.code):
        yield from _command(words)


def commands(code: str) -> Iterator[list[str]]:
    """The commands of a script, without variables that are set for them; parts of a pipe are commands of their own."""
    words: list[str] = []
    for line in _lines(re.sub(r"\\\n\s*", " ", code)):
        lexer = shlex.shlex(line, posix=True, punctuation_chars="&|;")
        lexer.whitespace_split, lexer.commenters = True, "#"
        for word in [*lexer, ";"]:
            if word and set(word) <= set("&|;"):
                if words:
                    yield words
                words = []
            elif words or not (re.match(r"^[A-Z_]+=", word) or word in ("export", "$")):
                words.append(word)


def _lines(code: str) -> Iterator[str]:
    """Lines of a script; one whose quotes are open goes on."""
    held = ""
    for line in code.splitlines():
        held = f"{held}\n{line}" if held else line
        try:
            shlex.split(held, comments=True)
        except ValueError:
            continue
        yield held
        held = ""
    if held:
        raise ValueError(f"a quote is open: {held}")


def _command(words: list[str]) -> Iterator[str]:
    tool, *rest = words
    if tool == "headwater":
        yield from headwater(rest)
    elif tool == "pip":
        yield from _pip(rest)
    elif tool == "curl":
        yield from _curl(rest)
    elif tool == "make":
        yield from (f"no target {each}" for each in rest if "=" not in each and each not in _targets())
    elif tool == "python" and rest and rest[0].endswith(".py"):
        yield from () if (ROOT / rest[0]).is_file() else (f"no file {rest[0]}",)
    elif not (ROOT / tool).is_file():
        yield f"{tool}: can be neither run nor checked: say <!-- run --> or <!-- not run: why -->"


def headwater(rest: list[str]) -> Iterator[str]:
    """What is wrong with the words after `headwater`."""
    known = _known()
    own = rest[: rest.index("--")] if "--" in rest else rest
    name, at = "headwater", 0
    while at < len(own) and f"{name} {own[at]}" in known:
        name, at = f"{name} {own[at]}", at + 1
    if name == "headwater" and at < len(own) and not own[at].startswith("-"):
        yield f"no command headwater {own[at]}"
        return
    if getattr(known[name], "commands", None) and at < len(own) and not own[at].startswith("-"):
        yield f"no command {name} {own[at]}"
    offered = {part for each in known[name].params for part in (*each.opts, *each.secondary_opts)}
    for word in own[at:]:
        if re.match(r"--?[a-zA-Z]", word) and word.partition("=")[0] not in {*offered, "--help", "-h"}:
            yield f"{name} has no option {word}"


@cache
def _known() -> dict[str, Any]:
    return docs.commands()


def _pip(rest: list[str]) -> Iterator[str]:
    extras = set(re.findall(r"^(\w+) = \[", (ROOT / "pyproject.toml").read_text(), re.MULTILINE))
    for word in rest:
        for extra in ",".join(re.findall(r"^headwater\[(.+)\]$", word)).split(","):
            if extra and extra not in extras:
                yield f"no extra {extra}"


def _curl(rest: list[str]) -> Iterator[str]:
    """The route must be one, with that method, and a body must be JSON."""
    method, target, body, form = "GET", "", None, False
    words = iter(rest)
    for word in words:
        if word.startswith(">"):
            break
        if word == "-X":
            method = next(words)
        elif word == "-G":
            form = True
        elif word in ("-d", "--data-urlencode", "-H"):
            value = next(words)
            if word == "-d":
                body = value
        elif not word.startswith("-"):
            target = word if "://" in word else f"http://{word}"
    if body is not None and not form:
        json.loads(body)
        method = "POST" if method == "GET" else method
    path = urlsplit(target).path
    if not any(re.fullmatch(pattern, path) and method.lower() in methods for pattern, methods in _routes()):
        yield f"no route {method} {path}"


@cache
def _routes() -> list[tuple[str, set[str]]]:
    told = docs_http.description()["paths"]
    return [(re.sub(r"\{\w+\}", "[^/]+", path), set(each)) for path, each in told.items()]


@cache
def _targets() -> set[str]:
    return set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))


CHECKS = {
    "": _unnamed,
    "properties": _properties,
    "text": _text,
    "bash": _bash,
    "sh": _bash,
    "py": _python,
    "json": _json,
    "toml": _toml,
    "yaml": _yaml,
}
"""Language -> how a block of it is checked."""
