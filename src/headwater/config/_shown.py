"""config._shown: a setting's name and value -> the value as people may see it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_WORDS = "key|token|secret|passw|pwd|auth|credential|headers|signature"
_SECRET = re.compile(_WORDS, re.IGNORECASE)
_INSIDE = re.compile(
    rf"((?:^|[?&;\s])(?:[^=?&;\s]{{0,64}}(?:{_WORDS})[^=?&;\s]{{0,64}}|sig)=)[^&;]*", re.IGNORECASE
)
"""A setting in a text: in a url's query, or in what clouds call a connection string."""
_SWITCH = frozenset({"on", "off", "auto"})


def shown(name: str, value: Any, secret: bool = False) -> Any:
    """The value, with *** in the place of what a name or a url says is secret; a switch is none, whatever it is called.

    >>> shown("auth", "on"), shown("auth", "me:pw"), shown("connection_string", "AccountName=a;AccountKey=k==;b=c")
    ('on', '***', 'AccountName=a;AccountKey=***;b=c')
    """
    if isinstance(value, bool) or (not secret and isinstance(value, str) and value in _SWITCH):
        return value
    if value is not None and (secret or _SECRET.search(name)):
        return "***"
    if isinstance(value, Mapping):
        return {key: shown(str(key), inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [shown("", inner) for inner in value]
    if isinstance(value, str):
        bare = re.sub(r"(?<=//)[^/?#\s]*@", "***@", value)
        return _INSIDE.sub(r"\1***", bare)
    return str(value) if isinstance(value, Path) else value
