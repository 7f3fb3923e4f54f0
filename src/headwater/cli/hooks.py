"""cli.hooks: headwater hooks … -> who is told of incidents, added, listed, tried, removed; secrets are never shown."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from headwater import config
from headwater.cli._ask import JsonOption, StoreOption, open_configured, print_json, tell
from headwater.cli._group import group
from headwater.cli._table import counted
from headwater.errors import ConfigError, NotFound
from headwater.store import Store

if TYPE_CHECKING:
    from sqlalchemy import Connection

app = group("Tell others of incidents, failed runs and schema changes.")
Name = Annotated[str, typer.Argument(help="The hook's name.")]


def register(parent: typer.Typer) -> None:
    """Add the commands."""
    parent.add_typer(app, name="hooks")


@contextmanager
def _opened(store: str | None) -> Iterator[Store]:
    opened = open_configured(config.load({"store": store}))
    try:
        yield opened
    finally:
        opened.close()


@app.command("list")
def run_list(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """The hooks there are, and how many messages each has waiting, delivered and given up.

    \b
    Examples:
      headwater hooks list --json
    """
    from headwater.naming import scrub
    from headwater.store import _outbox

    with _opened(store) as opened, opened.read() as reader:
        hooks, counts = _outbox.all_hooks(reader.connection), _outbox.counts(reader.connection)
    models: list[dict[str, Any]] = [
        {
            "name": hook.name,
            "url": scrub(hook.url),
            "signed": bool(hook.secret),
            **hook.options,
            **{state: counts.get((hook.name, state), 0) for state in ("waiting", "done", "dead")},
        }
        for hook in hooks
    ]
    if as_json:
        print_json(models)
    for each in () if as_json else models:
        typer.echo(
            f"{each['name']}  {each['url']}  {each['waiting']} waiting, {each['done']} done, {each['dead']} dead"
        )


@app.command("add")
def run_add(
    name: Name,
    url: Annotated[str, typer.Argument(help="Where messages are posted.")],
    event: Annotated[list[str] | None, typer.Option(help="Only this event; may be repeated.")] = None,
    dataset: Annotated[
        list[str] | None, typer.Option(help="Only NAMESPACE/NAME like this, with `*`; may be repeated.")
    ] = None,
    severity: Annotated[str, typer.Option(metavar="info|warn|error", help="At least so severe.")] = "info",
    format: Annotated[str, typer.Option(metavar="json|slack", help="What the body is.")] = "json",
    template: Annotated[str | None, typer.Option(help="Text of slack messages, with {named} fields.")] = None,
    link: Annotated[str, typer.Option(help="A url before an incident's id, for {link}.")] = "",
    secret_env: Annotated[
        str | None,
        typer.Option(metavar="VARIABLE", help="Variable that holds the secret, now and in the worker."),
    ] = None,
    private: Annotated[bool, typer.Option("--private", help="Allow link-local addresses.")] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add a hook, or change it; it hears of what happens from now on.

    The secret that signs messages is read from HOOK_SECRET, or stays in the variable that
    `--secret-env` names; it is never shown.

    \b
    Examples:
      HOOK_SECRET=… headwater hooks add ops https://ops.example.org/headwater
      headwater hooks add slack https://hooks.slack.com/services/… --format slack --severity warn
      headwater hooks add team https://team.example.org --event incident.opened --dataset 'postgres://db:5432/shop.*'
    """
    from headwater.deliver.webhook import TEMPLATE, Options, check_url
    from headwater.query.incidents import clock
    from headwater.store import _outbox

    options = Options(
        events=tuple(event or ()),
        datasets=tuple(dataset or ()),
        severity=severity,
        format=format,
        template=template if template is not None else TEMPLATE,
        link=link,
        private=private,
    )
    secret = f"env:{secret_env}" if secret_env else os.environ.get("HOOK_SECRET", "")
    if not name.strip():
        raise ConfigError("a hook needs a name")
    hook = _outbox.Hook(name, check_url(url), secret, msgspec.to_builtins(options), clock())
    with _opened(store) as opened, opened.writing() as connection:
        _outbox.set_hook(connection, hook)
    tell(
        {"added": name, "signed": bool(secret)},
        f"added: {name}{'' if secret else ' (unsigned: HOOK_SECRET is not set)'}",
        as_json,
    )


@app.command("remove")
def run_remove(name: Name, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Remove a hook with what waits for it.

    \b
    Examples:
      headwater hooks remove ops
    """
    from headwater.store import _outbox

    with _opened(store) as opened, opened.writing() as connection:
        if not _outbox.remove_hook(connection, name):
            raise _unknown(name)
    tell({"removed": name}, f"removed: {name}", as_json)


@app.command("log")
def run_log(
    name: Annotated[str | None, typer.Argument(help="Only of this hook.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most so many.")] = 20,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """The newest messages, and what became of them.

    \b
    Examples:
      headwater hooks log ops
    """
    from headwater.query.messages import message
    from headwater.store import _outbox

    with _opened(store) as opened, opened.read() as reader:
        _require(reader.connection, name)
        found = _outbox.messages(reader.connection, name, limit)
    models = [message(each) for each in found]
    if as_json:
        print_json(models)
    for row in () if as_json else models:
        typer.echo(
            f"{row['madeAt']}  {row['hook']}  {row['state']}  {row['event']}  {row['fault'] or ''}".rstrip()
        )


@app.command("retry")
def run_retry(name: Name, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Give messages that were given up another try.

    \b
    Examples:
      headwater hooks retry ops
    """
    from headwater.query.incidents import clock
    from headwater.store import _outbox

    with _opened(store) as opened, opened.writing() as connection:
        _require(connection, name)
        again = _outbox.retry(connection, name, clock())
    tell({"retried": again}, f"{counted(again, 'message')} will be tried again", as_json)


def _require(connection: Connection, name: str | None) -> None:
    """A hook that nobody added has no messages, which must not look like one that is well."""
    from headwater.store import _outbox

    if name is None or name.startswith(
        "deliver."
    ):  # other deliveries keep theirs there, too: deliver.datahub
        return
    if name not in {hook.name for hook in _outbox.all_hooks(connection)}:
        raise _unknown(name)


def _unknown(name: str) -> NotFound:
    return NotFound(f"no hook is called {name!r}; `headwater hooks list` shows those there are")
