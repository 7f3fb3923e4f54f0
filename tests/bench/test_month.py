"""A month of a large company: the generator says the same each time, its proof finds what is wrong, and nothing is lost on the way."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from headwater.capture.connect.events import Teller
from headwater.capture.connect.lifecycle import Moment
from headwater.capture.connect.snapshots import Connector, Task
from headwater.capture.dlt.events import State as DltState
from headwater.capture.dlt.events import interpret as dlt_events
from headwater.ingest import ingest_all
from headwater.query.incidents import list_incidents
from headwater.store import Store, open_store

ROOT = Path(__file__).parents[2]
SPARK_RECORDS = ROOT / "tests" / "capture" / "spark"


def load(*names: str) -> list[Any]:
    """Modules of bench/, which is on the path for no longer than this: it has a `dlt` and an `airflow` of its own."""
    sys.path.append(str(ROOT / "bench"))
    try:
        return [import_module(name) for name in names]
    finally:
        sys.path.remove(str(ROOT / "bench"))


company, ledger_, proving = load("company", "ledger", "proving")


def lived(events: int, seed: int = 1, host: int = 0, of: int = 1) -> tuple[Any, list[bytes]]:
    month = company.Month(company.Size.of(events, seed), host, of)
    return month.ledger, [raw for _, raw in month.arrivals()]


# --- the generator


def test_a_seed_gives_the_same_month_and_another_seed_another() -> None:
    (one, first), (again, second), (other, third) = lived(600), lived(600), lived(600, seed=2)
    assert first == second
    assert one == again
    assert (other.events, third) != (one.events, first)


def test_the_shares_of_several_hosts_are_the_month_of_one() -> None:
    whole, lines = lived(2_500)
    shares = [lived(2_500, host=host, of=3) for host in range(3)]
    together = ledger_.joined(share for share, _ in shares)
    assert {raw for _, share in shares for raw in share} == set(lines)
    for name in ("events", "runs", "assertions", "states", "jobs", "datasets", "edges", "columns", "aliases"):
        assert getattr(together, name) == getattr(whole, name), name
    assert together.incidents() == whole.incidents()


def test_a_month_has_everything_that_can_go_wrong() -> None:
    told, lines = lived(30_000)
    assert {"COMPLETE", "FAIL", "ABORT", "RUNNING", "START"} == set(told.states)
    assert {each[0] for each in told.incidents()} == {"run", "test", "schema"}
    assert {each[4] for each in told.incidents()} == {"open", "resolved"}
    assert len(lines) - len(set(lines)) == told.told["repeats"] > 100
    assert told.told["late"] > 100
    assert told.told["disordered"] > 1_000
    assert len(told.jobs) == 500
    assert 25_000 < told.events.count < 35_000


def shape(value: Any) -> Any:
    """The names in a value; of a list, those of its first item."""
    if isinstance(value, dict):
        return {key: shape(each) for key, each in value.items()}
    return shape(value[0]) if isinstance(value, list) and value else None


def within(small: Any, large: Any, path: str = "") -> Iterator[str]:
    """The names that only the first has."""
    for key, each in (small or {}).items():
        if key not in (large or {}):
            yield f"{path}/{key}"
        elif isinstance(each, dict):
            yield from within(each, large[key], f"{path}/{key}")


def facets_of(event: dict[str, Any]) -> dict[str, Any]:
    """Facet by facet what an event tells of; what is named after a column is left out."""
    told = {"run": event["run"].get("facets", {}), "job": event["job"].get("facets", {})}
    for side in ("input", "output"):
        every = event[f"{side}s"]
        told[side] = {key: value for each in every for key, value in each.get("facets", {}).items()}
        told[f"{side}Facets"] = {key: value for each in every for key, value in each.get(f"{side}Facets", {}).items()}  # fmt: skip
    for each in told.values():
        if "columnLineage" in each:
            each["columnLineage"] = {**each["columnLineage"], "fields": list(each["columnLineage"]["fields"].values())}  # fmt: skip
    return {
        "event": dict.fromkeys(event),
        **{key: {name: shape(facet) for name, facet in each.items()} for key, each in told.items()},
    }


def union(events: list[dict[str, Any]]) -> dict[str, Any]:
    whole: dict[str, Any] = {}

    def add(into: dict[str, Any], more: dict[str, Any]) -> None:
        for key, each in more.items():
            if isinstance(each, dict):
                into[key] = into.get(key) or {}  # an empty list of them came before
                add(into[key], each)
            else:
                into.setdefault(key, None)

    for event in events:
        add(whole, facets_of(event))
    return whole


def made_by(producer: str) -> list[dict[str, Any]]:
    _, lines = lived(3_000)
    return [event for raw in lines if (event := json.loads(raw))["producer"].endswith(producer)]


def test_spark_events_are_in_the_shape_of_recorded_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SPARK_RECORDS))
    replaying = import_module("replaying")
    real: list[dict[str, Any]] = []
    for program in ("insert_overwrite", "failing_task", "left_join", "save_as_table"):
        state = replaying.state("4.1")
        real += replaying.replay(replaying.records("4.1", program), state)
    assert list(within(union(made_by("/spark")), union(json.loads(json.dumps(real))))) == []


def test_connect_events_are_in_the_shape_that_is_told() -> None:
    task = Task(0, "RUNNING", "w:8083", "")
    seen = Connector(name="c", type="sink", config={"connector.class": "X"}, state="RUNNING", worker="w:8083", tasks=(task,), version="1")  # fmt: skip
    teller = Teller("connect", "main", "4.1", "0.1")
    real = [
        teller.tell(Moment(kind=kind, run="r", connector="c", seen=seen, reason="x", error="boom"), None, 0.0)
        for kind in ("START", "FAIL")
    ]
    told, expected = union(made_by("/kafka-connect")), union(json.loads(json.dumps(real)))
    for part in ("event", "run", "job"):
        assert list(within(told[part], expected[part])) == [], part


def test_dlt_events_are_in_the_shape_that_is_told() -> None:
    start = {"kind": "start", "tx": "t", "at": "2026-01-01T00:00:00Z", "pipeline": "p", "step": "run", "dlt": "1.31"}  # fmt: skip
    state = DltState()
    real = [*dlt_events(start, state), *dlt_events({**start, "kind": "end"}, state)]
    told, expected = union(made_by("/dlt")), union(json.loads(json.dumps(real)))
    assert list(within(told["event"], expected["event"])) == []
    assert list(within(told["job"], expected["job"])) == []
    assert set(told["run"]) - {"errorMessage"} <= set(expected["run"])


# --- the proof


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Store]:
    with closing(open_store(f"sqlite:///{tmp_path}/x.db", synchronous="off")) as store:
        yield store


def test_a_store_that_holds_all_agrees_and_one_event_less_is_found(kept: Store) -> None:
    told, lines = lived(2_500)
    last = next(raw for raw in lines if lines.count(raw) == 1 and b'"SQL_JOB"' in raw and b"COMPLETE" in raw)
    list(ingest_all(kept, [raw for raw in lines if raw != last]))
    wrong, _ = proving.against(kept, told)
    assert any("distinct events" in each for each in wrong)
    assert any("last state" in each for each in wrong)
    list(ingest_all(kept, [last]))
    wrong, found = proving.against(kept, told)
    assert wrong == []
    assert found["log"] == len(set(lines))


@pytest.mark.parametrize("seed", [1, 2])
def test_incidents_are_those_that_the_generator_made(kept: Store, seed: int) -> None:
    told, lines = lived(4_000, seed)
    list(ingest_all(kept, lines))

    def pages(offset: int) -> dict[str, Any]:
        return list_incidents(kept, status="all", days=3650, limit=1000, offset=offset)

    wrong, found = proving.incidents(pages, told)
    assert wrong == []
    assert sum(found.values()) == len(told.incidents()) > 5
    told.outcome(("run", "job:dlt:nowhere", "run", ""), 1, True)
    wrong, _ = proving.incidents(pages, told)
    assert "1 missing" in wrong[0]


@pytest.mark.parametrize("what", ["edge", "run", "dataset", "assertion", "column"])
def test_what_the_ledger_does_not_say_is_found(kept: Store, what: str) -> None:
    told, lines = lived(1_200)
    list(ingest_all(kept, lines))
    if what == "edge":
        told.edges.pop()
    elif what == "run":
        told.runs.add(b"another")
    elif what == "dataset":
        told.datasets.add("s3://lake\nnowhere")
    elif what == "assertion":
        told.assertions.total ^= 1
    else:
        told.columns.pop()
    wrong, _ = proving.against(kept, told)
    assert len(wrong) == (2 if what == "dataset" else 1), wrong


def test_a_row_that_differs_changes_the_sum_of_its_table() -> None:
    rows = [(("a",), {"x": 1}), (("b",), {"x": (2, b"y")})]
    assert proving.summed(rows) == proving.summed(reversed(rows))
    assert proving.summed(rows) != proving.summed([rows[0], (("b",), {"x": (2, b"z")})])
    assert proving.summed(rows) != proving.summed([rows[0], rows[0]])


# --- the whole way


def test_a_month_loses_nothing_and_all_agree(
    tmp_path: Path, repeats: Callable[[int], int], need: Callable[[str, str], None]
) -> None:
    """Hosts, spools, a server and a drainer that are killed, the pipeline: `bench/month.py` proves it and exits with 0."""
    if shutil.which("java") is None:
        need("Java", "apt install openjdk-17-jre-headless")
    file = tmp_path / "month.json"
    command = [sys.executable, str(ROOT / "bench" / "month.py"), "--events", str(max(1_500, repeats(30_000)))]
    done = subprocess.run(
        [*command, "--folder", str(tmp_path), "--json", str(file)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    told = json.loads(file.read_text())
    assert "Killed on the way: the drainer and the server" in told["words"][0]
    assert len(told["tables"]["growth"]["rows"]) == 10
    assert [each["met"] for each in told["aims"]] == [True]
    assert list(tmp_path.glob("headwater-month-*")) == [], "it cleans up after itself"
