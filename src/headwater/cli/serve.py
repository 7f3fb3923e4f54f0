"""cli.serve: headwater serve -> an HTTP server over the store, until interrupted."""

from __future__ import annotations

from typing import Annotated

import typer

from headwater import config
from headwater.cli._ask import StoreOption, open_configured
from headwater.errors import NotInstalled
from headwater.naming import scrub


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("serve", help=HELP)(serve)


HELP = """
Serve the store over HTTP: events in, the graph out.

\b
Examples:
  headwater serve
  headwater serve --store sqlite:///lineage.db --port 5001
  headwater keys create me --scope admin && headwater serve --host 0.0.0.0    # others can reach it: they need keys
  OPENLINEAGE_URL=http://localhost:5000 python my_job.py    # any OpenLineage client can send to it
"""


def serve(
    store: StoreOption = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.  [default: 127.0.0.1]")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on.  [default: 5000]")] = None,
    base_path: Annotated[str | None, typer.Option(metavar="/PATH", help="Serve under this path.")] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Take no events.")] = False,
    no_auth: Annotated[
        bool, typer.Option("--no-auth", help="Ask nobody for a key, wherever the server can be reached.")
    ] = False,
) -> None:
    """Run the server in the foreground."""
    try:
        from headwater.serve import Consume, Serving, run_server
        from headwater.serve.app import listen
    except ModuleNotFoundError as fault:
        if (fault.name or "").startswith("headwater"):
            raise
        raise NotInstalled("headwater serve", "server") from fault
    from headwater.deliver.datahub.settings import delivering
    from headwater.event import Limits
    from headwater.ingest import Retention
    from headwater.redact import Redaction
    from headwater.serve.auth import check_keys
    from headwater.serve.journal import set_up_logging
    from headwater.serve.oidc import Oidc

    given = {"host": host, "port": port, "base_path": base_path, "read_only": read_only or None}
    given["auth"] = "off" if no_auth else None
    settings = config.load({"store": store, "serve": given})
    serving = Serving(**config.options(settings, "serve"))
    limits = Limits(**config.options(settings, "ingest"))
    consume = Consume(**config.options(settings, "consume"))
    retention = Retention(**config.options(settings, "retention"))
    redaction = Redaction(**config.options(settings, "redact"))
    datahub = delivering(settings)
    oidc = Oidc(**config.options(settings, "oidc"))
    set_up_logging(serving.log_format, settings.log_level)
    opened = open_configured(settings)
    try:
        check_keys(opened, serving, oidc)
        sock = listen(serving)
        address = f"http://{serving.host}:{sock.getsockname()[1]}{serving.base_path}"
        typer.echo(f"Headwater serves {scrub(opened.url)} at {address} (Ctrl-C stops it)", err=True)
        typer.echo(f"Send events with: OPENLINEAGE_URL={address}", err=True)
        if datahub.to and serving.work and not serving.read_only:
            typer.echo(f"What it takes in is delivered to {scrub(datahub.to)}", err=True)
        if not serving.needs_keys and not serving.local:
            typer.echo("Everyone who can reach it may read and write: nobody is asked for a key", err=True)
        run_server(
            opened,
            serving,
            limits,
            listening=sock,
            spool=settings.spool,
            consume=consume,
            redaction=redaction,
            oidc=oidc,
            retention=retention,
            datahub=datahub,
        )
    finally:
        opened.close()
