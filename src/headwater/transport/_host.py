"""transport._host: what settings or a call name -> the transport as a host uses it: what may make it wait has the spool before it."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote

from headwater import config, plugins
from headwater.errors import ConfigError
from headwater.transport import Transport, open_transport

FALLBACK = "http://localhost:5000"
SPOOLED = frozenset(
    {"http", "https", "kafka", "s3", "gs", "abfss"}
    | {f"datahub+{kind}" for kind in ("rest", "kafka", "file", "s3", "gs", "abfss")}
)
"""Transports that may make a host wait: they have the spool before them, unless they are told `direct`."""

_log = logging.getLogger("headwater")
_SAID: list[str] = []


def open_hosted(
    transport: Transport | str | Mapping[str, Any] | None, settings: config.Settings
) -> Transport:
    """The transport that a call names, by an object, a url or a mapping, or else the settings.

    Raises:
        ConfigError: it cannot be used as it stands, or its spool cannot be written.

    """
    if isinstance(transport, Transport):
        return transport
    if transport is None:
        if settings.transport is None:
            _say(
                f"no transport is set: events go to {FALLBACK}; set HEADWATER_TRANSPORT to send them elsewhere"
            )
        transport = {"url": settings.transport or FALLBACK, **settings.rooms.get("transport", {})}
    elif isinstance(transport, str):
        transport = {"url": transport}
    return open_transport(_hosted(transport, settings))


def _hosted(transport: Mapping[str, Any], settings: config.Settings) -> Mapping[str, Any]:
    """The transport with its key, and with the spool before it where it is one that may make a host wait."""
    url = str(transport.get("url", ""))
    parts = plugins.split("transport", url)
    kind = transport.get("type", parts.scheme)
    if kind == "fanout":  # each of its targets on its own: one that is down does not hold up the others
        return {**transport, "to": _members(transport.get("to"), settings)}
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    given = {**query, **transport}
    if settings.api_key and kind in ("http", "https") and not {"api_key", "auth"} & given.keys():
        transport = {**transport, "api_key": settings.api_key}
    if kind not in SPOOLED or config.parse_bool(given.get("direct", False)) or os.name != "posix":
        return transport
    options = config.options(settings, "spool")
    policy = {name: transport[name] for name in ("policy",) if name in transport}
    to = {name: value for name, value in transport.items() if name not in policy}
    folder = quote(str(spool_dir(settings)))
    return {"type": "spool", "url": f"spool://{folder}", "to": to, **options, **policy}


def _members(targets: object, settings: config.Settings) -> object:
    """The targets of a fanout, each as a host uses it; what is no list of targets, the fanout refuses itself."""
    if not isinstance(targets, list):
        return targets
    tables = [{"url": each} if isinstance(each, str) else each for each in targets]
    return [_hosted(each, settings) if isinstance(each, Mapping) else each for each in tables]


def spool_dir(settings: config.Settings) -> Path:
    """Where events wait: as set, else the user's state directory, else a temporary one."""
    folder = settings.spool.absolute()
    if settings.origins.get("spool") != "default" or _usable(folder):
        return folder
    spare = Path(tempfile.gettempdir()) / f"headwater-spool-{os.getuid()}"
    if not _usable(spare) or spare.is_symlink() or spare.stat().st_uid != os.getuid():
        raise ConfigError(
            f"neither {folder} nor {spare} can be written: set HEADWATER_SPOOL to a directory that can"
        )
    _say(
        f"{folder} cannot be written: events wait in {spare}, which may not outlive a restart; set HEADWATER_SPOOL"
    )
    return spare


def _usable(folder: Path) -> bool:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


def _say(text: str) -> None:
    """Once in a process."""
    if text not in _SAID:
        _SAID.append(text)
        _log.warning("%s", text)
