"""cli.aliases: headwater aliases … -> the rules by which several names become one dataset, listed, added, taken back.

A rule renames what is already stored as well as what comes: rows keep the names that events gave.
"""

from __future__ import annotations

import time
from typing import Annotated

import typer

from headwater import config
from headwater.cli._ask import JsonOption, StoreOption, open_configured, print_json, tell, whoami
from headwater.cli._group import group
from headwater.errors import ConfigError, NotFound
from headwater.facts.commands import SetAlias
from headwater.naming import AliasRule

app = group("Make several names one dataset.")

RuleText = Annotated[str, typer.Argument(metavar="RULE", help="`PATTERN -> NAME`, as in the examples.")]


def register(parent: typer.Typer) -> None:
    """Add the commands."""
    parent.add_typer(app, name="aliases")


@app.command("list")
def run_list(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """The rules that were added; those of the house (s3a is s3, postgresql is postgres …) come after them.

    \b
    Examples:
      headwater aliases list --json
    """
    opened = open_configured(config.load({"store": store}))
    with opened.read() as reader:
        rules = reader.aliases()
    opened.close()
    if as_json:
        print_json([rule.to_dict() for rule in rules])
    else:
        for rule in rules:
            typer.echo(_shown(rule))


@app.command("add")
def run_add(
    rule: RuleText,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print which datasets would become one, and do nothing.")
    ] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add a rule; it holds for the past too.

    \b
    Examples:
      headwater aliases add 'kafka://{broker}:9092 -> kafka://prod'
      headwater aliases add 'demo/{table} -> postgres://db:5432/shop.public.{table}'
      headwater aliases add 's3://lake-{region} -> s3://lake' --dry-run

    `{v}` stands for anything without a slash, `{v*}` for anything. With a slash after `://host` (or after a
    plain namespace) the rule is about namespace and name, else about the namespace alone.
    """
    if dry_run:
        _preview(read_rule(rule), store, as_json)
        return
    added = read_rule(rule)
    _say(added, store, live=True)
    tell({"added": added.to_dict()}, f"added: {_shown(added)}", as_json)


@app.command("remove")
def run_remove(rule: RuleText, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Take a rule back; what it renamed has its own name again.

    \b
    Examples:
      headwater aliases remove 'kafka://{broker}:9092 -> kafka://prod'
    """
    wanted = read_rule(rule)
    opened = open_configured(config.load({"store": store}))
    with opened.read() as reader:
        known = reader.aliases()
    opened.close()
    if wanted not in known:
        raise NotFound(f"no such rule: {_shown(wanted)}; `headwater aliases list` shows those that are there")
    _say(wanted, store, live=False)
    tell({"removed": wanted.to_dict()}, f"removed: {_shown(wanted)}", as_json)


def read_rule(text: str) -> AliasRule:
    """A rule as people write it: about a namespace, or about `namespace/name`."""
    pattern, arrow, target = (part.strip() for part in text.partition("->"))
    if not arrow or not pattern or not target:
        raise ConfigError(f"{text!r} is no rule: write 'PATTERN -> NAME'")
    if "/" in pattern.partition("://")[2] or ("://" not in pattern and "/" in pattern):
        return AliasRule.from_urns(pattern, target)
    return AliasRule.parse(text)


def _preview(rule: AliasRule, store: str | None, as_json: bool) -> None:
    from headwater.query.edits import preview

    opened = open_configured(config.load({"store": store}))
    try:
        found = preview(opened, dict(rule.to_dict()))
    finally:
        opened.close()
    if as_json:
        print_json(found)
        return
    for each in found["merges"]:
        typer.echo(f"{each['to']} would be\n  " + "\n  ".join(each["of"]))
    for each in found["renames"]:
        typer.echo(f"{each['from']} would be called {each['to']}")
    typer.echo("{merges:,} would become one, {renames:,} be renamed".format(**found["counts"]))


def _say(rule: AliasRule, store: str | None, *, live: bool) -> None:
    from headwater.ingest import command

    opened = open_configured(config.load({"store": store}))
    try:
        now = time.time_ns() // 1000
        command(opened, SetAlias(at=now, by=whoami(), rule=dict(rule.to_dict()), live=live))
    finally:
        opened.close()


def _shown(rule: AliasRule) -> str:
    source = "/".join(part for part in (rule.namespace, rule.name) if part is not None)
    target = "/".join(
        part
        for part in (rule.to_namespace or (rule.name and rule.namespace), rule.to_name)
        if part is not None
    )
    return f"{source} -> {target}"
