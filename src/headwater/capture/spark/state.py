"""capture.spark.state: nothing -> what was learnt from the records of one application."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headwater.capture.spark.columns import Plan
from headwater.capture.spark.deps import Sources
from headwater.capture.spark.extending import Added, Extensions
from headwater.capture.spark.names import Named, Naming
from headwater.capture.spark.relation import Given, Schema
from headwater.capture.spark.settings import SparkSettings
from headwater.capture.spark.trimming import DatasetNames
from headwater.capture.spark.writes import Counts, Effect, Output
from headwater.naming import Identity

Record = dict[str, Any]
"""What the probe wrote down."""
Event = dict[str, Any]
"""An OpenLineage event."""


@dataclass(slots=True)
class Execution:
    """One SQL execution, or one job outside SQL."""

    id: int
    root: int
    start: int
    description: str = ""
    sql: str | None = None
    effect: Effect | None = None
    nested: list[Execution] = field(default_factory=list)
    counts: Counts = (None, None, None)
    writes: list[Counts] = field(default_factory=list)
    """The counts of each write, where a statement has several."""
    versions: dict[Identity, str] = field(default_factory=dict)
    """What tables have become after the commit."""
    scans: list[Any] = field(default_factory=list)
    told: bool = False
    site: Mapping[str, str] = field(default_factory=dict)
    """Which line of the program acted, as the sourceCodeLocation facet tells it."""
    run_facets: dict[str, Any] = field(default_factory=dict)
    """Facets of this run alone that were asked for."""
    denied: bool = False
    """By `filter.deniedSparkNodes`: nothing is told of it."""
    job: str | None = None
    """The job's name, as it was first told: a run has one job."""
    stream: str | None = None
    plan: Plan | None = None
    """Kept for a statement about tables, whose end tells more."""
    before: dict[str, Any] = field(default_factory=dict)
    added: Added = field(default_factory=Added)
    """By extensions."""
    unread: bool = False
    """Its plan was left behind: the queue was full."""


@dataclass(slots=True)
class Stream:
    """One streaming query: all its micro-batches are one run."""

    run: str
    start: int
    name: str | None = None
    query: str | None = None
    inputs: dict[Identity, Schema] = field(default_factory=dict)
    outputs: dict[Identity, Output] = field(default_factory=dict)
    command: str = "stream"
    job: str | None = None
    """The job's name; a stream is told when its first batch has said where it writes."""
    ended: bool = False
    site: Mapping[str, str] = field(default_factory=dict)
    added: Added = field(default_factory=Added)
    unknown: set[str] = field(default_factory=set)
    """Nodes of its plans that nobody knows."""
    missed: dict[str, None] = field(default_factory=dict)
    """What could not be told, and why."""


@dataclass(slots=True)
class State:
    """What was learnt from the records of one application."""

    namespace: str
    app: str
    run: str
    """The run id of the application."""
    version: str = ""
    """Of Spark."""
    conf: Mapping[str, str] = field(default_factory=dict)
    parent: Mapping[str, str] | None = None
    """The run that started the application: run, namespace, name."""
    root: Mapping[str, str] | None = None
    settings: SparkSettings = field(default_factory=SparkSettings)
    extensions: Extensions = field(default_factory=Extensions)
    common: dict[str, Any] = field(default_factory=dict)
    """Run facets that every START of the application has."""
    shown: DatasetNames | None = None
    """How `settings` want datasets named; made when first asked for."""
    sources: Sources = field(default_factory=Sources)
    named: dict[Identity, Named] = field(default_factory=dict)
    registry: OrderedDict[int, Given] = field(default_factory=OrderedDict)
    frames: dict[int, list[Given]] = field(default_factory=dict)
    executions: dict[int, Execution] = field(default_factory=dict)
    jobs: dict[int, Execution] = field(default_factory=dict)
    streams: dict[str, Stream] = field(default_factory=dict)
    owner: dict[int, int | None] = field(default_factory=dict)
    """Job -> execution, for extensions."""
    beside: dict[int, Added] = field(default_factory=dict)
    """What extensions said of jobs outside SQL."""
    lost: int = 0
    """Records that nobody read in time."""
    errors: list[tuple[str, int]] = field(default_factory=list)
    """First lines and times of errors that executions told, so that the driver's word of them is no second one."""


def naming(s: State) -> Naming:
    """What naming needs to know of the application."""
    return Naming(s.conf, not shown(s).partitions)


def shown(s: State) -> DatasetNames:
    """How datasets are named by the settings in force."""
    if s.shown is None or s.shown.settings is not s.settings:
        s.shown = DatasetNames(s.settings)
    return s.shown
