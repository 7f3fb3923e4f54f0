"""capture.connect.snapshots: what Connect's REST API answers -> one Snapshot of a cluster, whatever was malformed left out.

Connect tells a connector in two halves. `info` holds its configuration and which tasks it should have; `status` holds what
each task was last known to do. A task that only `status` knows is a leftover of an earlier configuration, so it is left out;
one that only `info` knows has not been started yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any, Literal

import msgspec

from headwater.naming import scrub, scrub_mapping

Type = Literal["source", "sink", "unknown"]

STATES = frozenset({"UNASSIGNED", "RUNNING", "PAUSED", "FAILED", "RESTARTING", "STOPPED"})
SEED_TRANSFORM = "io.factorhouse.smt.OpenLineageLifecycleSmt"
MAX_TRACE = 20_000
"""Characters of a stack trace that are kept: the causes stand at both ends."""


@dataclass(frozen=True, slots=True)
class Task:
    """One task, as last reported."""

    id: int
    state: str
    worker: str = ""
    trace: str = ""


@dataclass(frozen=True)
class Connector:
    """One connector, as one round saw it."""

    name: str
    type: Type = "unknown"
    config: Mapping[str, str] = field(default_factory=dict)
    state: str = "UNASSIGNED"
    """UNASSIGNED too where Connect tells no status yet: it was created a moment ago."""
    worker: str = ""
    trace: str = ""
    version: str = ""
    tasks: tuple[Task, ...] = ()
    topics: frozenset[str] | None = None
    """The topics that it was seen to read or write; None where nobody may ask."""
    opened: str = ""
    """What began this configuration, where Connect's own topics tell it: the position of that record."""

    @property
    def kind(self) -> str:
        """The connector's class."""
        return self.config.get("connector.class", "")

    @cached_property
    def digest(self) -> str:
        """What stands for its configuration in private; several ask for it in every round."""
        return config_digest(self.config)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A cluster at one moment."""

    connectors: Mapping[str, Connector]
    cluster_id: str = ""
    """Of the Kafka cluster behind it."""
    version: str = ""
    exact: bool = False
    """Whether it was put together from a history: what is absent was deleted."""
    whole: bool = False
    """Whether that history goes back to the beginning, so that it shows every run there ever was."""


Memo = dict[str, tuple[object, Connector]]
"""connector -> what was answered of it, and what that amounts to"""


def from_rest(
    infos: Any,
    statuses: Any,
    topics: Mapping[str, frozenset[str] | None] | None = None,
    root: Any = None,
    memo: Memo | None = None,
) -> Snapshot:
    """Put together what `expand=info`, `expand=status`, each `/topics` and `/` answered.

    With a `memo` of earlier calls, a connector of which the same was answered is the same object.

    >>> info = {"c": {"info": {"config": {"connector.class": "X"}, "tasks": [{"task": 0}], "type": "sink"}}}
    >>> status = {"c": {"status": {"connector": {"state": "RUNNING"}, "tasks": [{"id": 1, "state": "FAILED"}]}}}
    >>> [(task.id, task.state) for task in from_rest(info, status).connectors["c"].tasks]
    [(0, 'UNASSIGNED')]
    """
    known = _mapping(infos)
    told = _mapping(statuses)
    found = {}
    for name in sorted(known):
        info = _mapping(_mapping(known[name]).get("info"))
        if not info:
            continue
        status = _mapping(_mapping(told.get(name)).get("status"))
        seen = (info, status, (topics or {}).get(name))
        before = memo.get(name) if memo is not None else None
        found[name] = before[1] if before is not None and before[0] == seen else _connector(name, *seen)
        if memo is not None:
            memo[name] = (seen, found[name])
    if memo is not None:
        for name in memo.keys() - found.keys():
            del memo[name]
    about = _mapping(root)
    return Snapshot(found, _text(about.get("kafka_cluster_id")), _text(about.get("version")))


def _connector(
    name: str, info: Mapping[str, Any], status: Mapping[str, Any], topics: frozenset[str] | None
) -> Connector:
    config = {str(key): _text(value) for key, value in _mapping(info.get("config")).items()}
    own = _mapping(status.get("connector"))
    wanted = {
        each["task"]
        for each in _list(info.get("tasks"))
        if isinstance(each, Mapping) and isinstance(each.get("task"), int)
    }
    tasks = {at: Task(at, "UNASSIGNED") for at in wanted}
    tasks |= {
        each["id"]: Task(
            each["id"], _state(each.get("state")), _text(each.get("worker_id")), trace(each.get("trace"))
        )
        for each in _list(status.get("tasks"))
        if isinstance(each, Mapping) and isinstance(each.get("id"), int) and each["id"] in wanted
    }
    kind = info.get("type")
    return Connector(
        name=name,
        type=kind if kind in ("source", "sink") else "unknown",
        config=config,
        state=_state(own.get("state")),
        worker=_text(own.get("worker_id")),
        trace=trace(own.get("trace")),
        version=_text(own.get("version")),
        tasks=tuple(tasks[at] for at in sorted(tasks)),
        topics=topics,
    )


def trace(value: Any) -> str:
    """A stack trace without secrets, and no longer than needed.

    >>> trace("Failed: jdbc:postgresql://db/shop?password=x")
    'Failed: jdbc:postgresql://db/shop?password=***'
    """
    if not value:
        return ""
    text = scrub(_text(value))
    half = MAX_TRACE // 2
    return text if len(text) <= MAX_TRACE else f"{text[:half]}\n…\n{text[-half:]}"


def seed_settings(config: Mapping[str, str]) -> dict[str, str]:
    """What the transform of the Factor House labs was told, where a connector carries it.

    >>> seed_settings({"transforms.o.type": SEED_TRANSFORM, "transforms.o.topics": "t"})["topics"]
    't'
    """
    for key, kind in config.items():
        if kind == SEED_TRANSFORM and key.startswith("transforms.") and key.endswith(".type"):
            prefix = key[: -len("type")]
            return {each[len(prefix) :]: text for each, text in config.items() if each.startswith(prefix)}
    return {}


def config_digest(config: Mapping[str, str]) -> str:
    """What stands for a configuration in private: any change of it, a password's too, gives another."""
    return blake2b(msgspec.json.encode(sorted(config.items())), digest_size=16).hexdigest()


def public_digest(config: Mapping[str, str]) -> str:
    """What stands for a configuration in public: made without its secrets, so that nobody can try passwords on it."""
    return config_digest(scrub_mapping(config))


def _state(value: Any) -> str:
    word = _text(value).upper()
    return word if word in STATES else "UNASSIGNED"


def _mapping(value: Any) -> Mapping[str, Any]:
    return (
        value if isinstance(value, (dict, Mapping)) else {}
    )  # dict first: it is one almost always, and quicker asked


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)
