"""hosting: one host's share of a month -> its events given to the emitter, one by one, as the tools of that host would.

    python bench/hosting.py HOST OF EVENTS SEED SPOOL URL ARCHIVE

Told `tenth N` on stdin it sends what arrives in that tenth of the month and answers with what that took; told `end` it leaves its
ledger beside ARCHIVE and goes. What it sends it keeps in there, packed: the same lines, in the same order, repeats included.
"""

from __future__ import annotations

import json
import pickle
import resource
import sys
import time
from itertools import chain
from pathlib import Path

import zstandard

from company import Month, Size, tenth_of
from headwater import config
from headwater.emitter import Emitter


def main() -> None:
    host, of, events, seed = (int(each) for each in sys.argv[1:5])
    spool, url, archive = sys.argv[5:]
    month = Month(Size.of(events, seed), host, of)
    room = {"dir": spool, "linger": 20, "max_bytes": 16 << 30}
    emitter = Emitter(url, config.load({"spool": room}, environ={}))
    arrivals = month.arrivals()
    after: list[tuple[int, bytes]] = []
    for line in sys.stdin:
        if line.startswith("end"):
            break
        tenth = int(line.split()[1])
        latencies: list[float] = []
        spent = 0.0
        file = Path(archive, f"{host:02d}-{tenth}.jsonl.zst")
        with file.open("wb") as raw, zstandard.ZstdCompressor(3).stream_writer(raw) as kept:
            held, after = after, []
            for arrives, event in chain(held, arrivals):
                if tenth_of(arrives) > tenth:
                    after = [(arrives, event)]
                    break
                kept.write(event + b"\n")
                cpu, began = time.thread_time(), time.perf_counter()
                emitter.emit(event)
                latencies.append(time.perf_counter() - began)
                spent += time.thread_time() - cpu
        latencies.sort()
        told = {
            "sent": len(latencies),
            "emitting": sum(latencies),
            "cpu": spent,
            "p50": latencies[len(latencies) // 2] if latencies else 0.0,
            "p99": latencies[len(latencies) * 99 // 100] if latencies else 0.0,
            "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
        print(json.dumps(told), flush=True)
    emitter.close()
    assert [*after, *arrivals] == [], "the month was not over"
    Path(f"{archive}-{host:02d}.ledger").write_bytes(pickle.dumps(month.ledger))


if __name__ == "__main__":
    main()
