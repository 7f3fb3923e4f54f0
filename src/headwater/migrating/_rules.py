"""migrating._rules: a key of another tool's settings -> the rule that tells what becomes of it here.

The rules are the one place: `headwater config check` and the tables in docs/migrating follow from them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

Verdict = Literal["honoured", "becomes", "no effect", "remove", "refused"]
"""honoured: works as it is · becomes: write `to` instead · no effect: may stay, does nothing · remove: take it
out · refused: Headwater will not start with it, or would tell other lineage than was asked for."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What becomes of one key, or of all that a pattern stands for.

    `{name}` stands for a part without dots, `{name*}` for any text. `example` and `beside` are a value and further keys with
    which a test asks the code itself whether the verdict is true.
    """

    key: str
    verdict: Verdict
    why: str = ""
    to: str = ""
    example: str = "x"
    beside: Mapping[str, str] = field(default_factory=dict)
    at: str = ""
    """A key that it stands for, where any text in the place of `{…}` would not do."""

    def fits(self, key: str) -> bool:
        """Whether the key is one of those.

        >>> Rule("facets.{name*}.disabled", "honoured").fits("facets.spark.logicalPlan.disabled")
        True
        """
        return _pattern(self.key).fullmatch(key) is not None

    @property
    def sample(self) -> str:
        """One key that the rule stands for."""
        return self.at or re.sub(r"\{\w+\*?\}", "some", self.key)


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of one key of a file; values are never told."""

    key: str
    verdict: Verdict
    why: str = ""
    to: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """What becomes of a file."""

    kind: str
    """What the file was taken for."""
    keys: tuple[Finding, ...] = ()
    problems: tuple[str, ...] = ()
    """What would not work as it stands."""
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What Headwater would do, and what to do next."""
    settings: str = ""
    """A headwater.toml that says the same, where there is one."""

    def told(self) -> dict[str, Any]:
        """As JSON tells it; what is empty is left out, but for the problems."""
        keys = [
            {name: text for name in ("key", "verdict", "to", "why") if (text := getattr(each, name))}
            for each in self.keys
        ]
        rest = {"warnings": list(self.warnings), "notes": list(self.notes), "settings": self.settings}
        return {"file": self.kind, "keys": keys, "problems": list(self.problems)} | {
            name: value for name, value in rest.items() if value
        }


def rule_for(rules: Iterable[Rule], key: str) -> Rule | None:
    """The first rule that the key fits."""
    return next((each for each in rules if each.fits(key)), None)


def found(rules: Sequence[Rule], key: str, unknown: Finding | None = None) -> Finding | None:
    """The finding of a key, by its rule."""
    rule = rule_for(rules, key)
    return Finding(key, rule.verdict, rule.why, rule.to) if rule else unknown


def blamed(key: str, problems: Iterable[str]) -> bool:
    """Whether a problem is about a key, or about something in it.

    >>> blamed("timeout", ["openlineage.yml: transport.timeout: must be a number"])
    True
    >>> blamed("time", ["openlineage.yml: transport.timeout: must be a number"])
    False
    """
    return any(re.search(rf"[ .]{re.escape(key)}[:.]", each) for each in problems)


def table(rules: Iterable[Rule]) -> str:
    """The rules as a table of Markdown."""
    lines = ["| key | verdict | |", "|---|---|---|"]
    for each in rules:
        verdict = f"becomes {each.to}" if each.verdict == "becomes" else each.verdict
        why = (
            each.why
            if each.verdict == "becomes" or not each.to
            else "; ".join(filter(None, [each.why, each.to]))
        )
        lines.append(f"| {_shown(each.key)} | {verdict} | {why} |".replace("|  |", "| |"))
    return "\n".join(lines) + "\n"


def _shown(key: str) -> str:
    return f"`{key}`".replace("*}", "}")


@lru_cache(maxsize=512)
def _pattern(key: str) -> re.Pattern[str]:
    parts = re.split(r"(\{\w+\*?\})", key)
    return re.compile("".join(_part(each) for each in parts), re.DOTALL)


def _part(text: str) -> str:
    if text.startswith("{"):
        return ".+" if text.endswith("*}") else "[^.]+"
    return re.escape(text)
