"""deliver.datahub.told: what one event, or many events of a run group, tell -> one value that can be put together with others.

Each part carries the stamp of its event: `First` keeps the smallest stamp, `Last` the greatest, the rest are minima, maxima
and unions. So two of these give a third, whichever comes first, however often, and however they are parted.
"""

from __future__ import annotations

from typing import Any

import msgspec

from headwater.deliver.datahub.jobs import Names

Stamp = tuple[int, int, str, bytes]
"""When an event happened (microseconds), START < RUNNING < OTHER < terminal, its run, and its content."""
First = tuple[Stamp, Any]
Last = tuple[Stamp, Any]
RANK = {"START": 0, "RUNNING": 1, "OTHER": 2, "COMPLETE": 3, "ABORT": 3, "FAIL": 3}


class Column(msgspec.Struct):
    """What one column was made of."""

    texts: list[str] = []
    """`DIRECT:IDENTITY`, each once."""
    sources: list[tuple[str, str]] = []
    """Urn of a dataset, and its column."""
    query: Last | None = None


class Schema(msgspec.Struct):
    """The columns of a dataset."""

    fields: list[dict[str, Any]]
    ddl: str
    platform: str
    """The platform that the Java converter names."""


class Seen(msgspec.Struct):
    """A dataset."""

    urn: str
    original: str | None = None
    """The urn that this one is the alias of."""
    schema: tuple[Stamp, Schema] | None = None
    columns: dict[str, Column] | None = None
    """None: nothing was said of columns."""
    columns_at: Stamp | None = None
    operation: Last | None = None
    profile: Last | None = None


class Told(msgspec.Struct):
    """What is known of a run group, a job or a dataset."""

    kind: str
    """run, job or dataset"""
    group: str
    stamp: Stamp
    """The greatest"""
    time: int
    """Milliseconds: the greatest"""
    collapsed: bool = False
    """Whether several runs are told as one job, named as its flow."""
    names: tuple[Stamp, Names] | None = None
    description: First | None = None
    created: First | None = None
    flow_properties: dict[str, First] = {}
    job_properties: dict[str, First] = {}
    flow_tags: list[str] = []
    job_tags: list[str] = []
    owners: dict[str, str] = {}
    """Urn -> type"""
    links: list[str] = []
    inputs: dict[str, Seen] = {}
    outputs: dict[str, Seen] = {}
    aliases: dict[str, Last] = {}
    run: First | None = None
    """Its run id: of the first"""
    named: tuple[int, Stamp, str] | None = None
    """The latest event time (milliseconds), the first event of that time, its run id"""
    started: int | None = None
    succeeded: First | None = None
    """The first event that ended well: (time in milliseconds, its type)"""
    failed: Last | None = None
    """The last that ended badly"""
    ended: int | None = None
    parent: First | None = None
    """The run that started it, none of the group's own: (run id, the urn of its job or None)"""
    run_properties: dict[str, Last] = {}
    application: dict[str, First] = {}
    streaming: bool = False
    silent: bool = True
    """Whether no event named a dataset."""
    complete: bool = False
    """Whether the group's own run has ended."""
