"""capture.connect.history: records of Connect's own topics, in their order -> snapshots at the times when something changed.

The configuration topic says what was asked for, and when; the status topic what came of it. Together they are an exact history,
also of what happened while nobody watched, until Kafka compacts it away. They hold secrets: nothing of them is logged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from headwater.capture.connect.snapshots import STATES, Connector, Snapshot, Task, trace

MAX_TASKS = 10_000
"""Of one connector: a number beyond is no number of tasks."""
_CONNECTOR, _TASKS, _TARGET, _RESTART = "connector-", "commit-", "target-state-", "restart-connector-"
_STATUS, _TASK_STATUS, _TOPIC_STATUS = "status-connector-", "status-task-", "status-topic-"


@dataclass(slots=True)
class _Seen:
    """What the records told of one connector so far."""

    config: dict[str, str] | None = None
    opened: str = ""
    target: str = "STARTED"
    tasks: int = 0
    state: str = "UNASSIGNED"
    worker: str = ""
    trace: str = ""
    version: str = ""
    statuses: dict[int, Task] = field(default_factory=dict)
    topics: set[str] = field(default_factory=set)


class History:
    """Takes records, and tells what they amount to.

    >>> history = History()
    >>> history.take("config", "connector-c", b'{"properties": {"topics": "t"}}', "0:7")
    True
    >>> history.snapshot().connectors["c"].opened
    '0:7'
    """

    def __init__(self, cluster_id: str = "") -> None:
        self._cluster_id = cluster_id
        self._seen: dict[str, _Seen] = {}
        self._next: dict[tuple[str, str], int] = {}
        self._whole = True

    def take(self, topic: Literal["config", "status"], key: str, value: bytes | None, position: str) -> bool:
        """Take a record; whether it may have changed anything."""
        self._mind_gaps(topic, position)
        told = _decoded(value)
        return self._config(key, told, position) if topic == "config" else self._status(key, told)

    def snapshot(self) -> Snapshot:
        """What all records so far amount to."""
        found = {}
        for name, seen in self._seen.items():
            if seen.config is not None:
                found[name] = _connector(name, seen)
        return Snapshot(found, self._cluster_id, exact=True, whole=self._whole)

    def _mind_gaps(self, topic: str, position: str) -> None:
        """A position that is left out was compacted away, or holds the mark of a transaction: nobody can tell which."""
        partition, _, offset = position.partition(":")
        at = int(offset) if offset.isdigit() else -1
        self._whole = self._whole and at == self._next.get((topic, partition), 0)
        self._next[topic, partition] = at + 1

    def _config(self, key: str, told: Mapping[str, Any] | None, position: str) -> bool:
        if key.startswith(_RESTART):
            seen = self._seen.get(key[len(_RESTART) :])
            if seen is None or told is None or told.get("only-failed"):
                return False  # the failed ones begin anew by themselves
            seen.opened = position
            return True
        if key.startswith(_CONNECTOR):
            return self._configured(key[len(_CONNECTOR) :], told, position)
        if key.startswith(_TARGET):
            seen = self._seen.setdefault(key[len(_TARGET) :], _Seen())
            seen.target = str((told or {}).get("state.v2") or (told or {}).get("state") or "STARTED")
            return seen.config is not None
        if key.startswith(_TASKS) and told is not None:
            seen = self._seen.setdefault(key[len(_TASKS) :], _Seen())
            seen.tasks = told["tasks"] if isinstance(told.get("tasks"), int) else 0
            return True
        return False

    def _configured(self, name: str, told: Mapping[str, Any] | None, position: str) -> bool:
        if told is None:
            return self._seen.pop(name, None) is not None
        properties = told.get("properties")
        if not isinstance(properties, dict):
            return False
        config = {str(each): "" if text is None else str(text) for each, text in properties.items()}
        seen = self._seen.setdefault(name, _Seen())
        if seen.config == config:
            return False
        seen.config, seen.opened = config, position
        return True

    def _status(self, key: str, told: Mapping[str, Any] | None) -> bool:
        if key.startswith(_TOPIC_STATUS):
            return self._topic(told)
        if key.startswith(_STATUS):
            seen = self._seen.setdefault(key[len(_STATUS) :], _Seen())
            before = (seen.state, seen.worker)
            seen.state, seen.worker, seen.trace, seen.version = _state(told)
            return before != (seen.state, seen.worker)
        if key.startswith(_TASK_STATUS):
            name, _, number = key[len(_TASK_STATUS) :].rpartition("-")
            if not name or not number.isdigit():
                return False
            seen = self._seen.setdefault(name, _Seen())
            old = seen.statuses.get(int(number))
            state, worker, text, _ = _state(told)
            seen.statuses[int(number)] = new = Task(int(number), state, worker, text)
            return old != new
        return False

    def _topic(self, told: Mapping[str, Any] | None) -> bool:
        inner = (told or {}).get("topic")
        if not isinstance(inner, dict) or not isinstance(inner.get("name"), str):
            return False
        seen = self._seen.setdefault(str(inner.get("connector")), _Seen())
        new = inner["name"] not in seen.topics
        seen.topics.add(inner["name"])
        return new


def _connector(name: str, seen: _Seen) -> Connector:
    config = seen.config or {}
    state = {"STOPPED": "STOPPED", "PAUSED": "PAUSED"}.get(seen.target, seen.state)
    if seen.target == "STARTED" and seen.state in ("STOPPED", "PAUSED"):
        state = "UNASSIGNED"  # it was resumed, and no worker has said so yet
    return Connector(
        name,
        "sink" if config.get("topics") or config.get("topics.regex") else "source",
        config,
        state,
        seen.worker,
        seen.trace,
        seen.version,
        tuple(seen.statuses.get(at) or Task(at, "UNASSIGNED") for at in range(min(seen.tasks, MAX_TASKS))),
        frozenset(seen.topics),
        seen.opened,
    )


def _state(told: Mapping[str, Any] | None) -> tuple[str, str, str, str]:
    given = told or {}
    state = str(given.get("state") or "")
    return (
        state if state in STATES else "UNASSIGNED",
        str(given.get("worker_id") or ""),
        trace(given.get("trace")),
        str(given.get("version") or ""),
    )


def _decoded(value: bytes | None) -> Mapping[str, Any] | None:
    """A record's JSON; None where it was removed, or is no table."""
    if value is None:
        return None
    try:
        found = msgspec.json.decode(value)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
