"""cli._sitecustomize.sitecustomize: a Python that `headwater run` started -> the same, with Spark sessions and dlt captured.

Python imports this at its start, because `headwater run` put its folder on PYTHONPATH. It loads nothing of ours until a
session is made or dlt is imported, and hands on to the sitecustomize that would have been imported without it.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import os
import shlex
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))


def _options() -> dict[str, Any]:
    try:
        told = json.loads(os.environ.get("_HEADWATER_RUN") or "{}")
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _sessions(module: ModuleType) -> None:
    """Capture each session once it is made; those of one application share a capture."""
    kind = module.SparkSession
    plain = kind.__init__

    def begin(self: Any, *args: Any, **kwargs: Any) -> None:
        plain(self, *args, **kwargs)
        _capture(self)

    begin.__doc__, begin.__wrapped__ = plain.__doc__, plain  # type: ignore[attr-defined]
    kind.__init__ = begin


def _capture(session: Any) -> None:
    try:
        from headwater.guard import guard
        from headwater.spark import install
    except ImportError as fault:
        _say(
            f"this Python ({sys.executable}) cannot capture lineage: {fault}; pip install 'headwater[spark]' there"
        )
        return
    transport = _options().get("transport")
    with guard("capturing a Spark session"):
        install(session, **({"transport": transport} if transport else {}))


def _contexts(module: ModuleType) -> None:
    """Take other lineage agents out of what a SparkContext is made with, where that was asked for."""
    if not _options().get("replace"):
        return
    kind = module.SparkContext
    plain = kind._ensure_initialized

    def begin(cls: Any, instance: Any = None, gateway: Any = None, conf: Any = None) -> None:
        plain(instance, gateway=gateway, conf=_without_agents(conf, made=gateway is not None or cls._gateway))

    kind._ensure_initialized = classmethod(begin)


def _without_agents(conf: Any, made: Any) -> Any:
    """The settings of a context without agents; those of a file of defaults are overridden, until a JVM has read it."""
    try:
        from headwater.capture.spark._properties import defaults
        from headwater.capture.spark.agents import given, overriding, setting, without
        from headwater.guard import guard
    except ImportError:
        return conf
    with guard("taking out other agents"):
        said = [] if conf is None else conf.getAll()
        for key, value in said:
            kept = without(key, value)
            if kept != value:
                conf.set(key, kept)
        if made or "PYSPARK_GATEWAY_PORT" in os.environ:
            return conf
        from pyspark import SparkConf
        from pyspark.find_spark_home import _find_spark_home

        submit = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
        home = _find_spark_home()  # type: ignore[no-untyped-call,unused-ignore]
        file = defaults(os.environ, home, setting(submit, "", "--properties-file"))
        for key, kept in overriding(file, {*dict(said), *given(submit)}).items():
            conf = SparkConf(loadDefaults=False) if conf is None else conf
            conf.set(key, kept)
    return conf


def _pipelines(module: ModuleType) -> None:
    """An older dlt loads only plugins of its own: it is listened to from here."""
    try:
        from headwater.dlt.plugin import begin
    except ImportError as fault:
        _say(
            f"this Python ({sys.executable}) cannot capture dlt: {fault}; pip install 'headwater[dlt]' there"
        )
        return
    begin()


_WATCHED: dict[str, Callable[[ModuleType], None]] = {
    "pyspark.sql.session": _sessions,
    "pyspark.sql.connect.session": _sessions,
    "pyspark.core.context": _contexts,
    "pyspark.context": _contexts,  # Spark 3
    "dlt.pipeline": _pipelines,
}
_SAID: set[str] = set()


def _say(text: str) -> None:
    if text not in _SAID:
        _SAID.add(text)
        sys.stderr.write(f"headwater: {text}\n")


class _Finder:
    """Finds what the other finders find, and sees to it once it is loaded."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        after = _WATCHED.get(name)
        if after is None:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find and finder is not self else None
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader, after)
                return spec
        return None


class _Loader:
    def __init__(self, loader: Any, after: Callable[[ModuleType], None]) -> None:
        self._loader, self._after = loader, after

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        try:
            self._after(module)
        except AttributeError as fault:
            _say(f"this {module.__name__} is not as expected, its lineage is not captured: {fault}")


def _hand_on() -> None:
    """Import the sitecustomize that ours stands before."""
    others = [each for each in sys.path if os.path.abspath(each or os.curdir) != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


if __name__ == "sitecustomize":
    sys.meta_path.insert(0, _Finder())
    _hand_on()
