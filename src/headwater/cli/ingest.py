"""cli.ingest: headwater ingest FILE… -> events in a store or on a server, and a line that says how many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Annotated

import typer

from headwater import config
from headwater.cli._ask import JsonOption, StoreOption, UrlOption, open_configured, print_json, server_url
from headwater.cli._files import read_events
from headwater.cli._progress import counting
from headwater.cli._table import counted
from headwater.errors import ConfigError, EventError, TransportError
from headwater.event import Limits
from headwater.ingest import Outcome, ingest_all
from headwater.redact import Redaction
from headwater.transport import Transport, open_transport


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("ingest", help=HELP)(run)


HELP = """
Take OpenLineage events from files into the store.

\b
Examples:
  headwater ingest events.jsonl more.json.gz
  kafkacat … | headwater ingest -
  headwater ingest events.jsonl --url http://lineage:5000

JSON (an object or an array) and JSON lines, in UTF-8 or UTF-16, plain or packed with gzip or zstd. The same event
twice changes nothing. Events that are refused are kept with the reason (`headwater store rejects`) and the exit code is 5.
"""


def run(
    files: Annotated[list[str], typer.Argument(metavar="FILE…", help="Files of events; - is stdin.")],
    store: StoreOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read the files and write their events."""
    if store and url:
        raise ConfigError("give --store or --url, not both")
    settings = config.load({"store": store, "url": url})
    limits = Limits(**config.options(settings, "ingest"))
    redaction = Redaction(**config.options(settings, "redact"))
    payloads = (payload for name in files for payload in read_events(name))
    if url:
        outcome = _total(_send(payloads, settings))
    else:
        opened = open_configured(settings)
        try:
            outcome = _total(ingest_all(opened, payloads, limits, redaction))
        finally:
            opened.close()
    _tell(outcome, as_json, by_server=bool(url))
    raise typer.Exit(5 if outcome.rejected else 0)


def _send(payloads: Iterable[bytes], settings: config.Settings) -> Iterator[Outcome]:
    """Over HTTP, in batches; the server says which it refuses."""
    transport = open_transport(
        server_url(settings.url or ""), **({"api_key": settings.api_key} if settings.api_key else {})
    )
    try:
        source = iter(payloads)
        while batch := [payload.strip() for payload in islice(source, 500)]:
            yield _sent(transport, batch)
    finally:
        transport.close()


def _sent(transport: Transport, batch: list[bytes]) -> Outcome:
    try:
        transport.send(batch)
    except TransportError as fault:
        if not fault.refused or fault.retryable:
            raise
        refused = tuple((at, EventError("", reason)) for at, reason in sorted(fault.refused.items()))
        return Outcome(len(batch), len(batch) - len(refused), 0, refused)
    return Outcome(len(batch), len(batch), 0)


def _total(outcomes: Iterable[Outcome]) -> Outcome:
    total = Outcome(0, 0, 0)
    with counting() as bar:
        task = bar.add_task("events", total=None)
        for outcome in outcomes:
            total = total + outcome
            bar.update(task, completed=total.received)
    return total


def _tell(outcome: Outcome, as_json: bool, *, by_server: bool) -> None:
    """How many; a server takes what it has already as it takes what is new, and does not say which it was."""
    if as_json:
        print_json(
            {
                "received": outcome.received,
                "stored": outcome.stored,
                "duplicates": None if by_server else outcome.duplicates,
                "rejected": [
                    {"index": at, "path": fault.path, "reason": fault.reason}
                    for at, fault in outcome.rejected
                ],
            }
        )
        return
    new = f"{outcome.stored:,} stored, {outcome.duplicates:,} already there"
    taken = f"{outcome.stored:,} taken by the server" if by_server else new
    typer.echo(f"{counted(outcome.received, 'event')}: {taken}, {len(outcome.rejected):,} refused")
    for at, fault in outcome.rejected[:10]:
        typer.echo(f"  event {at + 1}: {fault}", err=True)
    if len(outcome.rejected) > 10:
        typer.echo(f"  … and {len(outcome.rejected) - 10:,} more: headwater store rejects", err=True)
