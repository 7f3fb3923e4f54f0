"""transport.console: encoded events -> lines on standard output, or on standard error."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import msgspec

from headwater.errors import ConfigError, TransportError
from headwater.transport._options import flag, refuse_closed


class ConsoleTransport:
    """Writes one line per event, or indented JSON with `pretty`; `stream` is stdout or stderr."""

    def __init__(self, url: str = "console:", *, stream: str = "stdout", pretty: bool | str = False) -> None:
        if stream not in ("stdout", "stderr"):
            raise ConfigError(f"stream: {stream!r} is neither 'stdout' nor 'stderr'")
        self._stream, self._indent = stream, 2 if flag("pretty", pretty) else -1
        self._closed = False

    def __repr__(self) -> str:
        return f"ConsoleTransport({self._stream!r})"

    def send(self, events: Sequence[bytes]) -> None:
        """Write the events at once, so that lines of several threads stay whole."""
        refuse_closed(self._closed, self)
        text = b"".join(msgspec.json.format(event, indent=self._indent) + b"\n" for event in events)
        stream = getattr(sys, self._stream)  # asked for each time: hosts and tests put others there
        if stream is None:
            raise TransportError(f"this process has no {self._stream}", retryable=False)
        try:
            stream.flush()
            if hasattr(stream, "buffer"):  # events are UTF-8, whatever the terminal's locale says
                stream.buffer.write(text)
            else:
                stream.write(text.decode())
            stream.flush()
        except (OSError, ValueError) as fault:  # a closed pipe; a closed file object
            raise TransportError(f"cannot write to {self._stream}: {fault}", retryable=False) from fault

    def close(self) -> None:
        """Take no more; the stream is not ours to close."""
        self._closed = True
