"""store._audit: what somebody did to what stands outside the log -> a line of the audit trail, in the same transaction."""

from __future__ import annotations

from sqlalchemy import Connection, insert

from headwater.store._schema import key_audit


def note(connection: Connection, now: int, by: str, what: str, name: str, detail: str) -> None:
    """Write down that somebody did something to a hook or a delivery; keys write their own lines."""
    connection.execute(
        insert(key_audit).values(at=now, by=by, what=what, key_id="", name=name, detail=detail)
    )
