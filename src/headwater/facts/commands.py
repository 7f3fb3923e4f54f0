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
from headwater.facts._said import Said, one_of
from headwater.facts.definitions import DefineDataset, DefineJob, DefineRun, Name
from headwater.facts.derive import FINAL, RANK, SPOKEN
from headwater.facts.tables import Row, ref
from headwater.naming import AliasRule


class SetTag(Said, frozen=True, tag="tag"):
    """Put a tag on a job, a dataset or a dataset's field, or take it off."""

    kind: str
    namespace: str
    name: str
    tag: str
    field: str = ""
    live: bool = True
    value: str | None = None

    def rows(self) -> list[Row]:
        """The tag, on or off."""
        one_of("kind", self.kind, ("job", "dataset"))
        at = self.at + SPOKEN
        row: dict[str, Any] = {"live": (at, int(self.live)), "source": (at, "USER")}
        if self.value is not None:
            row["value"] = (at, self.value)
        return [("tags", (self.kind, ref(self.namespace, self.name), self.field, self.tag), row)]


class Hide(Said, frozen=True, tag="hide"):
    """Soft-delete a job, a dataset or a namespace (or show it again); an event that names it later shows it too.

    The clocks of people and of producers have nothing to do with each other. So whoever knows the thing gives
    `after`: the time of the last event that named it. What is hidden comes back with an event later than that.
    """

    kind: str
    namespace: str
    name: str = ""
    shown: bool = False
    after: int | None = None

    TABLES: ClassVar[dict[str, str]] = {"job": "jobs", "dataset": "datasets", "namespace": "named"}

    def rows(self) -> list[Row]:
        """When it was hidden or shown."""
        one_of("kind", self.kind, Hide.TABLES)
        named = ("namespace", self.namespace)
        key = named if self.kind == "namespace" else (ref(self.namespace, self.name),)
        column = "shown_at" if self.shown else "hidden_at"
        return [(Hide.TABLES[self.kind], key, {column: self.at if self.after is None else self.after})]


class SetRunState(Said, frozen=True, tag="run_state"):
    """Set a run's state by hand."""

    run_id: str
    state: str
    namespace: str | None = None
    job: str | None = None

    def rows(self) -> list[Row]:
        """The run, and its job where it is named."""
        one_of("state", self.state, RANK)
        return _run_state(self)


class SetAlias(Said, frozen=True, tag="alias"):
    """Add an alias rule, or take it back."""

    rule: dict[str, Any]
    live: bool = True

    def rows(self) -> list[Row]:
        """The rule under what it matches; empty when it is taken back."""
        rule = AliasRule.from_dict(self.rule)
        match = msgspec.json.encode([rule.namespace, rule.name]).decode()
        body = msgspec.json.encode(rule.to_dict(), order="sorted").decode() if self.live else ""
        return [("aliases", (match,), {"rule": (self.at, body)})]


class Say(Said, frozen=True, tag="say"):
    """Say something of a thing by hand: its description, its owner. It outlives what later events say."""

    kind: str
    name: str
    values: dict[str, str | None]
    """What is said; None takes it back."""
    namespace: str = ""
    field: str = ""

    KINDS: ClassVar[tuple[str, ...]] = ("namespace", "source", "tag", "job", "dataset", "run")

    def rows(self) -> list[Row]:
        """One row for each thing said."""
        one_of("kind", self.kind, Say.KINDS)
        owner = ref(self.namespace, self.name) if self.kind in ("job", "dataset") else self.name
        return [
            ("said", (self.kind, owner, self.field, name), {"value": (self.at, value or "")})
            for name, value in self.values.items()
        ]


class Spent(Said, frozen=True, tag="spent"):
    """A command whose effect has gone: the run that it was about is no longer kept, or its subject was forgotten.

    It stays for the audit trail, with what was said unless that was to be forgotten, and says nothing any more.
    """

    what: str
    said: dict[str, Any] | None = None

    def rows(self) -> list[Row]:
        """Nothing."""
        return []


class Forget(Said, frozen=True, tag="forget"):
    """A dataset, job or run was taken out of tables and log for good; this stays to tell who did so."""

    kind: str
    node: str
    """Its name, or only its digest where the name was to be forgotten, too."""
    entries: int = 0
    """How many entries of the log were rewritten."""

    def rows(self) -> list[Row]:
        """Nothing."""
        one_of("kind", self.kind, ("dataset", "job", "run"))
        return []


