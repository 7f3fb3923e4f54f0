"""docs_modules: the first line of every module -> the tables of rooms and of modules, as Markdown."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "headwater"


def _walls() -> tuple[dict[str, int], dict[str, tuple[str, ...]]]:
    """Ranks and flows, as the layout test holds them: there is no other list."""
    sys.path.insert(0, str(ROOT / "tests"))
    try:
        from test_layout import FLOWS, RANK
    finally:
        sys.path.pop(0)
    return RANK, FLOWS


def first_lines() -> dict[str, str]:
    """Dotted name -> what comes in -> what goes out."""
    found = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        name, _, flow = file.read_text(encoding="utf-8").partition("\n")[0].strip('"').partition(": ")
        if "->" in flow and "migrations.versions" not in name:
            found[name] = flow.rstrip(".").replace("|", "\\|")
    return found


def rooms() -> str:
    """A row for each room, by rank."""
    ranks, _ = _walls()
    told = first_lines()
    lines = ["| rank | room | what comes in -> what goes out |", "|---|---|---|"]
    for name in sorted(ranks, key=lambda each: (ranks[each], each)):
        if name in told and name != "__main__":
            lines.append(f"| {ranks[name]} | [`{name}`](modules.md#{name}) | {told[name]} |")
    return "\n".join(lines) + "\n"


def modules() -> str:
    """A heading for each room, and a row for each module in it, in the order of its flow."""
    ranks, flows = _walls()
    told = first_lines()
    parts = []
    for room in sorted(ranks, key=lambda each: (ranks[each], each)):
        if room not in told or room == "__main__":
            continue
        inner = sorted(
            (each for each in told if each.startswith(f"{room}.")), key=lambda each: _place(each, flows)
        )
        lines = [f"## `{room}`", "", f"Rank {ranks[room]}. {told[room][:1].upper()}{told[room][1:]}.", ""]
        if inner:
            lines += ["| module | what comes in -> what goes out |", "|---|---|"]
            lines += [f"| `{each}` | {told[each]} |" for each in inner] + [""]
        parts.append("\n".join(lines))
    return "\n".join(parts)


def _place(name: str, flows: dict[str, tuple[str, ...]]) -> list[tuple[int, str]]:
    """Where it stands: at each level the step of its folder's flow, then its name."""
    out, parts = [], name.split(".")
    for depth in range(1, len(parts)):
        steps = flows.get(".".join(parts[:depth]), ())
        step = next((at for at, line in enumerate(steps) if parts[depth] in line.split()), len(steps))
        out.append((step, parts[depth]))
    return out
