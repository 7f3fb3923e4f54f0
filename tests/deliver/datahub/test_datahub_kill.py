"""Drainers that are killed at any moment: every run group is told whole in the end, and nothing is lost or refused."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from test_coalescing import APP, RUN, STORY

from headwater.deliver.datahub import Converter
from headwater.transport.spool import SpoolTransport, dead
from headwater.transport.spool.drainer import Drainer

PROGRAM = "from headwater.transport.spool.detached import main; main()"
APPS = 12


def story(number: int) -> list[dict[str, Any]]:
    text = (
        json.dumps(STORY)
        .replace(APP[:-4], f"{APP[:-8]}{number:04x}")
        .replace(RUN[:-4], f"{RUN[:-8]}{number:04x}")
    )
    return list(json.loads(text.replace('"app', f'"app{number}')))


def held(proposals: list[Any]) -> dict[tuple[str, str], Any]:
    """What DataHub holds after them: the last of each aspect that has no time of its own."""
    return {
        (each["entityUrn"], each["aspectName"]): each["aspect"]["json"]
        for each in proposals
        if "timestampMillis" not in each["aspect"]["json"]
    }


def test_killed_drainers_lose_nothing(tmp_path: Path, repeats: Callable[[int], int]) -> None:
    dice = random.Random(11)
    lines = [json.dumps(each).encode() for number in range(APPS) for each in story(number)]
    dice.shuffle(lines)
    out = tmp_path / "mcps.json"
    to = {"url": f"datahub+file://{out}", "periodic": True}
    spool = SpoolTransport(f"spool://{tmp_path}/spool", to=to, drain="off")
    kills = max(3, repeats(40))
    for number in range(kills):
        spool.send(lines[number::kills])
        running = subprocess.Popen([sys.executable, "-c", PROGRAM, str(spool.place.folder), "0"])
        time.sleep(dice.uniform(0.05, 0.8))
        running.kill()
        running.wait()
    state = Drainer(spool.place).run()
    spool.close()
    assert state.doing == "ended"
    assert list(dead.letters(spool.place)) == []
    expected = held(list(Converter(by="application").convert_all(lines, lambda refused: None)))
    found = held(json.loads(out.read_text()))
    # before an application's first event came, an early telling took another of its runs for the first: that stays beside it
    assert {key: found.get(key) for key in expected} == expected
