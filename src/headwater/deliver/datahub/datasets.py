"""deliver.datahub.datasets: a dataset's namespace, name and symlinks -> its urn, and of which other urn that is the alias."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from headwater.deliver.datahub.facets import Symlink
from headwater.deliver.datahub.options import FABRICS, Fixes, Options, Where
from headwater.deliver.datahub.paths import PLATFORMS, Paths, is_uri
from headwater.deliver.datahub.urns import Urns

_GLUE = re.compile(r"(?:arn:)?aws:glue:([^:]+):([^:/]+)").search
_MAPPED = {"awsathena": "athena", "sqlserver": "mssql"}
_SYMLINKED = {
    "hive": None, "thrift": None, "iceberg": "iceberg", "unity": "databricks", "databricks": "databricks",
    "uc": "databricks", "delta": "delta-lake", "bigquery": "bigquery", "snowflake": "snowflake",
    "postgres": "postgres", "mysql": "mysql", "redshift": "redshift", "trino": "trino",
    "awsathena": "athena", "sqlserver": "mssql", "oracle": "oracle", "clickhouse": "clickhouse",
}  # fmt: skip
"""Schemes of symlinks whose tables have a platform; None: what `hive_platform_alias` says."""
_DESCRIBED = re.compile(r"(.*?)\[(.*)\]", re.DOTALL).fullmatch
_PATHS = frozenset({"DeltaSink", "FileSink", "FileStreamSource"})
_KEPT = 50_000
"""Names remembered: a stream tells the same datasets again and again."""


class Named(NamedTuple):
    """A dataset under its urn."""

    urn: str
    original: str
    """The urn that its own name alone gives; the same where no symlink says otherwise."""


class Datasets:
    """Names datasets as one configuration says; it remembers what it named."""

    def __init__(self, options: Options, fixes: Fixes, urns: Urns) -> None:
        self._options, self._fixes, self._urns = options, fixes, urns
        self._paths = Paths(options, fixes)
        self._schemes = {**_SYMLINKED, **options.symlink_platforms}
        self._platform_map = {**_MAPPED, **options.platform_map}
        self._known: dict[tuple[str, str, str | None], str | None] = {}

    def name(self, namespace: str, name: str, symlinks: Sequence[Symlink] = ()) -> Named | None:
        """A dataset's urn by its symlinks, else by its own name; None where it has none."""
        original = self.plain(namespace, name)
        if not symlinks or self._options.disable_symlinks:
            return Named(original, original) if original is not None else None
        found, key = (namespace, name), None
        for each in symlinks:
            if each.type == "TABLE" and each.namespace is not None and each.name is not None:
                found, key = self._symlinked(each.namespace, each.name), _connection(each.namespace)
        urn = self.plain(*found, key) if found != (namespace, name) or key else original
        if urn is None:
            return None
        return Named(urn, original if original is not None else urn)

    def plain(self, namespace: str, name: str, key: str | None = None) -> str | None:
        """The urn that a namespace and a name give; `key` is the connection, where it is not the namespace's."""
        asked = (namespace, name, key)
        if asked not in self._known:
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[asked] = self._plain(namespace, name, key)
        return self._known[asked]

    def described(self, text: str) -> str | None:
        """The urn of a source or sink as Spark describes one of a stream: `KafkaV2[Subscribe[topic]]`, `FileSink[s3://b/k]`."""
        found = _DESCRIBED(text)
        if found is None:
            return None
        kind, path = found[1], found[2]
        if kind in _PATHS:
            made = self._paths.find(path, None)
            return self._made(made.platform, made.name, made.instance, made.env or self._options.fabric)
        if kind == "KafkaV2" and (topic := _DESCRIBED(path)):
            path = topic[2]
        platform = {"KafkaV2": "kafka", "CloudFilesSource": "dbfs"}.get(kind, kind)
        return self._made(platform, path, self._options.dataset_platform_instance, self._options.fabric)

    def _symlinked(self, namespace: str, name: str) -> tuple[str, str]:
        """A TABLE symlink as a bare platform and a name."""
        table = _table(name)
        if namespace.startswith(("aws:glue:", "arn:aws:glue:")):
            return "glue", table
        alias = self._options.hive_platform_alias
        if not self._fixes.symlink_platforms:
            return alias, table
        scheme = namespace.partition("://")[0] if "://" in namespace else namespace.partition(":")[0]
        return self._schemes.get(scheme.lower()) or alias, table

    def _plain(self, namespace: str, name: str, key: str | None) -> str | None:
        options = self._options
        if options.lower_case_urns:
            namespace, name = namespace.lower(), name.lower()
        key = key or _connection(namespace)
        if key is not None and options.lower_case_urns:
            key = key.lower()
        if self._fixes.symlink_platforms and (glue := _GLUE(namespace)) and glue.start() == 0:
            namespace, name = "glue", _table(name)
        if "://" in namespace:
            glued = namespace.endswith("/") or name.startswith("/")
            uri = f"{namespace}{'' if glued else '/'}{name}"
            if not self._fixes.keep_illegal_uris and not is_uri(uri):
                return None
            scheme = uri.partition("://")[0]
            platform = self._platform_map.get(scheme, scheme)
            if platform in PLATFORMS or (platform == "hdfs" and options.hdfs_as_files):
                found = self._paths.find(uri, self._bucket(uri, key))
                return self._made(found.platform, found.name, found.instance, found.env or options.fabric)
        else:
            platform = namespace
            if platform in PLATFORMS:
                name = self._paths.strip(name)
        instance, env = self._where(platform, key)
        return self._made(platform, name, instance, env)

    def _bucket(self, uri: str, key: str | None) -> Where | None:
        """What `connections` say of a path: by its namespace, else by its bucket."""
        known = self._options.connections
        if not known or not self._fixes.path_spec_instances:
            return None
        scheme, _, rest = uri.partition("://")
        bucket = rest.partition("/")[0]
        for each in (key, f"{scheme}://{bucket}", f"{PLATFORMS.get(scheme, scheme)}://{bucket}"):
            if each in known:
                return known[each]
        return None

    def _where(self, platform: str, key: str | None) -> tuple[str | None, str]:
        """Instance and env: as the connection says, else the platform, else all datasets."""
        options = self._options
        connection = options.connections.get(key) if key is not None else None
        of = options.platforms.get(platform)
        instance, env = options.dataset_platform_instance, options.fabric
        if of is not None and of.platform_instance is not None:
            instance = of.platform_instance
        said = (of.env if of is not None else None) or ""
        said = said.upper() if self._fixes.lower_case_envs else said
        env = said if said in FABRICS else env
        if connection is not None:
            instance = connection.platform_instance if connection.platform_instance is not None else instance
            named = (connection.env or "").upper()
            env = named if named in FABRICS else env
        return instance, env

    def _made(self, platform: str, name: str, instance: str | None, env: str) -> str:
        whole = name if instance is None else f"{instance}.{name}"
        return self._urns.dataset(platform, whole, env)


def _table(name: str) -> str:
    """`table/db/t`, as Glue's ARNs have it -> db.t."""
    return name.removeprefix("table/").replace("/", ".") if name.startswith("table/") else name


def _connection(namespace: str) -> str | None:
    """The key under which `connections` know a namespace."""
    if found := _GLUE(namespace):
        return f"arn:aws:glue:{found[1]}:{found[2]}"
    return namespace if "://" in namespace else None
