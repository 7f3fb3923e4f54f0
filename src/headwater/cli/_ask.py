"""cli._ask: --store or --url -> something that answers questions, from the store itself or over HTTP."""

from __future__ import annotations

import getpass
import json
import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Protocol
from urllib.parse import quote, urlsplit

import typer

from headwater import config
from headwater.errors import ConfigError, EventError, HeadwaterError, NotFound, TransportError
from headwater.store import Store, missing, open_store

StoreOption = Annotated[
    str | None, typer.Option("--store", metavar="URL", help="The store to use, e.g. sqlite:///lineage.db.")
]
UrlOption = Annotated[
    str | None, typer.Option("--url", metavar="URL", help="Ask this server instead of a store.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
MarkdownOption = Annotated[
    bool, typer.Option("--markdown", help="Print text for a pull request: at most 60,000 characters.")
]
AtOption = Annotated[
    str | None, typer.Option("--at", metavar="TIME", help="As of this time: 2026-01-31T12:00:00Z, or -24h.")
]

_TRIPPED = 6
_NO_HEADWATER = "does not answer as Headwater does: is another server there?"


class Source(Protocol):
    """What a read command asks."""

    def graph(self, node: str, **options: Any) -> dict[str, Any]:
        """The graph around a node."""

    def show(self, node: str, **options: Any) -> dict[str, Any]:
        """All that is known of a node or run."""

    def search(self, q: str, **options: Any) -> list[dict[str, Any]]:
        """The nodes whose names hold `q`."""

    def impact(self, node: str, **options: Any) -> dict[str, Any]:
        """What breaks downstream of a node."""

    def diff(self, before: str, after: str, **options: Any) -> dict[str, Any]:
        """What differs between two times."""

    def runs(self, **options: Any) -> list[dict[str, Any]]:
        """Runs, the newest first."""

    def run_graph(self, run: str, **options: Any) -> dict[str, Any]:
        """The runs around a run."""

    def schemas(self, node: str) -> dict[str, Any]:
        """The schemas a dataset has had."""

    def changes(self, after: int | None, **options: Any) -> Iterator[dict[str, Any]]:
        """What comes in, as it comes; None between whiles, when nothing has."""

    def status(self, **options: Any) -> dict[str, Any]:
        """How much there is."""

    def audit(self, **options: Any) -> list[dict[str, Any]]:
        """Who changed what by hand."""

    def incidents(self, **options: Any) -> dict[str, Any]:
        """The incidents in a status."""

    def incident(self, number: int) -> dict[str, Any]:
        """All that is known of an incident."""

    def decide(self, number: int, **said: Any) -> dict[str, Any]:
        """Say something of an incident: its status, a note; the incident after it."""


@contextmanager
def asking(store: str | None, url: str | None) -> Iterator[Source]:
    """Whom to ask: --url, else --store, else HEADWATER_URL, else the configured store."""
    if store and url:
        raise ConfigError("give --store or --url, not both")
    settings = config.load({"store": store, "url": url})
    if settings.url and not store:
        yield _Server(settings.url, settings.api_key)
        return
    opened = open_existing(settings)
    try:
        yield _Local(opened)
    finally:
        opened.close()


def open_configured(settings: config.Settings) -> Store:
    """The store that the settings name, made where there is none."""
    return open_store(settings.store, **config.options(settings, "store"))


def open_existing(settings: config.Settings) -> Store:
    """The store that the settings name; where there is none, there is nothing to ask or to look after, but perhaps a slip."""
    if path := missing(settings.store):
        raise NotFound(
            f"there is no store at {path} yet: `headwater ingest` and `headwater serve` make one; --store names another"
        )
    return open_configured(settings)


class _Local:
    def __init__(self, store: Store) -> None:
        self._store = store

    def graph(self, node: str, **options: Any) -> dict[str, Any]:
        from headwater.query.lineage import lineage
        from headwater.query.nodes import when

        at, since = options.pop("at", None), options.pop("since", None)
        return lineage(self._store, node, when=when(at, since), **options)

    def show(self, node: str, **options: Any) -> dict[str, Any]:
        from headwater.query.nodes import when
        from headwater.query.show import show

        return show(self._store, node, when=when(options.get("at")))

    def search(self, q: str, **options: Any) -> list[dict[str, Any]]:
        from headwater.query.search import search

        return search(self._store, q, kind=options.pop("type", None), **options)

    def impact(self, node: str, **options: Any) -> dict[str, Any]:
        from headwater.query.impact import impact
        from headwater.query.nodes import when

        return impact(self._store, node, when=when(options.pop("at", None)), **options)

    def diff(self, before: str, after: str, **options: Any) -> dict[str, Any]:
        from headwater.query.diff import diff
        from headwater.query.nodes import moment

        return diff(self._store, moment(before), moment(after), **options)

    def runs(self, **options: Any) -> list[dict[str, Any]]:
        from headwater.query.nodes import moment
        from headwater.query.runs import runs

        since, until = (
            moment(told) if (told := options.pop(name, None)) else None for name in ("since", "until")
        )
        return runs(self._store, since=since, until=until, **options)

    def run_graph(self, run: str, **options: Any) -> dict[str, Any]:
        from headwater.query.runs import run_graph

        return run_graph(self._store, run, **options)

    def schemas(self, node: str) -> dict[str, Any]:
        from headwater.query.schemas import schemas

        return schemas(self._store, node)

    def changes(self, after: int | None, **options: Any) -> Iterator[dict[str, Any]]:
        from headwater.query.events import Filter, follow

        return follow(self._store, after, Filter(**options))

    def status(self, **options: Any) -> dict[str, Any]:
        from headwater.query.status import status

        return status(self._store, **options)

    def audit(self, **options: Any) -> list[dict[str, Any]]:
        from headwater.query.audit import audit
        from headwater.query.nodes import moment

        since = options.pop("since", None)
        return audit(self._store, since=moment(since) if since else None, **options)

    def incidents(self, **options: Any) -> dict[str, Any]:
        from headwater.query.incidents import list_incidents
        from headwater.query.nodes import moment

        since = options.pop("since", None)
        return list_incidents(self._store, since=moment(since) if since else None, **options)

    def incident(self, number: int) -> dict[str, Any]:
        from headwater.query.blame import show_incident

        return show_incident(self._store, number)

    def decide(self, number: int, **said: Any) -> dict[str, Any]:
        from headwater.facts.commands import SetIncident
        from headwater.ingest import command
        from headwater.query.incidents import DAY, clock, find

        now, days = clock(), said.pop("days", None)
        with self._store.read() as reader:
            found, _ = find(reader, number, now)
        until = now + days * DAY if days else None
        with as_wrong_use():
            command(self._store, SetIncident(at=now, by=whoami(), incident=found.id, until=until, **said))
        return self.incident(number)


class _Server:
    def __init__(self, url: str, api_key: str | None) -> None:
        self._url, self._key = server_url(url), api_key

    def _get(self, path: str, **parameters: Any) -> Any:
        return self._ask("GET", path, params={k: v for k, v in parameters.items() if v is not None})

    def _ask(self, method: str, path: str, **more: Any) -> Any:
        import httpx

        from headwater.naming import scrub

        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        try:
            answer = httpx.request(method, f"{self._url}/hw/v1/{path}", headers=headers, timeout=60, **more)
        except (httpx.HTTPError, httpx.InvalidURL) as fault:
            raise TransportError(f"{scrub(self._url)} cannot be asked: {fault}", retryable=True) from None
        if not answer.is_success:
            raise fault_of(answer)
        try:
            return answer.json()
        except ValueError:
            raise TransportError(f"{scrub(self._url)} {_NO_HEADWATER}", retryable=False) from None

    def graph(self, node: str, **options: Any) -> dict[str, Any]:
        found: dict[str, Any] = self._get("graph", node=node, **options)
        return found

    def show(self, node: str, **options: Any) -> dict[str, Any]:
        found: dict[str, Any] = self._get("show", node=node, **options)
        return found

    def search(self, q: str, **options: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._get("search", q=q, **options)
        return found

    def impact(self, node: str, **options: Any) -> dict[str, Any]:
        found: dict[str, Any] = self._get("impact", node=node, **options)
        return found

    def diff(self, before: str, after: str, **options: Any) -> dict[str, Any]:
        found: dict[str, Any] = self._get("diff", **{"from": before, "to": after}, **options)
        return found

    def runs(self, **options: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._get("runs", **options)
        return found

    def run_graph(self, run: str, **options: Any) -> dict[str, Any]:
        found: dict[str, Any] = self._get(f"runs/{quote(run, safe='')}/graph", **options)
        return found

    def schemas(self, node: str) -> dict[str, Any]:
        found: dict[str, Any] = self._get("schemas", node=node)
        return found

    def changes(self, after: int | None, **options: Any) -> Iterator[dict[str, Any]]:
        from headwater.cli._stream import follow

        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        return follow(f"{self._url}/hw/v1/changes", after, options, headers)

    def status(self, **options: Any) -> dict[str, Any]:
        found: dict[str, Any] = self._get("status", **options)
        return found

    def audit(self, **options: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._get("audit", **options)
        return found

    def incidents(self, **options: Any) -> dict[str, Any]:
        found: dict[str, Any] = self._get("incidents", **options)
        return found

    def incident(self, number: int) -> dict[str, Any]:
        found: dict[str, Any] = self._get(f"incidents/{number}")
        return found

    def decide(self, number: int, **said: Any) -> dict[str, Any]:
        given = {name: value for name, value in said.items() if value}
        method, path = ("PATCH", "") if "status" in given else ("POST", "/notes")
        found: dict[str, Any] = self._ask(method, f"incidents/{number}{path}", json=given)
        return found


def server_url(url: str) -> str:
    """The address of a server, checked: what is none must not look like a server that is away."""
    from headwater.naming import scrub

    try:
        parts = urlsplit(url)
        whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a bracket that is not closed, a port that is none
        whole = False
    if not whole:
        raise ConfigError(f"{scrub(url)!r} is no address of a server: write http://host:5000")
    return url.rstrip("/")


def fault_of(answer: Any) -> HeadwaterError:
    """The server's error as our own, so that a command exits alike wherever it asked."""
    try:
        said = answer.json()
    except ValueError:
        said = None
    detail = said.get("detail") if isinstance(said, dict) else None
    kinds: dict[int, Callable[[str], HeadwaterError]] = {404: NotFound, 409: ConfigError, 400: ConfigError}
    made = kinds.get(answer.status_code)
    if made and detail:
        return made(detail)
    hint = f": it {_NO_HEADWATER}" if answer.status_code == 404 else f": {detail or answer.text[:500]}"
    return TransportError(
        f"the server answered {answer.status_code}{hint}", retryable=answer.status_code >= 500
    )


@contextmanager
def as_wrong_use() -> Iterator[None]:
    """What is refused of a command that was typed is wrong use, not a refused event; a server says so, too."""
    try:
        yield
    except EventError as fault:
        raise ConfigError(str(fault)) from None


def whoami() -> str:
    """Whom a command is by that was typed here: the user of this machine."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container may run under a number that has no name
        user = str(os.getuid())
    return f"{user}@{platform.node()}"


def one_form(as_json: bool, markdown: bool) -> None:
    """Refuse two forms at once."""
    if as_json and markdown:
        raise ConfigError("give --json or --markdown, not both")


def answer(
    model: dict[str, Any],
    found: str | None,
    text: Callable[[dict[str, Any]], None],
    markdown: Callable[[dict[str, Any], str | None], str] | None,
    as_json: bool,
) -> None:
    """Print an answer in the form asked for; where its gate found something, say so on stderr and exit 6."""
    if as_json:
        print_json(model)
    elif markdown is not None:
        typer.echo(markdown(model, found), nl=False)
    else:
        text(model)
    if found:
        typer.echo(f"headwater: {found}", err=True)
        raise typer.Exit(_TRIPPED)


def tell(model: dict[str, Any], text: str, as_json: bool) -> None:
    """What a command did: in a line, or as a model."""
    if as_json:
        print_json(model)
    else:
        typer.echo(text)


def print_json(model: Any) -> None:
    """A model on stdout, for other programs."""
    typer.echo(json.dumps(model, indent=2, ensure_ascii=False))
