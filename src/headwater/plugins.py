"""plugins: a name or url, and options -> the object that answers to it, imported only when asked for.

A table maps a name to where its factory stands and which extra brings its libraries. Packages outside
extend every table by an entry point of group `headwater.<kind>`:

    [project.entry-points."headwater.transport"]
    carrier_pigeon = "pigeon.transport:PigeonTransport"
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlsplit

from headwater.errors import ConfigError, NotInstalled, UnknownName

Factory = Callable[..., Any]
Table = Mapping[str, tuple[str, str | None]]
"""name -> ("module:attribute", the extra that brings its library, or None)"""


def build(kind: str, config: Mapping[str, Any], table: Table) -> Any:
    """Build the `kind` that config["type"] names, with the rest of `config` as its options.

    >>> build("transport", {"type": "memory"}, {"memory": ("headwater.transport.memory:MemoryTransport", None)})
    MemoryTransport(0 events)
    """
    options = dict(config)  # the caller's mapping stays as it was
    name = options.pop("type", None)
    factory = find(kind, name, table)
    check(f"{kind} {name!r}", factory, options)
    return factory(**options)


def build_url(kind: str, url: str, table: Table, **options: Any) -> Any:
    """Build the `kind` whose name is the url's scheme; the url's query joins the options.

    The factory is given `url` without that query, so a secret passed as an option is not kept in it.
    """
    parts = split(kind, url)
    if not parts.scheme:
        raise ConfigError(
            f"{kind} {url!r} is no url: write it as in {', '.join(f'{n}:…' for n in sorted(table))}"
        )
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    bare = url.split("?", 1)[0]
    return build(kind, {"type": parts.scheme, "url": bare, **query, **options}, table)


def split(kind: str, url: str) -> SplitResult:
    """The parts of a url; what cannot be read of it stays untold, as a password may stand there."""
    try:
        return urlsplit(url)
    except ValueError:  # a bracket in a password, mostly; Python's own words would quote it
        raise ConfigError(
            f"{kind}: no url: its host cannot be read; in a password write [ as %5B, ] as %5D"
        ) from None


def find(kind: str, name: object, table: Table) -> Factory:
    """The factory behind a name: from our table first, then from installed packages."""
    if isinstance(name, str) and name in table:
        return _load(kind, name, *table[name])
    outside = installed(kind)
    if isinstance(name, str) and name in outside:
        factory: Factory = outside[name].load()
        return factory
    raise UnknownName(kind, name, [*table, *outside])


def require_host(parts: SplitResult, example: str = "http://host:port") -> None:
    """Refuse a url that names no host, or a port that there is not."""
    if not parts.hostname:
        raise ConfigError(f"url: names no host: write {example}")
    try:
        _ = parts.port
    except ValueError:
        raise ConfigError(f"url: names no port that there is: write {example}") from None


def known(kind: str, table: Table) -> list[str]:
    """Every name that `find` answers to."""
    return sorted({*table, *installed(kind)})


def check(what: str, factory: Factory, options: Mapping[str, Any]) -> None:
    """Refuse options that the factory does not take, naming those it does."""
    signature = inspect.signature(factory)
    try:
        signature.bind(**options)
    except TypeError as fault:
        takes = ", ".join(name for name in signature.parameters if name != "self")
        raise ConfigError(f"{what}: {fault}; it takes: {takes or 'no options'}") from None


def installed(kind: str) -> dict[str, EntryPoint]:
    """What packages outside bring: name -> entry point, not loaded yet."""
    found: dict[str, EntryPoint] = {}
    for point in entry_points(group=f"headwater.{kind}"):
        if point.name in found and found[point.name].value != point.value:
            raise ConfigError(
                f"two packages claim the {kind} {point.name!r}: {found[point.name].value} and {point.value}; uninstall one"
            )
        found[point.name] = point
    return found


def _load(kind: str, name: str, target: str, extra: str | None) -> Factory:
    module, attribute = target.split(":")
    try:
        factory: Factory = getattr(import_module(module), attribute)
    except ModuleNotFoundError as fault:
        if extra is None or (fault.name or "").split(".")[0] == "headwater":  # our own mistake: say so
            raise
        raise NotInstalled(f"{kind} {name!r}", extra) from fault
    return factory
