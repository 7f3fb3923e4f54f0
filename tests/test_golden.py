"""Golden cases: one folder tells a flow, and the same case runs through every stage there is.

tests/golden/<case>/events.jsonl   a stream as its producers send it (the shop's stands in the package: it is the demo)
tests/golden/<case>/graph.json     every edge and every column relation that must come of it, nothing else

`HEADWATER_GOLDEN=write pytest tests/test_golden.py` writes graph.json anew: read the difference before you keep it.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import httpx
import pytest

from headwater.cli.demo import recorded
from headwater.ingest import ingest, ingest_all, replay
from headwater.query.lineage import lineage
from headwater.store import Store, open_store
from serving import serving

GOLDEN = Path(__file__).parent / "golden"
CASES = sorted(path.name for path in GOLDEN.iterdir() if path.is_dir())
WRITE = os.environ.get("HEADWATER_GOLDEN") == "write"


def events(case: str) -> list[bytes]:
    path = GOLDEN / case / "events.jsonl"
    return list(recorded()) if case == "shop" else [line for line in path.read_bytes().splitlines() if line]


def graph(store: Store) -> dict[str, Any]:
    """Everything in the store, as lists a person can read and compare."""
    edges, columns = set(), set()
    for kind in ("jobs",):
        for (reference,) in store.dump()[kind]:
            namespace, name = reference.split("\n", 1)
            model = lineage(store, f"job:{namespace}:{name}", depth=1, columns=True)
            edges |= {f"{each['from']} -> {each['to']}" for each in model["edges"]}
            columns |= {
                f"{each['from']['dataset']}.{each['from']['field']} -> {each['to']['dataset']}.{each['to']['field']}"
                f" {','.join(each['kinds'])}"
                for each in model["columns"]
            }
    return {"edges": sorted(edges), "columns": sorted(columns)}


def expected(case: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((GOLDEN / case / "graph.json").read_text())
    return found


@pytest.mark.parametrize("case", CASES)
def test_ingested_as_it_came(case: str) -> None:
    store = open_store("memory:")
    assert not ingest(store, events(case)).rejected
    if WRITE:
        (GOLDEN / case / "graph.json").write_text(
            json.dumps(graph(store), indent=1, ensure_ascii=False) + "\n"
        )
    assert graph(store) == expected(case)
    replay(store)
    assert graph(store) == expected(case)
    store.close()


@pytest.mark.parametrize("case", CASES)
def test_shuffled_doubled_and_cut(case: str) -> None:
    store = open_store("memory:")
    messy = events(case) * 2
    random.Random(case).shuffle(messy)
    assert list(ingest_all(store, messy, size=3))
    assert graph(store) == expected(case)
    store.close()


@pytest.mark.parametrize("case", CASES)
def test_over_http(case: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/x.db"
    with serving(url) as server:
        for line in events(case)[::-1]:
            answer = httpx.post(
                f"{server.url}/api/v1/lineage",
                content=line,
                headers={"Content-Type": "application/json"},
                timeout=30,
            )
            assert answer.status_code == 201
    store = open_store(url)
    assert graph(store) == expected(case)
    store.close()
