"""Decodes many Avro records at once into Arrow columns: one field of all records after the other, by numpy.

The place where a field begins differs from record to record, so an array of places, one per record, moves through the
schema. The encoding is that of Avro's specification 1.11: variable-length numbers in zigzag form and little-endian
floats; a length comes before texts and bytes, and a number of entries before each block of a list or map.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from jobs.dataplane import avro_types
from jobs.errors import NotProvedError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from jobs.dataplane.avro_types import AvroType

    Places = NDArray[np.int64]

# A place beyond the end is noticed after at most one more number of ten bytes, which is read as two words of eight.
_PADDING = 32
# Offsets have 32 bits.
_LARGEST = 1 << 30
# The lists are decoded step by step, one entry of each list per step, so the longest one gives the number of steps.
_MOST_STEPS = 20_000

_U = np.uint64
_STOPS = _U(0x8080808080808080)
_SEVENS = _U(0x7F7F7F7F7F7F7F7F)
_LOW_7, _HIGH_7 = _U(0x007F007F007F007F), _U(0x7F007F007F007F00)
_LOW_14, _HIGH_14 = _U(0x00003FFF00003FFF), _U(0x3FFF00003FFF0000)
_LOW_28, _HIGH_28 = _U(0x000000000FFFFFFF), _U(0x0FFFFFFF00000000)
_ONE = _U(1)


class Decoder:
    """Decodes records of one schema. Raises NotProvedError for a schema that is not supported.

    `columns` selects some top-level fields; the others are skipped.
    """

    def __init__(self, schema: str, columns: Collection[str] | None = None) -> None:
        self._fields = _parsed(schema).fields
        names = [field.name for field in self._fields]
        self._wanted = [columns is None or name in columns for name in names]
        chosen = [field for field, wanted in zip(self._fields, self._wanted, strict=True) if wanted]
        self.schema = pa.schema([pa.field(field.name, field.arrow, field.nullable) for field in chosen])

    def decode(self, data: bytes | pa.Buffer, starts: Places, ends: Places) -> pa.RecordBatch:
        """Returns the records that lie in `data` between `starts` and `ends`, which ascend. Raises NotProvedError."""
        reader = _Reader(data)
        places = starts
        columns = []
        for field, wanted in zip(self._fields, self._wanted, strict=True):
            column, places = reader.read(field, places, wanted)
            if column is not None:
                columns.append(column)
        if not np.array_equal(places, ends):
            raise _misfit()
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


@lru_cache(maxsize=8)
def _parsed(schema: str) -> AvroType:
    try:
        parsed = json.loads(schema)
    except (ValueError, RecursionError):
        raise NotProvedError("a log block's schema is not JSON") from None
    return avro_types.of_record(parsed)


class _Reader:
    def __init__(self, data: bytes | pa.Buffer) -> None:
        view = memoryview(data)
        self._limit = view.nbytes
        if self._limit > _LARGEST:
            raise NotProvedError("a log holds a record of more than 1 GiB")
        padded = np.zeros(self._limit + _PADDING, np.uint8)
        padded[: self._limit] = np.frombuffer(view, np.uint8)
        self._bytes = padded
        self._buffer = pa.py_buffer(padded)
        # A view of the eight bytes that follow each place.
        self._words: NDArray[np.uint64] = np.ndarray(
            (self._limit + _PADDING - 8,), np.dtype("<u8"), buffer=padded.data, strides=(1,)
        )
        self._steps = 0

    def read(self, kind: AvroType, at: Places, wanted: bool = True) -> tuple[pa.Array | None, Places]:
        """Returns the values of one field (none unless they are `wanted`) and the places after them."""
        if kind.null_branch is None:
            return self._value(kind, at, wanted)
        return self._optional(kind, at, wanted)

    def _optional(self, kind: AvroType, at: Places, wanted: bool) -> tuple[pa.Array | None, Places]:
        """Reads a union of null and one other type."""
        branch = self._bytes[at]
        at = at + 1
        null = branch == 2 * (kind.null_branch or 0)
        some = int(np.count_nonzero(null))
        if int(np.count_nonzero(branch == 2 - 2 * (kind.null_branch or 0))) + some != len(at):
            raise _misfit()
        if not some:
            return self._value(kind, at, wanted)
        present = np.flatnonzero(~null)
        values, behind = self._value(kind, at[present], wanted)
        at[present] = behind
        if values is None:
            return None, at
        places = np.zeros(len(at), np.int32)
        places[present] = np.arange(len(present), dtype=np.int32)
        return values.take(pa.array(places, mask=null)), at

    def _value(self, kind: AvroType, at: Places, wanted: bool) -> tuple[pa.Array | None, Places]:
        name = kind.kind
        if name in ("int", "long"):
            numbers, at = self._numbers(at)
            return (_of_numbers(kind, numbers) if wanted else None), at
        if name in ("string", "bytes"):
            return self._texts(kind, at, wanted)
        if name in ("double", "float"):
            width = 8 if name == "double" else 4
            behind = self._checked(at + width)
            words = self._words[at]
            # A float is the lower half of its word.
            values = words.view(np.float64) if width == 8 else words.view(np.float32)[::2]
            return (pa.array(np.ascontiguousarray(values)) if wanted else None), behind
        if name == "boolean":
            found = self._bytes[at]
            if len(found) and int(found.max()) > 1:
                raise _misfit()
            return (pa.array(found.astype(np.bool_)) if wanted else None), self._checked(at + 1)
        if name == "fixed":
            behind = self._checked(at + kind.size)
            return (self._fixed(kind, at) if wanted else None), behind
        if name == "enum":
            numbers, at = self._numbers(at)
            if len(numbers) and not 0 <= int(numbers.min()) <= int(numbers.max()) < len(kind.symbols):
                raise _misfit()
            return (pa.array(kind.symbols, pa.string()).take(pa.array(numbers)) if wanted else None), at
        if name == "record":
            return self._record(kind, at, wanted)
        return self._entries(kind, at, wanted)

    def _record(self, kind: AvroType, at: Places, wanted: bool) -> tuple[pa.Array | None, Places]:
        values = []
        for field in kind.fields:
            column, at = self.read(field, at, wanted)
            values.append(column)
        return (pa.StructArray.from_arrays(values, fields=list(kind.arrow)) if wanted else None), at

    def _entries(self, kind: AvroType, at: Places, wanted: bool) -> tuple[pa.Array | None, Places]:
        """Reads lists, and maps as lists of keys and values. One step reads the next entry of every list."""
        at = at.copy()
        counts = np.zeros(len(at), np.int64)
        owners: list[Places] = []
        parts: list[list[pa.Array]] = [[] for _ in kind.fields]
        open_lists = np.arange(len(at))
        while len(open_lists):
            entries, places = self._numbers(at[open_lists])
            if (with_size := entries < 0).any():
                _, behind = self._numbers(places[with_size])
                places[with_size] = behind
                entries = np.abs(entries)
            at[open_lists] = places
            # Every entry has at least one byte (`avro_types`), so this bounds their number.
            if (entries < 0).any() or (entries > self._limit - places).any():
                raise _misfit()
            counts[open_lists] += entries
            open_lists = open_lists[entries > 0]
            left = entries[entries > 0]
            step = open_lists
            while len(step):
                self._steps += 1
                if self._steps > _MOST_STEPS:
                    raise NotProvedError(f"a log holds lists with more than {_MOST_STEPS:,} entries")
                places = at[step]
                for part, field in zip(parts, kind.fields, strict=True):
                    values, places = self.read(field, places, wanted)
                    part.append(values)
                at[step] = places
                owners.append(step)
                left = left - 1
                step, left = step[left > 0], left[left > 0]
        return (_joined(kind, counts, owners, parts) if wanted else None), at

    def _texts(self, kind: AvroType, at: Places, wanted: bool) -> tuple[pa.Array | None, Places]:
        lengths, starts = self._numbers(at)
        # No sum of lengths within this limit overflows.
        if len(lengths) and not 0 <= int(lengths.min()) <= int(lengths.max()) <= self._limit:
            raise _misfit()
        ends = self._checked(starts + lengths)
        if not wanted:
            return None, ends
        if kind.is_decimal:
            return self._decimals(kind, ends, lengths), ends
        # One array over all bytes: every second value is a wanted one, and the values between them are ignored.
        offsets = np.empty(2 * len(at) + 1, np.int32)
        offsets[:-1:2], offsets[1::2] = starts, ends
        offsets[-1] = ends[-1] if len(ends) else 0
        every = pa.Array.from_buffers(kind.arrow, 2 * len(at), [None, pa.py_buffer(offsets), self._buffer], 0)
        values = every.take(pa.array(np.arange(0, 2 * len(at), 2, dtype=np.int32)))
        _require_valid(values)
        return values, ends

    def _fixed(self, kind: AvroType, at: Places) -> pa.Array:
        if kind.is_decimal:
            return self._decimals(kind, at + kind.size, np.full(len(at), kind.size, np.int64))
        content = self._bytes[at[:, None] + np.arange(kind.size)]
        return pa.Array.from_buffers(kind.arrow, len(at), [None, pa.py_buffer(np.ascontiguousarray(content))], 0)

    def _decimals(self, kind: AvroType, ends: Places, lengths: Places) -> pa.Array:
        """Reads big-endian numbers in two's complement of 1 to 16 bytes."""
        if len(lengths) and not 1 <= int(lengths.min()) <= int(lengths.max()) <= 16:
            raise NotProvedError("a decimal in a log is empty or has more than 16 bytes")
        widest = int(lengths.max()) if len(lengths) else 0
        sign = np.where(self._bytes[ends - lengths] > 127, np.uint8(255), np.uint8(0)) if len(ends) else ends
        content = np.empty((len(ends), 16), np.uint8)
        content[:] = np.asarray(sign, np.uint8)[:, None]
        for place in range(widest):
            inside = lengths > place
            if inside.all():
                content[:, place] = self._bytes[ends - 1 - place]
            else:
                content[inside, place] = self._bytes[ends[inside] - 1 - place]
        values = pa.Array.from_buffers(kind.arrow, len(ends), [None, pa.py_buffer(content)], 0)
        _require_valid(values)
        return values

    def _numbers(self, at: Places) -> tuple[Places, Places]:
        """Reads one `int` or `long` from each place; also returns the places after them."""
        first = self._bytes[at]
        if not len(at) or int(first.max()) < 128:
            short = first.astype(np.int64)
            return (short >> 1) ^ -(short & 1), self._checked(at + 1)
        words = self._words[at]
        stops = ~words & _STOPS
        long = np.flatnonzero(stops == 0)
        # The lowest stop bit, and all bits below it.
        lowest = stops & (~stops + _ONE)
        below = lowest - _ONE
        sizes = (np.bitwise_count(below) >> 3).astype(np.int64) + 1
        groups = words & below & _SEVENS
        groups = (groups & _LOW_7) | ((groups & _HIGH_7) >> _ONE)
        groups = (groups & _LOW_14) | ((groups & _HIGH_14) >> _U(2))
        groups = (groups & _LOW_28) | ((groups & _HIGH_28) >> _U(4))
        if len(long):
            ninth, tenth = self._bytes[at[long] + 8], self._bytes[at[long] + 9]
            more = ninth > 127
            if (tenth[more] > 1).any():
                raise _misfit()
            groups[long] |= (ninth & 127).astype(_U) << _U(56)
            groups[long[more]] |= tenth[more].astype(_U) << _U(63)
            sizes[long] = 9 + more
        signed = (groups >> _ONE).view(np.int64) ^ -((groups & _ONE).view(np.int64))
        return signed, self._checked(at + sizes)

    def _checked(self, at: Places) -> Places:
        if len(at) and int(at.max()) > self._limit:
            raise _misfit()
        return at


