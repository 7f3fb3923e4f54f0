"""Short words -> events, and proposals -> what tests ask of them."""

from __future__ import annotations

import json
from typing import Any

from headwater.deliver.datahub import Converter, Options, Proposal, make
from headwater.event import Event, parse

SPARK = "https://github.com/OpenLineage/OpenLineage/tree/1.50.0/integration/spark"
RUN = "0197f3c6-0000-7000-8000-00000000000a"
PARENT = "0197f3c6-0000-7000-8000-00000000000b"
JAVA = {"compat": "datahub-java"}


def dataset(namespace: str, name: str, **facets: Any) -> dict[str, Any]:
    outer = {key: facets.pop(key) for key in ("inputFacets", "outputFacets") if key in facets}
    return {"namespace": namespace, "name": name, "facets": facets, **outer}


def symlinks(*links: tuple[str, str] | tuple[str, str, str]) -> dict[str, Any]:
    rows = [(*link, "TABLE")[:3] for link in links]
    return {"identifiers": [{"namespace": n, "name": m, "type": t} for n, m, t in rows]}


def schema(**fields: str) -> dict[str, Any]:
    return {"fields": [{"name": name, "type": kind} for name, kind in fields.items()]}


def columns(**fields: list[tuple[Any, ...]]) -> dict[str, Any]:
    """`out=[(namespace, name, field, "DIRECT:IDENTITY", …)]`."""
    return {
        "fields": {
            out: {
                "inputFields": [
                    {
                        "namespace": namespace,
                        "name": name,
                        "field": field,
                        "transformations": [
                            dict(zip(("type", "subtype"), way.split(":"), strict=False)) for way in ways
                        ],
                    }
                    for namespace, name, field, *ways in made_of
                ]
            }
            for out, made_of in fields.items()
        }
    }


def raw(kind: str | None = "COMPLETE", **told: Any) -> dict[str, Any]:
    """A run event; `at` is its second, `run_facets` and `job_facets` its facets."""
    at = told.pop("at", 0)
    body: dict[str, Any] = {
        "eventTime": f"2026-01-01T00:{at // 60:02}:{at % 60:02}.000Z",
        "eventType": kind,
        "producer": told.pop("producer", SPARK),
        "run": {"runId": told.pop("run", RUN), "facets": told.pop("run_facets", {})},
        "job": {
            "namespace": told.pop("namespace", "ns"),
            "name": told.pop("job", "app.step"),
            "facets": told.pop("job_facets", {}),
        },
        "inputs": told.pop("inputs", []),
        "outputs": told.pop("outputs", []),
    }
    return {**body, **told}


def event(kind: str | None = "COMPLETE", **told: Any) -> Event:
    return parse(json.dumps(raw(kind, **told)))


def options(**given: Any) -> Options:
    return make(given)


def convert(told: Event | dict[str, Any], by: str = "none", **given: Any) -> list[Proposal]:
    one = told if isinstance(told, Event) else parse(json.dumps(told))
    return Converter(options(**given), by).convert(one)


def urn_of(namespace: str, name: str, facets: dict[str, Any] | None = None, **given: Any) -> str | None:
    """The urn of an input; None where it has none."""
    made = convert(event(inputs=[dataset(namespace, name, **(facets or {}))]), **given)
    edges = aspect(made, "dataJobInputOutput", {}).get("inputDatasetEdges", [])
    return edges[0]["destinationUrn"] if edges else None


def short(urn: str | None) -> str | None:
    """`urn:li:dataset:(urn:li:dataPlatform:s3,b/k,PROD)` -> `s3,b/k,PROD`, without PROD where it is that."""
    if urn is None:
        return None
    return urn.removeprefix("urn:li:dataset:(urn:li:dataPlatform:").removesuffix(")").removesuffix(",PROD")


def aspects(made: list[Proposal], name: str, kind: str | None = None) -> list[Any]:
    return [
        each["aspect"]["json"]
        for each in made
        if each["aspectName"] == name and kind in (None, each["entityType"])
    ]


_MISSING = object()


def aspect(made: list[Proposal], name: str, default: Any = _MISSING, kind: str | None = None) -> Any:
    found = aspects(made, name, kind)
    if not found and default is not _MISSING:
        return default
    assert len(found) == 1, f"{len(found)} aspects {name}"
    return found[0]


def urns(made: list[Proposal], kind: str) -> set[str]:
    return {each["entityUrn"] for each in made if each["entityType"] == kind}
