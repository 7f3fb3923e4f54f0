"""naming._tables: a platform and the parts of a table's name -> its Dataset, by the one table of stores."""

from __future__ import annotations

import re
from collections.abc import Mapping

from headwater.naming._hosts import authority
from headwater.naming._identity import Dataset
from headwater.naming._paths import from_path
from headwater.naming._platforms import PLATFORMS, Platform, platform_key
from headwater.naming._secrets import scrub

_HOST = re.compile(r"\{host\}(\[:\{port\}\]|:\{port\})?")
_FIELD = re.compile(r"\{(\w+)\}")
_INNER = (
    "schema",
    "dataset",
    "database",
    "keyspace",
    "namespace",
)  # what callers call the level above the table
_OUTER = ("database", "catalog", "project", "service")  # ... and the one above that
_CLOSING = {'"': '"', "`": "`", "[": "]"}


def database(
    platform: str,
    table: str = "",
    *,
    host: str | None = None,
    port: str | int | None = None,
    sql: bool = False,
    **parts: str | None,
) -> Dataset:
    """Name a table, collection, index or queue whose parts are known, as a connector's settings tell them.

    Args:
        platform: a key of PLATFORMS or one of its aliases; another name makes a namespace of its own.
        table: the innermost level, whatever the store calls it.
        host: one host, or a list of them with commas.
        port: the port of hosts that have none of their own.
        sql: the names are SQL text: quotes go, unquoted identifiers fold as the store folds them.
            Without it they are taken to be spelt as the store spells them.
        parts: `database`, `schema`, `catalog`, `region`, `account`, `path`, … as the store's templates ask;
            `database` and `schema` find their level under whichever name the store gives it.

    >>> database("postgres", "orders", host="DB1", database="shop").identity
    Identity(namespace='postgres://db1:5432', name='shop.public.orders')
    """
    key = platform_key(platform)
    known = (
        PLATFORMS[key]
        if key
        else Platform(f"{platform.lower()}://{{host}}:{{port}}", "{database}.{schema}.{table}")
    )
    given = {name: value for name, value in parts.items() if value}
    levels = known.levels
    innermost = table or given.pop(levels[-1], "")
    values = _assign(known, given, levels)
    if sql:
        names = [_fold(known, text, quoted) for text, quoted in split_name(innermost)]
        if key == "bigquery":
            names = [part for text in names for part in _bigquery(text)]
        values |= _overlay(levels, names)
    else:
        values[levels[-1]] = innermost
    values = {level: values[level] for level in values if values[level]}
    if len(levels) > 1 and known.schema is not None:
        values.setdefault(levels[-2], known.schema)
    if known.insensitive:
        values = {level: _cased(known, value) for level, value in values.items()}
    if known.catalog is not None and values.get(levels[0], known.catalog).lower() == known.catalog.lower():
        values[levels[0]] = known.catalog
    if "path" in given:
        given["path"] = _place(given["path"])
    return Dataset(_namespace(known, host, port, given), fill(known.name, values))


def _assign(known: Platform, given: Mapping[str, str], levels: tuple[str, ...]) -> dict[str, str]:
    """The caller's parts under the store's own names for its levels."""
    values = {level: given[level] for level in levels[:-1] if level in given}
    left = {name: value for name, value in given.items() if name not in values}
    for position, words in ((-2, _INNER), (-3, _OUTER)):
        if len(levels) >= -position and levels[position] not in values:
            for word in words:
                # `database` is the level above the table only in stores that have no schemas
                if word in left and not (
                    position == -2 and word == "database" and (len(levels) > 2 or levels[0] == "schema")
                ):
                    values[levels[position]] = left.pop(word)
                    break
    return values


def _overlay(levels: tuple[str, ...], names: list[str]) -> dict[str, str]:
    """A qualified name fills the levels from the right; what is too much stays before the first."""
    if len(names) > len(levels):
        names = [text for text in names if text]
    extra = len(names) - len(levels)
    if extra > 0:
        names = [".".join(names[: extra + 1]), *names[extra + 1 :]]
    found = zip(levels[len(levels) - len(names) :], names, strict=True)
    return {level: text for level, text in found if text}


def _place(path: str) -> str:
    """Where a database that is a file lies, written as any other file."""
    if "://" not in path and not re.match(r"/|file:|[A-Za-z]:[\\/]", path):
        return scrub(path)  # relative, in memory, or host:port/path
    found = from_path(path)
    return found.name if found.namespace == "file" else f"{found.namespace}/{found.name.lstrip('/')}"


def _namespace(known: Platform, host: str | None, port: str | int | None, given: Mapping[str, str]) -> str:
    found = _HOST.search(known.namespace)
    values = {name: scrub(value) for name, value in given.items()}
    # a named instance of SQL Server is found by its name: its port is the browser's to tell
    default = None if "{instance}" in known.namespace and given.get("instance") else known.port
    if found and host:
        asked = (found[1] or "").startswith(":")
        place = authority(host, port, default if asked else None)
        if known.host is not None:
            place = known.host(place)
        if not asked and known.port is not None:
            place = place.removesuffix(f":{known.port}")
        values["host"] = place
    return fill(_HOST.sub("{host}", known.namespace), values).replace("..", ".")


def fill(template: str, values: Mapping[str, str]) -> str:
    """Put values into a template; a missing one goes together with its separator.

    >>> fill("{database}.{schema}.{table}", {"schema": "s", "table": "t"})
    's.t'
    """
    pieces = _FIELD.split(template)
    text, first = pieces[0], True
    for position in range(1, len(pieces), 2):
        value = values.get(pieces[position])
        if value:
            text += value if first else pieces[position - 1] + value
            first = False
    if len(pieces) == 1:
        return text
    return text + pieces[-1] if not first else (text + pieces[-1]).rstrip(":/")


def split_name(text: str) -> list[tuple[str, bool]]:
    """Split a qualified SQL name at its dots: each part, and whether it was quoted.

    A part left out between two others is empty: SQL Server's `shop..orders` names a database and no schema.

    >>> split_name('shop."Order.Lines"')
    [('shop', False), ('Order.Lines', True)]
    """
    text = text.strip()
    parts: list[tuple[str, bool]] = []
    position = 0
    while position < len(text):
        closing = _CLOSING.get(text[position])
        if closing:
            end, part = _quoted(text, position + 1, closing)
            quoted = True
        else:
            dot = text.find(".", position)
            end = len(text) if dot < 0 else dot
            part, quoted = text[position:end].strip(), False
        if end < len(text) and text[end] != ".":
            return [(scrub(text), True)]  # no name but a query or an expression
        if not quoted and re.search(r"[\s()=;]", part):
            return [(scrub(text), True)]
        if part or (parts and end < len(text)):
            parts.append((part, quoted))
        position = end + 1
    return parts or [("", False)]


def _quoted(text: str, start: int, closing: str) -> tuple[int, str]:
    part, position = "", start
    while (end := text.find(closing, position)) >= 0:
        part += text[position:end]
        if text[end + 1 : end + 2] != closing:
            return end + 1, part
        part, position = part + closing, end + 2
    return len(text), part + text[position:]


def _fold(known: Platform, text: str, quoted: bool) -> str:
    return text if quoted and not known.insensitive else _cased(known, text)


def _cased(known: Platform, text: str) -> str:
    return text.upper() if known.fold == "upper" else text.lower() if known.fold == "lower" else text


def _bigquery(text: str) -> list[str]:
    """`project:dataset.table$20240101` in one pair of backticks is three names and a partition."""
    return [part for part in re.split(r"[:.]", re.sub(r"\$[0-9A-Z_]+$", "", text)) if part]
