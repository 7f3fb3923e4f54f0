from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from gms import Gms, running

import datahub_sdk
from headwater.store import Store, open_store


@pytest.fixture(scope="session")
def sdk(need: Callable[[str, str], None]) -> Path:
    """A Python that has acryl-datahub, in an environment of its own: its dependencies do not go with ours."""
    if not datahub_sdk.PYTHON.exists():
        need("acryl-datahub in an environment of its own", "make .venvs/datahub/.ready")
    return datahub_sdk.PYTHON


@pytest.fixture(scope="session")
def wrong(sdk: Path) -> Callable[[list[dict[str, Any]]], list[tuple[dict[str, Any], str]]]:
    """`wrong(proposals)`: those that DataHub's own SDK does not take, and why."""
    return datahub_sdk.wrong


@pytest.fixture
def gms() -> Iterator[Gms]:
    """A GMS that takes what it is told to take."""
    with running() as server:
        yield server


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    """An empty store of each kind, one after the other."""
    opened = open_store(store_url)
    yield opened
    opened.close()
