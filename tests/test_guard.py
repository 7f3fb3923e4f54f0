from __future__ import annotations

import asyncio
import inspect
import logging
import os
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import guard as module
from headwater.guard import OTHER, Guard, hide_userinfo


class Heard(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[int, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append((record.levelno, record.getMessage()))


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def guard(heard: Heard) -> Guard:
    logger = logging.Logger("test", logging.WARNING)
    logger.addHandler(heard)
    return Guard(logger)


def fail(message: str = "boom") -> None:
    raise ValueError(message)


def test_a_fault_is_caught_and_told_once_and_counted_always(guard: Guard, heard: Heard) -> None:
    for n in range(5):
        with guard("capturing a query"):
            fail(f"boom {n}")
    ((level, line),) = heard.lines
    assert level == logging.WARNING
    assert line.startswith("capturing a query: ValueError at test_guard.py:")
    assert "boom 0" in line
    assert list(guard.counts().values()) == [5]


def test_each_cause_is_told(guard: Guard, heard: Heard) -> None:
    with guard("a"):
        fail()
    with guard("b"):  # something else was done
        fail()
    with guard("a"):  # at another line
        raise ValueError("boom")
    with guard("a"):  # of another type
        raise KeyError("boom")
    assert len(heard.lines) == len(guard.counts()) == 4


def test_nothing_raised_is_nothing_counted(guard: Guard, heard: Heard) -> None:
    with guard("a"):
        pass
    assert (guard.counts(), heard.lines) == ({}, [])


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError])
def test_what_ends_the_host_passes(guard: Guard, kind: type[BaseException]) -> None:
    with pytest.raises(kind), guard("a"):
        raise kind
    assert guard.counts() == {}


def test_a_decorated_function_keeps_its_signature_and_answers_none_on_a_fault(guard: Guard) -> None:
    @guard("dividing")
    def divide(a: int, /, b: int = 2, *, c: int = 0) -> float:
        """Divide."""
        return a / b + c

    assert divide(4, c=1) == 3.0
    assert divide(4, 0) is None
    assert (divide.__name__, divide.__doc__) == ("divide", "Divide.")
    assert str(inspect.signature(divide)) == "(a: 'int', /, b: 'int' = 2, *, c: 'int' = 0) -> 'float'"
    assert list(guard.counts().values()) == [1]


def test_a_coroutine_is_guarded_while_it_runs(guard: Guard) -> None:
    @guard("waiting")
    async def wait(value: int) -> int:
        await asyncio.sleep(0)
        return 1 // value

    assert inspect.iscoroutinefunction(wait)
    assert asyncio.run(wait(1)) == 1
    assert asyncio.run(wait(0)) is None
    assert list(guard.counts().values()) == [1]


def test_a_generator_is_refused_when_written(guard: Guard) -> None:
    with pytest.raises(TypeError, match="guard the loop"):

        @guard("a")
        def items() -> Any:
            yield 1


class HostileError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no message")

    __repr__ = __str__


def test_an_exception_that_cannot_be_read_is_told_without_its_message(guard: Guard, heard: Heard) -> None:
    with guard("a"):
        raise HostileError
    assert "its message cannot be read" in heard.lines[0][1]


def test_a_handler_that_fails_does_not_reach_the_host(
    guard: Guard, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heard, "emit", lambda record: fail())
    with guard("a"):
        fail()
    assert list(guard.counts().values()) == [1]


def test_a_scrubber_that_fails_tells_nothing_and_does_not_reach_the_host(heard: Heard) -> None:
    logger = logging.Logger("test")
    logger.addHandler(heard)
    mine = Guard(logger, scrub=lambda text: 1 / 0)  # type: ignore[arg-type, return-value]
    with mine("a"):
        fail()
    assert (list(mine.counts().values()), heard.lines) == ([1], [])


def test_a_guard_inside_its_own_log_handler_ends(
    guard: Guard, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    def emit(record: logging.LogRecord) -> None:
        with guard("logging"):
            fail()

    monkeypatch.setattr(heard, "emit", emit)
    with guard("a"):
        fail()
    assert sorted(guard.counts().values()) == [1, 2]


def test_secrets_are_scrubbed_also_from_the_traceback(guard: Guard, heard: Heard) -> None:
    guard._logger.setLevel(logging.DEBUG)
    with guard("a"):
        raise ValueError("no answer from postgresql://me:hunter2@db/x")
    assert [level for level, _ in heard.lines] == [logging.WARNING, logging.DEBUG]
    assert "Traceback" in heard.lines[1][1]
    assert all("://***@db/x" in line and "hunter2" not in line for _, line in heard.lines)


def test_a_scrubber_of_ones_own(heard: Heard) -> None:
    logger = logging.Logger("test")
    logger.addHandler(heard)
    with Guard(logger, scrub=lambda text: text.replace("boom", "***"))("a"):
        fail()
    assert "***" in heard.lines[0][1]
    assert "boom" not in heard.lines[0][1]


@given(
    user=st.text(st.characters(exclude_characters="/?# ", exclude_categories=["Z", "C"]), min_size=8),
    tail=st.sampled_from(["h", "h/p", "h/p@q"]),
)
def test_userinfo_is_hidden_whatever_it_holds(user: str, tail: str) -> None:
    assert hide_userinfo(f"see http://{user}@{tail} now") == f"see http://***@{tail} now"


def test_causes_without_end_are_counted_together(
    guard: Guard, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_CAUSES", 3)
    for n in range(10):
        with guard(f"file {n}"):
            fail()
    assert len(guard.counts()) == 4
    assert guard.counts()[OTHER] == 7
    assert len(heard.lines) == 4


def test_threads_count_exactly_and_tell_once(guard: Guard, heard: Heard) -> None:
    start = threading.Barrier(8)

    def work(_: int) -> None:
        start.wait()
        for _ in range(500):
            with guard("a"):
                fail()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert list(guard.counts().values()) == [4000]
    assert len(heard.lines) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_forked_while_the_lock_was_held_goes_on(guard: Guard) -> None:
    with guard._lock, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
        if child == 0:
            with guard("a"):
                fail()
            os._exit(0 if list(guard.counts().values()) == [1] else 1)
    timer = threading.Timer(10, os.kill, (child, 9))  # a lock that is never free would hang the tests
    timer.start()
    status = os.waitpid(child, 0)[1]
    timer.cancel()
    timer.join()
    assert status == 0


def test_a_nested_fault_is_placed_where_it_was_raised(guard: Guard) -> None:
    with guard("a"):
        fail()
    line = inspect.getsourcelines(fail)[1] + 1
    assert list(guard.counts()) == [f"a: ValueError at test_guard.py:{line}"]
