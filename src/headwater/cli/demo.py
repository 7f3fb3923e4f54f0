"""cli.demo: headwater demo -> a recorded day of a small shop in a store of its own, its graph, and a server to look at it.

Events that Kafka Connect, dlt, Spark and Airflow would send are ingested; then it is shown where a number
comes from and what broke.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from importlib.resources import files
from typing import Annotated, Any

import typer

from headwater import config
from headwater.cli._ask import StoreOption, open_configured
from headwater.cli.graph import print_graph
from headwater.errors import HeadwaterError
from headwater.ingest import ingest
from headwater.naming import scrub
from headwater.store import Store


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo", help=HELP)(run)


HELP = """
Show what Headwater does, on a recorded day of a small shop; then serve it.

\b
Examples:
  headwater demo
  headwater demo --once       # run, assert, exit
"""

TABLE = "gold/revenue_by_day"
COLUMN = f"datasetField:s3://lake:{TABLE}:revenue"
ORIGIN = ("dataset:https://pay.example.com:/v1/payments", "amount_cents")


def run(
    once: Annotated[bool, typer.Option("--once", help="Run, assert, exit.")] = False,
    port: Annotated[int, typer.Option(help="Port to serve on; the next free one where it is taken.")] = 5000,
    store: StoreOption = None,
) -> None:
    """Ingest, show, assert; then serve."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="headwater-demo-") as folder:
        settings = config.load({"store": store or f"sqlite:///{folder}/demo.db"})
        opened = open_configured(settings)
        try:
            outcome = ingest(opened, list(recorded()))
            typer.echo(
                f"{outcome.received} recorded events of Kafka Connect, dlt, Spark and Airflow are in {scrub(opened.url)}\n"
            )
            _tell(opened)
            _assert(opened)
            typer.echo(f"\nAll of it took {time.perf_counter() - began:.1f} s.")
            if not once:
                _serve(opened, port)
        finally:
            opened.close()


def recorded() -> Iterator[bytes]:
    """The events of the demo."""
    text = files("headwater.cli").joinpath("recorded/shop.jsonl").read_bytes()
    return (line for line in text.splitlines() if line)


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


def _serve(store: Store, port: int) -> None:
    from headwater.event import Limits
    from headwater.serve import Serving, run_server
    from headwater.serve.app import listen

    sock = listen(Serving(port=port), tries=20)
    address = f"http://127.0.0.1:{sock.getsockname()[1]}"
    typer.echo(
        f"\nServing at {address} (Ctrl-C stops it). Look at it in a browser:\n"
        f"  {address}/incidents\n"
        f"  {address}/lineage/dataset/s3%3A%2F%2Flake/gold%2Frevenue_by_day?columns=1\n"
        f"In another terminal:\n"
        f"  headwater graph finance.main.revenue --columns --url {address}\n"
        f"  headwater show orders_paid --url {address}\n"
        f"  OPENLINEAGE_URL={address} python your_job.py"
    )
    run_server(store, Serving(), Limits(), listening=sock)
