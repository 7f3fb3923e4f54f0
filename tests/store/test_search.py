"""The search index: the same documents whatever came first, found as a plain scan would find them, on both stores."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text

from databases import Postgres, empty
from facts.test_order import entries, write
from headwater.event import micros
from headwater.facts.commands import Hide, Say, SetAlias, SetTag
from headwater.ingest import command, ingest, replay
from headwater.query.search import search
from headwater.query.status import status
from headwater.store import Store, _search, open_store
from headwater.store._words import asked, words
from streams import at, facet, run_id


def documents(store: Store) -> dict[Any, Any]:
    """Every document of a node that an event told of, by the node's identity."""
    found = {}
    with store.read() as reader:
        for position, table in enumerate(("datasets", "jobs")):
            rows = reader._connection.execute(
                text(
                    "SELECT t.namespace, t.name, d.label, d.tail, d.names, d.words, d.marks, d.slots FROM documents d"
                    f" JOIN {table} t ON d.id = t.id * 2 + {position} WHERE t.last_seen IS NOT NULL"
                )
            )
            found.update({(table, row[0], row[1]): tuple(row[2:]) for row in rows})
            told = reader._connection.execute(
                text(f"SELECT count(*) FROM {table} WHERE last_seen IS NOT NULL")
            )
            assert sum(key[0] == table for key in found) == told.scalar(), "every node has its document"
    return found


def words_found(store: Store) -> dict[str, list[str]]:
    """What the index itself finds for words that stand in the documents."""
    every = {word for document in documents(store).values() for word in document[3].split()}
    return {
        word: sorted(each["id"] for each in search(store, word, limit=1000)) for word in sorted(every)[:8]
    }


@given(entries, st.data())
def test_documents_do_not_depend_on_order_and_a_replay_makes_them_again(
    stream: list[Any], data: st.DataObject
) -> None:
    messy = data.draw(st.permutations(stream + stream[:3]))
    with closing(open_store("memory:")) as one, closing(open_store("memory:")) as two:
        write(one, stream, [])
        write(two, messy, data.draw(st.lists(st.integers(1, 6), max_size=20)))
        expected, found = documents(one), words_found(one)
        assert documents(two) == expected
        assert words_found(two) == found
        replay(two)
        assert documents(two) == expected
        assert words_found(two) == found
        with two._transaction() as connection:  # type: ignore[attr-defined]
            two._index.rebuild(connection)  # type: ignore[attr-defined]
        assert documents(two) == expected


@pytest.fixture(scope="module")
def on_postgres(postgres: Postgres) -> Iterator[Store]:
    with closing(open_store(postgres.make())) as store:
        yield store


@given(stream=entries)
def test_postgres_keeps_and_finds_the_same(on_postgres: Store, stream: list[Any]) -> None:
    empty(on_postgres)
    write(on_postgres, stream, [])
    with closing(open_store("memory:")) as store:
        write(store, stream, [])
        assert documents(on_postgres) == documents(store)
        assert words_found(on_postgres) == words_found(store)


# ---- what is found


def told(second: int, job: str, *outputs: dict[str, Any], **facets: Any) -> bytes:
    return msgspec.json.encode(
        {
            "eventType": "COMPLETE",
            "eventTime": at(second),
            "run": {"runId": run_id(second)},
            "job": {"namespace": "etl", "name": job, "facets": facets},
            "outputs": list(outputs),
        }
    )


def table(namespace: str, name: str, **facets: Any) -> dict[str, Any]:
    return {"namespace": namespace, "name": name, "facets": facets}


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    with closing(open_store(store_url)) as opened:
        ingest(
            opened,
            [
                told(1, "loadOrdersDaily", table("db", "shop.public.orders"), sql=facet(query="SELECT Grossbetrag FROM raw_invoices")),
                told(2, "etl/reorder", table("db", "shop.public.orders_history")),
                told(
                    3, "customers",
                    table(
                        "s3://lake", "crm/customers",
                        schema=facet(fields=[{"name": "e_mail", "type": "string", "description": "where to write to"},
                                             {"name": "address", "type": "struct", "fields": [{"name": "zip_code", "type": "string"}]}]),
                        documentation=facet(description="People who bought something, not the orders"),
                        ownership=facet(owners=[{"name": "team-crm"}]),
                        tags=facet(tags=[{"key": "gold"}]),
                    ),
                ),
            ],
        )  # fmt: skip
        yield opened


