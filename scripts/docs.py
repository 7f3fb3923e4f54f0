"""docs: the code -> docs/cli.md and the reference of docs/settings.md, the same on every machine.

python scripts/docs.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer.main

from headwater import config
from headwater.cli import build_app

ROOT = Path(__file__).parents[1]
WIDTH = 100
REFERENCE = "## Reference\n\n"
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
        parts.append(f"## `{name}`\n\n```\n{help_of(name, command)}\n```\n")
    return "\n".join(parts)


def settings(text: str) -> str:
    """The text of docs/settings.md with its reference made anew."""
    head, mark, _ = text.partition(REFERENCE)
    if not mark:
        raise SystemExit("docs/settings.md has no '## Reference'")
    return head + mark + config.document()


def main() -> None:
    """Write what has changed."""
    page = ROOT / "docs" / "settings.md"
    for file, text in ((ROOT / "docs" / "cli.md", cli()), (page, settings(page.read_text()))):
        if not file.exists() or file.read_text() != text:
            file.write_text(text)
            print(f"wrote {file.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
