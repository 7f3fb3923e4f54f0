"""An application of very many queries: memory stays flat, and every execution has an end."""

from __future__ import annotations

import gc
import json
import re
import sys
from collections.abc import Callable

import pytest
from replaying import VERSIONS, records, state

from headwater.capture.spark import interpret, relation, runs, trimming

TERMINAL = ("COMPLETE", "FAIL", "ABORT")


def test_ten_thousand_queries_over_ever_new_directories_in_flat_memory(
    monkeypatch: pytest.MonkeyPatch, repeats: Callable[[int], int]
) -> None:
    """Each reads and writes directories that nobody has seen before, under attributes nobody has seen before."""
    monkeypatch.setattr(runs, "_REMEMBERED", 500)  # so that what may be kept is soon kept
    monkeypatch.setattr(relation, "_REMEMBERED", 500)
    monkeypatch.setattr(trimming, "_REMEMBERED", 500)
    text = json.dumps(records(VERSIONS[-1], "left_join")[-2:])
    queries = max(2_500, repeats(10_000))
    s, ended, sizes = state(), 0, []
    for number in range(queries):
        fresh = re.sub(r"\b\d{1,4}(?=, \")", lambda found, by=number: str(int(found[0]) + 1_000 * by), text)
        for record in json.loads(fresh.replace("/data/", f"/data/{number}/")):
            record["id"] = record["root"] = number
            ended += sum(event["eventType"] in TERMINAL for event in interpret(record, s))
        if number in (queries // 4, queries - 1):
            gc.collect()
            sizes.append(sys.getallocatedblocks())  # to trace each would take three times as long as the work
    assert ended == queries
    assert not s.executions
    # to keep one thing of each query would be three times as much
    assert sizes[1] < sizes[0] + queries // 4, sizes
