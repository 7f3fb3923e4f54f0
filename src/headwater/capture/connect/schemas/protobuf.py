"""capture.connect.schemas.protobuf: a .proto file -> the fields of its first message, with the messages that it imports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headwater.capture.connect.fields import MAX_DEPTH, Budget, Field
from headwater.errors import ConfigError, NotInstalled

WELL_KNOWN = {
    "google.protobuf.Timestamp": "timestamp",
    "google.protobuf.Duration": "duration",
    "google.protobuf.StringValue": "string",
    "google.protobuf.BytesValue": "bytes",
    "google.protobuf.BoolValue": "bool",
    "google.protobuf.Int32Value": "int32",
    "google.protobuf.Int64Value": "int64",
    "google.protobuf.UInt32Value": "uint32",
    "google.protobuf.UInt64Value": "uint64",
    "google.protobuf.FloatValue": "float",
    "google.protobuf.DoubleValue": "double",
    "google.protobuf.Struct": "struct",
    "google.protobuf.Value": "any",
    "google.protobuf.Any": "any",
    "google.type.Date": "date",
    "google.type.TimeOfDay": "time",
    "confluent.type.Decimal": "decimal",
}
# fmt: off
_SCALARS = frozenset({
    "double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32", "sfixed64",
    "bool", "string", "bytes",
})
# fmt: on


def parse(text: str, references: Mapping[str, str]) -> Field:
    """Read a file; the record is its first message.

    >>> parse('syntax = "proto3"; message M { repeated int64 ids = 1; }', {}).fields
    (Field(name='ids', type='array<int64>', fields=(), doc='', record=''),)
    """
    known: dict[str, Any] = {}
    for each in references.values():
        known.update(_types(_file(each)))
    own = _types(_file(text))
    known.update(own)
    first = next((name for name, each in own.items() if not _is_enum(each)), None)
    if first is None:
        raise ConfigError("no Protobuf schema: it has no message")
    return _Walk(known).message("", first, ())


def _file(text: str) -> Any:
    try:
        from proto_schema_parser.parser import Parser
    except ImportError as fault:
        raise NotInstalled("schemas in Protobuf", "connect") from fault
    try:
        return Parser(setup_lexer=_strict, setup_parser=_strict).parse(text)
    except (_NoProto, RecursionError, ValueError, AttributeError, TypeError) as fault:
        raise ConfigError(f"no Protobuf schema: {fault}") from None


class _NoProto(Exception):
    """Only handed from the listener to the caller."""


def _strict(reader: Any) -> None:
    """A fault is raised: the parser's own way is to print it and go on."""
    from antlr4.error.ErrorListener import ErrorListener

    class Listener(ErrorListener):  # type: ignore[misc]
        def syntaxError(self, recognizer: Any, symbol: Any, line: int, column: int, msg: str, e: Any) -> None:  # noqa: N802
            raise _NoProto(f"line {line}:{column} {msg}")

    reader.removeErrorListeners()
    reader.addErrorListener(Listener())


def _types(file: Any) -> dict[str, Any]:
    """Every message and enum of a file by its full name, in its order."""
    package = next((each.name for each in file.file_elements if type(each).__name__ == "Package"), "")
    found: dict[str, Any] = {}

    def walk(elements: Any, scope: str) -> None:
        for each in elements:
            if type(each).__name__ in ("Message", "Enum"):
                full = f"{scope}.{each.name}".lstrip(".")
                found[full] = each
                if type(each).__name__ == "Message":
                    walk(each.elements, full)

    walk(file.file_elements, package)
    return found


def _is_enum(element: Any) -> bool:
    return type(element).__name__ == "Enum"


class _Walk:
    def __init__(self, known: Mapping[str, Any]) -> None:
        self.known, self.budget = known, Budget()

    def message(self, name: str, full: str, inside: tuple[str, ...]) -> Field:
        short = full.rpartition(".")[2]
        if full in inside or len(inside) > MAX_DEPTH:
            return Field(name, short, record=full)
        fields = tuple(self._fields(self.known[full].elements, full, (*inside, full)))
        return Field(name, short, fields, record=full)

    def _fields(self, elements: Any, scope: str, inside: tuple[str, ...]) -> Iterator[Field]:
        for each in elements:
            kind = type(each).__name__
            if kind == "OneOf":
                yield from self._fields(each.elements, scope, inside)
            elif kind == "MapField":
                inner = self._typed(each.name, each.value_type, scope, inside)
                yield Field(each.name, f"map<{each.key_type},{inner.type}>", inner.fields)
            elif kind == "Group":
                self.budget.spend()
                yield Field(each.name.lower(), each.name, tuple(self._fields(each.elements, scope, inside)))
            elif kind == "Field":
                inner = self._typed(each.name, each.type, scope, inside)
                many = each.cardinality is not None and each.cardinality.name == "REPEATED"
                yield Field(each.name, f"array<{inner.type}>", inner.fields) if many else inner

    def _typed(self, name: str, kind: str, scope: str, inside: tuple[str, ...]) -> Field:
        self.budget.spend()
        if kind in _SCALARS:
            return Field(name, kind)
        full = self._resolve(kind, scope)
        if full is None:
            known = WELL_KNOWN.get(kind.lstrip("."))
            return Field(name, known or kind.lstrip("."))
        if _is_enum(self.known[full]):
            return Field(name, "enum")
        return self.message(name, full, inside)

    def _resolve(self, kind: str, scope: str) -> str | None:
        """As Protobuf looks names up: from the innermost scope outwards."""
        if kind.startswith("."):
            return kind[1:] if kind[1:] in self.known else None
        parts = scope.split(".")
        for size in range(len(parts), -1, -1):
            full = ".".join([*parts[:size], kind])
            if full in self.known:
                return full
        return None
