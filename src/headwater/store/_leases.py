"""store._leases: a name and a holder -> whether he holds it, for a while; one holder at a time, by one statement."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, delete, or_, select
from sqlalchemy.dialects import postgresql, sqlite

from headwater.store._schema import leases

_INSERT: dict[str, Any] = {"postgresql": postgresql.insert, "sqlite": sqlite.insert}


def take(connection: Connection, name: str, holder: str, *, now: int, until: int) -> bool:
    """Take or renew a lease: free, run out, or one's own; the database decides between those who try at once."""
    insert = _INSERT[connection.dialect.name](leases)
    taken = insert.values(name=name, holder=holder, until=until).on_conflict_do_update(
        index_elements=[leases.c.name],
        set_={"holder": insert.excluded.holder, "until": insert.excluded.until},
        where=or_(leases.c.until <= now, leases.c.holder == holder),
    )
    found: str | None = connection.execute(taken.returning(leases.c.holder)).scalar()
    return found == holder


def release(connection: Connection, name: str, holder: str) -> None:
    """Give it back before it runs out."""
    connection.execute(delete(leases).where(leases.c.name == name, leases.c.holder == holder))


def holder_of(connection: Connection, name: str, now: int) -> str | None:
    """Who holds it."""
    query = select(leases.c.holder).where(leases.c.name == name, leases.c.until > now)
    return connection.execute(query).scalar()
