"""docs_sizing: the figures of bench/RESULTS.md -> the table of docs/operating.md that says what a server of a size takes."""

from __future__ import annotations

import re
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "bench" / "RESULTS.md"
DAY = 1_000_000
"""Events a day, for what a day takes on disk."""
HOW = ("1 client, one a request", "4 clients, one a request", "1 client, batches of 100")


def measured(text: str | None = None) -> dict[tuple[str, str], tuple[int, str, int | None]]:
    """(size in KB, how) -> events a second, CPU-seconds per 1,000, bytes on disk per KB of event."""
    text = RESULTS.read_text(encoding="utf-8") if text is None else text
    part = text[text.index("## Backend\n") :].partition("\n## ")[0]
    found: dict[tuple[str, str], tuple[int, str, int | None]] = {}
    for size, rows in re.findall(
        r"\| events of ([\d.]+) KB \| events/s[^\n]+\n\|[-|]+\n((?:\|[^\n]+\n)+)", part
    ):
        for name, rate, cpu, more in re.findall(r"\| ([^|]+) \| ([\d,]+) \| ([\d.]+) \|([^\n]*)", rows):
            disk = re.search(r"(\d+) bytes", more)
            found[size, name] = (
                int(rate.replace(",", "")),
                cpu,
                int(disk[1]) if disk else None,
            )
    if not found:
        raise SystemExit("bench/RESULTS.md: no tables of the backend bench")
    return found


def sizing() -> str:
    """The table; what a day takes is reckoned from the bytes per KB."""
    told = measured()
    lines = [
        "| store, events | one a request, 1 client | 4 clients | batches of 100 | disk for a million events |",
        "|---|---|---|---|---|",
    ]
    for store in ("sqlite", "postgres"):
        for size in sorted({size for size, _ in told}, key=float):
            one, four, batches = (told[size, f"{store}, {how}"] for how in HOW)
            gigabytes = DAY * float(size) * (batches[2] or 0) / 1e9
            rates = " | ".join(f"{each[0]:,}/s, {each[1]} CPU-s per 1,000" for each in (one, four, batches))
            lines.append(f"| {store}, {size} KB | {rates} | {gigabytes:.1f} GB |")
    return "\n".join(lines) + "\n"
