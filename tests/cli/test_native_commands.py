"""impact, diff, runs, tail, search, export and import as people and scripts use them, on a store and on a server."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from headwater.cli import main
from headwater.cli.demo import recorded
from serving import Server, serving

LINES = list(recorded())
FAILED = "019c502a-f388-7076-80f6-05c6ecbb5728"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(f"sqlite:///{tmp_path_factory.mktemp('native')}/x.db") as started:
        body = b"[" + b",".join(LINES) + b"]"
        httpx.post(
            f"{started.url}/api/v1/lineage/batch", content=body, headers={"Content-Type": "application/json"}
        )
        yield started


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("shop")
    (made / "shop.jsonl").write_bytes(b"\n".join(LINES))
    assert headwater(made, "ingest", "shop.jsonl", "--store", "sqlite:///shop.db").returncode == 0
    return made


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def headwater(folder: Path, *arguments: str) -> Done:
    """The command in this process: a new one for each would take longer than all it does."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.chdir(folder)
        patch.setenv("COLUMNS", "220")
        patch.setattr(sys, "argv", ["headwater", *arguments])
        with pytest.raises(SystemExit) as done:
            main()
    return Done(int(done.value.code or 0), out.getvalue(), err.getvalue())


CASES: list[tuple[list[str], int, str]] = [
    (["impact", "bronze/orders"], 0, "3 datasets, 4 jobs downstream"),
    (["impact", "bronze/orders", "--fail-over", "2"], 6, "silver/orders_paid"),
    (["impact", "bronze/orders", "--fail-over", "3"], 0, "silver/orders_paid"),
    (["impact", "nothing"], 3, ""),
    (["diff", "2026-01-01", "2026-12-31", "bronze/orders"], 0, "+ dataset:s3://lake:bronze/orders"),
    (["diff", "-24h", "now"], 0, "nothing differs"),
    (["diff", "-24h", "now", "--fail-on", "any"], 0, "nothing differs"),
    (["diff", "2026-01-01", "2026-12-31", "--fail-on", "added"], 6, "+ dataset:s3://lake:bronze/orders"),
    (["diff", "2026-01-01", "2026-12-31", "--fail-on", "removed", "--fail-on", "breaking"], 0, "+ dataset"),
    (["diff", "2026-01-01", "2026-12-31", "--fail-on", "sometimes"], 2, ""),
    (["diff", "2026-01-01", "2026-12-31", "--fail-on", "any", "--markdown"], 6, "**The gate tripped:**"),
    (["impact", "bronze/orders", "--markdown"], 0, "| 1 | `s3://lake/silver/orders_paid` |"),
    (["impact", "bronze/orders", "--markdown", "--json"], 2, ""),
    (["diff", "now", "-24h"], 2, ""),
    (["runs", "--state", "fail", "--since", "2026-01-01"], 0, FAILED),
    (["runs", "--state", "late"], 2, ""),
    (["runs", "show", FAILED], 0, "not_null(day)"),
    (["runs", "graph", FAILED, "--direction", "up"], 0, "connect:shop.orders-source"),
    (["runs", "graph", "nonsense"], 2, ""),
    (["runs", "graph", "00000000-0000-0000-0000-000000000000"], 3, ""),
    (["tail", "--after", "0", "--limit", "3"], 0, "START     dlt:payments"),
    (["tail", "--after", "0", "--limit", "1", "--state", "FAIL"], 0, "FAIL"),
    (["tail", "--state", "late"], 2, ""),
    (["search", "amount"], 0, "column: amount_cents"),
    (["search", "rev", "--type", "job", "--namespace", "spark"], 0, "spark/revenue"),
    (["search", "orders", "--owner", "nobody"], 3, ""),
    (["show", "gold/revenue_by_day", "--schemas"], 0, "decimal(28,2)"),
    (["graph", "gold/revenue_by_day", "--granularity", "application"], 0, "job spark/revenue"),
    (["graph", "gold/revenue_by_day", "--granularity", "run"], 0, "run dlt:payments"),
    (["graph", "gold/revenue_by_day", "--granularity", "atom"], 2, ""),
]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    CASES,
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_store_and_a_server_answer_alike(
    folder: Path, server: Server, arguments: list[str], code: int, words: str
) -> None:
    local = headwater(folder, *arguments, "--store", "sqlite:///shop.db")
    assert (local.returncode, words in local.stdout) == (code, True), local.stdout + local.stderr
    assert "Traceback" not in local.stderr
    assert code in (0, 6) or local.stderr
    remote = headwater(folder, *arguments, "--url", server.url)
    assert (remote.returncode, remote.stdout) == (local.returncode, local.stdout), remote.stderr


