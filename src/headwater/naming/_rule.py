"""naming._rule: a pattern and a template for namespace and name -> one alias rule, checked when it is made.

In a pattern `{v}` stands for anything without a slash and `{v*}` for anything at all; everything else is literal and
the whole text has to match. A template puts the values in again: `{v}`, or `{v:lower}` and `{v:upper}`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from headwater.errors import ConfigError

_BRACE = re.compile(r"\{([^{}]*)\}")
_VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\*?)")
_PLACE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\*?(?::(lower|upper))?")
_SHORT = 1_000_000  # steps: what a regular expression tries at most on a text that is left to it
_FIELDS = ("namespace", "name", "to_namespace", "to_name")


@dataclass(frozen=True, slots=True)
class AliasRule:
    """Datasets whose identity matches get another one.

    Args:
        namespace: pattern of the namespace; None matches every one.
        name: pattern of the name; None matches every one.
        to_namespace: template of the new namespace; None keeps it.
        to_name: template of the new name; None keeps it.

    >>> AliasRule(namespace="kafka://{broker}:9092", to_namespace="kafka://prod").rewrite("kafka://b1:9092", "orders")
    ('kafka://prod', 'orders')
    """

    namespace: str | None = None
    name: str | None = None
    to_namespace: str | None = None
    to_name: str | None = None

    def __post_init__(self) -> None:
        for part in _FIELDS:
            value = getattr(self, part)
            if value is not None and not isinstance(value, str):
                raise ConfigError(f"alias rule: {part} is {value!r}, a text was expected")
            if value is not None and not value.strip():
                raise ConfigError(
                    f"alias rule: {part} is empty; leave it out to {'keep it' if part.startswith('to_') else 'match all'}"
                )
        if self.namespace is None and self.name is None:
            raise ConfigError("alias rule: nothing to match; give a pattern for namespace or name")
        if self.to_namespace is None and self.to_name is None:
            raise ConfigError("alias rule: nothing to change; give to_namespace or to_name")
        known = _variables(self.namespace or "") | _variables(self.name or "")
        for template in (self.to_namespace, self.to_name):
            _check_template(template or "", known)

    def rewrite(self, namespace: str, name: str) -> tuple[str, str] | None:
        """The new identity, or None when the rule does not match."""
        values: dict[str, str] = {}
        for pattern, text in ((self.namespace, namespace), (self.name, name)):
            if pattern is None:
                continue
            found = _find(pattern, text)
            if found is None:
                return None
            for key, value in found.items():
                if values.setdefault(key, value) != value:  # one variable, one value
                    return None
        return (
            namespace if self.to_namespace is None else _put(self.to_namespace, values),
            name if self.to_name is None else _put(self.to_name, values),
        )

    @property
    def prefix(self) -> str:
        """What every namespace the rule matches begins with."""
        return (self.namespace or "").partition("{")[0]

    def to_dict(self) -> dict[str, str]:
        """The rule as JSON can hold it; `from_dict` reads it back."""
        return {part: value for part in _FIELDS if (value := getattr(self, part)) is not None}

    @classmethod
    def from_dict(cls, data: Mapping[str, str]) -> AliasRule:
        """Read a rule from its own four fields, or from Correlator's `pattern` and `canonical`."""
        if set(data) == {"pattern", "canonical"}:
            return cls.from_urns(data["pattern"], data["canonical"])
        if unknown := sorted(set(data) - set(_FIELDS)):
            raise ConfigError(
                f"alias rule: unknown {', '.join(unknown)}; it takes {', '.join(_FIELDS)}, or pattern and canonical"
            )
        return cls(**data)

    @classmethod
    def from_urns(cls, pattern: str, canonical: str) -> AliasRule:
        """Read a rule over `namespace/name`, as Correlator writes it; the name begins after the host.

        >>> AliasRule.from_urns("demo_postgres/{name}", "postgresql://demo/marts.{name}").to_name
        'marts.{name}'
        """
        (namespace, name), (to_namespace, to_name) = _split_urn(pattern), _split_urn(canonical)
        return cls(namespace, name, to_namespace, to_name)

    @classmethod
    def parse(cls, text: str) -> AliasRule:
        """Read a rule over namespaces from one line.

        >>> AliasRule.parse("kafka://{b}:9092 -> kafka://prod").to_dict()
        {'namespace': 'kafka://{b}:9092', 'to_namespace': 'kafka://prod'}
        """
        pattern, arrow, template = text.partition("->")
        if not arrow or "->" in template:
            raise ConfigError(f"alias rule {text!r}: write it as 'namespace pattern -> namespace'")
        return cls(namespace=pattern.strip(), to_namespace=template.strip())


