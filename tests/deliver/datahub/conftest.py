from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
PYTHON = ROOT / ".venvs" / "datahub" / "bin" / "python"


@pytest.fixture(scope="session")
def sdk(need: Callable[[str, str], None]) -> Path:
    """A Python that has acryl-datahub, in an environment of its own: its dependencies do not go with ours."""
    if not PYTHON.exists():
        need("acryl-datahub in an environment of its own", "make .venvs/datahub/.ready")
    return PYTHON


@pytest.fixture(scope="session")
def wrong(sdk: Path) -> Callable[[list[dict[str, Any]]], list[tuple[dict[str, Any], str]]]:
    """`wrong(proposals)`: those that DataHub's own SDK does not take, and why."""

    def check(made: list[dict[str, Any]]) -> list[tuple[dict[str, Any], str]]:
        lines = "".join(json.dumps(each) + "\n" for each in made)
        program = Path(__file__).with_name("validate_proposals.py")
        done = subprocess.run([sdk, program], input=lines, capture_output=True, text=True, check=True)
        told = [json.loads(line) for line in done.stdout.splitlines()]
        assert len(told) == len(made)
        return [(each, why) for each, why in zip(made, told, strict=True) if why is not None]

    return check
