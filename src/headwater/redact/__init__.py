"""redact: an event's bytes and the rules of a house -> the same event without what must not be kept.

It happens before anything is stored, so what is hidden is nowhere: not in the log, not among the refused events, not
in a backup. It changes what is kept: the digest is that of the redacted event, and nobody can have the rest back.
What is applied twice changes nothing the second time. Only facets are touched: names of jobs, datasets and runs are
what the graph is made of. An event that no rule touches keeps its bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from headwater.errors import ConfigError, EventError
from headwater.naming import is_secret, scrub
from headwater.redact._sql import hide_literals

HIDDEN = "***"
_FACETS = ("facets", "inputFacets", "outputFacets")
_OWN = ("_producer", "_schemaURL")
_CONFIGURATION = ("environmentVariables", "environment-properties", "spark_properties", "kafkaConnect")
"""Facets into which producers copy configuration: `secrets` looks into these,"""
_WORDS = ("errorMessage", "dataSource")
"""and into these, whose texts may quote a url with a password in it."""
_IDENTITIES = ("parent", "symlinks", "columnLineage", "jobDependencies")
"""Facets that name runs and datasets: `values` leaves them alone, or the graph would fall apart."""
_ROUNDS = 8
_DEPTH = 64  # configuration is flat: what is deeper is hidden whole
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"(:?)')
_HINTS = tuple(f'"{name}"'.encode() for name in (*_CONFIGURATION, "errorMessage"))
_SOURCE = re.compile(rb'"dataSource"\s*:\s*\{[^{}]*\}')
_SUSPICIOUS = re.compile(
    rb"[@=\\]|%3d|--|pass|pwd|secret|token|cred|key|sig|sas|auth|bearer|cookie|jaas|userinfo|eyj|akia|asia",
    re.I,
)
"""What stands in every text that `naming.scrub` changes, and hardly in a plain url; a backslash may hide it."""

_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_array = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode, _encode = msgspec.json.decode, msgspec.json.encode

Rewrite = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True)
class Redaction:
    """The settings of room `redact`."""

    secrets: bool = True
    """Hide passwords, tokens and keys in facets that copy configuration (environment variables, Spark properties) or
    quote urls (errorMessage, dataSource)."""
    sql_literals: bool = False
    """Put `?` in the place of every literal in the facet `sql`, and leave its comments out."""
    paths: tuple[str, ...] = ()
    """What is hidden: `run.facets.environmentVariables.*`; `*` stands for any part of a name, lists are gone through."""
    drop: tuple[str, ...] = ()
    """What is left out altogether, as such paths."""
    values: tuple[str, ...] = ()
    """Regular expressions; what they find in the texts of facets is hidden."""
    _values: tuple[re.Pattern[str], ...] = field(default=(), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("paths", "drop"):
            for path in getattr(self, name):
                _check_path(f"redact.{name}", path)
        object.__setattr__(self, "_values", tuple(_compiled(each) for each in self.values))

    @property
    def strict(self) -> bool:
        """Whether the house has rules of its own: then nothing is kept that they cannot be applied to."""
        return bool(self.sql_literals or self.paths or self.drop or self.values)

    def apply(self, raw: bytes) -> bytes:
        """The event without what the rules hide; the same bytes where they hide nothing.

        >>> Redaction(paths=("run.facets.*.user",)).apply(b'{"run":{"facets":{"who":{"user":"fred","n":1}}}}')
        b'{"run":{"facets":{"who":{"user":"***","n":1}}}}'

        Raises:
            EventError: they cannot be read, so nothing can be hidden in them.

        """
        if not self.strict and not (self.secrets and _may_hold_secrets(raw)):
            return raw
        try:
            return self._applied(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as fault:
            raise EventError(
                "", f"not to be read, so nothing in it can be redacted: {type(fault).__name__}"
            ) from None

    def _applied(self, raw: bytes) -> bytes:
        packed = after = msgspec.json.format(raw, indent=-1)  # a refused event may still have its white space
        if packed[:1] != b"{" and self.strict:
            raise EventError("", "no object, so nothing in it can be redacted")
        for path in self.paths:
            after = _at(after, path.split("."), _hidden)
        for path in self.drop:
            after = _at(after, path.split("."), None)
        after = _members(after, self._part)
        return raw if after == packed else after

    def _part(self, name: str, raw: bytes) -> bytes:
        """run, job, dataset, and each of inputs and outputs."""
        if name not in ("run", "job", "dataset", "inputs", "outputs"):
            return raw
        if raw[:1] == b"[":
            return _items(raw, lambda item: self._part(name, item))
        return _members(raw, lambda key, inner: _members(inner, self._facet) if key in _FACETS else inner)

    def _facet(self, name: str, raw: bytes) -> bytes:
        if self.secrets and (name in _CONFIGURATION or name in _WORDS):
            raw = _scrubbed(raw)
        if self.sql_literals and name == "sql":
            raw = _without_literals(raw)
        if self._values and name not in _IDENTITIES:
            raw = _STRING.sub(self._value, raw)
        return raw

    def _value(self, found: re.Match[bytes]) -> bytes:
        if found[1]:  # a name, not a value
            return found[0]
        text: str = _decode(found[0])
        hidden = _find(text, self._values)
        return found[0] if hidden == text else _encode(hidden)


def _may_hold_secrets(raw: bytes) -> bool:
    # Nearly every event has a `dataSource`, and hardly one of them a secret: those are not taken apart.
    if any(hint in raw for hint in _HINTS):
        return True
    sources = _SOURCE.findall(raw)
    return len(sources) < raw.count(b'"dataSource"') or any(_SUSPICIOUS.search(each) for each in sources)


def _find(text: str, patterns: tuple[re.Pattern[str], ...]) -> str:
    """Hide what the patterns find, until they find no more; where there is no end to it, hide it all."""
    for _ in range(_ROUNDS):
        parts = text.split(HIDDEN)
        for pattern in patterns:
            parts = [each for part in parts for each in pattern.sub(HIDDEN, part).split(HIDDEN)]
        after = HIDDEN.join(parts)
        if after == text:
            return text
        text = after
    return HIDDEN


def _at(raw: bytes, path: list[str], change: Rewrite | None) -> bytes:
    """Change what stands at a path, or leave it out."""
    if raw[:1] == b"[":
        return _items(raw, lambda item: _at(item, path, change))
    if raw[:1] != b"{":
        return raw
    head, rest = path[0], path[1:]
    made: dict[str, msgspec.Raw] = {}
    for name, inner in _object(raw).items():
        if not fnmatchcase(name, head) or name in _OWN:
            made[name] = inner
        elif rest:
            made[name] = msgspec.Raw(_at(bytes(inner), rest, change))
        elif change is not None:
            made[name] = msgspec.Raw(change(bytes(inner)))
    return _encode(made)


def _members(raw: bytes, change: Callable[[str, bytes], bytes]) -> bytes:
    if raw[:1] != b"{":
        return raw
    # a name that stands twice is written once: what is hidden in one must not stay in the other
    return _encode({name: msgspec.Raw(change(name, bytes(inner))) for name, inner in _object(raw).items()})


def _items(raw: bytes, change: Rewrite) -> bytes:
    return _encode([msgspec.Raw(change(bytes(item))) for item in _array(raw)])


def _hidden(raw: bytes) -> bytes:
    """Every text becomes ***, every number and truth null: the shape stays, so that whoever reads it can."""
    return _encode(_blank(_decode(raw)))


def _blank(value: Any, depth: int = _DEPTH) -> Any:
    if isinstance(value, dict) and depth:
        return {name: inner if name in _OWN else _blank(inner, depth - 1) for name, inner in value.items()}
    if isinstance(value, list) and depth:
        return [_blank(inner, depth - 1) for inner in value]
    return HIDDEN if isinstance(value, str) else None


def _scrubbed(raw: bytes) -> bytes:
    before = _decode(raw)
    after = _without_secrets(before)
    return raw if after == before else _encode(after)


def _without_secrets(value: Any, key: str = "", depth: int = _DEPTH) -> Any:
    if depth == 0:
        return HIDDEN
    if isinstance(value, dict):
        named = value.get("name")  # {"name": "DB_PASSWORD", "value": "…"}
        return {
            name: _without_secrets(
                inner, named if name == "value" and isinstance(named, str) else name, depth - 1
            )
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_without_secrets(inner, key, depth - 1) for inner in value]
    if isinstance(value, str):
        return HIDDEN if value and is_secret(key) else scrub(value)
    return HIDDEN if value is not None and not isinstance(value, bool) and is_secret(key) else value


def _without_literals(raw: bytes) -> bytes:
    if raw[:1] != b"{":
        return raw
    facet = _object(raw)
    if "query" not in facet or bytes(facet["query"])[:1] != b'"':
        return raw
    query: str = _decode(facet["query"])
    dialect = _decode(facet["dialect"]) if "dialect" in facet else None
    after = hide_literals(query, dialect if isinstance(dialect, str) else None)
    return raw if after == query else _encode({**facet, "query": msgspec.Raw(_encode(after))})


def _compiled(text: str) -> re.Pattern[str]:
    try:
        pattern = re.compile(text)
    except re.error as fault:
        raise ConfigError(f"redact.values: {text!r} is no regular expression: {fault}") from None
    if pattern.search("") is not None:
        raise ConfigError(
            f"redact.values: {text!r} finds nothing at all in every text: it would hide everything"
        )
    return pattern


def _check_path(setting: str, path: str) -> None:
    parts = path.split(".")
    if not all(parts):
        raise ConfigError(f"{setting}: {path!r} has an empty part: write run.facets.NAME.FIELD")
    places = list(_places(parts))
    if not places:
        raise ConfigError(
            f"{setting}: {path!r} leads into no facet: begin with run.facets, job.facets, dataset.facets, inputs.facets,"
            " inputs.inputFacets, outputs.facets or outputs.outputFacets; names and times are never hidden"
        )


def _places(parts: list[str]) -> Iterator[tuple[str, str]]:
    """The places that the first two parts lead to; what is no facet must not be among them."""
    if len(parts) < 3 or parts[1] not in _FACETS:
        return
    for name in ("run", "job", "dataset", "inputs", "outputs"):
        if fnmatchcase(name, parts[0]):
            yield name, parts[1]
