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
from pathlib import Path
from typing import Any
from urllib.parse import quote

from headwater.guard import guard
from headwater.naming import scrub
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
    return {**record, "site": _place(found[1], found[2])}


def _place(file: str, line: str) -> dict[str, str]:
    """What the sourceCodeLocation facet tells."""
    root, told = _checkout(os.path.dirname(file))
    if root is None:
        return {"type": "file", "url": f"file://{quote(file)}#L{line}", "path": file}
    path = os.path.relpath(file, root).replace(os.sep, "/")
    web, version = told.get("repoUrl", ""), told.get("version")
    url = (
        f"{web}/blob/{version}/{quote(path)}"
        if web.startswith("http") and version
        else f"file://{quote(file)}"
    )
    return {"type": "git", "url": f"{url}#L{line}", "path": path, **told}


@functools.lru_cache(maxsize=256)
def _checkout(folder: str) -> tuple[str | None, dict[str, str]]:
    """The git checkout that a folder is part of, and what its files say; git itself is not run."""
    for root in (Path(folder), *Path(folder).parents):
        if (root / ".git").exists():
            with guard("reading a git checkout"):
                return str(root), _head(root / ".git")
    return None, {}


def _head(git: Path) -> dict[str, str]:
    if git.is_file():  # of a worktree or a submodule
        git = (git.parent / git.read_text("utf-8").removeprefix("gitdir:").strip()).resolve()
    shared = git / "commondir"
    common = (git / shared.read_text("utf-8").strip()).resolve() if shared.exists() else git
    head = (git / "HEAD").read_text("utf-8").strip()
    told: dict[str, str] = {}
    if head.startswith("ref:"):
        name = head.removeprefix("ref:").strip()
        told["branch"] = name.removeprefix("refs/heads/")
        head = _commit(git, common, name)
    if re.fullmatch(r"[0-9a-f]{40,64}", head):
        told["version"] = head
    if (common / "config").exists() and (url := _remote((common / "config").read_text("utf-8"))):
        told["repoUrl"] = url
    return told


def _commit(git: Path, common: Path, name: str) -> str:
    for place in (git / name, common / name):
        if place.is_file():
            return place.read_text("utf-8").strip()
    packed = common / "packed-refs"
    lines = packed.read_text("utf-8").splitlines() if packed.exists() else []
    return next((line.split(" ")[0] for line in lines if line.endswith(f" {name}")), "")


def _remote(config: str) -> str | None:
    """The address of `origin`, as a browser takes it, without who may push."""
    found = re.search(
        r'^\[remote "origin"\]\s*\n(?:\s+.*\n)*?\s+url\s*=\s*(\S+)', config + "\n", re.MULTILINE
    )
    if not found:
        return None
    url = scrub(found[1]).removesuffix("/").removesuffix(".git")
    if short := re.fullmatch(r"(?:ssh://)?(?:[\w.-]+@)?([\w.-]+\.[a-z]+)(?::\d+/|[:/])(?!/)(.+)", url):
        return f"https://{short[1]}/{short[2]}"
    return url
