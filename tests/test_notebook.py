"""The notebook of examples/ runs as it stands, against a real server, and finds its own lineage there."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from serving import serving

NOTEBOOK = Path(__file__).parents[1] / "examples" / "notebook.ipynb"
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # the kernel's sockets are left to the collector
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_the_notebook_finds_its_own_lineage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, need: Callable[[str, str], None]
) -> None:
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    if shutil.which("java") is None:
        need("Java", "apt install openjdk-17-jre-headless")
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    book = nbformat.read(NOTEBOOK, as_version=4)
    with serving(f"sqlite:///{tmp_path}/lineage.db") as server:
        monkeypatch.setenv("HEADWATER_URL", server.url)
        nbclient.NotebookClient(book, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
        shown = json.dumps([cell.get("outputs") for cell in book.cells])
        assert "/people" in shown
        assert "/cities" in shown
        found = httpx.get(f"{server.url}/hw/v1/search", params={"q": "cities"}, timeout=30).json()
        assert "spark_integration" in json.dumps(found) + shown
