"""Hard input, without Spark: a plan of fifty thousand nodes, and names of every sort."""

from __future__ import annotations

import json
from typing import Any

from checking import ends
from hypothesis import given
from hypothesis import strategies as st
from replaying import START, replay, state

from headwater.event import of

Node = dict[str, Any]
NAMES = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=30
)  # the probe lets no NUL through


def _plan(column: str, path: str, steps: int, out: str) -> list[Node]:
    """A file, then projections and filters in a row, then a write."""
    files = {"t": "files", "format": "ParquetFileFormat", "paths": [path]}
    nodes: list[Node] = [{"n": "LogicalRelation", "relation": files, "o": [[0, column, "bigint"]]}]
    number = 0
    for step in range(steps):
        if step % 2:
            nodes.append(
                {"n": "Filter", "condition": ["IsNotNull", ["@", number, column]], "child": {"#": step}}
            )
        else:
            made = ["=", number + 1, column, ["Add", ["@", number, column], ["L"]]]
            nodes.append({"n": "Project", "projectList": [made], "child": {"#": step}})
            number += 1
    nodes.append(
        {
            "n": "InsertIntoHadoopFsRelationCommand",
            "outputPath": out,
            "query": {"#": steps},
            "q": [[number, column, "bigint"]],
            "outputColumnNames": [column],
            "o": [],
        }
    )
    return nodes


def _records(plan: list[Node], description: str = "") -> list[dict[str, Any]]:
    begun = {"kind": "start", "id": 1, "time": START, "description": description, "plan": plan}
    return [begun, {"kind": "end", "id": 1, "time": START + 5}]


def test_fifty_thousand_nodes() -> None:
    text = json.dumps(_records(_plan("a", "file:/in", 50_000, "file:/out")))
    (end,) = ends(replay(json.loads(text), state()))
    (out,) = end["outputs"]
    (source,) = out["facets"]["columnLineage"]["fields"]["a"]["inputFields"]
    assert (source["namespace"], source["name"], source["field"]) == ("file", "/in", "a")
    assert [each["field"] for each in out["facets"]["columnLineage"]["dataset"]] == ["a"]
    assert len(json.dumps(end)) < 10_000


@given(column=NAMES, folder=NAMES, description=st.text(max_size=50))
def test_names_of_every_sort(column: str, folder: str, description: str) -> None:
    """Quotes, dots, newlines, other scripts: a column keeps its name, and the event is one that we take ourselves."""
    events = replay(_records(_plan(column, "file:/in", 3, f"file:/data/{folder}"), description), state())
    (end,) = ends(events)
    (out,) = end["outputs"]
    (source,) = out["facets"]["columnLineage"]["fields"][column]["inputFields"]
    assert source["field"] == column
    for event in events:
        of(json.loads(json.dumps(event)))
