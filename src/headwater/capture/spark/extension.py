"""capture.spark.extension: what an extension is given and gives back: records and plan nodes -> datasets and facets.

    class Acme(Extension):
        def input_visitors(self, context):
            return [AcmeTables(context.inputs)]

        def run_facets(self, context):
            return [shuffled]

    class AcmeRelation(Node, spark="LogicalRelation"):       # a node of that class of Spark's
        ...

    def shuffled(stage: StageInfo) -> dict[str, Any]:        # called for stages: the annotation says so
        return {"acme_shuffle": {"bytes": stage.metrics.get("shuffle.write.bytesWritten", 0)}}

A function is called with what its first parameter is annotated with, or with what its `defined_at(given)` agrees to.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import UnionType
from typing import Any, ClassVar, Generic, TypeVar

from headwater import naming

Facets = Mapping[str, Mapping[str, Any]]
"""name -> fields; `_producer` and `_schemaURL` are added where they lack."""
Function = Callable[[Any], Any]


class _OfSpark:
    """Stands for objects of a class of Spark's: a subclass is met by objects of the class it is named after."""

    __slots__ = ()
    spark: ClassVar[str | None] = None
    """The class, plain or with its package; None for all."""

    def __init_subclass__(cls, spark: str | None = None) -> None:
        super().__init_subclass__()
        if _OfSpark not in cls.__bases__ and (spark or "spark" not in cls.__dict__):
            cls.spark = spark or cls.__name__

    def _is(self, kind: type[_OfSpark], classes: Iterable[str]) -> bool:
        return kind.spark is None or any(kind.spark in (each, _simple(each)) for each in classes)


@dataclass(frozen=True, slots=True)
class Node(_OfSpark):
    """A node of an analyzed plan. Fields are as Spark names them; plans among them are nodes.

    >>> class LogicalRelation(Node): ...
    >>> LogicalRelation.spark
    'LogicalRelation'
    """

    name: str
    """The simple name of its class."""
    class_name: str = ""
    columns: tuple[tuple[str, str], ...] = ()
    """Name and type of each, where the node tells them: leaves and commands do."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    children: tuple[Node, ...] = ()

    def __getitem__(self, name: str) -> Any:
        return self.fields[name]

    def get(self, name: str, default: Any = None) -> Any:
        """A field, or the default."""
        return self.fields.get(name, default)

    def walk(self) -> Iterator[Node]:
        """This node and all below it."""
        yield self
        for child in self.children:
            yield from child.walk()

    def meets(self, kind: type) -> bool:
        """Whether it is what a parameter of that type asks for."""
        return issubclass(kind, Node) and self._is(kind, (self.class_name or self.name, self.name))


@dataclass(frozen=True, slots=True)
class Rdd(_OfSpark):
    """An RDD of a stage; those that only wrap another are listed beside it.

    >>> class HadoopRDD(Rdd): ...
    >>> Rdd(7, classes=("org.apache.spark.rdd.HadoopRDD",)).meets(HadoopRDD)
    True
    """

    id: int
    name: str | None = None
    classes: tuple[str, ...] = ()
    """Its class and those above it, up to RDD itself."""
    paths: tuple[str, ...] = ()
    columns: tuple[tuple[str, str], ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Its plain fields: texts, numbers, options."""

    def meets(self, kind: type) -> bool:
        """Whether it is what a parameter of that type asks for."""
        return issubclass(kind, Rdd) and self._is(kind, self.classes)


@dataclass(frozen=True, slots=True)
class StageInfo:
    """A stage that has ended, with its task metrics, or one that will run."""

    id: int
    attempt: int = 0
    name: str = ""
    tasks: int = 0
    submitted: int | None = None
    """Milliseconds since 1970, as all times here."""
    completed: int | None = None
    error: str | None = None
    metrics: Mapping[str, int] = field(default_factory=dict)
    """As Spark names them: `input.recordsRead`, `shuffle.write.bytesWritten`, `executorRunTime` …"""
    accumulators: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage with its RDDs."""

    id: int
    kind: str = ""
    """ResultStage or ShuffleMapStage."""
    name: str = ""
    tasks: int = 0
    rdds: tuple[Rdd, ...] = ()


@dataclass(frozen=True, slots=True)
class ActiveJob:
    """A job that has begun, with its last stage."""

    id: int
    stage: Stage


@dataclass(frozen=True, slots=True)
class JobStart:
    """A job begins; `execution` is the SQL execution that it belongs to, if any."""

    id: int
    time: int
    execution: int | None = None
    stages: tuple[StageInfo, ...] = ()


@dataclass(frozen=True, slots=True)
class JobEnd:
    """A job has ended."""

    id: int
    time: int
    error: str | None = None


@dataclass(frozen=True, slots=True)
class SqlStart:
    """A SQL execution begins. On some paths Spark knows the plan only at the end."""

    id: int
    time: int
    root: int | None = None
    description: str = ""
    sql: str | None = None
    plan: Node | None = None


@dataclass(frozen=True, slots=True)
class SqlEnd:
    """A SQL execution has ended."""

    id: int
    time: int
    error: str | None = None
    plan: Node | None = None
    """Where it was not known at the start."""
    metrics: tuple[tuple[Any, ...], ...] = ()
    """(class, rows, files, bytes, where) of each node of the executed plan that counts rows."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset that an extension found; made by a DatasetFactory, which knows the side."""

    namespace: str
    name: str
    schema: Sequence[tuple[str, str]] = ()
    facets: Facets = field(default_factory=dict)
    """Facets of the dataset."""
    side_facets: Facets = field(default_factory=dict)
    """Facets of its part in the run: `inputFacets` or `outputFacets`."""


