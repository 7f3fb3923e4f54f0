"""transport: encoded events -> wire: http, kafka, buckets, files, several of them, a spool before them; opened by url or mapping.

To add one: write transport/<name>.py with a class that keeps the Protocol below, add one line to TRANSPORTS,
give it a fixture in tests/transport/test_transport_contract.py and a heading in docs/transports.md; the contract and
docs tests enrol it by themselves. A class takes `url` (without its query) and its options as keywords; an
option may arrive as text from a url's query, see `_options`. Packages outside register an entry point of
group `headwater.transport` instead of the line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast, runtime_checkable

from headwater import plugins
from headwater.errors import ConfigError


@runtime_checkable
class Transport(Protocol):
    """Hands events on. May be shared by threads and used on both sides of a fork."""

    def send(self, events: Sequence[bytes]) -> None:
        """Hand on events in their order, each the JSON of one event; nothing to send is no fault.

        Raises:
            TransportError: not all were handed on; `retryable` says whether sending all again may help.

        """

    def close(self) -> None:
        """Give back what is held; more than once is no fault, sending afterwards is."""


@runtime_checkable
class KeepsWills(Protocol):
    """A transport that can send an event after the process has died."""

    def will(self, run_id: str, event: bytes) -> None:
        """Keep the event, to be sent if this process dies before the run's end is sent or `settle` is called.

        Raises:
            TransportError: it could not be kept.

        """

    def settle(self, run_id: str) -> None:
        """The run has ended: its will is not to be sent."""


@runtime_checkable
class HoldsBack(Protocol):
    """A transport that puts events together, and hands them on later; where it is told a `keep`, it loses none meanwhile."""

    def tick(self, *, final: bool = False) -> int:
        """Hand on what is due, or with `final` all that is held; how much that was.

        Raises:
            TransportError: not all was taken; `letters` are to be kept, the rest is tried at the next tick.

        """


TRANSPORTS: plugins.Table = {
    "memory": ("headwater.transport.memory:MemoryTransport", None),
    "console": ("headwater.transport.console:ConsoleTransport", None),
    "file": ("headwater.transport.file:FileTransport", None),
    "http": ("headwater.transport.http:HttpTransport", None),
    "https": ("headwater.transport.http:HttpTransport", None),
    "kafka": ("headwater.transport.kafka:KafkaTransport", "kafka"),
    "s3": ("headwater.transport.objects:ObjectTransport", "s3"),
    "gs": ("headwater.transport.objects:ObjectTransport", "s3"),
    "abfss": ("headwater.transport.objects:ObjectTransport", "s3"),
    "datahub+rest": ("headwater.deliver.datahub.transport:DataHubTransport", None),
    "datahub+kafka": ("headwater.deliver.datahub.transport:DataHubTransport", "kafka"),
    "datahub+file": ("headwater.deliver.datahub.transport:DataHubTransport", None),
    "datahub+s3": ("headwater.deliver.datahub.transport:DataHubTransport", "s3"),
    "datahub+gs": ("headwater.deliver.datahub.transport:DataHubTransport", "s3"),
    "datahub+abfss": ("headwater.deliver.datahub.transport:DataHubTransport", "s3"),
    "fanout": ("headwater.transport.fanout:FanoutTransport", None),
    "spool": ("headwater.transport.spool:SpoolTransport", None),
}


def open_transport(target: str | Mapping[str, Any], **options: Any) -> Transport:
    """The transport a url or a mapping names; nothing is connected yet.

    >>> open_transport("memory:")
    MemoryTransport(0 events)
    >>> open_transport({"type": "file", "url": "file:///tmp/events.jsonl"}, fsync=True)
    FileTransport('/tmp/events.jsonl')
    """
    given = {"url": target, **options} if isinstance(target, str) else {**target, **options}
    url, kind = given.get("url"), given.get("type")
    if isinstance(url, str) and (kind is None or url.startswith(f"{kind}:")):
        rest = {name: value for name, value in given.items() if name not in ("url", "type")}
        made = plugins.build_url("transport", url, TRANSPORTS, **rest)
    elif kind is not None:
        made = plugins.build("transport", given, TRANSPORTS)
    else:
        raise ConfigError("transport: a mapping needs a `url` or a `type`")
    return cast("Transport", made)
