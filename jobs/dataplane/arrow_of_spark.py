"""Converts Arrow data from Spark's Java implementation to a form that Arrow's C++ implementation accepts.

- In Java, nested lists without any element have no offsets, which the format allows. C++ nevertheless reads a first
  offset, from memory that is not part of the list: `nbytes` of such a list ends the process.
- A vector, which Hudi stores as bytes, is a list of numbers to Spark.
- The fields of a null struct are null too, including required ones. No reader sees them, but pyarrow's Parquet writer
  treats them as nulls in required fields.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def of_type(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Returns the same values as `kind`; raises `ArrowInvalid` when they do not fit.

    A field of a struct that is nullable for Spark may be required in `kind`, if it is null only where the struct is.
    """
    if pa.types.is_nested(array.type):
        array = pa.concat_arrays([array])  # a copy, with offsets
    return _converted(array, kind)


def without_hidden_nulls(array: pa.Array) -> pa.Array:
    """Returns the same values without the nulls of required fields that a null struct hides.

    Other nulls of required fields stay, and the writer refuses them.
    """
    return _converted(array, array.type)


def _converted(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if array.type == kind and not _has_required_field(kind):
        return array
    if pa.types.is_list(array.type) and pa.types.is_fixed_size_binary(kind):
        return _packed(array, kind)
    if not pa.types.is_nested(kind) or array.type.id != kind.id:
        return array.cast(kind)
    if pa.types.is_struct(kind):
        if [field.name for field in array.type] != [field.name for field in kind]:
            raise pa.ArrowInvalid(f"{array.type} does not fit {kind}")
        fields = [_converted(array.field(place), field.type) for place, field in enumerate(kind)]
        shown = array.is_valid()
        for place, field in enumerate(kind):
            values = fields[place]
            if not field.nullable and values.null_count and not pc.any(pc.and_(shown, values.is_null())).as_py():
                fields[place] = _without_nulls(values)
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=array.is_null())
    # Arrow does not accept the offsets of a sliced array together with a mask.
    offsets, mask = pa.concat_arrays([array.offsets]), array.is_null()
    if pa.types.is_map(kind):
        keys, items = _converted(array.keys, kind.key_type), _converted(array.items, kind.item_type)
        return pa.MapArray.from_arrays(offsets, keys, items, type=kind, mask=mask)
    return pa.ListArray.from_arrays(offsets, _converted(array.values, kind.value_type), type=kind, mask=mask)


def _packed(vectors: pa.ListArray, kind: pa.DataType) -> pa.Array:
    """Returns vectors as Hudi stores them: the bytes of their elements (`VectorLogicalType.VECTOR_BYTE_ORDER`)."""
    elements = vectors.flatten()
    numbers = np.dtype(vectors.type.value_type.to_pandas_dtype()).newbyteorder("<")
    dimension, rest = divmod(kind.byte_width, numbers.itemsize)
    lengths = pc.list_value_length(vectors).drop_null()
    if rest or elements.null_count or not pc.all(pc.equal(lengths, dimension), min_count=0).as_py():
        raise pa.ArrowInvalid(f"vectors of other lengths than {dimension}, or without some of their elements")
    packed = np.zeros((len(vectors), kind.byte_width), np.uint8)
    packed[np.asarray(vectors.is_valid())] = (
        elements.to_numpy().astype(numbers).view(np.uint8).reshape(-1, kind.byte_width)
    )
    bits = None if not vectors.null_count else pa.array(vectors.is_valid()).buffers()[1]
    return pa.FixedSizeBinaryArray.from_buffers(kind, len(vectors), [bits, pa.py_buffer(packed)])


def _has_required_field(kind: pa.DataType) -> bool:
    """Returns whether the type contains a required field.

    Lists and maps are Spark's: neither large nor of fixed size.
    """
    if pa.types.is_struct(kind):
        return any(not field.nullable or _has_required_field(field.type) for field in kind)
    if pa.types.is_map(kind):
        return _has_required_field(kind.key_type) or _has_required_field(kind.item_type)
    return pa.types.is_list(kind) and _has_required_field(kind.value_type)


def _without_nulls(array: pa.Array) -> pa.Array:
    """Replaces nulls by the values stored in their places: zeros and empty strings, lists and maps."""
    kind = array.type
    if pa.types.is_struct(kind):
        fields = [array.field(place) for place in range(kind.num_fields)]
        # Wherever this struct is null the enclosing one is null too, and still hides the values.
        fields = [each if field.nullable else _without_nulls(each) for each, field in zip(fields, kind, strict=True)]
        return pa.StructArray.from_arrays(fields, fields=list(kind))
    if pa.types.is_map(kind):
        return pa.MapArray.from_arrays(pa.concat_arrays([array.offsets]), array.keys, array.items, type=kind)
    if pa.types.is_list(kind):
        return pa.ListArray.from_arrays(pa.concat_arrays([array.offsets]), array.values, type=kind)
    return pa.Array.from_buffers(kind, len(array), [None, *array.buffers()[1:]], null_count=0, offset=array.offset)
