"""A program for the environment that has acryl-datahub: proposals on stdin, one a line -> what is wrong with each on stdout.

It is run by tests, and imports nothing of Headwater.
"""

from __future__ import annotations

import json
import sys

from datahub.emitter.mcp import MetadataChangeProposalWrapper
from datahub.metadata.schema_classes import (
    ASPECT_NAME_MAP,
    GenericAspectClass,
    MetadataChangeProposalClass,
)
from datahub.metadata.urns import Urn


def wrong(told: dict) -> str | None:
    """Why a proposal is none; None where it is one."""
    try:
        Urn.from_string(told["entityUrn"])
        if told["changeType"] == "PATCH":
            value = json.dumps(told["aspect"]["json"]).encode()
            made = MetadataChangeProposalClass(
                entityType=told["entityType"],
                entityUrn=told["entityUrn"],
                changeType="PATCH",
                aspectName=told["aspectName"],
                aspect=GenericAspectClass(value=value, contentType="application/json-patch+json"),
            )
            known = told["aspectName"] in ASPECT_NAME_MAP
            return None if made.validate() and known else "no patch"
        made = MetadataChangeProposalWrapper.from_obj(told)
        if not isinstance(made, MetadataChangeProposalWrapper):
            return f"read as {type(made).__name__}"
        if not made.validate():
            return "not valid"
        return None if made.aspect is not None else "no aspect"
    except Exception as fault:  # noqa: BLE001 - whatever it is, it is what is wrong
        return f"{type(fault).__name__}: {fault}"


for line in sys.stdin:
    print(json.dumps(wrong(json.loads(line))), flush=True)
