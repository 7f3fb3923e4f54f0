"""errors: a fault -> one tree, each class saying whether to retry and how a command exits.

HeadwaterError
├── ConfigError        a setting is wrong: nothing was started                 exit 2
│   ├── UnknownName    a name that no table knows; lists those it does
│   └── NotInstalled   an extra is missing; the message is its pip line
├── EventError         an event is refused, with its JSON path and reason      exit 5
│   └── TooLarge       over a size or depth limit
├── NotFound           no such node, run or event                              exit 3
├── Ambiguous          several nodes answer to one name; lists them            exit 2
├── TransportError     an event could not be handed on; `retryable` tells      exit 4
└── StoreError         the store cannot be read or written; `retryable` tells  exit 1, 4 where its database is gone
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


class HeadwaterError(Exception):
    """Every error Headwater raises on purpose."""

    exit_code = 1
    retryable = False


class ConfigError(HeadwaterError, ValueError):
    """A setting, option or argument that cannot be used as it stands."""

    exit_code = 2


class UnknownName(ConfigError):
    """A name no table knows.

    >>> str(UnknownName("transport", "htp", ["http", "file"]))
    "unknown transport 'htp': did you mean 'http'? known: file, http"
    """

    def __init__(self, kind: str, name: object, known: Iterable[str]) -> None:
        from difflib import get_close_matches  # only now: an import that every process would pay for

        names = sorted(known)
        near = get_close_matches(str(name), names, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        super().__init__(f"unknown {kind} {name!r}: {hint}known: {', '.join(names) or 'none'}")
        self.kind, self.name, self.known = kind, name, names


class NotInstalled(ConfigError):
    """A library that an extra brings is missing; the message is the pip line."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs: pip install 'headwater[{extra}]'")
        self.extra = extra


class EventError(HeadwaterError, ValueError):
    """An event that is refused.

    >>> str(EventError("run.runId", "missing"))
    'run.runId: missing'
    """

    exit_code = 5

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}" if path else reason)
        self.path, self.reason = path, reason


class TooLarge(EventError):
    """An event over the size or nesting limit."""


class NotFound(HeadwaterError, LookupError):
    """Nothing in the store answers to that name."""

    exit_code = 3


class Ambiguous(HeadwaterError, LookupError):
    """Several nodes answer to one name."""

    exit_code = 2

    def __init__(self, name: str, candidates: Iterable[str]) -> None:
        self.name, self.candidates = name, list(candidates)
        listed = "\n  ".join(self.candidates)
        super().__init__(f"{name!r} could be any of these; name one of them whole:\n  {listed}")


class TransportError(HeadwaterError):
    """Events could not be handed on.

    `refused` tells which the receiver did not take, by position, and why; `pending` which positions may be sent
    again (None: nothing is known of single events); `retry_after` the seconds that the receiver asked for. `letters` are
    what was made of events and refused, with why: to be kept as they are. `cause` is a word that is the same each
    time: `unreachable`, `http_503`.
    """

    exit_code = 4

    def __init__(
        self,
        message: str,
        *,
        retryable: bool,
        refused: Mapping[int, str] | None = None,
        pending: Iterable[int] | None = None,
        retry_after: float | None = None,
        cause: str = "other",
        letters: Sequence[tuple[str, bytes]] = (),
    ) -> None:
        super().__init__(message)
        self.retryable, self.cause = retryable, cause
        self.letters = tuple(letters)
        self.refused = dict(refused or {})
        self.pending = None if pending is None else frozenset(pending)
        self.retry_after = retry_after


class StoreError(HeadwaterError):
    """The store cannot be opened, read or written.

    `retryable` tells whether the same may go well later: the database was restarted, another writer held the lock.
    `cause` is a word that is the same each time: `gone`, `locked`, `full`; `value` where it cannot hold what is written.
    """

    def __init__(self, message: str, *, retryable: bool = False, cause: str = "other") -> None:
        super().__init__(message)
        self.retryable, self.cause = retryable, cause
        if cause == "gone":
            self.exit_code = TransportError.exit_code
