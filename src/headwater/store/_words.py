"""store._words: a name, a description, a query -> the words of it, as the search index keeps and asks them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from headwater.store._told import Told

_WORD = re.compile(r"[^\W_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_ENDS = re.compile(r"[/.:]")
_MAX_WORD, _MAX_WORDS, _MAX_TEXT = 64, 5_000, 20_000
_AROUND = 40
_MATCHES = 5


class Document(NamedTuple):
    """What the index holds of one node."""

    label: str
    """The name, as letters are compared."""
    tail: str
    """Its last part: `orders` of `shop.public.orders`."""
    names: str
    """The words of the name."""
    words: str
    """The words of everything, the name's among them."""
    marks: str
    """Tags and owners, each on a line: what filters look at."""
    slots: bytes


def words(text: str) -> Iterator[str]:
    """The words of a text: cut at everything that is no letter or digit, and at humps, whole and in parts.

    >>> list(words("etl/loadOrders_daily"))
    ['etl', 'loadorders', 'load', 'orders', 'daily']
    """
    for word in _WORD.findall(text):
        parts = _HUMP.split(word)
        yield word.casefold()[:_MAX_WORD]
        if len(parts) > 1:
            yield from (part.casefold()[:_MAX_WORD] for part in parts)


def asked(text: str) -> list[str]:
    """The words that a query asks for; each may be the beginning of one.

    >>> asked("loadOrders shop.pub")
    ['load', 'orders', 'shop', 'pub']
    """
    found = (part for word in _WORD.findall(text) for part in _HUMP.split(word))
    return list(dict.fromkeys(part.casefold()[:_MAX_WORD] for part in found))[:16]


def folded(text: str) -> str:
    """A name as letters are compared."""
    return text.casefold()[:1_000]


def document(told: Told) -> Document:
    """A node as the index keeps it. Words stand in order and once: the same whatever came first."""
    names = dict.fromkeys(words(told.name))
    every = set(names)
    for _, text in _texts(told):
        if len(every) < _MAX_WORDS:
            every.update(words(text[:_MAX_TEXT]))
    marks = [
        *(f"tag:{folded(tag)}" for tag in _tags(told)),
        *(f"owner:{folded(owner['name'])}" for owner in told.owners),
    ]
    return Document(
        folded(told.name),
        folded(_ENDS.split(told.name.rstrip("/.:"))[-1]),
        " ".join(sorted(names)),
        " ".join(sorted(every)[:_MAX_WORDS]),
        "".join(f"\n{each}" for each in sorted(set(marks))) + "\n",
        told.slots,
    )


def _tags(told: Told) -> Iterator[str]:
    yield from told.tags
    for column in told.columns:
        yield from column["tags"]


def _texts(told: Told) -> Iterator[tuple[str, str]]:
    """What can be found, and where it stands."""
    yield "name", told.name
    yield "namespace", told.namespace
    yield from (("tag", tag) for tag in told.tags)
    yield from (("owner", owner["name"]) for owner in told.owners)
    yield "description", told.description
    for column in told.columns:
        yield "column", column["name"]
        yield from (("tag", tag) for tag in column["tags"])
        yield "column description", column["description"]
    yield "sql", told.sql


def matches(told: Told, query: str, also: Iterable[tuple[str, str]] = ()) -> list[dict[str, Any]]:
    """Where a query's words stand in a node: the place, a piece of text, and which letters of it."""
    wanted = asked(query) or [query]
    pattern = re.compile("|".join(sorted(map(re.escape, wanted), key=len, reverse=True)), re.IGNORECASE)
    found: list[dict[str, Any]] = []
    for place, text in (*also, *_texts(told)):
        first = pattern.search(text[:_MAX_TEXT])
        if first is None:
            continue
        start = max(0, first.start() - _AROUND) if len(text) > 2 * _AROUND + 40 else 0
        piece = text[start : start + 2 * _AROUND + 40]
        marks = [[each.start(), each.end()] for each in pattern.finditer(piece) if each.end() > each.start()]
        found.append({"in": place, "text": piece, "marks": marks[:20]})
        if len(found) == _MATCHES:
            break
    return found
