"""dlt._tracking: what dlt calls at the start and end of each step -> records -> events -> the emitter.

dlt calls in the thread that runs the pipeline. What it calls is guarded: whatever goes wrong here, the pipeline goes on.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Mapping
from typing import Any

from headwater import __version__, config
from headwater.capture import parents
from headwater.capture.code import place_of
from headwater.capture.dlt import State, interpret, packages, recording
from headwater.capture.dlt.events import run_id
from headwater.dlt import Capturing
from headwater.dlt._listening import HEARD, listen
from headwater.emitter import Emitter
from headwater.guard import guard

_LOCK = threading.RLock()
_TRACKER: list[Tracker] = []
_OWNED: dict[str, Tracker] = {}
"""Transactions by who tells of them: one tracker each, where several listen."""


class Tracker:
    """Listens to pipelines. dlt's protocol, `SupportsTracking`."""

    def __init__(self, settings: config.Settings) -> None:
        self.capturing = Capturing(**settings.rooms.get("dlt", {}))
        named = settings.origins.get("namespace", "default") != "default"
        self.state = State(
            namespace=settings.namespace if named else "dlt",
            naming=self.capturing.naming,
            adapter=__version__,
        )
        self._emitter = Emitter(settings=settings)
        self._pid = os.getpid()
        self._settings = settings
        self._retired = False

    def on_start_trace(self, trace: Any, step: str, pipeline: Any) -> None:
        """A pipeline begins something."""
        with guard("capturing a pipeline's start"):
            with _LOCK:
                if self._retired or _OWNED.setdefault(trace.transaction_id, self) is not self:
                    return
            record = {**recording.started(trace, step, pipeline), **_around()}
            events = self._tell(record)
            self._leave_will(events)

    def on_start_trace_step(self, trace: Any, step: str, pipeline: Any) -> None:
        """A step begins: there is nothing to tell yet."""

    def on_end_trace_step(
        self, trace: Any, step: Any, pipeline: Any, step_info: Any, send_state: bool
    ) -> None:
        """A step ended."""
        if not self._mine(trace):
            return
        if step.step_exception is not None:
            with guard("capturing a failed step"):
                self._tell(recording.failed(trace, step, pipeline))
        if step_info is None:
            return
        with guard(f"capturing the step {step.step}") as reading:
            self._step(trace, step, pipeline, step_info)
        if reading.fault is not None:
            with guard("telling what could not be captured"):
                self._tell(recording.missed(trace, step, pipeline, reading.fault))

    def _step(self, trace: Any, step: Any, pipeline: Any, info: Any) -> None:
        folder, columns = str(pipeline.working_dir), bool(self.capturing.columns)
        if step.step == "extract":
            sample = int(self.capturing.sample) or None
            record = recording.extracted(trace, step, pipeline, info, HEARD, sample if columns else 0)
            mine = {"run": run_id(trace.transaction_id, recording.started(trace, "", pipeline)["at"])}
            for load_id, package in record["packages"].items():
                package |= mine
                packages.keep(folder, load_id, package)
                HEARD.pop(load_id, None)
            self._tell(record)
        elif step.step == "normalize":
            known = packages.find(folder, [str(each.load_id) for each in info.load_packages])
            record = recording.normalised(trace, step, pipeline, info, known)
            for load_id, package in record["packages"].items():
                record["packages"][load_id] = {
                    **known.get(load_id, {}),
                    **package,
                    "shapes": {},
                }  # of use no more
                packages.keep(folder, load_id, record["packages"][load_id])
            self._tell(record)
        elif step.step == "load":
            record = recording.loaded(trace, step, pipeline, info)
            record["known"] = packages.find(folder, record["packages"])
            self._tell(record)
            done = [
                load_id
                for load_id, each in record["packages"].items()
                if each["state"] in ("loaded", "aborted")
            ]
            for load_id in done:
                if load_id in record["known"]:
                    packages.keep(folder, load_id, {**record["known"][load_id], "where": record["where"]})
            packages.settle(folder, done)

    def on_end_trace(self, trace: Any, pipeline: Any, send_state: bool) -> None:
        """All of it is over."""
        if not self._mine(trace):
            return
        with guard("capturing a pipeline's end"):
            planned = _planned(pipeline)
            events = self._tell({**recording.ended(trace, pipeline), "planned": planned})
            for event in events:
                self._emitter.settle(event["run"]["runId"])
        with _LOCK:
            _OWNED.pop(trace.transaction_id, None)
            if self._retired:
                self.retire()

    def retire(self) -> None:
        """Listen to no run that begins from now on, and to none at all when those under way have ended."""
        from dlt.pipeline import trace as tracing

        self._retired = True
        if self not in _OWNED.values():
            # another list: dlt may be going through this one
            tracing.TRACKING_MODULES = [each for each in tracing.TRACKING_MODULES or () if each is not self]
            atexit.unregister(self.close)
            self.close()

    def _mine(self, trace: Any) -> bool:
        return _OWNED.get(trace.transaction_id) is self

    def _tell(self, record: Mapping[str, Any]) -> list[dict[str, Any]]:
        if self._pid != os.getpid():  # a fork: its events go their own way
            self._emitter, self._pid = Emitter(settings=self._settings), os.getpid()
        with _LOCK:
            events = interpret(record, self.state)
        if events:
            self._emitter.emit_many(events)
        return events

    def _leave_will(self, events: list[dict[str, Any]]) -> None:
        """Should this process be killed, the run is told to have been aborted."""
        for event in events:
            self._emitter.will(event["run"]["runId"], {**event, "eventType": "ABORT"})

    def close(self) -> None:
        """Close the transport."""
        self._emitter.close()


