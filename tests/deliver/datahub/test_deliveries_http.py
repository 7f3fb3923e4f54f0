"""/hw/v1/deliveries: how far behind, what was taken, what was refused, and what an administrator does about it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from gms import Answer, Gms
from litestar.testing import TestClient
from making import raw
from test_coalescing import STORY
from test_following import MINUTE, At, follow, rounds, take

from headwater import keys
from headwater.deliver.datahub import following
from headwater.deliver.datahub.settings import Delivery, delivery
from headwater.errors import TransportError
from headwater.query.incidents import clock as now
from headwater.query.nodes import iso
from headwater.serve import Serving, create_app
from headwater.store import Store

HERE = "/hw/v1/deliveries"
DATAHUB = f"{HERE}/{following.NAME}"


def client(store: Store, datahub: Delivery | None = None, **serving: Any) -> TestClient[Any]:
    # `work` off: these tests are the worker, so that nothing happens between two of their looks
    return TestClient(create_app(store, Serving(work=False, **serving), datahub=datahub))


def set_to(gms: Gms) -> Delivery:
    url = gms.url.replace("http://", "datahub+rest://me:hush@")
    return delivery({"to": url, "token": "very-secret", "every": 7})


def test_what_is_taken_is_counted_and_nothing_is_told_where_nothing_is_delivered(
    store: Store, gms: Gms
) -> None:
    with client(store) as asked:
        assert asked.get(HERE).json() == []
        assert asked.get(f"{HERE}/deliver.other/letters").status_code == 404
    take(store, *STORY)
    with client(store, set_to(gms)) as asked:
        (told,) = asked.get(HERE).json()
        assert told["lag"]["entries"] == len(STORY)
        assert told["lag"]["seconds"] > 0
        assert (told["sent"], told["sentAt"], told["worked"], told["every"]) == (0, None, False, 7)
        assert "hush" not in json.dumps(told)
        assert "secret" not in json.dumps(told)
        follower, clock = follow(gms), At()
        rounds(follower, store, clock)
        (told,) = asked.get(HERE).json()
        assert told["sent"] == len(gms.taken) > 5
        assert told["sentAt"] == iso(clock())
        assert (told["lag"]["entries"], told["refused"], told["fault"]) == (0, 0, None)
        follower.close()
    with client(store) as asked:  # a server that does not deliver itself tells of one that does
        (told,) = asked.get(HERE).json()
        assert (told["to"], told["sent"]) == (None, len(gms.taken))


def test_what_is_refused_is_read_tried_again_and_forgotten_by_an_administrator(
    store: Store, gms: Gms
) -> None:
    _, admin = keys.create(store, "boss", ["admin"], by="test")
    _, reader = keys.create(store, "reader", ["read"], by="test")
    wanted = {"dataJobInputOutput", "dataJobInfo", "ownership"}
    gms.refuses = lambda each: f"no {each['aspectName']}" if each["aspectName"] in wanted else None
    take(store, *STORY)
    follower, clock = follow(gms), At()
    rounds(follower, store, clock)
    with client(store, set_to(gms), auth="on") as asked:
        asked.headers["X-API-Key"] = reader
        assert asked.get(HERE).status_code == 200
        for method, path in (
            ("GET", f"{DATAHUB}/letters"),
            ("GET", f"{DATAHUB}/letters/1"),
            ("POST", f"{DATAHUB}/retry"),
            ("DELETE", f"{DATAHUB}/letters"),
            ("DELETE", f"{DATAHUB}/letters/1"),
        ):
            assert asked.request(method, path).status_code == 403
        asked.headers["X-API-Key"] = admin
        before = asked.get(HERE).json()[0]
        letters = asked.get(f"{DATAHUB}/letters").json()["letters"]
        assert len(letters) == before["refused"] >= 2
        assert [each["id"] for each in letters] == sorted((each["id"] for each in letters), reverse=True)
        for each in letters:
            aspect = each["about"].split(" ")[0]
            assert each["reason"] == f"no {aspect}"
            assert (each["what"], each["state"]) == ("proposal", "dead")
            whole = asked.get(f"{DATAHUB}/letters/{each['id']}").json()
            assert whole["body"]["aspectName"] == aspect
            assert whole["body"]["entityUrn"] in each["about"]
        # in pages, nothing is left out and nothing comes twice
        pages, at = [], None
        while True:
            page = asked.get(
                f"{DATAHUB}/letters", params={"limit": 1, **({"before": at} if at else {})}
            ).json()
            pages += page["letters"]
            at = page["next"]
            if at is None:
                break
        assert pages == letters

        # one is tried again: the next round sends it, and it alone
        gms.refuses = lambda each: None
        one = letters[0]
        assert asked.post(f"{DATAHUB}/retry", params={"letter": one["id"]}).json() == {"again": 1}
        (told,) = asked.get(HERE).json()
        assert (told["refused"], told["waiting"]) == (len(letters) - 1, 1)
        assert asked.get(f"{DATAHUB}/letters").json()["letters"][0]["state"] == "waiting"
        taken, clock.now = len(gms.taken), now()
        rounds(follower, store, clock)
        assert [each["aspectName"] for each in gms.taken[taken:]] == [one["about"].split(" ")[0]]
        (told,) = asked.get(HERE).json()
        assert (told["refused"], told["waiting"], told["sent"]) == (len(letters) - 1, 0, len(gms.taken))
        assert asked.get(f"{DATAHUB}/letters/{one['id']}").status_code == 404

        # one is forgotten, then all of them; the log keeps what they were made of
        logged = store.counts()["log"]
        gone = letters[1]["id"]
        assert asked.delete(f"{DATAHUB}/letters/{gone}").json() == {"forgotten": 1}
        assert asked.delete(f"{DATAHUB}/letters/{gone}").status_code == 404
        assert asked.post(f"{DATAHUB}/retry", params={"letter": gone}).status_code == 404
        assert asked.delete(f"{DATAHUB}/letters").json() == {"forgotten": len(letters) - 2}
        assert asked.delete(f"{DATAHUB}/letters").json() == {"forgotten": 0}
        assert asked.post(f"{DATAHUB}/retry").json() == {"again": 0}
        assert asked.get(HERE).json()[0]["refused"] == 0
        assert store.counts()["log"] == logged
        trail = asked.get("/hw/v1/audit", params={"by": "boss"}).json()
        done = [(each["what"], each["detail"]["which"]) for each in reversed(trail)]
        assert done[:2] == [
            ("delivery_retry", f"letter {one['id']}"),
            ("delivery_forget", f"letter {gone}"),
        ]
        assert len(done) == (3 if len(letters) > 2 else 2)  # what did nothing is no deed
        assert {each["detail"]["name"] for each in trail} == {following.NAME}
    follower.close()


def test_a_datahub_that_is_down_is_told_with_since_when_until_it_is_back(store: Store, gms: Gms) -> None:
    follower, clock = follow(gms), At()
    gms.answers.extend([Answer(503)] * 9)
    take(store, *STORY)
    with client(store, set_to(gms)) as asked:
        with pytest.raises(TransportError):
            rounds(follower, store, clock)
        (told,) = asked.get(HERE).json()
        assert "503" in told["fault"]["reason"]
        since = told["fault"]["since"]
        clock.now += MINUTE
        with pytest.raises(TransportError):
            rounds(follower, store, clock)
        assert asked.get(HERE).json()[0]["fault"]["since"] == since  # the same trouble, not a new one
        gms.answers.clear()
        clock.now += MINUTE
        rounds(follower, store, clock)
        assert asked.get(HERE).json()[0]["fault"] is None
    follower.close()


def test_events_that_could_not_be_converted_tell_whose_they_are(store: Store, gms: Gms) -> None:
    follower, clock = follow(gms, compat="datahub-java"), At()
    take(store, raw(producer="https://example.org"))
    rounds(follower, store, clock)
    with client(store, set_to(gms)) as asked:
        (letter,) = asked.get(f"{DATAHUB}/letters").json()["letters"]
        whole = asked.get(f"{DATAHUB}/letters/{letter['id']}").json()["body"]
    assert letter["what"] == "event"
    assert letter["about"] == f"{whole['job']['namespace']}/{whole['job']['name']}"
    assert letter["bytes"] > 0
    follower.close()


def test_numbers_beyond_any_row_are_not_found(store: Store, gms: Gms) -> None:
    with client(store, set_to(gms)) as asked:
        for number in (0, -1, 2**63, 10**30):
            assert asked.get(f"{DATAHUB}/letters/{number}").status_code == 404
            assert asked.delete(f"{DATAHUB}/letters/{number}").status_code == 404


def test_a_read_only_server_shows_and_changes_nothing(store: Store, gms: Gms) -> None:
    gms.refuses = lambda each: "no"
    take(store, *STORY)
    follower, clock = follow(gms), At()
    rounds(follower, store, clock)
    follower.close()
    with client(store, set_to(gms), read_only=True) as asked:
        before = asked.get(f"{DATAHUB}/letters").json()
        assert before["letters"]
        for method, path in (("POST", "/retry"), ("DELETE", "/letters"), ("DELETE", "/letters/1")):
            assert asked.request(method, DATAHUB + path).status_code in (404, 405)
        assert asked.get(f"{DATAHUB}/letters").json() == before
