"""Proposals on their way to GMS, which answers as it pleases."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from gms import Answer, Gms
from making import convert, dataset, event

from headwater.deliver.datahub.sinks import rest
from headwater.deliver.datahub.sinks.rest import RestSink
from headwater.deliver.datahub.wire import text_of
from headwater.errors import TooLarge, TransportError


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest, "sleep", lambda seconds: WAITED.append(seconds))
    WAITED.clear()


WAITED: list[float] = []


class Sink(RestSink):
    """One that is closed when the test is over."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        OPEN.append(self)


OPEN: list[Sink] = []


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()


def proposals(count: int = 3) -> list[dict[str, Any]]:
    return [
        {
            "entityType": "dataset",
            "entityUrn": f"urn:li:dataset:(urn:li:dataPlatform:hive,t{at},PROD)",
            "changeType": "UPSERT",
            "aspectName": "status",
            "aspect": {"json": {"removed": False}},
        }
        for at in range(count)
    ]


def names(gms: Gms) -> list[str]:
    return [each["entityUrn"].split(",")[1] for each in gms.taken]


def test_proposals_arrive_in_order_as_gms_reads_them(gms: Gms) -> None:
    made = convert(event(inputs=[dataset("s3://b", "ä")], outputs=[dataset("hive", "t")]), patch=True)
    Sink(gms.url, token="secret-token").emit(made, "g")
    assert [(each["entityUrn"], each["aspectName"], each["aspect"]) for each in gms.taken] == [
        (each["entityUrn"], each["aspectName"], each["aspect"]["json"]) for each in made
    ]
    assert gms.requests[0]["path"] == "/aspects?action=ingestProposalBatch"
    assert gms.requests[0]["async"] == "false"
    assert gms.headers[0]["X-RestLi-Protocol-Version"] == "2.0.0"
    assert gms.headers[0]["Authorization"] == "Bearer secret-token"
    kinds = {each["changeType"]: each["contentType"] for each in gms.taken}
    assert kinds == {"UPSERT": "application/json", "PATCH": "application/json-patch+json"}


def test_batches_have_a_size_and_a_weight(gms: Gms) -> None:
    Sink(gms.url, batch=4).emit(proposals(10), "g")
    assert [len(each["proposals"]) for each in gms.requests] == [4, 4, 2]
    Sink(gms.url, batch_bytes=500).emit(proposals(4), "g")
    assert all(len(json.dumps(each["proposals"])) < 700 for each in gms.requests[3:])
    assert len(names(gms)) == 14


@pytest.mark.parametrize("per_item", [True, False], ids=["200 with errors", "422 for all"])
def test_one_that_is_refused_costs_the_others_nothing(gms: Gms, per_item: bool) -> None:
    gms.per_item = per_item
    gms.refuses = lambda each: "no such aspect" if ",t2," in each["entityUrn"] else None
    with pytest.raises(TransportError, match="refused 1 proposal") as caught:
        Sink(gms.url).emit(proposals(5), "g")
    assert list(caught.value.refused) == [2]
    assert "no such aspect" in caught.value.refused[2]
    assert caught.value.pending == frozenset()
    assert not caught.value.retryable
    assert sorted(names(gms)) == ["t0", "t1", "t3", "t4"]


PASSING = [
    Answer(429, headers={"Retry-After": "2"}),
    Answer(500, {"message": "boom"}),
    Answer(502),
    Answer(503),
    Answer(504),
    Answer(507),
    Answer(522),
    Answer(200, {"value": "ok"}, truncated=True),
]


@pytest.mark.parametrize("answer", PASSING, ids=lambda answer: f"{answer.status}-{answer.truncated}")
def test_what_passes_is_tried_again(gms: Gms, answer: Answer) -> None:
    gms.answers.extend([answer, answer])
    Sink(gms.url).emit(proposals(2), "g")
    assert names(gms) == ["t0", "t1"]
    assert len(WAITED) == 2
    if answer.status == 429:
        assert WAITED == [2.0, 2.0]


