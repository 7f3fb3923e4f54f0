"""demo.tale: a store -> the way of the column that is wrong, who is to blame and what it breaks; held against what happened."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwater.errors import HeadwaterError
from headwater.query.blame import show_incident
from headwater.query.incidents import list_incidents
from headwater.query.lineage import lineage
from headwater.store import Store

FIELD = "lines[*].price"
"""The API's field that all of it is about."""
_DIRECT = "DIRECT"


@dataclass(frozen=True, slots=True)
class Hop:
    """A column on the way, and how the job before it made it of the column before."""

    dataset: str
    field: str
    job: str | None = None
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tale:
    """What the demo shows: a column's way from its source, and the incident that its test opened."""

    path: tuple[Hop, ...]
    incident: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Setting:
    """Where it happens: the shop's API and database, and the lake that is made of them."""

    api: str
    database: Path
    lake: Path

    @property
    def source(self) -> str:
        """The orders of the API."""
        return f"dataset:{self.api}:/v1/orders"

    def table(self, name: str) -> str:
        """A table of the lake."""
        return f"dataset:file:{self.lake}/{name}"

    def datasets(self, *, spark: bool) -> set[str]:
        """Every dataset that there is in the end: each is one node, whoever wrote it and whoever read it."""
        tables = ["customers", "products"]
        loaded = ["orders", "orders__lines", *tables]
        built = ["silver/sales", "gold/revenue", "gold/board_report"] if spark else []
        return {
            self.source,
            *(f"dataset:sqlite://{self.database}:{name}" for name in tables),
            *(self.table(f"raw/{name}") for name in loaded),
            *(self.table(name) for name in built),
        }


def tell(store: Store, setting: Setting, *, spark: bool) -> Tale:
    """Ask the store.

    Raises:
        HeadwaterError: what it says is not what happened.

    """
    table, column = ("gold/revenue", "revenue") if spark else ("raw/orders__lines", "price")
    target = setting.table(table)
    model = lineage(store, f"datasetField:{target.removeprefix('dataset:')}:{column}", direction="up")
    tale = Tale(
        _way(model["columns"], (setting.source, FIELD), (target, column)),
        _incident(store, target, column) if spark else None,
    )
    _hold(store, setting, tale, spark=spark)
    return tale


def _way(columns: list[dict[str, Any]], source: tuple[str, str], target: tuple[str, str]) -> tuple[Hop, ...]:
    """The shortest way on which values travel, from the source to the target; empty where there is none."""
    near: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for each in columns:
        if any(kind.startswith(_DIRECT) for kind in each["kinds"]):
            near.setdefault((each["from"]["dataset"], each["from"]["field"]), []).append(each)
    ways: dict[tuple[str, str], tuple[Hop, ...]] = {source: (Hop(*source),)}
    waiting = deque([source])
    while waiting and target not in ways:
        here = waiting.popleft()
        for each in near.get(here, ()):
            there = (each["to"]["dataset"], each["to"]["field"])
            if there not in ways:
                hop = Hop(*there, next(iter(each["jobs"]), None), tuple(each["kinds"]))
                ways[there] = (*ways[here], hop)
                waiting.append(there)
    return ways.get(target, ())


def _incident(store: Store, dataset: str, column: str) -> dict[str, Any] | None:
    """The open incident of a column's test."""
    for each in list_incidents(store, status="open")["incidents"]:
        if each.get("dataset") == dataset and each["column"] == column:
            return show_incident(store, int(each["id"]))
    return None


def _hold(store: Store, setting: Setting, tale: Tale, *, spark: bool) -> None:
    """The demo is a test too: what it shows must be so."""
    last = setting.table("gold/board_report" if spark else "raw/orders__lines")
    around = [lineage(store, last, direction="up"), lineage(store, setting.source, direction="down")]
    met = {each["id"] for graph in around for each in graph["nodes"] if each["type"] == "DATASET"}
    want = setting.datasets(spark=spark)
    way = ["raw/orders__lines", "silver/sales", "gold/revenue"] if spark else ["raw/orders__lines"]
    path = [setting.source, *(setting.table(name) for name in way)]
    claims = {
        f"the column comes from the API's field, by way of {', '.join(way)}": [
            hop.dataset for hop in tale.path
        ]
        == path,
        "each dataset is one node, and there is no other": met == want,
    }
    if spark:
        found = tale.incident or {}
        blamed, hit = found.get("blamed") or {}, found.get("impact", {}).get("datasets", ())
        claims |= {
            "the failed test opened an incident": bool(found),
            "the run is blamed that wrote the table": bool(blamed and tale.path)
            and blamed["job"] == tale.path[-1].job
            and blamed["state"] == "COMPLETE",
            "the board's report breaks with it": setting.table("gold/board_report")
            in {each["id"] for each in hit},
        }
    wrong = [claim for claim, holds in claims.items() if not holds]
    if wrong:
        seen = f"datasets that are missing: {sorted(want - met)}, that are too many: {sorted(met - want)}"
        raise HeadwaterError(f"the demo does not show what happened: {'; '.join(wrong)} ({seen})")
