"""migrating.of_connector: a connector's JSON -> what to take out of it, and what `headwater connect watch` would tell of it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from headwater.errors import ConfigError, NotInstalled
from headwater.migrating import connect_smt
from headwater.migrating._rules import Finding, Report, found

if TYPE_CHECKING:
    from headwater.capture.connect.lineage import Lineage, Told

KIND = "a connector"
SMT = "io.factorhouse.smt.OpenLineageLifecycleSmt"


def check(text: str, name: str) -> Report:
    """What becomes of it: `{"name": …, "config": {…}}` as Connect's REST API takes it, or the configuration alone."""
    try:
        given = json.loads(text)
    except ValueError as fault:
        raise ConfigError(f"{name}: is no JSON: {fault}") from None
    config = given.get("config", given) if isinstance(given, Mapping) else None
    if not isinstance(config, Mapping) or any(isinstance(each, Mapping | list) for each in config.values()):
        raise ConfigError(f'{name}: is no connector: write {{"name": …, "config": {{"connector.class": …}}}}')
    texts = {str(key): _text(value) for key, value in config.items()}
    called = str(given.get("name") or texts.get("name") or name.removesuffix(".json"))
    if not texts.get("connector.class"):
        return Report(KIND, problems=(f"{name}: connector.class is missing: Connect would refuse it, too",))
    keys, bare = _taken_out(texts)
    try:
        told = _told(called, texts, bare, carried=bool(keys))
    except ImportError as fault:
        raise NotInstalled("checking a connector", "connect") from fault
    return Report(KIND, (*keys, *_own(texts)), *told)


def _text(value: object) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else "" if value is None else str(value)


def _taken_out(config: Mapping[str, str]) -> tuple[tuple[Finding, ...], dict[str, str]]:
    """What is said of the transform's keys, and the configuration without them."""
    names = [each.strip() for each in config.get("transforms", "").split(",") if each.strip()]
    gone = [each for each in names if config.get(f"transforms.{each}.type") == SMT]
    if not gone:
        return (), dict(config)
    rest = ",".join(each for each in names if each not in gone)
    keys = [
        Finding("transforms", "remove", f"{', '.join(gone)}: {f'leave {rest}' if rest else 'leave it out'}")
    ]
    for alias in gone:
        prefix = f"transforms.{alias}."
        for key in config:
            if key.startswith(prefix):
                inner = key.removeprefix(prefix)
                told = found(
                    connect_smt.TRANSFORM, inner, Finding(inner, "remove", "goes with the transform")
                )
                assert told is not None  # an unknown one is told as well
                keys.append(Finding(key, "remove", told.why, told.to))
    bare = {
        key: text
        for key, text in config.items()
        if not key.startswith(tuple(f"transforms.{a}." for a in gone))
    }
    bare = {**bare, "transforms": rest} if rest else {k: v for k, v in bare.items() if k != "transforms"}
    return tuple(keys), bare


def _own(config: Mapping[str, str]) -> tuple[Finding, ...]:
    told = (found(connect_smt.CONNECTOR, key) for key in config if key != "transforms")
    return tuple(each for each in told if each is not None)


def _told(
    name: str, config: Mapping[str, str], bare: Mapping[str, str], *, carried: bool
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Problems, warnings and notes: what the watcher would tell without the transform."""
    from headwater.capture.connect.lineage import lineage
    from headwater.capture.connect.places import Site
    from headwater.capture.connect.snapshots import Connector

    brokers = next((os.environ[n] for n in _BROKERS if os.environ.get(n)), "")
    seen = lineage(Connector(name, "unknown", bare), Site("connect", brokers))
    notes = [f"`headwater connect watch` would tell of {name}:", *_edges(seen)]
    if carried:
        notes.append('and with `naming = "factorhouse"` in connect.toml, as the transform names datasets:')
        notes += _edges(lineage(Connector(name, "unknown", config), Site("connect", brokers, "factorhouse")))
    notes.append(f"columns, and topics that only running shows: `headwater connect explain {name}`")
    dark = not seen.inputs and not seen.outputs
    problems = tuple(f"nothing can be told of it: {each}" for each in seen.why) if dark else ()
    return problems, () if dark else seen.why, tuple(notes)


_BROKERS = tuple(each.key for each in connect_smt.ENVIRONMENT)


def _edges(seen: Lineage) -> list[str]:
    def row(word: str, each: Told) -> str:
        return f"  {word} {each.dataset.namespace}/{each.dataset.name}"

    return [row("reads ", each) for each in seen.inputs] + [row("writes", each) for each in seen.outputs]
