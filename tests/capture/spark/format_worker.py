"""A group of `formats`, services and a directory -> the events and the oracle of each program, as JSON; a process of its own.

python format_worker.py GROUP ROOT '{"at": {...}, "jars": [...]}'
"""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path

import plain_formats  # noqa: F401 - its programs enrol themselves
import programs
from formats import FORMATS, prepare, settings
from sessions import PLAIN, Session


def main() -> None:
    group, root = sys.argv[1], Path(sys.argv[2])
    told = json.loads(sys.argv[3])
    at = told["at"]
    conf = settings(group, str(root), at)
    if told["jars"]:
        conf["spark.jars"] = ",".join(told["jars"])
    session = Session(root, **PLAIN, **conf)
    (programs.prepare if group == "plain" else prepare)(session.spark, str(root))
    out = {}
    version = tuple(map(int, session.minor.split(".")))
    for name, each in FORMATS.items():
        if each.group != group:
            continue
        if tuple(map(int, each.since.split("."))) > version:
            out[name] = {"skip": f"Spark {session.minor} has no such feature"}
            continue
        try:
            steps = each.run(session.spark, str(root), at)
            next(steps)
            session.take()
            next(steps)
            records, events = session.take()
            facts = next(steps)
            session.take()
            out[name] = {"events": events, "facts": facts, "records": records}
        except Exception:  # noqa: BLE001 - told to the test
            out[name] = {"error": traceback.format_exc()}
            session.take()
    (root / "told.json").write_text(json.dumps({"version": session.minor, "programs": out}))
    session.stop()


if __name__ == "__main__":
    main()
