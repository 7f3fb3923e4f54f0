"""deliver.datahub.sinks.objects: change proposals -> one object per run group in a bucket, by fsspec, as `datahub ingest` reads it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import fsspec  # type: ignore[import-untyped]

from headwater.deliver.datahub.proposing import Proposal
from headwater.deliver.datahub.sinks import fault_of
from headwater.deliver.datahub.sinks._names import encoded, file_name
from headwater.errors import ConfigError, NotInstalled
from headwater.naming import scrub
from headwater.transport.objects import faults


class ObjectSink:
    """Writes `scheme://bucket/prefix/name`; a group that is told again replaces its object. The prefix may be empty."""

    def __init__(
        self,
        url: str,
        *,
        filename: str | None = None,
        storage_options: Mapping[str, Any] | None = None,
        max_string: int = 16_000_000,
    ) -> None:
        self._folder, self._shown = url.rstrip("/"), scrub(url.rstrip("/"))
        self._scheme, _, rest = url.partition("://")
        if not rest.strip("/") and self._scheme != "memory":
            raise ConfigError(f"url: names no bucket: write datahub+{self._scheme}://bucket/prefix")
        if storage_options is not None and not isinstance(storage_options, Mapping):
            raise ConfigError('storage_options: must be a table, as in {"endpoint_url": "http://minio:9000"}')
        self._filename, self._options, self._most = filename, dict(storage_options or {}), max_string
        self._first: str | None = None
        self._systems: dict[int, Any] = {}
        self._system()

    def __repr__(self) -> str:
        return f"ObjectSink({self._shown!r})"

    def emit(self, proposals: Sequence[Proposal], name: str) -> None:
        """Write the group's object."""
        lines, refused = encoded(proposals, self._most)
        try:
            if lines:
                self._system().pipe_file(
                    f"{self._folder}/{self._name(name)}", b"[\n" + b",\n".join(lines) + b"\n]\n"
                )
        except faults() as fault:
            why = str(fault).strip() or type(fault).__name__
            pending = set(range(len(proposals))) - refused.keys()
            raise fault_of(self._shown, refused, pending, why, cause="unreachable") from None
        if refused:
            raise fault_of(self._shown, refused, set())

    def close(self) -> None:
        """Let go of this process's connections."""
        self._systems.pop(os.getpid(), None)

    def _name(self, group: str) -> str:
        """As the option says for the first group, so that a job finds its file; for others a name of their own."""
        if self._filename is None:
            return file_name(group)
        self._first = self._first or group
        if self._first == group:
            return self._filename
        stem, dot, suffix = self._filename.rpartition(".")
        return f"{stem or suffix}-{file_name(group)}" if dot else f"{self._filename}-{file_name(group)}"

    def _system(self) -> Any:
        system = self._systems.get(os.getpid())
        if system is None:  # also after a fork: connections of the parent are the parent's
            try:
                system = fsspec.filesystem(self._scheme, **self._options)
            except ImportError:
                raise NotInstalled(f"transport 'datahub+{self._scheme}'", "s3") from None
            except (TypeError, ValueError) as fault:
                raise ConfigError(f"storage_options: {fault}") from None
            self._systems[os.getpid()] = system
        return system
