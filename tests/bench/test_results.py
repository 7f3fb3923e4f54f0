"""What is told of the benches is fresh: RESULTS.md and the plots follow from the figures and the commentary, and nothing is left out."""

from __future__ import annotations

import json
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import results

ROOT = Path(__file__).parents[2]
BENCHES = results.benches()


def noting() -> Any:
    """The module of bench/, which is on the path for no longer than this."""
    sys.path.append(str(ROOT / "bench"))
    try:
        return import_module("noting")
    finally:
        sys.path.remove(str(ROOT / "bench"))


def test_results_and_plots_are_fresh() -> None:
    assert results.stale() == [], "run make results"


def test_what_is_not_fresh_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("FIGURES", "TOLD"):
        kept = getattr(results, name)
        made = tmp_path / kept.name
        made.mkdir()
        for each in kept.iterdir():
            (made / each.name).write_bytes(each.read_bytes())
        monkeypatch.setattr(results, name, made)
    monkeypatch.setattr(results, "plots", lambda: iter(()))
    monkeypatch.setattr(results, "PLOTS", tmp_path)
    assert results.stale() == []
    told = json.loads((tmp_path / "figures" / "graph.json").read_text())
    told["tables"]["growth"]["rows"][0][1] = "9.9 ms"
    (tmp_path / "figures" / "graph.json").write_text(json.dumps(told))
    assert results.stale() == ["bench/RESULTS.md"]


@pytest.mark.parametrize("name", BENCHES)
def test_every_bench_has_its_figures_and_its_commentary(name: str) -> None:
    told = results.figures(name)
    assert told is not None, f"bench/figures/{name}.json is missing: run make bench BENCHES={name}"
    assert told["bench"] == name
    assert told["tables"], "it has found nothing"
    assert {"date", "cores"} <= told["taken"].keys()
    for each in told["aims"]:
        assert set(each) == {"aim", "measured", "met"}
        assert isinstance(each["met"], bool)
    for table in told["tables"].values():
        assert {len(row) for row in table["rows"]} == {len(table["head"])}
    file = ROOT / "bench" / "figures" / f"{name}.json"
    assert file.read_text() == json.dumps(told, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("name", BENCHES)
def test_no_explanation_is_lost(name: str) -> None:
    whole = results.compose()
    told = (ROOT / "bench" / "told" / f"{name}.md").read_text().partition("\n")[2]
    for paragraph in re.split(r"<!-- .*? -->", told):
        assert paragraph.strip() in whole


def test_every_bench_can_keep_its_figures() -> None:
    for name in BENCHES:
        text = (ROOT / "bench" / f"{name}.py").read_text()
        assert re.search(rf'Notes\(\s*"{name}"', text), name
        assert "notes.keep()" in text, name
        assert "--json FILE" in text, name


def test_every_plot_is_shown_in_the_docs_and_every_bench_is_named() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    drawn = {
        f"plots/{name}-{each}.svg" for name in BENCHES for each in (results.figures(name) or {})["plots"]
    }
    assert drawn - set(re.findall(r"\((plots/[\w-]+\.svg)\)", page)) == set()
    for name in BENCHES:
        assert f"`{name}`" in page


def test_an_aim_that_is_missed_says_where_that_is_told() -> None:
    text = (ROOT / "bench" / "RESULTS.md").read_text()
    headings = {
        re.sub(r"[^\w\- ]", "", line[3:].lower()).replace(" ", "-")
        for line in text.splitlines()
        if line.startswith("## ")
    }
    assert "**missed**" in text
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= headings


def test_a_plot_is_the_same_each_time_and_tells_no_date() -> None:
    plot = {"kind": "line", "title": "t", "x": "x", "y": "y", "log": False, "lines": {"a": [[1, 2.0], [2, 3.0]], "b": [[1, 1.0]]}}  # fmt: skip
    assert results.draw(plot) == results.draw(plot)
    assert "date" not in results.draw(plot)
    assert results.draw(plot) != results.draw({**plot, "kind": "bar"})


# --- what a bench keeps


def test_figures_of_full_size_give_way_to_none_that_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, file = noting().write, tmp_path / "x.json"
    assert write(file, {"full": False, "n": 1})
    assert write(file, {"full": True, "n": 2})
    assert not write(file, {"full": False, "n": 3})
    assert json.loads(file.read_text())["n"] == 2
    assert write(file, {"full": True, "n": 4})
    monkeypatch.setenv("BENCH_REPLACE", "1")
    assert write(file, {"full": False, "n": 5})
    assert json.loads(file.read_text())["n"] == 5


def test_notes_take_their_file_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, secret = tmp_path / "deep" / "x.json", "postgresql://me:secret@host"
    words = ["x.py", "--full", "--json", str(file), "--rounds", "2", "--store", secret, f"--to={secret}"]
    monkeypatch.setattr(sys, "argv", words)
    notes = noting().Notes("x", packages=("msgspec", "no-such-package"), untold=("--store", "--to"))
    assert sys.argv == ["x.py", "--full", "--rounds", "2", "--store", secret, f"--to={secret}"]
    notes.table("t", ("a", "b"), [(1, "two")], "Some:")
    notes.aim("much", "more", True)
    notes.keep()
    told = json.loads(file.read_text())
    assert told["command"] == "bench/x.py --full --rounds 2"
    assert told["tables"]["t"] == {"title": "Some:", "head": ["a", "b"], "rows": [["1", "two"]]}
    assert set(told["versions"]) == {"headwater", "msgspec"}
    assert {"cores", "date", "load", "python", "processor"} <= told["taken"].keys()
    assert "Some:\n\n| a | b |\n|---|---|\n| 1 | two |" in capsys.readouterr().out


def test_figures_of_a_part_replace_that_part(tmp_path: Path) -> None:
    def told(command: str, ms: int, *names: str) -> dict[str, Any]:
        return {
            "command": command, "full": True, "taken": {"date": str(ms)}, "versions": {}, "words": [], "plots": {},
            "tables": {name: {"rows": [[f"{ms} ms"]]} for name in names},
            "aims": [{"aim": f"{name} under 9 ms", "measured": f"{ms} ms", "met": ms < 9} for name in names],
            "ratios": [{"peer": "other", "what": name, "times": ms} for name in names],
        }  # fmt: skip

    write, file = noting().write, tmp_path / "figures.json"
    assert write(file, told("bench/x.py --full", 5, "reads", "writes"))
    assert write(file, told("bench/x.py --full --only writes", 20, "writes"))
    kept = json.loads(file.read_text())
    assert kept["command"] == "bench/x.py --full"
    assert {name: table["rows"] for name, table in kept["tables"].items()} == {
        "reads": [["5 ms"]],
        "writes": [["20 ms"]],
    }
    assert [each["met"] for each in kept["aims"]] == [True, False]
    assert [each["times"] for each in kept["ratios"]] == [5, 20]
