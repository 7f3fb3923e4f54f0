"""transport.spool.breaker: failures and successes of a receiver -> when to try again, and with how much."""

from __future__ import annotations

import random

FIRST, LONGEST, ASKED = 0.5, 30.0, 3600.0  # seconds
WHOLE = 256  # events at a time after which all is well again


class Breaker:
    """Closed while all is well; open after a failure, for a time that doubles; then one event is the probe.

    After it, twice as many each time: so an event that makes any batch fail is come upon in a few steps.

    >>> breaker = Breaker(random.Random(1))
    >>> breaker.failed() < breaker.failed() < breaker.failed() <= 1.5 * LONGEST
    True
    >>> breaker.most(500), breaker.succeeded(), breaker.most(500)
    (1, None, 2)
    """

    def __init__(self, dice: random.Random | None = None) -> None:
        self._dice = dice or random.Random()
        self.failures = 0
        self._most: int | None = None  # no limit

    def failed(self, asked: float | None = None) -> float:
        """Seconds to wait: as the receiver asks, else jittered, so that many hosts do not return as one."""
        self.failures += 1
        if self.failures > 1 or self._most is not None:
            self._most = 1
        if asked is not None:
            return min(asked, ASKED)
        usual: float = min(LONGEST, FIRST * 2.0 ** min(self.failures - 1, 16))
        return self._dice.uniform(0.75, 1.25) * usual

    def succeeded(self) -> None:
        """It takes events: all is well."""
        self.failures = 0
        if self._most is not None:
            self._most = self._most * 2 if self._most < WHOLE else None

    def most(self, usual: int) -> int:
        """How many events to try with: a receiver that fails is not pushed megabytes to find out whether it still does."""
        return usual if self._most is None else min(usual, self._most)
