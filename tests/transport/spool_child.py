"""A process that emits until it is killed, and writes down what was acknowledged to it.

    spool_child.py SPOOL URL ACKS SEED [COUNT]

It rotates often, sends one or several events at a time, and now and then lets a forked child go on with its run.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
import uuid

from headwater.transport.spool import SpoolTransport


def event(run: str, number: int, pad: int = 0) -> bytes:
    told = {
        "eventType": "RUNNING",
        "eventTime": f"2026-01-01T00:{number // 60 % 60:02d}:{number % 60:02d}Z",
        "run": {"runId": run, "facets": {}},
        "job": {"namespace": "spool", "name": str(number)},
        "pad": "x" * pad,
    }
    return json.dumps(told).encode()


def main() -> None:
    spool, url, acks, seed, *rest = sys.argv[1:]
    dice, run = random.Random(int(seed)), str(uuid.UUID(int=int(seed) << 16 | 4 << 76 | 2 << 62))
    most = int(rest[0]) if rest else 1_000_000
    transport = SpoolTransport(f"spool://{spool}", to=url, drain="off", segment_bytes=4000)
    noted = os.open(acks, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    number = 0
    while number < most:
        count = min(dice.choice((1, 1, 1, 5)), most - number)
        events = [event(run, number + i, dice.choice((0, 100, 1000))) for i in range(count)]
        forked = os.fork() if dice.random() < 0.02 else -1
        if forked > 0:
            os.waitpid(forked, 0)
        else:
            transport.send(events)
            os.write(noted, "".join(f"{run} {number + i}\n" for i in range(count)).encode())
            if forked == 0:
                os._exit(0)
        number += count
        time.sleep(dice.choice((0, 0, 0, 0.005)))


if __name__ == "__main__":
    main()
