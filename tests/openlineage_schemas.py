"""An event -> whether it is valid OpenLineage, by the published schemas."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

from headwater.event import PRODUCER

SHARED = Path(os.environ.get("HEADWATER_SHARED") or Path(__file__).parents[2] / "shared")
"""Where recorded events and contracts stand; read once, because each test gets an environment without it."""


def assert_openlineage(value: dict[str, Any], shared: Path) -> None:
    """By the published schemas: the event's own, and each facet's that has one."""
    core, event, known = _validators(shared)
    core.validate(value)
    event(value["schemaURL"].rsplit("/", 1)[1]).validate(value)
    assert value["producer"].startswith(PRODUCER) or value["producer"].startswith("https://")
    for holder in (
        value.get("run"),
        value.get("job"),
        value.get("dataset"),
        *value.get("inputs", ()),
        *value.get("outputs", ()),
    ):
        for facets in ("facets", "inputFacets", "outputFacets"):
            for name, told in ((holder or {}).get(facets) or {}).items():
                schema = known.get(told["_schemaURL"].rsplit("/", 1)[1].split("#")[0])
                if schema is not None:
                    schema.validate({name: told})


@cache
def _validators(shared: Path) -> Any:
    """The core's, one per kind of event, and one per facet: made once, they are slow to make."""
    contracts = shared / "contracts" / "openlineage"
    core = json.loads((contracts / "OpenLineage.json").read_text())
    checker = jsonschema.FormatChecker(["date-time", "uuid"])
    known = {path.name: json.loads(path.read_text()) for path in (contracts / "facets").glob("*.json")}
    registry = _registry(core, known)

    @cache
    def event(kind: str) -> Any:
        return jsonschema.Draft202012Validator(
            {**core, "oneOf": [{"$ref": f"#/$defs/{kind}"}]}, format_checker=checker
        )

    facets = {
        name: jsonschema.Draft202012Validator(schema, registry=registry, format_checker=checker)
        for name, schema in known.items()
    }
    return jsonschema.Draft202012Validator(core, format_checker=checker), event, facets


def _registry(core: dict[str, Any], facets: dict[str, Any]) -> Any:
    from referencing import Registry, Resource
    from referencing.jsonschema import DRAFT202012

    resources = [(core["$id"], Resource(core, DRAFT202012))]
    resources += [(schema["$id"], Resource(schema, DRAFT202012)) for schema in facets.values()]

    def other_version(
        uri: str,
    ) -> Any:  # facets refer to the core of their day: they are the same for our purpose
        return Resource(core, DRAFT202012)

    return Registry(retrieve=other_version).with_resources(resources)
