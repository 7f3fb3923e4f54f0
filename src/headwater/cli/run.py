"""cli.run: headwater run -- a command -> the same command with the lineage of its Spark sessions and dlt pipelines captured.

Its Python finds our sitecustomize first, which waits for a session to be made or dlt to be imported. The command takes the place of this
process, so its exit code, its signals and its output are its own.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from headwater import config
from headwater.capture.spark._properties import defaults
from headwater.capture.spark.agents import given, overriding, setting, without_arguments
from headwater.errors import ConfigError
from headwater.transport import open_transport


def register(app: typer.Typer) -> None:
    """Add the command."""
    rest = {"ignore_unknown_options": True, "allow_interspersed_args": False}
    app.command("run", help=HELP, context_settings=rest)(run)


HELP = """
Run a command and capture the lineage of the Spark sessions and dlt pipelines in it; nothing in it is changed.

\b
Examples:
  headwater run -- python job.py
  headwater run --transport file:///tmp/events.jsonl -- spark-submit job.py
  headwater run --replace-agents -- spark-submit --packages io.openlineage:openlineage-spark_2.13:1.53.0 job.py
  headwater run -- jupyter lab                    # every kernel it starts

The exit code is the command's own.
"""

_SUBMIT = re.compile(r"(?:spark-submit|pyspark|spark-submit2|pyspark2)(?:\.cmd)?$")
_MODE = "spark.submit.deployMode"


def run(
    command: Annotated[
        list[str], typer.Argument(metavar="-- COMMAND…", help="What to run, with its arguments.")
    ],
    transport: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Where events are sent; goes before every other setting."),
    ] = None,
    replace_agents: Annotated[
        bool,
        typer.Option(
            "--replace-agents",
            help="Take the OpenLineage and DataHub agents out of the command and of Spark's file of defaults.",
        ),
    ] = False,
) -> None:
    """Take the command's place."""
    if transport is not None:
        open_transport(
            config.load({"transport": transport}).transport or transport
        ).close()  # is it one at all?
    arguments = list(command)
    environ = dict(os.environ)
    if _SUBMIT.fullmatch(Path(arguments[0]).name):
        _refuse_cluster(arguments, environ, transport)
        if replace_agents:
            instead = overriding(_defaults(arguments, environ), given(arguments[1:]))
            said = [text for key, kept in instead.items() for text in ("--conf", f"{key}={kept}")]
            arguments = [arguments[0], *said, *without_arguments(arguments[1:])]
        _choose_python(arguments, environ)
    if replace_agents and "PYSPARK_SUBMIT_ARGS" in environ:
        kept = without_arguments(shlex.split(environ["PYSPARK_SUBMIT_ARGS"]))
        environ["PYSPARK_SUBMIT_ARGS"] = shlex.join(kept)
    _inject(environ, transport, replace=replace_agents)
    _become(arguments, environ)


def folder() -> str:
    """Where the sitecustomize stands that captures."""
    return str(files("headwater.cli").joinpath("_sitecustomize"))


def _inject(environ: dict[str, str], transport: str | None, *, replace: bool) -> None:
    path = [each for each in environ.get("PYTHONPATH", "").split(os.pathsep) if each and each != folder()]
    environ["PYTHONPATH"] = os.pathsep.join([folder(), *path])
    environ["_HEADWATER_RUN"] = json.dumps({"transport": transport, "replace": replace})
    if transport is not None:
        environ["HEADWATER_TRANSPORT"] = transport


def _refuse_cluster(arguments: Sequence[str], environ: Mapping[str, str], transport: str | None) -> None:
    told = _told(arguments, environ, _MODE, "--deploy-mode")
    if told != "cluster":
        return
    where = transport or config.load().transport or "http://host:5000"
    raise ConfigError(
        "in cluster deploy mode the driver runs elsewhere, where `headwater run` cannot reach it. Use --deploy-mode"
        " client; or install headwater[spark] in the driver's Python and submit without `headwater run`, with\n"
        f"  --conf spark.headwater.transport={where}\n"
        "and on YARN or Kubernetes one of these, where SITE is the site-packages folder of that Python:\n"
        "  --conf spark.yarn.appMasterEnv.PYTHONPATH=SITE/headwater/cli/_sitecustomize\n"
        "  --conf spark.kubernetes.driverEnv.PYTHONPATH=SITE/headwater/cli/_sitecustomize\n"
        "or, anywhere, one line in the program: import headwater.spark; headwater.spark.install(spark)"
    )


def _told(arguments: Sequence[str], environ: Mapping[str, str], key: str, flag: str) -> str | None:
    """What spark-submit will read of a setting: its arguments, else its file of defaults."""
    said = setting(arguments[1:], key, flag)
    return _defaults(arguments, environ).get(key) if said is None else said


def _defaults(arguments: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    """The settings that spark-submit takes from a file."""
    return defaults(environ, _home(arguments[0], environ), setting(arguments[1:], "", "--properties-file"))


def _home(submit: str, environ: Mapping[str, str]) -> str:
    """SPARK_HOME as spark-submit finds it: of a pip package beside its scripts, else of the release they belong to."""
    scripts = Path(shutil.which(submit, path=environ.get("PATH")) or submit).resolve().parent
    if (scripts / "find_spark_home.py").exists():
        beside = sorted(scripts.parent.glob("lib/python*/site-packages/pyspark"))
        found = importlib.util.find_spec("pyspark") if scripts == Path(sys.executable).parent else None
        return str(Path(found.origin).parent) if found and found.origin else str(next(iter(beside), scripts))
    return str(scripts.parent)


def _choose_python(arguments: Sequence[str], environ: dict[str, str]) -> None:
    """A spark-submit that pip put beside our own Python runs locally in that Python, not in any `python3`."""
    beside = os.path.dirname(shutil.which(arguments[0], path=environ.get("PATH")) or "")
    master = _told(arguments, environ, "spark.master", "--master") or "local"
    local = beside == os.path.dirname(sys.executable) and master.startswith("local")
    if local and not environ.get("PYSPARK_DRIVER_PYTHON"):
        environ.setdefault("PYSPARK_PYTHON", sys.executable)


def _become(arguments: list[str], environ: dict[str, str]) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        if os.name != "nt":
            os.execvpe(arguments[0], arguments, environ)
        done = subprocess.run(arguments, env=environ, check=False)
    except OSError as fault:
        raise ConfigError(f"cannot run {arguments[0]!r}: {fault.strerror or fault}") from None
    raise typer.Exit(done.returncode)