def test_a_long_way_through_one_table_is_drawn(tmp_path: Path) -> None:
    def load(number: int) -> str:
        names = (f"t{number}", "calendar"), (f"t{number + 1}",)
        inputs, outputs = ([{"namespace": "db", "name": name} for name in side] for side in names)
        event = {"eventType": "COMPLETE", "eventTime": "2026-01-31T12:00:00Z", "run": {"runId": f"{number}"}}
        job = {"namespace": "etl", "name": f"load_{number}"}
        return json.dumps({**event, "job": job, "inputs": inputs, "outputs": outputs})

    (tmp_path / "loads.jsonl").write_text("\n".join(map(load, range(600))))
    assert headwater(tmp_path, "ingest", "loads.jsonl", "--store", "sqlite:///x.db").returncode == 0
    done = headwater(tmp_path, "graph", "calendar", "--fan", "600", "--store", "sqlite:///x.db")
    assert (done.returncode, done.stdout.count("(above)")) == (0, 599), done.stderr[-500:]


def test_options_before_a_command_of_runs_are_its_own(folder: Path, server: Server) -> None:
    behind = headwater(folder, "runs", "show", FAILED, "--json", "--url", server.url)
    for where in (["--url", server.url], ["--store", "sqlite:///shop.db"]):
        before = headwater(folder, "runs", *where, "--json", "show", FAILED)
        assert (before.returncode, before.stdout) == (0, behind.stdout), before.stderr
    assert (
        headwater(folder, "runs", "--json", "graph", FAILED, "--store", "sqlite:///shop.db").returncode == 0
    )
    refused = headwater(folder, "runs", "--state", "fail", "show", FAILED, "--store", "sqlite:///shop.db")
    assert (refused.returncode, "--state narrows the list" in refused.stderr) == (2, True)


def test_json_is_what_the_server_answers(folder: Path, server: Server) -> None:
    for arguments, path in ((["impact", "bronze/orders"], "impact?node=bronze/orders"), (["runs"], "runs")):
        done = headwater(folder, *arguments, "--store", "sqlite:///shop.db", "--json")
        assert json.loads(done.stdout) == httpx.get(f"{server.url}/hw/v1/{path}").json()


def test_tail_goes_on_while_events_come(folder: Path, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/tail.db"
    assert headwater(folder, "ingest", "shop.jsonl", "--store", store).returncode == 0
    with serving(store) as server:
        command = [
            sys.executable,
            "-m",
            "headwater",
            "tail",
            "--json",
            "--after",
            "14",
            "--limit",
            "3",
            "--url",
            server.url,
        ]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as tail:
            assert tail.stdout is not None
            first = [json.loads(tail.stdout.readline())["number"] for _ in range(2)]
            late = {"eventTime": "2026-05-01T00:00:00Z", "job": {"namespace": "late", "name": "job"}}
            httpx.post(f"{server.url}/api/v1/lineage", json=late)
            last = json.loads(tail.stdout.readline())
            assert tail.wait(20) == 0
    assert first == [15, 16]
    assert (last["number"], last["job"]) == (17, "job:late:job")


def test_a_log_goes_out_and_comes_back(folder: Path, tmp_path: Path) -> None:
    for file, more in (("log.parquet", ["--format", "parquet"]), ("log.jsonl", [])):
        out = headwater(
            folder, "store", "export", *more, "--to", str(tmp_path / file), "--store", "sqlite:///shop.db"
        )
        assert "16 entries" in out.stdout, out.stderr
        into = f"sqlite:///{tmp_path}/{file}.db"
        assert "16 new" in headwater(folder, "store", "import", str(tmp_path / file), "--store", into).stdout
        assert "0 new" in headwater(folder, "store", "import", str(tmp_path / file), "--store", into).stdout
    assert (
        headwater(folder, "store", "export", "--format", "parquet", "--store", "sqlite:///shop.db").returncode
        == 2
    )
    assert headwater(folder, "store", "import", "--store", "sqlite:///shop.db").returncode == 2


def test_a_rule_can_be_tried_before_it_is_set(folder: Path) -> None:
    rule = "kafka://{b}:9092 -> kafka://prod"
    done = headwater(folder, "aliases", "add", rule, "--dry-run", "--store", "sqlite:///shop.db")
    assert "1 be renamed" in done.stdout
    assert headwater(folder, "aliases", "list", "--store", "sqlite:///shop.db").stdout == ""
