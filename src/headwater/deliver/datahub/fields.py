"""deliver.datahub.fields: columns as an event tells them -> the fields of DataHub's schemaMetadata."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from headwater.deliver.datahub.facets import Field

_JAVA = {
    "string": "StringType",
    "long": "NumberType",
    "int": "NumberType",
    "timestamp": "TimeType",
    "struct": "MapType",
}
_KINDS = {
    "BooleanType": "bool boolean bit",
    "NumberType": "byte short int integer long tinyint smallint mediumint bigint hugeint int2 int4 int8 int16 int32 int64"
    " int128 int256 uint8 uint16 uint32 uint64 ubyte ushort uinteger ubigint utinyint usmallint float float4 float8 float16"
    " float32 float64 double real half decimal dec numeric number bignumeric bigdecimal fixed_decimal money smallmoney serial"
    " bigserial smallserial year oid",
    "StringType": "string str varchar varchar2 nvarchar nvarchar2 char nchar bpchar character text tinytext mediumtext longtext"
    " ntext clob nclob citext uuid uniqueidentifier name xml inet cidr macaddr url sysname rowid",
    "DateType": "date date32 date64",
    "TimeType": "time timetz timestamp timestamptz timestamp_ntz timestamp_ltz timestamp_tz timestamp_s timestamp_ms"
    " timestamp_us timestamp_ns datetime datetime2 smalldatetime datetimeoffset instant interval",
    "BytesType": "binary varbinary bytes bytea blob tinyblob mediumblob longblob raw image rowversion geometry geography",
    "FixedType": "fixed",
    "EnumType": "enum",
    "ArrayType": "array list set multiset repeated",
    "MapType": "map hstore dictionary",
    "RecordType": "struct row record object json jsonb variant super document nested tuple named_struct",
    "UnionType": "union dense_union",
    "NullType": "null void none nulltype unknown",
}
_TYPES = {word: kind for kind, words in _KINDS.items() for word in words.split()}
_WORD = re.compile(r"\s*([A-Za-z][A-Za-z0-9_]*)(.*)", re.DOTALL).match
_DEPTH = 50
"""Levels of fields inside of fields that are told."""


@lru_cache(4096)  # a few hundred types name most columns
def type_of(told: str | None) -> dict[str, Any]:
    """A type as SQL, Spark and the databases write it -> DataHub's; not to be changed.

    >>> type_of("DECIMAL(10, 2)"), type_of("array<string>")
    ({'com.linkedin.schema.NumberType': {}}, {'com.linkedin.schema.ArrayType': {'nestedType': ['string']}})
    """
    found = _WORD(told or "")
    if found is None:
        return {"com.linkedin.schema.NullType": {}}
    word, rest = found[1].lower(), found[2].strip()
    kind = _TYPES.get(word, "NullType")
    if rest.endswith("[]"):
        return {"com.linkedin.schema.ArrayType": {"nestedType": [(told or "").strip()[:-2]]}}
    more: dict[str, Any] = {}
    inner = rest[1:-1].strip() if rest[:1] in "<(" and rest[-1:] in ">)" and len(rest) > 2 else ""
    if kind == "ArrayType" and inner:
        more = {"nestedType": [inner]}
    elif kind == "MapType" and inner and "," in inner:
        key, _, value = inner.partition(",")
        more = {"keyType": key.strip(), "valueType": value.strip()}
    return {f"com.linkedin.schema.{kind}": more}


def java_fields(fields: Sequence[Field]) -> list[dict[str, Any]]:
    """The fields as the Java converter has them: the top ones, of five types."""
    return [
        {
            "fieldPath": each.name or "",
            "type": {"type": {f"com.linkedin.schema.{_JAVA.get(each.type or '', 'NullType')}": {}}},
            "nativeDataType": each.type or "",
        }
        for each in fields
    ]


def all_fields(fields: Sequence[Field], paths: str) -> list[dict[str, Any]]:
    """Every field, those inside of others after them; `paths` is v1 or v2."""
    begin = "[version=2.0].[type=struct]" if paths == "v2" else ""
    if not begin and not any(each.fields for each in fields):  # most tables, and in a fraction of the time
        named = {each.name: each for each in reversed(fields)}  # the first of those with one name
        return [_field(each.name, each) for each in fields if each.name and named[each.name] is each]
    found: dict[str, dict[str, Any]] = {}
    for made in _walk(fields, begin, paths == "v2", 0):
        found.setdefault(made["fieldPath"], made)  # DataHub refuses a schema that has one twice
    return list(found.values())


def _field(path: str, told: Field) -> dict[str, Any]:
    made: dict[str, Any] = {
        "fieldPath": path,
        "nullable": True,
        "type": {"type": type_of(told.type)},
        "nativeDataType": told.type or "",
        "recursive": False,
    }
    if told.description:
        made["description"] = told.description
    return made


def _walk(fields: Sequence[Field], above: str, typed: bool, depth: int) -> Iterator[dict[str, Any]]:
    for each in fields:
        if not each.name:
            continue
        path = f"{above}.{each.name}" if above else each.name
        if typed:
            path = f"{above}.[type={_word(each.type)}].{each.name}"
        yield _field(path, each)
        if each.fields and depth < _DEPTH:
            yield from _walk(each.fields, path, typed, depth + 1)


def _word(told: str | None) -> str:
    found = _WORD(told or "")
    return found[1].lower() if found else "null"
