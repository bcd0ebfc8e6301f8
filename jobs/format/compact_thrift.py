"""Reads and writes structs of Thrift's compact protocol, in which Parquet keeps footers, page headers and page indexes.

A struct is read without its definition and written as it was read, so that fields of newer versions of Parquet survive.
Libraries with definitions (thriftpy2) drop unknown fields, and Apache's own library has no wheels. No count in the
input can make the reader use more memory than the size of the input. Source: the specification "Thrift compact protocol
encoding", and `parquet.thrift` of Parquet's format 2.11 for the meaning of field numbers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)

_INTEGERS = frozenset({I16, I32, I64})
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


Struct = dict[int, Field]
"""Fields by their number."""


class Items(NamedTuple):
    """The elements of a list or set, all of one type."""

    kind: int
    values: list[Any]


def read_struct(data: bytes | memoryview, at: int = 0, *, last: int | None = None) -> tuple[Struct, int]:
    """Returns the struct that begins at `at`, and its end. Raises `ThriftError`. If `last` is given, only the fields up
    to that number are read, and the position is that of the next field."""
    reader = _Reader(data, at)
    return reader.struct(0, last), reader.at


def write_struct(struct: Struct) -> bytes:
    """Returns the struct's bytes. Fields are written in the order of their numbers."""
    out = bytearray()
    _write_struct(out, struct)
    return bytes(out)


class _Reader:
    def __init__(self, data: bytes | memoryview, at: int) -> None:
        self._data = data
        self.at = at

    def struct(self, depth: int, last: int | None = None) -> Struct:
        if depth > _MOST_NESTED:
            raise ThriftError(f"structs are nested more than {_MOST_NESTED} deep")
        found: Struct = {}
        number = 0
        while header := self._byte():
            step, kind = header >> 4, header & 0x0F
            number = number + step if step else self._integer()
            if number in found:
                raise ThriftError(f"field {number} occurs twice")
            value = kind == TRUE if kind in (TRUE, FALSE) else self._value(kind, depth)
            found[number] = Field(kind, value)
            if number == last:
                break
        return found

    def _value(self, kind: int, depth: int) -> Any:
        if kind in _INTEGERS:
            return self._integer()
        if kind == BINARY:
            return self._bytes(self._varint())
        if kind == STRUCT:
            return self.struct(depth + 1)
        if kind in (LIST, SET):
            return self._items(depth)
        if kind == DOUBLE:
            return self._bytes(8)
        if kind == BYTE:
            return self._byte()
        raise ThriftError(f"a value of type {kind}, which Parquet does not use")

    def _items(self, depth: int) -> Items:
        header = self._byte()
        count, kind = header >> 4, header & 0x0F
        if count == 0x0F:
            count = self._varint()
        # Each element takes at least a byte, so a count cannot ask for more memory than the input's own.
        if count > len(self._data) - self.at:
            raise TruncatedError(f"a list of {count} elements")
        if depth >= _MOST_NESTED:
            raise ThriftError(f"lists are nested more than {_MOST_NESTED} deep")
        if kind in (TRUE, FALSE):
            return Items(kind, [self._byte() for _ in range(count)])
        return Items(kind, [self._value(kind, depth + 1) for _ in range(count)])

    def _bytes(self, length: int) -> bytes:
        end = self.at + length
        if end > len(self._data):
            raise TruncatedError(f"{length} bytes")
        value = bytes(self._data[self.at : end])
        self.at = end
        return value

    def _byte(self) -> int:
        if self.at >= len(self._data):
            raise TruncatedError("a byte")
        value = self._data[self.at]
        self.at += 1
        return value

    def _varint(self) -> int:
        if self.at < len(self._data) and self._data[self.at] < 0x80:  # most are short
            self.at += 1
            return self._data[self.at - 1]
        value = 0
        for place in range(_LONGEST_VARINT):
            byte = self._byte()
            value |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                return value
        raise ThriftError("an integer of more than ten bytes")

    def _integer(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)


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
        if kind not in (TRUE, FALSE):
            _write_value(out, kind, value)
        last = number
    out.append(0)


def _write_value(out: bytearray, kind: int, value: Any) -> None:
    if kind in _INTEGERS:
        _write_integer(out, value)
    elif kind == BINARY:
        _write_varint(out, len(value))
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
