"""deliver.datahub.paths: a URI of a file system -> platform, name and where it is, by path specs and a partition pattern."""

from __future__ import annotations

import re
from typing import NamedTuple

from headwater.deliver.datahub.options import FABRICS, Fixes, Options, PathSpec, Platform, Where

PLATFORMS = {
    "s3": "s3", "s3a": "s3", "s3n": "s3", "gs": "gcs", "gcs": "gcs", "abfs": "abs", "abfss": "abs",
    "wasb": "abs", "wasbs": "abs", "dbfs": "dbfs", "file": "file",
}  # fmt: skip
"""Schemes of file systems -> platforms."""
TABLE = "/{table}"

# java.net.URI: what it takes of the urls that namespaces and names make; found to agree with JDK 17 on all but
# brackets in an authority
_ILLEGAL = '\\x00-\\x20"<>\\\\^`{|}\\x7f-\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000'
_ESCAPE = "%[0-9A-Fa-f]{2}"
_JAVA_URI = re.compile(
    rf"[A-Za-z][A-Za-z0-9+.\-]*://(?:(?:[^{_ILLEGAL}%/?#\[\]]|{_ESCAPE})+|(?=/))"
    rf"(?:/(?:[^{_ILLEGAL}%?#\[\]]|{_ESCAPE})*)?"
    rf"(?:\?(?:[^{_ILLEGAL}%#]|{_ESCAPE})*)?(?:#(?:[^{_ILLEGAL}%#]|{_ESCAPE})*)?"
).fullmatch


def is_uri(text: str) -> bool:
    """Whether java.net.URI takes it.

    >>> is_uri("s3://bucket/a b"), is_uri("kafka://h1:9092,h2:9092/topic"), is_uri("file:///x")
    (False, True, True)
    """
    return _JAVA_URI(text) is not None


class Found(NamedTuple):
    """A dataset of a file system."""

    platform: str
    name: str
    instance: str | None
    env: str | None
    """None: that of all datasets."""


class Paths:
    """Names what lies in file systems."""

    def __init__(self, options: Options, fixes: Fixes) -> None:
        self._options, self._fixes = options, fixes
        pattern = options.partition_pattern
        self._partition = re.compile(pattern + "$") if pattern else None
        self._specs = {name: _specs(each, fixes.path_aliases) for name, each in options.platforms.items()}

    def strip(self, text: str) -> str:
        """The text without its partition and one slash after it."""
        if self._partition is None:
            return text
        return self._partition.sub("", text).removesuffix("/")

    def find(self, uri: str, where: Where | None) -> Found:
        """A dataset by its URI; `where` is what its connection says."""
        uri = uri.rstrip("/")
        scheme, found, rest = uri.partition("://")
        if not found or not rest or "://" in rest:
            return Found("hdfs", uri, self._options.dataset_platform_instance, None)
        platform = PLATFORMS.get(scheme, "hdfs")
        for spec in self._specs.get(platform, ()):
            for pattern in spec.path_spec_list:
                matched = match(pattern, uri)
                if matched is not None:
                    return self._placed(platform, matched, spec, where, by_spec=True)
        return self._placed(platform, self.strip(uri), None, where, by_spec=False)

    def _placed(
        self, platform: str, uri: str, spec: PathSpec | None, where: Where | None, *, by_spec: bool
    ) -> Found:
        name = uri.partition("://")[2]
        if by_spec or platform != "file":
            name = name.removeprefix("/")
        if platform == "abs" and self._options.abs_style == "source":
            name = re.sub(r"^([^/@]+)@[^/]+", r"\1", name)
        common = self._options.dataset_platform_instance
        if not self._fixes.path_spec_instances:
            return Found(platform, name, spec.platform_instance if spec is not None else common, None)
        said = (spec, where, self._options.platforms.get(platform))
        instances = (each.platform_instance for each in said if each is not None)
        instance = next((each for each in instances if each is not None), common)
        envs = (each.env.upper() for each in said if each is not None and each.env)
        return Found(platform, name, instance, next((each for each in envs if each in FABRICS), None))


def _specs(platform: Platform, aliases: bool) -> list[PathSpec]:
    own = PathSpec(platform.platform_instance, platform.env, platform.path_spec_list)
    return [own, *(platform.aliases.values() if aliases else ())]


def match(pattern: str, uri: str) -> str | None:
    """The URI up to its table, where the pattern fits.

    >>> match("s3://b/*/{table}/year=*", "s3://b/raw/orders/year=2026/x.parquet")
    's3://b/raw/orders'
    """
    at = pattern.find(TABLE)
    if at < 0:
        return None
    wanted, given = _parts(pattern[: at + len(TABLE)]), _parts(uri)
    if len(given) < len(wanted):
        return None
    for place, (want, have) in enumerate(zip(wanted, given, strict=False)):
        if want == "{table}":
            return "/".join(given[: place + 1])
        if want not in ("*", have):
            return None
    return None


def _parts(text: str) -> list[str]:
    """As Java splits: without the empty ones at the end."""
    return text.rstrip("/").split("/")
