"""facts.oblivion: rows, and nodes to forget -> the rows without them, and without what mentions them.

A run, job or dataset is named in more places than its own rows: in facets of others (a parent, a symlink, column
lineage) and in sets of column relations. Facets that name it go; sets are told anew without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from headwater.event import run_uuid
from headwater.facts.contents import digest_of
from headwater.facts.remains import Gone, without
from headwater.facts.tables import Row, ref

_FACETS = ("run_facets", "job_facets", "dataset_facets", "io_facets")


@dataclass(frozen=True, slots=True)
class Oblivion:
    """What is to be forgotten, deeply."""

    gone: Gone
    sets: Mapping[bytes, tuple[bytes, bytes, tuple[str, ...]] | None] = field(default_factory=dict)
    """Sets of column relations that name it -> fingerprint, body and sources of what is left; None for nothing."""
    _mentions: dict[bytes, bool] = field(default_factory=dict)

    def mentions(self, digest: bytes, body: bytes) -> bool:
        """Whether a facet names what is to be forgotten."""
        known = self._mentions.get(digest)
        if known is None:
            try:
                known = self._names(msgspec.json.decode(body))
            except (msgspec.MsgspecError, RecursionError):
                known = False
            self._mentions[digest] = known
        return known

    def _names(self, value: Any) -> bool:
        if isinstance(value, list):
            return any(map(self._names, value))
        if not isinstance(value, dict):
            return False
        namespace, name, run = value.get("namespace"), value.get("name"), value.get("runId")
        if isinstance(namespace, str) and isinstance(name, str):
            identity = ref(namespace, name)
            if identity in self.gone.jobs or identity in self.gone.datasets:
                return True
        if isinstance(run, str) and run_uuid(run) in self.gone.runs:
            return True
        return any(map(self._names, value.values()))

    def left(self, rows: Iterable[Row]) -> list[Row]:
        """The rows that are left of an entry's."""
        told = list(rows)
        named = {
            key[0] for table, key, row in told if table == "contents" and self.mentions(key[0], row["body"])
        }
        return list(self._told_anew(without(told, self.gone), named))

    def _told_anew(self, rows: Iterable[Row], named: set[bytes]) -> Iterator[Row]:
        for table, key, row in rows:
            if table in _FACETS and key[-1] in named:
                continue
            if table == "contents" and (key[0] in named or key[0] in self.sets):
                continue
            if table == "outputs" and "columns" in row and row["columns"][1] in self.sets:
                stamp, old = row["columns"]
                row = {name: value for name, value in row.items() if name != "columns"}
                if (new := self.sets[old]) is not None:
                    row["columns"] = (stamp, new[0])
            elif table == "column_edges" and key[2] in self.sets:
                if (new := self.sets[key[2]]) is None:
                    continue
                yield from self._set(new)
                key = (*key[:2], new[0])
            elif table == "column_sources" and key[0] in self.sets:
                if (new := self.sets[key[0]]) is not None:
                    yield from self._set(new)
                continue
            yield table, key, row

    @staticmethod
    def _set(new: tuple[bytes, bytes, tuple[str, ...]]) -> Iterator[Row]:
        fingerprint, body, sources = new
        yield "contents", (fingerprint,), {"body": body}
        for source in sources:
            yield "column_sources", (fingerprint, source), {}


def narrowed(body: bytes, datasets: frozenset[str]) -> tuple[bytes, bytes, tuple[str, ...]] | None:
    """A set of column relations without those from `datasets`: its fingerprint, body and sources."""
    relations = [tuple(each) for each in msgspec.json.decode(body) if each[1] not in datasets]
    if not relations:
        return None
    encoded = msgspec.json.encode(relations)
    return digest_of(encoded), encoded, tuple(sorted({each[1] for each in relations}))