def names(store: Store, query: str, **filters: Any) -> list[str]:
    return [each["name"] for each in search(store, query, **filters)]


def test_a_name_comes_before_its_beginning_before_its_part_before_text(store: Store) -> None:
    assert names(store, "orders") == [
        "shop.public.orders",
        "shop.public.orders_history",
        "loadOrdersDaily",
        "crm/customers",
    ]
    assert [each["match"] for each in search(store, "orders")] == ["exact", "prefix", "part", "text"]
    assert names(store, "order")[:3] == ["shop.public.orders", "shop.public.orders_history", "etl/reorder"]
    assert names(store, "rder")[0] == "etl/reorder", "a part of a word, too"


def test_all_words_of_a_name_come_before_a_name_and_a_text(store: Store) -> None:
    ingest(store, [told(8, "x", table("lake", "day", documentation=facet(description="orders by night")))])
    ingest(store, [told(9, "y", table("lake", "every_day_long_orders_report"))])
    assert names(store, "day orders") == ["every_day_long_orders_report", "day"]


@pytest.mark.parametrize(
    ("query", "found", "place"),
    [
        ("grossb", "loadOrdersDaily", "sql"),
        ("raw inv", "loadOrdersDaily", "sql"),
        ("bought", "crm/customers", "description"),
        ("zip", "crm/customers", "column"),
        ("e_mail", "crm/customers", "column"),
        ("write", "crm/customers", "column description"),
        ("team-crm", "crm/customers", "owner"),
        ("GOLD", "crm/customers", "tag"),
        ("lake", "crm/customers", "namespace"),
        ("orders daily", "loadOrdersDaily", "name"),
        ("ordersDai", "loadOrdersDaily", "name"),
    ],
)
def test_words_are_found_wherever_they_stand(store: Store, query: str, found: str, place: str) -> None:
    (hit,) = search(store, query)
    assert hit["name"] == found
    where = next(each for each in hit["matches"] if each["in"] == place)
    for start, end in where["marks"]:
        assert where["text"][start:end].casefold() in asked(query)
    assert where["marks"]


@pytest.mark.parametrize("empty", [{"fields": []}, {"_deleted": True}, {"fields": "x"}])
def test_columns_are_found_though_a_later_schema_names_none(store: Store, empty: dict[str, Any]) -> None:
    ingest(store, [told(9, "customers", table("s3://lake", "crm/customers", schema=facet(**empty)))])
    assert names(store, "zip_code") == ["crm/customers"]


def test_filters_narrow_and_can_stand_alone(store: Store) -> None:
    assert names(store, "orders", kind="job") == ["loadOrdersDaily"]
    assert names(store, "orders", namespace="s3://lake") == ["crm/customers"]
    assert names(store, "", tag="gold") == names(store, "", owner="TEAM-crm") == ["crm/customers"]
    assert names(store, "orders", owner="nobody") == []
    assert len(names(store, "o", limit=2)) == 2


def test_what_people_say_is_found_and_what_they_take_back_is_not(store: Store) -> None:
    thing = {"kind": "dataset", "namespace": "db", "name": "shop.public.orders"}
    command(
        store,
        Say(at=micros(at(5)), **thing, values={"description": "Bestellungen", "owners": '["team-shop"]'}),
    )
    command(store, SetTag(at=micros(at(5)), **thing, tag="kritisch", field="total"))
    for query in ("bestell", "team-shop", "kritisch", "total"):
        assert names(store, query) == ["shop.public.orders"], query
    command(store, Say(at=micros(at(6)), **thing, values={"description": None, "owners": None}))
    command(store, SetTag(at=micros(at(6)), **thing, tag="kritisch", field="total", live=False))
    for query in ("bestell", "team-shop", "kritisch"):
        assert names(store, query) == [], query


