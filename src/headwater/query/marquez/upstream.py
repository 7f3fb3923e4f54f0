"""query.marquez.upstream: a run and a depth -> the runs that wrote what it read, and so on, the nearest first."""

from __future__ import annotations

from typing import Any

from headwater.query.marquez._words import dataset_version_uuid
from headwater.query.marquez.runs import find_run, run_models
from headwater.store import Store

MAX_DEPTH = 1_000
_MOST = 5_000


def run_upstream(store: Store, run_id: str, depth: int) -> dict[str, Any]:
    """`{"runs": […]}`, the run itself first."""
    with store.read() as reader:
        history, catalogue = reader.history(), reader.catalogue()
        first = find_run(reader, run_id)
        rows = {first["id"]: first}
        order, frontier = [first["id"]], [first["id"]]
        inputs: dict[int, dict[tuple[str, str, str], str | None]] = {}
        for hop in range(min(depth, MAX_DEPTH) + 1):
            io = history.io(frontier)["in"]
            reads = history.read_versions(io)
            leaders = catalogue.leaders({each.dataset for each in io})
            named = catalogue.nodes("dataset", set(leaders.values()))
            found: set[int] = set()
            for each in io:
                head, write = named[leaders[each.dataset]], reads.get((each.run, each.dataset))
                name, maker = (head["namespace"], head["name"]), write and write.run_id
                version = dataset_version_uuid(*name, maker, None if write is None else write.at)
                key = (*name, version)  # a dataset that was read under several names is one
                inputs.setdefault(each.run, {})[key] = maker
                if write is not None and write.run is not None and write.run not in rows:
                    found.add(write.run)
            if not found or hop == depth or len(rows) > _MOST:
                break
            nearer = history.runs(found)
            rows.update(nearer)
            frontier = sorted(
                nearer, key=lambda number: (-rows[number]["first_seen"], rows[number]["run_id"])
            )
            order += frontier
        models = run_models(reader, [rows[number] for number in order], brief=True).models
        jobs = catalogue.nodes("job", {row["job"] for row in rows.values() if row["job"] is not None})
    runs = []
    for number in order:
        model, job = models[number], jobs.get(rows[number]["job"])
        shown = model["jobVersion"]["version"] if model["jobVersion"] else None
        runs.append(
            {
                "job": None
                if job is None
                else {"namespace": job["namespace"], "name": job["name"], "version": shown},
                "run": {
                    "id": model["id"],
                    "start": model["startedAt"],
                    "end": model["endedAt"],
                    "status": model["state"],
                },
                "inputs": [
                    {"namespace": namespace, "name": name, "version": version, "producedByRunId": maker}
                    for (namespace, name, version), maker in sorted(inputs.get(number, {}).items())
                ],
            }
        )
    return {"runs": runs}
