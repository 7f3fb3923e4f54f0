"""connect._watching: clusters, a clock and an emitter -> rounds: look, understand, step, tell, remember; for as long as wanted."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import msgspec

import headwater
from headwater import config
from headwater.capture.connect.catalogue import Catalogue, with_own
from headwater.capture.connect.events import Teller
from headwater.capture.connect.lifecycle import Moment, Policy, dues, step
from headwater.capture.connect.lineage import Lineage, lineage
from headwater.capture.connect.places import Site
from headwater.capture.connect.remembered import State, recollect, set_apart, strangers
from headwater.capture.connect.snapshots import Connector, Snapshot
from headwater.connect import Auth, Cluster, Watching
from headwater.connect._asking import Server
from headwater.connect._catalogs import Catalogs
from headwater.connect._keeping import Keeper
from headwater.connect._recalling import Recall
from headwater.connect._registry import Registries
from headwater.connect._rest import RestSource
from headwater.connect._sampling import Sampler
from headwater.errors import TransportError
from headwater.guard import Guard
from headwater.naming import scrub

log = logging.getLogger("headwater.connect")
MAX_WARNINGS = 1000

Emit = Callable[[list[dict[str, Any]]], None]


class Source(Protocol):
    """Where snapshots come from."""

    def rounds(self, now: float, *, whole: bool = False) -> list[tuple[float, Snapshot]]:
        """What there is to step through since the last call: times and snapshots, the last as of now."""

    def close(self) -> None:
        """Give back what is held."""


@dataclass(frozen=True, slots=True)
class Look:
    """What one look at a cluster showed."""

    snapshot: Snapshot
    lineages: dict[str, Lineage]


class Watcher:
    """Watches one cluster."""

    def __init__(
        self,
        cluster: Cluster,
        emit: Emit,
        *,
        namespace: str = "",
        catalogue: Catalogue | None = None,
        folder: Path | None = None,
        source: Source | None = None,
        recall: Recall | None = None,
    ) -> None:
        self.cluster = cluster
        self._emit = emit
        self._warned: set[str] = set()
        self._silent = ""
        self._source = source or RestSource(cluster, _server(cluster, cluster.url, cluster.auth), self.warn)
        self._registries = Registries(cluster, self.warn, lambda url, auth: _server(cluster, url, auth))
        self._catalogs = Catalogs(cluster, self.warn, lambda url, auth: _server(cluster, url, auth))
        self._sampler = Sampler(cluster, self.warn)
        self._site = Site(
            cluster.name,
            cluster.bootstrap,
            cluster.naming,
            cluster.schemas,
            resolve=cluster.resolve,
            catalogue=catalogue if catalogue is not None else with_own(None),
        )
        self._teller = Teller(
            cluster.namespace or namespace or f"kafka-connect://{cluster.name}",
            cluster.name,
            adapter=headwater.__version__,
            naming=cluster.naming,
            terminal_datasets=cluster.terminal_datasets,
        )
        self._policy = Policy(cluster.lifecycle, cluster.grace, cluster.fail_on, cluster.tasks)
        self._recall = recall
        self._before: Look | None = None
        self._unsent: list[tuple[float, Look]] = []
        self._keeper = Keeper(folder, cluster.name)
        self._state, wrong = self._keeper.load()
        self._unsaved = False
        if wrong:
            self.warn(wrong)
        self._drafts: dict[str, tuple[object, Lineage]] = {}
        self._lineages: dict[str, tuple[object, Lineage]] = {}
        self._digests: dict[str, tuple[Lineage, str]] = {}

    @property
    def state(self) -> State:
        """What is remembered."""
        return self._state

    def look(self, now: float, *, whole: bool = False) -> Look:
        """Look at the cluster and understand what is there.

        Raises:
            TransportError: it does not answer; nothing is concluded from that.

        """
        return self._looks(now, whole=whole)[-1][1]

    def _looks(self, now: float, *, whole: bool = False) -> list[tuple[float, Look]]:
        return [(at, self._look(each, now)) for at, each in self._source.rounds(now, whole=whole)]

    def _look(self, snapshot: Snapshot, now: float) -> Look:
        if snapshot.cluster_id != self._site.cluster_id:
            self._site = replace(self._site, cluster_id=snapshot.cluster_id)
            self._drafts.clear()
        found = {name: self._understand(each, now) for name, each in snapshot.connectors.items()}
        for name in self._drafts.keys() - found.keys() - self._state.connectors.keys():
            self._drafts.pop(name)
            self._lineages.pop(name, None)
            self._digests.pop(name, None)
        return Look(snapshot, found)

    def round(self, now: float) -> list[dict[str, Any]]:
        """One round: what happened is emitted, then remembered. Of a cluster that does not answer, nothing happened."""
        try:
            looks = self._looks(now)
        except TransportError as fault:
            if not self._silent:
                log.warning(
                    "cluster %s: %s; nothing is told of it until it answers", self.cluster.name, fault
                )
            self._silent = fault.cause
            return []
        if self._silent:
            log.warning("cluster %s answers again", self.cluster.name)
            self._silent = ""
        # a history is read once: what was read and could not be sent must not be lost
        looks, self._unsent = [*self._unsent, *looks], [*self._unsent, *looks[:-1]]
        state, events = self._state, list[dict[str, Any]]()
        told, before = state.at, self._before
        for at, look in looks:
            if (
                look.snapshot.exact
            ):  # judged by what was there until then: whenever it is read, it tells the same
                for due in self._due(state, at):
                    state, more = self._step(state, before or look, due)
                    events += more
            before = look
            if look is not looks[-1][1]:  # of a history, which a watcher that begins anew reads again
                if at <= told:
                    continue
                state = msgspec.structs.replace(state, at=max(at, state.at))
            state, more = self._step(state, look, at)
            events += more
        if events:
            self._emit(events)
        self._before, self._unsent = before, []
        # only now: what could not be sent is told in the next round
        if state != self._state or self._unsaved:
            self._state, self._unsaved = state, True
            self._keeper.save(state)
            self._unsaved = False
        return events

    def _due(self, state: State, until: float) -> list[float]:
        """When, since the last moment of a history, something that may have passed had lasted long enough."""
        return sorted(at for at in set(dues(state, self._policy)) if state.at <= at <= until)

    def _step(self, state: State, look: Look, at: float) -> tuple[State, list[dict[str, Any]]]:
        digests = {name: self._digest(name, each) for name, each in look.lineages.items()}
        ready = {name: each.ready for name, each in look.lineages.items()}
        known = self._acquainted(state, look.snapshot)
        state, moments = step(known, look.snapshot, at, self._policy, digests, ready)
        return state, self.tell(look, moments, at)

    def _acquainted(self, state: State, snapshot: Snapshot) -> State:
        """With what can be found out of runs that are not remembered; a history that is whole leaves nothing to find out."""
        for each in () if snapshot.whole else list(strangers(state, snapshot)):
            told = self._recall.told(state, each, self.warn) if self._recall is not None else None
            state = set_apart(state, each) if told is None else recollect(state, each, *told)
        return state

    def tell(self, look: Look, moments: Sequence[Moment], now: float) -> list[dict[str, Any]]:
        """The events of what happened."""
        teller = replace(self._teller, version=look.snapshot.version)
        last = {name: found for name, (_, found) in self._lineages.items()}
        return [
            teller.tell(each, (look.lineages.get(each.connector) or last.get(each.connector)), now)
            for each in moments
        ]

    def warn(self, message: str) -> None:
        """Say something once."""
        if message not in self._warned and len(self._warned) < MAX_WARNINGS:
            self._warned.add(message)
            log.warning("cluster %s: %s", self.cluster.name, scrub(message))

    def close(self) -> None:
        """Give back the connections."""
        self._source.close()
        self._registries.close()
        self._catalogs.close()
        self._sampler.close()
        if self._recall is not None:
            self._recall.close()

    def _digest(self, name: str, found: Lineage) -> str:
        """Its digest, made once for as long as it is the same."""
        known = self._digests.get(name)
        if known is None or known[0] is not found:
            known = self._digests[name] = (found, found.digest)
        return known[1]

    def _understand(self, connector: Connector, now: float) -> Lineage:
        """Its lineage, made anew only where something that decides it has changed."""
        key = (connector.digest, connector.type, connector.topics)
        known = self._drafts.get(connector.name)
        if known is None or known[0] != key:
            known = self._drafts[connector.name] = (key, lineage(connector, self._site))
        draft = known[1]
        schemas = self._registries.schemas(connector.config, draft.topics, now)
        schemas |= self._sampler.schemas(connector.config, draft.topics, now)
        locations = self._catalogs.locations(connector.config, draft.tables, now)
        if not schemas and not locations:
            self._lineages[connector.name] = known
            return draft
        whole = (
            key,
            self._site.cluster_id,
            [(at, each.version, each.id) for at, each in sorted(schemas.items())],
            locations,
        )
        made = self._lineages.get(connector.name)
        if made is None or made[0] != whole:
            made = self._lineages[connector.name] = (
                whole,
                lineage(connector, self._site, schemas, locations),
            )
        return made[1]


def watch(watchers: Sequence[Watcher], stop: threading.Event, clock: Callable[[], float] = time.time) -> None:
    """Watch several clusters until told to stop: one that hangs does not hold up the others."""
    threads = [threading.Thread(target=_loop, args=(each, stop, clock), daemon=True) for each in watchers]
    for each in threads:
        each.start()
    for each in threads:
        each.join()


def _loop(watcher: Watcher, stop: threading.Event, clock: Callable[[], float]) -> None:
    cluster = watcher.cluster
    guard = Guard(log, scrub)
    while not stop.is_set():
        with guard(f"watching cluster {cluster.name}"):
            watcher.round(clock())
        stop.wait(cluster.interval * (1 + random.uniform(-cluster.jitter, cluster.jitter)))
    watcher.close()


def open_watchers(
    watching: Watching, settings: config.Settings, emit: Emit, *, keep: bool = True, destination: str = ""
) -> list[Watcher]:
    """A watcher for each cluster of connect.toml; without `keep` nothing is remembered.

    `destination` is the url that the events go to: unless connect.toml names another server, it is asked for runs that
    were told before.
    """
    catalogue = with_own(Path(watching.connectors) if watching.connectors else None)
    own = settings.origins.get("namespace") != config.DEFAULT
    folder = Path(watching.state) if watching.state else settings.spool.parent / "connect"
    server = watching.recall or destination.partition("?")[0]
    auth = watching.recall_auth if watching.recall else Auth(token=settings.api_key or "")
    return [
        Watcher(
            each,
            emit,
            namespace=settings.namespace if own else "",
            catalogue=catalogue,
            folder=folder if keep else None,
            source=_topics(each) if each.mode == "topics" else None,
            recall=Recall(_server(each, server, auth)) if server.startswith("http") else None,
        )
        for each in watching.clusters
    ]


def _topics(cluster: Cluster) -> Source:
    from headwater.connect._topics import TopicSource

    return TopicSource(cluster)


def _server(cluster: Cluster, url: str, auth: Auth) -> Server:
    return Server(url, auth, timeout=cluster.timeout, verify=cluster.verify, max_bytes=cluster.max_bytes)
