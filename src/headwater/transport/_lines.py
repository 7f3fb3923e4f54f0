"""transport._lines: encoded events -> JSON lines."""

from __future__ import annotations

from collections.abc import Sequence


def lines(events: Sequence[bytes]) -> bytes:
    r"""One line for each event. JSON has line breaks only between tokens, where a space says the same.

    >>> lines([b'{"a":\n1}', b"{}"])
    b'{"a": 1}\n{}\n'
    """
    return b"".join(b" ".join(event.splitlines()) + b"\n" for event in events)
