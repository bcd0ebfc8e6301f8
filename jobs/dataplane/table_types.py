"""Converts the columns of base files and log blocks to the table's schema, but only if Hudi's reader would change no
value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import types

from jobs.dataplane.arrow_of_spark import without_hidden_nulls
from jobs.errors import NotProvedError
from jobs.format.meta_columns import FILE_NAME, PARTITION_PATH, RECORD_KEY

if TYPE_CHECKING:
    from collections.abc import Collection


# The types that columns of base files and logs may have if the table's type became wider after they were written.
_WIDENED = {(pa.int32(), pa.int64()), (pa.int32(), pa.float64())}


def conformed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Returns the batch with the columns of `schema`; columns that it lacks are null. Dictionaries stay.

    Raises NotProvedError if that could change a value.
    """
    columns, fields = [], []
    for field in schema:
        place = batch.schema.get_field_index(field.name)
        column = pa.nulls(batch.num_rows, field.type) if place < 0 else _of_type(batch.column(place), field)
        columns.append(column)
        fields.append(field.with_type(column.type))
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def require_conformable(found: pa.Schema, schema: pa.Schema, where: str, with_default: Collection[str] = ()) -> None:
    """Raises NotProvedError for columns of `where` that the table lacks or has with another type. A column that `where`
    lacks must be nullable and have no default (`with_default`). `_hoodie_file_name` is ignored.
    """
    for field in found:
        place = schema.get_field_index(field.name)
        if field.name == FILE_NAME:
            continue
        if place < 0:
            raise NotProvedError(f"the column {field.name} of a {where} is not in the table's schema")
        kind = field.type.value_type if types.is_dictionary(field.type) else field.type
        if not _same(kind, schema.field(place).type) and (kind, schema.field(place).type) not in _WIDENED:
            raise NotProvedError(
                f"the column {field.name} has the type {kind} in a {where}, and {schema.field(place).type} in the table"
            )
    for field in schema:
        if field.name == FILE_NAME or found.get_field_index(field.name) >= 0:
            continue
        if not field.nullable or field.name in with_default:
            raise NotProvedError(f"a {where} lacks the column {field.name}, which has a default or may not be null")
        if field.name in (RECORD_KEY, PARTITION_PATH):
            raise NotProvedError(f"a {where} lacks the column {field.name}")


def _of_type(column: pa.Array, field: pa.Field) -> pa.Array:
    if column.null_count and not field.nullable:
        raise NotProvedError(f"the column {field.name} is null in a row, which the table does not allow")
    # For Arrow, types are equal even if the entries of their lists have different names.
    if types.is_dictionary(column.type) or str(column.type) == str(field.type):
        return column
    try:
        return without_hidden_nulls(_rebuilt(column, field.type))
    except pa.ArrowException:
        detail = f"{column.type} does not fit {field.type}"
        raise NotProvedError(f"the column {field.name} does not fit the table's type: {detail}") from None


def _rebuilt(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Returns the same values with a type that `_same` accepts, because Arrow's own cast cannot rename all entries."""
    if not types.is_nested(kind):
        return array if array.type == kind else array.cast(kind)
    if types.is_struct(kind):
        fields = [_rebuilt(array.field(place), field.type) for place, field in enumerate(kind)]
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=array.is_null())
    # Arrow does not accept the offsets of a sliced array together with a mask.
    offsets, mask = pa.concat_arrays([array.offsets]), array.is_null()
    if types.is_map(kind):
        keys, items = _rebuilt(array.keys, kind.key_type), _rebuilt(array.items, kind.item_type)
        return pa.MapArray.from_arrays(offsets, keys, items, type=kind, mask=mask)
    return pa.ListArray.from_arrays(offsets, _rebuilt(array.values, kind.value_type), type=kind, mask=mask)


def _same(one: pa.DataType, other: pa.DataType) -> bool:
    """Returns whether two types differ at most in nullability, and in the names of the entries of lists and maps."""
    if types.is_struct(one):
        return (
            types.is_struct(other)
            and [field.name for field in one] == [field.name for field in other]
            and all(_same(a.type, b.type) for a, b in zip(one, other, strict=True))
        )
    if types.is_map(one):
        return types.is_map(other) and _same(one.key_type, other.key_type) and _same(one.item_type, other.item_type)
    if types.is_list(one):
        return types.is_list(other) and _same(one.value_type, other.value_type)
    return bool(one == other)
