"""Reads a base file in batches that fit into memory, whatever the size of its rows and row groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from pyarrow import fs

BATCH_ROWS = 65_536
BATCH_BYTES = 16 * 1024 * 1024
# Total read buffers of a file, shared by its columns. Without buffers a reader holds whole column chunks.
_BUFFERS_BYTES = 32 * 1024 * 1024
_MIN_BUFFER, _MIN_REMOTE_BUFFER = 64 * 1024, 1024 * 1024
_PROBED_ROWS = 1024
# A dictionary of up to this compressed size may go as a whole into every file that gets some of its rows.
_SMALL_DICTIONARY = 16 * 1024


def opened(
    path: str, filesystem: fs.FileSystem, *, is_remote: bool = False, plain: Collection[str] | None = None
) -> pq.ParquetFile:
    """Returns a base file to read as a stream (without `pre_buffer`, which would hold whole row groups).

    The caller closes it. Reads from a remote storage are larger, since each one costs a round trip. If `plain` is
    given, string columns with few distinct values come as Arrow dictionaries, except for the columns named there.
    """
    metadata = pq.read_metadata(path, filesystem=filesystem)
    least = _MIN_REMOTE_BUFFER if is_remote else _MIN_BUFFER
    buffer = max(min(_BUFFERS_BYTES // max(metadata.num_columns, 1), 1024 * 1024), least)
    repeating = [] if plain is None else [name for name in _repeating(metadata) if name not in plain]
    return pq.ParquetFile(
        path,
        filesystem=filesystem,
        metadata=metadata,
        buffer_size=buffer,
        pre_buffer=False,
        read_dictionary=repeating,
    )


def _repeating(metadata: pq.FileMetaData) -> Iterator[str]:
    """Yields the top-level string and binary columns whose dictionary is small in every row group."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    fields = {field.name: field.type for field in metadata.schema.to_arrow_schema()}
    for number in range(metadata.num_columns):
        chunks = [group.column(number) for group in groups]
        kind = fields.get(metadata.schema.column(number).path)
        if kind in (pa.string(), pa.binary()) and all(_has_small_dictionary(chunk) for chunk in chunks):
            yield metadata.schema.column(number).path


def _has_small_dictionary(chunk: pq.ColumnChunkMetaData) -> bool:
    # Without dictionary pages the number of distinct values is unknown. Old writers' offsets are not reliable.
    offset = chunk.dictionary_page_offset or 0
    return bool(chunk.has_dictionary_page and 0 < chunk.data_page_offset - offset <= _SMALL_DICTIONARY and offset)


def of_file(reader: pq.ParquetFile, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Yields all rows, in batches of at most `BATCH_ROWS` rows and about `BATCH_BYTES` bytes.

    `columns` selects some columns; None means all.
    """
    for number in range(reader.num_row_groups):
        if reader.metadata.row_group(number).num_rows:
            rows = rows_for(bytes_per_row(reader, number))
            yield from reader.iter_batches(batch_size=rows, row_groups=[number], columns=columns, use_threads=False)


def rows_for(bytes_of_row: float) -> int:
    """Returns the number of rows of this size in a batch."""
    return int(min(max(BATCH_BYTES // max(bytes_of_row, 1), 1), BATCH_ROWS))


def bytes_per_row(reader: pq.ParquetFile, number: int = 0) -> float:
    """Returns the row size of a non-empty row group, by its footer or by its first rows, whichever is larger.

    The footer covers all rows, but counts values in dictionaries only once.
    """
    group = reader.metadata.row_group(number)
    encoded = group.total_byte_size / group.num_rows
    probed = min(_PROBED_ROWS, rows_for(encoded))
    probe: pa.RecordBatch = next(reader.iter_batches(batch_size=probed, row_groups=[number], use_threads=False))
    return float(max(encoded, probe.nbytes / max(probe.num_rows, 1)))
