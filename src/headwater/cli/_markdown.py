"""cli._markdown: the model of an impact or a difference -> text for a pull request, short enough for GitHub and GitLab.

What matters stands in a small table; what is long is folded away. Names are other people's words: nothing in them may become
a link, a mention, markup or the end of a cell, so each is code. What does not fit is left out, whole lines, and said.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

MOST = 60_000
"""Characters of one text: GitHub takes 65,536 in a comment, and somebody may want to add a word."""

_NAME = 200
_SHORT = 15
_OWNERS = 20
_NOTE = 80


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the text: its head and foot are always there, of its lines as many as fit."""

    head: str
    lines: tuple[str, ...] = ()
    foot: str = ""


def impact(model: dict[str, Any], tripped: str | None = None) -> str:
    """What breaks downstream of a node: how much, whom to tell, the nearest datasets; the rest folded."""
    counts, owners = model["counts"], model["owners"]
    head = [f"### Lineage: what depends on {name(model['start'])}", ""]
    if counts["datasets"] or counts["jobs"]:
        head.append(f"{many(counts['datasets'], 'dataset')} and {many(counts['jobs'], 'job')} downstream.")
    else:
        head.append("Nothing downstream is known.")
    head += _gate(tripped)
    if owners:
        told = ", ".join(f"{name(each['name'])} ({each['nodes']})" for each in owners[:_OWNERS])
        more = f" and {len(owners) - _OWNERS} more" if len(owners) > _OWNERS else ""
        head += ["", f"To tell: {told}{more}."]
    if model["cut"]:
        head += ["", "There is more beyond: the walk was cut at `--depth`."]
    parts = [Part("\n".join([*head, ""]))]
    datasets = [
        (
            str(each["distance"]),
            _node(each),
            _owned(each),
            name(each["lastWritten"]),
            _by(each),
            _fields(each),
        )
        for each in model["datasets"]
    ]
    columns = ("hops", "dataset", "owners", "last written", "by", "columns")
    if any(row[-1] for row in datasets):
        parts += _table(many(len(datasets), "dataset"), columns, datasets)
    else:
        parts += _table(many(len(datasets), "dataset"), columns[:-1], [row[:-1] for row in datasets])
    jobs = [(str(each["distance"]), _node(each), _owned(each)) for each in model["jobs"]]
    parts += _table(many(len(jobs), "job"), ("hops", "job", "owners"), jobs, folded=True)
    unsure = [name(each.removeprefix("job:")) for each in model["unsure"]]
    parts += _list(f"{many(len(unsure), 'job')} that may read the column: no columns are told", unsure)
    return fit(parts)


def diff(model: dict[str, Any], tripped: str | None = None) -> str:
    """What differs between two times: how many of each, then what broke; the rest folded."""
    schemas = model["schemas"]
    changed = [each for each in schemas if each["change"] != "added"]
    counts = [
        (part, str(len(model[part]["added"])), str(len(model[part]["removed"])), "")
        for part in ("nodes", "edges", "columns")
    ]
    counts.append(("schemas", str(len(schemas) - len(changed)), "", str(len(changed))))
    head = ["### Lineage: what changed", "", f"From {name(model['from'])} to {name(model['to'])}."]
    head += _gate(tripped)
    if all(not cell or cell == "0" for row in counts for cell in row[1:]):
        return fit([Part("\n".join([*head, "", "Nothing differs.", ""]))])
    parts = [Part("\n".join([*head, ""])), *_table("", ("", "added", "removed", "changed"), counts)]
    broken = [each for each in changed if each["breaking"]]
    if broken:
        parts.append(Part(f"\n**{many(len(broken), 'schema')} broken:** a reader of before may not go on.\n"))
        parts += _table("", ("dataset", "what broke"), [_schema(each, broken=True) for each in broken])
    others = [each for each in changed if not each["breaking"]]
    parts += _table(
        f"{many(len(others), 'schema')} changed, nothing broken",
        ("dataset", "changes"),
        [_schema(each, broken=False) for each in others],
        folded=True,
    )
    for part, shown in (("nodes", name), ("edges", _edge), ("columns", _column)):
        for side in ("removed", "added"):
            found = [shown(each) for each in model[part][side]]
            parts += _list(f"{many(len(found), part[:-1])} {side}", found)
    return fit(parts)


