"""results: bench/figures/*.json and bench/told/*.md -> bench/RESULTS.md and docs/plots/*.svg.

    python scripts/results.py            write them
    python scripts/results.py check      say what is not fresh, and exit 1

Figures are what a bench wrote (`bench/noting.py`), so a run renews them; what they mean, why an aim is missed and what was
tried stands in `told/<bench>.md`, which no run touches. A line `<!-- table: name -->` there is where a table goes, and `<!-- words -->`
what the bench said of itself; tables that are not placed follow at the end.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from hashlib import sha256
from io import StringIO
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FIGURES, TOLD = ROOT / "bench" / "figures", ROOT / "bench" / "told"
RESULTS, PLOTS = ROOT / "bench" / "RESULTS.md", ROOT / "docs" / "plots"
_PLACE = re.compile(r"^<!-- (table|words)(?:: ([\w -]+))? -->$", re.MULTILINE)

Figures = dict[str, Any]


def benches() -> list[str]:
    """Their names, in the order in which `make bench` runs them."""
    said = re.search(r"^BENCHES := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert said is not None, "the Makefile names no BENCHES"
    return re.findall(r"bench/(\w+)\.py", said.group(1))


def figures(name: str) -> Figures | None:
    """What a bench has found; None where it never ran."""
    file = FIGURES / f"{name}.json"
    if not file.exists():
        return None
    found: Figures = json.loads(file.read_text())
    return found


# --- the text


def compose() -> str:
    """The whole of RESULTS.md."""
    known = {name: found for name in benches() if (found := figures(name)) is not None}
    parts = [(TOLD / "_results.md").read_text().strip(), _aims(known), _ratios(known)]
    parts += [_section(name, found) for name, found in known.items()]
    return "\n\n".join(parts) + "\n"


def _title(name: str) -> tuple[str, str]:
    text = (TOLD / f"{name}.md").read_text()
    head, _, rest = text.partition("\n")
    assert head.startswith("# "), f"bench/told/{name}.md begins with no title"
    return head[2:].strip(), rest.strip()


def _anchor(name: str) -> str:
    """As a forge and the site both make it of a heading: there is nothing but words in it."""
    return _title(name)[0].lower().replace(" ", "-")


def _aims(known: dict[str, Figures]) -> str:
    rows = [
        f"| {each['aim']} | {each['measured']} | {'met' if each['met'] else '**missed**'} "
        f"| [{_title(name)[0]}](#{_anchor(name)}) |"
        for name, found in known.items()
        for each in found["aims"]
    ]
    missed = sum("**missed**" in row for row in rows)
    told = f"{len(rows)} aims, {len(rows) - missed} met, {missed} missed; why, is told under each bench."
    return "\n".join(["## Aims", "", told, "", "| aim | measured | | told under |", "|---|---|---|---|", *rows])  # fmt: skip


def _ratios(known: dict[str, Figures]) -> str:
    rows = [
        f"| {each['peer']} | {each['what']} | {each['times']:,g} | [{_title(name)[0]}](#{_anchor(name)}) |"
        for name, found in known.items()
        for each in found["ratios"]
    ]
    head = ["## Beside peers", "", "How many times better Headwater's figure is; below 1, the peer's is.", ""]
    return "\n".join([*head, "| peer | what | times | told under |", "|---|---|---|---|", *rows])


def _section(name: str, found: Figures) -> str:
    title, told = _title(name)
    left = dict(found["tables"])

    def put(place: re.Match[str]) -> str:
        if place[1] == "words":
            return "\n\n".join(found["words"])
        table = left.pop(place[2], None)
        return "" if table is None else _table(table)

    words = "" if "<!-- words -->" in told else "\n\n".join(found["words"])
    text = _PLACE.sub(put, told)
    more = [_table(table) for _, table in sorted(left.items())]
    drawn = [f"![{plot['title']}](../docs/plots/{name}-{each}.svg)" for each, plot in sorted(found["plots"].items())]  # fmt: skip
    parts = [f"## {title}", _taken(found), words, text, *more, *drawn]
    return re.sub(r"\n{3,}", "\n\n", "\n\n".join(part for part in parts if part))


def _table(table: Figures) -> str:
    lines = [f"| {' | '.join(row)} |" for row in table["rows"]]
    head = [f"| {' | '.join(table['head'])} |", "|" + "---|" * len(table["head"])]
    return "\n".join([*([table["title"], ""] if table["title"] else []), *head, *lines])


def _taken(found: Figures) -> str:
    taken = found["taken"]
    told = [f"`{found['command']}`, measured{' on ' + taken['date'] if taken.get('date') else ''}"]
    told.append(f"on {taken['cores']} cores" + (f" ({taken['processor']})" if taken.get("processor") else ""))
    if taken.get("memory_gb"):
        told.append(f"and {taken['memory_gb']} GB")
    if taken.get("load"):
        told.append(f"at a load of {taken['load'][0]:g} before and {taken['load'][1]:g} after")
    versions = [f"{name} {number}" for name, number in sorted(found["versions"].items())]
    if taken.get("python"):
        versions.insert(0, f"Python {taken['python']}")
    size = "" if found["full"] else " Not of full size."
    return f"*{' '.join(told)}{'; ' + ', '.join(versions) if versions else ''}.{size}*"


# --- the plots


def plots() -> Iterator[tuple[Path, Figures]]:
    """Every plot's file, and what is drawn in it."""
    for name in benches():
        found = figures(name)
        for each, plot in sorted((found or {"plots": {}})["plots"].items()):
            yield PLOTS / f"{name}-{each}.svg", plot


