"""Converts Avro's types to Arrow's, for the schemas of log blocks (`HoodieSchema`, `SchemaConverters`, Hudi 1.2.0)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from jobs.errors import NotProvedError

_DEEPEST = 32
_MOST_FIELDS = 20_000
_SIMPLE = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
    ("string", "uuid"): pa.string(),
}


@dataclass(frozen=True)
class AvroType:
    """A type in a schema, with the name of the field that has it. Each value takes at least one byte."""

    kind: str  # Avro's name of the type.
    arrow: pa.DataType
    name: str = ""  # The field's name, if the type is that of a field.
    null_branch: int | None = None  # The index of null in a union of null and this type.
    fields: tuple[AvroType, ...] = ()  # A record's fields, an array's element, or a map's key and value.
    size: int = 0
    symbols: tuple[str, ...] = ()

    @property
    def nullable(self) -> bool:
        return self.null_branch is not None

    @property
    def is_decimal(self) -> bool:
        return bool(pa.types.is_decimal(self.arrow))


def of_record(schema: Any) -> AvroType:
    """Returns the type of a schema's records, from its JSON. Raises NotProvedError for types that are not supported."""
    try:
        found = _Names().type_of(schema, "", 0)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, pa.ArrowException):
        raise NotProvedError("a log block's schema is not one of Avro") from None
    if found.kind != "record" or found.nullable:
        raise NotProvedError("a log block's schema is not a record")
    return found


class _Names:
    """Reads one schema. Keeps the types that have names, because later types refer to them."""

    def __init__(self) -> None:
        self._named: dict[str, AvroType] = {}
        self._count = 0

    def type_of(self, schema: Any, namespace: str, depth: int) -> AvroType:
        self._count += 1
        if depth > _DEEPEST or self._count > _MOST_FIELDS:
            raise NotProvedError("a log block's schema is too deep or too large")
        if isinstance(schema, list):
            return self._union(schema, namespace, depth)
        if isinstance(schema, str):
            if schema in _SIMPLE:
                return AvroType(schema, _SIMPLE[schema])
            return self._named[schema if "." in schema or not namespace else f"{namespace}.{schema}"]
        kind = schema["type"]
        if isinstance(kind, dict | list):
            return self.type_of(kind, namespace, depth + 1)
        if kind in ("record", "fixed", "enum"):
            return self._with_name(kind, schema, namespace, depth)
        if kind == "array":
            element = replace(self.type_of(schema["items"], namespace, depth + 1), name="element")
            return AvroType(kind, pa.list_(_field(element)), fields=(element,))
        if kind == "map":
            key = AvroType("string", pa.string(), "key")
            value = replace(self.type_of(schema["values"], namespace, depth + 1), name="value")
            return AvroType(kind, pa.map_(_field(key), _field(value)), fields=(key, value))
        return _logical(self.type_of(kind, namespace, depth + 1), schema)

    def _union(self, branches: list[Any], namespace: str, depth: int) -> AvroType:
        if len(branches) != 2 or branches.count("null") != 1:
            raise NotProvedError("a log block's schema has a union of several types")
        null = branches.index("null")
        found = self.type_of(branches[1 - null], namespace, depth + 1)
        if found.nullable:
            raise ValueError("a union in a union")
        return replace(found, null_branch=null)

    def _with_name(self, kind: str, schema: dict[str, Any], namespace: str, depth: int) -> AvroType:
        name = schema["name"]
        if "." not in name:
            inside = schema.get("namespace", namespace)
            name = f"{inside}.{name}" if inside else name
        found = self._record(schema, name, depth) if kind == "record" else _logical(_sized(kind, schema), schema)
        if self._named.setdefault(name, found) != found:
            raise NotProvedError("a log block's schema defines a name twice")
        return found

    def _record(self, schema: dict[str, Any], name: str, depth: int) -> AvroType:
        inside = name.rpartition(".")[0]
        fields = [
            replace(self.type_of(each["type"], inside, depth + 1), name=each["name"]) for each in schema["fields"]
        ]
        names = [field.name for field in fields]
        if not fields or len(set(names)) != len(names):
            raise NotProvedError("a log block's schema has a record without fields, or two fields of one name")
        return AvroType("record", pa.struct([_field(field) for field in fields]), fields=tuple(fields))


def _sized(kind: str, schema: dict[str, Any]) -> AvroType:
    if kind == "enum":
        return AvroType(kind, pa.string(), symbols=tuple(schema["symbols"]))
    size = schema["size"]
    if not isinstance(size, int) or not 0 < size <= 1 << 20:
        raise NotProvedError("a log block's schema has a fixed type of no or of too many bytes")
    return AvroType(kind, pa.binary(size), size=size)


def _logical(found: AvroType, schema: dict[str, Any]) -> AvroType:
    name = schema.get("logicalType")
    if name is None:
        return found
    if name == "decimal" and found.kind in ("bytes", "fixed"):
        return replace(found, arrow=pa.decimal128(schema["precision"], schema.get("scale", 0)))
    if (found.kind, name) not in _LOGICAL:
        raise NotProvedError(f"a log block's schema has the logical type {str(name)[:40]}")
    return replace(found, arrow=_LOGICAL[found.kind, name])


def _field(kind: AvroType) -> pa.Field:
    return pa.field(kind.name, kind.arrow, kind.nullable)
