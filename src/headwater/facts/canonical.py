"""facts.canonical: symlinks and alias rules -> one identity per dataset.

Rows keep the names that events gave. What is one dataset is decided last, from all symlinks and rules
together: at read in a store, at the end of the Spark job. So a late alias renames history without
rewriting it, and the order of arrival cannot matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headwater.facts.tables import ref, unref
from headwater.naming import Aliases


def rewrite(reference: str, aliases: Aliases) -> str:
    """A reference as the alias rules write it."""
    return ref(*aliases.rewrite(*unref(reference)))


def representatives(
    datasets: Iterable[str], symlinks: Iterable[tuple[str, str]], aliases: Aliases
) -> dict[str, str]:
    """Each dataset, alias and rewritten name -> the one identity that stands for it.

    Names joined by symlinks or rules are one dataset. It is called by the name that has symlinks and is
    nobody's alias (a table's location, say), else by the smallest; a name that the rules rewrite is never chosen.

    >>> none = Aliases(())
    >>> representatives([], [("s3://lake\\norders", "hive://m:9083\\ndb.orders")], none)["hive://m:9083\\ndb.orders"]
    's3://lake\\norders'
    """
    links = list(symlinks)
    owners, targets = {owner for owner, _ in links}, {alias for _, alias in links}
    rewritten = {name: rewrite(name, aliases) for name in {*datasets, *owners, *targets}}
    parent = {name: name for name in {*rewritten, *rewritten.values()}}

    def find(name: str) -> str:
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for one, other in (*links, *rewritten.items()):
        parent[find(one)] = find(other)
    groups: dict[str, list[str]] = {}
    for name in parent:
        groups.setdefault(find(name), []).append(name)
    chosen: dict[str, str] = {}
    for members in groups.values():
        best = choose(members, rewritten, owners, targets)
        chosen.update(dict.fromkeys(members, best))
    return chosen


def choose(members: Iterable[str], rewritten: Mapping[str, str], owners: set[str], targets: set[str]) -> str:
    """The name that stands for a group of names of one dataset.

    Ownership passes through the rules: `s3a://b/x` owning a symlink makes `s3://b/x` an owner.
    """
    names = list(members)
    own = {rewritten.get(name, name) for name in names if name in owners}
    aimed = {rewritten.get(name, name) for name in names if name in targets}
    settled = [name for name in names if rewritten.get(name, name) == name]
    return min(settled or names, key=lambda name: (name not in own, name in aimed, name))
