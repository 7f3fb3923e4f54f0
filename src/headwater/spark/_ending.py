"""spark._ending: how the driver program ends -> what its captures are told of it.

An error that leaves the program reaches `sys.excepthook`. SystemExit does not, and at exit it is gone. But the outermost
frame remembers where it stopped: at a return, or in the middle of something that raised. In the second case, without a
call of the hook, the program was left by SystemExit; its code is that of the `sys.exit` (or `exit`, `quit`) that was
called from the same place, or the constant of a `raise SystemExit(3)` that stands there.
"""

from __future__ import annotations

import ast
import atexit
import dis
import functools
import linecache
import sys
import threading
from collections.abc import Callable
from typing import Any

from headwater.guard import guard

Tell = Callable[..., None]
"""Takes what happened, and `aborted`."""


class Ending:
    """Watches for the end of the program."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._outermost: Any = None
        self._left: tuple[int, Any] | None = None
        self._seen = False

    def watch(self, last: Callable[[], None]) -> None:
        """From now on; `last` is called at the very end, when all is told."""
        self._outermost = _outermost()
        self._wrap_exit()
        self._wrap_quitters()
        hook = sys.excepthook

        def fatal(kind: Any, error: Any, trace: Any) -> None:
            with guard("noting the program's end"):
                self._seen = True
                self._tell(f"{kind.__name__}: {error}", aborted=issubclass(kind, KeyboardInterrupt))
            hook(kind, error, trace)

        def ended() -> None:
            with guard("noting the exit code"):
                self._ended()
            last()

        sys.excepthook = fatal
        atexit.register(ended)

    def _wrap_exit(self) -> None:
        plain = sys.exit

        @functools.wraps(plain)
        def leave(status: Any = None, /) -> Any:
            self._note(status)
            plain(status)

        sys.exit = leave

    def _wrap_quitters(self) -> None:
        import _sitebuiltins

        kind: Any = _sitebuiltins.Quitter
        plain = kind.__call__

        @functools.wraps(plain)
        def leave(quitter: Any, code: Any = None) -> Any:
            self._note(code)
            plain(quitter, code)

        kind.__call__ = leave

    def _note(self, status: Any) -> None:
        if self._outermost is not None and threading.current_thread() is threading.main_thread():
            self._left = (self._outermost.f_lasti, status)

    def _ended(self) -> None:
        frame = self._outermost
        if frame is None or self._seen or frame.f_lasti < 0 or _runs(frame):
            return
        if dis.opname[frame.f_code.co_code[frame.f_lasti]].startswith("RETURN"):
            return
        status = self._left[1] if self._left and self._left[0] == frame.f_lasti else _constant(frame)
        if status is None or (isinstance(status, int) and status == 0):
            return
        if isinstance(status, int):
            self._tell(f"SystemExit: the program ended with exit code {int(status)}")
        else:
            self._tell(f"SystemExit: the program ended with exit code 1: {status}")


def _outermost() -> Any:
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None and frame.f_back is not None:
        frame = frame.f_back
    return frame


def _runs(frame: Any) -> bool:
    now: Any = sys._getframe()
    while now is not None:
        if now is frame:
            return True
        now = now.f_back
    return False


def _constant(frame: Any) -> Any:
    """The argument of the `raise SystemExit(…)` at which a frame stopped, where it is a constant."""
    text = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
    try:
        (statement,) = ast.parse(text[text.index("raise") :]).body
        call = statement.exc  # type: ignore[attr-defined]
        return ast.literal_eval(call.args[0]) if call.func.id == "SystemExit" else None
    except (SyntaxError, ValueError, AttributeError, IndexError):
        return None
