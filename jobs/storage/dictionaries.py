"""Finds the columns of a Parquet file that are best read as Arrow dictionaries: few texts, each in many rows.

A writer that finds too many values for its dictionary goes on without one, and may leave the dictionary page of the
first values in the file, as pyarrow does. A reader that is asked for dictionaries then makes one of all the values. So
a column counts only if all of its pages use the dictionary. pyarrow says nothing of that: the footer has the encodings
of pages (`PageEncodingStats`), the header of the page its size and count. Source: `parquet.thrift` of Parquet 2.12.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pyarrow as pa

from jobs.format.compact_thrift import Struct, ThriftError, read_struct

if TYPE_CHECKING:
    import pyarrow.parquet as pq

# Such a dictionary may go as a whole into every file that gets some of its rows, and into every batch.
_MOST_BYTES = 64 * 1024  # not compressed
_MOST_VALUES = 4096

# A second of CPU for each MB; columns that need its encodings are then read without dictionaries. The footer's entries,
# such as Hudi's Bloom filter, cost nothing and do not count.
_MOST_FOOTER_BYTES = 256 * 1024
_TAIL = 8  # the footer's length and the magic bytes
_HEADER_BYTES = 1024  # more than the header of a dictionary takes
_ROW_GROUPS, _COLUMNS, _META, _ENCODINGS = 4, 1, 3, 13  # the way to the encodings of a chunk's pages
_PAGE_TYPE, _ENCODING = 1, 2  # of PageEncodingStats
_UNCOMPRESSED, _DICTIONARY_HEADER, _VALUES = 2, 7, 1  # of PageHeader, and of the dictionary's
_DICTIONARY_PAGE = 2
_BY_DICTIONARY = frozenset({2, 8})  # PLAIN_DICTIONARY and RLE_DICTIONARY


def columns_with_small_ones(source: pa.NativeFile, metadata: pq.FileMetaData) -> list[str]:
    """Returns the top-level string and binary columns whose dictionaries are small in all row groups.

    Reads the headers of those dictionaries.
    """
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    kinds = {field.name: field.type for field in metadata.schema.to_arrow_schema()}
    paths = [metadata.schema.column(number).path for number in range(metadata.num_columns)]
    columns = [
        number
        for number, path in enumerate(paths)
        if kinds.get(path) in (pa.string(), pa.binary()) and all(_may_be_small(each.column(number)) for each in groups)
    ]
    if not columns:
        return []
    certain = [n for n in columns if not any(_has_plain_pages(group.column(n)) for group in groups)]
    try:
        if len(certain) < len(columns) and _bytes_of_chunks(metadata) <= _MOST_FOOTER_BYTES:
            chunks = _chunks(metadata)
            certain = [n for n in columns if n in certain or all(_is_in_all_pages(each[n]) for each in chunks)]
        return [paths[n] for n in certain if all(_is_small(source, group.column(n)) for group in groups)]
    except (ThriftError, KeyError, IndexError, AttributeError, TypeError):  # Then the reader will say what is wrong.
        return []


def _may_be_small(chunk: pq.ColumnChunkMetaData) -> bool:
    # Old writers' offsets are not reliable.
    offset = chunk.dictionary_page_offset or 0
    return bool(chunk.has_dictionary_page and 0 < offset < chunk.data_page_offset <= offset + _MOST_BYTES)


def _has_plain_pages(chunk: pq.ColumnChunkMetaData) -> bool:
    """Returns whether some pages are plain. One of them may be the dictionary's page, as writers of format 2 call it;
    Hudi's writer calls it otherwise, so its footers need no second look."""
    return "PLAIN" in chunk.encodings


def _bytes_of_chunks(metadata: pq.FileMetaData) -> int:
    entries = (metadata.metadata or {}).items()
    return int(metadata.serialized_size) - sum(len(key) + len(value) for key, value in entries)


def _chunks(metadata: pq.FileMetaData) -> list[list[Struct]]:
    """Returns the metadata of all column chunks by row group and column."""
    copy = io.BytesIO()
    metadata.write_metadata_file(copy)
    content = copy.getvalue()
    footer, _ = read_struct(content, len(content) - _TAIL - int.from_bytes(content[-_TAIL:-4], "little"))
    groups = footer[_ROW_GROUPS].value.values
    return [[column[_META].value for column in group[_COLUMNS].value.values] for group in groups]


def _is_in_all_pages(chunk: Struct) -> bool:
    """Returns whether all data pages use the dictionary. Where no encodings are told, they may not."""
    return _ENCODINGS in chunk and all(
        each[_PAGE_TYPE].value == _DICTIONARY_PAGE or each[_ENCODING].value in _BY_DICTIONARY
        for each in chunk[_ENCODINGS].value.values
    )


def _is_small(source: pa.NativeFile, chunk: pq.ColumnChunkMetaData) -> bool:
    header, _ = read_struct(source.read_at(_HEADER_BYTES, chunk.dictionary_page_offset))
    values = header[_DICTIONARY_HEADER].value[_VALUES].value
    return bool(header[_UNCOMPRESSED].value <= _MOST_BYTES and values <= _MOST_VALUES)
