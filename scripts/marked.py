"""marked: NAME=VALUE -> the processes that have it in their environment, however they were started."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


def carrying(setting: str) -> Iterator[tuple[int, str]]:
    """Their numbers and commands.

    >>> [command for _, command in carrying("NOBODY=HAS_THIS")]
    []
    """
    wanted = setting.encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                command = (folder / "cmdline").read_bytes().replace(bytes(1), b" ").decode()
                yield int(folder.name), command[:200]
        except OSError:
            continue  # it has ended meanwhile
