"""transport.spool.place: a spool directory and a destination -> the folder where events for it wait, readable by its owner alone.

SPOOL/salt                      what makes the names of folders tell nothing of keys
SPOOL/localhost-5000-8c1f…/     0700, one for each destination and who we are there
  target                        the url and options of the transport that delivers, secrets included
  ….open  ….done                segments
  cursor                        how far each segment was delivered
  wills/                        what to send should a process die
  dead/                         what was refused, or had no room
  drainer.json drainer.lock drainer.log
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from headwater.errors import ConfigError
from headwater.transport.spool.segment import OWNER_ONLY, write_all

TO = "url"
_HOW = frozenset({"verify", "timeout", "retries", "compression", "max_batch_bytes"})
"""Options that say how a destination is reached, not which it is, nor who we are there."""


class Target(msgspec.Struct, frozen=True):
    """Where events go, and how much of them may wait."""

    to: dict[str, Any]
    """The transport that delivers, as `open_transport` takes it."""
    max_bytes: int = 1 << 30
    max_age: float = 14 * 86400.0


class Place(msgspec.Struct, frozen=True):
    """The folder of one destination."""

    folder: Path

    @property
    def name(self) -> str:
        """The folder's own name."""
        return self.folder.name

    def __truediv__(self, name: str) -> Path:
        return self.folder / name

    def target(self) -> Target:
        """Where these events go.

        Raises:
            ConfigError: nothing says so.

        """
        try:
            return msgspec.json.decode((self / "target").read_bytes(), type=Target)
        except (OSError, msgspec.DecodeError) as fault:
            raise ConfigError(f"{self / 'target'} does not say where events go: {fault}") from None

    def shown(self) -> str:
        """The destination without its secrets."""
        with suppress(ConfigError):
            parts = urlsplit(str(self.target().to.get(TO, "")))
            bare = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="")
            return urlunsplit(bare)
        return "unknown"


def open_place(root: Path, target: Target) -> Place:
    """The folder for a destination, made where it is missing; what is wrong with it is told now, not when it is used.

    Raises:
        ConfigError: it cannot be written, is another user's, or an option cannot be kept for the drainer.

    """
    try:
        told = msgspec.json.encode(target)
    except TypeError as fault:
        raise ConfigError(
            f"to: an option cannot be kept for the drainer, name it by text instead: {fault}"
        ) from None
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        place = Place(root / _name(target.to, _salt(root)))
        for folder in (place.folder, place / "wills", place / "dead"):
            folder.mkdir(mode=0o700, exist_ok=True)
        seen = place.folder.stat()
        if seen.st_uid != os.geteuid():
            raise ConfigError(
                f"{place.folder} belongs to another user: set HEADWATER_SPOOL to a directory of your own"
            )
        if stat.S_IMODE(seen.st_mode) & 0o077:  # secrets and events of one user are nobody else's affair
            place.folder.chmod(0o700)
        probe = place / f"probe-{os.getpid()}"
        write_whole(probe, told)  # is there a right to write, and room?
        if _content(place / "target") == told:
            probe.unlink()
        else:
            probe.replace(place / "target")
    except OSError as fault:
        raise ConfigError(
            f"the spool {root} cannot be written: {fault.strerror or fault}; set HEADWATER_SPOOL to a directory that can,"
            " or add ?direct=1 to the transport's url to send without it"
        ) from None
    return place


def places(root: Path) -> list[Place]:
    """The destinations in a spool directory; the directory itself may be one.

    Raises:
        ConfigError: there is no such directory, or it is another user's.

    """
    try:
        if (root / "target").exists():
            return [Place(root)]
        return [Place(each) for each in sorted(root.iterdir()) if (each / "target").exists()]
    except OSError as fault:
        raise ConfigError(f"{root} is no spool: {fault.strerror or fault}") from None


def write_whole(path: Path, data: bytes) -> None:
    """Write a file of the owner's, whole or not at all."""
    spare = path.with_name(f"{path.name}.{os.getpid()}~")
    file = os.open(spare, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_CLOEXEC", 0), OWNER_ONLY)
    try:
        write_all(file, data)
    finally:
        os.close(file)
    spare.replace(path)


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _name(to: Mapping[str, Any], salt: bytes) -> str:
    """A name that tells people the destination, and machines apart those that differ, in their keys too.

    Events emitted with one key are never sent with another: a server may tell tenants by it. Without the salt, which
    only the owner can read, nobody can try keys until one gives the name.
    """
    parts = urlsplit(str(to.get(TO, "")))
    host = parts.netloc.rpartition("@")[2]
    kept = {name: value for name, value in to.items() if name not in _HOW}
    told = msgspec.json.encode(kept, order="deterministic")
    readable = re.sub(r"[^A-Za-z0-9]+", "-", host or parts.path).strip("-")[:40]
    return f"{readable or parts.scheme}-{blake2b(told, key=salt, digest_size=6).hexdigest()}"


def _salt(root: Path) -> bytes:
    """The spool's own, made by whoever comes first."""
    path = root / "salt"
    if (known := _content(path)) is None:
        spare = root / f"salt.{os.getpid()}.{os.urandom(4).hex()}~"
        write_whole(spare, os.urandom(16))
        try:
            os.link(spare, path)  # whole, and only once
        except FileExistsError:
            pass
        except OSError:  # a file system without links: then the last of those who come at once counts
            spare.replace(path)
        spare.unlink(missing_ok=True)
        known = path.read_bytes()
    return known
