"""transport.spool.report: a place -> what waits there, what is dead, and who drains it, as a JSON-ready model."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

from headwater.transport.spool import backlog, dead, drainer
from headwater.transport.spool.place import Place
from headwater.transport.spool.segment import EVENT, read


def report(place: Place, progress: Callable[[int], None] = lambda read_bytes: None) -> dict[str, Any]:
    """The state of a destination; every event is counted, so this reads all that waits."""
    done = backlog.cursor(place)
    events = size = 0
    oldest = 0.0
    for segment, waits, age in backlog.waiting(place):
        here = sum(1 for each in read(segment.path, done.get(segment.stem, 0)) if each.kind == EVENT)
        events, size = events + here, size + waits
        oldest = max(oldest, age) if here else oldest
        progress(waits)
    return {
        "destination": place.shown(),
        "folder": str(place.folder),
        "waiting": {"events": events, "bytes": size, "oldest_seconds": round(oldest)},
        "wills": sum(1 for each in (place / "wills").iterdir() if each.suffix == ".will"),
        "dead": {"events": sum(1 for _ in dead.letters(place)), "lost": dead.lost(place)},
        "drainer": _drainer(place),
    }


def _drainer(place: Place) -> dict[str, Any]:
    told = drainer.state(place)
    if told is None:
        return {"alive": False, "doing": "never started"}
    return {
        "alive": drainer.drained(place),
        "doing": told.doing,
        "pid": told.writer.pid,
        "delivered": told.delivered,
        "dead": told.dead,
        "torn": told.torn,
        "fault": told.fault,
        "cause": told.cause,
        "failing_since": _iso(told.failing_since),
        "rests_until": _iso(told.rests_until),
    }


def _iso(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")


def in_words(model: dict[str, Any]) -> str:
    """A report in one line, the cause of trouble included."""
    waits, buried, works = model["waiting"], model["dead"], model["drainer"]
    told = [f"{waits['events']:,} events wait ({waits['bytes']:,} bytes)"]
    if waits["events"]:
        told.append(f"the oldest for {waits['oldest_seconds']:,} s")
    told.append(f"{buried['events']:,} dead letters")
    if buried["lost"]:
        told.append(f"{buried['lost']:,} lost for want of room")
    died = not works["alive"] and works["doing"] in ("draining", "waiting")
    told.append(f"drainer {'died' if died else works['doing']}")
    if works.get("rests_until"):
        told.append(f"left alone until {works['rests_until']}, as it asks")
    if works.get("fault"):
        told.append(works["fault"].splitlines()[0])
    return f"{model['destination']} ({model['folder'].rpartition('/')[2]}): " + ", ".join(told)
