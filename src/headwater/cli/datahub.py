"""cli.datahub: headwater datahub convert, emit, diff -> DataHub's change proposals in a file, on their way, or beside those of before."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from headwater import config
from headwater.cli._ask import JsonOption, print_json
from headwater.cli._files import read_events
from headwater.cli._group import group
from headwater.cli._progress import counting
from headwater.cli._table import counted
from headwater.deliver.datahub import Converter, Options, Proposal, Refused, make
from headwater.deliver.datahub.comparing import Change, compare, content
from headwater.deliver.datahub.opening import ONLY, family_of
from headwater.deliver.datahub.settings import Delivery, delivering
from headwater.deliver.datahub.wire import for_file
from headwater.errors import ConfigError, TooLarge, TransportError
from headwater.event import Limits
from headwater.naming import scrub
from headwater.transport import open_transport

app = group("Write, deliver and compare lineage as DataHub's change proposals.")

Files = Annotated[list[str], typer.Argument(metavar="FILE…", help="Files of events; - is stdin.")]
CompatOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="datahub-java: as DataHub's own converter does it.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="K=V", help="An option of the conversion, or a fix by its name; may be repeated."
    ),
]
CoalesceOption = Annotated[
    str | None,
    typer.Option(
        help="What is put together: none, run, application or group.  [default: run; in compat mode none]"
    ),
]


def register(parent: typer.Typer) -> None:
    """Add the commands."""
    parent.add_typer(app, name="datahub")


@app.command("convert")
def run_convert(
    files: Files,
    compat: CompatOption = None,
    settings: SetOption = None,
    coalesce: CoalesceOption = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to write the array; else stdout."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Write nothing; tell what would be written.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Write OpenLineage events as DataHub's change proposals, a JSON array that `datahub ingest` reads.

    Events that cannot be converted are told with their reason, and the exit code is 5.

    \b
    Examples:
      headwater datahub convert events.jsonl -o mcps.json
      headwater datahub convert events.jsonl --compat datahub-java --set env=DEV
      headwater datahub convert - --set 'platforms.s3.path_spec_list=["s3://lake/{table}"]' --dry-run
    """
    told = _Conversion(files, compat, settings, coalesce)
    if dry_run:
        for _ in told.proposals():
            pass
    elif output is not None:
        spare = output.with_name(f"{output.name}~")
        with spare.open("wb") as file:
            _write(told.lines(), file.write)
        spare.replace(output)
    else:
        _write(told.lines(), sys.stdout.buffer.write)
        sys.stdout.buffer.flush()
    told.tell(as_json and (dry_run or output is not None), quiet=output is None and not dry_run)


@app.command("emit")
def run_emit(
    files: Files,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="datahub+rest://gms:8080 and its kin.  [default: deliver.datahub.to]"
        ),
    ] = None,
    token: Annotated[
        str | None, typer.Option(envvar="DATAHUB_GMS_TOKEN", show_envvar=True, help="Of REST.")
    ] = None,
    compat: CompatOption = None,
    settings: SetOption = None,
    coalesce: CoalesceOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Send nothing; tell what would be sent.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Convert OpenLineage events and deliver them to DataHub.

    What DataHub refuses is told with its reason, the others go on, and the exit code is 5; where it is not there, 4.

    \b
    Examples:
      headwater datahub emit events.jsonl --to datahub+rest://gms:8080
      headwater datahub emit events.jsonl --to datahub+kafka://broker:9092 --dry-run
    """  # fmt: skip
    loaded = _loaded()
    target = to or loaded.to
    told = _Conversion(files, compat, settings, coalesce, loaded)
    if dry_run:
        for _ in told.proposals():
            pass
        told.tell(as_json)
    if not target:
        raise ConfigError(
            "--to: where is DataHub? Write --to datahub+rest://gms:8080, or set deliver.datahub.to"
        )
    if not target.startswith("datahub+"):
        raise ConfigError(
            f"--to: {scrub(target)!r} does not begin with datahub+: write datahub+rest://gms:8080"
        )
    given = {name: value for name, value in loaded.transport.items() if name not in ("options", "coalesce")}
    family = family_of(target)
    if to is not None:  # what the settings say of another kind of sink is not said of this one
        given = {name: value for name, value in given.items() if ONLY.get(name, family) == family}
    if token and family == "rest":
        given["token"] = token
    sending = open_transport(
        target, **given, coalesce="none", options={"max_string": told.options.max_string}
    )
    refused: list[tuple[str, bytes]] = []
    try:
        source = told.proposals()
        while batch := [msgspec.json.encode(each) for each in islice(source, 1000)]:
            try:
                sending.send(batch)
            except TransportError as fault:
                if fault.pending:
                    raise
                refused += fault.letters
    finally:
        sending.close()
    told.refused += [Refused(reason, made) for reason, made in refused]
    told.tell(as_json)


@app.command("diff")
def run_diff(
    files: Files,
    against: Annotated[
        Path, typer.Option(metavar="FILE", help="Proposals of before, as `convert` writes them.")
    ],
    compat: CompatOption = None,
    settings: SetOption = None,
    coalesce: CoalesceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell what would change in DataHub against a file of proposals.

    \b
    Examples:
      headwater datahub diff events.jsonl --against mcps.json
      headwater datahub diff events.jsonl --against mcps.json --set encode_urns=false --json
    """
    told = _Conversion(files, compat, settings, coalesce)
    changes = compare(_read(against), told.proposals())
    if as_json:
        print_json([_plain(each) for each in changes])
    else:
        for each in changes:
            _print(each)
        typer.echo(f"{len(changes):,} aspects would change", err=True)
    told.tell(False, quiet=True)


