"""pipeline._daemon: python -m headwater.pipeline._daemon -> Spark's daemon, whose workers begin with everything loaded.

Spark forks its Python workers from a daemon, and each then imports what its first task needs: this package and pyarrow, and
pandas too, which pyarrow looks for when it makes its first array. That is three seconds of a core for every worker, spent
before the first event. Here the daemon has it before it forks, and pyarrow is told that there is no pandas: so this is only
for a session in which nothing but the pipeline runs.
"""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType


class _NoPandas:
    """Finds no pandas."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> None:
        """Refuse the one, and leave any other to whoever comes next."""
        if name == "pandas":
            raise ModuleNotFoundError("not looked for: the pipeline needs none", name=name)


def _load() -> None:
    """What workers would import one by one; this package was loaded to come here."""
    import pyarrow.parquet  # noqa: F401 - what most of them write

    sys.meta_path.insert(0, _NoPandas)
    pa.array([0])  # looks for pandas now, in vain, and not again
    sys.meta_path.remove(_NoPandas)
    gc.collect()
    gc.freeze()  # a worker looks for garbage after each task: not in what it was born with


if __name__ == "__main__":
    from pyspark.daemon import manager

    _load()
    manager()  # type: ignore[no-untyped-call]
