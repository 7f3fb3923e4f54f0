"""transport.objects: encoded events -> one JSONL object per batch in a bucket (s3, gs, abfss), by fsspec."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from itertools import count
from time import time_ns
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import fsspec  # type: ignore[import-untyped]

from headwater.errors import ConfigError, NotInstalled, TransportError
from headwater.transport._lines import lines
from headwater.transport._options import flag, refuse_closed

_FAULTS = (
    ("botocore.exceptions", "BotoCoreError"),
    ("botocore.exceptions", "ClientError"),
    ("aiohttp", "ClientError"),
    ("gcsfs.retry", "HttpError"),
    ("google.auth.exceptions", "GoogleAuthError"),
    ("azure.core.exceptions", "AzureError"),
)
"""What the libraries behind fsspec raise besides OSError; no common class is theirs."""
_LIBRARIES = {"gs": "gcsfs", "abfss": "adlfs"}
"""What fsspec needs for the others; s3fs comes with our extra."""


class ObjectTransport:
    """Writes each batch as an object of its own under `s3://bucket/prefix`; names sort as the batches were sent.

    Args:
        url: bucket and prefix.
        storage_options: what the file system of fsspec takes, as `endpoint_url`, `key`, `secret`, `token`.
        partition: put objects under `date=YYYY-MM-DD/`.
        direct: for a host, which then leaves out the spool.

    """

    def __init__(
        self,
        url: str,
        *,
        storage_options: Mapping[str, Any] | None = None,
        partition: bool | str = True,
        direct: bool | str = False,
    ) -> None:
        parts = urlsplit(url)
        if not parts.netloc:
            raise ConfigError(f"url: names no bucket: write {parts.scheme}://bucket/prefix")
        if storage_options is not None and not isinstance(storage_options, Mapping):
            raise ConfigError('storage_options: must be a table, as in {"endpoint_url": "http://minio:9000"}')
        flag("direct", direct)
        self._partition = flag("partition", partition)
        self._scheme, self._options = parts.scheme, dict(storage_options or {})
        self._folder = f"{parts.scheme}://{parts.netloc}/{unquote(parts.path).strip('/')}".rstrip("/")
        self._shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}".rstrip("/")
        self._number, self._who = count(), uuid4().hex[:8]
        self._systems: dict[int, Any] = {}
        self._closed = False
        self._system()  # a library that is missing, or an option it does not take, is told now

    def __repr__(self) -> str:
        return f"ObjectTransport({self._shown!r})"

    def send(self, events: Sequence[bytes]) -> None:
        """Write the events as one object."""
        refuse_closed(self._closed, self)
        if not events:
            return
        try:
            self._system().pipe_file(self._name(), lines(events))
        except faults() as fault:
            why = str(fault).strip() or type(fault).__name__
            hint = ": is there such a bucket?" if isinstance(fault, FileNotFoundError) else ""
            raise TransportError(f"cannot write {self._shown}: {why}{hint}", retryable=True) from None

    def close(self) -> None:
        """Take no more."""
        self._closed = True
        self._systems.pop(os.getpid(), None)

    def _name(self) -> str:
        stamp = time_ns()
        day = datetime.fromtimestamp(stamp / 1e9, timezone.utc)
        part = f"date={day:%Y-%m-%d}/" if self._partition else ""
        # of one process in order by the number, of several by time; a fork shares `_who`, so it adds its pid
        return f"{self._folder}/{part}{stamp // 1_000_000:015}-{next(self._number):08}-{self._who}-{os.getpid()}.jsonl"

    def _system(self) -> Any:
        system = self._systems.get(os.getpid())
        if system is None:  # also after a fork: connections of the parent are the parent's
            try:
                made = fsspec.filesystem(self._scheme, **self._options)
            except ImportError:
                if library := _LIBRARIES.get(self._scheme):
                    raise ConfigError(f"transport {self._scheme!r} needs: pip install {library}") from None
                raise NotInstalled(f"transport {self._scheme!r}", "s3") from None
            except (TypeError, ValueError) as fault:
                raise ConfigError(f"storage_options: {fault}") from None
            system = self._systems.setdefault(os.getpid(), made)
        return system


def faults() -> tuple[type[Exception], ...]:
    """What writing to a bucket may raise, of the libraries that are loaded."""
    found = [getattr(sys.modules.get(module), name, None) for module, name in _FAULTS]
    return (OSError, ValueError, *(each for each in found if each is not None))
