"""guard: a fault in our code or a user's -> one warning per cause and a count; the host goes on.

It stands where a host calls us, where we call a user's code and around each round of a loop. Everywhere
else errors rise.

    with guard("capturing a query"):
        ...

    @guard("reading the trace")
    def on_end(trace): ...          # answers None when it failed
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Callable
from functools import wraps
from inspect import iscoroutinefunction, isgeneratorfunction
from traceback import format_exception
from types import TracebackType
from typing import Any, ParamSpec, TypeVar, cast
from weakref import WeakSet

P = ParamSpec("P")
R = TypeVar("R")

MAX_CAUSES = 1000  # of a host that runs for months: what comes after is counted together
OTHER = "other causes"


def hide_userinfo(text: str) -> str:
    """Hide who logs in, and how, in every url of a text.

    >>> hide_userinfo("no answer from postgresql://me:secret@db/shop")
    'no answer from postgresql://***@db/shop'
    """
    return re.sub(r"(?<=://)[^\s/?#]*@", "***@", text)


class Guard:
    """Catches every `Exception`, never KeyboardInterrupt or SystemExit; warns once per cause and counts all.

    A cause is what was being done, the exception's type and the line that raised it. `scrub` hides secrets
    in what is logged.

    >>> quiet = Guard(logging.getLogger("doctest"))
    >>> with quiet("counting"):
    ...     raise ValueError("no")
    >>> list(quiet.counts().values())
    [1]
    """

    def __init__(
        self, logger: logging.Logger | None = None, scrub: Callable[[str], str] = hide_userinfo
    ) -> None:
        self._logger = logger or logging.getLogger("headwater")
        self._scrub = scrub
        self._counts: dict[str, int] = {}
        self._lock = threading.Lock()
        _GUARDS.add(self)

    def __call__(self, doing: str) -> Guarded:
        """A context manager, and a decorator, for one thing being done."""
        return Guarded(self, doing)

    def counts(self) -> dict[str, int]:
        """How often each cause came: "capturing a query: KeyError at plan.py:12" -> 3."""
        with self._lock:
            return dict(self._counts)

    def caught(self, doing: str, fault: BaseException) -> None:
        """Count one fault, and warn when its cause is new. Never raises."""
        try:
            kind = type(fault).__name__
            cause = f"{doing}: {kind} at {_place(fault)}"
            with self._lock:
                if cause not in self._counts and len(self._counts) >= MAX_CAUSES:
                    cause = OTHER
                count = self._counts[cause] = self._counts.get(cause, 0) + 1
            if count > 1:
                return
            self._logger.warning(
                "%s", self._scrub(f"{cause}: {_message(fault)} (logged once; further ones are counted)")
            )
            if self._logger.isEnabledFor(logging.DEBUG):
                self._logger.debug("%s", self._scrub("".join(format_exception(fault))))
        except Exception:  # noqa: BLE001 - a log handler or a scrubber that fails must not reach the host either
            return

    def _after_fork(self) -> None:
        self._lock = threading.Lock()  # a thread of the parent may have held it


class Guarded:
    """What `guard("doing this")` answers: `with` it, or decorate with it. After a `with`, `fault` is what was caught."""

    __slots__ = ("_doing", "_guard", "fault")

    def __init__(self, guard: Guard, doing: str) -> None:
        self._guard, self._doing = guard, doing
        self.fault: Exception | None = None

    def __enter__(self) -> Guarded:
        self.fault = None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(fault, Exception):
            return False
        self.fault = fault
        self._guard.caught(self._doing, fault)
        return True

    def __call__(self, function: Callable[P, R]) -> Callable[P, R | None]:
        """The function, answering None where it would have raised."""
        if isgeneratorfunction(function):  # its body runs later, outside of any guard set here
            raise TypeError(f"{function.__name__} is a generator: guard the loop that reads it")
        if iscoroutinefunction(function):

            @wraps(function)
            async def later(*args: P.args, **kwargs: P.kwargs) -> Any:
                with self:
                    return await function(*args, **kwargs)

            return cast("Callable[P, R | None]", later)

        @wraps(function)
        def now(*args: P.args, **kwargs: P.kwargs) -> R | None:
            with self:
                return function(*args, **kwargs)
            return None

        return now


def _place(fault: BaseException) -> str:
    trace = fault.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return (
        "unknown"
        if trace is None
        else f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}"
    )


def _message(fault: BaseException) -> str:
    try:
        return str(fault)
    except Exception:  # noqa: BLE001 - the message of a user's exception is a user's code
        return "its message cannot be read"


_GUARDS: WeakSet[Guard] = WeakSet()


def _renew() -> None:
    for each in list(_GUARDS):
        each._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)

guard = Guard()
"""The process's own guard."""
