"""What only Postgres does: restarts, partitions, secrets, several servers; and an older format while it is in use."""

from __future__ import annotations

import re
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import RawCursor
from sqlalchemy import MetaData, create_engine

import services
from databases import Postgres
from headwater.cli.demo import recorded
from headwater.errors import ConfigError, StoreError
from headwater.ingest import ingest, replay
from headwater.store import _migrate, open_store
from headwater.store._driver import Bigints, Byteas, Texts
from headwater.store._schema import PARTITIONED, metadata
from headwater.store._wire import register
from store.test_times import counted


def partitions(url: str, table: str) -> list[str]:
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT pg_get_expr(c.relpartbound, c.oid) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
            " WHERE i.inhparent = %s::regclass ORDER BY c.relname",
            (table,),
        )
        return [row[0] for row in found]


def test_migrations_make_what_is_declared(postgres: Postgres) -> None:
    url = postgres.make(template=None)
    open_store(url).close()
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))

    def ours(thing: Any, name: str | None, kind: str, reflected: bool, other: Any) -> bool:
        return not re.search(r"_to_\d+", name or "")

    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"include_object": ours})
        assert compare_metadata(context, metadata) == []
        loose = connection.exec_driver_sql(
            "SELECT c.relname, a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid"
            " JOIN pg_collation o ON o.oid = a.attcollation WHERE c.relnamespace = 'public'::regnamespace"
            " AND c.relkind IN ('r', 'p') AND c.relname <> 'alembic_version' AND o.collname <> 'C'"
        ).all()
    engine.dispose()
    assert loose == [], "texts are compared bytewise"


_NUMBERS = st.none() | st.integers(-(1 << 63), (1 << 63) - 1)
_TEXTS = st.none() | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
_BYTES = st.none() | st.binary()


@given(st.lists(st.tuples(_NUMBERS, _TEXTS, _BYTES), max_size=20))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_columns_arrive_as_they_were_sent(
    postgres: Postgres, rows: list[tuple[int | None, str | None, bytes | None]]
) -> None:
    kinds = (Bigints, Texts, Byteas)
    columns = zip(*rows, strict=True) if rows else ([], [], [])
    with psycopg.connect(postgres.url("postgres"), client_encoding="utf8") as connection:
        register(connection)
        sent = [kind(values) for kind, values in zip(kinds, columns, strict=True)]
        came = RawCursor(connection).execute("SELECT * FROM unnest($1, $2, $3)", sent).fetchall()
    assert came == rows


def test_partitions_are_made_ahead_of_the_runs(postgres: Postgres) -> None:
    url = postgres.make()
    with closing(open_store(url, partition_runs=10)) as store, closing(open_store("memory:")) as other:
        for each in recorded():
            ingest(store, [each])
            ingest(other, [each])
        assert store.dump() == other.dump()
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE meta SET value = '50000' WHERE key = 'partitions'")
    for table in PARTITIONED:
        assert partitions(url, table) == ["FOR VALUES FROM (MINVALUE) TO ('50000')"]


def test_a_restart_is_told_as_one_to_try_again(repeats: Any) -> None:
    with services.postgres() as port:
        lines = list(recorded())
        store = open_store(f"postgresql://postgres@127.0.0.1:{port}/postgres")
        ingest(store, lines[:5])
        for number in range(5, 8):
            with psycopg.connect(
                f"postgresql://postgres@127.0.0.1:{port}/postgres", autocommit=True
            ) as other:
                other.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'headwater'"
                )
            assert ingest(store, [lines[number]]).stored == 1, (
                "a connection that died between two writes is replaced"
            )
        with pytest.raises(StoreError) as caught, store._transaction() as connection:  # type: ignore[attr-defined]
            connection.exec_driver_sql("SELECT pg_terminate_backend(pg_backend_pid())")
        assert caught.value.retryable
        assert caught.value.cause == "gone"
        assert ingest(store, lines).stored == len(lines) - 8
    with pytest.raises(StoreError) as caught:
        ingest(store, [lines[0]])
    assert caught.value.retryable
    store.close()


