"""spark._compiled: the probe's source and a session -> its class in that JVM, compiled once for each Spark and then kept.

Compiling takes Janino half a second in a JVM that has just started. So the classes are kept in the user's cache
directory, as Python keeps its own: by a digest of the source, of Spark and of its class path, readable and writable for
their owner alone. Where they cannot be kept, or are damaged, the source is compiled again.
"""

from __future__ import annotations

import hashlib
import os
import stat
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from headwater.errors import ConfigError
from headwater.guard import guard

_NAME = "headwater.Probe"
_KEPT = 16


class _Classes(msgspec.Struct, frozen=True):
    digest: bytes
    code: dict[str, bytes]


def load_probe(spark: Any) -> Any:
    """The class of the probe, ready in the session's JVM."""
    from py4j.java_gateway import JavaPackage  # type: ignore[import-untyped]

    jvm = spark._jvm
    if isinstance(jvm.org.codehaus.janino.SimpleCompiler, JavaPackage):
        raise ConfigError(
            "this Spark has no Janino, which compiles the probe: put the janino and commons-compiler jars of its"
            " release back into SPARK_HOME/jars, or name them with spark.jars"
        )
    source = files("headwater.capture.spark").joinpath("probe/Probe.java").read_text(encoding="utf-8")
    above = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    place = None
    with guard("looking for the compiled probe"):
        place = _place(source, spark)
        if (kept := _read(place)) is not None:
            code = jvm.java.util.HashMap()
            for name, each in kept.items():
                code.put(name, each)
            loader = jvm.org.codehaus.commons.compiler.util.reflect.ByteArrayClassLoader(code, above)
            return loader.loadClass(_NAME)
    compiler = _compile(spark, source, above)
    with guard("keeping the compiled probe"):
        if place is not None:
            _write(place, {str(name): bytes(each) for name, each in dict(compiler.getBytecodes()).items()})
    return compiler.getClassLoader().loadClass(_NAME)


def _compile(spark: Any, source: str, above: Any) -> Any:
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

    compiler = spark._jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(above)
    try:
        compiler.cook(source)
    except Py4JJavaError as fault:
        why = str(fault.java_exception).partition("\n")[0]
        raise ConfigError(f"the probe does not compile on Spark {spark.version}: {why}") from fault
    return compiler


def _place(source: str, spark: Any) -> Path:
    """The file of what this source compiles to here: other jars, other classes."""
    said = [spark._jvm.System.getProperty(name) for name in ("java.class.path", "java.vm.version")]
    digest = hashlib.sha256("\n".join([source, str(spark.version), *map(str, said)]).encode()).hexdigest()
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(cache) / "headwater" / "probe" / digest[:32]


def _read(place: Path) -> dict[str, bytes] | None:
    """The classes that are kept; none where somebody else could have written them."""
    if not place.exists():
        return None
    for each in (place, place.parent):
        found = each.stat()
        if found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return None
    try:
        kept = msgspec.msgpack.decode(place.read_bytes(), type=_Classes)
    except msgspec.DecodeError:
        return None
    return kept.code if kept.digest == _digest(kept.code) and _NAME in kept.code else None


def _write(place: Path, code: dict[str, bytes]) -> None:
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    half = place.with_name(f".{place.name}.{os.getpid()}")
    half.touch(mode=0o600)
    half.write_bytes(msgspec.msgpack.encode(_Classes(_digest(code), code)))
    half.replace(place)
    known = sorted(place.parent.glob("[0-9a-f]*"), key=lambda each: each.stat().st_mtime)
    for old in known[:-_KEPT]:
        old.unlink(missing_ok=True)


def _digest(code: dict[str, bytes]) -> bytes:
    made = hashlib.sha256()
    for name in sorted(code):
        made.update(name.encode() + b"\n" + len(code[name]).to_bytes(8, "big") + code[name])
    return made.digest()
