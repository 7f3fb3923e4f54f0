"""dlt._arrow: Arrow tables and data frames on their way into dlt -> the names their columns had before dlt changed them.

dlt renames the columns of an Arrow table while it extracts it, and keeps no trace of it. So its extractor is listened to:
what it looks at before the table is written still has the names of the source.
"""

from __future__ import annotations

import functools
from typing import Any

from headwater.guard import guard

ARROWS: dict[str, dict[str, dict[str, str]]] = {}
"""load id -> table -> column as loaded -> column as it was"""
MOST = 100
_HOOKED: list[bool] = []


def hook_arrow() -> None:
    """Listen from now on: once in a process."""
    if _HOOKED:
        return
    with guard("listening to Arrow tables"):
        from dlt.extract.extractors import ArrowExtractor

        plain = ArrowExtractor._apply_contract_filters

        @functools.wraps(plain)
        def filtered(self: Any, item: Any, resource: Any, static_table_name: Any) -> Any:
            with guard("reading the names of an Arrow table"):
                _note(self, item, resource, static_table_name)
            return plain(self, item, resource, static_table_name)

        ArrowExtractor._apply_contract_filters = filtered  # type: ignore[method-assign]
        _HOOKED.append(True)


def _note(extractor: Any, item: Any, resource: Any, static_table_name: Any) -> None:
    naming = extractor.naming
    table = static_table_name or extractor._get_dynamic_table_name(resource, item)
    found = ARROWS.setdefault(str(extractor.load_id), {}).setdefault(
        naming.normalize_table_identifier(table), {}
    )
    for name in item.schema.names:
        found.setdefault(naming.normalize_identifier(name), str(name))
    while len(ARROWS) > MOST:
        ARROWS.pop(next(iter(ARROWS)))
