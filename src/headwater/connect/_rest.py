"""connect._rest: Connect's REST API -> a Snapshot, by the calls that its workers answer from memory.

`expand=status` is asked in every round. `expand=info`, some forty times dearer, is asked when a name, a state or a task has changed,
and else only now and then; `/topics` only for connectors whose settings do not tell their topics, a few in each round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from headwater.capture.connect.snapshots import Memo, Snapshot, from_rest
from headwater.connect import Cluster
from headwater.connect._asking import Server
from headwater.errors import TransportError

MANY = 50
"""Connectors whose topics are asked for in one round."""


class RestSource:
    """One cluster behind its REST API."""

    def __init__(self, cluster: Cluster, server: Server, warn: Callable[[str], None]) -> None:
        self._cluster, self._server, self._warn = cluster, server, warn
        self._root: Any = None
        self._infos: Mapping[str, Any] = {}
        self._infos_at = float("-inf")
        self._shown: Any = None
        self._topics: dict[str, tuple[float, frozenset[str] | None]] = {}
        self._forbidden = float("-inf")
        self._memo: Memo = {}

    def rounds(self, now: float, *, whole: bool = False) -> list[tuple[float, Snapshot]]:
        """The cluster now; `whole` asks for everything at once.

        Raises:
            TransportError: it does not answer as it should.

        """
        if self._root is None:
            self._root = self._server.get("/")
        statuses = _named(self._server.get("/connectors?expand=status"), "status")
        shown = {name: _outline(each) for name, each in statuses.items()}
        old = now - self._infos_at >= self._cluster.refresh
        if whole or old or shown != self._shown or set(shown) != set(self._infos):
            self._infos = _named(self._server.get("/connectors?expand=info"), "info")
            self._infos_at, self._shown = now, shown
        self._ask_topics(now, whole)
        topics = {name: found for name, (_, found) in self._topics.items()}
        return [(now, from_rest(self._infos, statuses, topics, self._root, self._memo))]

    def close(self) -> None:
        """Give back the connections."""
        self._server.close()

    def _ask_topics(self, now: float, whole: bool) -> None:
        self._topics = {name: each for name, each in self._topics.items() if name in self._infos}
        due = sorted(
            (self._topics.get(name, (float("-inf"), None))[0], name)
            for name, info in self._infos.items()
            if self._wants(info)
        )
        for asked, name in due if whole else due[:MANY]:
            if now - asked < self._cluster.refresh or now < self._forbidden:
                break
            self._topics[name] = (now, self._read_topics(name, now))

    def _wants(self, info: Any) -> bool:
        """Whether only Connect can tell a connector's topics, or whether it has read any record yet."""
        config = info.get("info", {}).get("config") if isinstance(info, dict) else None
        if not isinstance(config, dict):
            return False
        settled = config.get("topics") and "${" not in str(config["topics"])
        return (
            self._cluster.lifecycle == "seed" or not settled or "Mirror" in str(config.get("connector.class"))
        )

    def _read_topics(self, name: str, now: float) -> frozenset[str] | None:
        before = self._topics.get(name, (0.0, None))[1]
        try:
            answer = self._server.get(f"/connectors/{quote(name, safe='')}/topics")
        except TransportError as fault:
            if fault.cause in ("missing", "http_404"):  # Confluent Cloud has no such path
                return None
            if fault.cause == "http_403":  # topic.tracking.enable=false: it will not change soon
                self._forbidden = now + 10 * self._cluster.refresh
                self._warn("Connect does not tell topics (topic.tracking.enable=false): only settings do")
                return None
            self._warn(f"topics: {fault}")
            return before
        inner = answer.get(name) if isinstance(answer, dict) else None
        listed = inner.get("topics") if isinstance(inner, dict) else None
        return (
            frozenset(each for each in listed if isinstance(each, str))
            if isinstance(listed, list)
            else before
        )


def _named(answer: Any, half: str) -> dict[str, Any]:
    """The connectors of an `expand` answer.

    An answer that is no table, or that holds connectors without the half that was asked for (as a Connect before 2.3 gives),
    is a fault: to take it for an empty cluster would end every run.
    """
    if not isinstance(answer, dict) or any(not isinstance(e, dict) or half not in e for e in answer.values()):
        raise TransportError(
            f"the answer to expand={half} is not understood: is it Kafka Connect 2.3 or newer?",
            retryable=True,
            cause="no_connect",
        )
    return answer


def _outline(status: Any) -> object:
    """What hints at a change of configuration."""
    inner = status.get("status") if isinstance(status, dict) else None
    if not isinstance(inner, dict):
        return None
    own, tasks = inner.get("connector"), inner.get("tasks")
    return (
        own.get("state") if isinstance(own, dict) else None,
        [(each.get("id"), each.get("state")) for each in tasks if isinstance(each, dict)]
        if isinstance(tasks, list)
        else None,
    )
