"""Hudi's Bloom filter of record keys, bit for bit, over whole Arrow columns, without a JVM.

Mirrors `SimpleBloomFilter` and `HoodieDynamicBoundedBloomFilter` of Hudi 1.2.0, which are Hadoop's filters: big-endian
integers and bits with the lowest first, in Base64. A key sets as many bits as there are hashes; each hash is MurmurHash
2.0 of the key seeded with the previous hash, so the computation is vectorised over the keys and not over the hashes.
"""

from __future__ import annotations

import base64
import math
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Codes = NDArray[np.uint32]
    Bits = NDArray[np.uint8]
    Numbers = NDArray[np.int64]

SIMPLE, DYNAMIC = "SIMPLE", "DYNAMIC_V0"

_VERSION, _MURMUR = -1, 1
_HEADER = struct.Struct(">iibi")  # version, hashes, kind of hash, bits: `InternalFilter.write`
_ROWS = struct.Struct(">iii")  # keys per row, keys in the last row, rows: `InternalDynamicBloomFilter.write`
_HEADERS_IN_BASE64 = 4 * -(-(_HEADER.size + _ROWS.size) // 3)
_M = np.uint32(0x5BD1E995)
_BLOCK_KEYS = 32_768  # keys per pass, so few that their data stays in the processor's cache
_BYTE_PER_BIT = 1 << 23  # a filter of at most this many bits is filled with a byte per bit, which is ten times as fast
_FEW_KEYS = 1000  # for fewer keys a stored filter, which has one bit per bit, is not converted to a byte per bit
# hoodie.index.bloom.num_entries, hoodie.index.bloom.fpp, hoodie.bloom.index.filter.dynamic.max.entries
_DEFAULT_KEYS, _DEFAULT_ERROR_RATE, _DEFAULT_MOST_KEYS = 60_000, 1e-9, 100_000


class UnknownFilterError(ValueError):
    """A serialised filter that Hudi 1.2.0 does not write."""


@dataclass(frozen=True)
class FilterKind:
    """The parameters of a filter, independent of its keys."""

    code: str
    bits: int  # Number of bits of one row.
    hashes: int
    keys_per_row: int = 1  # A `DYNAMIC_V0` filter begins another row after this many keys; 1 for a `SIMPLE` one.
    most_rows: int = 1

    @classmethod
    def default(cls) -> FilterKind:
        """Returns the default of a writer of Hudi 1.2.0 (`HoodieStorageConfig`, `BloomFilterUtils`)."""
        bits = math.ceil(_DEFAULT_KEYS * (-math.log(_DEFAULT_ERROR_RATE) / (math.log(2) * math.log(2))))
        hashes = math.ceil(math.log(2) * bits / _DEFAULT_KEYS)
        return cls(DYNAMIC, bits, hashes, _DEFAULT_KEYS, _rows_for(_DEFAULT_KEYS))

    @classmethod
    def of(cls, serialized: bytes, code: str = SIMPLE) -> FilterKind:
        """Returns the kind of a serialised filter from a footer. Raises `UnknownFilterError`.

        The filter does not contain its maximum number of rows. The larger of its own number and the number that Hudi's
        default allows is used instead.
        """
        try:
            data = base64.b64decode(serialized[:_HEADERS_IN_BASE64])
            version, hashes, kind, bits = _HEADER.unpack_from(data)
            if (version, kind) != (_VERSION, _MURMUR) or bits < 1 or hashes < 1:
                raise UnknownFilterError(f"version {version}, kind of hash {kind}, {hashes} hashes, {bits} bits")
            if code.upper() == SIMPLE:
                return cls(SIMPLE, bits, hashes)
            if code.upper() == DYNAMIC:
                keys_per_row, _, rows = _ROWS.unpack_from(data, _HEADER.size)
                return cls(DYNAMIC, bits, hashes, keys_per_row, max(rows, _rows_for(keys_per_row)))
        except (ValueError, struct.error) as error:
            raise UnknownFilterError(f"a filter of type {code} that cannot be read: {error}") from error
        raise UnknownFilterError(f"a filter of type {code}")


def _rows_for(keys_per_row: int) -> int:
    return max(1, -(-_DEFAULT_MOST_KEYS // max(1, keys_per_row)))


class BloomFilter:
    """A filter that is being filled; keys are added in the order of the file's rows."""

    def __init__(self, kind: FilterKind) -> None:
        self._kind = kind
        self._is_wide = kind.bits <= _BYTE_PER_BIT  # whether rows have a byte per bit
        self._rows = [self._empty_row()]
        self._in_row = self._beyond = 0

    @classmethod
    def stored(cls, serialized: bytes, code: str) -> BloomFilter:
        """Returns a serialised filter in which keys can be looked up but not added. Raises `UnknownFilterError`."""
        kind = FilterKind.of(serialized, code)
        size = _HEADER.size + (kind.bits + 7) // 8
        first = _HEADER.size + _ROWS.size if kind.code == DYNAMIC else 0
        try:
            data = base64.b64decode(serialized)
            parts = np.frombuffer(data, np.uint8, offset=first).reshape(-1, size)
        except ValueError as error:
            raise UnknownFilterError(f"a filter that cannot be read: {error}") from error
        if any(part[: _HEADER.size].tobytes() != data[: _HEADER.size] for part in parts):
            raise UnknownFilterError("rows of several kinds")
        restored = cls(kind)
        restored._is_wide, restored._rows = False, [part[_HEADER.size :].copy() for part in parts]
        return restored

    @classmethod
    def of(cls, serialized: bytes, kind: FilterKind) -> BloomFilter:
        """Returns a filter of this `DYNAMIC_V0` kind that goes on where a serialised one ends.

        Raises `UnknownFilterError` if the serialised filter is of another kind.
        """
        if kind.code != DYNAMIC or FilterKind.of(serialized, DYNAMIC) != kind:
            raise UnknownFilterError(f"not a filter of {kind}")
        restored = cls.stored(serialized, DYNAMIC)
        _, in_row, rows = _ROWS.unpack_from(base64.b64decode(serialized[:_HEADERS_IN_BASE64]), _HEADER.size)
        is_full = rows == kind.most_rows
        if rows < 1 or in_row < 0 or rows != len(restored._rows) or (in_row > kind.keys_per_row and not is_full):
            raise UnknownFilterError(f"{len(restored._rows)} of {rows} rows, of which the last has {in_row} keys")
        restored._in_row, restored._beyond = in_row, max(0, in_row - kind.keys_per_row)
        return restored

    @property
    def keys(self) -> int:
        """The number of keys that were added, as far as a filter of this kind counts them: `DYNAMIC_V0`."""
        return (len(self._rows) - 1) * self._kind.keys_per_row + self._in_row

    def has(self, keys: pa.Array) -> NDArray[np.bool_]:
        """Returns for each of these keys whether a reader would look for it in the file. An empty key is never in a
        filter."""
        found = np.ones((len(self._rows), len(keys)), np.bool_)
        for numbers, places in self._places(keys):
            for row, of_row in zip(self._rows, found, strict=True):
                of_row[numbers] &= self._is_set(row, places)
        return np.asarray(found.any(axis=0), np.bool_)

    def add(self, keys: pa.Array) -> None:
        """Adds strings of any Arrow layout except dictionaries. Skips empty strings: Hudi cannot look them up."""
        if self._kind.code == SIMPLE:
            self._set(0, keys)
            return
        at = 0
        while at < len(keys):
            if self._in_row >= self._kind.keys_per_row:
                if len(self._rows) >= self._kind.most_rows:
                    self._add_beyond(keys.slice(at))
                    return
                self._rows.append(self._empty_row())
                self._in_row = 0
            some = keys.slice(at, self._kind.keys_per_row - self._in_row)
            self._set(len(self._rows) - 1, some)
            self._in_row += len(some)
            at += len(some)

    def merge(self, other: BloomFilter) -> None:
        """Adds all keys of a `DYNAMIC_V0` filter of the same kind. Two partly filled rows become one row if it may hold
        all of their keys."""
        limit, last = self._kind.keys_per_row, len(other._rows) - 1
        for number, row in enumerate(map(other._packed, other._rows)):
            count = other._in_row if number == last else limit
            place, fits = len(self._rows) - 1, self._in_row + count <= limit
            if fits or len(self._rows) >= self._kind.most_rows:
                place = place if fits else number % len(self._rows)
                self._in_row += count
                self._beyond = max(0, self._in_row - limit)
            else:  # The last row takes further keys.
                place += count <= self._in_row
                self._rows.insert(place, self._empty_row())
                self._in_row = min(count, self._in_row)
            self._rows[place] |= np.unpackbits(row, count=self._kind.bits, bitorder="little") if self._is_wide else row

    def serialized(self) -> bytes:
        """Returns the filter in the form of a footer: `BloomFilter.serializeToString`."""
        kind = self._kind
        header = _HEADER.pack(_VERSION, kind.hashes, _MURMUR, kind.bits)
        rows = b"".join(header + self._packed(row).tobytes() for row in self._rows)
        if kind.code == DYNAMIC:
            rows = header + _ROWS.pack(kind.keys_per_row, self._in_row, len(self._rows)) + rows
        return base64.b64encode(rows)

    def _empty_row(self) -> Bits:
        bits = self._kind.bits
        return np.zeros(bits if self._is_wide else (bits + 7) // 8, np.uint8)

    def _packed(self, row: Bits) -> Bits:
        return np.packbits(row, bitorder="little") if self._is_wide else row

    def _is_set(self, row: Bits, places: NDArray[np.int64]) -> NDArray[np.bool_]:
        bits = row[places] if self._is_wide else row[places >> 3] >> (places & 7).astype(np.uint8)
        return (bits & np.uint8(1)).astype(np.bool_)

    def _add_beyond(self, keys: pa.Array) -> None:
        """Adds keys to full rows: the rows take the keys in turn, but the first row takes the first two keys
        (`getActiveStandardBF`)."""
        numbers = np.arange(self._beyond, self._beyond + len(keys))
        turns = np.maximum(numbers - 1, 0) % len(self._rows)
        for row in range(len(self._rows)):
            self._set(row, keys.filter(pa.array(turns == row)))
        self._beyond += len(keys)
        self._in_row += len(keys)

    def _set(self, row: int, keys: pa.Array) -> None:
        bits = self._kind.bits
        if not self._is_wide and bits <= _BYTE_PER_BIT and len(keys) > _FEW_KEYS:
            self._rows = [np.unpackbits(each, count=bits, bitorder="little") for each in self._rows]
            self._is_wide = True
        for _, places in self._places(keys):
            if self._is_wide:
                self._rows[row][places] = 1
            else:
                of_bytes = np.left_shift(np.uint8(1), (places & 7).astype(np.uint8))
                np.bitwise_or.at(self._rows[row], places >> 3, of_bytes)

    def _places(self, keys: pa.Array) -> Iterator[tuple[Numbers, Numbers]]:
        """Yields the numbers of some keys, and for each of them the place of one bit; every key comes once for each
        hash. Each yield overwrites the arrays of the yield before."""
        bits = np.uint32(self._kind.bits)
        for first in range(0, len(keys), _BLOCK_KEYS):
            block = _block(keys.slice(first, _BLOCK_KEYS))
            numbers = block.order + first
            count = len(block.order)
            codes, spare, whole = np.zeros((3, count), np.uint32)
            signed, absolute = codes.view(np.int32), spare.view(np.int32)
            places = np.empty(count, np.int64)
            some = [(codes[: len(word)], word) for word in block.words]
            for _ in range(self._kind.hashes):
                block.hash(codes, some, spare)
                np.abs(signed, out=absolute)  # unlike `abs`, correct for the lowest integer as well
                np.floor_divide(spare, bits, out=whole)
                whole *= bits
                np.subtract(spare, whole, out=spare)
                places[:] = spare
                yield numbers, places


class _Block(NamedTuple):
    """Keys prepared for MurmurHash: words of four bytes, and the remaining bytes of each key. The longest keys come
    first; `order` are their numbers, without those of empty keys."""

    order: Numbers
    # The first state of the hashes (one for all keys of one length): the length, with the rest of a key without words.
    begin: Codes | np.uint32
    words: list[Codes]  # words[i] has word i of each key that has more than i words
    last_factor: Codes | np.uint32 | None  # the factor that adds the remaining bytes; 1 for keys without any

    def hash(self, codes: Codes, some: list[tuple[Codes, Codes]], spare: Codes) -> None:
        """Replaces each code by `MurmurHash.hash(key, code)` of its key, as Hudi's `Hash` computes it.

        `some` has each word with the codes of its keys. `spare` is a buffer of the same length as the codes. Hudi
        treats the remaining bytes as signed.
        """
        codes ^= self.begin
        for of_word, word in some:
            of_word *= _M
            of_word ^= word
        if self.last_factor is not None:
            codes *= self.last_factor
        np.right_shift(codes, np.uint32(13), out=spare)
        codes ^= spare
        codes *= _M
        np.right_shift(codes, np.uint32(15), out=spare)
        codes ^= spare


def _block(keys: pa.Array) -> _Block:
    data, offsets = _bytes_of(keys)
    lengths = np.diff(offsets)
    if len(lengths) and lengths[0] and (lengths == lengths[0]).all():
        return _block_of_one_length(data, len(lengths), int(lengths[0]))
    order = _longest_first(lengths)
    starts, lengths = offsets[:-1][order] + 4, lengths[order]
    # The four bytes at every position, from four before the first key on.
    data = np.append(np.zeros(4, np.uint8), data)
    at = np.ndarray((len(data) - 3,), np.dtype("<u4"), data, 0, (1,))
    longest_first = -(lengths >> 2)
    begin = lengths.astype(np.uint32)
    rest = _rest(at[starts + lengths - 4].view(np.int32), lengths & 3)
    without = len(begin)  # The keys from here on have no further word.
    words: list[Codes] = []
    while True:
        # A key's remaining bytes follow its last word without a multiplication.
        have = int(np.searchsorted(longest_first, -len(words), "left"))
        (words[-1] if words else begin)[have:without] ^= rest[have:without]
        if not have:
            return _Block(order, begin, words, np.where(lengths & 3, _M, np.uint32(1)))
        words.append(_mixed(at[starts[:have] + 4 * len(words)]))
        without = have


def _block_of_one_length(data: Bits, count: int, length: int) -> _Block:
    """Returns the block of `count` keys that all have this length; this is much faster than the general way."""
    numbers = np.arange(count)
    words = [
        _mixed(np.ndarray((count,), np.dtype("<u4"), data, at, (length,)).copy()) for at in range(0, length - 3, 4)
    ]
    begin = np.uint32(length)
    left = length & 3
    if not left:
        return _Block(numbers, begin, words, None)
    rest = np.zeros(count, np.int32)
    for behind in range(left):
        rest ^= np.left_shift(data.view(np.int8)[length - 1 - behind :: length], np.int32(8 * behind), dtype=np.int32)
    if not words:
        return _Block(numbers, rest.view(np.uint32) ^ begin, words, _M)
    words[-1] ^= rest.view(np.uint32)
    return _Block(numbers, begin, words, _M)


def _mixed(word: Codes) -> Codes:
    """Changes words in place, as MurmurHash does before it adds them."""
    word *= _M
    word ^= word >> np.uint32(24)
    word *= _M
    return word


def _longest_first(lengths: Numbers) -> Numbers:
    """Returns the numbers of the keys that are not empty, by their words of four bytes."""
    words = lengths >> 2
    # numpy sorts small integers several times as fast.
    narrow = words.astype(np.int16) if words.max(initial=0) < 1 << 15 else words
    order = np.argsort(-narrow, kind="stable")
    return order if lengths.all() else order[lengths[order] > 0]


def _rest(last: NDArray[np.int32], left: Numbers) -> Codes:
    """Returns the `left` last bytes (at most three) of each key; `last` has its last four bytes."""
    rest = np.where(left > 0, last >> 24, 0)
    for behind in (1, 2):
        rest ^= np.where(left > behind, (last << 8 * behind) >> 24 << 8 * behind, 0)
    return rest.view(np.uint32)


def _bytes_of(keys: pa.Array) -> tuple[Bits, Numbers]:
    """Returns the keys' UTF-8 bytes, and the offsets at which keys begin and end."""
    if not (pa.types.is_large_string(keys.type) or pa.types.is_string(keys.type)):
        keys = keys.cast(pa.large_string())
    _, offsets_buffer, data_buffer = keys.buffers()
    kind = np.int64 if pa.types.is_large_string(keys.type) else np.int32
    offsets = np.frombuffer(offsets_buffer, kind)[keys.offset : keys.offset + len(keys) + 1].astype(np.int64)
    data = np.frombuffer(data_buffer or b"", np.uint8)[offsets[0] : offsets[-1]]
    return data, offsets - offsets[0]
