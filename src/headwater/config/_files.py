"""config._files: variables and places -> the configuration files that exist, as tables."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from headwater.errors import ConfigError


def find(environ: Mapping[str, str], variable: str, cwd: Path, places: tuple[Path, ...]) -> Path | None:
    """The file a variable names, else the first of the places that has one."""
    if named := environ.get(variable):
        path = cwd / Path(named).expanduser()
        if named.lstrip().startswith("{") or not path.is_file():  # people put JSON there, keys and all
            raise ConfigError(f"{variable}: names no file; it must be the path of one")
        return path
    return next((place for place in places if place.is_file()), None)


def read(path: Path, problems: list[str], *, theirs: bool = False) -> Mapping[str, Any]:
    """The table in a TOML or YAML file; what hinders is added to `problems`.

    That of an OpenLineage client (`theirs`) is YAML, of which JSON is a part, whatever it is called.
    """
    try:
        text = path.read_text(encoding="utf-8")
        if not theirs and path.suffix not in (".yml", ".yaml"):
            return dict(import_module("tomllib" if sys.version_info >= (3, 11) else "tomli").loads(text))
        import yaml  # only for those who have such a file

        try:
            values = yaml.safe_load(text) or {}
        except yaml.YAMLError as fault:
            mark = getattr(fault, "problem_mark", None)  # its own message quotes the line, keys and all
            where = f"line {mark.line + 1}: " if mark else ""
            raise ValueError(f"{where}{getattr(fault, 'problem', None) or 'is no YAML'}") from None
        if not isinstance(values, Mapping):
            raise ValueError("is no table of settings")
        return values
    except (OSError, ValueError) as fault:
        problems.append(f"{path.name}: cannot be read: {fault}")
        return {}


def label(path: Path, cwd: Path) -> str:
    """A file as people call it: by its name in the working directory, else by its path."""
    return path.name if path.parent in (cwd, Path()) else str(path)


def user_dir(environ: Mapping[str, str], what: str, home: Path) -> Path:
    """Headwater's own directory among the user's CONFIG or STATE."""
    usual = {"CONFIG": home / ".config", "STATE": home / ".local" / "state"}[what]
    return Path(environ.get(f"XDG_{what}_HOME") or usual) / "headwater"


def home_dir(environ: Mapping[str, str]) -> Path:
    """The user's home, or a temporary directory for a user who has none."""
    try:
        return Path(environ.get("HOME") or Path.home())
    except RuntimeError:  # a container's nameless user
        return Path(tempfile.gettempdir())