def _of_numbers(kind: AvroType, numbers: Places) -> pa.Array:
    stored = numbers
    if kind.kind != "long":
        stored = numbers.astype(np.int32)
        if not np.array_equal(stored, numbers):
            raise _misfit()
    values = pa.Array.from_buffers(kind.arrow, len(numbers), [None, pa.py_buffer(stored)], 0)
    if pa.types.is_time(kind.arrow):
        _require_valid(values)
    return values


def _joined(kind: AvroType, counts: Places, owners: Sequence[Places], parts: Sequence[list[pa.Array]]) -> pa.Array:
    """Puts the entries, which were read step by step, in the order of their lists."""
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    places = pa.array(offsets.astype(np.int32))
    if not owners:
        values = [pa.array([], field.arrow) for field in kind.fields]
    else:
        order = pa.array(np.argsort(np.concatenate(owners), kind="stable"))
        values = [pa.concat_arrays(part).take(order) for part in parts]
    if kind.kind == "map":
        return pa.MapArray.from_arrays(places, *values, type=kind.arrow)
    return pa.ListArray.from_arrays(places, values[0], type=kind.arrow)


def _require_valid(values: pa.Array) -> None:
    """Raises NotProvedError for text that is not UTF-8, decimals with too many digits, and times beyond a day."""
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        raise NotProvedError(
            "a log holds text that is not UTF-8, a decimal with too many digits, or a time of no day"
        ) from None


def _misfit() -> NotProvedError:
    return NotProvedError("a log block's records do not fit their schema")
