"""query.schemas: a dataset -> the schemas it has had, who brought each, and what each changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from headwater.errors import ConfigError
from headwater.facts.changes import compare_schemas
from headwater.query.nodes import iso, node_id, resolve
from headwater.store import Store


def schemas(store: Store, text: str) -> dict[str, Any]:
    """The versions of a dataset's schema, the newest first, each with its difference to the one before.

    The order is that of their first sight. `breaking` says that a reader of the one before may not go on.
    """
    with store.read() as reader:
        node = resolve(reader, text)
        if node.kind != "dataset":
            raise ConfigError(f"{text!r} is a job; a dataset has schemas")
        row = reader.nodes("dataset", [node.number])[node.number]
        trail = reader.trail()
        _, members = trail.group(node.number)
        found = sorted(
            _once(reader.schemas(node.number)).values(),
            key=lambda each: (each["first_seen"], each["version"]),
        )
        current = max(found, key=lambda each: (each["last_seen"], each["version"]), default=None)
        versions: list[dict[str, Any]] = []
        before: list[Any] = []
        for each in found:
            run = trail.brought(members, bytes.fromhex(each["version"]), each["first_seen"])
            changes = changes_of(before, each["fields"]) if versions else []
            versions.append(
                {
                    "version": each["version"],
                    "firstSeen": iso(each["first_seen"]),
                    "lastSeen": iso(each["last_seen"]),
                    "current": each is current,
                    "run": run["run_id"] if run else None,
                    "job": node_id("job", run["namespace"], run["name"]) if run and run["name"] else None,
                    "fields": each["fields"],
                    "changes": changes,
                    "breaking": any(change["breaking"] for change in changes),
                }
            )
            before = each["fields"]
    return {"node": node_id("dataset", row["namespace"], row["name"]), "versions": versions[::-1]}


def _once(rows: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """One row for each schema, though several names of a dataset may have it."""
    found: dict[str, dict[str, Any]] = {}
    for each in rows:
        have = found.setdefault(each["version"], each)
        have["first_seen"] = min(have["first_seen"], each["first_seen"])
        have["last_seen"] = max(have["last_seen"], each["last_seen"])
    return found


def changes_of(
    before: Iterable[Mapping[str, Any]], after: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """What a schema changed, as JSON-ready data."""
    return [
        {
            "change": each.kind,
            "field": each.field,
            **({"before": each.before} if each.before is not None else {}),
            **({"after": each.after} if each.after is not None else {}),
            "breaking": each.breaking,
        }
        for each in compare_schemas(before, after)
    ]
