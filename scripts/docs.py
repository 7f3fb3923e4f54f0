"""docs: the code -> docs/cli.md and the made parts of other pages, the same on every machine; and the site.

python scripts/docs.py          write what has changed
python scripts/docs.py site     the same, then build the site

A made part stands between `<!-- made: NAME -->` and `<!-- end -->`; PARTS says who makes it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import docs_http
import docs_modules
import docs_site
import docs_sizing
import typer.main

from headwater import config, migrating
from headwater.cli import build_app

ROOT = Path(__file__).parents[1]
WIDTH = 100
MADE = re.compile(r"(<!-- made: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
HEAD = """\
# Commands

Written by `make docs` from `--help`; a test keeps it so. Data goes to stdout, progress and faults to stderr. Read
commands ask `--url`, else `--store`, else the server that `HEADWATER_URL` names, else the configured store.
`headwater --install-completion` adds completion to your shell.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | a fault |
| 2 | wrong use, or a wrong setting |
| 3 | not found |
| 4 | unreachable |
| 5 | some input was refused |
| 6 | a gate tripped: `--fail-over`, `--fail-on` |
| 130 | interrupted |
"""


def commands() -> dict[str, Any]:
    """Every command by its full name: `headwater`, `headwater store`, `headwater store copy` …"""
    found: dict[str, Any] = {}

    def walk(name: str, command: Any) -> None:
        found[name] = command
        for inner, each in getattr(command, "commands", {}).items():
            walk(f"{name} {inner}", each)

    walk("headwater", typer.main.get_command(build_app()))
    return found


def options(command: Any) -> list[str]:
    """The options and arguments of a command, as they are written."""
    return [
        "/".join(each.opts) if each.param_type_name == "option" else each.name.upper()
        for each in command.params
        if each.name not in ("install_completion", "show_completion", "help")
    ]


def help_of(name: str, command: Any) -> str:
    """What `--help` prints, at a fixed width and without what depends on the shell in use."""
    command.params = [
        each for each in command.params if each.name not in ("install_completion", "show_completion")
    ]
    settings = {**command.context_settings, "help_option_names": ["-h", "--help"]}
    settings.update(terminal_width=WIDTH, max_content_width=WIDTH, color=False)
    with command.context_class(command, info_name=name, **settings) as context:
        text: str = command.get_help(context)
    return "\n".join(line.rstrip() for line in text.splitlines()).strip()


def cli() -> str:
    """The text of docs/cli.md."""
    parts = [HEAD]
    for name, command in commands().items():
        parts.append(f"## `{name}`\n\n```text\n{help_of(name, command)}\n```\n")
    return "\n".join(parts)


PARTS: Mapping[str, Callable[[], str]] = {
    "settings": config.document,
    "routes": docs_http.routes,
    "rooms": docs_modules.rooms,
    "modules": docs_modules.modules,
    "sizing": docs_sizing.sizing,
    **{f"migrating-{tool}": partial(migrating.document, tool) for tool in migrating.TABLES},
}
"""Name of a made part -> its text."""


def made(text: str) -> str:
    """A page with its made parts made anew."""
    return MADE.sub(lambda found: f"{found[1]}\n{PARTS[found[2]]()}\n{found[3]}", text)


def main(wanted: list[str]) -> None:
    """Write what has changed."""
    for file in [ROOT / "docs" / "cli.md", *docs_site.pages()]:
        before = file.read_text(encoding="utf-8") if file.exists() else ""
        text = cli() if file.name == "cli.md" else made(before)
        if before != text:
            file.write_text(text, encoding="utf-8")
            print(f"wrote {file.relative_to(ROOT)}")
    if "site" in wanted:
        site = docs_site.build()
        print(f"built {len(list(site.rglob('*.html')))} pages into {site.relative_to(ROOT)}/")


if __name__ == "__main__":
    main(sys.argv[1:])
