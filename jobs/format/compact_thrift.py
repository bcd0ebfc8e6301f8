"""Reads and writes structs of Thrift's compact protocol, in which Parquet keeps footers, page headers and page indexes.

A struct is read without its definition and is written as it was read, so fields of newer versions of Parquet survive.
Libraries with definitions (thriftpy2) drop unknown fields, and Apache's own library has no wheels. No count in the
input can make the reader use more memory than the size of the input. Source: the specification "Thrift compact protocol
encoding", and `parquet.thrift` of Parquet's format 2.11 for the meaning of field numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)

_INTEGERS = frozenset({I16, I32, I64})
_NESTED = frozenset({LIST, SET, STRUCT})
_MOST_NESTED = 24
_LONGEST_VARINT = 10


class ThriftError(ValueError):
    """The bytes are not a struct of the compact protocol."""


class TruncatedError(ThriftError):
    """The struct does not end within the bytes that were given."""


class Field(NamedTuple):
    """A value with its type: `bool`, `int`, `bytes` (for a double its eight bytes), `Items`, or a `Struct`."""

    kind: int
    value: Any


_field = partial(tuple.__new__, Field)  # a third of the time of `Field(...)`

Struct = dict[int, Field]
"""Fields by their number."""


class Items(NamedTuple):
    """The elements of a list or set, all of one type."""

    kind: int
    values: list[Any]


class Encoded(bytes):
    """The bytes of a list, set or struct that were not decoded."""


Wanted = Mapping[int, "Wanted"]
"""The nested fields to decode, by their numbers. Each comes with the fields to decode in its struct, or in the structs
of its list."""


def read_struct(
    data: bytes | memoryview, at: int = 0, *, last: int | None = None, wanted: Wanted | None = None
) -> tuple[Struct, int]:
    """Returns the struct that begins at `at`, and its end. Raises `ThriftError`. If `last` is given, only the fields up
    to that number are read, and the position is where the next field begins. If `wanted` is given, other lists, sets
    and structs are `Encoded`, which takes a third of the time."""
    try:
        return _read_struct(data, at, 0, last, wanted)
    except IndexError:
        raise TruncatedError("a byte") from None


def write_struct(struct: Struct) -> bytes:
    """Returns the struct's bytes. Fields are written in the order of their numbers."""
    out = bytearray()
    _write_struct(out, struct)
    return bytes(out)


# A footer has thousands of values, mostly of one byte, so the loops below do without a call for each.


def _read_struct(
    data: bytes | memoryview, at: int, depth: int, last: int | None = None, wanted: Wanted | None = None
) -> tuple[Struct, int]:
    if depth > _MOST_NESTED:
        raise ThriftError(f"structs are nested more than {_MOST_NESTED} deep")
    found: Struct = {}
    number = 0
    while header := data[at]:
        at += 1
        kind = header & 0x0F
        if header > 0x0F:
            number += header >> 4
        else:
            number, at = _read_varint(data, at)
            number = (number >> 1) ^ -(number & 1)
        if number in found:
            raise ThriftError(f"field {number} occurs twice")
        if kind in _INTEGERS:
            value: Any = data[at]
            if value < 0x80:
                at += 1
            else:
                value, at = _read_varint(data, at)
            value = (value >> 1) ^ -(value & 1)
        elif kind in (TRUE, FALSE):
            value = kind == TRUE
        elif wanted is None or kind not in _NESTED:
            value, at = _read_value(data, at, kind, depth)
        elif number in wanted:
            value, at = _read_value(data, at, kind, depth, wanted[number])
        else:
            begin, at = at, _after_value(data, at, kind, depth)
            value = Encoded(data[begin:at])
        found[number] = _field((kind, value))
        if number == last:
            return found, at
    return found, at + 1


def _read_value(
    data: bytes | memoryview, at: int, kind: int, depth: int, wanted: Wanted | None = None
) -> tuple[Any, int]:
    """Reads a value of a type other than integers and `bool`."""
    if kind == BINARY:
        length, at = _read_varint(data, at)
        return _read_bytes(data, at, length)
    if kind == STRUCT:
        return _read_struct(data, at, depth + 1, None, wanted)
    if kind in (LIST, SET):
        return _read_items(data, at, depth, wanted)
    if kind == DOUBLE:
        return _read_bytes(data, at, 8)
    if kind == BYTE:
        return data[at], at + 1
    raise ThriftError(f"a value of type {kind}, which Parquet does not use")


