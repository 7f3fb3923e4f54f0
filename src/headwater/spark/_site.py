"""spark._site: a record that says which line of the program acted -> the same with where that line's source is kept.

PySpark itself names the line of `collect` and its kin to Spark, which then calls the query `collect at /job.py:12`. Here
writes, statements and the other actions get the same: two short calls to the JVM around an action. A stream runs on a
thread of its own, so the line that started it is kept here, by its run. Where the file is part of a git checkout, the
commit, branch and address of it are read from its `.git`, once, on the reader's thread.
"""

from __future__ import annotations

import functools
import os
import re
import sys
import threading
from typing import Any

from headwater.capture.code import place_of
from headwater.guard import guard
from headwater.spark._capture import live

_WRITES = ("save", "saveAsTable", "insertInto", "json", "parquet", "text", "csv", "orc", "xml", "jdbc")
_WRITES_V2 = ("create", "replace", "createOrReplace", "append", "overwrite", "overwritePartitions")
_ACTIONS = ("count", "show", "isEmpty", "toLocalIterator", "checkpoint", "localCheckpoint")
_SAVES = (
    *("saveAsTextFile", "saveAsPickleFile", "saveAsSequenceFile", "saveAsHadoopFile", "saveAsHadoopDataset"),
    *("saveAsNewAPIHadoopFile", "saveAsNewAPIHadoopDataset"),
)
_STARTS = ("start", "toTable")
_STREAMS: dict[str, str] = {}
"""The line that started a streaming query, by its run."""
_MOST_STREAMS = 1_000
_SITE = re.compile(r"\S+ at (.+\.py):(\d+)")
_ONLY_READS = re.compile(
    r"\s*\(*\s*(select|from|values|show|describe|desc|explain|set|use|table)\b", re.IGNORECASE
)
_LOCATED = ("start", "job_start", "stream_progress", "stream_end")
_OURS = os.path.dirname(os.path.abspath(__file__))
_NOW = threading.local()
_HOOKED: list[str] = []


def hook_sites(spark: Any) -> None:
    """Let Spark know which line of the program writes: once in a process."""
    if _HOOKED:
        return
    _HOOKED.append("done")
    import pyspark
    from pyspark.sql import readwriter
    from pyspark.sql.streaming import readwriter as streaming

    home = os.path.dirname(os.path.abspath(pyspark.__file__))
    for kind, names in (
        (readwriter.DataFrameWriter, _WRITES),
        (readwriter.DataFrameWriterV2, _WRITES_V2),
        (_frame(), _ACTIONS),
        (pyspark.RDD, _SAVES),
        (type(spark), ("sql",)),
    ):
        for name in names:
            if name in vars(kind):
                setattr(kind, name, _sited(vars(kind)[name], name, home))
    for name in _STARTS:
        setattr(streaming.DataStreamWriter, name, _streaming(vars(streaming.DataStreamWriter)[name], home))


def _frame() -> Any:
    """The class of DataFrames: since 4.0 those of a classic session have one of their own."""
    try:
        from pyspark.sql.classic.dataframe import DataFrame as Classic
    except ImportError:
        from pyspark.sql import DataFrame

        return DataFrame
    return Classic


def _sited(plain: Any, name: str, home: str) -> Any:
    @functools.wraps(plain)
    def act(self: Any, *args: Any, **kwargs: Any) -> Any:
        if getattr(_NOW, "busy", False) or (name == "sql" and _reads(args, kwargs)):
            return plain(self, *args, **kwargs)
        context = None
        with guard("naming the line of an action"):
            if live():
                context = _context(self)._jsc
                context.setCallSite(f"{name} at {_caller(home)}")
        if context is None:
            return plain(self, *args, **kwargs)
        _NOW.busy = True
        try:
            return plain(self, *args, **kwargs)
        finally:
            _NOW.busy = False
            with guard("naming the line of an action"):
                context.setCallSite(None)

    return act


def _context(actor: Any) -> Any:
    """The SparkContext behind a session, a frame, a writer or an RDD."""
    owner = getattr(actor, "_spark", actor)
    return owner.ctx if hasattr(owner, "ctx") else owner._sc


def _streaming(plain: Any, home: str) -> Any:
    @functools.wraps(plain)
    def start(self: Any, *args: Any, **kwargs: Any) -> Any:
        query = plain(self, *args, **kwargs)
        with guard("naming the line of a stream"):
            if live():
                while len(_STREAMS) >= _MOST_STREAMS:
                    _STREAMS.pop(next(iter(_STREAMS)))
                _STREAMS[str(query.runId)] = f"{plain.__name__} at {_caller(home)}"
        return query

    return start


def _reads(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """A query alone does nothing yet; its action names its own line."""
    text = args[0] if args else kwargs.get("sqlQuery")
    return isinstance(text, str) and _ONLY_READS.match(text) is not None and "insert" not in text.lower()


def _caller(home: str) -> str:
    """The line of the program, below PySpark's frames and ours."""
    frame: Any = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((home, _OURS)):
        frame = frame.f_back
    return f"{os.path.abspath(frame.f_code.co_filename)}:{frame.f_lineno}"


def located(record: dict[str, Any]) -> dict[str, Any]:
    """A record with the place of the line that it names, where that is a file."""
    said = record.get("description") or _STREAMS.get(record.get("run", ""), "")
    found = _SITE.fullmatch(str(said)) if record["kind"] in _LOCATED else None
    if found is None or not os.path.isfile(found[1]):  # a cell of a notebook is no file
        return record
    return {**record, "site": place_of(found[1], int(found[2]))}