class InputDataset(Dataset):
    """A dataset that is read."""

    __slots__ = ()


class OutputDataset(Dataset):
    """A dataset that is written."""

    __slots__ = ()


D = TypeVar("D", bound=Dataset)


@dataclass(frozen=True, slots=True)
class DatasetFactory(Generic[D]):
    """Makes datasets of one side, so that a visitor can serve both. Names follow the OpenLineage naming spec.

    >>> DatasetFactory(InputDataset).path("s3a://lake/orders/").name
    'orders'
    """

    kind: type[D]

    def dataset(
        self,
        namespace: str,
        name: str,
        *,
        schema: Sequence[tuple[str, str]] = (),
        facets: Facets | None = None,
        side_facets: Facets | None = None,
    ) -> D:
        """A dataset by its names."""
        return self.kind(namespace, name, tuple(schema), dict(facets or {}), dict(side_facets or {}))

    def path(self, path: str, **told: Any) -> D:
        """A file or directory."""
        return self._of(naming.from_path(path), told)

    def jdbc(self, url: str, table: str, **told: Any) -> D:
        """A table behind a JDBC url."""
        return self._of(naming.from_jdbc(url, table), told)

    def topic(self, brokers: str, topic: str, **told: Any) -> D:
        """A Kafka topic."""
        return self._of(naming.from_topic(brokers, topic), told)

    def _of(self, named: naming.Dataset, told: Mapping[str, Any]) -> D:
        return self.dataset(named.identity.namespace, named.identity.name, **told)


@dataclass(frozen=True, slots=True)
class Context:
    """What an extension may know of the application."""

    namespace: str
    app: str
    run_id: str
    spark_version: str = ""
    conf: Mapping[str, str] = field(default_factory=dict)
    """Spark's configuration, without secrets."""
    inputs: DatasetFactory[InputDataset] = DatasetFactory(InputDataset)
    outputs: DatasetFactory[OutputDataset] = DatasetFactory(OutputDataset)


class Extension:
    """Subclass it and override what you need; each answers functions of one argument.

    Visitors are given nodes of plans. Builders are given `SqlStart SqlEnd JobStart JobEnd Rdd Stage StageInfo ActiveJob`.
    Both answer datasets (one, several or None), facet functions a mapping name -> fields.
    """

    def input_visitors(self, context: Context) -> Iterable[Function]:
        """Functions from a plan node to datasets that are read there."""
        return ()

    def output_visitors(self, context: Context) -> Iterable[Function]:
        """Functions from a plan node to datasets that are written there."""
        return ()

    def input_builders(self, context: Context) -> Iterable[Function]:
        """Functions from a record to datasets that are read."""
        return ()

    def output_builders(self, context: Context) -> Iterable[Function]:
        """Functions from a record to datasets that are written."""
        return ()

    def input_facets(self, context: Context) -> Iterable[Function]:
        """Functions from a record to `inputFacets` of every dataset read."""
        return ()

    def output_facets(self, context: Context) -> Iterable[Function]:
        """Functions from a record to `outputFacets` of every dataset written."""
        return ()

    def dataset_facets(self, context: Context) -> Iterable[Function]:
        """Functions from a record to facets of every dataset."""
        return ()

    def run_facets(self, context: Context) -> Iterable[Function]:
        """Functions from a record to facets of the run."""
        return ()

    def job_facets(self, context: Context) -> Iterable[Function]:
        """Functions from a record to facets of the job."""
        return ()


def asked(function: Function) -> tuple[type, ...] | None:
    """The types that the first parameter is annotated with; None where it is not: it takes everything.

    >>> def on_end(end: SqlEnd | JobEnd) -> None: ...
    >>> [each.__name__ for each in asked(on_end)]
    ['SqlEnd', 'JobEnd']
    """
    called = function if inspect.isroutine(function) else type(function).__call__
    try:
        parameters = list(inspect.signature(function).parameters.values())
        hints = typing.get_type_hints(called)
    except (NameError, ValueError, TypeError) as fault:
        raise TypeError(
            f"{named(function)}: its annotation cannot be read: {fault}. Define what it names in a module, or give it a"
            " method defined_at"
        ) from None
    hint = hints.get(parameters[0].name, Any) if parameters else Any
    kinds = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, UnionType) else (hint,)
    anything = (Any, object, inspect.Parameter.empty)
    return None if any(kind in anything or not isinstance(kind, type) for kind in kinds) else kinds


def meant(function: Function, kinds: tuple[type, ...] | None, given: Any) -> Any | None:
    """What the function shall be called with: the thing itself, in the class that it asks for; None if it is not meant."""
    decides = getattr(function, "defined_at", None)
    if decides is not None:
        return given if decides(given) else None
    if kinds is None:
        return given
    for kind in kinds:
        if isinstance(given, Node | Rdd):
            if given.meets(kind):
                return given if isinstance(given, kind) else _cast(given, kind)
        elif isinstance(given, kind):
            return given
    return None


def named(function: Function) -> str:
    """How a function is called in a message."""
    return str(getattr(function, "__qualname__", None) or type(function).__qualname__)


def _cast(given: Node | Rdd, kind: type) -> Any:
    return kind(**{each.name: getattr(given, each.name) for each in fields(given)})


def _simple(class_name: str) -> str:
    return class_name.rstrip("$").replace("$", ".").rpartition(".")[2]