def _read_items(data: bytes | memoryview, at: int, depth: int, wanted: Wanted | None) -> tuple[Items, int]:
    count, kind, at = _begin_of_items(data, at, depth)
    if kind in (TRUE, FALSE):
        return Items(kind, list(data[at : at + count])), at + count
    values = []
    if kind in _INTEGERS:
        for _ in range(count):
            value, at = _read_varint(data, at)
            values.append((value >> 1) ^ -(value & 1))
    else:
        for _ in range(count):
            value, at = _read_value(data, at, kind, depth + 1, wanted)
            values.append(value)
    return Items(kind, values), at


def _begin_of_items(data: bytes | memoryview, at: int, depth: int) -> tuple[int, int, int]:
    """Returns the number of elements, their type, and where the first one begins."""
    header = data[at]
    at += 1
    count, kind = header >> 4, header & 0x0F
    if count == 0x0F:
        count, at = _read_varint(data, at)
    # Each element takes at least a byte, so a count cannot ask for more memory than the input's own.
    if count > len(data) - at:
        raise TruncatedError(f"a list of {count} elements")
    if depth >= _MOST_NESTED:
        raise ThriftError(f"lists are nested more than {_MOST_NESTED} deep")
    return count, kind, at


def _after_value(data: bytes | memoryview, at: int, kind: int, depth: int) -> int:
    """Returns where a value ends."""
    if kind in _INTEGERS:
        while data[at] > 0x7F:
            at += 1
        return at + 1
    if kind == STRUCT:
        return _after_struct(data, at, depth + 1)
    if kind in (LIST, SET):
        count, kind, at = _begin_of_items(data, at, depth)
        if kind in (TRUE, FALSE):
            return at + count
        for _ in range(count):
            at = _after_value(data, at, kind, depth + 1)
        return at
    if kind == BINARY:
        length, at = _read_varint(data, at)
    elif kind in (BYTE, DOUBLE):
        length = 1 if kind == BYTE else 8
    else:
        raise ThriftError(f"a value of type {kind}, which Parquet does not use")
    if at + length > len(data):
        raise TruncatedError(f"{length} bytes")
    return at + length


def _after_struct(data: bytes | memoryview, at: int, depth: int) -> int:
    if depth > _MOST_NESTED:
        raise ThriftError(f"structs are nested more than {_MOST_NESTED} deep")
    while header := data[at]:
        at += 1
        kind = header & 0x0F
        if header <= 0x0F:
            _, at = _read_varint(data, at)
        if kind in _INTEGERS:
            while data[at] > 0x7F:
                at += 1
            at += 1
        elif kind not in (TRUE, FALSE):
            at = _after_value(data, at, kind, depth)
    return at + 1


def _read_bytes(data: bytes | memoryview, at: int, length: int) -> tuple[bytes, int]:
    end = at + length
    if end > len(data):
        raise TruncatedError(f"{length} bytes")
    return bytes(data[at:end]), end


def _read_varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    value = place = 0
    while (byte := data[at]) > 0x7F:
        at += 1
        value |= (byte & 0x7F) << place
        place += 7
        if place >= _LONGEST_VARINT * 7:
            raise ThriftError("an integer of more than ten bytes")
    return value | byte << place, at + 1


def _write_struct(out: bytearray, struct: Struct) -> None:
    last = 0
    for number in sorted(struct):
        kind, value = struct[number]
        if kind in (TRUE, FALSE):
            kind = TRUE if value else FALSE
        if 0 < number - last <= 0x0F:
            out.append((number - last) << 4 | kind)
        else:
            out.append(kind)
            _write_integer(out, number)
        if kind in _INTEGERS:
            value = (value << 1) ^ (value >> 63)
            while value > 0x7F:
                out.append(value & 0x7F | 0x80)
                value >>= 7
            out.append(value)
        elif kind not in (TRUE, FALSE):
            _write_value(out, kind, value)
        last = number
    out.append(0)


def _write_value(out: bytearray, kind: int, value: Any) -> None:
    if kind in _INTEGERS:
        _write_integer(out, value)
    elif kind == BINARY:
        _write_varint(out, len(value))
        out += value
    elif type(value) is Encoded:
        out += value
    elif kind == STRUCT:
        _write_struct(out, value)
    elif kind in (LIST, SET):
        element, values = value
        if len(values) < 0x0F:
            out.append(len(values) << 4 | element)
        else:
            out.append(0xF0 | element)
            _write_varint(out, len(values))
        if element in (TRUE, FALSE):
            out += bytes(values)
        else:
            for each in values:
                _write_value(out, element, each)
    elif kind == DOUBLE:
        out += value
    elif kind == BYTE:
        out.append(value)
    else:
        raise ThriftError(f"a value of type {kind}, which Parquet does not use")


def _write_integer(out: bytearray, value: int) -> None:
    _write_varint(out, (value << 1) ^ (value >> 63))


def _write_varint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
