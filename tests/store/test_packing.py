"""Bodies are packed and unpacked by many threads at once: the server answers each question in a thread of its own."""

from __future__ import annotations

import subprocess
import sys

# In a process of its own: the fault this looks for ends the process.
MANY_AT_ONCE = """
import os, threading
from headwater.store._upsert import pack, unpack

faults = []

def work(number):
    for size in range(300):
        body = bytes([number, size % 256]) * (size * 200) + os.urandom(2000)
        if unpack(pack(body)) != body:
            faults.append((number, size))

threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
raise SystemExit(f"{len(faults)} came back changed" if faults else 0)
"""


def test_many_threads_pack_and_unpack_at_once() -> None:
    done = subprocess.run([sys.executable, "-c", MANY_AT_ONCE], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
