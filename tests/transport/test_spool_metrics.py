"""What Prometheus is told of a spool: the same as a count of every record, however often it looks."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lineage_server import Answer, Server
from prometheus_client.parser import text_string_to_metric_families
from spool_child import event

from headwater.transport.spool import SpoolTransport, dead
from headwater.transport.spool.backlog import Backlog
from headwater.transport.spool.census import Census
from headwater.transport.spool.drainer import Drainer
from headwater.transport.spool.metrics import SpoolCollector, write_metrics
from headwater.transport.spool.report import report

RUN = "00000000-0000-4000-8000-000000000001"


def samples(text: str) -> dict[str, dict[tuple[str, ...], float]]:
    """name -> labels but those of the destination -> value."""
    out: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for each in family.samples:
            labels = tuple(v for k, v in each.labels.items() if k not in ("spool", "destination"))
            out.setdefault(each.name, {})[labels] = each.value
    return out


def measured(root: Path) -> dict[str, dict[tuple[str, ...], float]]:
    write_metrics(root / "m.prom", SpoolCollector(root / "spool"))
    return samples((root / "m.prom").read_text())


@given(seed=st.integers(0, 2**32))
def test_looking_again_counts_as_reading_everything_does(seed: int) -> None:
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        make = lambda: SpoolTransport(  # noqa: E731
            f"spool://{folder}/spool",
            to=f"file://{folder}/out",
            drain="off",
            fsync="never",
            segment_bytes=3000,
        )
        writers = [make(), make()]
        place = writers[0].place
        census, view, number = Census(place), Backlog(place), 0
        for _ in range(30):
            if (what := dice.random()) < 0.5:
                dice.choice(writers).send([event(RUN, number, dice.choice((0, 900))) for _ in range(3)])
                number += 1
            elif what < 0.6:
                at = dice.randrange(2)
                writers[at].close()
                writers[at] = make()
            elif what < 0.8:
                for batch in view.batches(dice.randrange(1, 5), 10**6):
                    view.acknowledge(batch)
                    if dice.random() < 0.5:
                        break
            elif what < 0.9:
                dead.refuse(place, [dead.Letter("no", event(RUN, 0))])
            seen, told = census.look(), report(place)
            assert (seen.events, seen.size) == (told["waiting"]["events"], told["waiting"]["bytes"])
            assert (seen.dead, seen.lost) == (told["dead"]["events"], told["dead"]["lost"])


def test_a_torn_tail_is_no_event_until_it_is_whole(tmp_path: Path) -> None:
    transport = SpoolTransport(f"spool://{tmp_path}/spool", to="http://localhost:1", drain="off")
    transport.send([event(RUN, 0)])
    census = Census(transport.place)
    assert census.look().events == 1
    (segment,) = transport.place.folder.glob("*.open")
    whole = segment.read_bytes()
    transport.send([event(RUN, 1)])
    more = segment.read_bytes()
    for cut in (len(whole) + 1, len(whole) + 10, len(more) - 1):
        segment.write_bytes(more[:cut])
        assert census.look().events == 1
    segment.write_bytes(more)
    assert census.look().events == 2


def test_what_fails_is_told_by_its_cause_and_what_was_delivered_is_gone(
    tmp_path: Path, server: Server
) -> None:
    assert measured(tmp_path).get("headwater_spool_waiting_events") is None  # nothing was ever spooled
    transport = SpoolTransport(f"spool://{tmp_path}/spool", to=f"{server.url}?api_key=s3cret", drain="off")
    transport.send([event(RUN, n) for n in range(3)])
    seen = measured(tmp_path)
    assert seen["headwater_spool_waiting_events"][()] == 3
    assert seen["headwater_spool_waiting_bytes"][()] > 300
    assert seen["headwater_spool_drainer"][("never started",)] == 1
    server.always = Answer(503)
    Drainer(transport.place, patience=0).run()
    seen = measured(tmp_path)
    assert seen["headwater_spool_circuit_open"][()] == 1
    assert list(seen["headwater_spool_failing_seconds"]) == [("http_503",)]
    assert seen["headwater_spool_drainer"][("stopped",)] == 1
    server.always = Answer(422)
    Drainer(transport.place).run()
    seen = measured(tmp_path)
    assert (seen["headwater_spool_dead_events"][()], seen["headwater_spool_waiting_events"][()]) == (3, 0)
    assert "headwater_spool_failing_seconds" not in seen
    server.always = Answer(201)
    assert dead.replay(transport.place) == 3
    Drainer(transport.place).run()
    seen = measured(tmp_path)
    assert (seen["headwater_spool_dead_events"][()], seen["headwater_spool_delivered_events_total"][()]) == (
        0,
        3,
    )
    assert "s3cret" not in (tmp_path / "m.prom").read_text()


def test_nobody_listens_is_a_cause_too(tmp_path: Path) -> None:
    transport = SpoolTransport(f"spool://{tmp_path}/spool", to="http://localhost:1", drain="off")
    transport.send([event(RUN, 0)])
    Drainer(transport.place, patience=0).run()
    assert list(measured(tmp_path)["headwater_spool_failing_seconds"]) == [("unreachable",)]


def _drain(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "headwater", "spool", "drain", *arguments]


def test_drain_writes_them_for_a_textfile_collector(tmp_path: Path, server: Server) -> None:
    transport = SpoolTransport(f"spool://{tmp_path}/spool", to=server.url, drain="off")
    transport.send([event(RUN, n) for n in range(4)])
    transport.close()
    file, spool = tmp_path / "h.prom", str(tmp_path / "spool")
    subprocess.run(
        _drain("--dir", spool, "--metrics", str(file)), check=True, capture_output=True, timeout=60
    )
    assert samples(file.read_text())["headwater_spool_delivered_events_total"][()] == 4
    done = subprocess.run(
        _drain("--dir", spool, "--metrics", str(tmp_path / "no" / "h.prom")), capture_output=True, timeout=60
    )
    assert done.returncode == 2
    assert b"cannot be written" in done.stderr
    file.unlink()
    with subprocess.Popen(_drain("--dir", spool, "--follow", "--metrics", str(file))) as following:
        try:
            transport = SpoolTransport(f"spool://{spool}", to=server.url, drain="off")
            transport.send([event(RUN, 9)])
            until = time.monotonic() + 60

            def delivered() -> Any:
                return file.exists() and samples(file.read_text()).get(
                    "headwater_spool_delivered_events_total"
                )

            while delivered() != {(): 1.0} and time.monotonic() < until:
                time.sleep(0.1)
            assert delivered() == {(): 1.0}
        finally:
            os.kill(following.pid, 15)
    assert json.loads(server.requests[-1].body)["job"]["name"] == "9"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs two users: run as root")
def test_a_spool_of_another_user_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "spool").mkdir()
    child = os.fork()
    if child == 0:
        os.chmod(tmp_path / "spool", 0o000)
        os.seteuid(65534)
        families = {each.name for each in SpoolCollector(tmp_path / "spool").collect() if each.samples}
        os._exit(0 if not families else 1)
    assert os.waitpid(child, 0)[1] == 0
