"""Items with a value of its own at every leaf -> where each is found again in the destination, and what the lineage told."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from telling import Told, pairs

import dlt
import headwater.dlt
from headwater.capture.dlt.leaves import shown


def values(item: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Each value as text, and the path it stands at."""
    if isinstance(item, dict):
        for key, inner in item.items():
            yield from values(inner, (*path, key))
    elif isinstance(item, list):
        for inner in item:
            yield from values(inner, (*path, None))
    elif item is not None:
        yield str(item).strip("se"), path


def found(file: Path, dataset: str, sentinels: dict[str, str]) -> set[tuple[str, str, str]]:
    """(table, column, path) of every value that is found again."""
    out: set[tuple[str, str, str]] = set()
    with duckdb.connect(str(file)) as base:
        tables = base.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = ?", [dataset]
        ).fetchall()
        for (table,) in tables:
            if table.lower().startswith("_dlt"):
                continue
            rows = base.execute(f'SELECT * FROM "{dataset}"."{table}"')
            names = [each[0] for each in rows.description]
            for row in rows.fetchall():
                for column, value in zip(names, row, strict=True):
                    text = str(value)
                    for sentinel, path in sentinels.items():
                        if sentinel in text:
                            out.add((table, column, path))
    return out


def loaded(
    data: Any,
    naming: str,
    nesting: int | None,
    monkeypatch: pytest.MonkeyPatch,
    cells: dict[str, str] | None = None,
) -> tuple[set[Any], set[Any], set[Any]]:
    """Run it -> what the destination holds, what the lineage tells, and which columns are JSON."""
    folder = Path(tempfile.mkdtemp(prefix="hwdlt"))
    try:
        with monkeypatch.context() as patched:
            patched.setenv("SCHEMA__NAMING", naming)
            headwater.dlt.uninstall()
            headwater.dlt.install(transport=f"file://{folder}/events.jsonl")
            pipeline = dlt.pipeline(
                "shapes",
                destination=dlt.destinations.duckdb(str(folder / "x.duckdb")),
                dataset_name="raw",
                pipelines_dir=str(folder / "pipelines"),
            )
            pipeline.run(dlt.resource(data, name="things", max_table_nesting=nesting))
        sentinels = cells or {value: shown(path) for item in data for value, path in values(item)}
        end = Told(folder / "events.jsonl").end()
        told = {(table, column, field) for table, column, _, field in pairs(end)}
        schema = end["outputs"][0]["name"].rpartition(".")[0] if end["outputs"] else "raw"
        of_json = {
            (out["name"].rpartition(".")[2], field["name"])
            for out in end["outputs"]
            for field in out["facets"]["schema"]["fields"]
            if field["type"] == "json"
        }
        return found(folder / "x.duckdb", schema, sentinels), told, of_json
    finally:
        headwater.dlt.uninstall()
        shutil.rmtree(folder, ignore_errors=True)
