"""query.nodes: a name as people write it -> the node it means; a node -> the id it is known by.

A node is named by its id as Marquez writes it (`dataset:NAMESPACE:NAME`, `job:…`, `datasetField:…:FIELD`), by
`NAMESPACE/NAME`, by its whole name, or by any suffix of it that only one node has (`orders` for
`shop.public.orders`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from headwater.errors import Ambiguous, ConfigError, NotFound
from headwater.event import micros
from headwater.facts.flows import NOW, When

if TYPE_CHECKING:
    from headwater.store import Reader
    from headwater.store._edges import Edges

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@dataclass(frozen=True, slots=True)
class Node:
    """A node that was found: its kind (job or dataset), its number, and the column that was named."""

    kind: str
    number: int
    field: str | None = None


def node_id(kind: str, namespace: str, name: str, field: str | None = None) -> str:
    """The id of a node, as Marquez writes it.

    >>> node_id("dataset", "postgres://db:5432", "shop.public.orders", "total")
    'datasetField:postgres://db:5432:shop.public.orders:total'
    """
    return f"{kind}:{namespace}:{name}" if field is None else f"datasetField:{namespace}:{name}:{field}"


def resolve(reader: Reader, text: str) -> Node:
    """The one node that `text` means.

    Raises:
        NotFound: none does.
        Ambiguous: several do; it lists their ids.

    """
    if "\0" in text:  # no database keeps it, so nothing is called so
        raise NotFound(f"no node is called {text!r}")
    found = list(dict.fromkeys(_exact(reader, text))) or list(dict.fromkeys(_suffix(reader, text)))
    if not found:
        raise NotFound(f"no node is called {text!r}; `headwater search` looks for parts of names")
    if len(found) > 1:
        raise Ambiguous(text, sorted(identify(reader, node) for node in found))
    return found[0]


def identify(reader: Reader, node: Node) -> str:
    """The id of a node that was found."""
    row = reader.nodes(node.kind, [node.number])[node.number]
    return node_id(node.kind, row["namespace"], row["name"], node.field)


def require_column(reader: Reader, node: Node, edges: Edges) -> None:
    """Refuse a column that no schema and no relation of its dataset has: a slip must not look like a column that nobody reads.

    Where neither was ever told, any column may be.
    """
    if node.field is None:
        return
    known = {name for each in reader.schemas(node.number) for name in _names(each["fields"])}
    key = [(node.number, node.field)]
    if node.field in known or not (known or edges.told_columns(node.number)):
        return
    if not any((*edges.relations_from(key), *edges.relations_to(key))):
        raise NotFound(
            f"{identify(reader, Node('dataset', node.number))} has no column {node.field!r}; "
            "`headwater show NODE --schemas` lists those it has had"
        )


def _names(fields: Iterable[Mapping[str, Any]], above: str = "") -> Iterator[str]:
    """Columns, and what is nested in them, by their path."""
    for each in fields:
        name = f"{above}{each.get('name')}"
        yield name
        yield from _names(each.get("fields") or (), f"{name}.")


def _exact(reader: Reader, text: str) -> Iterator[Node]:
    kind, colon, rest = text.partition(":")
    if colon and kind in ("job", "dataset"):
        yield from (Node(kind, number) for number in reader.find(kind, _splits(rest, ":")))
    elif kind == "datasetField":
        for at in range(len(rest) - 1, 0, -1):  # a field may hold colons, and so may the rest
            if rest[at] == ":" and (numbers := reader.find("dataset", _splits(rest[:at], ":"))):
                yield from (Node("dataset", number, rest[at + 1 :]) for number in numbers)
                return
    else:
        for kind in ("dataset", "job"):
            yield from (Node(kind, number) for number in reader.find(kind, _splits(text, "/")))


def _suffix(reader: Reader, text: str) -> Iterator[Node]:
    kind, colon, rest = text.partition(":")
    kinds, wanted = ((kind,), rest) if colon and kind in ("job", "dataset") else (("dataset", "job"), text)
    if wanted.strip():
        found = [Node(each, number) for each in kinds for number in reader.named(each, wanted)]
        yield from found or (
            Node(each, number)
            for each in kinds
            for number in reader.match(each, wanted, suffix=True, limit=20)
        )


def _splits(text: str, mark: str) -> list[tuple[str, str]]:
    """Every way to cut a text in two at a mark: namespaces and names hold marks themselves."""
    return [
        (text[:at], text[at + 1 :])
        for at, letter in enumerate(text)
        if letter == mark and 0 < at < len(text) - 1
    ]


def moment(text: str, now: datetime | None = None) -> int:
    """A time as people write it -> microseconds: ISO 8601, or so long ago (`-24h`, `-7d`).

    >>> moment("-1h", datetime(1970, 1, 1, 2, tzinfo=timezone.utc))
    3600000000
    """
    text = text.strip()
    if text == "now":
        text = "-0s"
    try:
        if text[:1] == "-" and text[-1:] in _UNITS and text[1:-1].isdecimal():
            ago = timedelta(**{_UNITS[text[-1]]: int(text[1:-1])})
            return int(((now or datetime.now(timezone.utc)) - ago).timestamp() * 1_000_000)
        return micros(f"{text}T00:00:00" if len(text) == 10 else text)
    except (ValueError, OverflowError):
        raise ConfigError(f"{text!r} is no time: write 2026-01-31T12:00:00Z, 2026-01-31, or -24h") from None


def when(at: str | None, since: str | None = None) -> When:
    """A time and the start of a span as people write them -> the time that a question is about."""
    return When(moment(at) if at else NOW, moment(since) if since else None)


_EPOCH = datetime(1970, 1, 1)  # in UTC, as all that is stored; with a zone it would cost twice as much


@lru_cache(maxsize=4_096)  # of one run, most times are the same two
def iso(stamp: int | None) -> str | None:
    """Microseconds -> a time as people read it."""
    if stamp is None:
        return None
    return f"{(_EPOCH + timedelta(microseconds=stamp)).isoformat()}Z"
