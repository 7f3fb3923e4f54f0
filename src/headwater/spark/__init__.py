"""spark: a Spark session -> its lineage, captured by a probe without a jar and handed to the emitter.

    import headwater.spark
    lineage = headwater.spark.install(spark)

The probe is Java source, compiled by Spark's own Janino inside the driver. It writes records into a bounded queue; one
background thread here reads and interprets them. Neither the user's thread nor Spark's listener thread waits for that.
"""

from __future__ import annotations

import os
import platform
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from headwater import __version__, config, plugins
from headwater.capture import parents
from headwater.capture.spark import State
from headwater.capture.spark.agents import listeners
from headwater.capture.spark.extending import Extensions
from headwater.capture.spark.extension import (
    ActiveJob,
    Context,
    Dataset,
    DatasetFactory,
    Extension,
    InputDataset,
    JobEnd,
    JobStart,
    Node,
    OutputDataset,
    Rdd,
    SqlEnd,
    SqlStart,
    Stage,
    StageInfo,
)
from headwater.capture.spark.facets import normalized
from headwater.capture.spark.settings import OPTIONS, SparkSettings, read
from headwater.capture.spark.state import shown
from headwater.emitter import Emitter
from headwater.errors import ConfigError, NotInstalled
from headwater.naming import scrub_mapping
from headwater.spark._capture import CAPTURES, INHERITED, Capture, installing, warn
from headwater.spark._driver import attach, hook_in
from headwater.spark._site import hook_sites, located

__all__ = [
    "ActiveJob",
    "Capture",
    "Context",
    "Dataset",
    "DatasetFactory",
    "Extension",
    "InputDataset",
    "JobEnd",
    "JobStart",
    "Node",
    "OutputDataset",
    "Rdd",
    "SqlEnd",
    "SqlStart",
    "Stage",
    "StageInfo",
    "install",
]

_PREFIXES = (
    "spark.sql.catalog",
    "spark.sql.hive",
    "spark.hadoop.hive",
    "spark.hadoop.aws.region",
    "spark.glue",
    "spark.master",
    "spark.app",
)


def install(spark: Any, *, extensions: Iterable[Extension | type[Extension]] = (), **options: Any) -> Capture:
    """Capture the lineage of a session's application; the same capture where it runs already.

    Args:
        spark: a SparkSession.
        extensions: what else shall look at plans, jobs and stages; besides those that installed packages bring as
            entry points of group `headwater.spark_extension`.
        options: settings, as in headwater.toml: `transport`, `namespace`, …, and those of Spark alone, as
            `app_name`, `parent_run_id`, `job_tags`; they go before `spark.headwater.*`.

    Raises:
        ConfigError: a setting is wrong, or the session gives no access to its driver.

    """
    context = _context(spark)
    given = [_extension(one) for one in extensions]
    with installing():
        application = str(context.applicationId)
        known = CAPTURES.get(application)
        if known is not None and known.live:
            known.extend(given)
            return known
        conf = dict(context.getConf().getAll())
        said = read(conf, options)
        general = {name: value for name, value in options.items() if name not in OPTIONS}
        settings = config.load(general, between=said.layers)
        if settings.disabled:
            return Capture(None, None, None, None, Emitter(settings=settings))
        emitter = _emitter(settings)
        _tell(said, conf)
        state = _state(spark, context, conf, settings, said)
        shown(state)  # a wrong resolver is refused here, not on the reader's thread
        probe = attach(spark, texts=said.descriptions, plans=said.asks_for("spark.logicalPlan"))
        capture = Capture(probe, context._jsc.sc().listenerBus(), context._gateway, state, emitter)
        brought = plugins.installed("spark_extension").items()
        capture.extend(
            [*((name, lambda point=point: _made(point.load())) for name, point in brought), *given]
        )
        CAPTURES[application] = capture
        if "sourceCodeLocation" not in said.disabled_facets:
            capture.located = located
            hook_sites(spark)
        capture.start(_app_start(context, conf, said))
        hook_in()
        return capture


