"""config._rooms: what a room's options are handed to -> those options, with their types and defaults."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from types import SimpleNamespace
from typing import Any, get_type_hints

_QUALIFIED = re.compile(r"\b(collections\.abc|typing)\.")


def option_lines(target: str, kinds: list[str]) -> Iterator[str]:
    """The options of what a target names, a line each, after the kinds of url that lead to it."""
    factory = imported(target)
    given = inspect.signature(factory).parameters
    for option, hint in parameters(factory).items():
        if option != "url":
            shown = hint.__name__ if isinstance(hint, type) else _QUALIFIED.sub("", str(hint))
            default = f"default `{given[option].default!r}`".replace(
                "default `<factory>`", "empty by default"
            )
            yield f"- {', '.join(kinds)}{' ' if kinds else ''}`{option}` ({shown}, {default})"


def parameters(factory: Callable[..., Any]) -> dict[str, Any]:
    """The parameters that have a default, with what they are declared to be."""
    of_fields = hasattr(factory, "__struct_fields__") or not isinstance(factory, type)
    declared = (factory if of_fields else vars(factory)["__init__"]).__annotations__
    scope = vars(sys.modules[factory.__module__])
    out = {}
    for parameter in inspect.signature(factory).parameters.values():
        if parameter.default is not parameter.empty:
            one = SimpleNamespace(__annotations__={parameter.name: declared.get(parameter.name, Any)})
            try:
                out.update(get_type_hints(one, scope))
            except NameError:  # imported for the type checker only
                out[parameter.name] = Any
    return out


def imported(target: str) -> Any:
    """What stands at `module:name`."""
    module, name = target.split(":")
    return getattr(import_module(module), name)
