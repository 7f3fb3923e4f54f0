"""serve.schemas: the bodies that handlers read by themselves -> how the description of the API tells them."""

from __future__ import annotations

from dataclasses import dataclass

from litestar.openapi.spec import OpenAPIMediaType, OpenAPIType, Operation, RequestBody, Schema

from headwater.event import TYPES

_TEXT = Schema(type=OpenAPIType.STRING, min_length=1)
_FACETS = Schema(type=OpenAPIType.OBJECT, description="Facets by their names; each is an object.")
_DATASET = Schema(
    type=OpenAPIType.OBJECT,
    required=["namespace", "name"],
    properties={
        "namespace": _TEXT,
        "name": _TEXT,
        "facets": _FACETS,
        "inputFacets": _FACETS,
        "outputFacets": _FACETS,
    },
)
EVENT = Schema(
    type=OpenAPIType.OBJECT,
    title="Event",
    description="A run, job or dataset event of OpenLineage, of any version of its specification.",
    required=["eventTime"],
    properties={
        "eventTime": Schema(type=OpenAPIType.STRING, description="ISO 8601; UTC where it names no zone."),
        "eventType": Schema(type=OpenAPIType.STRING, enum=sorted(TYPES)),
        "producer": Schema(type=OpenAPIType.STRING),
        "schemaURL": Schema(type=OpenAPIType.STRING),
        "run": Schema(
            type=OpenAPIType.OBJECT, required=["runId"], properties={"runId": _TEXT, "facets": _FACETS}
        ),
        "job": Schema(
            type=OpenAPIType.OBJECT,
            required=["namespace", "name"],
            properties={"namespace": _TEXT, "name": _TEXT, "facets": _FACETS},
        ),
        "dataset": _DATASET,
        "inputs": Schema(type=OpenAPIType.ARRAY, items=_DATASET),
        "outputs": Schema(type=OpenAPIType.ARRAY, items=_DATASET),
    },
)


@dataclass
class TakesEvent(Operation):
    """Its body is an event."""

    def __post_init__(self) -> None:
        self.request_body = RequestBody({"application/json": OpenAPIMediaType(EVENT)}, required=True)


@dataclass
class TakesEvents(Operation):
    """Its body is an array of events."""

    def __post_init__(self) -> None:
        events = Schema(type=OpenAPIType.ARRAY, items=EVENT, min_items=1)
        self.request_body = RequestBody({"application/json": OpenAPIMediaType(events)}, required=True)
