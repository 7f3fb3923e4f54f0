"""capture.dlt.plain: a value, a moment, the columns of a resource, as dlt has them -> JSON without a secret."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

import yaml

from headwater.guard import guard
from headwater.naming import is_secret, scrub


def iso(at: Any) -> str:
    """A moment in UTC, with milliseconds; now where there is none."""
    moment: datetime = at if at is not None else datetime.now(timezone.utc)
    return moment.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def plain(value: Any) -> Any:
    """A value as JSON has it, without a secret; what is no JSON by its text."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return scrub(str(value))
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items() if not is_secret(str(key))}
    if isinstance(value, (list, tuple, set)):
        return [plain(inner) for inner in value]
    return scrub(str(value))[:500]


class _Names(yaml.SafeLoader):
    """Reads the columns that a resource was given: SQLAlchemy's quoted names are texts, nothing else is made."""


def _quoted_name(loader: yaml.SafeLoader, suffix: str, node: Any) -> str:
    parts = loader.construct_sequence(node)
    return str(parts[0]) if parts else ""


_Names.add_multi_constructor("tag:yaml.org,2002:python/object/apply:", _quoted_name)


def columns_given(text: Any) -> list[str]:
    """The columns that a resource was given by hand or by its source, as they are called there."""
    if not isinstance(text, str):
        return [str(name) for name in text] if isinstance(text, Mapping) else []
    with guard("reading a resource's columns"):
        said = yaml.load(text, Loader=_Names)  # a SafeLoader
        return [str(name) for name in said] if isinstance(said, Mapping) else []
    return []
