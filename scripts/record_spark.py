"""Record what the probe says of the programs in tests/capture/spark, for the replays there.

python scripts/record_spark.py              records/<version> of the pyspark that this Python has
python scripts/record_spark.py --only pivot
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1] / "tests" / "capture" / "spark"
sys.path[:0] = [str(HERE), str(HERE.parents[2] / "src")]
ROOT = "/data"
_LONGEST = 8_000


def _plain(value: Any, root: str) -> Any:
    """The same with the working directory as /data, and long texts (stack traces) cut."""
    if isinstance(value, dict):
        return {key: _plain(each, root) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each, root) for each in value]
    if isinstance(value, str):
        value = value.replace(f"{HERE.parents[2]}/", "/project/")
        # what stands in the way of a driver's own files names the machine: only the data's directory is kept
        text = value.replace(root, ROOT)
        return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
    return value


def main() -> int:
    """Run the programs and write their records."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--only", nargs="*", help="names of programs")
    chosen = options.parse_args()
    from checking import compare
    from programs import PROGRAMS, prepare
    from sessions import Session

    from headwater.naming import scrub_mapping

    with tempfile.TemporaryDirectory(prefix="record") as folder:
        root = Path(folder).resolve() / "data"
        root.mkdir()
        session = Session(root)
        target = HERE / "records" / session.minor
        target.mkdir(parents=True, exist_ok=True)
        prepare(session.spark, str(root))
        session.take()
        for name, program in PROGRAMS.items():
            if (chosen.only and name not in chosen.only) or not program.runs_on(session.minor):
                continue
            if program.needs and importlib.util.find_spec(program.needs) is None:
                print(f"{name}: left out, {program.needs} is not installed")
                continue
            program.run(session.spark, str(root))
            records, events = session.take()
            lines = [
                json.dumps(scrub_mapping(_plain(each, str(root))), ensure_ascii=False, separators=(",", ":"))
                for each in records
            ]
            (target / f"{name}.jsonl").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
            wrong = list(compare(program, events, str(root), session.minor))
            print(f"{name}: {len(records)} records" + "".join(f"\n    {each}" for each in wrong))
        kept = {"version": session.spark.version, "conf": _plain(dict(session.state.conf), str(root))}
        for key in [k for k in kept["conf"] if k.startswith("spark.app.")]:  # times and ids of the machine
            del kept["conf"][key]
        (target / "session.json").write_text(
            json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8"
        )
        session.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
