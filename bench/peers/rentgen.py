"""rentgen: a file of events -> how fast data-rentgen's own consumer takes them into a Postgres database.

    RENTGEN_DSN=postgresql+asyncpg://… python bench/peers/rentgen.py EVENTS.jsonl BATCH

Run by `bench/backend.py` with the interpreter of data-rentgen's own environment. Its parser, extractor and saver are
driven as its Kafka subscriber drives them, without Kafka: so this is the least that its consumer costs. The last line
it prints is JSON.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import time
from pathlib import Path

from data_rentgen.consumer.extractors import BatchExtractor
from data_rentgen.consumer.saver import DatabaseSaver
from data_rentgen.consumer.subscribers import OpenLineageRunEventAdapter
from data_rentgen.db.factory import create_session_factory
from data_rentgen.db.settings import DatabaseSettings


async def consume(lines: list[bytes], size: int) -> dict[str, float]:
    """Take the lines in batches, each in a session of its own."""
    sessions = create_session_factory(DatabaseSettings(url=os.environ["RENTGEN_DSN"]))
    logger = logging.getLogger("bench")
    wall, cpu = time.perf_counter(), time.process_time()
    for start in range(0, len(lines), size):
        extractor = BatchExtractor()
        for line in lines[start : start + size]:
            extractor.add_events([OpenLineageRunEventAdapter.validate_json(line)])
        async with sessions() as session:
            await DatabaseSaver(session, logger).save(extractor.result)
    return {
        "seconds": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
        "events": len(lines),
    }


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR)
    taken = Path(sys.argv[1]).read_bytes().splitlines()
    print(json.dumps(asyncio.run(consume(taken, int(sys.argv[2])))))
