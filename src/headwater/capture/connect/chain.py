"""capture.connect.chain: a connector's `transforms` and a record -> the records that leave the chain, with what to say about them.

Where a predicate depends on the data, both outcomes are kept. A transform that nobody knows, or whose settings are not
understood, leaves a record whose topic only observation tells and whose fields are not traced any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from headwater import plugins
from headwater.capture.connect.java import java_regex
from headwater.capture.connect.records import Node, Record
from headwater.capture.connect.smt import TRANSFORMS, Part, Transform
from headwater.errors import ConfigError, UnknownName

MAX_OUTCOMES = 16
"""Records that one may become; more predicates than that on one chain are not told apart."""

_PREDICATES = "org.apache.kafka.connect.transforms.predicates."


@dataclass(frozen=True, slots=True)
class Step:
    """One transform of a chain."""

    alias: str
    kind: str
    settings: Mapping[str, str]
    predicate: Mapping[str, str] | None = None
    negated: bool = False


def steps(config: Mapping[str, str]) -> list[Step]:
    """The chain, in its order.

    >>> [s.kind for s in steps({"transforms": "a", "transforms.a.type": "x.Y$Value", "transforms.a.field": "f"})]
    ['x.Y$Value']
    """
    found = []
    for alias in _names(config.get("transforms", "")):
        settings = _below(config, f"transforms.{alias}.")
        kind = settings.pop("type", "")
        named = settings.pop("predicate", "")
        negated = settings.pop("negate", "false").strip().lower() == "true"
        predicate = _below(config, f"predicates.{named}.") if named else None
        found.append(Step(alias, kind, settings, predicate, negated))
    return found


def follow(config: Mapping[str, str], record: Record) -> list[Record]:
    """What becomes of a record; nothing, where all like it are dropped."""
    records = [record]
    for step in steps(config):
        after: list[Record] = []
        for each in records:
            for outcome in _outcomes(step, each):
                if outcome not in after:
                    after.append(outcome)
        if len(after) > MAX_OUTCOMES:
            after = [
                _lost(each, "the chain has too many outcomes to follow") for each in after[:MAX_OUTCOMES]
            ]
        records = after
    return records


def _outcomes(step: Step, record: Record) -> list[Record]:
    applies = _applies(step, record)
    changed = list(_apply(step, record)) if applies is not False else []
    if applies is True:
        return changed
    if applies is False:
        return [record]
    if not changed:  # a filter that meets some records
        return [replace(record, filtered=True)]
    return [*changed, record]


def _applies(step: Step, record: Record) -> bool | None:
    """Whether its predicate holds; None where the data decide."""
    if step.predicate is None:
        return True
    if step.predicate.get("type") != f"{_PREDICATES}TopicNameMatches" or record.fits is not None:
        return None
    try:
        return java_regex(step.predicate.get("pattern", "")).matches(record.topic) is not step.negated
    except ConfigError:
        return None


def _apply(step: Step, record: Record) -> list[Record]:
    kind, _, suffix = step.kind.partition("$")
    part: Part = "key" if suffix == "Key" else "value"
    try:
        transform: Transform = plugins.find("smt", kind, TRANSFORMS)
        return list(transform(record, step.settings, part))
    except UnknownName:
        return [_lost(record, f"transform {step.alias}: {step.kind or 'no class'} is not known")]
    except ConfigError as fault:
        return [_lost(record, f"transform {step.alias}: {fault}")]


def _lost(record: Record, note: str) -> Record:
    """After something unknown: only observation tells the topic, and nobody the fields."""
    return replace(record, fits=".*", traced=False, key=Node(), value=Node()).noted(note)


def _names(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


def _below(config: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {key[len(prefix) :]: value for key, value in config.items() if key.startswith(prefix)}
