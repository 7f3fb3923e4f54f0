"""store._catalogue: a page of jobs, datasets, namespaces, sources or tags -> its rows, and how many there are in all.

Every list is one statement for the page and one for the count, whatever the number of things on it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from sqlalchemy import Connection

from headwater.store._driver import among, cursor_of, listed
from headwater.store._edges import VISIBLE, VISIBLE_DATASET
from headwater.store._search import KINDS
from headwater.store._words import folded

Row = dict[str, Any]
_IDS = among()
_WHOLE = "(t.canonical IS NULL AND t.first_seen IS NOT NULL OR t.canonical = t.id)"
"""A dataset by the one name that stands for it; not a name that nobody used."""
_JOB = ("id", "namespace", "name", "first_seen", "last_seen", "processing", "integration", "kind", "parent")
_DATASET = ("id", "namespace", "name", "first_seen", "last_seen", "kind", "source", "lifecycle", "canonical")
_TOLD = ("kind", "source", "lifecycle")
"""What events tell of a dataset, the last of them."""
_COLUMNS = {"jobs": _JOB, "datasets": _DATASET}
_TABLES = {"job": "jobs", "dataset": "datasets"}
_SHOWN = {"job": VISIBLE, "dataset": VISIBLE_DATASET}
_UPDATED = "coalesce(t.last_seen, t.first_seen)"
_HEARD = {
    "job": _UPDATED,
    "dataset": (
        "coalesce(CASE WHEN t.canonical = t.id THEN"
        f" (SELECT max(m.last_seen) FROM datasets AS m WHERE m.canonical = t.id) END, {_UPDATED})"
    ),
}
"""When something was last heard of: of a dataset, under whichever of its names."""
_EVERY_NAME = "JOIN datasets AS m ON m.id = t.id OR m.canonical = t.id"
_LED = (
    "(SELECT t.namespace, m.first_seen, m.last_seen, m.shown_at FROM datasets AS m"
    " JOIN datasets AS t ON t.id = m.canonical WHERE m.canonical <> m.id) AS led"
)
"""What is told of the datasets of a namespace under names that may be of another, or of none that was ever told."""
_NEVER = "CAST(NULL AS bigint)"


class Catalogue:
    """What is in the store, page by page."""

    def __init__(self, connection: Connection) -> None:
        self._cursor = cursor_of(connection)

    def rows(self, sql: str, *parameters: Any) -> Iterator[Any]:
        """The rows that a statement finds."""
        self._cursor.execute(sql, parameters)
        return iter(self._cursor.fetchall())

    def one(self, sql: str, *parameters: Any) -> Any:
        """The one value that a statement finds, or None."""
        return next((row[0] for row in self.rows(sql, *parameters)), None)

    # -- jobs and datasets

    def page(
        self,
        kind: str,
        namespace: str | None,
        limit: int,
        offset: int,
        states: Collection[str] = (),
    ) -> tuple[list[Row], int]:
        """Jobs (the newest first) or datasets (by name) that are not hidden; and how many there are."""
        table = _TABLES[kind]
        where = [_SHOWN[kind]]
        values: list[Any] = []
        if kind == "dataset":
            where.append(_WHOLE)
        if namespace is not None:
            where.append("t.namespace = ?")
            values.append(namespace)
        if states:
            where.append(f"t.last_state IN ({', '.join('?' for _ in states)})")
            values += states
        held = f"FROM {table} AS t WHERE {' AND '.join(where)}"
        order = "t.name, t.namespace"
        if kind == "job":  # those that ran lately first; those that never did, last
            order = f"t.last_state IS NULL, {_UPDATED} DESC, {order}"
        page = self.rows(f"SELECT t.id {held} ORDER BY {order} LIMIT ? OFFSET ?", *values, limit, offset)
        ids = [row[0] for row in page]
        found = self.nodes(kind, ids)
        return [found[number] for number in ids], self.one(f"SELECT count(*) {held}", *values)

    def nodes(self, kind: str, numbers: Collection[int]) -> dict[int, Row]:
        """What stands for these numbers, hidden or not."""
        names = _COLUMNS[_TABLES[kind]]
        found = self.rows(
            f"SELECT {', '.join(f't.{name}' for name in names)} FROM {_TABLES[kind]} AS t WHERE t.id IN {_IDS}",
            listed(numbers),
        )
        rows = {row[0]: dict(zip(names, row, strict=True)) for row in found}
        if kind == "dataset":
            self.join(rows)
        return rows

    def join(self, rows: Mapping[int, Row]) -> None:
        """What events told of a dataset under its other names counts too."""
        leaders = [number for number, row in rows.items() if row["canonical"] == number]
        if not leaders:
            return
        for number, first, last in self.rows(
            f"SELECT canonical, min(first_seen), max(last_seen) FROM datasets WHERE canonical IN {_IDS}"
            " GROUP BY canonical",
            listed(leaders),
        ):
            rows[number]["first_seen"], rows[number]["last_seen"] = first, last
        for name in _TOLD:
            for number, value in self.rows(
                f"SELECT canonical, {name} FROM datasets WHERE canonical IN {_IDS} AND {name} IS NOT NULL"
                f" ORDER BY {name}_at, {name}",
                listed(leaders),
            ):
                rows[number][name] = value

    def members(self, datasets: Collection[int]) -> dict[int, int]:
        """Every name of these datasets -> the one that stands for it."""
        leader = {number: number for number in datasets}
        leader.update(
            self.rows(f"SELECT id, canonical FROM datasets WHERE canonical IN {_IDS}", listed(datasets))
        )
        return leader

    def leaders(self, datasets: Collection[int]) -> dict[int, int]:
        """Each dataset -> the one that stands for it."""
        return dict(
            self.rows(
                f"SELECT id, coalesce(canonical, id) FROM datasets WHERE id IN {_IDS}", listed(datasets)
            )
        )

    def find(self, kind: str, namespace: str, name: str) -> tuple[int, bool] | None:
        """The number of a job or dataset under any of its names, and whether it is shown."""
        number = "coalesce(n.canonical, n.id)" if kind == "dataset" else "n.id"
        table = _TABLES[kind]
        some = " AND (t.first_seen IS NOT NULL OR t.canonical IS NOT NULL)" if kind == "dataset" else ""
        found = self.rows(
            f"SELECT t.id, CASE WHEN {_SHOWN[kind]} THEN 1 ELSE 0 END FROM {table} AS n"
            f" JOIN {table} AS t ON t.id = {number} WHERE n.namespace = ? AND n.name = ?{some}",
            namespace,
            name,
        )
        return next(((row[0], bool(row[1])) for row in found), None)

    def children(self, namespace: str, name: str, parents: Collection[int]) -> int | None:
        """The job of that name whose parent is one of those given."""
        found = self.one(
            f"SELECT t.id FROM jobs AS t WHERE t.namespace = ? AND t.name = ? AND t.parent IN {_IDS} AND {VISIBLE}",
            namespace,
            name,
            listed(parents),
        )
        return None if found is None else int(found)

    def known(self, kind: str, names: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """Those of the (namespace, name) pairs that are shown."""
        return [pair for pair in names if (found := self.find(kind, *pair)) is not None and found[1]]

    def hidden_at(
        self, kind: str, namespace: str, name: str = ""
    ) -> tuple[int | None, int | None, int | None]:
        """(hidden_at, shown_at, last_seen) of a job, a dataset under all of its names, or a namespace."""
        if kind == "namespace":
            sql, values = (
                "SELECT hidden_at, shown_at, NULL FROM named WHERE kind = 'namespace' AND name = ?",
                [namespace],
            )
        elif kind == "job":
            sql = "SELECT hidden_at, shown_at, last_seen FROM jobs WHERE namespace = ? AND name = ?"
            values = [namespace, name]
        else:
            sql = (
                "SELECT t.hidden_at, max(m.shown_at), max(m.last_seen) FROM datasets AS n"
                f" JOIN datasets AS t ON t.id = coalesce(n.canonical, n.id) {_EVERY_NAME}"
                " WHERE n.namespace = ? AND n.name = ? GROUP BY t.id, t.hidden_at"
            )
            values = [namespace, name]
        return next((tuple(row) for row in self.rows(sql, *values)), (None, None, None))

    def shown_in(self, namespace: str) -> list[tuple[str, str, int | None, int | None]]:
        """(kind, name, shown_at, last_seen) of every job and dataset of a namespace that is not hidden."""
        return [
            (kind, *row)
            for kind, held, every in (
                ("job", "jobs AS t", "t"),
                ("dataset", f"datasets AS t {_EVERY_NAME}", "m"),
            )
            for row in self.rows(
                f"SELECT t.name, max({every}.shown_at), max({every}.last_seen) FROM {held}"
                f" WHERE t.namespace = ? AND {_SHOWN[kind]} GROUP BY t.id, t.name",
                namespace,
            )
        ]

    # -- search

    def search(
        self,
        text: str,
        *,
        kind: str | None = None,
        namespace: str | None = None,
        after: int | None = None,
        before: int | None = None,
        by_name: bool = True,
        limit: int = 10,
    ) -> tuple[list[Row], int]:
        """The jobs and datasets whose names hold a text, by name or the newest first; and how many there are."""
        parts: list[str] = []
        values: list[Any] = []
        for each, table in _TABLES.items():
            if kind not in (None, each):
                continue
            where = [_SHOWN[each], _holds(each, text)]
            values += [f"%{_pattern(folded(text))}%"] * where[1].count("?")
            if each == "dataset":
                where.append(_WHOLE)
            for test, value in (
                ("t.namespace = ?", namespace),
                (f"{_HEARD[each]} >= ?", after),
                (f"{_HEARD[each]} < ?", before),
            ):
                if value is not None:
                    where.append(test)
                    values.append(value)
            parts.append(
                f"SELECT '{each}' AS kind, t.id AS id, t.namespace AS namespace, t.name AS name, {_HEARD[each]} AS updated"
                f" FROM {table} AS t WHERE {' AND '.join(where)}"
            )
        held = f"FROM ({' UNION ALL '.join(parts)}) AS found"
        order = "name, namespace, kind" if by_name else "updated DESC, name, namespace, kind"
        names = ("kind", "id", "namespace", "name", "updated")
        rows = list(
            self.rows(
                f"SELECT {', '.join(names)}, count(*) OVER () {held} ORDER BY {order} LIMIT ?", *values, limit
            )
        )
        total = rows[0][-1] if rows else self.one(f"SELECT count(*) {held}", *values) if not limit else 0
        return [dict(zip(names, row[:-1], strict=True)) for row in rows], total

    # -- namespaces, sources, tags

    def namespaces(self, limit: int, offset: int, name: str | None = None) -> list[Row]:
        """Namespaces by name: from jobs, from datasets, and those that people named."""
        test, values = ("", []) if name is None else (" AND {} = ?", [name] * 4)
        parts = " UNION ALL ".join(
            f"SELECT {column} AS name, min(first_seen) AS first_seen, max(last_seen) AS last_seen,"
            f" max({seen}) AS told, max({hidden}) AS hidden_at, max(shown_at) AS shown_at"
            f" FROM {table} WHERE {which}{test.format(column)} GROUP BY {column}"
            for table, column, seen, hidden, which in (
                ("jobs", "namespace", "last_seen", _NEVER, "first_seen IS NOT NULL"),
                ("datasets", "namespace", "last_seen", _NEVER, "first_seen IS NOT NULL"),
                (_LED, "namespace", "last_seen", _NEVER, "first_seen IS NOT NULL"),
                ("named", "name", _NEVER, "hidden_at", "kind = 'namespace'"),
            )
        )
        keys = ("name", "first_seen", "last_seen", "told", "hidden_at", "shown_at")
        found = self.rows(
            "SELECT name, min(first_seen), max(last_seen), max(told), max(hidden_at), max(shown_at)"
            f" FROM ({parts}) AS every GROUP BY name ORDER BY name LIMIT ? OFFSET ?",
            *values,
            limit,
            offset,
        )
        return [dict(zip(keys, row, strict=True)) for row in found]

    def namespace_known(self, name: str) -> bool:
        """Whether there is a namespace of that name, hidden or not."""
        return any(
            self.one(f"SELECT 1 FROM {table} WHERE {test} LIMIT 1", name) is not None
            for table, test in (
                ("named", "kind = 'namespace' AND name = ? AND first_seen IS NOT NULL"),
                ("jobs", "namespace = ? AND first_seen IS NOT NULL"),
                ("datasets", "namespace = ? AND (first_seen IS NOT NULL OR canonical = id)"),
            )
        )

    def sources(self, limit: int, offset: int, name: str | None = None) -> list[Row]:
        """Sources by name: from datasets, and those that people named. `dataset` is one that has it."""
        test, values = ("", []) if name is None else (" AND {} = ?", [name, name])
        found = self.rows(
            "SELECT name, min(first_seen), max(last_seen), max(dataset) FROM ("
            "SELECT source AS name, first_seen, last_seen, id AS dataset FROM datasets"
            f" WHERE source IS NOT NULL{test.format('source')}"
            " UNION ALL SELECT name, first_seen, last_seen, NULL FROM named"
            f" WHERE kind = 'source'{test.format('name')}"
            ") AS every GROUP BY name ORDER BY name LIMIT ? OFFSET ?",
            *values,
            limit,
            offset,
        )
        return [dict(zip(("name", "first_seen", "last_seen", "dataset"), row, strict=True)) for row in found]

    def sourceless(self) -> tuple[int, int] | None:
        """When datasets that tell no source were first and last seen; None where there are none."""
        first, last = next(
            self.rows(
                "SELECT min(first_seen), max(last_seen) FROM datasets WHERE source IS NULL AND last_seen > 0"
            )
        )
        return None if first is None else (first, last)

    def tag_names(self, limit: int, offset: int) -> list[str]:
        """Every tag that is or was on something, or that people named."""
        return [
            row[0]
            for row in self.rows(
                "SELECT tag FROM tags UNION SELECT name FROM named WHERE kind = 'tag' ORDER BY 1 LIMIT ? OFFSET ?",
                limit,
                offset,
            )
        ]

    def tags(self, kind: str, owners: Collection[str]) -> dict[str, list[tuple[str, str]]]:
        """The (field, tag) pairs that are on these jobs or datasets now, by their references."""
        found: dict[str, list[tuple[str, str]]] = {}
        for owner, field, tag in self.rows(
            f"SELECT owner, field, tag FROM tags WHERE kind = ? AND owner IN {_IDS} AND live = 1"
            " ORDER BY field, tag",
            kind,
            listed(owners),
        ):
            found.setdefault(owner, []).append((field, tag))
        return found

    def said(self, kind: str, owners: Collection[str]) -> dict[str, dict[tuple[str, str], tuple[int, str]]]:
        """What people said of these: owner -> (field, name) -> (when, what)."""
        found: dict[str, dict[tuple[str, str], tuple[int, str]]] = {}
        for owner, field, name, at, value in self.rows(
            f"SELECT owner, field, name, value_at, value FROM said WHERE kind = ? AND owner IN {_IDS}",
            kind,
            listed(owners),
        ):
            if value:
                found.setdefault(owner, {})[field, name] = (at, value)
        return found

    def child_locations(self, jobs: Collection[int]) -> dict[int, bytes]:
        """The digest of the last `sourceCodeLocation` facet among the children of each of these jobs."""
        return {
            parent: bytes(body)
            for parent, body in self.rows(
                "SELECT j.parent, f.body FROM jobs AS j JOIN job_facets AS f"
                f" ON f.job = j.id AND f.name = 'sourceCodeLocation' WHERE j.parent IN {_IDS}"
                " ORDER BY f.last_seen, f.body",
                listed(jobs),
            )
        }


def _holds(kind: str, text: str) -> str:
    """That a name holds a text in whatever case: a job's, or any that a dataset has."""

    def named(node: str) -> str:
        if text.isascii():
            return f"lower({node}.name) LIKE ? ESCAPE '\\'"
        # of other letters than ASCII's, databases know no other case
        known = f"SELECT d.id / 2 FROM documents AS d WHERE d.id % 2 = {KINDS.index(kind)}"
        return f"{node}.id IN ({known} AND d.label LIKE ? ESCAPE '\\')"

    others = f"SELECT n.canonical FROM datasets AS n WHERE n.canonical <> n.id AND {named('n')}"
    return f"({named('t')} OR t.id IN ({others}))" if kind == "dataset" else named("t")


def _pattern(text: str) -> str:
    """A text as a pattern: `%` stands for anything, as Marquez has it; `_` is itself, for names are full of it."""
    return text.replace("\\", "\\\\").replace("_", "\\_")