def draw(plot: Figures) -> str:
    """One plot as SVG."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib.figure import Figure

    style = {"svg.hashsalt": "headwater", "svg.fonttype": "none", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}  # fmt: skip
    with matplotlib.rc_context(style):
        bars = sum(map(len, plot["lines"].values())) if plot["kind"] == "bar" else 0
        figure = Figure(figsize=(6.4, max(3.2, 0.9 + 0.2 * bars)), layout="constrained")
        axes = figure.subplots()
        (_bars if plot["kind"] == "bar" else _lines)(axes, plot)
        axes.set_title(plot["title"], fontsize=10, loc="left")
        if len(plot["lines"]) > 1:
            figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
        out = StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return re.sub(r"[ \t]+$", "", out.getvalue(), flags=re.MULTILINE) + f"<!-- {mark(plot)} -->\n"


def mark(plot: Figures) -> str:
    """What a plot is known by: its figures, not its bytes, which another version of the library writes otherwise."""
    return f"figures {sha256(json.dumps(plot, sort_keys=True).encode()).hexdigest()[:16]}"


_COLOURS = ("#1a73a8", "#d97706", "#6b7280", "#7c3aed", "#059669", "#be123c")


def _natural(text: str) -> list[tuple[int, str]]:
    """2 before 13, though not as text."""
    return [(int(each), "") if each.isdigit() else (0, each) for each in re.split(r"(\d+)", text)]


def _lines(axes: Any, plot: Figures) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    for colour, label in zip(_COLOURS, sorted(plot["lines"], key=_natural), strict=False):
        axes.plot(*zip(*plot["lines"][label], strict=True), marker="o", markersize=3, linewidth=1.4, color=colour, label=label)  # fmt: skip
    if plot["log"]:
        axes.set_xscale("log")
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        axis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(plot["x"])
    axes.set_ylabel(plot["y"])
    axes.grid(alpha=0.25)


def _bars(axes: Any, plot: Figures) -> None:
    """Lying down: words are long."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    labels = sorted(plot["lines"], key=_natural)
    places = list(dict.fromkeys(at for label in labels for at, _ in plot["lines"][label]))
    width = 0.8 / len(labels)
    for number, label in enumerate(labels):
        points = plot["lines"][label]
        at = [places.index(each) + (number - (len(labels) - 1) / 2) * width for each, _ in points]
        drawn = axes.barh(at, [value for _, value in points], width * 0.95, color=_COLOURS[number % len(_COLOURS)], label=label)  # fmt: skip
        told = [f"{value:,.0f}" if value >= 100 else f"{value:.3g}" for _, value in points]
        axes.bar_label(drawn, told, fontsize=7, padding=2)
    axes.set_yticks(range(len(places)), [str(each).replace("\n", " ") for each in places])
    axes.invert_yaxis()
    if plot["log"]:
        axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(plot["y"])
    axes.set_ylabel(plot["x"])
    axes.margins(x=0.12)
    axes.grid(axis="x", alpha=0.25)


# --- the command


def stale() -> list[str]:
    """What is not as the figures and the commentary say."""
    wanted = dict(plots())
    wrong = [] if RESULTS.exists() and RESULTS.read_text() == compose() else [RESULTS]
    wrong += [
        file for file, plot in wanted.items() if not file.exists() or mark(plot) not in file.read_text()
    ]
    wrong += [file for file in sorted(PLOTS.glob("*.svg")) if file not in wanted]
    return [str(file.relative_to(ROOT)) for file in wrong]


def main() -> None:
    """Write, or check."""
    if sys.argv[1:] == ["check"]:
        if wrong := stale():
            sys.exit(f"not fresh: {', '.join(wrong)}; run python scripts/results.py")
        return
    PLOTS.mkdir(exist_ok=True)
    wanted = dict(plots())
    for file in set(PLOTS.glob("*.svg")) - wanted.keys():
        file.unlink()
    RESULTS.write_text(compose())
    for file, plot in wanted.items():
        file.write_text(draw(plot))
    print(f"{RESULTS.relative_to(ROOT)} and {len(wanted)} plots")


if __name__ == "__main__":
    main()
