"""`headwater incidents`, `hooks` and `work`, on a store and through a server: the same answers, secrets never shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from headwater.ingest import ingest
from headwater.store import open_store
from serving import serving

SECRET = "do-not-show"
Run = Callable[..., Any]


@pytest.fixture
def run(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """As everywhere, and the secret of a hook is never shown."""
    monkeypatch.setenv("HOOK_SECRET", SECRET)

    def call(*arguments: str) -> Any:
        done = run(*arguments)
        assert SECRET not in done.out + done.err
        return done

    return call


@pytest.fixture
def url(tmp_path: Path) -> str:
    told = {"assertion": "not_null", "column": "id", "success": False}
    facet = {"dataQualityAssertions": {"assertions": [told]}}
    event = {
        "eventType": "COMPLETE",
        "eventTime": datetime.now(timezone.utc).isoformat(),
        "run": {"runId": "1"},
        "job": {"namespace": "dbt", "name": "test"},
        "inputs": [{"namespace": "db", "name": "orders", "inputFacets": facet}],
    }
    made = f"sqlite:///{tmp_path}/x.db"
    store = open_store(made)
    assert not ingest(store, [json.dumps(event).encode()]).rejected
    store.close()
    return made


@pytest.fixture(params=["store", "url"])
def ask(request: pytest.FixtureRequest, url: str, run: Run) -> Iterator[Run]:
    if request.param == "store":
        yield lambda *arguments: run(*arguments, "--store", url)
        return
    with serving(url) as server:
        yield lambda *arguments: run(*arguments, "--url", server.url)


def test_from_the_list_to_a_decision(ask: Run) -> None:
    (one,) = ask("incidents", "list", "--json").json["incidents"]
    assert (one["test"], one["status"], one["orphan"]) == ("not_null", "open", True)
    listed = ask("incidents", "list").out
    assert one["id"] in listed
    assert "not_null(id)" in listed
    for command, status in (
        (["ack"], "acknowledged"),
        (["mute", "--reason", "expected", "--days", "2"], "muted"),
        (["reopen", "--note", "again"], "open"),
        (["resolve", "--reason", "fixed"], "resolved"),
        (["reopen"], "open"),
    ):
        done = ask("incidents", command[0], one["id"], *command[1:], "--json")
        assert done.code == 0, done.err
        assert done.json["status"] == status
    assert ask("incidents", "note", one["id"], "look here").code == 0
    shown = ask("incidents", "show", one["id"]).out
    assert "look here" in shown
    assert "again" in shown
    told = ask("incidents", "show", one["id"], "--json").json
    assert len(told["history"]) == 6
    assert all(each["by"] for each in told["history"]), "who said it is kept"


def test_without_a_command_they_are_listed_and_where_to_ask_may_be_said_first(url: str, run: Run) -> None:
    listed = run("incidents", "--store", url, "--json")
    assert listed.json["total"] == 1
    assert run("incidents", "--store", url, "--json", "list").json == listed.json
    number = listed.json["incidents"][0]["id"]
    assert run("incidents", "--store", url, "--json", "show", number).json["id"] == number
    for command in (["--days", "3", "mute", number, "--reason", "x", "--store", url],
                    ["--url", "http://localhost:1", "watch", "db/*", "--measure", "volume", "--store", url]):  # fmt: skip
        refused = run("incidents", *command)
        assert (refused.code, command[0] in refused.err) == (2, True), refused.err
    assert run("incidents", "--store", url, "--json").json == listed.json, "a list changes nothing"


def test_wrong_use_says_what_to_do(ask: Run) -> None:
    missing = ask("incidents", "show", "5")
    assert (missing.code, missing.out) == (3, "")
    assert "no incident has the id 5" in missing.err
    assert ask("incidents", "list", "--status", "gone").code == 2
    assert ask("incidents", "mute", "5").code == 2, "a mute needs its reason"
    assert ask("incidents", "list", "--since", "whenever").code == 2


def test_hooks_are_added_listed_and_removed_without_their_secret(url: str, run: Run) -> None:
    def ask(*arguments: str) -> Any:
        return run(*arguments, "--store", url)

    assert ask("hooks", "add", "ops", "http://127.0.0.1:9/x", "--event", "incident.opened").code == 0
    (hook,) = ask("hooks", "list", "--json").json
    assert (hook["name"], hook["signed"], hook["events"]) == ("ops", True, ["incident.opened"])
    for wrong in (
        ("http://me:pw@x/",),
        ("nonsense",),
        ("http://x/", "--event", "gone"),
        ("http://x/", "--template", "{secret}"),
        ("http://x/", "--severity", "loud"),
    ):
        assert ask("hooks", "add", "bad", *wrong).code == 2, wrong
    assert ask("work", "--once", "--json").json["held"] is True
    assert "ops" in ask("hooks", "list").out
    assert ask("hooks", "log", "ops", "--json").json == []
    assert ask("hooks", "retry", "ops").code == 0
    assert ask("hooks", "remove", "ops").code == 0
    assert ask("hooks", "remove", "ops").code == 3


def test_a_watch_is_set_and_taken_back(url: str, run: Run) -> None:
    for more in ((), ("--off",)):
        assert run("incidents", "watch", "db/*", "--measure", "volume", *more, "--store", url).code == 0
    assert run("incidents", "watch", "db/*", "--measure", "mood", "--store", url).code == 2
