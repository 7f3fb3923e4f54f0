"""capture.spark._datahub: the keys of DataHub's Spark agent -> the same in the OpenLineage agent's words; what has none is told once."""

from __future__ import annotations

from collections.abc import Mapping

DATAHUB = "spark.datahub."
_OFF = ("false", "no", "0", "off")
_TRIMMERS = "DateTrimmer;KeyValueTrimmer;MultiDirDateTrimmer;YearMonthTrimmer"


def of_datahub(given: Mapping[str, str], warnings: list[str]) -> dict[str, str]:
    """What has a counterpart here; one warning names the rest.

    >>> of_datahub({"flow_name": "nightly", "captureColumnLevelLineage": "false"}, [])
    {'appName': 'nightly', 'facets.columnLineage.disabled': 'true'}
    """
    out: dict[str, str] = {}
    followed = []
    for key, text in given.items():
        made = _counterpart(key, text.strip())
        if made is not None:
            out |= made
            followed.append(key)
    rest = sorted(key for key in given if key not in followed)
    if rest:
        warnings.append(
            f"Headwater does not deliver to DataHub yet, so nothing is sent there and these settings wait for it:"
            f" {', '.join(DATAHUB + key for key in rest)}. Events go where spark.headwater.transport says"
        )
    return out


def _counterpart(key: str, text: str) -> dict[str, str] | None:
    off = text.lower() in _OFF
    if key == "flow_name":
        return {"appName": text}
    if key == "captureColumnLevelLineage":
        return {"facets.columnLineage.disabled": "true"} if off else {}
    if key == "capture_spark_plan":
        return {} if off else {"facets.spark.logicalPlan.disabled": "false"}
    if key == "metadata.dataset.openLineageTrimmersEnabled":
        return {"dataset.disabledTrimmers": _TRIMMERS} if off else {}
    return None