def test_what_does_not_pass_is_told_and_may_be_sent_again(gms: Gms) -> None:
    gms.answers.extend([Answer(500, {"message": "down"})] * 10)
    with pytest.raises(TransportError, match="down") as caught:
        Sink(gms.url, retries=1).emit(proposals(2), "g")
    assert caught.value.retryable
    assert caught.value.pending == {0, 1}
    assert len(gms.requests) == 2


def test_a_long_wait_that_gms_asks_for_is_told_not_waited_for(gms: Gms) -> None:
    gms.answers.append(Answer(429, headers={"Retry-After": "3600"}))
    with pytest.raises(TransportError) as caught:
        Sink(gms.url).emit(proposals(1), "g")
    assert caught.value.retry_after == 3600.0
    assert WAITED == []


def test_a_slow_answer_is_waited_for_so_long_and_no_longer(gms: Gms) -> None:
    gms.answers.append(Answer(200, wait=1.0))
    with pytest.raises(TransportError, match="no answer") as caught:
        Sink(gms.url, timeout=0.1, retries=0).emit(proposals(1), "g")
    assert caught.value.cause == "unreachable"
    assert caught.value.pending == {0}


def test_a_wrong_token_is_told_without_it(gms: Gms) -> None:
    gms.answers.append(Answer(401, {"message": "wrong token secret-token"}))
    with pytest.raises(TransportError, match="set the option token") as caught:
        Sink(gms.url, token="secret-token").emit(proposals(1), "g")
    assert "secret-token" not in str(caught.value)
    assert not caught.value.retryable
    assert caught.value.pending == {0}


def test_an_older_gms_gets_them_one_by_one(gms: Gms) -> None:
    gms.batches = False
    gms.refuses = lambda each: "no" if ",t1," in each["entityUrn"] else None
    gms.per_item = False
    sink = Sink(gms.url)
    with pytest.raises(TransportError) as caught:
        sink.emit(proposals(3), "g")
    assert list(caught.value.refused) == [1]
    assert names(gms) == ["t0", "t2"]
    assert [each["path"].rpartition("=")[2] for each in gms.requests[1:]] == ["ingestProposal"] * 3


def test_nobody_there() -> None:
    with pytest.raises(TransportError, match=r"no answer from http://127\.0\.0\.1:9") as caught:
        Sink("http://127.0.0.1:9", retries=0).emit(proposals(1), "g")
    assert caught.value.retryable


def test_an_oversized_text_is_cut_with_a_mark(gms: Gms) -> None:
    big = proposals(1)[0]
    big["aspect"] = {"json": {"customProperties": {"plan": "x" * 50_000, "small": "y"}}}
    Sink(gms.url, max_string=10_000).emit([big], "g")
    told = gms.taken[0]["aspect"]["customProperties"]
    assert told["small"] == "y"
    assert told["plan"].endswith("… [cut: 50,000 characters]")
    assert len(told["plan"]) < 10_000


def test_what_is_too_large_even_so_is_kept_with_its_reason(gms: Gms) -> None:
    huge = proposals(1)[0]
    huge["aspect"] = {"json": {"fields": [{"fieldPath": f"f{n}"} for n in range(5000)]}}
    with pytest.raises(TooLarge, match="more than DataHub reads"):
        text_of(huge, 10_000)
    with pytest.raises(TransportError) as caught:
        Sink(gms.url, max_string=10_000).emit([proposals(1)[0], huge], "g")
    assert list(caught.value.refused) == [1]
    assert names(gms) == ["t0"]


def test_it_gives_up_a_batch_that_fails_but_sends_the_next(gms: Gms) -> None:
    gms.answers.append(Answer(500))
    with pytest.raises(TransportError) as caught:
        Sink(gms.url, retries=0, batch=2).emit(proposals(4), "g")
    assert caught.value.pending == {0, 1}
    assert names(gms) == ["t2", "t3"]
