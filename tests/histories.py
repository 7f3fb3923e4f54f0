"""histories: hypothesis -> runs of a few jobs over a few datasets, as events with their times; events -> a store."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st

from headwater.ingest import ingest
from headwater.store import Store, open_store
from streams import SCHEMA, at, run_id

sides = st.sets(st.integers(0, 4), max_size=2)
runs = st.lists(
    st.tuples(
        st.integers(0, 1),  # job
        st.integers(0, 15),  # start
        st.integers(1, 6),  # duration
        st.sampled_from(("COMPLETE", "COMPLETE", "FAIL", "")),  # "" never ends
        sides, sides, sides, sides,  # inputs and outputs that START names, and the end
    ),
    max_size=7,
)  # fmt: skip
declared = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 20), sides, sides), max_size=2)


def dataset(number: int, **facets: Any) -> dict[str, Any]:
    return {"namespace": "file", "name": f"/d{number}", "facets": facets}


def event(kind: str, second: int, run: int | None, job: int, inputs: Any, outputs: Any) -> tuple[int, bytes]:
    body = {
        "eventTime": at(second),
        "producer": "https://example.org",
        "schemaURL": SCHEMA + ("RunEvent" if run is not None else "JobEvent"),
        "job": {"namespace": "etl", "name": f"j{job}"},
        "inputs": [dataset(each) for each in sorted(inputs)],
        "outputs": [dataset(each) for each in sorted(outputs)],
    }
    if run is not None:
        body |= {"eventType": kind, "run": {"runId": run_id(run)}}
    return second, msgspec.json.encode(body)


def history(told: Any, words: Any) -> list[tuple[int, bytes]]:
    out = []
    for number, (job, start, length, end, in1, out1, in2, out2) in enumerate(told):
        out.append(event("START", start, number, job, in1, out1))
        if end:
            out.append(event(end, start + length, number, job, in2, out2))
    return out + [event("", second, None, job, i, o) for job, second, i, o in words]


def filled(stream: list[tuple[int, bytes]]) -> Store:
    store = open_store("memory:")
    ingest(store, [body for _, body in stream])
    return store
