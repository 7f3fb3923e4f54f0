"""query.marquez.nodes: a node id, or a namespace and a name, as Marquez's clients write them -> the node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwater.errors import NotFound
from headwater.query.marquez._words import is_uuid

if TYPE_CHECKING:
    from headwater.store import Reader

_MOST_PARENTS = 10


@dataclass(frozen=True, slots=True)
class NodeId:
    """A node id: its kind, the ways to cut it into namespace and name (and field), and its version."""

    kind: str
    names: tuple[tuple[str, str], ...]
    version: str | None = None
    field: str | None = None


def find_job(reader: Reader, namespace: str, name: str, *, hidden: bool = False) -> int:
    """The job of that name.

    Marquez calls the job `load` of the parent `etl` by the name `etl.load`; it is found by that name too.
    """
    number = _job(reader, namespace, name, hidden)
    if number is None:
        raise NotFound(f"Job '{name}' not found.")
    return number


def _job(reader: Reader, namespace: str, name: str, hidden: bool, deep: int = _MOST_PARENTS) -> int | None:
    found = reader.catalogue().find("job", namespace, name)
    if found is not None:
        return found[0] if found[1] or hidden else None
    cuts = [at for at, letter in enumerate(name) if letter == "." and 0 < at < len(name) - 1]
    for at in cuts[-_MOST_PARENTS:] if deep > 0 else ():
        parent = _job(reader, namespace, name[:at], True, deep - 1 if len(cuts) <= _MOST_PARENTS else 0)
        if parent is None:
            continue
        child = reader.catalogue().children(namespace, name[at + 1 :], [parent])
        if child is not None:
            return child
    return None


def find_dataset(reader: Reader, namespace: str, name: str) -> int:
    """The dataset of that name, or that has it as another."""
    found = reader.catalogue().find("dataset", namespace, name)
    if found is None or not found[1]:
        raise NotFound(f"Dataset '{name}' not found.")
    return found[0]


def require_namespace(reader: Reader, namespace: str) -> None:
    """Refuse a namespace that nothing is in."""
    if not reader.catalogue().namespace_known(namespace):
        raise NotFound(f"Namespace '{namespace}' not found.")


def parse_node(text: str) -> NodeId:
    """A node id -> what it may mean: namespaces and names hold colons themselves.

    >>> parse_node("dataset:postgres://db:5432:shop.orders").names[-1]
    ('postgres://db:5432', 'shop.orders')
    """
    kind, _, rest = text.partition(":")
    version = None
    if "#" in rest and is_uuid(rest.rpartition("#")[2]):
        rest, _, version = rest.rpartition("#")
    if kind not in ("job", "dataset", "datasetField") or ":" not in rest:
        raise NotFound(f"Node '{text}' not found.")
    field = None
    if kind == "datasetField":
        rest, _, field = rest.rpartition(":")
    names = tuple(
        (rest[:at], rest[at + 1 :])
        for at, letter in enumerate(rest)
        if letter == ":" and 0 < at < len(rest) - 1
    )
    if not names or field == "":
        raise NotFound(f"Node '{text}' not found.")
    return NodeId(kind, names[-_MOST_CUTS:], version, field)


_MOST_CUTS = 50


def find_node(reader: Reader, node: NodeId) -> int:
    """The job or dataset that a node id means: the last cut is the likeliest, so it is tried first."""
    kind = "job" if node.kind == "job" else "dataset"
    for namespace, name in reversed(node.names):
        found = reader.catalogue().find(kind, namespace, name)
        if found is not None and found[1]:
            return found[0]
    if kind == "job":
        for namespace, name in reversed(node.names):
            number = _job(reader, namespace, name, False)
            if number is not None:
                return number
    raise NotFound(f"{kind.capitalize()} '{node.names[-1][1]}' not found.")
