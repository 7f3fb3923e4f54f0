"""databases: nothing -> one Postgres for a whole session of tests, and a new empty store in it for little.

Driver and store are imported when they are asked for: the environments of other Sparks and dlts have none of them.
"""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import services

_TEMPLATE = "headwater_template"


def present() -> bool:
    """Whether Postgres' programs are here."""
    return services.postgres_bin() is not None


@dataclass
class Postgres:
    """A running server."""

    port: int
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def url(self, database: str) -> str:
        """The url of one of its databases."""
        return f"postgresql://postgres:hidden@127.0.0.1:{self.port}/{database}"

    def make(self, template: str | None = _TEMPLATE) -> str:
        """The url of a new database: an empty store, or with no template nothing at all."""
        name = f"t{os.getpid()}_{next(self._numbers)}"
        self.run(f"CREATE DATABASE {name}" + (f" TEMPLATE {template}" if template else ""))
        return self.url(name)

    def restore(self, file: Path) -> str:
        """The url of a new database, filled by `pg_restore`."""
        url, programs = self.make(template=None), services.postgres_bin()
        assert programs is not None
        subprocess.run([str(programs / "pg_restore"), "--exit-on-error", "-d", url, str(file)], check=True)
        return url

    def run(self, statement: str, database: str = "postgres") -> None:
        """Run a statement outside of any transaction."""
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            connection.execute(statement)


@contextmanager
def started() -> Iterator[Postgres]:
    """A server with a template, from which a store is copied rather than migrated."""
    from headwater.store import open_store

    with services.postgres() as port:
        server = Postgres(port)
        server.run(f"CREATE DATABASE {_TEMPLATE}")
        open_store(server.url(_TEMPLATE)).close()
        yield server


def empty(store: object) -> None:
    """Every row out of a Postgres store, quicker than a new one: for properties that want hundreds."""
    from headwater.store._search import Index

    with store._writer.begin() as connection:  # type: ignore[attr-defined]
        names = connection.exec_driver_sql(
            "SELECT string_agg(quote_ident(relname), ', ') FROM pg_class WHERE relkind IN ('r', 'p')"
            " AND relnamespace = 'public'::regnamespace AND NOT relispartition"
            " AND relname NOT IN ('alembic_version', 'meta')"
        ).scalar_one()
        connection.exec_driver_sql(f"TRUNCATE {names} RESTART IDENTITY")
        connection.exec_driver_sql("DELETE FROM meta WHERE key <> 'partitions'")
    store._generation = None  # type: ignore[attr-defined]
    store._index = Index()  # type: ignore[attr-defined]