_YEAR_10000 = 253_402_300_800_000_000


class SetIncident(Said, frozen=True, tag="incident"):
    """Acknowledge, resolve, mute or reopen an incident, or leave a note on it."""

    incident: int
    status: str = ""
    """Empty where only a note is left."""
    reason: str = ""
    note: str = ""
    until: int | None = None
    """When a mute ends; None: never."""

    STATUSES: ClassVar[tuple[str, ...]] = ("open", "acknowledged", "resolved", "muted")

    def rows(self) -> list[Row]:
        """The verdict, beside those before it: they are never overwritten."""
        one_of("status", self.status, ("", *SetIncident.STATUSES))
        if not self.status and not self.note:
            raise EventError("note", "a verdict without a status is a note, and has none")
        if not 0 <= self.incident < 1 << 63:
            raise EventError("incident", f"{self.incident} is no incident's id")
        if self.until is not None and not 0 <= self.until < _YEAR_10000:
            raise EventError(
                "until", f"{self.until} is no time between 1970 and the year 10000, in microseconds"
            )
        row: dict[str, Any] = {
            name: (self.at, value) for name in ("reason", "note") if (value := getattr(self, name))
        }
        if self.status == "muted" and self.until is not None:
            row["until"] = (self.at, self.until)
        return [("verdicts", (self.incident, self.at, self.by, self.status), row)]


class Watch(Said, frozen=True, tag="watch"):
    """Hold a dataset's row counts or freshness against its own history, or stop doing so."""

    pattern: str
    """`namespace/name`; `*` stands for anything."""
    measure: str
    live: bool = True
    sensitivity: float = 6.0
    """How many robust deviations from the median are too many."""
    history: int = 20
    """How many runs before it a run is held against."""

    MEASURES: ClassVar[tuple[str, ...]] = ("volume", "freshness")

    def rows(self) -> list[Row]:
        """The watch under what it watches; empty when it is taken back."""
        one_of("measure", self.measure, Watch.MEASURES)
        if not self.pattern:
            raise EventError("pattern", "is empty")
        if not 0 < self.sensitivity <= 1000 or not 5 <= self.history <= 500:
            raise EventError("sensitivity", "is more than 0 and at most 1000; history is from 5 to 500")
        body = {"sensitivity": self.sensitivity, "history": self.history} if self.live else None
        said = msgspec.json.encode(body, order="sorted").decode() if body else ""
        return [("watches", (self.pattern, self.measure), {"rule": (self.at, said)})]


Command = (
    SetTag
    | Hide
    | SetRunState
    | SetAlias
    | Say
    | Name
    | DefineDataset
    | DefineJob
    | DefineRun
    | SetIncident
    | Watch
    | Spent
    | Forget
)
_decoder = msgspec.json.Decoder(Command)


def parse_command(raw: bytes) -> Command:
    """Read a command as the raw log keeps it."""
    try:
        command: Command = _decoder.decode(raw)
    except msgspec.MsgspecError as fault:
        raise EventError("", f"no command: {fault}") from None
    command.rows()  # refuses what cannot be derived
    return command


def encode_command(command: Command) -> bytes:
    """A command as the raw log keeps it."""
    return msgspec.json.encode(command, order="sorted")


def digest_command(raw: bytes) -> bytes:
    """The sixteen bytes that stand for a command's content."""
    return blake2b(raw, digest_size=16).digest()


def spend(raw: bytes, *, forget: bool = False) -> bytes:
    """A command of the log -> what is left of it when its effect is gone."""
    said = msgspec.json.decode(raw)
    kept = None if forget else said
    return encode_command(Spent(at=said["at"], by=said.get("by", ""), what=said["command"], said=kept))


def derive_command(command: Command) -> list[Row]:
    """One command -> its rows, of texts that every database can keep."""
    return [
        (table, tuple(map(_kept, key)), {name: _kept(value) for name, value in row.items()})
        for table, key, row in command.rows()
    ]


def _kept(value: Any) -> Any:
    """What may stand in a row: Postgres takes no text with a NUL in it."""
    if isinstance(value, tuple):  # beside its time
        return tuple(map(_kept, value))
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value


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