def test_an_alias_leads_to_its_dataset_and_what_is_hidden_is_not_found(store: Store) -> None:
    command(store, SetAlias(at=1, rule={"namespace": "db", "to_namespace": "warehouse"}))
    (hit, *_) = search(store, "shop.public.orders")
    assert (hit["id"], hit["match"]) == ("dataset:warehouse:shop.public.orders", "exact")
    command(store, SetAlias(at=2, rule={"namespace": "db", "to_namespace": "warehouse"}, live=False))
    assert search(store, "shop.public.orders")[0]["id"] == "dataset:db:shop.public.orders"
    assert all(each["namespace"] != "warehouse" for each in search(store, "warehouse"))
    command(store, Hide(at=micros(at(50)), kind="dataset", namespace="db", name="shop.public.orders"))
    assert "shop.public.orders" not in names(store, "orders")


@pytest.mark.parametrize(
    "query",
    ["'", '"', "%", "_", "a & b | !c", "* : ^", "NEAR(a b)", "a\0b", "\\", "😀", "-" * 900, "x" * 900],
)
def test_no_query_is_a_fault(store: Store, query: str) -> None:
    assert isinstance(search(store, query), list)
    assert isinstance(search(store, "o", namespace=query, tag=query, owner=query), list)


letters = st.text(alphabet="abcAB12_./-é ☃", max_size=12)


@given(st.lists(letters.filter(lambda name: name.strip()), min_size=1, max_size=8, unique=True), letters)
def test_what_is_found_is_what_a_scan_finds(known: list[str], query: str) -> None:
    with closing(open_store("memory:")) as store:
        ingest(store, [told(1, name) for name in known])
        wanted = [part for part in re.split(r"[^0-9A-Za-zé]+", query) if part]

        def holds(name: str) -> bool:
            if query.strip().casefold() in name.casefold():
                return True
            parts = [part for part in re.split(r"[^0-9A-Za-zé]+", name + " etl") if part]
            every = {piece.casefold() for part in parts for piece in (part, *_split(part))}
            asks = [piece.casefold() for part in wanted for piece in _split(part)]
            return bool(asks) and all(any(word.startswith(ask) for word in every) for ask in asks)

        assert set(names(store, query, limit=1000)) == {name for name in known if holds(name)}


def _split(part: str) -> list[str]:
    pieces, start = [], 0
    for i in range(1, len(part)):
        lower_upper = (part[i - 1] in "abcdefghijklmnopqrstuvwxyz0123456789") and part[
            i
        ] in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
        upper_word = (
            part[i - 1].isupper()
            and part[i].isupper()
            and i + 1 < len(part)
            and part[i + 1] in "abcdefghijklmnopqrstuvwxyz"
        )
        if lower_upper or upper_word:
            pieces.append(part[start:i])
            start = i
    return [*pieces, part[start:]]


def test_words_are_cut_at_marks_and_split() -> None:
    assert list(words("HTTPServer_v2/orders-EU")) == ["httpserver", "http", "server", "v2", "orders", "eu"]
    assert asked("HTTPServer a a") == ["http", "server", "a"]


# ---- SQLite without FTS5, and stores of before


def test_without_fts5_names_are_searched_and_the_status_says_so(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/x.db"
    with closing(open_store(url)) as store:
        ingest(store, [told(1, "loadOrders", sql=facet(query="SELECT amount"))])
        assert status(store)["search"] == "fts5"
    monkeypatch.setattr(_search, "_able", lambda connection: "names")
    with closing(open_store(url)) as store:
        assert status(store)["search"] == "names"
        ingest(store, [told(2, "dropOrders", sql=facet(query="DELETE amount"))])
        assert names(store, "orders") == ["dropOrders", "loadOrders"]
        assert names(store, "amount") == []
    monkeypatch.undo()
    with closing(open_store(url)) as store:
        ingest(store, [told(3, "other")])
        assert (status(store)["search"], names(store, "amount")) == ("fts5", ["dropOrders", "loadOrders"])


def test_a_store_that_has_no_index_yet_gets_one_with_its_next_write(tmp_path: Any) -> None:
    with closing(open_store(f"sqlite:///{tmp_path}/x.db")) as store:
        ingest(store, [told(1, "loadOrders", sql=facet(query="SELECT amount"))])
        with store._transaction() as connection:  # type: ignore[attr-defined]
            connection.execute(text("DELETE FROM documents"))
            connection.execute(text("DROP TABLE documents_fts"))
            connection.execute(text("DELETE FROM meta WHERE key = 'search'"))
    with closing(open_store(f"sqlite:///{tmp_path}/x.db")) as store:
        ingest(store, [told(2, "other")])
        assert names(store, "amount") == ["loadOrders"]
