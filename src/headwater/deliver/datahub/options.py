"""deliver.datahub.options: settings as people write them -> frozen Options, and which faults of the Java converter are mended."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from headwater.config import parse_bool
from headwater.errors import ConfigError, UnknownName

JAVA = "datahub-java"
FABRICS = frozenset(
    [
        "PROD",
        "DEV",
        "TEST",
        "QA",
        "UAT",
        "EI",
        "PRE",
        "STG",
        "NON_PROD",
        "CORP",
        "RVW",
        "PRD",
        "TST",
        "SIT",
        "SBX",
        "SANDBOX",
        "CERT",
    ]
)
MAX_STRING = 16_000_000
"""What GMS reads of one string unless INGESTION_MAX_SERIALIZED_STRING_LENGTH says otherwise."""


class Fixes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is done better than DataHub's own converter; `compat` switches all of it off, each can be switched by name."""

    encode_urns: bool = True
    """Commas and parentheses in names are percent-encoded, as DataHub's SDK does; none of them fails an event."""
    group_aliases: bool = True
    """What a symlink says holds for a whole run group, whichever event came first."""
    symlink_platforms: bool = True
    """A TABLE symlink leads to the platform that its namespace names, and a bare Glue ARN to Glue."""
    keep_illegal_uris: bool = True
    """Datasets whose names are no URI (spaces, quotes) are kept."""
    path_spec_instances: bool = True
    """A path spec's env, the instance of all datasets and `connections` hold for files, too: also by bucket."""
    lower_case_envs: bool = True
    """The env of a platform holds in lower case, too, as every other env does."""
    path_aliases: bool = True
    """`platforms.<platform>.aliases` are followed."""
    parent_instances: bool = True
    """The parent run is told as parentInstance, and a parent that says too little fails no event."""
    skip_nulls: bool = True
    """A property that is null is left out instead of failing the event."""
    guess_orchestrator: bool = True
    """Of an unknown producer: jobType.integration, else the producer's last word, else `default_orchestrator`; "Kafka Connect" is `kafka-connect`."""
    domain_entity: bool = True
    """Domains are told of entity type dataFlow, not dataflow."""
    ownership: bool = True
    """Owners of a job are told."""
    job_tags: bool = True
    """Tags of a job are told."""
    skip_other_runs: bool = True
    """An event of type OTHER gives no run event instead of an invalid one."""
    full_types: bool = True
    """Every SQL and Spark type has its own, fields inside of fields are told, with their descriptions."""
    schema_platform: bool = True
    """A schema names the platform of its dataset's urn."""
    escape_patches: bool = True
    """Paths of patches are escaped, and hold no SQL."""
    job_instance: bool = True
    """A coalesced job has its platform instance."""
    union_columns: bool = True
    """Column lineage of several events is put together instead of replaced by the last."""
    run_span: bool = True
    """A run has its start, and an end with the worst result and how long it took."""
    keep_edges: bool = True
    """An event without datasets erases no edge."""
    run_facets: bool = True
    """Errors, nominal times and queries are told as properties of the run."""
    source_location: bool = True
    """Where a job's source stands is told as a link."""
    operations: bool = True
    """What a run did to a dataset, and how many rows, is told as an operation."""
    profiles: bool = True
    """Data quality metrics are told as a profile."""
    all_events: bool = True
    """Job and dataset events are converted, and runs whose ids are no UUIDs."""


