"""incidents.suspects: runs upstream of what failed -> the same, ranked, each with what speaks against it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

_MOST = 10.0  # robust deviations count up to here: a constant history would make any change infinite


@dataclass(frozen=True, slots=True)
class Candidate:
    """A run upstream of what failed, and what is known of it."""

    run: str
    distance: int
    ended_at: int | None
    failed: bool = False
    error: str = ""
    schema: Sequence[str] = ()
    """What its output's schema broke."""
    rows: tuple[int, float] | None = None
    """Rows it wrote, and how far they are from those before, in robust deviations."""
    tests: int = 0
    """Tests that failed on what it wrote."""
    on_path: bool | None = None
    """Whether it makes the column that failed; None where that is not known."""
    told: Any = None


@dataclass(frozen=True, slots=True)
class Suspect:
    """A candidate with what speaks against it."""

    candidate: Candidate
    score: float
    reasons: tuple[str, ...]


def rank(candidates: Iterable[Candidate], at: int) -> list[Suspect]:
    """Candidates by what speaks against them: what went wrong weighs most, then nearness."""
    made = [_weigh(each, at) for each in candidates]
    return sorted(made, key=lambda each: (-each.score, each.candidate.distance, each.candidate.run))


def _weigh(one: Candidate, at: int) -> Suspect:
    score, reasons = 0.0, []
    if one.failed:
        score += 5
        reasons.append(f"failed: {one.error}" if one.error else "failed")
    if one.schema:
        score += 4
        reasons.append(f"changed the schema: {', '.join(one.schema)}")
    if one.tests:
        score += 3
        reasons.append(f"{one.tests} failed test{'s' if one.tests > 1 else ''} on what it wrote")
    if one.rows is not None and one.rows[1] > 3:
        score += min(one.rows[1], _MOST) * 0.4
        reasons.append(f"wrote {one.rows[0]:,} rows, unlike the runs before it")
    if one.on_path is not None:
        score += 2 if one.on_path else 0
        reasons.append("makes the column" if one.on_path else "does not make the column")
    if one.ended_at is not None:
        hours = max(0.0, (at - one.ended_at) / 3.6e9)
        score += 2 / (1 + hours / 6)
        reasons.append(f"ended {_ago(hours)} before")
    score += 2 / max(1, one.distance)
    reasons.append("wrote it" if one.distance == 1 else f"{one.distance} steps upstream")
    return Suspect(one, round(score, 3), tuple(reasons))


def _ago(hours: float) -> str:
    return (
        f"{hours * 60:.0f} min" if hours < 2 else f"{hours:.0f} h" if hours < 72 else f"{hours / 24:.0f} days"
    )
