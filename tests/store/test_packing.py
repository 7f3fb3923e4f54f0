"""Bodies are packed and unpacked by many threads at once: the server answers each question in a thread of its own."""

from __future__ import annotations

import subprocess
import sys
from hashlib import sha256
from importlib.resources import files

import zstandard
from hypothesis import given
from hypothesis import strategies as st

from headwater.cli.demo import recorded
from headwater.store._packing import pack, unpack

# In a process of its own: the fault this looks for ends the process.
MANY_AT_ONCE = """
import os, threading
from headwater.store._packing import pack, unpack

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


@given(st.binary(max_size=5_000))
def test_a_body_comes_back(body: bytes) -> None:
    assert unpack(pack(body)) == body


def test_what_was_packed_without_a_dictionary_is_read() -> None:
    for body in recorded():
        assert unpack(zstandard.ZstdCompressor(level=1).compress(body)) == body


def test_events_share_what_they_have_in_common() -> None:
    alone = zstandard.ZstdCompressor(level=1).compress
    for body in recorded():
        body = body.replace(b"shop", b"bank")  # not one that the dictionary was made of
        assert len(pack(body)) < 0.8 * len(alone(body))


def test_a_dictionary_never_changes() -> None:
    """Whatever was packed with it could not be read any more: a better one is another file."""
    kept = files("headwater.store").joinpath("openlineage.zdict").read_bytes()
    assert sha256(kept).hexdigest() == "e496665821aa9d4257ca52becc69356d40029f173969caa794316dabb531cb19"
