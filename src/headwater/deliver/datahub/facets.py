"""deliver.datahub.facets: facets as events carry them -> what is read of them; a facet that is null or of another shape is none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from headwater.event import Facets

T = TypeVar("T")


class Symlink(msgspec.Struct, frozen=True):
    """Another name of a dataset."""

    namespace: str | None = None
    name: str | None = None
    type: str | None = None


class Symlinks(msgspec.Struct, frozen=True):
    """The other names of a dataset."""

    identifiers: list[Symlink] | None = None


class Field(msgspec.Struct, frozen=True):
    """A column, and what stands inside of it."""

    name: str | None = None
    type: str | None = None
    description: str | None = None
    fields: list[Field] | None = None


class Schema(msgspec.Struct, frozen=True):
    """The columns of a dataset."""

    fields: list[Field] | None = None


class Transformation(msgspec.Struct, frozen=True):
    """How an input column went into an output column."""

    type: str | None = None
    subtype: str | None = None


class InputField(msgspec.Struct, frozen=True):
    """A column that another was made of."""

    namespace: str | None = None
    name: str | None = None
    field: str | None = None
    transformations: list[Transformation] | None = None


class OutputField(msgspec.Struct, frozen=True):
    """A column and what it was made of."""

    inputFields: list[InputField] | None = None  # noqa: N815 - the wire's own names


class ColumnLineage(msgspec.Struct, frozen=True):
    """What the columns of a dataset were made of."""

    fields: dict[str, OutputField | None] | None = None


class Sql(msgspec.Struct, frozen=True):
    """The query of a job."""

    query: str | None = None


class Documentation(msgspec.Struct, frozen=True):
    """What a job is for."""

    description: str | None = None


class JobType(msgspec.Struct, frozen=True):
    """What kind of job it is."""

    processingType: str | None = None  # noqa: N815
    integration: str | None = None
    jobType: str | None = None  # noqa: N815


class Owner(msgspec.Struct, frozen=True):
    """Who answers for a job."""

    name: str | None = None
    type: str | None = None


class Ownership(msgspec.Struct, frozen=True):
    """Who answer for a job."""

    owners: list[Owner] | None = None


class Tag(msgspec.Struct, frozen=True):
    """A tag of a job."""

    key: str | None = None
    value: Any = None


class Tags(msgspec.Struct, frozen=True):
    """The tags of a job."""

    tags: list[Tag] | None = None


class SourceLocation(msgspec.Struct, frozen=True):
    """Where the source of a job stands."""

    url: str | None = None
    repoUrl: str | None = None  # noqa: N815
    path: str | None = None


class RunId(msgspec.Struct, frozen=True):
    """A run."""

    runId: str | None = None  # noqa: N815


class JobName(msgspec.Struct, frozen=True):
    """A job."""

    namespace: str | None = None
    name: str | None = None


class Root(msgspec.Struct, frozen=True):
    """The run at the root."""

    run: RunId | None = None
    job: JobName | None = None


class Parent(msgspec.Struct, frozen=True):
    """The run that started a run."""

    run: RunId | None = None
    job: JobName | None = None
    root: Root | None = None
    producer: str | None = msgspec.field(name="_producer", default=None)


class Engine(msgspec.Struct, frozen=True):
    """What ran a job."""

    name: str | None = None
    version: str | None = None
    openlineageAdapterVersion: str | None = None  # noqa: N815


class NominalTime(msgspec.Struct, frozen=True):
    """When a run was due."""

    nominalStartTime: str | None = None  # noqa: N815
    nominalEndTime: str | None = None  # noqa: N815


class ErrorMessage(msgspec.Struct, frozen=True):
    """Why a run failed."""

    message: str | None = None
    programmingLanguage: str | None = None  # noqa: N815
    stackTrace: str | None = None  # noqa: N815


class ExternalQuery(msgspec.Struct, frozen=True):
    """A query elsewhere that a run stands for."""

    externalQueryId: str | None = None  # noqa: N815
    source: str | None = None


class Application(msgspec.Struct, frozen=True):
    """A Spark application."""

    applicationId: str | None = None  # noqa: N815
    userName: str | None = None  # noqa: N815
    attemptId: str | None = None  # noqa: N815


class OutputStatistics(msgspec.Struct, frozen=True):
    """What was written."""

    rowCount: int | None = None  # noqa: N815
    size: int | None = None
    fileCount: int | None = None  # noqa: N815


class Lifecycle(msgspec.Struct, frozen=True):
    """What became of a dataset."""

    lifecycleStateChange: str | None = None  # noqa: N815


class ColumnMetrics(msgspec.Struct, frozen=True):
    """What was found of a column."""

    nullCount: int | None = None  # noqa: N815
    distinctCount: int | None = None  # noqa: N815
    count: float | None = None
    sum: float | None = None
    min: Any = None
    max: Any = None


class QualityMetrics(msgspec.Struct, frozen=True):
    """What was found of a dataset."""

    rowCount: int | None = None  # noqa: N815
    bytes: int | None = None
    columnMetrics: dict[str, ColumnMetrics | None] | None = None  # noqa: N815


class Reader:
    """Reads facets; `notes` are those that have a shape of their own, and were left out."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def read(self, facets: Facets | None, name: str, decoder: msgspec.json.Decoder[T]) -> T | None:
        """A facet as its class has it; None where it is not there, is null, or is something else."""
        raw = facets.get(name) if facets else None
        if raw is None:
            return None
        try:
            return decoder.decode(raw)
        except msgspec.ValidationError as fault:
            if bytes(raw).strip() != b"null":
                self.notes.append(f"{name}: {fault}")
        except RecursionError:
            self.notes.append(f"{name}: nested too deeply")
        return None

    def table(self, facets: Facets | None, name: str) -> Mapping[str, Any] | None:
        """A facet as a plain table."""
        return self.read(facets, name, _TABLE)


_TABLE: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])

SYMLINKS = msgspec.json.Decoder(Symlinks)
SCHEMA = msgspec.json.Decoder(Schema)
COLUMNS = msgspec.json.Decoder(ColumnLineage)
SQL = msgspec.json.Decoder(Sql)
DOCUMENTATION = msgspec.json.Decoder(Documentation)
JOB_TYPE = msgspec.json.Decoder(JobType)
OWNERSHIP = msgspec.json.Decoder(Ownership)
TAGS = msgspec.json.Decoder(Tags)
SOURCE = msgspec.json.Decoder(SourceLocation)
PARENT = msgspec.json.Decoder(Parent)
ENGINE = msgspec.json.Decoder(Engine)
NOMINAL = msgspec.json.Decoder(NominalTime)
ERROR = msgspec.json.Decoder(ErrorMessage)
EXTERNAL = msgspec.json.Decoder(ExternalQuery)
APPLICATION = msgspec.json.Decoder(Application)
STATISTICS = msgspec.json.Decoder(OutputStatistics)
LIFECYCLE = msgspec.json.Decoder(Lifecycle)
QUALITY = msgspec.json.Decoder(QualityMetrics)
