"""headwater: something ran -> what it read and wrote, column by column, in one graph.

    capture -> event -> transport -> ingest -> store -> query -> serve, cli
                                       └ facts: rows and how they merge

`emit` hands an OpenLineage event to whatever transport is configured; `parse` reads one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from headwater.emitter import emit, emit_many
    from headwater.event import Event, parse

__version__ = "0.1.0"
__all__ = ["Event", "HeadwaterError", "emit", "emit_many", "parse"]


def __getattr__(name: str) -> Any:
    if name in {"emit", "emit_many"}:  # loaded when first used: in Airflow every event pays for every import
        from headwater import emitter

        return getattr(emitter, name)
    if name in {"Event", "parse"}:
        from headwater import event

        return getattr(event, name)
    raise AttributeError(f"module 'headwater' has no attribute {name!r}")
