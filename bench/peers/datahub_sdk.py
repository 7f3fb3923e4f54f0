"""datahub_sdk: proposals on stdin, one a line -> CPU-seconds that acryl-datahub takes to build and to serialise them.

Run by bench/datahub.py in an environment that has acryl-datahub; it imports nothing of Headwater.
"""

from __future__ import annotations

import json
import sys
import time

from datahub.emitter.mcp import MetadataChangeProposalWrapper

made = [json.loads(line) for line in sys.stdin]
begun = time.process_time()
built = [MetadataChangeProposalWrapper.from_obj(each) for each in made]
middle = time.process_time()
size = sum(len(json.dumps(each.to_obj())) for each in built)
print(
    json.dumps({"build": middle - begun, "serialise": time.process_time() - middle, "bytes": size}),
    flush=True,
)
