"""Whatever the description of the API allows, and much that it does not, is answered with something better than a 5xx; on both stores alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode

from databases import Postgres
from headwater.cli.demo import recorded
from headwater.ingest import ingest
from headwater.store import open_store
from serving import Server, serving

REQUESTS = 20_000
"""To each store."""
PARTS = 2
"""In tests of their own, so that those who run them side by side can share them out."""
ENDLESS = "/hw/v1/changes"
"""Answers here do not end: they are listened to for a moment."""


@pytest.fixture
def servers(tmp_path: Path, postgres: Postgres) -> Iterator[list[Server]]:
    """Real servers over SQLite and Postgres with the same in them."""
    with ExitStack() as stack:
        started = []
        for url in (f"sqlite:///{tmp_path}/store.db", postgres.make()):
            store = open_store(url)
            ingest(store, list(recorded()))
            store.close()
            started.append(stack.enter_context(serving(url)))
        yield started


def weight(operation: Any) -> int:
    """How many of the requests an operation gets: an array of events takes a hundred times as long to make up as a question."""
    if operation.path == ENDLESS:
        return 1
    bodies = [body.definition.get("schema", {}) for body in operation.body]
    if any("items" in body for body in bodies):
        return 1
    return 3 if any("eventTime" in body.get("properties", {}) for body in bodies) else 40


def modes(operation: Any) -> Iterator[GenerationMode]:
    """Right and wrong requests; where any text will do nothing can be wrong, and to look for it would take longest."""
    yield GenerationMode.POSITIVE
    told = [each.definition.get("schema", {}) for each in operation.iter_parameters()]
    if operation.body or any(
        schema.keys() - {"description"} != {"type"} or schema["type"] != "string" for schema in told
    ):
        yield GenerationMode.NEGATIVE


# a body that says it is JSON and is none makes schemathesis warn of its own request
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("part", range(PARTS))
def test_no_request_is_a_fault_of_the_server(
    servers: list[Server], repeats: Callable[[int], int], part: int
) -> None:
    """Each request goes to both: to make one up takes longer than to answer it, and each store is judged by the other."""
    wanted = repeats(REQUESTS) // PARTS
    schema = schemathesis.openapi.from_url(f"{servers[0].url}/openapi.json")
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) >= 9
    made: Counter[str] = Counter()
    statuses: Counter[int] = Counter()
    faults: list[str] = []
    asked = [(each, mode) for each in operations for mode in modes(each)]
    with requests.Session() as session:
        round_number = part * 1_000
        while (left := wanted - sum(made.values())) > 0:
            shares = sum(weight(operation) for operation, _ in asked)
            for operation, mode in asked:
                share = max(1, -(-left * weight(operation) // shares))
                _attempt(operation, mode, share, round_number, session, servers, made, statuses, faults)
            round_number += 1
    assert not faults, "\n".join(faults[:5])
    assert {200, 400} <= set(statuses)
    assert set(made) == {operation.label for operation in operations}
    for server in servers:
        assert requests.get(f"{server.url}/ready", timeout=60).json()["status"] == "ready"


def _attempt(
    operation: Any,
    mode: GenerationMode,
    share: int,
    round_number: int,
    session: requests.Session,
    servers: list[Server],
    made: Counter[str],
    statuses: Counter[int],
    faults: list[str],
) -> None:
    try:
        strategy = operation.as_strategy(generation_mode=mode)
    except schemathesis.errors.SchemathesisError:
        return  # it has nothing that could be wrong

    @seed(round_number)  # the same requests each time
    @settings(
        max_examples=share,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=strategy)
    def attempt(case: Any) -> None:
        made[operation.label] += 1
        answers = [
            case.call(server.url, session, timeout=0.3 if operation.path == ENDLESS else 60)
            for server in servers
        ]
        given = [answer.status_code for answer in answers]
        statuses.update(given)
        if max(given) >= 500 or len(set(given)) > 1:
            told = "; ".join(f"{answer.status_code} {answer.text[:300]}" for answer in answers)
            faults.append(f"{told}\n{case.as_curl_command()[:2000]}")

    try:
        attempt()
    except Exception as fault:
        if type(fault).__name__ not in ("Unsatisfiable", "InvalidArgument", "SkipTest"):
            raise
