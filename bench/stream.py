"""stream: a shape (jobs, runs, size) -> the same events every time; what the benches feed on.

A catalogue of `jobs` is cut into components of `width * layers` jobs. Each job reads two tables of the layer
above and writes one, with schemas and column lineage, so that an event has the size asked for.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from hashlib import blake2b

import msgspec

FACETS = "https://openlineage.io/spec/facets"
START = datetime(2026, 1, 1, tzinfo=timezone.utc)
PRODUCER = "https://example.org/bench"


@dataclass(frozen=True)
class Shape:
    jobs: int = 100
    runs: int = 1
    bytes: int = 2048
    layers: int = 20
    width: int = 5
    starts: bool = True  # send START before COMPLETE

    def place(self, job: int) -> tuple[int, int, int]:
        component, inside = divmod(job, self.layers * self.width)
        return component, *divmod(inside, self.width)

    def table(self, component: int, layer: int, position: int) -> str:
        return f"dw.c{component:04d}.t{layer:02d}_{position % self.width:02d}"

    def columns(self) -> int:
        """How many columns make an event of about `bytes`."""
        return max(1, (self.bytes - 1100) // 265)


def dataset(name: str, columns: int) -> dict[str, object]:
    fields = [
        {"name": f"column_{i:03d}", "type": ("bigint", "string", "timestamp")[i % 3]} for i in range(columns)
    ]
    return {
        "namespace": "postgres://warehouse:5432",
        "name": name,
        "facets": {
            "schema": {
                "_producer": PRODUCER,
                "_schemaURL": f"{FACETS}/1-1-1/SchemaDatasetFacet.json",
                "fields": fields,
            }
        },
    }


def run_id(hour: int, text: str) -> str:
    """A version 7 id, as orchestrators make them (some servers take no other), and the same every time."""
    began = int((START + timedelta(hours=hour)).timestamp() * 1000)
    rest = int.from_bytes(blake2b(text.encode(), digest_size=10).digest(), "big")
    number = began << 80 | rest
    number = number & ~(0xF << 76) | 7 << 76
    return str(uuid.UUID(int=number & ~(0x3 << 62) | 2 << 62))


def event(shape: Shape, job: int, run: int, kind: str, at: datetime) -> bytes:
    component, layer, position = shape.place(job)
    columns = shape.columns()
    inputs = [shape.table(component, layer, position + i) for i in range(2)]
    output = dataset(shape.table(component, layer + 1, position), columns)
    output["facets"]["columnLineage"] = {  # type: ignore[index]
        "_producer": PRODUCER,
        "_schemaURL": f"{FACETS}/1-2-0/ColumnLineageDatasetFacet.json",
        "fields": {
            f"column_{i:03d}": {
                "inputFields": [
                    {
                        "namespace": "postgres://warehouse:5432",
                        "name": inputs[i % 2],
                        "field": f"column_{i:03d}",
                        "transformations": [{"type": "DIRECT", "subtype": "IDENTITY"}],
                    }
                ]
            }
            for i in range(columns)
        },
    }
    parent = run_id(run, f"parent {component} {run}")
    body = {
        "eventType": kind,
        "eventTime": at.isoformat(),
        "producer": PRODUCER,
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {
            "runId": run_id(run, f"{job} {run}"),
            "facets": {
                "parent": {
                    "_producer": PRODUCER,
                    "_schemaURL": f"{FACETS}/1-1-0/ParentRunFacet.json",
                    "run": {"runId": parent},
                    "job": {"namespace": "bench", "name": f"pipeline_{component:04d}"},
                }
            },
        },
        "job": {"namespace": "bench", "name": f"pipeline_{component:04d}.load_{layer:02d}_{position:02d}"},
        "inputs": [dataset(name, columns) for name in inputs],
        "outputs": [output],
    }
    return msgspec.json.encode(body)


def events(shape: Shape) -> Iterator[bytes]:
    """Run after run, layer after layer, as a scheduler would send them."""
    for run in range(shape.runs):
        for job in range(shape.jobs):
            at = START + timedelta(hours=run, milliseconds=10 * job)
            if shape.starts:
                yield event(shape, job, run, "START", at)
            yield event(shape, job, run, "COMPLETE", at + timedelta(minutes=5))