def _variables(pattern: str) -> set[str]:
    found = set()
    for _, brace in _pieces(pattern):
        if brace is None:
            continue
        variable = _VARIABLE.fullmatch(brace)
        if variable is None:
            raise ConfigError(
                f"alias rule {pattern!r}: {{{brace}}} is no variable; write {{name}} or {{name*}}"
            )
        found.add(variable[1])
    return found


@lru_cache(
    maxsize=8192
)  # compiled when first met, not when the rule is made: importing the defaults stays light
def _compile(pattern: str) -> re.Pattern[str]:
    made, seen = "", set()
    for literal, brace in _pieces(pattern):
        made += re.escape(literal)
        if brace is not None:
            variable = brace.removesuffix("*")
            anything = ".+" if brace.endswith("*") else "[^/]+"
            made += f"(?P={variable})" if variable in seen else f"(?P<{variable}>{anything})"
            seen.add(variable)
    return re.compile(made, re.DOTALL)


def _find(pattern: str, text: str) -> Mapping[str, str] | None:
    """What the variables stand for, the first as long as it can be; None where the text does not match.

    A regular expression goes back over a text once more for each variable, which takes a long one minutes.
    """
    compiled, (head, places) = _compile(pattern), _places(pattern)
    repeats = len(places) > compiled.groups  # of which only a regular expression knows that they are the same
    if repeats or not places or len(text) ** len(places) <= _SHORT:
        found = compiled.fullmatch(text)
        return None if found is None else found.groupdict()
    return _walk(head, places, text) if text.startswith(head) and text.endswith(places[-1][2]) else None


def _walk(head: str, places: list[tuple[str, bool, str]], text: str) -> dict[str, str] | None:
    """As the regular expression finds it, in one pass from the end for each variable."""
    fits = [False] * len(text) + [True]  # whether what follows a variable can begin here
    ends: list[list[int]] = []
    for _, anything, literal in reversed(places):
        furthest, reached = -1, [-1] * (len(text) + 1)
        for at in range(len(text) - len(literal) - 1, -1, -1):
            if text[at] == "/" and not anything:
                furthest = -1
                continue
            if furthest < 0 and fits[at + 1 + len(literal)] and text.startswith(literal, at + 1):
                furthest = at + 1
            reached[at] = furthest
        fits = [end >= 0 for end in reached]
        ends.append(reached)
    at, values = len(head), {}
    for (variable, _, literal), reached in zip(places, reversed(ends), strict=True):
        end = reached[at]
        if end < 0:  # only of the first: the others fit where it does
            return None
        values[variable] = text[at:end]
        at = end + len(literal)
    return values


@lru_cache(maxsize=8192)
def _places(pattern: str) -> tuple[str, list[tuple[str, bool, str]]]:
    """What a pattern begins with; then each variable, whether it may hold slashes, and what follows it."""
    pieces = _pieces(pattern)
    return pieces[0][0], [
        (brace.removesuffix("*"), brace.endswith("*"), literal)
        for (_, brace), (literal, _) in pairwise(pieces)
        if brace is not None
    ]


def _check_template(template: str, known: set[str]) -> None:
    for _, brace in _pieces(template):
        if brace is None:
            continue
        place = _PLACE.fullmatch(brace)
        if place is None:
            raise ConfigError(
                f"alias rule: {{{brace}}} in {template!r} is no variable; write {{name}}, {{name:lower}} or {{name:upper}}"
            )
        if place[1] not in known:
            raise ConfigError(
                f"alias rule: {template!r} uses {{{place[1]}}}, the pattern has {', '.join(sorted(known)) or 'no variables'}"
            )


def _pieces(text: str) -> list[tuple[str, str | None]]:
    """Literals, each with the brace that follows it."""
    pieces = _BRACE.split(text)
    if any("{" in literal or "}" in literal for literal in pieces[::2]):
        raise ConfigError(f"alias rule {text!r}: a brace is not closed, or not opened")
    return [
        (literal, pieces[2 * i + 1] if 2 * i + 1 < len(pieces) else None)
        for i, literal in enumerate(pieces[::2])
    ]


def _put(template: str, values: Mapping[str, str]) -> str:
    def one(found: re.Match[str]) -> str:
        key, _, case = found[1].partition(":")
        value = values[key.rstrip("*")]
        return value.lower() if case == "lower" else value.upper() if case == "upper" else value

    return _BRACE.sub(one, template)


def _split_urn(text: str) -> tuple[str, str]:
    start = text.find("://")
    slash = text.find("/", start + 3 if start >= 0 else 0)
    if slash < 0 or not text[slash + 1 :]:
        raise ConfigError(f"alias rule {text!r}: write it as namespace/name")
    return text[:slash], text[slash + 1 :]
