"""Whatever the description of the API allows, and much that it does not, is answered with something better than a 5xx."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode

from headwater.cli.demo import recorded
from headwater.ingest import ingest
from headwater.store import open_store
from serving import Server, serving

REQUESTS = 20_000
PARTS = 4
"""In tests of their own, so that those who run them side by side can share them out."""
ENDLESS = "/hw/v1/changes"
"""Answers here do not end: they are listened to for a moment."""


@pytest.fixture
def server(store_url: str) -> Iterator[Server]:
    """A real server over a store with something in it."""
    store = open_store(store_url)
    ingest(store, list(recorded()))
    store.close()
    with serving(store_url) as started:
        yield started


def weight(operation: Any) -> int:
    """How many of the requests an operation gets: an array of events takes a hundred times as long to make up as a question."""
    if operation.path == ENDLESS:
        return 1
    bodies = [body.definition.get("schema", {}) for body in operation.body]
    return 1 if any("items" in body for body in bodies) else 3 if bodies else 40


# a body that says it is JSON and is none makes schemathesis warn of its own request
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("part", range(PARTS))
def test_no_request_is_a_fault_of_the_server(
    server: Server, repeats: Callable[[int], int], part: int
) -> None:
    wanted = repeats(REQUESTS) // (2 * PARTS)  # on each of two stores
    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) >= 9
    made: Counter[str] = Counter()
    statuses: Counter[int] = Counter()
    faults: list[str] = []
    with requests.Session() as session:
        round_number = part * 1_000
        while (left := wanted - sum(made.values())) > 0:
            parts = 2 * sum(map(weight, operations))
            for operation in operations:
                share = max(1, -(-left * weight(operation) // parts))
                for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                    _attempt(operation, mode, share, round_number, session, made, statuses, faults)
            round_number += 1
    assert not faults, "\n".join(faults[:5])
    assert {200, 400} <= set(statuses)
    assert set(made) == {operation.label for operation in operations}
    assert session.get(f"{server.url}/ready", timeout=60).json()["status"] == "ready"


def _attempt(
    operation: Any,
    mode: GenerationMode,
    share: int,
    round_number: int,
    session: requests.Session,
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
        answer = case.call(session=session, timeout=0.3 if operation.path == ENDLESS else 60)
        made[operation.label] += 1
        statuses[answer.status_code] += 1
        if answer.status_code >= 500:
            faults.append(f"{answer.status_code} {answer.text[:300]}\n{case.as_curl_command()[:2000]}")

    try:
        attempt()
    except Exception as fault:
        if type(fault).__name__ not in ("Unsatisfiable", "InvalidArgument", "SkipTest"):
            raise
