"""cli.keys: headwater keys … -> the keys that callers of the server need: made, listed, replaced, ended.

They are made in the store itself, by whoever can write it: a server asks for no key to make the first one.
"""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from headwater import config
from headwater.cli._ask import JsonOption, StoreOption, open_configured, open_existing, print_json, whoami
from headwater.cli._group import group

app = group("Say who may call the server.")

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="What the key is called, or its id.")]


def register(parent: typer.Typer) -> None:
    """Add the commands."""
    parent.add_typer(app, name="keys")


@app.command("create")
def run_create(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Who will use it: logs and the audit trail say so.")
    ],
    scope: Annotated[
        list[str], typer.Option("--scope", metavar="SCOPE", help="ingest, read or admin; may be given again.")
    ],
    expires: Annotated[
        str | None,
        typer.Option("--expires", metavar="SPAN", help="How long it lives: 90d, 12h.  [default: for ever]"),
    ] = None,
    rate: Annotated[
        int | None,
        typer.Option("--rate", metavar="N", help="Requests a second.  [default: serve.rate_limit]"),
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a key. It is shown this once: the store keeps only its hash.

    \b
    Examples:
      headwater keys create airflow --scope ingest --expires 90d
      headwater keys create me --scope admin --json
    """
    from headwater import keys

    until = None if expires is None else time.time_ns() // 1000 + keys.lifetime(expires)
    opened = open_configured(config.load({"store": store}))
    try:
        made, text = keys.create(opened, name, scope, by=whoami(), expires_at=until, rate=rate)
    finally:
        opened.close()
    _print_made(made, text, as_json)


@app.command("list")
def run_list(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Every key that was made, newest first; when it was last used is told to the hour.

    \b
    Examples:
      headwater keys list --json
    """
    from headwater import keys

    # of a new store: none, as init scripts ask before they make the first key
    opened = open_configured(config.load({"store": store}))
    try:
        found = [_model(each) for each in keys.listed(opened)]
    finally:
        opened.close()
    if as_json:
        print_json(found)
        return
    for each in found:
        told = f"{each['id']}  {each['state']:8} {each['name']}  [{', '.join(each['scopes'])}]  made {each['created_at']}"
        told += f"  expires {each['expires_at']}" if each["expires_at"] else ""
        typer.echo(told + (f"  used {each['used_at']}" if each["used_at"] else "  never used"))


@app.command("revoke")
def run_revoke(name: NameArgument, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """End a key; running servers stop taking it within two seconds.

    \b
    Examples:
      headwater keys revoke airflow
    """
    from headwater import keys

    opened = open_existing(config.load({"store": store}))
    try:
        ended = [_model(each) for each in keys.revoke(opened, name, by=whoami())]
    finally:
        opened.close()
    if as_json:
        print_json(ended)
    else:
        for each in ended:
            typer.echo(f"revoked: {each['name']} ({each['id']})")


@app.command("rotate")
def run_rotate(
    name: NameArgument,
    grace: Annotated[
        str | None,
        typer.Option(
            "--grace", metavar="SPAN", help="How long the old one is still taken: 1h.  [default: not at all]"
        ),
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put a new key in the place of one, with its name, scopes, rate and time of life.

    \b
    Examples:
      headwater keys rotate airflow --grace 1h
    """
    from headwater import keys

    opened = open_existing(config.load({"store": store}))
    try:
        made, text = keys.rotate(opened, name, by=whoami(), grace=keys.lifetime(grace) if grace else 0)
    finally:
        opened.close()
    _print_made(made, text, as_json)


def _model(key: Any) -> dict[str, Any]:
    from headwater.query.nodes import iso

    times = ("created_at", "expires_at", "revoked_at", "used_at")
    return {
        "id": key.id,
        "name": key.name,
        "state": key.state(time.time_ns() // 1000),
        "scopes": list(key.scopes),
        "rate": key.rate,
        "created_by": key.created_by,
        **{name: iso(getattr(key, name)) for name in times},
    }


def _print_made(key: Any, text: str, as_json: bool) -> None:
    if as_json:
        print_json({**_model(key), "key": text})
        return
    typer.echo(text)
    typer.echo(
        f"This is {key.name}'s key for {', '.join(key.scopes)}. It is not shown again: keep it now.", err=True
    )
