"""capture.connect.smt: a transform's class and settings -> what it does to a record's topic and fields, as a pure function.

To add one: write a function `(record, settings, part) -> records` in the module of whoever makes the transform and add a
line to TRANSFORMS. Packages outside register an entry point of group `headwater.smt`, whose name is the class. No record as an
answer means that all of them are dropped; several, that it depends on the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from headwater.capture.connect.records import Record
from headwater.plugins import Table

Part = Literal["key", "value"]


class Transform(Protocol):
    """What a transform does."""

    def __call__(self, record: Record, settings: Mapping[str, str], part: Part) -> Sequence[Record]:
        """What becomes of a record.

        Args:
            record: before it.
            settings: without the prefix `transforms.<name>.`.
            part: what the class's `$Key` or `$Value` says.

        Raises:
            ConfigError: its settings cannot be understood.

        """


_KAFKA = "headwater.capture.connect.smt.kafka"
_DEBEZIUM = "headwater.capture.connect.smt.debezium"
_OTHERS = "headwater.capture.connect.smt.others"


def _table() -> dict[str, tuple[str, str | None]]:
    rows = {
        _KAFKA: {
            "org.apache.kafka.connect.transforms.": (
                "Cast ExtractField Filter Flatten HoistField InsertField MaskField RegexRouter ReplaceField"
                " TimestampConverter TimestampRouter ValueToKey SetSchemaMetadata InsertHeader DropHeaders HeaderFrom"
            ),
            "io.confluent.connect.transforms.": (
                "ReplaceField RegexRouter MessageTimestampRouter=TimestampRouter SetSchemaMetadata"
            ),
            "io.confluent.connect.cloud.transforms.": "TopicRegexRouter=RegexRouter",
            "io.confluent.kafka.connect.transforms.": "TopicRegexRouter=RegexRouter",
        },
        _DEBEZIUM: {
            "io.debezium.transforms.": (
                "ExtractNewRecordState ByLogicalTableRouter UnwrapFromEnvelope=ExtractNewRecordState"
                " ExtractChangedRecordState=same HeaderToValue TimezoneConverter=same ContentBasedRouter Filter"
                " ExtractSchemaToNewRecord=same SchemaChangeEventFilter=same VectorToJsonConverter=same"
                " SwapGeometryCoordinates=same GeometryFormatTransformer=same EnforceRecordSize=same"
                " ToLogicalTopicRouter=ByLogicalTableRouter"
            ),
            "io.debezium.transforms.tracing.": "ActivateTracingSpan=same",
            "io.debezium.transforms.openlineage.": "OpenLineage=same",
            "io.debezium.transforms.outbox.": "EventRouter",
            "io.debezium.transforms.partitions.": "PartitionRouting=same ComputePartition=same",
            "io.debezium.connector.mongodb.transforms.": "ExtractNewDocumentState",
            "io.debezium.connector.mongodb.transforms.outbox.": "MongoEventRouter=EventRouter",
            "io.debezium.connector.postgresql.transforms.timescaledb.": "TimescaleDb",
            "io.debezium.connector.postgresql.transforms.": "DecodeLogicalDecodingMessageContent=same",
        },
        _OTHERS: {
            "io.confluent.connect.transforms.": (
                "ExtractTopic Filter=ConfluentFilter Drop TombstoneHandler=same GzipDecompress=same"
            ),
            "io.aiven.kafka.connect.transforms.": (
                "Hash=HashField HashField ConcatFields ExtractTopic ExtractTopicFromSchemaName ExtractTopicFromValueSchema"
                " KeyToValue CaseTransform FilterByFieldValue TombstoneHandler=same MakeTombstone=same"
            ),
            "io.tabular.iceberg.connect.transforms.": (
                "CopyValue DebeziumTransform DmsTransform JsonToMapTransform KafkaMetadataTransform"
                " MongoDebeziumTransform=DebeziumTransform"
            ),
            "org.apache.iceberg.connect.transforms.": (
                "CopyValue DebeziumTransform DmsTransform JsonToMapTransform KafkaMetadataTransform"
                " MongoDebeziumTransform=DebeziumTransform"
            ),
            "io.factorhouse.smt.": "OpenLineageLifecycleSmt=same UnwrapUnionTransform=same",
        },
    }
    return {
        f"{package}{each.partition('=')[0]}": (
            f"{module}:{_snake(each.partition('=')[2] or each)}",
            None,
        )
        for module, packages in rows.items()
        for package, names in packages.items()
        for each in names.split()
    }


def _snake(name: str) -> str:
    """`ReplaceField` -> `replace_field`."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


TRANSFORMS: Table = _table()
"""class, without `$Key` or `$Value` -> the function that knows it"""
