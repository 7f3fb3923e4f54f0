"""cli.demo: headwater demo -> dlt and Spark at work on a small shop, what Headwater tells of it, and a server to look at it.

What is missing here is told, with how to get it. Where nothing of it can be played, and with --recorded, it is a recorded
day instead: events that Kafka Connect, dlt, Spark and Airflow sent.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from headwater import config
from headwater.cli._ask import StoreOption, open_configured
from headwater.cli._story import Curtain, print_tale
from headwater.cli.graph import print_graph
from headwater.errors import HeadwaterError, NotInstalled
from headwater.ingest import ingest
from headwater.naming import scrub
from headwater.store import Store

if TYPE_CHECKING:
    from headwater.demo import Means


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo", help=HELP)(run)


HELP = """
Run dlt and Spark on a small shop, and show where a number that is wrong comes from; then serve it.

\b
Examples:
  headwater demo
  headwater demo --once       # run, assert, exit
  headwater demo --recorded   # a recorded day instead: needs neither dlt nor Spark nor Java

All that it makes lies in a temporary folder, which goes with it; nothing of yours is read or written.
"""


def run(
    once: Annotated[bool, typer.Option("--once", help="Run, assert, exit.")] = False,
    as_recorded: Annotated[
        bool, typer.Option("--recorded", help="Show a recorded day; run nothing.")
    ] = False,
    port: Annotated[int, typer.Option(help="Port to serve on; the next free one where it is taken.")] = 5000,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Open no browser.")] = False,
    store: StoreOption = None,
) -> None:
    """Play, show, assert; then serve."""
    try:
        from headwater.demo.means import look
        from headwater.demo.place import own_folder
        from headwater.demo.served import served
    except ModuleNotFoundError as fault:
        if (fault.name or "").startswith("headwater"):
            raise
        raise NotInstalled("headwater demo", "demo") from fault
    began = time.perf_counter()
    with _leaving(), own_folder() as folder:
        # nothing but what was asked for: no setting of the user's, no file in the working directory
        settings = config.load(
            {"store": store or f"sqlite:///{folder}/demo.db"}, environ={}, cwd=folder, home=folder
        )
        opened = open_configured(settings)
        try:
            with served(opened, 0 if once else port) as address:
                pages = _play(opened, folder, address, None if as_recorded else look())
                typer.echo(f"\nAll of it took {time.perf_counter() - began:.1f} s.")
                if not once:
                    _stay(address, pages, browser=not no_browser)
        finally:
            opened.close()


@contextmanager
def _leaving() -> Iterator[None]:
    """A signal to end goes by way of every `finally`: nothing is left behind."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _play(store: Store, folder: Path, address: str, means: Means | None) -> list[str]:
    """Play what can be played; the pages to look at, the best one first."""
    from headwater.demo import play

    curtain = Curtain(lambda: store.counts()["log"])
    if means is None or means.dlt is not None:
        if means is not None:
            curtain.say(f"{means.dlt}. Until then, this is a recorded day of another shop:")
        _play_recorded(store)
        return ["incidents", _page("s3://lake", TABLE, "columns=1")]
    if means.spark is not None:
        curtain.say(f"{means.spark}. Without it, only what dlt does is shown:")
    tale = play(store, folder, address, means, curtain)
    lake = folder / "lake"
    print_tale(tale, lake)
    if tale.incident is None:
        return [_page("file", f"{lake}/raw/orders__lines", "c=price")]
    return [
        f"incidents/{tale.incident['id']}",
        _page("file", f"{lake}/gold/revenue", "c=revenue&grain=all"),  # the whole way of the column
    ]


def _page(namespace: str, name: str, how: str) -> str:
    return f"lineage/dataset/{quote(namespace, safe='')}/{quote(name, safe='')}?{how}"


def _stay(address: str, pages: list[str], *, browser: bool) -> None:
    """Serve until interrupted."""
    listed = "".join(f"  {address}/{page}\n" for page in pages)
    try:
        typer.echo(
            f"\nServing at {address} (Ctrl-C stops it). Look at it in a browser:\n{listed}"
            "In another terminal:\n"
            f"  headwater incidents --url {address}\n"
            f"  OPENLINEAGE_URL={address} python your_job.py"
        )
        if browser and _has_display():
            webbrowser.open(f"{address}/{pages[0]}")
        threading.Event().wait()
    except KeyboardInterrupt:
        typer.echo("")


def _has_display() -> bool:
    """Whether somebody sits before a screen."""
    screen = sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return sys.stdout.isatty() and bool(screen)


TABLE = "gold/revenue_by_day"
COLUMN = f"datasetField:s3://lake:{TABLE}:revenue"
ORIGIN = ("dataset:https://pay.example.com:/v1/payments", "amount_cents")


def recorded() -> Iterator[bytes]:
    """The events of the recorded day; tests lean on them, too."""
    text = files("headwater.cli").joinpath("recorded/shop.jsonl").read_bytes()
    return (line for line in text.splitlines() if line)


def _play_recorded(store: Store) -> None:
    outcome = ingest(store, list(recorded()))
    typer.echo(
        f"{outcome.received} recorded events of Kafka Connect, dlt, Spark and Airflow are in {scrub(store.url)}\n"
    )
    _tell(store)
    _assert(store)


def _tell(store: Store) -> None:
    from headwater.query.lineage import lineage
    from headwater.query.show import show

    typer.echo("Where does finance's number come from?  (headwater graph gold/revenue_by_day --direction up)")
    print_graph(lineage(store, TABLE, direction="up"), "up")
    typer.echo("\nAnd its column `revenue`?  (headwater graph datasetField:…:revenue --direction up)")
    print_graph(lineage(store, COLUMN, direction="up"), "up")
    typer.echo("\nWhat breaks with it?")
    print_graph(lineage(store, TABLE, direction="down"), "down")
    typer.echo("\nWhat is wrong with it?")
    for check in show(store, TABLE)["assertions"]:
        typer.echo(
            f"  {'passed' if check['success'] else 'FAILED'}  {check['assertion']}({check['column']}) at {check['at']}"
        )


def _assert(store: Store) -> None:
    """The demo is a test too: what it shows must be so."""
    from headwater.query.lineage import lineage
    from headwater.query.show import show

    column = lineage(store, COLUMN, direction="up")
    sources = {(each["from"]["dataset"], each["from"]["field"]) for each in column["columns"]}
    table: dict[str, Any] = show(store, TABLE)
    failed = [check["column"] for check in table["assertions"] if not check["success"]]
    for what, holds in {
        "the column comes from the payment API's field": ORIGIN in sources,
        "the check by catalogue name found the table written by location": failed == ["day"],
        "the dashboard is downstream": any(
            node["name"] == "finance.main.revenue"
            for node in lineage(store, TABLE, direction="down")["nodes"]
        ),
    }.items():
        if not holds:
            raise HeadwaterError(f"the demo does not show what it should: {what}")
