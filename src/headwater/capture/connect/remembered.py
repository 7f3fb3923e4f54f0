"""capture.connect.remembered: runs told so far, here or by another watcher -> what is known of a cluster, and the ids of its runs.

A run's id is made from the cluster, the connector, its configuration and the run's number among those of that configuration.
Which number comes next is remembered. One who does not remember finds out (`strangers`, `recollect`), or begins a series of its
own (`set_apart`): the id of a run that ended is given to no other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal
from uuid import UUID, uuid5

import msgspec

from headwater.capture.connect.snapshots import Connector, Snapshot, public_digest

_SPACE = UUID("5f3c9d0e-7f7c-5c0b-9d1e-6b2f3a4c5d6e")
MAX_REMEMBERED = 10_000
"""Configurations of connectors that are gone whose runs are still counted; those forgotten begin a new series if they return."""

Fate = Literal["open", "failed", "ended"]
"""What became of a run that someone else told of."""


class Doubt(msgspec.Struct, frozen=True):
    """Something seen that may pass: since when, and in how many rounds."""

    since: float
    rounds: int = 1


class Ran(msgspec.Struct, frozen=True):
    """A task's run."""

    id: str
    count: int
    open: bool = True
    doubt: Doubt | None = None


class Known(msgspec.Struct, frozen=True):
    """What is remembered of one connector."""

    config: str
    """The private digest of its configuration."""
    run: str | None = None
    told: str = ""
    """The digest of the datasets last told; empty before the first RUNNING."""
    mood: str = ""
    """PAUSED or UNASSIGNED where that was told."""
    failed: bool = False
    """Its last run failed, and it has not recovered."""
    ended: bool = False
    """It was stopped."""
    doubt: Doubt | None = None
    idle: Doubt | None = None
    absent: Doubt | None = None
    tasks: dict[int, Ran] = {}
    opened: str = ""
    last: str = ""
    """The run that was open last; where none is, the one that ended."""
    job: str = ""
    """What the transform of the Factor House labs was told to call it."""
    adopted: str = ""
    """Of a run that another watcher began: what keeps the runs of its tasks apart from those which that one told."""


class Series(msgspec.Struct, frozen=True):
    """The runs of one configuration of a connector."""

    next: int = 0
    root: str = ""
    """What sets them apart from a series that nobody remembers; empty where that cannot be."""
    fate: Fate | None = None
    """What became of the last, where another watcher told of it and this one has not taken it up yet."""


class State(msgspec.Struct, frozen=True):
    """What is remembered of one cluster; `encode` and `decode` keep it on disk."""

    cluster: str
    connectors: dict[str, Known] = {}
    series: dict[str, Series] = {}
    """The runs of each configuration of each connector, the one that began a run last at the end."""
    at: float = 0.0
    """Of an exact history: up to when it was told."""
    epoch: str = ""
    """What no other state has: the root of each series of which nobody can say whether it had runs before."""

    def encode(self) -> bytes:
        """For a file."""
        return msgspec.json.encode(self)

    @classmethod
    def decode(cls, raw: bytes) -> State:
        """From a file; raises msgspec.ValidationError or DecodeError where it is none."""
        return msgspec.json.decode(raw, type=cls)


def run_id(
    cluster: str, connector: str, config: str, number: int, task: int | None = None, root: str = ""
) -> str:
    """The same for everyone who saw the same."""
    parts = (cluster, connector, config, str(number), "" if task is None else str(task))
    return str(uuid5(_SPACE, "\0".join((*parts, root) if root else parts)))


def strangers(state: State, snapshot: Snapshot) -> Iterator[Connector]:
    """The connectors with a configuration of which this state tells no run: another watcher may have told some."""
    for each in snapshot.connectors.values():
        known = state.connectors.get(each.name)
        if known is not None and (known.config, known.opened) == (each.digest, each.opened):
            continue  # met already
        if series_key(each) not in state.series:
            yield each


def numbered(state: State, connector: Connector, number: int) -> str:
    """The id that a connector's run of that number has, in the series that everyone shares."""
    return run_id(state.cluster, connector.name, public(connector), number)


def recollect(state: State, connector: Connector, told: int, fate: Fate) -> State:
    """What another told of a stranger: so many runs, and what became of the last; that one is gone on with where it is open."""
    found = Series(told, fate=fate if told else None)
    return msgspec.structs.replace(state, series={**state.series, series_key(connector): found})


def set_apart(state: State, connector: Connector) -> State:
    """Nobody can say whether a stranger had runs: it begins a series of its own."""
    return msgspec.structs.replace(
        state, series={**state.series, series_key(connector): Series(0, state.epoch)}
    )


def series_key(connector: Connector) -> str:
    """What its runs are counted under."""
    return f"{connector.name}\0{public(connector)}"


def public(connector: Connector) -> str:
    """What stands for its configuration in ids: where it began, if that is known, or what it says without its secrets."""
    return connector.opened or public_digest(connector.config)


def forget(state: State) -> State:
    """Without the series of connectors that are gone, where there are too many of them."""
    if len(state.series) <= MAX_REMEMBERED:
        return state
    gone = [key for key in state.series if key.split("\0")[0] not in state.connectors]
    if len(gone) <= MAX_REMEMBERED:
        return state
    lost = set(gone[: len(gone) - MAX_REMEMBERED])
    series = {key: each for key, each in state.series.items() if key not in lost}
    # what is forgotten must not come back under its old root
    epoch = uuid5(_SPACE, f"after\0{state.epoch}").hex
    return msgspec.structs.replace(state, series=series, epoch=epoch)
