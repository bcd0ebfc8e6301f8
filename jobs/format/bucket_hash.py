"""Hudi's bucket ids of whole Arrow columns, without a JVM.

Mirrors `BucketIdentifier.getBucketId` and `KeyGenUtils.extractRecordKeysByFields` of Hudi 1.2.0, quirks included:

- A key counts as composite (`f1:v1,f2:v2`) only if it holds both a `,` and a `:`; otherwise it is hashed whole.
- A `,` ends a value only if the next separator is a `:`, and only after the first `:` of the key. So values may hold
  both characters, as long as no `,` in them is followed by a `:`.
- Values are hashed in the order of the key, whatever the order of the hash fields. If no field matches, the whole key
  is hashed.
- `__null__` stands for null and `__empty__` for the empty string; both have the hash code 0 in Java.
- Java's loop never ends if the key's last field is not hashed and its value holds a `:`. We raise `RecordKeyError`.

Speed: Java's `String.hashCode` is a polynomial in 31 modulo 2^32, where 31 has an inverse. So one running sum over all
characters of a block gives the hash code of each of its substrings in constant time, whatever the lengths of the keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Codes = NDArray[np.uint32]
    Mask = NDArray[np.bool_]
    OfBlock = Callable[["_Block"], tuple[Codes, ...]]
    Units = NDArray[Any]  # UTF-16 code units: uint8 when all are ASCII, else uint16

_COMMA, _COLON = ord(","), ord(":")
_NULL, _EMPTY = "__null__", "__empty__"
_INVERSE_OF_31 = pow(31, -1, 2**32)
_BLOCK_UNITS = 1 << 17  # this many characters at a time, because their running sums fit into the processor's cache
_LONGEST_ALIKE = 64  # Keys that all have one length, up to this one, are hashed character by character.


class RecordKeyError(ValueError):
    """A record key that Hudi cannot hash either: it is null or not UTF-8, or Hudi 1.2.0 would loop on it for ever."""


def bucket_ids(keys: pa.Array | pa.ChunkedArray, hash_fields: Sequence[str], num_buckets: int) -> NDArray[np.int32]:
    """Returns each key's bucket: `BucketIdentifier.getBucketId(key, hash_fields, num_buckets)` of Hudi 1.2.0.

    `keys` are strings of any Arrow layout, dictionary-encoded or not. The result has one entry per key, in
    [0, num_buckets). Raises `RecordKeyError` for a key that Hudi cannot hash, ValueError if `num_buckets` < 1.
    """
    return buckets_of(hash_codes(keys, hash_fields), num_buckets)


def buckets_of(codes: NDArray[np.int32], num_buckets: int) -> NDArray[np.int32]:
    """Returns the buckets of keys by their `hash_codes`. Raises ValueError if `num_buckets` < 1."""
    if num_buckets < 1:
        raise ValueError(f"a table has at least one bucket, not {num_buckets}")
    return (codes & np.int32(0x7FFFFFFF)) % np.int32(num_buckets)


def hash_codes(keys: pa.Array | pa.ChunkedArray, hash_fields: Sequence[str]) -> NDArray[np.int32]:
    """Returns `List.hashCode()` of each key's hash field values: `bucket_ids` before `& 0x7fffffff` and the modulo.

    All fields of the key count if there are no `hash_fields`, or only an empty one (as in Hudi 1.2.0).
    """
    return key_codes(keys, hash_fields).of_fields


class KeyCodes(NamedTuple):
    """Two hash codes of each key."""

    whole: Codes  # `string_hash_codes`
    of_fields: NDArray[np.int32]  # `hash_codes`


def key_codes(keys: pa.Array | pa.ChunkedArray, hash_fields: Sequence[str]) -> KeyCodes:
    """Returns both hash codes of each key, which costs hardly more than one. Keys and errors are the same as for
    `hash_codes`."""
    if isinstance(hash_fields, str):
        raise TypeError("hash_fields is a sequence of field names, not one string")
    fields = () if list(hash_fields) == [""] else tuple(hash_fields)
    whole, of_fields = _codes(keys, lambda block: _block_codes(block, fields), kinds=2)
    return KeyCodes(whole, of_fields.view(np.int32))


def string_hash_codes(keys: pa.Array | pa.ChunkedArray) -> Codes:
    """Returns `String.hashCode()` of each whole key. Keys and errors are the same as for `hash_codes`."""
    codes: Codes = _codes(keys, lambda block: (_string_codes(block),))[0]
    return codes


def _codes(keys: pa.Array | pa.ChunkedArray, of_block: OfBlock, *, kinds: int = 1) -> Codes:
    """Returns a row of codes for each of the `kinds` that `of_block` returns."""
    chunks = keys.chunks if isinstance(keys, pa.ChunkedArray) else [keys]
    codes = [_array_codes(chunk, of_block, kinds) for chunk in chunks]
    return np.concatenate(codes, axis=1) if codes else np.empty((kinds, 0), np.uint32)


def _array_codes(keys: pa.Array, of_block: OfBlock, kinds: int) -> Codes:
    if keys.null_count:
        raise RecordKeyError("a record key is null")
    if pa.types.is_dictionary(keys.type):
        return _dictionary_codes(keys, of_block, kinds)
    if pa.types.is_null(keys.type):
        return np.empty((kinds, 0), np.uint32)
    if not (pa.types.is_string(keys.type) or pa.types.is_large_string(keys.type)):
        if not pa.types.is_string_view(keys.type):
            raise TypeError(f"record keys are strings, not {keys.type}")
        keys = keys.cast(pa.large_string())
    codes = np.empty((kinds, len(keys)), np.uint32)
    for first, block in _blocks(keys):
        for row, found in zip(codes, of_block(block), strict=True):
            row[first : first + len(block.starts)] = found
    return codes


def _dictionary_codes(keys: pa.DictionaryArray, of_block: OfBlock, kinds: int) -> Codes:
    """Hashes each value once. Ignores values that no row uses, since they may be null or impossible to hash."""
    indices = keys.indices.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    used = np.zeros(len(keys.dictionary), np.bool_)
    used[indices] = True
    codes = np.zeros((kinds, len(used)), np.uint32)
    codes[:, used] = _array_codes(keys.dictionary.filter(pa.array(used)), of_block, kinds)
    return codes[:, indices]


class _Block(NamedTuple):
    """Some consecutive keys: row i is `units[starts[i]:ends[i]]`."""

    units: Units
    starts: Ints
    ends: Ints

    def key(self, row: int) -> str:
        units = self.units[self.starts[row] : self.ends[row]]
        return units.astype(np.uint16).tobytes().decode("utf-16-le", errors="replace")


def _blocks(keys: pa.Array) -> Iterator[tuple[int, _Block]]:
    """Cuts the keys into blocks of about `_BLOCK_UNITS` bytes, each with the number of its first row."""
    _, offsets_buffer, data_buffer = keys.buffers()
    if len(keys) == 0:
        return
    offset_type = np.int64 if pa.types.is_large_string(keys.type) else np.int32
    offsets = np.frombuffer(offsets_buffer, offset_type)[keys.offset : keys.offset + len(keys) + 1].astype(np.int64)
    data = np.frombuffer(data_buffer or b"", np.uint8)
    first = 0
    while first < len(keys):
        last = int(np.searchsorted(offsets, offsets[first] + _BLOCK_UNITS, "right")) - 1
        last = max(min(last, len(keys)), first + 1)
        begin, end = offsets[first], offsets[last]
        units, bounds = _utf16(data[begin:end], offsets[first : last + 1] - begin)
        yield first, _Block(units, bounds[:-1], bounds[1:])
        first = last


def _utf16(data: NDArray[np.uint8], bounds: Ints) -> tuple[Units, Ints]:
    """Converts UTF-8 bytes to UTF-16 code units, as in Java strings, and returns these with the bounds of the keys."""
    if len(data) == 0 or data.max() < 0x80:
        return data, bounds
    try:
        units = np.frombuffer(data.tobytes().decode("utf-8").encode("utf-16-le"), np.dtype("<u2"))
    except UnicodeDecodeError as error:
        raise RecordKeyError("a record key is not valid UTF-8") from error
    before = np.zeros(len(data) + 1, np.int64)
    is_lead = (data & 0xC0) != 0x80
    np.cumsum(is_lead.astype(np.int64) + (data >= 0xF0), out=before[1:])  # four bytes are a surrogate pair
    return units, before[bounds]


class _Powers:
    """The powers of a number modulo 2^32; the table of them grows when a higher one is needed."""

    def __init__(self, base: int) -> None:
        self._base = np.uint32(base)
        self._table = np.ones(1, np.uint32)

    def up_to(self, exponent: int) -> Codes:
        table = self._table
        if len(table) <= exponent:
            table = np.full(max(exponent + 1, 2 * len(table)), self._base, np.uint32)
            table[0] = 1
            np.multiply.accumulate(table, out=table)
            self._table = table  # A single assignment, so other threads see the old or the new table; both are right.
        return table


_POWERS = _Powers(31)
_INVERSE_POWERS = _Powers(_INVERSE_OF_31)


class _SubstringHashes:
    """`String.hashCode()` of substrings of one block.

    If S[i] is the sum of c[k] / 31^k over k < i, the hash code of [start, end) is 31^(end - 1) * (S[end] - S[start]).
    """

    def __init__(self, units: Units) -> None:
        self._powers = _POWERS.up_to(len(units))
        self._sums = np.zeros(len(units) + 1, np.uint32)
        np.multiply(units, _INVERSE_POWERS.up_to(len(units))[: len(units)], out=self._sums[1:], casting="unsafe")
        np.cumsum(self._sums, dtype=np.uint32, out=self._sums)

    def of(self, starts: Ints, ends: Ints) -> Codes:
        result: Codes = self._sums[ends] - self._sums[starts]
        result *= self._powers[np.maximum(ends - 1, 0)]
        return result


def _string_codes(block: _Block) -> Codes:
    """Returns the hash code of each key. Keys of one length, such as numbers with leading zeros or UUIDs, need no
    running sums: that takes a third of the time."""
    lengths = block.ends - block.starts
    length = int(lengths[0])
    if not 0 < length <= _LONGEST_ALIKE or (lengths != length).any():
        return _SubstringHashes(block.units).of(block.starts, block.ends)
    codes = np.zeros(len(lengths), np.uint32)
    for units in block.units.reshape(len(lengths), length).T:
        codes *= np.uint32(31)
        codes += units
    return codes


def _block_codes(block: _Block, fields: tuple[str, ...]) -> tuple[Codes, Codes]:
    """Returns the hash code of each whole key, and of the list of its fields."""
    is_colon = block.units == _COLON
    is_comma = block.units == _COMMA
    if not (is_colon.any() and is_comma.any()):
        strings = _string_codes(block)
        return strings, np.uint32(31) + strings
    hashes = _SubstringHashes(block.units)
    strings = hashes.of(block.starts, block.ends)
    whole: Codes = np.uint32(31) + strings
    parts = _split(block, np.flatnonzero(is_colon | is_comma))
    if len(parts.rows) == 0:
        return strings, whole
    hashed = _select(block, parts, fields)
    parts = _Parts(*(column[hashed] for column in parts))
    if len(parts.rows) == 0:
        return strings, whole
    codes = hashes.of(parts.value_starts, parts.value_ends)
    for placeholder in (_NULL, _EMPTY):
        codes[_spelled(block.units, parts.value_starts, parts.value_ends, placeholder)] = 0
    first = np.flatnonzero(np.diff(parts.rows, prepend=-1))
    sizes = np.diff(first, append=len(parts.rows))
    place = np.arange(len(parts.rows)) - np.repeat(first, sizes)
    powers = _POWERS.up_to(int(sizes.max()))
    codes *= powers[np.repeat(sizes, sizes) - 1 - place]
    whole[parts.rows[first]] = powers[sizes] + np.add.reduceat(codes, first)
    return strings, whole


class _Parts(NamedTuple):
    """The `field:value` parts of the composite keys of a block, in order. All columns have the same length."""

    rows: Ints
    starts: Ints  # the field is [start, value_start - 1)
    value_starts: Ints
    value_ends: Ints
    colons: Ints  # in the part, including the one after the field


def _split(block: _Block, at: Ints) -> _Parts:
    """Cuts the composite keys into parts; `at` are the positions of all `,` and `:`."""
    per_row = np.diff(np.searchsorted(at, np.append(block.starts, block.ends[-1])))
    row = np.repeat(np.arange(len(block.starts)), per_row)
    colon = block.units[at] == _COLON
    colons_per_row = np.bincount(row, colon, len(block.starts)).astype(np.int64)
    composite = ((colons_per_row > 0) & (colons_per_row < per_row))[row]
    at, row, colon = at[composite], row[composite], colon[composite]

    same_row_as_next = np.append(row[1:] == row[:-1], False)
    next_is_colon = np.append(colon[1:], False) & same_row_as_next
    colons_up_to = np.cumsum(colon)
    row_begins = np.diff(row, prepend=-1) != 0
    colons_before_row = np.maximum.accumulate(np.where(row_begins, colons_up_to - colon, 0))
    colon_seen = colons_up_to > colons_before_row
    ends_value = ~colon & next_is_colon & colon_seen

    # The colon after a part's field is the first colon of the row, or the first one after the comma that ended the
    # value before.
    after_cut = np.append(False, ends_value[:-1]) if len(at) else ends_value
    ends_field = colon & (after_cut | (colons_up_to == colons_before_row + 1))
    where = np.flatnonzero(ends_field)
    rows = row[where]
    starts = np.where(after_cut[where], at[where - 1] + 1, block.starts[rows])
    is_last = _is_last_of_row(rows)
    value_ends = np.where(is_last, block.ends[rows], np.append(starts[1:], 0) - 1)
    last_colon = colons_up_to[-1] if len(at) else 0
    colons = np.diff(colons_up_to[where], append=last_colon + 1)
    return _Parts(rows, starts, at[where] + 1, value_ends, colons)


def _is_last_of_row(rows: Ints) -> Mask:
    last: Mask = np.diff(rows, append=-1) != 0
    return last


def _select(block: _Block, parts: _Parts, fields: tuple[str, ...]) -> Mask:
    """Which parts are hashed. Raises for keys that Hudi cannot parse: see the note on the last field above."""
    if not fields:
        return np.ones(len(parts.rows), np.bool_)
    hashed = np.zeros(len(parts.rows), np.bool_)
    for field in fields:
        hashed |= _spelled(block.units, parts.starts, parts.value_starts - 1, field)
    endless = ~hashed & _is_last_of_row(parts.rows) & (parts.colons > 1)
    if endless.any():
        key = block.key(int(parts.rows[np.argmax(endless)]))
        raise RecordKeyError(
            f"Hudi 1.2.0 loops for ever on the record key {key!r}: its last field is none of the hash fields"
            f" {', '.join(fields)} and its value holds a colon"
        )
    return hashed


def _spelled(units: Units, starts: Ints, ends: Ints, word: str) -> Mask:
    """Which of the substrings are `word`."""
    letters = np.frombuffer(word.encode("utf-16-le"), np.dtype("<u2"))
    is_word: Mask = ends - starts == len(letters)
    candidates = np.flatnonzero(is_word)
    for place, letter in enumerate(letters):
        candidates = candidates[units[starts[candidates] + place] == letter]
    is_word[:] = False
    is_word[candidates] = True
    return is_word
