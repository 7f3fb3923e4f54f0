"""transport._options: an option as text of a url's query or a variable -> the value it stands for, or a clear refusal."""

from __future__ import annotations

from headwater.config import parse_bool
from headwater.errors import ConfigError, TransportError


def number(name: str, value: object, *, least: float = 0) -> float:
    """A number that is not below `least`.

    >>> number("timeout", "3")
    3.0
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ConfigError(f"{name}: {value!r} is no number")
    try:
        made = float(value)
    except ValueError:
        raise ConfigError(f"{name}: {value!r} is no number") from None
    if not least <= made < float("inf"):
        raise ConfigError(f"{name}: {value!r} must be at least {least:g} and finite")
    return made


def whole(name: str, value: object, *, least: int = 0) -> int:
    """A whole number that is not below `least`."""
    made = number(name, value, least=least)
    if made != int(made):
        raise ConfigError(f"{name}: {value!r} is no whole number")
    return int(made)


def flag(name: str, value: object) -> bool:
    """A yes or no."""
    try:
        return parse_bool(value)
    except ConfigError as fault:
        raise ConfigError(f"{name}: {fault}") from None


def refuse_closed(closed: bool, transport: object) -> None:
    """Nothing is sent by what was closed."""
    if closed:
        raise TransportError(f"{transport!r} is closed: open another", retryable=False)
