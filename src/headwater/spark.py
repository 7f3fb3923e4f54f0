"""spark: a Spark session -> its lineage, captured by a probe without a jar and handed to the emitter.

    import headwater.spark
    lineage = headwater.spark.install(spark)

The probe is Java source, compiled by Spark's own Janino inside the driver. It writes records into a bounded queue; one
background thread here reads and interprets them. Neither the user's thread nor Spark's listener thread waits for that.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
import time
import uuid
from importlib.resources import files
from typing import Any

import msgspec

from headwater import config
from headwater.capture.spark import State, interpret
from headwater.capture.spark.facets import normalized
from headwater.emitter import Emitter
from headwater.errors import ConfigError
from headwater.guard import guard
from headwater.naming import scrub_mapping

_log = logging.getLogger("headwater")
_PREFIXES = (
    "spark.sql.catalog",
    "spark.sql.warehouse",
    "spark.sql.hive",
    "spark.hadoop.hive",
    "spark.master",
    "spark.app",
)
_STACK = 64 << 20  # expressions nest, and reading them recurses
_HELD = 0.4


class Capture:
    """What `install` answers: the running capture of one application."""

    def __init__(self, probe: Any, state: State, emitter: Emitter) -> None:
        self._probe, self._state, self._emitter = probe, state, emitter
        self._held: list[dict[str, Any]] = []
        self._marks: dict[int, threading.Event] = {}
        self._done, self._ended = threading.Event(), False
        self._fatal: str | None = None
        self._lock = threading.Lock()
        before = threading.stack_size(_STACK)
        try:
            self._thread = threading.Thread(target=self._run, name="headwater-spark", daemon=True)
            self._thread.start()
        finally:
            threading.stack_size(before)

    def flush(self, timeout: float = 30.0) -> bool:
        """Wait until everything that the listener bus has delivered is told; whether it was in time."""
        if self._done.is_set():
            return True
        number, seen = time.monotonic_ns(), threading.Event()
        self._marks[number] = seen
        with guard("asking the probe to flush"):
            self._probe.mark(number)
            return seen.wait(timeout)
        return False

    def close(self) -> None:
        """Tell what is left, and the application's end where Spark did not; more than once is no fault."""
        with self._lock:
            if self._done.is_set():
                return
            self._done.set()
        self._thread.join(15)
        if not self._ended:
            self._handle({"kind": "app_end", "time": int(time.time() * 1000), "error": self._fatal})
        with guard("closing the transport"):
            self._emitter.close()
        _forget(self)

    def refused(self, record: dict[str, Any]) -> None:
        """An error seen in Python; held until the listener bus had its say: an execution may tell the same one."""
        self._held.append(record)

    def fatal(self, error: str) -> None:
        """The driver program ends by an error."""
        self._fatal = error

    def _run(self) -> None:
        sys.setrecursionlimit(max(sys.getrecursionlimit(), 20_000))
        while True:
            text: str | None = None
            gone = True
            with guard("reading the probe"):
                text = self._probe.take(200)
                gone = False
            if gone:
                return
            if text is None:
                self._release()
                if self._done.is_set():
                    return
                continue
            for line in text.split("\n"):
                with guard("reading a record"):
                    self._take(msgspec.json.decode(line))

    def _take(self, record: dict[str, Any]) -> None:
        if record["kind"] == "mark":
            self._release(everything=True)
            self._marks.pop(record["id"]).set()
            return
        self._ended = self._ended or record["kind"] == "app_end"
        if record["kind"] == "app_end" and self._fatal:
            record["error"] = self._fatal
        self._handle(record)

    def _handle(self, record: dict[str, Any]) -> None:
        if record["kind"] == "probe_error":
            _log.warning("the probe met a fault: %s", record["error"])
            return
        with guard("capturing a query"):
            events = interpret(record, self._state)
            if events:
                self._emitter.emit_many(events)

    def _release(self, *, everything: bool = False) -> None:
        now = time.time() * 1000
        ready = [r for r in self._held if everything or self._done.is_set() or now - r["time"] > _HELD * 1000]
        self._held = [r for r in self._held if r not in ready]
        for record in ready:
            self._handle(record)


_CAPTURES: dict[str, Capture] = {}


def install(spark: Any, **options: Any) -> Capture:
    """Capture the lineage of a session's application; the same capture where it runs already.

    Args:
        spark: a SparkSession.
        options: settings, as in headwater.toml: `transport`, `namespace`, …; they go before `spark.headwater.*`.

    """
    context = getattr(spark, "_sc", None)
    if context is None or not hasattr(spark, "_jvm"):
        raise ConfigError(
            "headwater.spark.install needs a classic session: Spark Connect gives no access to the driver"
        )
    application = str(context.applicationId)
    if application in _CAPTURES:
        return _CAPTURES[application]
    conf = dict(context.getConf().getAll())
    settings = config.load(options, between=[_layer(conf)])
    state = _state(spark, context, conf, settings)
    probe = _probe(spark, context)
    capture = _CAPTURES[application] = Capture(probe, state, Emitter(settings=settings))
    capture._handle({"kind": "app_start", "time": int(context.startTime)})
    _watch(capture)
    return capture


