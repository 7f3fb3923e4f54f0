"""deliver.datahub.sinks._names: proposals and a run group -> lines of a file, and what it is called."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import blake2b

from headwater.deliver.datahub.proposing import Proposal
from headwater.deliver.datahub.wire import for_file
from headwater.errors import TooLarge


def encoded(proposals: Sequence[Proposal], most: int) -> tuple[list[bytes], dict[int, str]]:
    """The proposals as lines, and those that are too large, with why."""
    lines, refused = [], {}
    for at, made in enumerate(proposals):
        try:
            lines.append(for_file(made, most))
        except TooLarge as fault:
            refused[at] = str(fault)
    return lines, refused


def file_name(group: str) -> str:
    """A name for the file of a run group.

    >>> file_name("0197f3c6-0000-7000-8000-00000000000a")
    'datahub_0197f3c6-0000-7000-8000-00000000000a_mcps.json'
    """
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", group).strip("-.")[:80]
    if plain != group:
        plain = f"{plain}-{blake2b(group.encode(), digest_size=6).hexdigest()}"
    return f"datahub_{plain}_mcps.json"
