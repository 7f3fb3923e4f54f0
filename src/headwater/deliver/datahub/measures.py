"""deliver.datahub.measures: what an event counted of a dataset -> an operation and a profile of it."""

from __future__ import annotations

from typing import Any

from headwater.deliver.datahub import facets as of
from headwater.deliver.datahub.facets import Reader
from headwater.deliver.datahub.properties import java_text
from headwater.deliver.datahub.told import Last, Stamp
from headwater.deliver.datahub.urns import ACTOR
from headwater.event import Dataset

_CHANGES = {
    "CREATE": "CREATE",
    "DROP": "DROP",
    "TRUNCATE": "DELETE",
    "ALTER": "ALTER",
    "RENAME": "ALTER",
    "OVERWRITE": "UPDATE",
}


def operation_of(dataset: Dataset, stamp: Stamp, reader: Reader) -> Last | None:
    """What was done to an output; None where nothing says so."""
    changed = reader.read(dataset.facets, "lifecycleStateChange", of.LIFECYCLE)
    wrote = reader.read(dataset.outputFacets, "outputStatistics", of.STATISTICS)
    kind = _CHANGES.get((changed.lifecycleStateChange or "").upper()) if changed is not None else None
    if kind is None and wrote is None:
        return None
    time = stamp[0] // 1000
    made: dict[str, Any] = {
        "timestampMillis": time,
        "actor": ACTOR,
        "operationType": kind or "UPDATE",
        "sourceType": "DATA_PROCESS",
        "lastUpdatedTimestamp": time,
    }
    if wrote is not None and wrote.rowCount is not None and wrote.rowCount >= 0:
        made["numAffectedRows"] = wrote.rowCount
    more = {"runId": stamp[2]} if stamp[2] else {}
    if wrote is not None:
        counted = (("bytes", wrote.size), ("files", wrote.fileCount))
        more |= {name: str(value) for name, value in counted if value is not None}
    if more:
        made["customProperties"] = more
    return stamp, made


def profile_of(dataset: Dataset, stamp: Stamp, reader: Reader) -> Last | None:
    """What was found of a dataset; None where nothing was looked for."""
    inside = (
        dataset.inputFacets if dataset.inputFacets and "dataQualityMetrics" in dataset.inputFacets else None
    )
    found = reader.read(inside or dataset.facets, "dataQualityMetrics", of.QUALITY)
    if found is None:
        return None
    made: dict[str, Any] = {"timestampMillis": stamp[0] // 1000}
    if found.rowCount is not None:
        made["rowCount"] = found.rowCount
    if found.bytes is not None:
        made["sizeInBytes"] = found.bytes
    columns = {name: each for name, each in (found.columnMetrics or {}).items() if each is not None}
    if columns:
        made["columnCount"] = len(columns)
        made["fieldProfiles"] = [_field(name, each) for name, each in sorted(columns.items())]
    return (stamp, made) if len(made) > 1 else None


def _field(name: str, found: of.ColumnMetrics) -> dict[str, Any]:
    counts = (("uniqueCount", found.distinctCount), ("nullCount", found.nullCount))
    texts = (("min", found.min), ("max", found.max))
    return {
        "fieldPath": name,
        **{key: value for key, value in counts if value is not None},
        **{key: java_text(value) for key, value in texts if value is not None},
    }