def name(text: object) -> str:
    """Somebody else's words as code, on one line, at most 200 characters.

    >>> name("s3://lake/orders")
    '`s3://lake/orders`'
    >>> name("a|b")
    '<code>a&#124;b</code>'
    """
    words = " ".join("".join(each if each.isprintable() else " " for each in str(text or "")).split())
    if not words:
        return ""
    if len(words) > _NAME:
        words = f"{words[: _NAME // 2]}…{words[-_NAME // 2 :]}"
    if "|" not in words and "`" not in words:
        return f"`{words}`"
    # neither may stand in code within a table: there each character is written by its number
    told = "".join(each if each.isalnum() or each == " " else f"&#{ord(each)};" for each in words)
    return f"<code>{told.replace('&#64;', '&#64;<!-- -->')}</code>"  # not even a mail address is a link


def many(count: int, what: str) -> str:
    """A count with its noun.

    >>> many(1, "job"), many(2, "job")
    ('1 job', '2 jobs')
    """
    return f"{count} {what}{'' if count == 1 else 's'}"


def fit(parts: Sequence[Part], most: int = MOST) -> str:
    """The text of these parts: of each as many lines as there is room for, and how many were left out."""
    left = most - sum(len(each.head) + len(each.foot) + _NOTE for each in parts)
    out: list[str] = []
    for each in parts:
        out.append(each.head)
        for at, line in enumerate(each.lines):
            if len(line) + 1 > left:
                out.append(f"\n{many(len(each.lines) - at, 'line')} left out: `--json` tells all.\n")
                break
            out.append(line + "\n")
            left -= len(line) + 1
        out.append(each.foot)
    return "".join(out).rstrip("\n") + "\n"


def _gate(tripped: str | None) -> list[str]:
    return ["", f"**The gate tripped:** {tripped}."] if tripped else []


def _table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, folded: bool = False
) -> list[Part]:
    """A table; folded under its title where that is asked for, or it is long."""
    if not rows:
        return []
    head = f"\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}\n"
    lines = tuple(f"| {' | '.join(row)} |" for row in rows)
    if folded or (title and len(rows) > _SHORT):
        return [_folded(title, head, lines)]
    return [Part(head, lines)]


def _list(title: str, lines: Iterable[str]) -> list[Part]:
    told = tuple(f"- {each}" for each in lines)
    return [_folded(title, "\n", told)] if told else []


def _folded(title: str, head: str, lines: tuple[str, ...]) -> Part:
    return Part(f"\n<details><summary>{title}</summary>\n{head}", lines, "\n</details>\n")


def _node(each: dict[str, Any]) -> str:
    return name(f"{each['namespace']}/{each['name']}")


def _owned(each: dict[str, Any]) -> str:
    return ", ".join(name(owner["name"]) for owner in each["owners"][:3])


def _by(each: dict[str, Any]) -> str:
    run = each["lastRun"] or {}
    return f"{name((run.get('job') or '').removeprefix('job:'))} {run.get('state') or ''}".strip()


def _fields(each: dict[str, Any]) -> str:
    found = [name(column["field"]) for column in each.get("columns", ())]
    return ", ".join(found[:10]) + (f" and {len(found) - 10} more" if len(found) > 10 else "")


def _schema(each: dict[str, Any], *, broken: bool) -> tuple[str, str]:
    changes = [_change(change) for change in each["changes"] if change["breaking"] or not broken]
    more = f" and {len(changes) - 10} more" if len(changes) > 10 else ""
    return name(each["dataset"].removeprefix("dataset:")), ", ".join(changes[:10]) + more


def _change(each: dict[str, Any]) -> str:
    if each["change"] == "type":
        return f"{name(each['field'])}: {name(each['before'])} → {name(each['after'])}"
    return f"{name(each['field'])} {each['change']}"


def _edge(each: dict[str, str]) -> str:
    return f"{name(each['from'])} → {name(each['to'])}"


def _column(each: dict[str, Any]) -> str:
    source, target = (
        name(f"{each[end]['dataset'].removeprefix('dataset:')}.{each[end]['field']}")
        for end in ("from", "to")
    )
    return f"{source} → {target} {each['kind']}"
