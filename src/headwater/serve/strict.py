"""serve.strict: an event -> the rule of the spec that it breaks, where its sender should hear of it.

Files and batches are taken as they come: what is missing is better known late than never. Whoever posts a single
event that claims, by its `schemaURL`, to keep the spec hears, as from Marquez, that the producer, the run, the id of a
parent's run or the name of a field is missing.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from headwater.errors import EventError
from headwater.event import parse


class _Field(msgspec.Struct):
    name: str


class _Schema(msgspec.Struct):
    fields: list[_Field] | None = None


class _DatasetFacets(msgspec.Struct):
    schema: _Schema | None = None


class _Dataset(msgspec.Struct):
    facets: _DatasetFacets | None = None


class _ParentRun(msgspec.Struct):
    run_id: str = msgspec.field(name="runId")


class _Parent(msgspec.Struct):
    run: _ParentRun


class _RunFacets(msgspec.Struct):
    parent: _Parent | None = None


class _Run(msgspec.Struct):
    facets: _RunFacets | None = None


class _Event(msgspec.Struct):
    producer: str
    schema_url: Any = msgspec.field(default=None, name="schemaURL")
    run: _Run | None = None
    inputs: list[_Dataset] | None = None
    outputs: list[_Dataset] | None = None


_decoder = msgspec.json.Decoder(_Event)
_MISSING = re.compile(r"Object missing required field `(\w+)`(?: - at `\$\.?(.*)`)?")


def broken_rule(body: bytes) -> EventError | None:
    """What is missing in an event; None where it is no event at all, which is for others to say.

    >>> event = b'{"eventTime": "2026-01-01T00:00:00Z", "job": {"namespace": "a", "name": "b"}, "schemaURL": "x/JobEvent"}'
    >>> str(broken_rule(event))
    'producer: missing'
    """
    if b'"schemaURL"' not in body:
        return None
    fault = _fault(body)
    if fault is not None:
        try:
            parse(body)
        except EventError:
            return None
    return fault


def _fault(body: bytes) -> EventError | None:
    try:
        event = _decoder.decode(body)
    except msgspec.ValidationError as fault:
        found = _MISSING.fullmatch(str(fault))
        return EventError(".".join(filter(None, (found[2], found[1]))), "missing") if found else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    kind = event.schema_url.rpartition("/")[2] if isinstance(event.schema_url, str) else ""
    return EventError("run", "missing") if event.run is None and kind == "RunEvent" else None
