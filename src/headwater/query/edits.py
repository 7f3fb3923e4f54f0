"""query.edits: what people say of a node, a rule by which names become one -> commands; and what a rule would do."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.errors import ConfigError
from headwater.facts import Command, ref, representatives, unref
from headwater.facts.commands import Hide, Say, SetAlias, SetTag
from headwater.naming import DEFAULT_RULES, Aliases, AliasRule
from headwater.query.nodes import Node, node_id, require_column, resolve
from headwater.store import Store

if TYPE_CHECKING:
    from headwater.store import Reader

_SHOWN = 200


def now() -> int:
    """This moment, as commands tell time."""
    return time.time_ns() // 1000


class Edit(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What a person changes of a node. What is left out stays; `null` takes back what was said by hand."""

    node: str
    column: str | None = None
    description: str | msgspec.UnsetType | None = msgspec.UNSET
    owners: list[str] | msgspec.UnsetType | None = msgspec.UNSET
    add_tags: list[str] = []
    remove_tags: list[str] = []
    hidden: bool | None = None


def commands_for(store: Store, edit: Edit, by: str = "") -> tuple[str, list[Command]]:
    """The id of the node that is meant, and the commands that make the change."""
    with store.read() as reader:
        node = resolve(reader, edit.node)
        row = reader.nodes(node.kind, [node.number])[node.number]
        column = edit.column if edit.column is not None else node.field
        kind, namespace, name = node.kind, row["namespace"], row["name"]
        others: list[Unsaid] = []
        if kind == "dataset":
            if edit.add_tags or isinstance(edit.description, str):
                require_column(reader, Node("dataset", node.number, column), reader.edges())
            others = said_elsewhere(reader, node.number, column or "")
    if column is not None and kind != "dataset":
        raise ConfigError("a column can be named of a dataset only")
    if column is not None and (edit.owners is not msgspec.UNSET or edit.hidden is not None):
        raise ConfigError("owners and hidden are about a whole dataset: leave column out")
    at = now()
    said: list[Command] = []
    values: dict[str, str | None] = {}
    if edit.description is not msgspec.UNSET:
        values["description"] = _text("description", edit.description)
    if edit.owners is not msgspec.UNSET:
        owners = [each for each in (_text("owners", each) for each in edit.owners or ()) if each]
        values["owners"] = msgspec.json.encode(owners).decode() if owners else None
    gone = {each for each, value in values.items() if not value}
    spoken = [(namespace, name, values)] if values else []
    spoken += [
        (each.namespace, each.name, dict.fromkeys(sorted(back)))
        for each in others
        if (back := gone & each.words)
    ]
    for whose, called, words in spoken:
        said.append(
            Say(at=at, by=by, kind=kind, namespace=whose, name=called, field=column or "", values=words)
        )
    for tags, live in ((edit.add_tags, True), (edit.remove_tags, False)):
        for tag in tags:
            if not (word := _text("tags", tag)):
                raise ConfigError("a tag is empty: give it a name")
            tagged = [(namespace, name)]
            tagged += [(each.namespace, each.name) for each in others if not live and word in each.tags]
            for whose, called in tagged:
                said.append(
                    SetTag(
                        at=at,
                        by=by,
                        kind=kind,
                        namespace=whose,
                        name=called,
                        field=column or "",
                        tag=word,
                        live=live,
                    )
                )
    if edit.hidden is not None:
        # an event shows a node again, so hiding says when: at the last thing that was heard of it, or now
        said.append(
            Hide(
                at=max(at, row["last_seen"] or 0),
                by=by,
                kind=kind,
                namespace=namespace,
                name=name,
                shown=not edit.hidden,
            )
        )
    if not said:
        raise ConfigError("nothing to change: give description, owners, add_tags, remove_tags or hidden")
    return node_id(kind, namespace, name), said


@dataclass(frozen=True, slots=True)
class Unsaid:
    """Another name of a dataset, and what was said of the dataset under it: whoever takes it back means that, too."""

    namespace: str
    name: str
    words: frozenset[str]
    tags: frozenset[str]


def said_elsewhere(reader: Reader, dataset: int, field: str = "") -> list[Unsaid]:
    """What is said of a dataset, or of a column of it, under its other names."""
    others = {ref(*each[1:]): each[1:] for each in reader.names_of(dataset)[1:]}
    if not others:
        return []
    catalogue = reader.catalogue()
    said, tags = catalogue.said("dataset", others), catalogue.tags("dataset", others)
    return [
        Unsaid(
            *names,
            words=frozenset(name for column, name in said.get(owner, {}) if column == field),
            tags=frozenset(tag for column, tag in tags.get(owner, ()) if column == field),
        )
        for owner, names in others.items()
    ]


def _text(what: str, value: str | None) -> str | None:
    if value is not None and "\0" in value:
        raise ConfigError(f"{what}: a NUL character cannot be kept")
    return value


def alias_rules(store: Store) -> list[dict[str, str]]:
    """The alias rules that were set, in the order in which they are tried."""
    with store.read() as reader:
        return [rule.to_dict() for rule in reader.aliases()]


def alias_command(rule: dict[str, Any], *, live: bool, by: str = "") -> SetAlias:
    """A rule, checked, as the command that sets it or takes it back."""
    for part, value in rule.items():
        _text(part, value if isinstance(value, str) else None)
    return SetAlias(at=now(), by=by, rule=dict(AliasRule.from_dict(rule).to_dict()), live=live)


def preview(store: Store, rule: dict[str, Any], *, live: bool = True) -> dict[str, Any]:
    """What a rule would do if it were set (or taken back): which datasets become one, part, or get another name."""
    made = AliasRule.from_dict(rule)
    with store.read() as reader:
        rules = reader.aliases()
        trail = reader.trail()
        names = [ref(*each) for each in trail.datasets()]
        links = trail.symlinks()
    others = [each for each in rules if (each.namespace, each.name) != (made.namespace, made.name)]
    after = sorted(
        [*others, made] if live else others, key=lambda each: msgspec.json.encode([each.namespace, each.name])
    )
    was = representatives(names, links, Aliases([*rules, *DEFAULT_RULES]))
    now_ = representatives(names, links, Aliases([*after, *DEFAULT_RULES]))
    known = set(names)
    groups: dict[str, set[str]] = {}
    parts: dict[str, set[str]] = {}
    for name in known:
        groups.setdefault(now_[name], set()).add(was[name])
        parts.setdefault(was[name], set()).add(now_[name])
    merges = [{"to": _id(to), "of": sorted(map(_id, of))} for to, of in sorted(groups.items()) if len(of) > 1]
    splits = [
        {"of": _id(of), "into": sorted(map(_id, into))} for of, into in sorted(parts.items()) if len(into) > 1
    ]
    renames = [
        {"from": _id(next(iter(of))), "to": _id(to)}
        for to, of in sorted(groups.items())
        if len(of) == 1 and next(iter(of)) != to and len(parts[next(iter(of))]) == 1
    ]
    return {
        "rule": made.to_dict(),
        "merges": _cut(merges),
        "splits": _cut(splits),
        "renames": _cut(renames),
        "counts": {"merges": len(merges), "splits": len(splits), "renames": len(renames)},
    }


def _id(reference: str) -> str:
    return node_id("dataset", *unref(reference))


def _cut(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return list(found[:_SHOWN])
