"""One Spark session for the pipeline's tests; jars for those that need them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater import pipeline


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, need: Any) -> Iterator[Any]:
    import shutil

    if shutil.which("java") is None:
        need("Java", "apt install openjdk-17-jre-headless")
    folder: Path = tmp_path_factory.mktemp("spark")
    session = pipeline.open_session(
        "local[2]",
        {
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.local.dir": str(folder / "local"),
            "spark.sql.shuffle.partitions": "2",
            "spark.driver.memory": "1g",
        },
    )
    yield session
    session.stop()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """PySpark leaves the sockets over which it collects to the garbage collector: not our fault to report."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))
