"""Builds the footer entries that Hudi writes about a base file's record keys: a Bloom filter and the key range.

Mirrors `HoodieBloomFilterWriteSupport` of Hudi 1.2.0. Hudi's writers write these entries by default, even with a bucket
index, which does not need them (`HoodieFileWriterFactory.enableBloomFilter`).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jobs.dataplane.bloom_filter import DYNAMIC, SIMPLE, BloomFilter, FilterKind, UnknownFilterError
from jobs.errors import NotProvedError

if TYPE_CHECKING:
    from collections.abc import Mapping

_FILTER, _OLD_FILTER = b"org.apache.hudi.bloomfilter", b"com.uber.hoodie.bloomfilter"
_FILTER_TYPE = b"hoodie_bloom_filter_type_code"
_SMALLEST, _LARGEST = b"hoodie_min_record_key", b"hoodie_max_record_key"
KEY_ENTRIES = frozenset({_FILTER, _OLD_FILTER, _FILTER_TYPE, _SMALLEST, _LARGEST})
_FIRST_OF_FOUR_BYTES = 0xF0
# The old filter is checked with one key in this number of keys.
_SAMPLED = 64


def filter_kind(footer: Mapping[bytes, bytes]) -> FilterKind | None:
    """Returns the kind of the filter in a base file's footer, None if it has none.

    Hudi 1.2.0 does not know newer filters, and old filters without a type, which hash differently. Hudi's default
    replaces such a filter: a file that had a filter gets one again, and every reader understands it.
    """
    serialized = footer.get(_FILTER) or footer.get(_OLD_FILTER)
    if not serialized:
        return None
    try:
        return FilterKind.of(serialized, footer.get(_FILTER_TYPE, SIMPLE.encode()).decode())
    except UnknownFilterError:
        return FilterKind.default()


class KeyFooter:
    """The entries of a base file that is being written; keys are added in the order of its rows."""

    def __init__(self, kind: FilterKind) -> None:
        self._kind = kind
        self._filter = BloomFilter(kind)
        self._known = 0
        self._range: tuple[str, str] | None = None

    @classmethod
    def beginning_with(cls, footer: Mapping[bytes, bytes], rows: int, kind: FilterKind) -> KeyFooter:
        """Returns the footer of a new file whose first rows are all `rows` rows of an old file, which has this footer.

        The old file's filter is continued if it has this kind and this number of keys, which saves half of the work on
        keys.
        """
        begun = cls(kind)
        with suppress(UnknownFilterError):
            if footer.get(_FILTER_TYPE) == DYNAMIC.encode():
                old = BloomFilter.of(footer.get(_FILTER, b""), kind)
                if old.keys == rows:
                    begun._filter, begun._known = old, rows
        return begun

    def take(self, footer: Mapping[bytes, bytes], rows: int) -> bool:
        """Adds all keys of a file with this footer and number of rows, without reading them. Returns False, and adds
        nothing, if the footer may leave out rows, or may have compared keys otherwise than `String.compareTo`."""
        try:
            kind = FilterKind.of(footer[_FILTER], footer[_FILTER_TYPE].decode())
            found = BloomFilter.of(footer[_FILTER], kind)
            smallest, largest = (footer[name].decode() for name in (_SMALLEST, _LARGEST))
        except (UnknownFilterError, KeyError, UnicodeDecodeError):
            return False
        # A filter of another capacity would have more wrong hits; the number of its rows may differ.
        if replace(kind, most_rows=self._kind.most_rows) != self._kind or found.keys < rows:
            return False
        # UTF-8 and UTF-16 order letters from U+E000 on differently, and the writer may have compared either.
        if any(letter >= "\ue000" for letter in smallest) or any(letter > "\uffff" for letter in largest):
            return False
        if self._filter.keys:
            self._filter.merge(found)
        else:
            self._filter = found
        self._widen(smallest, largest)
        return True

    def add(self, keys: pa.Array) -> None:
        """Adds strings without nulls. Raises NotProvedError if the old file's filter lacks some of its keys."""
        if len(keys) == 0:
            return
        known = keys.slice(0, self._known)
        self._known -= len(known)
        sample = known.take(pa.array(np.arange(0, len(known), _SAMPLED)))
        if not self._filter.has(sample).all():
            raise NotProvedError("the base file's Bloom filter lacks some of its keys")
        self._filter.add(keys.slice(len(known)))
        self._widen(*_range(keys))

    def _widen(self, smallest: str, largest: str) -> None:
        if self._range:
            smallest = min(smallest, self._range[0], key=_in_java)
            largest = max(largest, self._range[1], key=_in_java)
        self._range = smallest, largest

    def entries(self) -> dict[bytes, bytes]:
        """Returns the entries of `finalizeMetadata`: the type is left out if it is `SIMPLE`, and the range if there are
        no keys."""
        entries = {_FILTER: self._filter.serialized()}
        if self._kind.code == DYNAMIC:
            entries[_FILTER_TYPE] = DYNAMIC.encode()
        if self._range:
            entries[_SMALLEST], entries[_LARGEST] = (key.encode() for key in self._range)
        return entries


def _range(keys: pa.Array) -> tuple[str, str]:
    """Returns the smallest and the largest key by `String.compareTo`, as readers of the range compare.

    Java orders UTF-16 code units, Arrow bytes of UTF-8. Hudi's own writer of Spark rows also orders by bytes of UTF-8,
    so that readers (`BloomIndexFileInfo.isKeyInRange`) may skip a file with a character beyond U+FFFF.
    """
    data = np.frombuffer(keys.buffers()[2] or b"", np.uint8)
    if data.size and int(data.max()) >= _FIRST_OF_FOUR_BYTES:
        strings = keys.to_pylist()
        return min(strings, key=_in_java), max(strings, key=_in_java)
    found = pc.min_max(keys)
    return found["min"].as_py(), found["max"].as_py()


def _in_java(key: str) -> bytes:
    return key.encode("utf-16-be")
