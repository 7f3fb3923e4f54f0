"""spark._driver: a session and the program around it -> a probe in its JVM, and hooks for what no listener sees."""

from __future__ import annotations

import sys
import time
from typing import Any

from headwater.guard import guard
from headwater.spark._capture import CAPTURES, close_all, live
from headwater.spark._compiled import load_probe
from headwater.spark._ending import Ending

_COMPILED: list[tuple[Any, Any]] = []
"""Gateway and class: py4j knows classes by their name, so a JVM must have one of ours."""
_HOOKED: list[str] = []


def attach(spark: Any, *, texts: bool = False, plans: bool = False) -> Any:
    """Put a probe on the listener bus of the session's application; texts of expressions and whole plans on demand."""
    context = spark._sc
    kind = next((kind for gateway, kind in _COMPILED if gateway is context._gateway), None)
    if kind is None:
        kind = load_probe(spark)
        _COMPILED[:] = [(context._gateway, kind)]
    probe = kind.newInstance()
    probe.bind(context._jsc.sc())
    probe.ask(texts, plans)
    context._jsc.sc().addSparkListener(probe)
    return probe


def hook_in() -> None:
    """See errors that reach no listener, and the end of the program: once, for every capture there will be."""
    if _HOOKED:
        return
    _HOOKED.append("done")
    from pyspark.errors.exceptions import captured

    plain = captured.convert_exception

    def convert(e: Any) -> Any:
        error = plain(e)
        with guard("noting an error"):
            _note(error)
        return error

    def fatal(error: str, *, aborted: bool = False) -> None:
        for capture in list(CAPTURES.values()):  # one whose application was just stopped as well
            capture.fatal(error, aborted=aborted)

    captured.convert_exception = convert
    Ending(fatal).watch(close_all)


def _note(error: Any) -> None:
    from pyspark.errors import AnalysisException, ParseException

    if not isinstance(error, (AnalysisException, ParseException)):
        return
    found = _statement()
    if found:  # a mere spark.table("x") that is caught is nobody's failure
        command, sql = found
        now = int(time.time() * 1000)
        for capture in live():
            capture.refused(
                {"kind": "refused", "time": now, "error": str(error), "command": command, "sql": sql}
            )


def _statement() -> tuple[str, str | None] | None:
    """The statement or write that is being run, found among the frames."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        owner, name = type(frame.f_locals.get("self")).__name__, frame.f_code.co_name
        if owner == "SparkSession" and name == "sql":
            return "sql", frame.f_locals.get("sqlQuery")
        if owner.startswith("DataFrameWriter"):
            return name, None
        frame = frame.f_back
    return None
