"""The transports to DataHub: alone, and behind the spool, which keeps what is not told yet and what was refused."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from gms import Answer, Gms
from making import JAVA, dataset, raw
from test_coalescing import APP, OTHER, RUN, STORY, app, sql

from headwater import config
from headwater.deliver.datahub import groups
from headwater.deliver.datahub import transport as module
from headwater.deliver.datahub.transport import DataHubTransport
from headwater.errors import ConfigError, TransportError
from headwater.transport import HoldsBack, Transport, open_transport
from headwater.transport._host import open_hosted
from headwater.transport.spool import SpoolTransport, dead
from headwater.transport.spool.drainer import Drainer


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """`clock(60)`: a minute has passed."""
    now = [1_000_000.0]

    class Time:
        perf_counter = staticmethod(lambda: 0.0)
        time = staticmethod(lambda: now[0])

    monkeypatch.setattr(module, "time", Time)

    def later(seconds: float) -> None:
        now[0] += seconds

    return later


def url(gms: Gms) -> str:
    return gms.url.replace("http:", "datahub+rest:")


def bytes_of(*events: dict[str, Any]) -> list[bytes]:
    return [json.dumps(each).encode() for each in events]


def told(gms: Gms, name: str = "dataJobInputOutput") -> list[Any]:
    return [each["aspect"] for each in gms.taken if each["aspectName"] == name]


@pytest.fixture
def opened() -> Iterator[Callable[..., Any]]:
    made: list[Transport] = []

    def open_one(target: str, **given: Any) -> Any:
        made.append(open_transport(target, **given))
        return made[-1]

    yield open_one
    for each in made:
        each.close()


def test_an_application_is_told_when_it_ends(gms: Gms, opened: Any) -> None:
    transport = opened(url(gms))
    assert isinstance(transport, Transport)
    assert isinstance(transport, HoldsBack)
    for each in STORY[:-1]:
        transport.send(bytes_of(each))
    assert gms.taken == []
    transport.send(bytes_of(STORY[-1]))
    (lineage,) = told(gms)
    assert len(lineage["outputDatasetEdges"]) == 2
    transport.send(bytes_of(sql("COMPLETE", RUN, 6, outputs=[dataset("hive", "late")])))
    assert len(told(gms)[-1]["outputDatasetEdges"]) == 3  # with what came before


def test_a_group_that_rests_is_told_as_it_is(gms: Gms, opened: Any, clock: Any) -> None:
    transport = opened(url(gms), idle=60)
    transport.send(bytes_of(sql("COMPLETE", RUN, 1, outputs=[dataset("hive", "t")])))
    clock(59)
    assert transport.tick() == 0
    clock(2)
    assert transport.tick() == 1
    assert transport.tick() == 0
    assert len(told(gms)) == 1


def test_streams_are_told_at_each_heartbeat(gms: Gms, opened: Any, clock: Any) -> None:
    stream = {"jobType": {"jobType": "SQL_JOB", "integration": "SPARK", "processingType": "STREAMING"}}

    def beat(at: int) -> list[bytes]:
        return bytes_of(sql("RUNNING", RUN, at, outputs=[dataset("hive", f"t{at}")], job_facets=stream))

    transport = opened(url(gms), heartbeat=300)
    transport.send(beat(1))
    clock(301)
    transport.send(beat(2))
    assert [len(each["outputDatasetEdges"]) for each in told(gms)] == [2]
    clock(10)
    transport.send(beat(3))
    assert len(told(gms)) == 1
    transport.tick(final=True)
    assert len(told(gms)) == 2


def test_compat_does_not_tell_a_streaming_job_at_its_end(gms: Gms, opened: Any) -> None:
    transport = opened(url(gms), streaming_job=True, options=JAVA)
    transport.send(bytes_of(*STORY))
    transport.tick(final=True)
    assert gms.taken == []


def test_periodic_tells_all_there_is_each_time(gms: Gms, opened: Any) -> None:
    transport = opened(url(gms), periodic=True)
    for each in STORY:
        transport.send(bytes_of(each))
    assert [len(each["outputDatasetEdges"]) for each in told(gms)] == [0, 1, 1, 2, 2]


def test_without_coalescing_each_event_is_told_at_once(gms: Gms, opened: Any) -> None:
    transport = opened(url(gms), coalesce="none")
    transport.send(bytes_of(sql("START", RUN, 1, inputs=[dataset("hive", "t")])))
    assert len(told(gms)) == 1
    assert {each["entityUrn"] for each in gms.taken if each["entityType"] == "dataJob"} == {
        "urn:li:dataJob:(urn:li:dataFlow:(spark,app,ns),app.query)"
    }


def test_what_is_left_is_told_at_the_end(gms: Gms, opened: Any) -> None:
    transport = opened(url(gms))
    transport.send(bytes_of(sql("COMPLETE", RUN, 1, outputs=[dataset("hive", "t")])))
    transport.close()
    transport.close()
    assert len(told(gms)) == 1
    with pytest.raises(TransportError, match="closed"):
        transport.send(bytes_of(STORY[0]))


def test_events_that_are_none_are_refused_and_the_others_go_on(gms: Gms, opened: Any) -> None:
    transport = opened(url(gms))
    with pytest.raises(TransportError) as caught:
        transport.send([b"{broken", *bytes_of(*STORY), b'{"a": 1}'])
    assert sorted(caught.value.refused) == [0, 7]
    assert caught.value.pending == frozenset()
    assert len(told(gms)) == 1


def test_files_by_url(tmp_path: Path, opened: Any) -> None:
    one = opened(f"datahub+file://{tmp_path}/mcps.json")
    one.send(bytes_of(*STORY))
    assert len(json.loads((tmp_path / "mcps.json").read_text())) > 5
    many = opened(f"datahub+file://{tmp_path}/runs/", coalesce="run")
    many.send(bytes_of(*STORY))
    assert len(list((tmp_path / "runs").iterdir())) == 3


WRONG = [
    ("datahub+rest://", {}, "names no host"),
    ("datahub+rest://gms:port", {}, "names no port"),
    ("datahub+rest://me:secret@gms", {}, "holds no user"),
    ("datahub+file://host/x", {}, "names no file"),
    ("datahub+kafka:///x", {}, "names no brokers"),
    ("datahub+file:///tmp/x", {"token": "t"}, "token: is no option of"),
    ("datahub+rest://gms", {"options": "{"}, "no table as JSON"),
    ("datahub+rest://gms", {"options": {"envv": "x"}}, "unknown option 'envv': did you mean 'env'"),
    ("datahub+rest://gms", {"coalesce": "all"}, "unknown value of coalesce"),
    ("datahub+rest://gms", {"timeoutt": 1}, "it takes: url"),
    ("datahub+rest://gms", {"idle": "soon"}, "idle: 'soon' is no number"),
]


@pytest.mark.parametrize(("target", "given", "why"), WRONG)
def test_wrong_settings_are_told_at_once(target: str, given: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        open_transport(target, **given)
    assert "secret" not in str(caught.value)


def test_a_token_is_not_shown(gms: Gms, opened: Any) -> None:
    assert "secret" not in repr(opened(url(gms), token="secret"))


def test_every_proposal_can_be_logged(gms: Gms, opened: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "headwater.datahub")
    opened(url(gms)).send(bytes_of(*STORY))
    assert "emitting proposal: {" in caplog.text
    assert "reached DataHub in" in caplog.text
    caplog.clear()
    opened(url(gms), log_mcps=False).send(bytes_of(*STORY))
    assert "emitting proposal" not in caplog.text
    assert "emitting aspect: dataJobInputOutput for urn:" in caplog.text


def test_the_longest_string_is_as_the_environment_says(
    gms: Gms, opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INGESTION_MAX_SERIALIZED_STRING_LENGTH", "5000")
    plan = {"spark.logicalPlan": {"plan": ["x" * 20_000]}}
    opened(url(gms), coalesce="none").send(bytes_of(raw(run_facets=plan)))
    (info,) = told(gms, "dataFlowInfo")
    assert "[cut: " in info["customProperties"]["spark.logicalPlan"]
    monkeypatch.setenv("INGESTION_MAX_SERIALIZED_STRING_LENGTH", "much")
    with pytest.raises(ConfigError, match="INGESTION_MAX"):
        open_transport(url(gms))


# --- behind the spool


def spool(tmp_path: Path, gms: Gms, **to: Any) -> SpoolTransport:
    return SpoolTransport(f"spool://{tmp_path}/spool", to={"url": url(gms), **to}, drain="off")


def drain(transport: SpoolTransport, **given: Any) -> Any:
    return Drainer(transport.place, **{"patience": 0.0, **given}).run()


def test_the_drainer_puts_together_what_several_batches_tell(tmp_path: Path, gms: Gms) -> None:
    transport = spool(tmp_path, gms)
    for each in STORY:
        transport.send(bytes_of(each))
    state = drain(transport)
    assert (state.doing, state.delivered, state.dead) == ("ended", 6, 0)
    assert len(told(gms)) == 1
    transport.close()


def test_a_group_that_is_open_when_the_drainer_ends_goes_on_with_the_next(tmp_path: Path, gms: Gms) -> None:
    transport = spool(tmp_path, gms)
    for each in STORY:
        transport.send(bytes_of(each))
        drain(transport)
    edges = told(gms)
    assert len(edges[-1]["outputDatasetEdges"]) == 2
    assert len(edges[-1]["inputDatasetEdges"]) == 1
    transport.close()


def test_files_of_groups_follow_what_is_open_not_what_was_told(
    tmp_path: Path, opened: Any, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups, "IN_FILES", 5)
    monkeypatch.setattr(groups, "IN_MEMORY", 3)
    transport = opened(f"datahub+file://{tmp_path}/out.json", coalesce="run", keep=str(tmp_path / "keep"))
    for number in range(20):
        run = f"0197f3c6-0000-7000-8000-{number:012}"
        transport.send(
            bytes_of(raw("START", run=run), raw("COMPLETE", at=1, run=run, outputs=[dataset("hive", "t")]))
        )
    transport.send(bytes_of(raw("START", at=2)))
    clock(120)
    transport.tick()
    endings = [path.suffix for path in (tmp_path / "keep").iterdir()]
    assert (endings.count(".told"), endings.count(".open")) == (5, 1)
    again = opened(f"datahub+file://{tmp_path}/out.json", coalesce="run", keep=str(tmp_path / "keep"))
    assert again.tick(final=True) == 1


def test_events_that_were_folded_survive_a_datahub_that_is_down(tmp_path: Path, gms: Gms) -> None:
    transport = spool(tmp_path, gms)
    transport.send(bytes_of(*STORY))
    gms.answers.extend([Answer(503)] * 5)
    state = drain(transport)
    assert state.doing == "stopped"
    assert "503" in (state.fault or "")
    gms.answers.clear()
    assert drain(transport).doing == "ended"
    assert len(told(gms)) == 1
    assert list(dead.letters(transport.place)) == []
    transport.close()


def test_refused_proposals_are_dead_letters_with_their_reason_and_are_sent_again(
    tmp_path: Path, gms: Gms
) -> None:
    gms.refuses = lambda each: "unknown aspect" if each["aspectName"] == "dataJobInputOutput" else None
    transport = spool(tmp_path, gms)
    transport.send(bytes_of(*STORY))
    state = drain(transport)
    assert (state.doing, state.dead) == ("ended", 1)
    (letter,) = dead.letters(transport.place)
    assert letter.reason == "unknown aspect"
    assert json.loads(letter.event)["aspectName"] == "dataJobInputOutput"
    assert len(gms.taken) > 5  # the others went on
    gms.refuses = lambda each: None
    assert dead.replay(transport.place) == 1
    drain(transport)
    assert len(told(gms)) == 1
    assert list(dead.letters(transport.place)) == []
    transport.close()


def test_the_same_refusal_is_kept_once_however_often_the_group_is_told(tmp_path: Path, gms: Gms) -> None:
    gms.refuses = lambda each: (
        "no" if each["aspectName"] == "status" and each["entityType"] == "dataFlow" else None
    )
    transport = spool(tmp_path, gms, periodic=True)
    for each in STORY:
        transport.send(bytes_of(each))
        drain(transport)
    assert len(list(dead.letters(transport.place))) == 1
    transport.close()


def test_broken_events_are_dead_letters_too(tmp_path: Path, gms: Gms) -> None:
    transport = spool(tmp_path, gms)
    transport.send([b'{"eventTime": "nonsense"}', *bytes_of(*STORY)])
    assert drain(transport).dead == 1
    assert len(told(gms)) == 1
    transport.close()


def test_a_host_has_the_spool_before_it(tmp_path: Path, gms: Gms) -> None:
    settings = config.load({"spool": str(tmp_path / "s"), "transport": url(gms)}, environ={}, cwd=tmp_path)
    hosted = open_hosted(None, settings)
    assert isinstance(hosted, SpoolTransport)
    direct = open_hosted(f"{url(gms)}?direct=1", settings)
    assert isinstance(direct, DataHubTransport)
    direct.close()


def test_two_applications_at_once_are_two_groups(gms: Gms, opened: Any) -> None:
    other = json.loads(json.dumps(STORY).replace(APP, OTHER.replace("bb", "cc")).replace('"app', '"two'))
    mixed = [each for pair in zip(STORY, other, strict=True) for each in pair]
    opened(url(gms)).send(bytes_of(*mixed))
    assert len(told(gms)) == 2
    assert len(told(gms)[0]["outputDatasetEdges"]) == len(told(gms)[1]["outputDatasetEdges"]) == 2


def test_a_will_closes_the_group_of_an_application_that_died(gms: Gms, opened: Any) -> None:
    transport = opened(url(gms))
    transport.send(bytes_of(*STORY[:-1], app("ABORT", 9)))
    ends = [each for each in told(gms, "dataProcessInstanceRunEvent") if "result" in each]
    assert [each["result"]["type"] for each in ends] == ["FAILURE"]
