"""The command line as people and scripts use it: text and JSON, exit codes, files of every form."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard

from headwater.cli.demo import recorded
from serving import Server, serving

Run = Callable[..., Any]
LINES = list(recorded())


@pytest.fixture
def store(run: Run) -> str:
    Path("shop.jsonl").write_bytes(b"\n".join(LINES) + b"\n")
    assert run("ingest", "shop.jsonl", "--store", "sqlite:///shop.db").code == 0
    return "sqlite:///shop.db"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(f"sqlite:///{tmp_path_factory.mktemp('cli')}/x.db") as started:
        yield started


FORMS: dict[str, bytes] = {
    "lines.jsonl": b"\n".join(LINES) + b"\n\n",
    "array.json": b"[" + b",\n".join(LINES) + b"]",
    "pretty.json": json.dumps([json.loads(line) for line in LINES], indent=2).encode(),
    "lines.jsonl.gz": gzip.compress(b"\n".join(LINES)),
    "lines.jsonl.zst": zstandard.compress(b"\n".join(LINES[:7]) + b"\n")
    + zstandard.compress(b"\n".join(LINES[7:])),
    "misnamed.txt": gzip.compress(b"[" + b",".join(LINES) + b"]"),
    "notepad.jsonl": b"\r\n".join([codecs.BOM_UTF8 + LINES[0], *LINES[1:]]),
    "notepad.json.gz": gzip.compress(codecs.BOM_UTF8 + b"[" + b",".join(LINES) + b"]"),
    "powershell.jsonl": b"\r\n".join(LINES).decode().encode("utf-16"),
}


@pytest.mark.parametrize("name", FORMS)
def test_files_of_every_form_are_ingested(run: Run, name: str) -> None:
    Path(name).write_bytes(FORMS[name])
    done = run("ingest", name, "--store", "sqlite:///x.db", "--json")
    assert done.code == 0
    assert done.json == {"received": len(LINES), "stored": len(LINES), "duplicates": 0, "rejected": []}
    assert run("ingest", name, "--store", "sqlite:///x.db", "--json").json["duplicates"] == len(LINES)


def test_a_broken_line_takes_no_other_with_it(run: Run) -> None:
    for at, broken in enumerate((b"no event", b'{"eventTime": ', b"\xff")):
        for place in (0, 3):
            lines = [*LINES]
            lines.insert(place, broken)
            Path("x.jsonl").write_bytes(b"\n".join(lines))
            done = run("ingest", "x.jsonl", "--store", f"sqlite:///{at}{place}.db", "--json")
            assert (done.code, done.json["stored"]) == (5, len(LINES))
            assert [each["index"] for each in done.json["rejected"]] == [place]


def test_a_text_that_was_cut_in_the_middle_of_a_letter_is_told(run: Run) -> None:
    Path("cut.jsonl").write_bytes(FORMS["powershell.jsonl"][:-1])
    done = run("ingest", "cut.jsonl", "--store", "memory:")
    assert (done.code, "cut.jsonl: cannot be read: " in done.err) == (2, True)


def test_stdin_is_a_file_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(FORMS["lines.jsonl"])))
    assert f"{len(LINES)} stored" in run("ingest", "-", "--store", "sqlite:///x.db").out


def test_refused_events_are_told_kept_and_exit_5(run: Run) -> None:
    Path("mixed.jsonl").write_bytes(LINES[0] + b"\n{}\nnot json\n" + LINES[1] + b"\n")
    done = run("ingest", "mixed.jsonl", "--store", "sqlite:///x.db")
    assert done.code == 5
    assert "2 stored, 0 already there, 2 refused" in done.out
    assert "event 2: eventTime: missing" in done.err
    rejects = run("store", "rejects", "--store", "sqlite:///x.db", "--json").json
    assert {each["payload"] for each in rejects} == {"{}\n", "not json\n"}
    assert "eventTime: missing" in run("store", "rejects", "--store", "sqlite:///x.db").out


def test_a_file_that_is_not_there_exits_2(run: Run) -> None:
    done = run("ingest", "nowhere.jsonl", "--store", "sqlite:///x.db")
    assert (done.code, "cannot be read" in done.err) == (2, True)


def test_what_a_command_did_is_told_as_json_too(run: Run) -> None:
    Path("lines.jsonl").write_bytes(FORMS["lines.jsonl"])
    old, new, rule = (
        ("--store", "sqlite:///x.db"),
        ("--store", "sqlite:///y.db"),
        "kafka://{any} -> kafka://prod",
    )
    run("ingest", "lines.jsonl", *old)
    count = len(LINES)

    def told(*arguments: str) -> Any:
        return run(*arguments, "--json").json

    assert told("store", "migrate", *old)["store"] == "sqlite:///x.db"
    assert told("store", "replay", *old) == {"events": count}
    assert told("store", "export", "--to", "log.jsonl", *old) == {"entries": count, "to": "log.jsonl"}
    assert told("store", "import", "log.jsonl", *new) == {"new": count}
    assert told("store", "copy", "sqlite:///y.db", *old) == {
        "events": count,
        "new": 0,
        "to": "sqlite:///y.db",
    }
    backup = told("store", "backup", "copy.db", *old)
    assert backup == {
        "store": "sqlite:///x.db",
        "file": "copy.db",
        "bytes": Path("copy.db").stat().st_size,
        "open": "--store sqlite:///copy.db",
    }
    assert told("aliases", "add", rule, "--dry-run", *old)["counts"]["renames"] == 1
    added = told("aliases", "add", rule, *old)["added"]
    assert told("aliases", "list", *old) == [added]
    assert told("aliases", "remove", rule, *old) == {"removed": added}
    assert told("hooks", "add", "ops", "https://ops.example.org", *old) == {"added": "ops", "signed": False}
    assert told("hooks", "retry", "ops", *old) == {"retried": 0}
    assert told("hooks", "remove", "ops", *old) == {"removed": "ops"}
    watched = told("incidents", "watch", "s3://lake/*", "--measure", "volume", "--off", *old)
    assert watched == {"pattern": "s3://lake/*", "measure": "volume", "watched": False}


def test_what_is_told_never_stands_among_exported_events(run: Run) -> None:
    run("ingest", "-", "--store", "sqlite:///x.db")
    done = run("store", "export", "--json", "--store", "sqlite:///x.db")
    assert (done.code, done.out, "give a file with --to" in done.err) == (2, "", True)


@pytest.mark.parametrize("packed", [gzip.compress(LINES[0] + b"\n"), zstandard.compress(LINES[0] + b"\n")])
def test_a_packed_file_that_was_cut_off_is_not_taken_for_a_whole_one(run: Run, packed: bytes) -> None:
    for cut in (6, len(packed) - 3):
        Path("cut").write_bytes(packed[:cut])
        done = run("ingest", "cut", "--store", "memory:")
        assert (done.code, "cut: cannot be read: " in done.err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        ("graph orders --store sqlite:///new/x.db", 3, "there is no store at new/x.db yet: `headwater ingest`"),
        ("incidents list --store sqlite:///x.db?synchronous=full", 3, "there is no store at x.db yet"),
        ("store check --store sqlite:///x.db", 3, "there is no store at x.db yet"),
        ("store backup copy.db --store sqlite:///x.db", 3, "there is no store at x.db yet"),
        ("store prune --store sqlite:///x.db", 3, "there is no store at x.db yet"),
        ("keys revoke me --store sqlite:///x.db", 3, "there is no store at x.db yet"),
        ("serve --port 99999 --store memory:", 2, "serve.port is 99999"),
        ("store import https://u:pw@m:5000 --store memory:", 2, "is no file: a server's events are taken with --marquez"),
        ("connect once --config none.toml --transport memory:", 2, "none.toml: cannot be read: No such file or directory;"),
        ("datahub convert none.jsonl", 2, "none.jsonl: cannot be read: No such file or directory"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_and_nothing_is_left_behind(
    run: Run, tmp_path: Path, arguments: str, code: int, told: str
) -> None:
    done = run(*arguments.split())
    assert (done.code, done.out) == (code, "")
    assert told in done.err
    assert "pw" not in done.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("source", "sink", "said"),
    [
        ("events.jsonl", "tables", "sink 'tables' is no url"),
        ("events.jsonl", "parquet:///tables?nope=1", "unexpected keyword argument 'nope'"),
        ("pigeon://loft", "parquet:///tables", "unknown source 'pigeon'"),
    ],
)
def test_a_slip_in_a_pipeline_is_told_before_spark_starts(
    run: Run, monkeypatch: pytest.MonkeyPatch, source: str, sink: str, said: str
) -> None:
    monkeypatch.setattr("headwater.pipeline.open_session", lambda *_: pytest.fail("Spark was started"))
    more = {"run": [], "stream": ["--checkpoint", "c"]}
    for command, options in more.items():
        done = run("pipeline", command, "--source", source, "--sink", sink, *options)
        assert (done.code, said in done.err) == (2, True), done.err


def test_ingest_over_http(run: Run, server: Server) -> None:
    Path("mixed.jsonl").write_bytes(b"\n".join(LINES) + b"\n{}\n")
    done = run("ingest", "mixed.jsonl", "--url", server.url, "--json")
    assert done.code == 5
    assert (done.json["received"], done.json["stored"]) == (len(LINES) + 1, len(LINES))
    assert done.json["duplicates"] is None, "a server does not say"
    assert (
        f"{len(LINES)} taken by the server, 1 refused"
        in run("ingest", "mixed.jsonl", "--url", server.url).out
    )
    assert done.json["rejected"] == [{"index": len(LINES), "path": "", "reason": "eventTime: missing"}]
    found = run("graph", "gold/revenue_by_day", "--url", server.url, "--json").json
    assert len(found["nodes"]) > 10
    assert run("search", "revenue", "--url", server.url, "--json").json
    assert (
        run("show", "gold/revenue_by_day", "--url", server.url, "--json").json["fields"][0]["name"] == "day"
    )
    assert run("graph", "nothing", "--url", server.url).code == 3
    assert run("graph", "shop.public.orders", "--url", server.url).code == 2
    assert run("graph", "x", "--url", "http://127.0.0.1:1").code == 4


def test_graph_as_tree_and_as_json(run: Run, store: str) -> None:
    done = run("graph", "gold/revenue_by_day", "--direction", "up", "--columns", "--store", store)
    assert done.code == 0
    assert "postgres://shop-db:5432/shop.public.orders" in done.out
    assert "revenue ← silver/orders_paid.paid  DIRECT:AGGREGATION" in done.out
    model = run("graph", "gold/revenue_by_day", "--json", "--store", store).json
    assert set(model) == {"start", "nodes", "edges", "columns", "cut"}
    assert {"id", "type", "namespace", "name"} <= set(model["nodes"][0])
    column = run(
        "graph", "datasetField:s3://lake:gold/revenue_by_day:revenue", "--direction", "up", "--store", store
    )
    assert "https://pay.example.com//v1/payments.amount_cents" in column.out
    assert "raise --depth" in run("graph", "gold/revenue_by_day", "--depth", "1", "--store", store).err


def test_graph_at_a_time(run: Run, store: str) -> None:
    early = run(
        "graph", "silver/orders_paid", "--at", "2026-03-02T05:22:00Z", "--json", "--store", store
    ).json
    late = run("graph", "silver/orders_paid", "--at", "2026-03-02T05:23:00Z", "--json", "--store", store).json
    assert len(early["nodes"]) == 1 < len(late["nodes"])
    assert run("graph", "silver/orders_paid", "--at", "noon", "--store", store).code == 2


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["graph", "nothing"], 3),
        (["graph", "shop.public.orders"], 2),
        (["graph", "gold/revenue_by_day", "--direction", "sideways"], 2),
        (["graph"], 2),
        (["graph", "datasetField:s3://lake:gold/revenue_by_day:revnue"], 3),
        (["impact", "gold/revenue_by_day", "--column", "revnue", "--fail-over", "0"], 3),
        (["nonsense"], 2),
        (["search", "zzz"], 3),
        (["search", "zzz", "--json"], 3),
        (["incidents", "list", "--kind", "colour"], 2),
        (["incidents", "watch", "s3://lake/*", "--measure", "colour"], 2),
        (["hooks", "log", "nobody"], 3),
        (["hooks", "retry", "nobody"], 3),
        (["store", "export", "--to", "."], 1),
        (["graph", "x", "--store", "postgresql://localhost:1/x"], 4),
        (["search", "orders", "--type", "colour"], 2),
        (["show", "0197f3c6-0000-7000-8000-000000000000"], 3),
        (["show", "gold/revenue_by_day", "--url", "http://x", "--store", "memory:"], 2),
    ],
)
def test_exit_codes(run: Run, store: str, arguments: list[str], code: int) -> None:
    given = [] if "--store" in arguments or arguments[0] == "nonsense" else ["--store", store]
    done = run(*arguments, *given)
    assert done.code == code
    assert done.err.strip()
    assert done.out.strip() == ("[]" if "--json" in arguments else "")


def test_show_a_dataset_a_job_and_a_run(run: Run, store: str) -> None:
    dataset = run("show", "silver/orders_paid", "--store", store).out
    assert "holder_hash  string" in dataset
    assert "job:spark:revenue.join_payments.silver_orders_paid" in dataset
    assert "https://catalog:8181/silver.orders_paid" in dataset
    job = run("show", "revenue.join_payments.silver_orders_paid", "--json", "--store", store).json
    assert job["runs"][0]["state"] == "COMPLETE"
    assert job["parent"] == "job:spark:revenue"
    one = run("show", job["runs"][0]["id"], "--json", "--store", store).json
    assert one["outputs"][0]["rows"] == 1764
    assert one["root"] is not None
    assert "COMPLETE" in run("show", job["runs"][0]["id"], "--store", store).out
    failed = run("show", "gold/revenue_by_day", "--store", store).out
    assert "FAILED: not_null day" in failed


def test_the_store_is_looked_after(run: Run, store: str) -> None:
    assert run("store", "status", "--json", "--store", store).json["events"] == len(LINES)
    assert f"{len(LINES)}" in run("store", "status", "--store", store).out
    assert run("store", "migrate", "--store", store).code == 0
    strict = "sqlite:///empty.db?migrate_on_open=no"
    Path("empty.db").touch()  # a file without any tables
    assert run("store", "status", "--store", strict).code == 1
    assert run("store", "migrate", "--store", strict).code == 0, "it does what the others ask for"
    assert run("store", "status", "--store", strict).code == 0
    assert "sound" in run("store", "check", "--store", store).out
    assert f"{len(LINES)} events replayed" in run("store", "replay", "--store", store).out
    assert run("store", "copy", "sqlite:///copy.db", "--store", store).code == 0
    assert run("store", "copy", store, "--store", store).code == 2
    assert run("store", "backup", "backup.db", "--store", store).code == 0
    assert run("store", "backup", "backup.db", "--store", store).code == 2, (
        "a file that is there is not overwritten"
    )
    for url in ("sqlite:///copy.db", "sqlite:///backup.db"):
        assert (
            run("store", "status", "--json", "--store", url).json["datasets"]
            == run("store", "status", "--json", "--store", store).json["datasets"]
        )


def test_export_and_import(run: Run, store: str, tmp_path: Path) -> None:
    import subprocess

    command = [sys.executable, "-m", "headwater", "store", "export", "--store", store]
    exported = subprocess.run(command, capture_output=True, cwd=tmp_path, timeout=60, check=True).stdout
    assert exported.splitlines() == LINES
    Path("exported.jsonl.zst").write_bytes(zstandard.compress(exported))
    assert (
        f"{len(LINES)} new" in run("store", "import", "exported.jsonl.zst", "--store", "sqlite:///y.db").out
    )
    assert run("store", "status", "--json", "--store", "sqlite:///y.db").json["events"] == len(LINES)


def test_damage_is_found(run: Run, store: str) -> None:
    with sqlite3.connect("shop.db") as connection:
        connection.execute("UPDATE log SET body = ? WHERE id = 3", (zstandard.compress(b"{}"),))
    connection.close()
    done = run("store", "check", "--store", store)
    assert (done.code, "log entry 3" in done.out) == (1, True)


def test_config_show_and_check(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_API_KEY", "hunter2")
    Path("headwater.toml").write_text('namespace = "shop"\n[serve]\nport = 5001\n')
    shown = run("config", "show", "--origin")
    assert "hunter2" not in shown.out + shown.err
    assert "headwater.toml" in shown.out
    rows = {row["name"]: row for row in run("config", "show", "--json").json}
    assert rows["namespace"]["value"] == "shop"
    assert rows["serve.port"]["origin"] == "headwater.toml"
    assert run("config", "check").code == 0
    Path("bad.toml").write_text("[serve]\nprot = 5\n")
    done = run("config", "check", "bad.toml")
    assert (done.code, "did you mean 'port'" in done.out) == (2, True)
    Path("headwater.toml").write_text('nmespace = "shop"\n')
    done = run("search", "x")
    assert (done.code, "did you mean 'namespace'" in done.err) == (2, True)


def test_doctor(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run("doctor", "--store", "sqlite:///x.db", "--json")
    assert done.code == 0
    assert {"headwater", "SQLite", "store", "settings"} <= {row["what"] for row in done.json}
    assert not Path("x.db").exists(), "to look is not to make one"
    monkeypatch.setenv("HEADWATER_URL", "http://127.0.0.1:1")
    assert run("doctor", "--store", "sqlite:///x.db").code == 1
    Path("notes.db").write_text("no database" * 1000)
    broken = run("doctor", "--store", "sqlite:///notes.db")
    assert (broken.code, "not a database" in broken.out) == (1, True)


def test_aliases_rename_the_past_and_can_be_taken_back(run: Run, store: str) -> None:
    rule = "kafka://{broker}:9092 -> kafka://prod"
    assert run("aliases", "add", rule, "--store", store).code == 0
    assert run("aliases", "list", "--store", store).out.strip() == rule
    names = [
        node["namespace"] for node in run("graph", "bronze/orders", "--json", "--store", store).json["nodes"]
    ]
    assert "kafka://prod" in names
    assert run("aliases", "remove", rule, "--store", store).code == 0
    assert run("aliases", "list", "--json", "--store", store).json == []
    names = [
        node["namespace"] for node in run("graph", "bronze/orders", "--json", "--store", store).json["nodes"]
    ]
    assert "kafka://broker-1:9092" in names
    assert run("aliases", "remove", rule, "--store", store).code == 3
    assert run("aliases", "add", "kafka://{b} -> kafka://{c}", "--store", store).code == 2
    assert run("aliases", "add", "nonsense", "--store", store).code == 2
    whole = "connect/{t} -> spark/{t}"
    assert run("aliases", "add", whole, "--store", store).code == 0
    assert run("aliases", "list", "--store", store).out.strip() == whole


def test_the_recorded_demo_once(run: Run) -> None:
    done = run("demo", "--once", "--recorded")
    assert done.code == 0
    assert "gold/revenue_by_day" in done.out
    assert "FAILED  not_null(day)" in done.out


@pytest.mark.parametrize("arguments", ["store export --store {}", "--help", "--version", "graph --help"])
def test_a_broken_pipe_is_no_fault(store: str, tmp_path: Path, arguments: str) -> None:
    line = f"set -o pipefail; {sys.executable} -m headwater {arguments.format(store)} | true"
    done = subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_names_are_printed_whole_and_as_they_are(tmp_path: Path) -> None:
    """In a pipe there is no width to keep to, and `:bank:` is a name like any other."""
    store = f"sqlite:///{tmp_path}/x.db"
    long = "postgres://warehouse.internal.example.org:5432/shop.marts.revenue_by_country_and_category_and_day_of_week"
    body = {
        "eventTime": "2026-01-01T00:00:00Z",
        "eventType": "COMPLETE",
        "run": {"runId": "00000000-0000-7000-8000-000000000001"},
        "job": {"namespace": "bank", "name": "key"},
        "outputs": [dict(zip(("namespace", "name"), long.rsplit("/", 1), strict=True))],
    }
    (tmp_path / "e.jsonl").write_text(json.dumps(body))
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}

    def said(*arguments: str) -> str:
        command = [sys.executable, "-m", "headwater", *arguments, "--store", store]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    said("ingest", str(tmp_path / "e.jsonl"))
    run = body["run"]["runId"]  # type: ignore[index]
    for command in (
        ["diff", "2025-01-01", "2027-01-01"],
        ["graph", "bank/key"],
        ["runs", "show", run],
        ["impact", "job:bank:key"],
    ):
        told = said(*command)
        assert "bank" in told, command
        assert "\N{BANK}" not in told, command
        assert "\N{KEY}" not in told, command
        assert long.rsplit("/", 1)[1] in told, command