class Where(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The platform instance and env of what a connection, bucket or platform holds."""

    platform_instance: str | None = None
    env: str | None = None


class PathSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which part of a path is the table, and where such tables are."""

    platform_instance: str | None = None
    env: str | None = None
    path_spec_list: tuple[str, ...] = ()


class Platform(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is said of one platform: where its datasets are, and which part of a path is the table."""

    platform_instance: str | None = None
    env: str | None = None
    path_spec_list: tuple[str, ...] = ()
    aliases: dict[str, PathSpec] = {}
    """Further path specs, each with an instance and env of its own."""


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How events become change proposals."""

    compat: str | None = None
    """`datahub-java`: as DataHub's own converter does it, faults included."""
    fixes: dict[str, bool] = {}
    """Names of `Fixes` -> whether they hold; those not named hold unless `compat` is set."""
    orchestrator: str | None = None
    default_orchestrator: str = "openlineage"
    """Of runs whose producer says nothing."""
    pipeline_name: str | None = None
    """The flow's name, instead of the job's name up to its first dot."""
    platform_instance: str | None = None
    """Of pipelines: it is the flow's cluster, too."""
    env: str = "PROD"
    dataset_platform_instance: str | None = None
    hive_platform_alias: str = "hive"
    platform_map: dict[str, str] = {}
    """Schemes of namespaces -> platforms, besides awsathena -> athena and sqlserver -> mssql."""
    symlink_platforms: dict[str, str] = {}
    """Schemes of symlinks -> platforms, besides those known."""
    connections: dict[str, Where] = {}
    """Namespaces (or buckets, as s3://bucket) -> where their datasets are."""
    platforms: dict[str, Platform] = {}
    partition_pattern: str | None = None
    """A regular expression; what it matches at the end of a path is cut off."""
    lower_case_urns: bool = False
    materialize: bool = True
    """Whether datasets are made where they are unknown."""
    include_schema: bool = True
    column_lineage: bool = True
    include_indirect: bool = True
    disable_symlinks: bool = False
    merge_into: bool = False
    """Whether the target of a MERGE INTO is part of the job's name."""
    patch: bool = False
    """Edges and tags are added to those that are there, instead of replacing them."""
    legacy_cleanup: bool = False
    """Whether column lineage that older agents left on datasets is removed."""
    tags: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    parent_job: str | None = None
    """The urn of a job that coalesced jobs come after."""
    parent_edges: bool = False
    """Whether the job of the parent run is told as an input of the job."""
    hdfs_as_files: bool = False
    """hdfs:// as other paths: with its authority, path specs and partitions."""
    abs_style: str = "account"
    """`account`: container@account/path as the Java converter names it; `source`: container/path as DataHub's own source."""
    field_paths: str = "v1"
    """Fields inside of fields: `v1` address.city, `v2` with types, as DataHub's own sources write them."""
    dotted_keys: bool = False
    """Properties keep the names of the tables that they stand in."""
    max_string: int = MAX_STRING
    """The longest text of an aspect; what is longer is cut, with a mark."""

    def __post_init__(self) -> None:
        if self.compat not in (None, JAVA):
            raise UnknownName("compat", self.compat, [JAVA])
        for name in self.fixes:
            if name not in Fixes.__struct_fields__:
                raise UnknownName("fix", name, Fixes.__struct_fields__)
        for name, known in (("abs_style", ("account", "source")), ("field_paths", ("v1", "v2"))):
            if getattr(self, name) not in known:
                raise UnknownName(f"value of {name}", getattr(self, name), known)
        try:
            re.compile(self.partition_pattern or "")
        except re.error as fault:
            raise ConfigError(f"partition_pattern: {self.partition_pattern!r}: {fault}") from None
        if self.max_string < 1000:
            raise ConfigError(f"max_string: {self.max_string} is less than 1000")

    @property
    def fabric(self) -> str:
        """The env of datasets of which nothing else is said; PROD where it is none that DataHub knows."""
        named = self.env.upper()
        return named if named in FABRICS else "PROD"

    def mended(self) -> Fixes:
        """The fixes that hold."""
        all_of_it = dict.fromkeys(Fixes.__struct_fields__, self.compat is None)
        return Fixes(**{**all_of_it, **self.fixes})


def make(given: Mapping[str, Any]) -> Options:
    """Options from a table or from texts; the name of a fix stands for itself, a dot opens a table.

    >>> make({"env": "dev", "encode_urns": "no", "platforms.s3.env": "QA"}).fabric
    'DEV'
    """
    table: dict[str, Any] = {}
    for name, value in given.items():
        path = ["fixes", name] if _is_fix(name, value) else _parted(name)
        inner = table
        for part in path[:-1]:
            inner = inner.setdefault(part, {})
            if not isinstance(inner, dict):
                raise ConfigError(f"{name}: {path[0]} is no table")
        inner[path[-1]] = {**inner.get(path[-1], {}), **value} if isinstance(value, Mapping) else value
    for name in table:
        if name not in Options.__struct_fields__:
            raise UnknownName("option", name, [*Options.__struct_fields__, *Fixes.__struct_fields__])
    for name, value in table.items():
        if isinstance(value, str) and name in ("tags", "domains"):
            table[name] = tuple(each for each in value.split(",") if each)
        elif isinstance(value, str) and isinstance(getattr(_DEFAULT, name), bool):
            table[name] = _flag(name, value)
    if isinstance(fixes := table.get("fixes"), dict):
        table["fixes"] = {name: _flag(name, value) for name, value in fixes.items()}
    try:
        return msgspec.convert(table, Options, strict=False)
    except msgspec.ValidationError as fault:
        raise ConfigError(f"datahub: {fault}") from None


_DEFAULT = Options()


def _flag(name: str, value: Any) -> bool:
    try:
        return parse_bool(value)
    except ConfigError as fault:
        raise ConfigError(f"{name}: {fault}") from None


def _is_fix(name: str, value: Any) -> bool:
    """`symlink_platforms` is a fix and a table: which is meant shows in the value."""
    return name in Fixes.__struct_fields__ and not isinstance(value, Mapping)


def _parted(name: str) -> list[str]:
    """`connections."s3://a.b".env` -> three parts.

    >>> _parted('connections."postgres://h.x:5432".env')
    ['connections', 'postgres://h.x:5432', 'env']
    """
    return [quoted or plain for quoted, plain in re.findall(r'"([^"]*)"|([^."]+)', name)]
