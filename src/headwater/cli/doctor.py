"""cli.doctor: headwater doctor -> what works on this machine, and what to do about the rest."""

from __future__ import annotations

import os
import platform
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer

import headwater
from headwater import config
from headwater.cli._ask import JsonOption, StoreOption, open_configured, print_json, server_url
from headwater.cli._checkup import REACHES, Finding, examine_server
from headwater.errors import HeadwaterError
from headwater.naming import scrub
from headwater.store import missing


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("doctor", help=HELP)(run)


HELP = """
Check this machine and these settings, or a server: what works, and what to do about the rest.

\b
Examples:
  headwater doctor
  headwater doctor https://lineage.example.org    # reaches, TLS, clock, key, room; a test event is looked at, not kept
  headwater doctor --json
"""


_EXTRAS = {
    "server": "litestar",
    "oidc": "pyjwt",
    "airflow": "openlineage-python",
    "kafka": "confluent-kafka",
    "s3": "s3fs",
}


def run(
    url: Annotated[str | None, typer.Argument(metavar="URL", help="A server to check instead.")] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Look and tell; exit 4 when a server cannot be reached, 1 when something else is broken."""
    found = list(examine(store) if url is None else examine_server(server_url(url), config.load().api_key))
    if as_json:
        print_json([finding._asdict() for finding in found])
    else:
        for finding in found:
            typer.echo(f"{finding.state:8} {finding.what}: {finding.detail}")
    broken = {finding.what for finding in found if finding.state == "broken"}
    raise typer.Exit(4 if url is not None and REACHES in broken else 1 if broken else 0)


def examine(store: str | None) -> Iterator[Finding]:
    """Everything worth a look, one by one."""
    yield Finding(
        "headwater", "ok", f"{headwater.__version__} on Python {platform.python_version()} ({sys.executable})"
    )
    for extra, package in _EXTRAS.items():
        try:
            yield Finding(f"extra {extra}", "ok", f"{package} {version(package)}")
        except PackageNotFoundError:
            yield Finding(f"extra {extra}", "missing", f"pip install 'headwater[{extra}]'")
    old = sqlite3.sqlite_version_info < (3, 35)
    yield Finding(
        "SQLite", "broken" if old else "ok", sqlite3.sqlite_version + (", 3.35 is needed" if old else "")
    )
    yield _java()
    try:
        settings = config.load({"store": store})
        problems = config.check_rooms(settings)
    except HeadwaterError as fault:
        yield Finding("settings", "broken", str(fault))
        return
    yield Finding("settings", "broken" if problems else "ok", "; ".join(problems) or "nothing wrong")
    for stray in settings.strays:
        yield Finding("settings", "missing", f"{stray} is set, but is no setting of Headwater")
    yield _store(settings)
    yield from _spool(settings)
    yield from _airflow()
    if settings.url:
        for finding in examine_server(settings.url, settings.api_key):
            yield finding._replace(what=f"server {finding.what}")


def _java() -> Finding:
    found = shutil.which("java")
    if found is None:
        return Finding("Java", "missing", "only Spark needs it: install a JDK 17")
    told = subprocess.run([found, "-version"], capture_output=True, text=True, timeout=20, check=False)
    return Finding(
        "Java", "ok", (told.stderr or told.stdout).splitlines()[0] if told.stderr or told.stdout else found
    )


def _store(settings: config.Settings) -> Finding:
    if path := missing(settings.store):  # to look is not to make one
        return Finding("store", "ok", f"{path}: none yet; `headwater ingest` and `headwater serve` make it")
    try:
        opened = open_configured(settings)
        counts = opened.counts()
        opened.close()
    except HeadwaterError as fault:
        return Finding("store", "broken", str(fault))
    return Finding(
        "store", "ok", f"{scrub(opened.url)}: {counts['log']:,} events, {counts['rejects']:,} refused"
    )


def _spool(settings: config.Settings) -> Iterator[Finding]:
    from headwater.transport.spool.place import places
    from headwater.transport.spool.report import in_words, report

    if not settings.spool.is_dir():
        yield Finding("spool", "ok", f"{settings.spool}: nothing was spooled yet")
        return
    for place in places(settings.spool):
        model = report(place)
        told = in_words(model)
        if model["dead"]["events"]:
            told += "; see `headwater spool show --dead`, then `replay` or `purge` them"
        yield Finding(
            "spool", "broken" if model["drainer"].get("fault") or model["dead"]["events"] else "ok", told
        )


def _airflow() -> Iterator[Finding]:
    """The transport that Airflow's variables name, where they do: opened, not asked."""
    if not any(os.environ.get(f"AIRFLOW__OPENLINEAGE__{name}") for name in ("TRANSPORT", "CONFIG_PATH")):
        return
    try:
        from headwater import airflow

        table, origin = airflow.configured(os.environ)
        for each in airflow.of_ours(table):
            airflow.opened(each).close()
    except ModuleNotFoundError:
        yield Finding("airflow", "missing", "pip install 'headwater[airflow]'")
    except HeadwaterError as fault:
        yield Finding("airflow", "broken", str(fault))
    else:
        yield Finding("airflow", "ok", f"{origin} can be used; `headwater airflow check` sends a test event")
