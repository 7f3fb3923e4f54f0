"""The server's delivery: what a store takes in reaches DataHub, whoever works, and whatever happens to him."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from gms import Answer, Gms
from making import dataset, raw
from test_coalescing import OTHER, RUN, STORY, sql

from headwater.deliver.datahub import following
from headwater.deliver.datahub.following import Follower, lag
from headwater.deliver.datahub.settings import delivery
from headwater.errors import ConfigError, TransportError
from headwater.ingest import Retention, ingest_all
from headwater.store import Store, _outbox, open_store
from headwater.work import Worker, jobs

MINUTE = 60 * 1_000_000


class At:
    """A clock that stands still until it is told otherwise."""

    now = 1_000 * MINUTE

    def __call__(self) -> int:
        return self.now


def take(store: Store, *events: dict[str, Any]) -> None:
    for outcome in ingest_all(store, [json.dumps(each).encode() for each in events]):
        assert not outcome.rejected


def follow(gms: Gms, **given: Any) -> Follower:
    return Follower(delivery({"to": gms.url.replace("http", "datahub+rest"), "retries": 0, **given}))


def rounds(follower: Follower, store: Store, clock: At) -> int:
    return follower.round(store, clock, lambda: True)


def told(gms: Gms) -> list[Any]:
    return [each["aspect"] for each in gms.taken if each["aspectName"] == "dataJobInputOutput"]


def test_an_application_is_told_when_it_ended_and_once(store: Store, gms: Gms) -> None:
    follower, clock = follow(gms), At()
    take(store, *STORY[:3])
    assert rounds(follower, store, clock) == 0
    assert lag(store)["open"] == 1
    take(store, *STORY[3:])
    assert rounds(follower, store, clock) > 5
    assert rounds(follower, store, clock) == 0
    (lineage,) = told(gms)
    assert len(lineage["outputDatasetEdges"]) == 2
    assert lag(store) == {"entries": 0, "seconds": 0.0, "open": 0, "refused": 0}
    follower.close()


def test_another_worker_goes_on_where_the_first_stopped(store: Store, gms: Gms) -> None:
    clock = At()
    for each in STORY:
        take(store, each)
        follower = follow(gms)
        rounds(follower, store, clock)
        follower.close()
    (lineage,) = told(gms)
    assert len(lineage["inputDatasetEdges"]) == 1
    assert len(lineage["outputDatasetEdges"]) == 2


def test_a_worker_that_dies_between_telling_and_noting_it_tells_the_same_again(
    store: Store, gms: Gms, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, first = At(), follow(gms)
    take(store, *STORY)
    first._read(store, clock())

    def die(*args: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(following._delivery, "keep", die)
    with pytest.raises(KeyboardInterrupt):
        first._tell(store, clock(), lambda: True)
    monkeypatch.undo()
    before = list(gms.taken)
    second = follow(gms)
    rounds(second, store, clock)
    assert gms.taken == before + before  # the same once more: an upsert of what is there
    first.close()
    second.close()


def test_what_comes_late_is_told_with_what_came_before(store: Store, gms: Gms) -> None:
    follower, clock = follow(gms), At()
    take(store, *STORY)
    rounds(follower, store, clock)
    take(store, sql("COMPLETE", RUN, 9, outputs=[dataset("hive", "late")]))
    rounds(follower, store, clock)
    assert len(told(gms)[-1]["outputDatasetEdges"]) == 3
    follower.close()


def test_a_group_that_is_told_again_has_its_file_written_anew(store: Store, tmp_path: Path) -> None:
    clock = At()
    take(store, *STORY)
    for more in ([], [sql("COMPLETE", RUN, 9, outputs=[dataset("hive", "late")])]):
        take(store, *more)
        follower = Follower(delivery({"to": f"datahub+file://{tmp_path}/mcps/"}))
        rounds(follower, store, clock)
        follower.close()
    (file,) = (tmp_path / "mcps").iterdir()
    made = json.loads(file.read_bytes())
    (lineage,) = (each["aspect"]["json"] for each in made if each["aspectName"] == "dataJobInputOutput")
    assert len(lineage["outputDatasetEdges"]) == 3


def test_a_group_that_rests_and_streams_are_told_in_time(store: Store, gms: Gms) -> None:
    follower, clock = follow(gms, idle=600, heartbeat=120), At()
    stream = {"jobType": {"jobType": "SQL_JOB", "integration": "SPARK", "processingType": "STREAMING"}}
    take(store, sql("RUNNING", RUN, 1, inputs=[dataset("hive", "a")]))
    rounds(follower, store, clock)
    clock.now += 5 * MINUTE
    assert rounds(follower, store, clock) == 0
    clock.now += 6 * MINUTE
    assert rounds(follower, store, clock) > 0
    take(store, sql("RUNNING", OTHER, 2, job="app.stream", inputs=[dataset("hive", "b")], job_facets=stream))
    rounds(follower, store, clock)
    clock.now += 3 * MINUTE
    assert rounds(follower, store, clock) > 0
    follower.close()


def test_periodic_tells_a_stream_as_it_is_now(store: Store, gms: Gms) -> None:
    """What never ends, a connector say, is not to be waited for; but in compat mode streams are told at heartbeats alone."""
    stream = {
        "jobType": {"jobType": "CONNECTOR", "integration": "KAFKA_CONNECT", "processingType": "STREAMING"}
    }
    running = [
        sql("RUNNING", RUN, second, inputs=[dataset("hive", f"t{second}")], job_facets=stream)
        for second in (1, 2)
    ]
    follower, clock = follow(gms, periodic=True), At()
    for count, each in enumerate(running, 1):
        take(store, each)
        assert rounds(follower, store, clock) > 0
        assert len(told(gms)[-1]["inputDatasetEdges"]) == count
    assert rounds(follower, store, clock) == 0
    follower.close()
    java = follow(gms, periodic=True, options={"compat": "datahub-java"})
    take(store, sql("RUNNING", OTHER, 3, job="app.b", inputs=[dataset("hive", "t3")], job_facets=stream))
    assert rounds(java, store, clock) == 0
    clock.now += 6 * MINUTE
    assert rounds(java, store, clock) > 0
    java.close()


def test_a_datahub_that_is_down_holds_up_nothing_but_itself(store: Store, gms: Gms) -> None:
    follower, clock = follow(gms), At()
    gms.answers.extend([Answer(503)] * 3)
    take(store, *STORY)
    with pytest.raises(TransportError, match="503"):
        rounds(follower, store, clock)
    assert lag(store)["entries"] == 0  # what was read is kept
    assert rounds(follower, store, clock) == 0  # left alone for a while
    gms.answers.clear()
    clock.now += MINUTE
    assert rounds(follower, store, clock) > 5
    assert len(told(gms)) == 1
    follower.close()


def test_a_group_at_which_datahub_fails_holds_up_no_other(store: Store, gms: Gms) -> None:
    take_all = gms.take

    def fail_at_one(proposals: list[dict[str, Any]]) -> Answer:
        bad = any("poison" in each["entityUrn"] for each in proposals)
        return Answer(500, {"message": "boom"}) if bad else take_all(proposals)

    gms.take = fail_at_one  # type: ignore[method-assign]
    follower, clock = follow(gms), At()
    take(store, raw(job="poison", run=OTHER, inputs=[dataset("hive", "t")]))
    with pytest.raises(TransportError, match="500"):
        rounds(follower, store, clock)
    take(store, *STORY)
    clock.now += MINUTE // 6
    assert rounds(follower, store, clock) > 5
    assert len(told(gms)) == 1
    gms.take = take_all  # type: ignore[method-assign]
    clock.now += MINUTE
    assert rounds(follower, store, clock) > 5
    assert lag(store)["open"] == 0


def test_what_is_refused_is_kept_with_its_reason_and_tried_again_when_asked(store: Store, gms: Gms) -> None:
    follower, clock = follow(gms), At()
    gms.refuses = lambda each: "not that" if each["aspectName"] == "dataJobInputOutput" else None
    take(store, *STORY)
    rounds(follower, store, clock)
    assert lag(store)["refused"] == 1
    with store.read() as reader:
        (kept,) = [each for each in _outbox.messages(reader.connection) if each.state == "dead"]
        assert _outbox.due(reader.connection, clock()) == []
    assert kept.fault == "not that"
    assert json.loads(kept.body)["aspectName"] == "dataJobInputOutput"
    gms.refuses = lambda each: None
    with store.writing() as connection:
        assert _outbox.retry(connection, following.NAME, clock()) == 1
    rounds(follower, store, clock)
    assert len(told(gms)) == 1
    assert lag(store)["refused"] == 0
    follower.close()


def test_events_that_java_fails_at_are_kept_with_their_reason(store: Store, gms: Gms) -> None:
    follower, clock = follow(gms, compat="datahub-java"), At()
    take(store, raw(producer="https://example.org"), *STORY)
    rounds(follower, store, clock)
    assert lag(store)["refused"] == 1
    assert len(told(gms)) == 1
    follower.close()


def test_an_event_that_is_tried_again_is_converted_as_the_settings_say(store: Store, gms: Gms) -> None:
    clock = At()
    take(store, raw(producer="https://example.org", inputs=[dataset("hive", "t")]))
    given: dict[str, Any] = {"env": "DEV", "coalesce": "none"}
    first = follow(gms, compat="datahub-java", **given)
    rounds(first, store, clock)
    with store.writing() as connection:
        assert _outbox.retry(connection, following.NAME, clock()) == 1
    rounds(first, store, clock)
    assert (gms.taken, lag(store)["refused"]) == ([], 1), "it is what it was"
    with store.writing() as connection:
        assert _outbox.retry(connection, following.NAME, clock()) == 1
    second = follow(gms, **given)
    rounds(second, store, clock)
    (lineage,) = told(gms)
    assert [each["destinationUrn"] for each in lineage["inputDatasetEdges"]] == [
        "urn:li:dataset:(urn:li:dataPlatform:hive,t,DEV)"
    ]
    assert lag(store)["refused"] == 0


def test_a_long_log_is_read_in_stretches(store: Store, gms: Gms, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "STRETCH", 4)
    follower, clock = follow(gms, coalesce="run"), At()
    take(
        store,
        *(raw("COMPLETE", run=f"0197f3c6-0000-7000-8000-{n:012}", at=n, job=f"j{n}.x") for n in range(11)),
    )
    assert lag(store)["entries"] == 11
    assert lag(store)["seconds"] > 0
    rounds(follower, store, clock)
    assert len({each["entityUrn"] for each in gms.taken if each["entityType"] == "dataJob"}) == 11
    follower.close()


def test_it_is_a_job_of_the_worker_under_the_lease(store: Store, gms: Gms) -> None:
    told_of = delivery({"to": gms.url.replace("http", "datahub+rest"), "every": 1})
    take(store, *STORY)
    worker = Worker(store, jobs(Retention(), told_of))
    other = Worker(store, jobs(Retention(), told_of))
    done = worker.once(every=True)
    assert done is not None
    assert done["datahub"] > 5
    assert other.once(every=True) is None
    worker.release()
    assert "datahub" not in jobs(Retention())
    assert "datahub" not in jobs(Retention(), delivery({}))


def test_wrong_settings_are_told_before_anything_is_served() -> None:
    with pytest.raises(ConfigError, match="names no host"):
        jobs(Retention(), delivery({"to": "datahub+rest://"}))
    with pytest.raises(ConfigError, match="many run groups"):
        jobs(Retention(), delivery({"to": "datahub+s3://lake", "filename": "mcps.json"}))
    with pytest.raises(ConfigError, match=r"unknown option of deliver\.datahub 'tokn'"):
        delivery({"tokn": "x"})
    with pytest.raises(ConfigError, match="every"):
        delivery({"every": "often"})


def test_the_server_takes_events_where_datahub_does_and_tells_its_lag(tmp_path: Any, gms: Gms) -> None:
    from litestar.testing import TestClient

    from headwater.serve import Serving
    from headwater.serve.app import create_app

    opened = open_store(f"sqlite:///{tmp_path}/s.db")
    told_of = delivery({"to": gms.url.replace("http", "datahub+rest"), "every": 0.2})
    with TestClient(create_app(opened, Serving(), datahub=told_of)) as client:
        for each in STORY:
            answer = client.post("/openapi/openlineage/api/v1/lineage", json=each)
            assert answer.status_code == 200
            assert answer.content == b""
        assert client.post("/openapi/openlineage/api/v1/lineage", json={"a": 1}).status_code >= 400
        metrics = ""
        for _ in range(100):
            metrics = client.get("/metrics").text
            if told(gms) and "headwater_datahub_lag_entries 0.0" in metrics:
                break
            import time

            time.sleep(0.1)
    opened.close()
    assert len(told(gms)[-1]["outputDatasetEdges"]) == 2
    assert "headwater_datahub_lag_entries 0.0" in metrics
    assert "headwater_datahub_open_groups" in metrics


def test_without_a_delivery_nothing_is_told_of_it(tmp_path: Any) -> None:
    from headwater.serve import metrics

    assert b"headwater_datahub" not in metrics.Tally().told()
