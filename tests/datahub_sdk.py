"""Proposals, or a topic of them -> what DataHub's own SDK says of them; it stands in an environment of its own."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

PYTHON = Path(__file__).parents[1] / ".venvs" / "datahub" / "bin" / "python"
PROGRAMS = Path(__file__).parent / "deliver" / "datahub"

Proposal = dict[str, Any]


def wrong(made: list[Proposal]) -> list[tuple[Proposal, str]]:
    """Those that DataHub's own SDK does not take, and why."""
    lines = "".join(json.dumps(each) + "\n" for each in made)
    program = PROGRAMS / "validate_proposals.py"
    done = subprocess.run([PYTHON, program], input=lines, capture_output=True, text=True, check=True)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(told) == len(made)
    return [(each, why) for each, why in zip(made, told, strict=True) if why is not None]


def records(servers: str, topic: str, registry: str, count: int) -> list[Any]:
    """So many records of a topic, as Confluent's own deserializer reads them."""
    command = [str(PYTHON), str(PROGRAMS / "read_topic.py"), servers, topic, registry, str(count)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