def _layer(conf: dict[str, str]) -> config.Layer:
    """What `spark.headwater.*` and `spark.openlineage.*` say."""
    values: dict[str, Any] = {}
    for key, value in conf.items():
        if key.startswith("spark.headwater."):
            name = key.removeprefix("spark.headwater.")
            room, dot, option = name.partition(".")
            if dot:
                values.setdefault(room, {})[option] = value
            else:
                values[name] = value
    theirs = {
        key.removeprefix("spark.openlineage."): value
        for key, value in conf.items()
        if key.startswith("spark.openlineage.")
    }
    if "transport" not in values and theirs.get("transport.type"):
        kind, place = (
            theirs["transport.type"],
            theirs.get("transport.url") or theirs.get("transport.location"),
        )
        values["transport"] = f"file://{place}" if kind == "file" else place if kind == "http" else f"{kind}:"
    if "namespace" not in values and theirs.get("namespace"):
        values["namespace"] = theirs["namespace"]
    return config.layer(values, "spark.headwater")


def _state(spark: Any, context: Any, conf: dict[str, str], settings: config.Settings) -> State:
    kept = {k: v for k, v in conf.items() if k.startswith(_PREFIXES)}
    with guard("asking for the warehouse"):
        kept["spark.sql.warehouse.dir"] = str(spark.conf.get("spark.sql.warehouse.dir"))
        kept["spark.sql.catalogImplementation"] = str(spark.conf.get("spark.sql.catalogImplementation"))
    parent = None
    names = ("parentRunId", "parentJobNamespace", "parentJobName")
    told = [conf.get(f"spark.openlineage.{name}") for name in names]
    if all(told):
        parent = dict(zip(("run", "namespace", "name"), (str(each) for each in told), strict=True))
    app = conf.get("spark.openlineage.appName") or str(context.appName)
    clean = {key: str(value) for key, value in scrub_mapping(kept).items()}
    run = conf.get("spark.openlineage.applicationRunId") or _uuid7(int(context.startTime))
    return State(
        settings.namespace,
        normalized(app) or "unknown",
        run,
        version=str(spark.version),
        conf=clean,
        parent=parent,
    )


def _uuid7(ms: int) -> str:
    number = uuid.uuid4().int & ~(0xFFFFFFFFFFFF << 80) & ~(0xF << 76) & ~(0x3 << 62)
    return str(uuid.UUID(int=number | (ms & (1 << 48) - 1) << 80 | 7 << 76 | 2 << 62))


def _probe(spark: Any, context: Any) -> Any:
    jvm = spark._jvm
    source = files("headwater.capture.spark").joinpath("probe/Probe.java").read_text(encoding="utf-8")
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(source)
    probe = compiler.getClassLoader().loadClass("headwater.Probe").newInstance()
    probe.bind(context._jsc.sc())
    context._jsc.sc().addSparkListener(probe)
    return probe


def _watch(capture: Capture) -> None:
    """See errors that reach no listener, and the end of the program."""
    from pyspark.errors import AnalysisException, ParseException
    from pyspark.errors.exceptions import captured

    plain = captured.convert_exception

    def convert(e: Any) -> Any:
        error = plain(e)
        with guard("noting an error"):
            if isinstance(error, (AnalysisException, ParseException)):
                found = _statement()
                if found:  # a mere spark.table("x") that is caught is nobody's failure
                    now = int(time.time() * 1000)
                    capture.refused(
                        {
                            "kind": "refused",
                            "time": now,
                            "error": str(error),
                            "command": found[0],
                            "sql": found[1],
                        }
                    )
        return error

    captured.convert_exception = convert
    atexit.register(capture.close)
    hook = sys.excepthook

    def fatal(kind: Any, error: Any, trace: Any) -> None:
        with guard("noting the program's end"):
            capture.fatal(f"{kind.__name__}: {error}")
        hook(kind, error, trace)

    sys.excepthook = fatal


def _statement() -> tuple[str, str | None] | None:
    """The statement or write that is being run, found among the frames."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        owner, name = type(frame.f_locals.get("self")).__name__, frame.f_code.co_name
        if owner == "SparkSession" and name == "sql":
            return "sql", frame.f_locals.get("sqlQuery")
        if owner.startswith("DataFrameWriter"):
            return name, None
        frame = frame.f_back
    return None


def _forget(capture: Capture) -> None:
    for application, known in list(_CAPTURES.items()):
        if known is capture:
            del _CAPTURES[application]


def _renew() -> None:
    _CAPTURES.clear()  # the JVM and the thread are the parent's


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