class _Conversion:
    """Events of files on their way to proposals, counted."""

    def __init__(
        self,
        files: list[str],
        compat: str | None,
        settings: list[str] | None,
        coalesce: str | None,
        loaded: Delivery | None = None,
    ) -> None:
        base = (loaded or _loaded()).transport
        given = {**base.get("options", {}), **_pairs(settings or [])}
        if compat is not None:
            given["compat"] = compat
        self.options = make(given)
        by = coalesce or ("none" if self.options.compat else "run")
        self._converter, self._files = Converter(self.options, by), files
        self._limits = Limits(**config.options(config.load(), "ingest"))
        self.events, self.aspects, self.refused = 0, Counter[str](), list[Refused]()

    def proposals(self) -> Iterator[Proposal]:
        """Every proposal, while a bar tells how far it is."""
        with _bar() as advance:
            for each in self._converter.convert_all(
                self._payloads(advance), self.refused.append, self._limits
            ):
                self.aspects[each["aspectName"]] += 1
                yield each

    def lines(self) -> Iterator[bytes]:
        """Every proposal as a file holds it; one that is too long for DataHub is refused."""
        for each in self.proposals():
            try:
                yield for_file(each, self.options.max_string)
            except TooLarge as fault:
                self.refused.append(Refused(str(fault), each["entityUrn"].encode()))

    def _payloads(self, advance: Any) -> Iterator[bytes]:
        for name in self._files:
            for payload in read_events(name):
                self.events += 1
                advance()
                yield payload

    def tell(self, as_json: bool, *, quiet: bool = False) -> None:
        """Say what was done, and end: 5 where something was refused."""
        if as_json:
            print_json(
                {
                    "events": self.events,
                    "proposals": sum(self.aspects.values()),
                    "aspects": dict(sorted(self.aspects.items())),
                    "refused": [{"reason": scrub(each.reason)} for each in self.refused],
                }
            )
        elif not quiet:
            typer.echo(
                f"{counted(self.events, 'event')}: {sum(self.aspects.values()):,} proposals, {len(self.refused):,} refused"
            )
        for each in self.refused[:10]:
            typer.echo(
                f"  refused: {scrub(each.reason)}: {scrub(each.event[:120].decode('utf-8', 'replace'))}",
                err=True,
            )
        if len(self.refused) > 10:
            typer.echo(f"  … and {len(self.refused) - 10:,} more", err=True)
        raise typer.Exit(5 if self.refused else 0)


def _loaded() -> Delivery:
    return delivering(config.load())


_TEXTS = {each.name for each in msgspec.structs.fields(Options) if each.type in (str, str | None)}
"""Options that are no table, whatever they begin with."""


def _pairs(settings: list[str]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for each in settings:
        name, equals, text = each.partition("=")
        if not equals:
            raise ConfigError(f"--set {each}: write it as name=value")
        try:
            table = text[:1] in ("{", "[") and name.strip() not in _TEXTS  # a pattern may begin so, too
            out[name.strip()] = json.loads(text) if table else text
        except ValueError as fault:
            raise ConfigError(f"--set {name}: {fault}") from None
    return out


def _write(proposals: Iterable[bytes], write: Any) -> None:
    """An array; where not even the first can be made, nothing at all."""
    rest = iter(proposals)
    first = next(rest, b"")
    write(b"[\n" + first)
    for each in rest:
        write(b",\n" + each)
    write(b"\n]\n")


def _read(path: Path) -> list[Proposal]:
    try:
        rows = msgspec.json.decode(path.read_bytes(), type=list[dict[str, Any]])
    except OSError as fault:
        raise ConfigError(f"{path}: cannot be read: {fault.strerror or fault}") from None
    except msgspec.DecodeError as fault:
        raise ConfigError(f"{path}: holds no array of proposals: {fault}") from None
    proposals = [(at, row) for at, row in enumerate(rows, 1) if "entityUrn" in row and "aspectName" in row]
    for at, row in proposals:
        try:
            content(row)
        except ConfigError as fault:
            raise ConfigError(f"{path}: proposal {at}: {fault}") from None
        if not isinstance(row["entityUrn"], str) or not isinstance(row["aspectName"], str):
            raise ConfigError(f"{path}: proposal {at}: entityUrn or aspectName is no text")
    return [row for _, row in proposals]


def _plain(change: Change) -> dict[str, Any]:
    paths = [{"path": path, "before": before, "after": after} for path, before, after in change.paths]
    return {
        "kind": change.kind,
        "urn": change.urn,
        "aspect": change.aspect,
        **({"paths": paths} if paths else {}),
    }


def _print(change: Change) -> None:
    mark = {"added": "+", "gone": "-", "changed": "~"}[change.kind]
    typer.echo(f"{mark} {change.urn} {change.aspect}")
    for path, before, after in change.paths[:20]:
        shown = (json.dumps(each, ensure_ascii=False)[:200] for each in (before, after))
        typer.echo(f"    {path}: {' -> '.join(shown)}")


@contextmanager
def _bar() -> Iterator[Any]:
    with counting() as bar:
        task = bar.add_task("events", total=None)
        yield lambda: bar.advance(task)
