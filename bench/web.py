"""web: graphs of growing size -> how long the web UI takes to lay them out and to paint them, and how it moves, beside its peers.

    python bench/web.py [--full] [--sizes 200,2000] [--repeats 1] [--limit 120] [--json FILE]

--full: 200, 2,000 and 5,000, three times

Beside dagre and elkjs (layout) and @xyflow/react (drawing) in the same run, in Chromium without a GPU, each in a fresh
process. xyflow is given the places of our layout, so that drawing alone is compared, and in other rows those of dagre and
of elkjs, as it would be used. An empty page is what nothing can be faster than. Crossings are those of straight lines,
counted alike for all. Needs Node and Chromium.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import subprocess
from pathlib import Path
from typing import Any

from noting import Notes

ROOT = Path(__file__).parents[1]
HERE = ROOT / "bench" / "web"
BUILT = ROOT / "src" / "headwater" / "serve" / "built" / "assets"

Row = dict[str, Any]
PAINTERS = (
    "ours",
    "xyflow",
    "xyflow, visible only",
    "xyflow with dagre",
    "xyflow with elkjs",
    "an empty page",
)


def build() -> None:
    subprocess.run(["make", "--silent", "web"], cwd=ROOT, check=True)
    if not (HERE / "node_modules").is_dir():
        subprocess.run(
            ["npm", "install", "--silent", "--no-save", "--no-audit", "--no-fund"], cwd=HERE, check=True
        )
    vite = ROOT / "web" / "node_modules" / ".bin" / "vite"
    subprocess.run([vite, "build", "--logLevel", "error"], cwd=HERE, check=True, stderr=subprocess.DEVNULL)


def measure(sizes: list[int], limit: int, repeats: int) -> list[Row]:
    command = ["node", HERE / "run.mjs", ",".join(map(str, sizes)), str(limit), str(repeats)]
    rows: list[Row] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        for line in running.stdout:
            rows.append(json.loads(line))
            print(f"   {line.strip()[:150]}", flush=True)
    return rows


def middle(rows: list[Row], key: str) -> float | None:
    found = [row[key] for row in rows if key in row]
    return statistics.median(found) if found else None


def seconds(value: float | None, limit: int) -> str:
    return f"> {limit}" if value is None else f"{value:.2f}"


def times(value: float | None, ours: float | None) -> str:
    return "" if value is None or not ours else f" ({value / ours:.1f} times)"


def tell(rows: list[Row], sizes: list[int], limit: int, notes: Notes) -> None:
    def of(what: str, who: str, n: int, key: str) -> float | None:
        return middle([r for r in rows if (r["what"], r["who"], r["n"]) == (what, who, n)], key)

    table: list[tuple[str, ...]] = []
    lines: dict[str, list[tuple[int, float]]] = {}
    for n in sizes:
        ours = of("layout", "ours", n, "seconds")
        for who in ("ours", "dagre", "elkjs"):
            took, crossed = of("layout", who, n, "seconds"), of("layout", who, n, "crossings")
            ratio = "" if who == "ours" else times(took, ours)
            table.append((f"{n:,}", who, f"{seconds(took, limit)}{ratio}", "" if crossed is None else f"{crossed:,.0f}"))  # fmt: skip
            if who != "ours" and took and ours:
                notes.ratio(who, f"layout of {n:,} nodes", took / ours)
    notes.table("layout", ("nodes", "layout", "seconds", "crossings"), table)
    table = []
    for n in sizes:
        ours = of("page", "ours", n, "painted")
        for who in PAINTERS:
            painted = of("page", who, n, "painted")
            far, near, elements = (of("page", who, n, key) for key in ("far", "near", "elements"))
            ratio = "" if who in ("ours", "an empty page") else times(painted, ours)
            rest = ("" if each is None else f"{each:,.0f}" for each in (far, near, elements))
            table.append((f"{n:,}", who, f"{seconds(painted, limit)}{ratio}", *rest))
            if painted:
                lines.setdefault(who, []).append((n, painted))
            if who == "xyflow" and painted and ours:
                notes.ratio(who, f"first paint of {n:,} nodes", painted / ours)
    notes.table("drawing", ("nodes", "drawn by", "first paint, s", "frames/s far", "frames/s near", "elements"), table)  # fmt: skip
    most = max(sizes)
    first, theirs = of("page", "ours", most, "painted"), of("page", "xyflow", most, "painted")
    if first and theirs:
        notes.aim(f"first paint of {most:,} nodes 5 times faster than xyflow's", f"{theirs / first:.1f} times", theirs >= 5 * first)  # fmt: skip
    far, slow = of("page", "ours", most, "far"), of("page", "xyflow", most, "far")
    if far and slow:
        notes.aim(f"10 times xyflow's frame rate in the far view of {most:,}", f"{far / slow:.0f} times", far >= 10 * slow)  # fmt: skip
    near = {n: of("page", "ours", n, "near") or 0 for n in sizes}
    notes.aim("30 frames a second near", ", ".join(f"{each:.0f} at {n:,}" for n, each in near.items()), min(near.values()) >= 30)  # fmt: skip
    notes.plot("paint", "line", "Web: seconds to the first picture", "nodes", "s", lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--sizes")
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--limit", type=int, default=120, help="seconds that one page may take")
    notes = Notes("web")
    given = parser.parse_args()
    sizes = [
        int(each) for each in (given.sizes or ("200,2000,5000" if given.full else "200,2000")).split(",")
    ]
    build()
    packed = {each.name: len(gzip.compress(each.read_bytes(), 9)) for each in BUILT.iterdir()}
    scripts = sum(size for name, size in packed.items() if name.endswith(".js"))
    notes.say(f"First load: {scripts / 1000:.1f} KB of script, packed; {sum(packed.values()) / 1000:.1f} KB in all.")  # fmt: skip
    notes.aim("80 KB of script at the first load", f"{scripts / 1000:.1f} KB", scripts <= 80_000)
    rows = measure(sizes, given.limit, given.repeats or (3 if given.full else 1))
    tell(rows, sizes, given.limit, notes)
    notes.keep()


if __name__ == "__main__":
    main()
