"""facts.commands: a write that is no event -> its rows.

A tag set by hand, a soft delete, a run's state set over HTTP, an alias rule: each is a command, kept in the
same raw log as the events and derived like one, so a replay gives it back and order cannot matter.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, ClassVar

import msgspec

from headwater.errors import EventError
from headwater.event import TERMINAL, run_uuid
from headwater.facts.derive import FINAL, RANK
from headwater.facts.tables import Row, ref
from headwater.naming import AliasRule


class _Said(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="command"):
    at: int
    """Microseconds since 1970, UTC."""


class SetTag(_Said, frozen=True, tag="tag"):
    """Put a tag on a job, a dataset or a dataset's field, or take it off."""

    kind: str
    namespace: str
    name: str
    tag: str
    field: str = ""
    live: bool = True
    value: str | None = None


class Hide(_Said, frozen=True, tag="hide"):
    """Soft-delete a job or dataset (or show it again); an event that names it later shows it too."""

    kind: str
    namespace: str
    name: str
    shown: bool = False

    TABLES: ClassVar[dict[str, str]] = {"job": "jobs", "dataset": "datasets"}


class SetRunState(_Said, frozen=True, tag="run_state"):
    """Set a run's state by hand."""

    run_id: str
    state: str
    namespace: str | None = None
    job: str | None = None


class SetAlias(_Said, frozen=True, tag="alias"):
    """Add an alias rule, or take it back."""

    rule: dict[str, Any]
    live: bool = True


Command = SetTag | Hide | SetRunState | SetAlias
_decoder = msgspec.json.Decoder(Command)


def parse_command(raw: bytes) -> Command:
    """Read a command as the raw log keeps it."""
    try:
        command: Command = _decoder.decode(raw)
    except msgspec.MsgspecError as fault:
        raise EventError("", f"no command: {fault}") from None
    derive_command(command)  # refuses what cannot be derived
    return command


def encode_command(command: Command) -> bytes:
    """A command as the raw log keeps it."""
    return msgspec.json.encode(command, order="sorted")


def digest_command(raw: bytes) -> bytes:
    """The sixteen bytes that stand for a command's content."""
    return blake2b(raw, digest_size=16).digest()


def derive_command(command: Command) -> list[Row]:
    """One command -> its rows."""
    at = command.at
    if isinstance(command, SetTag):
        _one_of("kind", command.kind, ("job", "dataset"))
        row: dict[str, Any] = {"live": (at, int(command.live)), "source": (at, "USER")}
        if command.value is not None:
            row["value"] = (at, command.value)
        return [
            ("tags", (command.kind, ref(command.namespace, command.name), command.field, command.tag), row)
        ]
    if isinstance(command, Hide):
        _one_of("kind", command.kind, Hide.TABLES)
        column = "shown_at" if command.shown else "hidden_at"
        return [(Hide.TABLES[command.kind], (ref(command.namespace, command.name),), {column: at})]
    if isinstance(command, SetRunState):
        _one_of("state", command.state, RANK)
        return _run_state(command)
    rule = AliasRule.from_dict(command.rule)
    match = msgspec.json.encode([rule.namespace, rule.name]).decode()
    body = msgspec.json.encode(rule.to_dict(), order="sorted").decode() if command.live else ""
    return [("aliases", (match,), {"rule": (at, body)})]


def _run_state(command: SetRunState) -> list[Row]:
    at, final = command.at, command.state in TERMINAL
    row: dict[str, Any] = {
        "first_seen": at,
        "last_seen": at,
        "state": (at + FINAL if final else at, f"{RANK[command.state]} {command.state}"),
    }
    if command.state == "START":
        row["started_at"] = at
    if final:
        row["ended_at"] = at
    rows: list[Row] = []
    if command.namespace is not None and command.job is not None:
        job = ref(command.namespace, command.job)
        row["job"] = (at, job)
        rows.append(("jobs", (job,), {"first_seen": at, "last_seen": at}))
    rows.append(("runs", (run_uuid(command.run_id),), row))
    return rows


def _one_of(field: str, value: str, known: Any) -> None:
    if value not in known:
        raise EventError(field, f"{value!r} is none of {', '.join(known)}")
