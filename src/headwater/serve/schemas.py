"""serve.schemas: the bodies that handlers read by themselves -> how the description of the API tells them."""

from __future__ import annotations

from dataclasses import dataclass

from litestar.openapi.spec import OpenAPIMediaType, OpenAPIType, Operation, RequestBody, Schema

from headwater.event import TYPES
from headwater.facts.commands import SetIncident, Watch

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

_NOTE = Schema(type=OpenAPIType.STRING, max_length=4_000)
_MUTE_DAYS = Schema(
    type=OpenAPIType.INTEGER, minimum=1, maximum=365, description="For how long a mute holds."
)


def takes(body: Schema) -> type[Operation]:
    """What a handler is told that reads such a body by itself: `operation_class=takes(EVENT)`."""

    @dataclass
    class Takes(Operation):
        def __post_init__(self) -> None:
            self.request_body = RequestBody({"application/json": OpenAPIMediaType(body)}, required=True)

    return Takes


def _said(title: str, required: list[str], **properties: Schema) -> type[Operation]:
    return takes(Schema(type=OpenAPIType.OBJECT, title=title, required=required, properties={**properties}))


TakesEvent = takes(EVENT)
TakesEvents = takes(Schema(type=OpenAPIType.ARRAY, items=EVENT, min_items=1))
TakesDecision = _said(
    "Decision",
    ["status"],
    status=Schema(type=OpenAPIType.STRING, enum=list(SetIncident.STATUSES)),
    reason=_NOTE,
    note=_NOTE,
    days=_MUTE_DAYS,
)
TakesStatus = _said(
    "Status",
    ["status"],
    status=Schema(type=OpenAPIType.STRING, enum=[s for s in SetIncident.STATUSES if s != "open"]),
    reason=Schema(type=OpenAPIType.STRING, max_length=4_000, description="Needed to mute."),
    note=_NOTE,
    mute_days=_MUTE_DAYS,
)
TakesNote = _said("Note", ["note"], note=Schema(type=OpenAPIType.STRING, min_length=1, max_length=4_000))
TakesPattern = _said("Pattern", ["pattern", "canonical"], pattern=_NOTE, canonical=_NOTE)
TakesWatch = _said(
    "Watch",
    ["pattern", "measure"],
    pattern=Schema(
        type=OpenAPIType.STRING,
        min_length=1,
        max_length=4_000,
        description="namespace/name; * stands for anything.",
    ),
    measure=Schema(type=OpenAPIType.STRING, enum=list(Watch.MEASURES)),
    live=Schema(type=OpenAPIType.BOOLEAN, default=True, description="false: watch them no longer."),
    sensitivity=Schema(type=OpenAPIType.NUMBER, exclusive_minimum=0, maximum=1000),
    history=Schema(type=OpenAPIType.INTEGER, minimum=5, maximum=500),
)