def _context(spark: Any) -> Any:
    """The SparkContext of a classic session that runs, in this process."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise ConfigError(
            "Spark Connect gives no access to the driver, where lineage is captured. Use a classic session (a"
            " master instead of a remote), or put OpenLineage's listener on the Connect server and let it send"
            " to a Headwater server: spark.openlineage.transport.type=http, spark.openlineage.transport.url=…"
        )
    context = getattr(spark, "_sc", None)
    if context is None or not hasattr(spark, "_jvm"):
        raise ConfigError(f"headwater.spark.install takes a SparkSession, not {type(spark).__name__}")
    if any(context._gateway is each for each in INHERITED):
        raise ConfigError("this session is of the process that this one was forked from: install it there")
    if context._jsc is None:
        raise ConfigError("this session is stopped: install the one that SparkSession.builder makes next")
    return context


def _extension(given: Extension | type[Extension]) -> tuple[str, Callable[[], Extension]]:
    kind = given if isinstance(given, type) else type(given)
    if not issubclass(kind, Extension):
        raise ConfigError(f"extensions: {given!r} is no headwater.spark.Extension")
    return kind.__qualname__, lambda: _made(given)


def _made(given: Any) -> Extension:
    made = given() if isinstance(given, type) else given
    if not isinstance(made, Extension):
        raise TypeError(f"{given!r} is no headwater.spark.Extension")
    return made


def _emitter(settings: config.Settings) -> Emitter:
    try:
        return Emitter(settings=settings)
    except NotInstalled:
        raise
    except ConfigError as fault:
        origin = settings.origins.get("transport", "")
        raise ConfigError(f"{origin}: {fault}" if origin.startswith("spark.") else str(fault)) from fault


def _tell(said: SparkSettings, conf: Mapping[str, str]) -> None:
    for text in said.warnings:
        warn(text)
    if said.unsupported:
        warn(f"these settings have no effect on Headwater: {', '.join(said.unsupported)}")
    if others := listeners(conf):
        warn(
            f"{', '.join(others)} captures this application too, so its lineage is told twice: take it out of"
            " spark.extraListeners, or start with `headwater run --replace-agents`"
        )


def _state(
    spark: Any, context: Any, conf: Mapping[str, str], settings: config.Settings, said: SparkSettings
) -> State:
    kept = {k: v for k, v in conf.items() if k.startswith(_PREFIXES)}
    if region := os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"):
        kept.setdefault("spark.hadoop.aws.region", region)
    name = normalized(said.app_name or _app_name(context, conf)) or "unknown"
    run = said.run_id or _uuid7(int(context.startTime))
    version = str(spark.version)
    shown = {key: str(value) for key, value in scrub_mapping(conf).items()}
    above = None if said.parent else parents.find()  # a task of Airflow, say
    return State(
        settings.namespace,
        name,
        run,
        version=version,
        extensions=Extensions(Context(settings.namespace, name, run, version, shown)),
        conf={key: str(value) for key, value in scrub_mapping(kept).items()},
        parent=said.parent.told(settings.namespace)
        if said.parent
        else above.parent.told()
        if above
        else None,
        root=said.root.told(settings.namespace) if said.root else above.root.told() if above else None,
        settings=said,
    )


def _app_name(context: Any, conf: Mapping[str, str]) -> str:
    """As the program says; AWS Glue makes up another for each run of a job."""
    name = str(context.appName)
    return conf.get("spark.glue.JOB_NAME", name) if name.startswith("nativespark-") else name


def _app_start(context: Any, conf: Mapping[str, str], said: SparkSettings) -> dict[str, Any]:
    details = {
        "master": str(context.master),
        "appName": str(context.appName),
        "applicationId": str(context.applicationId),
        "deployMode": conf.get("spark.submit.deployMode", "client"),
        "driverHost": conf.get("spark.driver.host"),
        "userName": str(context.sparkUser()),
        "uiWebUrl": context.uiWebUrl,
    }
    properties = {key: conf[key] for key in said.captured_properties if key in conf}
    environment = {name: os.environ[name] for name in said.environment_variables if name in os.environ}
    return {
        **({"environment": scrub_mapping(environment)} if environment else {}),
        **({"debug": _debug(context, conf)} if said.asks_for("debug") else {}),
        "kind": "app_start",
        "time": int(context.startTime),
        "details": scrub_mapping({key: value for key, value in details.items() if value}),
        "properties": scrub_mapping(properties),
    }


def _debug(context: Any, conf: Mapping[str, str]) -> dict[str, Any]:
    """What helps to find a fault, in the OpenLineage agent's words where it has some."""
    ours = {
        key: value
        for key, value in conf.items()
        if key.startswith(("spark.openlineage.", "spark.headwater."))
    }
    return {
        "classpath": {"headwaterVersion": __version__, "sparkVersion": str(context.version)},
        "system": {
            "sparkDeployMode": conf.get("spark.submit.deployMode", "client"),
            "pythonVersion": platform.python_version(),
            "javaVersion": str(context._jvm.System.getProperty("java.version")),
            "osName": platform.system(),
            "osVersion": platform.release(),
            "osArch": platform.machine(),
        },
        "config": {
            "extraListeners": conf.get("spark.extraListeners", ""),
            "extensions": conf.get("spark.sql.extensions", ""),
            "catalogClass": conf.get("spark.sql.catalog.spark_catalog", ""),
            "openLineageConfig": scrub_mapping(ours),
        },
    }


def _uuid7(ms: int) -> str:
    number = uuid.uuid4().int & ~(0xFFFFFFFFFFFF << 80) & ~(0xF << 76) & ~(0x3 << 62)
    return str(uuid.UUID(int=number | (ms & (1 << 48) - 1) << 80 | 7 << 76 | 2 << 62))
