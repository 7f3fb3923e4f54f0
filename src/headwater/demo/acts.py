"""demo.acts: a store and its server -> the demo played to its end, act by act, and what there is to tell of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from headwater.demo import shop
from headwater.demo.means import Means
from headwater.demo.place import Place, Tick
from headwater.demo.tale import Setting, Tale, tell
from headwater.store import Store

Curtain = Callable[[str], AbstractContextManager[Tick]]
"""Opens for an act, whose name it is told, and closes after it; what it gives is called while the act goes on."""
NAMES = {
    "load_shop": "dlt loads an HTTP API and a SQLite database into Parquet files",
    "build_revenue": "Spark cleans and joins them, a UDF reads prices, ROLLUP sums them up",
    "check_revenue": "a test looks at the revenue, and says what it found",
}
"""Each program, and what it does."""


def play(
    store: Store,
    folder: Path,
    server: str,
    means: Means,
    curtain: Curtain,
    environ: Mapping[str, str] = os.environ,
) -> Tale:
    """Play what can be played: all of it, or where Spark is missing its first act.

    Raises:
        HeadwaterError: a program failed, or the store does not tell what happened.

    """
    place = Place(folder, server, environ)
    database, lake = folder / "shop.db", str(place.lake)

    def act(program: str, *arguments: str, captured: bool = True) -> None:
        with curtain(NAMES[program]) as tick:
            place.run(program, *arguments, captured=captured, tick=tick)
            place.delivered(tick)

    try:
        with shop.open_api(shop.orders()) as api:
            act("load_shop", api, shop.make_database(database), lake)
        if means.spark is None:
            act("build_revenue", lake)
            act("check_revenue", lake, captured=False)
        return tell(store, Setting(api, database, place.lake), spark=means.spark is None)
    finally:
        place.leave()