def install(settings: config.Settings) -> Tracker:
    """Listen to every pipeline of this process."""
    from dlt.pipeline import trace as tracing  # makes the list of trackers

    with _LOCK:
        if _TRACKER:
            return _TRACKER[0]
        made = Tracker(settings)
        if not settings.disabled:
            listen()
            _modules(tracing).append(made)
        _TRACKER.append(made)
        atexit.register(made.close)
        return made


def _modules(tracing: Any) -> list[Any]:
    import dlt.pipeline  # noqa: F401 - it fills the list

    found: list[Any] = tracing.TRACKING_MODULES
    return found


def uninstall() -> None:
    """Stop listening."""
    with _LOCK:
        for made in _TRACKER:
            made.retire()
        _TRACKER.clear()


def collector(settings: config.Settings) -> Any:
    """A collector of progress that shows none, and tracks."""
    from dlt.common.runtime.collector import NullCollector

    listen()
    tracker = Tracker(settings)
    atexit.register(tracker.close)

    class Tracking(NullCollector):
        """Shows nothing; tells lineage."""

        on_start_trace = staticmethod(tracker.on_start_trace)
        on_start_trace_step = staticmethod(tracker.on_start_trace_step)
        on_end_trace_step = staticmethod(tracker.on_end_trace_step)
        on_end_trace = staticmethod(tracker.on_end_trace)

    made = Tracking()
    made.tracker = tracker  # type: ignore[attr-defined]
    return made


def _renew() -> None:
    global _LOCK
    _LOCK = threading.RLock()  # a thread of the parent may have held it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


def _around() -> dict[str, Any]:
    """The run that this one is part of, and the program it is."""
    told: dict[str, Any] = {}
    above = parents.find()
    if above is not None:
        told["parent"] = {
            "run": {"runId": above.parent.run},
            "job": {"namespace": above.parent.namespace, "name": above.parent.name},
            "root": {
                "run": {"runId": above.root.run},
                "job": {"namespace": above.root.namespace, "name": above.root.name},
            },
        }
    nominal = os.environ.get("AIRFLOW_CTX_LOGICAL_DATE") or os.environ.get("AIRFLOW_CTX_EXECUTION_DATE")
    if nominal:
        told["nominal"] = nominal
    if (site := _site()) is not None:
        told["code"] = place_of(*site)
    return told


def _site() -> tuple[str, int] | None:
    """The line of the program that runs the pipeline, below dlt's frames and ours; a cell of a notebook is no file."""
    import dlt

    frame: Any = sys._getframe(1)
    homes = tuple(os.path.dirname(os.path.abspath(str(each))) for each in (dlt.__file__, __file__))
    while frame is not None and os.path.abspath(frame.f_code.co_filename).startswith(homes):
        frame = frame.f_back
    file = os.path.abspath(frame.f_code.co_filename) if frame is not None else ""
    return (file, frame.f_lineno) if os.path.isfile(file) else None


def _planned(pipeline: Any) -> list[str]:
    """The tables that the pipeline's schema has, whether or not anything was loaded."""
    found: set[str] = set()
    with guard("reading the pipeline's schema"):
        for name in pipeline.schema_names:
            found.update(pipeline.schemas[name].data_table_names())
    return sorted(found)
