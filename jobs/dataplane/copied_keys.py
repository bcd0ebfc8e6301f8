"""Proves that copied row groups have the same record keys as before, without decoding them: the pages of the key column
are the same bytes. Both files are read by Arrow, which shares no code with the copy (`column_chunks`). So an error of
the copy in the new footer cannot hide itself. Reading pages is far cheaper than reading keys."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, NamedTuple

from jobs.dataplane.column_chunks import BLOCK_BYTES
from jobs.errors import NotProvedError
from jobs.format.meta_columns import RECORD_KEY

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


class StoredKeys(NamedTuple):
    """How the keys of a row group are stored."""

    rows: int
    values: tuple[int, ...]  # The number of values in each column.
    form: tuple[str, ...]
    bytes: int
    checksum: int  # CRC-32 of all pages.


def stored_keys(reader: pq.ParquetFile, source: pa.NativeFile) -> list[StoredKeys]:
    """Returns the keys of each row group that has rows; `source` is the file that `reader` reads.

    Raises NotProvedError for a file without keys.
    """
    footer = reader.metadata
    paths = [reader.schema.column(number).path for number in range(footer.num_columns)]
    if RECORD_KEY not in paths:
        raise NotProvedError(f"a file has no column {RECORD_KEY}")
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    return [_of_group(group, paths.index(RECORD_KEY), source) for group in groups if group.num_rows]


def _of_group(group: pq.RowGroupMetaData, place: int, source: pa.NativeFile) -> StoredKeys:
    columns = [group.column(number) for number in range(group.num_columns)]
    keys = columns[place]
    # Old writers give the dictionary's position in place of that of the first data page.
    begin = min(offset for offset in (keys.dictionary_page_offset, keys.data_page_offset) if offset)
    checksum, left = 0, keys.total_compressed_size
    while left > 0:
        block = source.read_at(min(left, BLOCK_BYTES), begin)
        if not block:
            raise NotProvedError("a file ends before the keys of its rows")
        checksum = zlib.crc32(block, checksum)
        begin, left = begin + len(block), left - len(block)
    form = (keys.physical_type, keys.compression, *sorted(keys.encodings))
    values = tuple(column.num_values for column in columns)
    return StoredKeys(group.num_rows, values, form, keys.total_compressed_size, checksum)
