"""deliver.datahub.wire: a change proposal -> the bytes that GMS, Kafka and files hold of it, none longer than DataHub reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from headwater.deliver.datahub.proposing import Proposal
from headwater.errors import TooLarge

JSON, JSON_PATCH = "application/json", "application/json-patch+json"
_SHORTEST = 200
_encode = msgspec.json.Encoder().encode


def text_of(made: Proposal, most: int) -> bytes:
    """The aspect as JSON; where it is longer than `most`, its longest texts are cut, with a mark.

    Raises:
        TooLarge: it is longer though every text is cut.

    """
    aspect = made["aspect"]["json"]
    whole = _encode(aspect)
    limit = most // 2
    while len(whole) > most:
        if limit < _SHORTEST:
            name = f"{made['aspectName']} of {made['entityUrn'][:200]}"
            raise TooLarge("", f"{name}: {len(whole):,} bytes are more than DataHub reads ({most:,})")
        whole = _encode(_cut(aspect, limit))
        limit //= 4
    return whole


def bounded(made: Proposal, most: int) -> Proposal:
    """The proposal with texts that are too long cut."""
    text = text_of(made, most)
    return {**made, "aspect": {"json": msgspec.Raw(text)}}


def content_type(made: Proposal) -> str:
    """What the value of a proposal is."""
    return JSON_PATCH if made["changeType"] == "PATCH" else JSON


def for_gms(made: Proposal, most: int) -> bytes:
    """A proposal as GMS takes it: the aspect is a text that holds JSON."""
    value = text_of(made, most).decode()
    return _encode({**made, "aspect": {"value": value, "contentType": content_type(made)}})


def for_file(made: Proposal, most: int) -> bytes:
    """A proposal as `datahub ingest` reads it from a file."""
    return _encode(bounded(made, most))


def is_proposal(payload: bytes) -> bool:
    """Whether it is a proposal that was kept, and no event."""
    return payload[:64].lstrip().startswith(b'{"entityType"')


def read_proposal(payload: bytes) -> Proposal:
    """A proposal that was kept."""
    return msgspec.json.decode(payload, type=dict[str, Any])


def _cut(value: Any, limit: int) -> Any:
    if isinstance(value, str):
        if len(value) <= limit or value.startswith("urn:li:"):
            return value
        return f"{value[:limit]}… [cut: {len(value):,} characters]"
    if isinstance(value, Mapping):
        return {key: _cut(inner, limit) for key, inner in value.items()}
    if isinstance(value, list):
        return [_cut(inner, limit) for inner in value]
    return value


# ---- Avro, for Kafka ---------------------------------------------------------------------------------------

_ASPECT = {
    "type": "record",
    "name": "GenericAspect",
    "namespace": "com.linkedin.pegasus2avro.mxe",
    "fields": [{"name": "value", "type": "bytes"}, {"name": "contentType", "type": "string"}],
}
_CHANGES = ("UPSERT", "CREATE", "UPDATE", "DELETE", "PATCH", "RESTATE", "CREATE_ENTITY")


def _optional(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None}


_STAMP = {
    "type": "record",
    "name": "AuditStamp",
    "namespace": "com.linkedin.pegasus2avro.common",
    "fields": [
        {"name": "time", "type": "long"},
        {"name": "actor", "type": "string"},
        _optional("impersonator", "string"),
        _optional("message", "string"),
    ],
}
SCHEMA = {
    "type": "record",
    "name": "MetadataChangeProposal",
    "namespace": "com.linkedin.pegasus2avro.mxe",
    "fields": [
        _optional(
            "auditHeader",
            {
                "type": "record",
                "name": "KafkaAuditHeader",
                "namespace": "com.linkedin.events",
                "fields": [
                    {"name": "time", "type": "long"},
                    {"name": "server", "type": "string"},
                    _optional("instance", "string"),
                    {"name": "appName", "type": "string"},
                    {"name": "messageId", "type": {"type": "fixed", "name": "UUID", "size": 16}},
                    _optional("auditVersion", "int"),
                    _optional("fabricUrn", "string"),
                    _optional("clusterConnectionString", "string"),
                ],
            },
        ),
        {"name": "entityType", "type": "string"},
        _optional("entityUrn", "string"),
        _optional("entityKeyAspect", _ASPECT),
        {
            "name": "changeType",
            "type": {
                "type": "enum",
                "name": "ChangeType",
                "namespace": "com.linkedin.pegasus2avro.events.metadata",
                "symbols": list(_CHANGES),
            },
        },
        _optional("aspectName", "string"),
        _optional("aspect", "com.linkedin.pegasus2avro.mxe.GenericAspect"),
        _optional(
            "systemMetadata",
            {
                "type": "record",
                "name": "SystemMetadata",
                "namespace": "com.linkedin.pegasus2avro.mxe",
                "fields": [
                    {"name": "lastObserved", "type": ["long", "null"], "default": 0},
                    {"name": "runId", "type": ["string", "null"], "default": "no-run-id-provided"},
                    {"name": "lastRunId", "type": ["string", "null"], "default": "no-run-id-provided"},
                    _optional("pipelineName", "string"),
                    _optional("registryName", "string"),
                    _optional("registryVersion", "string"),
                    _optional("properties", {"type": "map", "values": "string"}),
                    _optional("version", "string"),
                    _optional("schemaVersion", "long"),
                    _optional("aspectCreated", _STAMP),
                    _optional("aspectModified", "com.linkedin.pegasus2avro.common.AuditStamp"),
                ],
            },
        ),
        _optional("headers", {"type": "map", "values": "string"}),
    ],
}
"""What DataHub reads from its topic of proposals, as Avro."""


def for_kafka(made: Proposal, most: int, schema_id: int) -> bytes:
    """A proposal as Confluent's wire format has it: a zero, the schema's number, and Avro by SCHEMA."""
    some = b"\x02"  # the second of a union: what is there
    parts = [
        b"\x00" + schema_id.to_bytes(4, "big"),
        b"\x00",  # auditHeader
        _bytes(made["entityType"].encode()),
        some + _bytes(made["entityUrn"].encode()),
        b"\x00",  # entityKeyAspect
        _long(_CHANGES.index(made["changeType"])),
        some + _bytes(made["aspectName"].encode()),
        some + _bytes(text_of(made, most)) + _bytes(content_type(made).encode()),
        b"\x00\x00",  # systemMetadata, headers
    ]
    return b"".join(parts)


def _bytes(value: bytes) -> bytes:
    return _long(len(value)) + value


def _long(value: int) -> bytes:
    """Avro's zigzag.

    >>> _long(-1), _long(64)
    (b'\\x01', b'\\x80\\x01')
    """
    rest, out = (value << 1) ^ (value >> 63), bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)
