"""Text for a pull request: read by a Markdown parser, whatever names hold, and never too long."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from headwater.cli import _markdown
from headwater.cli.diff import _tripping

PARSER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
TRICKY = (
    "a|b", "`", "a`b``c", "``", "<img src=x onerror=y>", "</details>", "<!--", "@ann", "#7", "!7", "[x](http://evil)",
    "http://evil.example", "www.evil.example", "a@b.example", "**b**", "_i_", "~~s~~", "\\", "a\\|b", "|", "a\nb", "  ",
    "&lt;", "&#124;", ":smile:", "$x$", "\u202eabc", "\x00", "x" * 5000, "naïve ☃", "a\\", "---|---", "- a", "1. a",
)  # fmt: skip
names = st.one_of(
    st.sampled_from(TRICKY), st.text(max_size=30), st.lists(st.sampled_from(TRICKY), max_size=4).map("".join)
)


def cells(text: str) -> list[list[str]]:
    """The cells of every row of every table's body, as a reader sees them."""
    rows: list[list[str]] = []
    body = False
    for token in PARSER.parse(text):
        if token.type == "tbody_open":
            body = True
        elif token.type == "tbody_close":
            body = False
        elif token.type == "tr_open" and body:
            rows.append([])
        elif token.type == "inline" and body:
            rows[-1].append(shown(token))
    return rows


def shown(token: Token) -> str:
    """The text of a cell; nothing in it may be more than text or code."""
    told = ""
    for each in token.children or ():
        assert each.type in ("text", "code_inline", "html_inline", "text_special"), each
        if each.type == "html_inline":
            assert each.content in ("<code>", "</code>", "<!-- -->"), each.content
        else:
            told += html.unescape(each.content) if each.type == "text_special" else each.content
    return told


def as_told(name: str) -> str:
    """A name as it may be shown: on one line, the middle of a long one left out."""
    line = " ".join("".join(each if each.isprintable() else " " for each in name).split())
    return line if len(line) <= 200 else f"{line[:100]}…{line[-100:]}"


def entry(name: str, owner: str) -> dict[str, Any]:
    return {
        "id": f"dataset:db:{name}", "namespace": "db", "name": name, "distance": 1, "owners": [{"name": owner}],
        "lastWritten": None, "lastRun": {"job": f"job:etl:{name}", "state": "COMPLETE"},
    }  # fmt: skip


def of_impact(datasets: list[dict[str, Any]], start: str = "dataset:db:x") -> dict[str, Any]:
    return {
        "start": start, "datasets": datasets, "jobs": [], "unsure": [], "cut": False,
        "owners": [{"name": each["owners"][0]["name"], "nodes": 1, "first": ""} for each in datasets],
        "counts": {"datasets": len(datasets), "jobs": 0},
    }  # fmt: skip


def of_diff(**parts: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {part: {"added": [], "removed": []} for part in ("nodes", "edges", "columns")}
    return {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z", **empty, "schemas": [], **parts}


@given(st.lists(st.tuples(names, names), min_size=1, max_size=20), names)
def test_every_name_is_shown_as_it_is_and_does_nothing(told: list[tuple[str, str]], start: str) -> None:
    model = of_impact([entry(name, owner) for name, owner in told], start)
    text = _markdown.impact(model, "1 dataset is hit")
    found = cells(text)
    assert [row[1] for row in found] == [as_told(f"db/{name}") for name, _ in told]
    assert [row[2] for row in found] == [as_told(owner) for _, owner in told]
    for token in PARSER.parse(text):
        if token.type == "inline":
            for each in token.children or ():
                assert each.type not in ("link_open", "image"), each
        if token.type == "html_block":  # only ours
            assert re.fullmatch(r"(<details><summary>[\w ,:]+</summary>|</details>)\s*", token.content)


@given(st.lists(names, min_size=1, max_size=20))
def test_a_difference_shows_every_name_in_its_list(told: list[str]) -> None:
    model = of_diff(nodes={"added": told, "removed": []})
    text = _markdown.diff(model)
    items = [
        shown(token)
        for before, token in zip(PARSER.parse(text), PARSER.parse(text)[1:], strict=False)
        if before.type == "paragraph_open" and before.hidden and token.type == "inline"
    ]
    assert items == [as_told(each) for each in told if as_told(each)]
    assert cells(text)[0] == ["nodes", str(len(told)), "0", ""]


@pytest.mark.parametrize("count", [1, 15, 16, 2_000])
def test_a_text_is_never_too_long_and_says_what_was_left_out(count: int) -> None:
    model = of_impact([entry(f"{at:05}|" + "n" * 300, "o|" * 90) for at in range(count)])
    model["jobs"] = [{"namespace": "etl", "name": "j" * 300, "distance": 1, "owners": []}] * count
    model["unsure"] = ["job:etl:" + "u" * 300] * count
    text = _markdown.impact(model)
    assert len(text) <= _markdown.MOST
    left_out = sum(map(int, re.findall(r"^(\d+) lines? left out", text, re.MULTILINE)))
    listed = text.count("\n| 1 |") + text.count("\n- ")
    assert listed + left_out == 3 * count
    assert f"{count} dataset" in text
    assert text.count("<details>") == text.count("</details>")


def test_what_broke_is_told_before_what_is_folded() -> None:
    change = {"change": "type", "field": "total", "before": "bigint", "after": "int", "breaking": True}
    grown = {"change": "added", "field": "note", "breaking": False}
    model = of_diff(
        schemas=[
            {"dataset": "dataset:db:a", "change": "changed", "changes": [change, grown], "breaking": True},
            {"dataset": "dataset:db:b", "change": "changed", "changes": [grown], "breaking": False},
            {"dataset": "dataset:db:c", "change": "added", "changes": [], "breaking": False},
        ],
        edges={"added": [], "removed": [{"from": "job:etl:x", "to": "dataset:db:a"}]},
    )
    text = _markdown.diff(model)
    assert text.index("1 schema broken") < text.index("<details>")
    assert ["db:a", "total: bigint → int"] in cells(text)
    assert ["db:b", "note added"] in cells(text)
    assert ["schemas", "1", "", "2"] in cells(text)


@pytest.mark.parametrize(
    ("kinds", "trips"),
    [([], False), (["added"], False), (["removed"], True), (["changed"], True), (["breaking"], False), (["any"], True),
     (["added", "breaking"], False), (["added", "removed"], True)],
)  # fmt: skip
def test_the_gate_trips_on_what_it_was_told(kinds: list[str], trips: bool) -> None:
    model = of_diff(
        nodes={"added": [], "removed": ["dataset:db:gone"]},
        schemas=[{"dataset": "dataset:db:b", "change": "changed", "changes": [], "breaking": False}],
    )
    assert (_tripping(model, kinds) is not None) == trips
    assert _tripping(of_diff(), ["any"]) is None
