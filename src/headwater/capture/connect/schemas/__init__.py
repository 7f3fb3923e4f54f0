"""capture.connect.schemas: the text of a schema in a registry -> one tree of fields; Avro, JSON Schema and Protobuf.

To add a format: write schemas/<name>.py with `parse(text, references)` and add a line to FORMATS. `references` holds
the schemas that the text refers to, by the name it uses for them, those first that others of them need.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from headwater import plugins
from headwater.capture.connect.fields import Field


class Parser(Protocol):
    """What reads a format."""

    def __call__(self, text: str, references: Mapping[str, str]) -> Field:
        """The whole as a field without a name.

        Raises:
            ConfigError: it is no such schema.

        """


FORMATS: plugins.Table = {
    "AVRO": ("headwater.capture.connect.schemas.avro:parse", "connect"),
    "JSON": ("headwater.capture.connect.schemas.json_schema:parse", None),
    "CONNECT": ("headwater.capture.connect.schemas.connect_json:parse", None),
    "PROTOBUF": ("headwater.capture.connect.schemas.protobuf:parse", "connect"),
}


def parse(format: str, text: str, references: Mapping[str, str] | None = None) -> Field:
    """Read a schema as its registry calls it; without a format it is Avro.

    >>> parse("JSON", '{"type": "object", "properties": {"id": {"type": "integer"}}}').fields
    (Field(name='id', type='integer', fields=(), doc='', record=''),)
    """
    parser: Parser = plugins.find("schema format", (format or "AVRO").upper(), FORMATS)
    return parser(text, references or {})
