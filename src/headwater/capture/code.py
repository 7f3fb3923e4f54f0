"""capture.code: a line of a program's file -> where that source is kept: its commit, branch and address where git has it."""

from __future__ import annotations

import functools
import os
import re
from pathlib import Path
from urllib.parse import quote

from headwater.guard import guard
from headwater.naming import scrub


def place_of(file: str, line: int) -> dict[str, str]:
    """What the sourceCodeLocation facet tells of a line."""
    root, told = _checkout(os.path.dirname(file))
    if root is None:
        return {"type": "file", "url": f"file://{quote(file)}#L{line}", "path": file}
    path = os.path.relpath(file, root).replace(os.sep, "/")
    web, version = told.get("repoUrl", ""), told.get("version")
    url = (
        f"{web}/blob/{version}/{quote(path)}"
        if web.startswith("http") and version
        else f"file://{quote(file)}"
    )
    return {"type": "git", "url": f"{url}#L{line}", "path": path, **told}


@functools.lru_cache(maxsize=256)
def _checkout(folder: str) -> tuple[str | None, dict[str, str]]:
    """The git checkout that a folder is part of, and what its files say; git itself is not run."""
    for root in (Path(folder), *Path(folder).parents):
        if (root / ".git").exists():
            with guard("reading a git checkout"):
                return str(root), _head(root / ".git")
    return None, {}


def _head(git: Path) -> dict[str, str]:
    if git.is_file():  # of a worktree or a submodule
        git = (git.parent / git.read_text("utf-8").removeprefix("gitdir:").strip()).resolve()
    shared = git / "commondir"
    common = (git / shared.read_text("utf-8").strip()).resolve() if shared.exists() else git
    head = (git / "HEAD").read_text("utf-8").strip()
    told: dict[str, str] = {}
    if head.startswith("ref:"):
        name = head.removeprefix("ref:").strip()
        told["branch"] = name.removeprefix("refs/heads/")
        head = _commit(git, common, name)
    if re.fullmatch(r"[0-9a-f]{40,64}", head):
        told["version"] = head
    if (common / "config").exists() and (url := _remote((common / "config").read_text("utf-8"))):
        told["repoUrl"] = url
    return told


def _commit(git: Path, common: Path, name: str) -> str:
    for place in (git / name, common / name):
        if place.is_file():
            return place.read_text("utf-8").strip()
    packed = common / "packed-refs"
    lines = packed.read_text("utf-8").splitlines() if packed.exists() else []
    return next((line.split(" ")[0] for line in lines if line.endswith(f" {name}")), "")


def _remote(config: str) -> str | None:
    """The address of `origin`, as a browser takes it, without who may push."""
    found = re.search(
        r'^\[remote "origin"\]\s*\n(?:\s+.*\n)*?\s+url\s*=\s*(\S+)', config + "\n", re.MULTILINE
    )
    if not found:
        return None
    url = scrub(found[1]).removesuffix("/").removesuffix(".git")
    if short := re.fullmatch(r"(?:ssh://)?(?:[\w.-]+@)?([\w.-]+\.[a-z]+)(?::\d+/|[:/])(?!/)(.+)", url):
        return f"https://{short[1]}/{short[2]}"
    return url
