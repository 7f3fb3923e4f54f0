"""deliver.datahub.patching: edges, columns and tags -> the operations of a JSON patch, under the keys that DataHub's templates know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwater.deliver.datahub.urns import UNKNOWN_ACTOR

Op = dict[str, Any]


def add_lineage(
    inputs: Sequence[str],
    outputs: Sequence[str],
    parents: Sequence[str],
    fine: Sequence[dict[str, Any]],
    time: int,
    *,
    escape: bool,
) -> list[Op]:
    """Edges and columns of a job, added to those that are there."""
    stamp = {"time": time, "actor": UNKNOWN_ACTOR}
    ops = []
    for name, urns in (
        ("inputDatasetEdges", inputs),
        ("outputDatasetEdges", outputs),
        ("inputDatajobEdges", parents),
    ):
        for urn in urns:
            edge = {"destinationUrn": urn, "created": stamp, "lastModified": stamp}
            ops.append({"op": "add", "path": f"/{name}/{_part(urn, escape)}", "value": edge})
    ops += [
        {"op": "add", "path": path, "value": {"confidenceScore": score}}
        for path, score in _paths(fine, escape)
    ]
    return ops


def remove_upstreams(upstreams: Sequence[str], fine: Sequence[dict[str, Any]], *, escape: bool) -> list[Op]:
    """What an older agent left on a dataset, taken away."""
    ops = [{"op": "remove", "path": f"/upstreams/{_part(urn, escape)}"} for urn in upstreams]
    return ops + [{"op": "remove", "path": path} for path, _ in _paths(fine, escape)]


def add_tags(tags: Sequence[str]) -> dict[str, Any]:
    """Tags, added to those that are there."""
    ops = [{"op": "add", "path": f"/tags//{_escaped(tag)}", "value": {"tag": tag}} for tag in tags]
    return {"arrayPrimaryKeys": {"tags": ["attribution␟source", "tag"]}, "patch": ops}


def _paths(fine: Sequence[dict[str, Any]], escape: bool) -> list[tuple[str, float]]:
    out = {}
    for each in fine:
        operation = each["transformOperation"]
        if escape:  # a key of the patch: no place for a text of any length
            operation = _escaped(_texts(operation)) or "TRANSFORM"
        for down in each["downstreams"]:
            for up in each["upstreams"]:
                path = f"/fineGrainedLineages/{operation}/{_part(down, escape)}/NONE/{_part(up, escape)}"
                out[path] = each["confidenceScore"]
    return list(out.items())


def _texts(operation: str) -> str:
    """The kinds of a transformation without the SQL after them."""
    if operation.startswith("-- "):
        return operation[3:].partition("\n")[0]
    words = operation.split(",")
    return operation if all(_is_kind(word) for word in words) else ""


def _is_kind(word: str) -> bool:
    kind, colon, subtype = word.partition(":")
    return (
        bool(colon)
        and kind.replace("_", "").isalnum()
        and (not subtype or subtype.replace("_", "").isalnum())
    )


def _part(text: str, escape: bool) -> str:
    return _escaped(text) if escape else text.replace("~ ", "~0").replace("/", "~1")


def _escaped(text: str) -> str:
    """As RFC 6901 has it."""
    return text.replace("~", "~0").replace("/", "~1")
