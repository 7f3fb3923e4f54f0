"""capture.dlt.columns: the paths that became columns, and who read them -> the columnLineage facet, and what is not known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.capture.dlt.facets import GENERATED, facet
from headwater.capture.dlt.leaves import shown
from headwater.capture.dlt.reading import Reading


def column_lineage(
    table: str, described: Mapping[str, Any], known: Mapping[str, Any], readings: list[Reading]
) -> dict[str, Any]:
    """column -> its input fields; nothing where more than one source may have made it."""
    model = (known.get("models") or {}).get(table)
    if model is not None:
        there = {column["name"] for column in described["columns"]}
        return {name: fields for name, fields in _of_model(model, readings).items() if name in there}
    direct = [each for each in readings if each.direct]
    if len(direct) != 1:
        return {}
    (source,) = direct
    types = {column["name"]: column for column in described["columns"]}
    out: dict[str, Any] = {}
    for column, origins in ((known.get("lineage") or {}).get(table) or {}).items():
        hints = types.get(column, {})
        same = len(origins) == 1 and hints.get("data_type") != "json" and not hints.get("variant")
        fields = sorted({shown(tuple(path)) for _, path in origins})
        out[column] = {
            "inputFields": [
                {
                    "namespace": source.dataset.namespace,
                    "name": source.dataset.name,
                    "field": each,
                    "transformations": [_way("IDENTITY" if same else "TRANSFORMATION", source, table)],
                }
                for each in fields
            ]
        }
    return out


def _way(subtype: str, source: Reading, table: str) -> dict[str, Any]:
    return {
        "type": "DIRECT",
        "subtype": subtype,
        "description": f"a field of the items that resource {source.feeds} yields",
        "masking": False,
    }


def _of_model(model: Mapping[str, Any], readings: list[Reading]) -> dict[str, Any]:
    by_name = {".".join(each.dataset.name.split(".")[-2:]): each for each in readings if each.model}
    out: dict[str, Any] = {}
    for column, sources in model["columns"].items():
        fields = [
            {
                "namespace": by_name[short].dataset.namespace,
                "name": by_name[short].dataset.name,
                "field": field,
                "transformations": [
                    {
                        "type": "DIRECT",
                        "subtype": "IDENTITY" if same else "TRANSFORMATION",
                        "description": "",
                        "masking": False,
                    }
                ],
            }
            for name, field, same in sources
            if (short := ".".join(name.split(".")[-2:])) in by_name
        ]
        if fields:
            out[column] = {"inputFields": fields}
    return out


def table_facet(
    table: str,
    described: Mapping[str, Any],
    package: Mapping[str, Any],
    known: Mapping[str, Any],
    resource: str,
    columns: Mapping[str, Any],
) -> dict[str, Any]:
    """How dlt writes the table, which of its columns dlt made, and of which columns nobody knows the source."""
    names = [column["name"] for column in described["columns"]]
    generated = [
        column["name"]
        for column in described["columns"]
        if column["name"] not in columns
        and (
            column["name"].startswith(GENERATED)
            or {"row_key", "parent_key", "root_key"} & set(column["keys"])
        )
    ]
    unknown = [name for name in names if name not in columns and name not in generated]
    root = table
    while package["tables"].get(root, {}).get("parent") in package["tables"]:
        root = package["tables"][root]["parent"]
    top = package["tables"][root]
    told: dict[str, Any] = {
        "resource": resource,
        "write_disposition": top.get("write_disposition", "append"),
        "merge_strategy": top.get("x-merge-strategy"),
        "table_format": top.get("table_format"),
        "parent": described.get("parent"),
        "schema": package["schema"],
        "schema_version": package["version"],
        "new_columns": [each["name"] for each in package["update"].get(table, ())],
        "primary_key": [column["name"] for column in described["columns"] if "primary_key" in column["keys"]],
        "generated_columns": generated,
        "columns_of_unknown_source": unknown,
        "sql": ((known.get("models") or {}).get(table) or {}).get("sql"),
    }
    if unknown and known.get("unfollowed"):
        told["why"] = "columns are not followed: the setting says so"
    elif unknown and root in (known.get("unread") or ()):
        told["why"] = "what was extracted could not be read"
    elif unknown and "lineage" not in known and "models" not in known:
        told["why"] = "the package was extracted without Headwater"
    elif unknown and (known.get("lineage") or {}).get(table) and not columns:
        told["why"] = "the resource reads more than one dataset, and its items do not tell from which"
    elif unknown:
        told["why"] = "not among the items that were looked at"
    return facet("dlt_table", **{key: value for key, value in told.items() if value not in (None, [])})
