"""config: arguments, environment, headwater.toml, openlineage.yml -> one frozen Settings that knows where each value came from.

`SETTINGS` and `ROOMS` (in `_table`) are the whole truth: parsing, names in the environment, docs/settings.md
and `headwater config show` follow from them. To add a setting: one line in SETTINGS, one field in Settings.
To add a room: one line in ROOMS; the parameters with a default of the callable named there are its options.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from headwater import plugins
from headwater.config import _table, openlineage
from headwater.config._expand import expand
from headwater.config._files import find, home_dir, label, read, user_dir
from headwater.config._rooms import imported, option_lines, parameters
from headwater.config._shown import shown
from headwater.config._table import ROOMS, SETTINGS, Room, Setting, parse_bool, parse_text
from headwater.errors import ConfigError, UnknownName

__all__ = [
    "ROOMS",
    "SETTINGS",
    "Layer",
    "Room",
    "Setting",
    "Settings",
    "check_file",
    "check_room",
    "check_rooms",
    "describe",
    "document",
    "expand",
    "layer",
    "load",
    "options",
    "parse_bool",
]

Layer = dict[str, tuple[Any, str]]
"""what one source says: "namespace" or "serve.port" -> (value, origin)"""

ARGUMENT, DEFAULT = "argument", "default"


_CORE = {setting.name: setting for setting in SETTINGS}
_SERVERS = ("http", "https", "datahub+rest")  # one host and port; what others name, they read themselves
_OWN_URL = ("store", "transport")  # options of these belong to the url they are written with


@dataclass(frozen=True, slots=True, repr=False)
class Settings:
    """What was decided, and where each value came from. Its repr hides secrets."""

    namespace: str
    store: str
    transport: str | None
    spool: Path
    url: str | None
    api_key: str | None
    disabled: bool
    log_level: str
    rooms: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)
    strays: tuple[str, ...] = ()
    """HEADWATER_… variables that are no setting: often a typing error, so `config show` tells them"""

    def __repr__(self) -> str:
        shown = ", ".join("{name}={value!r}".format_map(row) for row in describe(self))
        return f"Settings({shown})"


def load(
    arguments: Mapping[str, Any] | None = None,
    *,
    between: Sequence[Layer] = (),
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    home: Path | None = None,
) -> Settings:
    """Read every source once; the first that names a value wins.

    `between` holds layers made by `layer`, placed between the arguments and the environment.

    >>> load({"namespace": "shop", "serve": {"port": 5001}}, environ={}).rooms["serve"]["port"]
    5001
    """
    environ = os.environ if environ is None else environ
    cwd, home = cwd or Path.cwd(), home or home_dir(environ)
    problems: list[str] = []
    layers = [layer(arguments or {}, ARGUMENT, problems), *between]
    layers.append(_headwater_env(environ, problems))
    layers.append(_openlineage_env(environ, cwd, problems, wanted=not _named(layers)))
    places = (cwd / "headwater.toml", user_dir(environ, "CONFIG", home) / "headwater.toml")
    if ours := find(environ, "HEADWATER_CONFIG", cwd, places):
        layers.append(layer(read(ours, problems), label(ours, cwd), problems))
    places = (cwd / "openlineage.yml", home / ".openlineage" / "openlineage.yml")
    # a file of another tool is not even opened when it has no say
    if not _named(layers) and (theirs := find(environ, "OPENLINEAGE_CONFIG", cwd, places)):
        layers.append(
            _translate(
                lambda: read(theirs, problems, theirs=True), label(theirs, cwd), cwd, problems, environ
            )
        )
    strays = tuple(
        sorted(n for n in environ if n.startswith("HEADWATER_") and "__" not in n and n not in _env_names())
    )
    settings = _resolve(layers, user_dir(environ, "STATE", home), strays, problems)
    _raise(problems)
    return settings


def layer(values: Mapping[str, Any], origin: str, problems: list[str] | None = None) -> Layer:
    """One source as a layer: tables opened, unknown names refused with the nearest known one.

    >>> layer({"serve": {"port": 5001}}, "headwater.toml")
    {'serve.port': (5001, 'headwater.toml')}
    """
    found: list[str] = [] if problems is None else problems
    out: Layer = {}
    for name, value in values.items():
        if value is None:  # an argument that was not given
            continue
        if name in ROOMS and isinstance(value, Mapping):
            out.update(
                {f"{name}.{option}": (given, origin) for option, given in value.items() if given is not None}
            )
        elif name in _CORE:
            out[name] = (value, origin)
        elif name in ROOMS:
            found.append(f"{origin}: {name}: is a table of options, not {value!r}")
        else:
            path = f"{name}.{next(iter(value))}" if isinstance(value, Mapping) and value else name
            found.append(f"{origin}: {path}: {UnknownName('setting', name, {*_CORE, *ROOMS})}")
    if problems is None:
        _raise(found)
    return _lift_urls(out)


def check_room(settings: Settings, room: str, factory: Callable[..., Any]) -> dict[str, Any]:
    """The room's options, made into the types that `factory` declares; unknown ones refused.

    >>> def create_app(store: object, *, read_only: bool = False) -> None: ...
    >>> check_room(load({"serve": {"read_only": "yes"}}, environ={}), "serve", create_app)
    {'read_only': True}
    """
    kinds = parameters(factory)
    checked, problems = {}, []
    for name, value in settings.rooms.get(room, {}).items():
        origin = settings.origins.get(f"{room}.{name}", DEFAULT)
        try:
            if name not in kinds:
                raise UnknownName("option", name, kinds)
            checked[name] = _convert(kinds[name], value, origin)
        except (ConfigError, msgspec.ValidationError) as fault:
            problems.append(f"{origin}: {room}.{name}: {fault}")
    _raise(problems)
    return checked


def options(settings: Settings, room: str) -> dict[str, Any]:
    """The room's options, checked by the callable that ROOMS names for it, which is imported for that.

    >>> options(load({"ingest": {"max_bytes": "1000"}}, environ={}), "ingest")
    {'max_bytes': 1000}
    """
    entry, target = ROOMS[room], ROOMS[room].target
    given = settings.rooms.get(room, {})
    if entry.table and "type" not in given:  # a type of one's own checks its options when it is built
        scheme = str(getattr(settings, room)).partition(":")[0]
        target = imported(entry.table).get(scheme, (None,))[0]
    return check_room(settings, room, imported(target)) if target and given else dict(given)


def check_rooms(settings: Settings) -> list[str]:
    """Import every room that was given options or a url and check them; what is wrong, one line each."""
    problems: list[str] = []
    for room in ROOMS:
        try:
            if room in settings.rooms:
                _furnish(room, options(settings, room))
            _look_up(settings, room)
        except ModuleNotFoundError as fault:
            problems.append(f"{room}: cannot be checked here: {fault}")
        except ConfigError as fault:
            problems.extend(str(fault).splitlines())
    return problems


def _furnish(room: str, checked: Mapping[str, Any]) -> None:
    """Make what the options are for, where that only holds them: it knows which values it can use."""
    target = ROOMS[room].target
    made = imported(target) if target else None
    if isinstance(made, type) and (dataclasses.is_dataclass(made) or issubclass(made, msgspec.Struct)):
        try:
            made(**checked)
        except TypeError as fault:  # one that has no default
            raise ConfigError(f"{room}: {str(fault).partition(' ')[2]}") from None


def _look_up(settings: Settings, room: str) -> None:
    """Refuse a url that nothing here answers to, or whose host cannot be read."""
    table = ROOMS[room].table
    if not table or settings.origins.get(room, DEFAULT) == DEFAULT:
        return
    url = str(getattr(settings, room))
    kind = settings.rooms.get(room, {}).get("type", url.partition(":")[0])
    if kind not in (known := plugins.known(room, imported(table))):
        raise ConfigError(f"{settings.origins[room]}: {room}: {UnknownName('kind of url', kind, known)}")
    try:
        parts = plugins.split(room, url)
        if parts.scheme in _SERVERS:
            plugins.require_host(parts, f"{parts.scheme}://host:port")
    except ConfigError as fault:
        told = str(fault).removeprefix("url: ").removeprefix(f"{room}: ")
        raise ConfigError(f"{settings.origins[room]}: {room}: {told}") from None


def check_file(path: Path) -> list[str]:
    """What is wrong in a headwater.toml or openlineage.yml, one line each; nothing is opened or sent."""
    problems: list[str] = []
    values = read(path, problems)
    if path.suffix in (".yml", ".yaml"):
        made = _translate(lambda: values, path.name, Path.cwd(), problems, os.environ)
    else:
        made = layer(values, path.name, problems)
    settings = _resolve([made], Path(), (), problems)
    return problems + check_rooms(settings)


def describe(settings: Settings) -> list[dict[str, Any]]:
    """A row per setting and given option: name, value (secrets as ***), origin, help."""
    rows = [
        {
            "name": s.name,
            "value": shown(s.name, getattr(settings, s.name), s.secret),
            "origin": settings.origins.get(s.name, DEFAULT),
            "help": s.help,
        }
        for s in SETTINGS
    ]
    for room, options in settings.rooms.items():
        for option, value in options.items():
            key = f"{room}.{option}"
            rows.append(
                {
                    "name": key,
                    "value": shown(option, value),
                    "origin": settings.origins.get(key, DEFAULT),
                    "help": ROOMS[room].help,
                }
            )
    return rows


def document() -> str:
    """The reference part of docs/settings.md, with the options of every room."""
    told: dict[str, str] = {}
    for name, room in ROOMS.items():
        kinds: dict[str, list[str]] = {room.target: []} if room.target else {}
        for kind, (target, _) in sorted(imported(room.table).items()) if room.table else ():
            kinds.setdefault(target, []).append(f"`{kind}:`")
        told[name] = "\n".join(
            line for target, names in kinds.items() for line in option_lines(target, names)
        )
    return _table.document(told)


def _resolve(layers: Iterable[Layer], state: Path, strays: tuple[str, ...], problems: list[str]) -> Settings:
    core: dict[str, Any] = {s.name: s.default for s in SETTINGS}
    core.update(store=f"sqlite:///{state / 'headwater.db'}", spool=state / "spool")
    rooms: dict[str, dict[str, Any]] = {}
    origins = dict.fromkeys(core, DEFAULT)
    closed: set[str] = set()
    seen: set[str] = set()
    for values in layers:
        for key, (value, origin) in values.items():
            room, _, option = key.partition(".")
            if key in seen or (option and room in closed):
                continue
            seen.add(key)
            origins[key] = origin
            if option:
                rooms.setdefault(room, {})[option] = value
                continue
            try:
                core[key] = _accept(_CORE[key], value, origin)
            except (ConfigError, msgspec.ValidationError) as fault:
                problems.append(f"{origin}: {key}: {fault}")
        closed.update(room for room in _OWN_URL if room in values)  # a timeout of http is nothing to a file
    return Settings(**core, rooms=rooms, origins=origins, strays=strays)


def _accept(setting: Setting, value: Any, origin: str) -> Any:
    value = _convert(setting.kind, value, origin)
    if setting.choices:
        value = value.upper()
        if value not in setting.choices:
            raise UnknownName("value", value, setting.choices)
    return value


def _convert(kind: Any, value: Any, origin: str) -> Any:
    """Text of a variable or an argument is read as what it should be; a file has types of its own."""
    if kind is Path and isinstance(value, str | Path):
        return Path(value).expanduser()
    text = isinstance(value, str) and (
        origin == ARGUMENT or origin.startswith(("HEADWATER_", "OPENLINEAGE_"))
    )
    if text and kind is bool:
        return parse_bool(value)
    try:
        return msgspec.convert(value, kind, strict=not text)
    except TypeError:  # a kind that no text or table can be read as: the room decides
        return value


def _lift_urls(values: Layer) -> Layer:
    """`[transport] url = …` or `type = …` is the setting `transport` itself, `[spool] dir = …` is `spool`."""
    if (folder := values.pop("spool.dir", None)) is not None:
        values["spool"] = folder
    for room in _OWN_URL:
        kind, url = values.get(f"{room}.type"), values.pop(f"{room}.url", None)
        if url is not None:
            values[room] = url
        elif kind is not None and room not in values:
            values[room] = (f"{kind[0]}:", kind[1])
        if kind is not None and str(values[room][0]).startswith(f"{kind[0]}:"):
            del values[f"{room}.type"]  # says what the url says
    return values


def _headwater_env(environ: Mapping[str, str], problems: list[str]) -> Layer:
    out = _core_env(environ, "HEADWATER_")
    for name, text in environ.items():
        room, separator, option = name.removeprefix("HEADWATER_").lower().partition("__")
        if not name.startswith("HEADWATER_") or not separator or not text:
            continue
        if room in ROOMS:
            out[f"{room}.{option}"] = (parse_text(text), name)
        else:
            problems.append(f"{name}: {UnknownName('room', room, ROOMS)}")
    return _lift_urls(out)


def _openlineage_env(environ: Mapping[str, str], cwd: Path, problems: list[str], *, wanted: bool) -> Layer:
    out = _core_env(environ, "OPENLINEAGE_")
    out.pop("transport", None)  # OPENLINEAGE_URL goes the way of the client's own tables
    if not wanted:
        return out
    origin = "OPENLINEAGE__…" if any(n.startswith("OPENLINEAGE__") for n in environ) else "OPENLINEAGE_URL"
    return {
        **_translate(lambda: openlineage.from_environment(environ), origin, cwd, problems, environ),
        **out,
    }


def _translate(
    given: Callable[[], Mapping[str, Any]],
    origin: str,
    cwd: Path,
    problems: list[str],
    environ: Mapping[str, str],
) -> Layer:
    try:
        made = openlineage.translate(given(), cwd, environ)
    except ConfigError as fault:
        problems.extend(f"{origin}: {line}" for line in str(fault).splitlines())
        problems[-1] += "; a `transport` in headwater.toml or HEADWATER_TRANSPORT takes its place"
        return {}
    return {name: (value, origin) for name, value in made.items()}


def _core_env(environ: Mapping[str, str], prefix: str) -> Layer:
    names = [(s.name, name) for s in SETTINGS for name in s.env if name.startswith(prefix)]
    return {
        setting: (environ[name], name) for setting, name in names if environ.get(name)
    }  # empty is not set


def _env_names() -> set[str]:
    return {"HEADWATER_CONFIG", *(name for s in SETTINGS for name in s.env)}


def _named(layers: Iterable[Layer]) -> bool:
    return any("transport" in values for values in layers)


def _raise(problems: list[str]) -> None:
    if problems:
        raise ConfigError("\n".join(problems))
