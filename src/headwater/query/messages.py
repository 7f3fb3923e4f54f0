"""query.messages: a message to a webhook -> how it is shown: what it is about, and what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.query.nodes import iso

if TYPE_CHECKING:
    from headwater.store._outbox import Message


def message(told: Message) -> dict[str, Any]:
    """A message, as lists show it."""
    return {
        "hook": told.hook,
        "key": told.key,
        "event": told.event,
        "state": told.state,
        "tries": told.tries,
        "madeAt": iso(told.made_at),
        "dueAt": iso(told.due_at) if told.state == "waiting" else None,
        "fault": told.fault or None,
    }
