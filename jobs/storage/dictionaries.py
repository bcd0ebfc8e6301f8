"""Finds the columns of a Parquet file that are best read as Arrow dictionaries: few texts, each in many rows.

A writer that finds too many values for its dictionary goes on without one, and may leave the dictionary page of the
first values in the file, as pyarrow does. A reader that is asked for dictionaries then makes a dictionary of all
values. So a column counts only if all of its pages use the dictionary. pyarrow does not report this. The headers of the
pages do, and each column has only a few pages. The footer does too, but only to a reader that parses all of it.
Source: `parquet.thrift` of Parquet 2.12.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from jobs.format.compact_thrift import Struct, ThriftError, read_struct

if TYPE_CHECKING:
    import pyarrow.parquet as pq

# Every batch, and every file that gets some of its rows, may hold the whole dictionary: it must be small.
_MOST_BYTES = 64 * 1024  # not compressed
_MOST_VALUES = 4096

_MOST_PAGES = 250  # of a column chunk; to read the header of one takes 0.05 ms
_HEADER_BYTES = 1024  # longer than a header of a dictionary page, or of a data page with short values
_UNCOMPRESSED, _COMPRESSED, _DATA_HEADER, _DICTIONARY_HEADER, _DATA_HEADER_V2 = 2, 3, 5, 7, 8  # of PageHeader
_VALUES = 1  # The number of values, in the header of each kind of page.
# The encoding, of DataPageHeader and of DataPageHeaderV2
_ENCODINGS = {_DATA_HEADER: 2, _DATA_HEADER_V2: 4}
_BY_DICTIONARY = frozenset({2, 8})  # PLAIN_DICTIONARY and RLE_DICTIONARY


def columns_with_small_ones(source: pa.NativeFile, metadata: pq.FileMetaData) -> list[str]:
    """Returns the top-level string and binary columns whose dictionaries are small in all row groups.

    Reads the headers of those dictionaries.
    """
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    kinds = {field.name: field.type for field in metadata.schema.to_arrow_schema()}
    paths = [metadata.schema.column(number).path for number in range(metadata.num_columns)]
    return [
        path
        for number, path in enumerate(paths)
        if kinds.get(path) in (pa.string(), pa.binary())
        and all(_may_be_small(group.column(number)) for group in groups)
        and all(_is_small(source, group.column(number)) for group in groups)
    ]


def _may_be_small(chunk: pq.ColumnChunkMetaData) -> bool:
    # Old writers' offsets are not reliable.
    offset = chunk.dictionary_page_offset or 0
    return bool(chunk.has_dictionary_page and 0 < offset < chunk.data_page_offset <= offset + _MOST_BYTES)


def _has_plain_pages(chunk: pq.ColumnChunkMetaData) -> bool:
    """Returns whether some pages are plain. True proves nothing for writers of format 2, which also call the
    dictionary page plain. Hudi's writer does not, so the pages of its files need no closer look."""
    return "PLAIN" in chunk.encodings


def _is_small(source: pa.NativeFile, chunk: pq.ColumnChunkMetaData) -> bool:
    try:
        header, at = _page(source, chunk.dictionary_page_offset)
        values = header[_DICTIONARY_HEADER].value[_VALUES].value
        is_small = header[_UNCOMPRESSED].value <= _MOST_BYTES and values <= _MOST_VALUES
        return is_small and (not _has_plain_pages(chunk) or _is_in_all_pages(source, at, chunk.num_values))
    # The file is damaged, which its reader will report, or the header is longer than a KiB.
    except (ThriftError, KeyError, IndexError, AttributeError, TypeError):
        return False


def _is_in_all_pages(source: pa.NativeFile, at: int, values: int) -> bool:
    """Returns whether all data pages of a chunk use the dictionary. The pages begin at `at` and hold `values`
    values."""
    for _ in range(_MOST_PAGES):
        if values <= 0:
            break
        header, at = _page(source, at)
        kind = _DATA_HEADER if _DATA_HEADER in header else _DATA_HEADER_V2
        of_kind: Struct = header[kind].value
        if of_kind[_ENCODINGS[kind]].value not in _BY_DICTIONARY:
            return False
        values -= of_kind[_VALUES].value
    return values == 0


def _page(source: pa.NativeFile, at: int) -> tuple[Struct, int]:
    """Returns a page's header, and where the next page begins."""
    header, length = read_struct(source.read_at(_HEADER_BYTES, at))
    size = header[_COMPRESSED].value
    if size < 0:
        raise ThriftError(f"a page of {size} bytes")
    return header, at + length + size
