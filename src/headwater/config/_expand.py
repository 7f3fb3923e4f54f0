"""config._expand: values with `${VAR}` in them -> the same with what the environment holds; a variable that is not set is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from headwater.errors import ConfigError

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


def expand(value: Any, environ: Mapping[str, str], path: str = "") -> Any:
    """The value, in tables and lists too; `${VAR:-other}` has a value of its own for a variable that is not set.

    >>> expand({"api_key": "${KEY}", "url": "http://${HOST:-localhost}:5000"}, {"KEY": "k"})
    {'api_key': 'k', 'url': 'http://localhost:5000'}
    """
    if isinstance(value, Mapping):
        return {
            name: expand(inner, environ, f"{path}.{name}" if path else str(name))
            for name, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [expand(inner, environ, f"{path}[{at}]") for at, inner in enumerate(value)]
    return (
        _VARIABLE.sub(lambda found: _held(found, environ, path), value) if isinstance(value, str) else value
    )


def _held(found: re.Match[str], environ: Mapping[str, str], path: str) -> str:
    name, other = found.groups()
    if environ.get(name):
        return environ[name]
    if other is None:
        raise ConfigError(f"{path}: ${{{name}}} is not set: set the variable {name}")
    return str(other)
