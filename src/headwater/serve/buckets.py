"""serve.buckets: who asks, and how often -> whether now, or in how many seconds."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

_KEPT = 10_000


class Buckets:
    """A bucket of tokens for each caller: a request takes one, `rate` of them come back each second, up to `burst`.

    The longest unused ones are forgotten: they are full again by then, or a flood of addresses drowned them.

    >>> hour = [0.0]
    >>> few = Buckets(clock=lambda: hour[0])
    >>> few.take("me", 1, 2), few.take("me", 1, 2), few.take("me", 1, 2)
    (0.0, 0.0, 1.0)
    >>> hour[0] = 1.0
    >>> few.take("me", 1, 2)
    0.0
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, who: str, rate: float, burst: float = 0) -> float:
        """Take one token of `who`; 0 where there was one, else the seconds until there is. A rate of 0 has no end."""
        if rate <= 0:
            return 0.0
        size = max(1.0, burst or 2 * rate)
        now = self._clock()
        left, seen = self._left.pop(who, (size, now))
        left = min(size, left + max(0.0, now - seen) * rate)
        wait = 0.0 if left >= 1 else (1 - left) / rate
        self._left[who] = (left - 1 if wait == 0 else left, now)
        if len(self._left) > _KEPT:
            self._left.popitem(last=False)
        return wait
