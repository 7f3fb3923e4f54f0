"""query.correlation: the store -> how many tested datasets have a known writer, which have none, and which rules would help.

A dataset that is tested but written by nobody known is an orphan: most often one tool calls it otherwise than
another. A table of the same name that is written somewhere is its likely match, and from pairs of them come alias
rules; each is tried on every orphan before it is suggested.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headwater.errors import ConfigError
from headwater.naming import DEFAULT_RULES, Aliases, AliasRule
from headwater.query.nodes import iso
from headwater.store import Store

if TYPE_CHECKING:
    from headwater.store import Reader

_FILES = re.compile(r"\.(parquet|csv|json|avro|orc)$")
_HOUSE = Aliases(DEFAULT_RULES)
Name = tuple[str, str]


def urn(namespace: str, name: str) -> str:
    """An identity as Correlator writes it; a port is left out only where it is the default one.

    >>> urn("postgres://db:5432", "shop.orders"), urn("postgres://db:6000", "shop.orders"), urn("demo", "orders")
    ('postgresql://db/shop.orders', 'postgresql://db:6000/shop.orders', 'demo/orders')
    """
    scheme, mark, rest = namespace.partition("://")
    if mark:
        short = f"{ {'postgres': 'postgresql'}.get(scheme, scheme) }://{rest}"
        bare = re.sub(r":\d+$", "", short)
        namespace = next(
            (each for each in (bare, short) if _HOUSE.rewrite(each, name) == (namespace, name)), namespace
        )
    return f"{namespace}/{name}"


def tool(producer: str | None) -> str:
    """The tool that a producer's url stands for.

    >>> tool("https://github.com/OpenLineage/OpenLineage/tree/1.0.0/integration/dbt")
    'dbt'
    >>> tool("https://github.com/correlator-io/correlator-dbt/0.1.1"), tool("https://example.org/x"), tool(None)
    ('correlator-dbt', 'example.org', 'unknown')
    """
    parts = [part for part in (producer or "").partition("://")[2].split("/") if part]
    if not parts:
        return producer or "unknown"
    if "integration" in parts[:-1]:
        named = parts[parts.index("integration") + 1]
        return parts[-1] if named == "common" else named
    return parts[2] if parts[0] == "github.com" and len(parts) > 2 else parts[0]


def table(name: str) -> str:
    """The last part of a dataset's name, as different tools would agree on it.

    >>> table("marts/Orders.parquet"), table("shop.public.orders")
    ('orders', 'orders')
    """
    last = _FILES.sub("", name.rstrip("/").rpartition("/")[2].lower())
    return last.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class Suggestion:
    """An alias rule, and the orphans that it would lead home."""

    pattern: str
    canonical: str
    resolves: tuple[Name, ...]


def suggest(orphans: Iterable[Name], produced: Iterable[Name]) -> tuple[dict[Name, Name], list[Suggestion]]:
    """Each orphan's likely match, and the rules that follow; what several tables could be is left to people."""
    known = set(produced)
    homes: dict[str, list[Name]] = {}
    for each in sorted(known):
        homes.setdefault(table(each[1]), []).append(each)
    matches = {one: found[0] for one in orphans if len(found := homes.get(table(one[1]), [])) == 1}
    rules = {_rule(one, home) for one, home in matches.items()}
    made: list[Suggestion] = []
    for pattern, canonical in sorted(rules):
        try:
            rule = AliasRule.from_urns(pattern, canonical)
        except ConfigError:
            continue  # a name with braces in it: no rule can be written
        led = tuple(sorted(one for one in matches if _home(rule, one) in known))
        if led and all(_home(rule, one) == matches[one] for one in led):
            made.append(Suggestion(pattern, canonical, led))
    made.sort(key=lambda each: (-len(each.resolves), each.pattern, each.canonical))
    left, chosen = set(matches), []
    for rule_for in made:  # one rule for many before many for one
        if left & set(rule_for.resolves):
            left -= set(rule_for.resolves)
            chosen.append(rule_for)
    return matches, chosen


def _home(rule: AliasRule, one: Name) -> Name | None:
    made = rule.rewrite(*one)
    return _HOUSE.rewrite(*made) if made is not None else None


def _rule(orphan: Name, home: Name) -> tuple[str, str]:
    """What both names end with is the variable; what stands before it is the rule."""
    (namespace, name), (to_namespace, to_name) = orphan, home
    end = 0
    while end < min(len(name), len(to_name)) and name[-1 - end] == to_name[-1 - end]:
        end += 1
    tail = name[len(name) - end :]
    whole = tail if tail in (name, to_name) else re.sub(r"^[^./]*[./]?", "", tail)  # from where a part begins
    source, target = urn(namespace, name), urn(to_namespace, to_name)
    if not whole:
        return source, target
    variable = "{name*}" if "/" in whole else "{name}"
    return source.removesuffix(whole) + variable, target.removesuffix(whole) + variable


def correlation(store: Store) -> dict[str, Any]:
    """How well tests and writers are joined: counts, orphans with their likely match, and suggested rules."""
    with store.read() as reader:
        return _correlation(reader)


def _correlation(reader: Reader) -> dict[str, Any]:
    faults, writes = reader.faults(), reader.writes()
    rows = faults.tested()
    leaders = faults.leaders({row[0] for row in rows})
    produced = writes.produced_datasets()
    tested: dict[int, list[int]] = {}
    for number, tests, failed, last in rows:
        sums = tested.setdefault(leaders[number], [0, 0, 0, number])
        sums[0], sums[1], sums[2] = sums[0] + tests, sums[1] + failed, max(sums[2], last)
    names = faults.named("dataset", {*tested, *produced})
    alone = [number for number in tested if number not in produced]
    matches, rules = suggest((names[each] for each in alone), (names[each] for each in produced))
    numbers = {names[each]: each for each in produced}
    makers = writes.producers(faults.members({numbers[each] for each in matches.values()}))
    failing = [number for number, sums in tested.items() if sums[1]]
    joined = sum(1 for number in failing if number in produced)
    return {
        "correlation_rate": joined / len(failing) if failing else 1.0,
        "total_datasets": len(tested),
        "produced_datasets": len(produced),
        "correlated_datasets": sum(1 for number in tested if number in produced),
        "orphan_datasets": [
            {
                "dataset_urn": urn(*names[each]),
                "test_count": tested[each][0],
                "last_seen": iso(tested[each][2]),
                "producer": tool(faults.testers(tested[each][3])),
                "likely_match": {
                    "dataset_urn": urn(*home),
                    "confidence": 1.0,
                    "match_reason": "exact_table_name",
                    "producer": tool(makers.get(numbers[home])),
                }
                if (home := matches.get(names[each]))
                else None,
            }
            for each in sorted(alone, key=lambda number: names[number])
        ],
        "suggested_patterns": [
            {
                "pattern": each.pattern,
                "canonical": each.canonical,
                "resolves_count": len(each.resolves),
                "orphans_resolved": [urn(*one) for one in each.resolves],
            }
            for each in rules
        ],
    }