def test_a_writer_that_waits_too_long_says_for_whom(postgres: Postgres) -> None:
    url = postgres.make()
    with closing(open_store(url)) as one, closing(open_store(url, lock_timeout=0.2)) as other:
        with (
            one._transaction(),
            pytest.raises(StoreError, match="another process holds the write lock") as caught,
        ):  # type: ignore[attr-defined]
            ingest(other, list(recorded()))
        assert caught.value.retryable
        assert ingest(other, list(recorded())).stored


@pytest.mark.parametrize("database", ["no_such_database", "postgres"])
def test_a_password_is_shown_nowhere(postgres: Postgres, database: str) -> None:
    host = f"127.0.0.1:{postgres.port}" if database != "postgres" else f"127.0.0.1:{services.free_port()}"
    with pytest.raises(StoreError) as caught:
        open_store(f"postgresql://postgres:s3cr3t@{host}/{database}", connect_timeout=2)
    chain: list[str] = []
    fault: BaseException | None = caught.value
    while fault is not None:
        chain.append(str(fault))
        fault = fault.__cause__ or fault.__context__
    assert not any("s3cr3t" in each for each in chain)
    store = open_store(postgres.make().replace(":hidden@", ":s3cr3t@"))
    assert "s3cr3t" not in store.url + repr(store)
    store.close()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://host", "names no database"),
        ("postgresql://host:port:more/x", "is no url of a database"),
        ("postgresql://host/x?colour=red", "unexpected keyword argument 'colour'"),
    ],
)
def test_a_wrong_url_is_refused(url: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        open_store(url)


def test_two_that_start_at_once_migrate_once(store_url: str, postgres: Postgres) -> None:
    url = postgres.make(template=None) if store_url.startswith("postgresql") else store_url
    faults: list[Exception] = []
    ready = threading.Barrier(4)

    def start() -> None:
        ready.wait()
        try:
            with closing(open_store(url)) as store:
                ingest(store, list(recorded()))
        except StoreError as fault:
            faults.append(fault)

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    with closing(open_store(url)) as store:
        assert store.counts()["log"] == len(list(recorded()))


def test_an_older_format_is_brought_up_while_readers_read(
    store_url: str, postgres: Postgres, tmp_path: Path
) -> None:
    """The first format, filled with what the demo's events make; then opened by this version."""
    url = postgres.make(template=None) if store_url.startswith("postgresql") else store_url
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    new = f"sqlite:///{tmp_path}/new.db"
    with closing(open_store(new)) as made:
        ingest(made, list(recorded()))
        expected = made.dump()
    alembic = Config()
    alembic.set_main_option("script_location", str(Path(_migrate.__file__).parent / "migrations"))
    with engine.begin() as connection, closing(sqlite3.connect(tmp_path / "new.db")) as filled:
        alembic.attributes["connection"] = connection
        command.upgrade(alembic, "0001")
        then = MetaData()
        then.reflect(connection)
        for table in then.sorted_tables:
            names = [column.name for column in table.columns]
            told = filled.execute(
                "SELECT " + ", ".join(f'"{name}"' for name in names) + f" FROM {table.name}"
            ).fetchall()
            if table.name != "alembic_version" and told:
                connection.execute(table.insert(), [dict(zip(names, row, strict=True)) for row in told])
    stop, counts, holding = threading.Event(), set(), threading.Event()

    def read() -> None:
        while not stop.is_set():
            with engine.connect() as reader:
                counts.add(reader.exec_driver_sql("SELECT count(*) FROM inputs").scalar_one())
                holding.set()
                stop.wait(1.5)  # longer than the migration waits for it: it has to come again
                counts.add(reader.exec_driver_sql("SELECT count(*) FROM inputs").scalar_one())

    thread = threading.Thread(target=read)
    thread.start()
    holding.wait()
    with closing(open_store(url)) as store:
        stop.set()
        thread.join()
        assert store.dump() == expected
        assert counts == {store.counts()["inputs"]}
        counted(store)
        assert ingest(store, list(recorded())).stored == 0
        replay(store)
        assert store.dump() == expected
    engine.dispose()
