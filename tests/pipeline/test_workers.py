"""Spark's Python workers: what they would read again before each task is let go, and is found again where it is needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from zipimport import zipimporter

import pyarrow as pa
import pytest

from headwater.pipeline._workers import _run, frame_of, over_arrow


def test_a_worker_begins_a_task_without_archives(spark: Any) -> None:
    def search(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Look for what is nowhere, and so into each archive; a worker from a test before may have let them go."""
        from importlib.util import find_spec

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"found": pa.array([find_spec("hw_nowhere") is not None])})

    def archives(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """How many archives the worker looks into, when a task begins."""
        import sys
        from zipimport import zipimporter

        for _ in batches:
            count = sum(isinstance(finder, zipimporter) for finder in sys.path_importer_cache.values())
            yield pa.RecordBatch.from_pydict({"archives": pa.array([count], pa.int64())})

    frame = spark.range(0, 8, 1, 8)
    frame.mapInArrow(search, "found boolean").collect()
    plain = frame.mapInArrow(archives, "archives bigint").collect()
    assert max(row[0] for row in plain) > 0, "Spark no longer has them: then over_arrow can go"
    assert {row[0] for row in over_arrow(frame, archives, "archives bigint").collect()} == {0}


def test_what_an_archive_holds_is_imported_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        for name in ("hw_first", "hw_second"):
            archive.writestr(f"{name}.py", "value = 7")
    monkeypatch.syspath_prepend(str(tmp_path / "packed.zip"))
    import hw_first  # type: ignore[import-not-found]

    assert isinstance(sys.path_importer_cache[str(tmp_path / "packed.zip")], zipimporter)
    list(_run(iter, []))  # type: ignore[arg-type]
    assert str(tmp_path / "packed.zip") not in sys.path_importer_cache
    import hw_second  # type: ignore[import-not-found]

    assert hw_first.value == hw_second.value == 7


def test_rows_are_handed_over_without_workers(spark: Any) -> None:
    schema = "`a.b` string, c bigint, d binary, e boolean"
    rows = [("x", 1, b"\xff", True), (None, None, None, None)]
    for each in (rows, []):
        frame, plain = frame_of(spark, each, schema), spark.createDataFrame(each, schema)
        assert (frame.schema, frame.collect()) == (plain.schema, plain.collect())
        assert "PythonRDD" in plain.rdd._jrdd.rdd().toDebugString(), (
            "Spark does so for lists, too: then frame_of can go"
        )
        assert "PythonRDD" not in frame._jdf.queryExecution().toRdd().toDebugString()


ALONE = """
import json, sys
from headwater import pipeline
from test_workers import watching
spark = pipeline.open_session("local[2]", {"spark.ui.enabled": "false"}, alone=True)
print(json.dumps([list(row) for row in spark.range(0, 4, 1, 4).mapInArrow(watching(), "pandas boolean, ours boolean").collect()]))
spark.stop()
"""


def watching() -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function that goes to workers as it is: they cannot import this file."""

    def loaded(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Whether a worker that has made an array has loaded pandas for it, and had this package before its first task."""
        import sys

        for _ in batches:
            ours = pa.array(["headwater.pipeline" in sys.modules])
            yield pa.RecordBatch.from_pydict({"pandas": pa.array(["pandas" in sys.modules]), "ours": ours})

    return loaded


def test_workers_of_the_pipeline_alone_begin_with_all_they_need_and_nothing_else(spark: Any) -> None:
    plain = spark.range(0, 4, 1, 4).mapInArrow(watching(), "pandas boolean, ours boolean").collect()
    assert any(row.pandas for row in plain), "pyarrow no longer loads it: then the daemon need not hide it"
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", ALONE],
        env={**os.environ, "PYTHONPATH": path, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == [[False, True]] * 4
