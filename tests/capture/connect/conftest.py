"""Where the answers of a real cluster stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from openlineage_schemas import SHARED

RECORDED = SHARED / "spikes" / "kafka" / "recorded"


@pytest.fixture
def recorded() -> Path:
    """The folder of recorded answers; a test that asks for it is skipped where there is none."""
    if not RECORDED.is_dir():
        pytest.skip(f"no recorded answers of Connect: {RECORDED} is not there")
    return RECORDED
