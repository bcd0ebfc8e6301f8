"""Reads a base file in batches that fit into memory, whatever its rows and row groups are like."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyarrow import fs

BATCH_ROWS = 65_536
BATCH_BYTES = 16 * 1024 * 1024
# Without it, a reader holds whole column chunks; with it, so much of each column.
_BUFFERS_BYTES = 32 * 1024 * 1024
_LEAST_BUFFER, _LEAST_REMOTE_BUFFER = 64 * 1024, 1024 * 1024
_PROBED_ROWS = 1024


def opened(path: str, filesystem: fs.FileSystem, *, is_remote: bool = False) -> pq.ParquetFile:
    """A base file, to be read in a stream (without `pre_buffer`, which would hold whole row groups).

    To be closed by the caller. From a remote storage more is read at a time, since each time costs a round trip.
    """
    metadata = pq.read_metadata(path, filesystem=filesystem)
    least = _LEAST_REMOTE_BUFFER if is_remote else _LEAST_BUFFER
    buffer = max(min(_BUFFERS_BYTES // max(metadata.num_columns, 1), 1024 * 1024), least)
    return pq.ParquetFile(path, filesystem=filesystem, metadata=metadata, buffer_size=buffer, pre_buffer=False)


def of_file(reader: pq.ParquetFile, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """All rows, in batches of at most `BATCH_ROWS` and about `BATCH_BYTES`; of all columns or of these."""
    for number in range(reader.num_row_groups):
        if reader.metadata.row_group(number).num_rows:
            rows = rows_for(bytes_per_row(reader, number))
            yield from reader.iter_batches(batch_size=rows, row_groups=[number], columns=columns, use_threads=False)


def rows_for(bytes_of_row: float) -> int:
    """How many rows of so many bytes make a batch."""
    return int(min(max(BATCH_BYTES // max(bytes_of_row, 1), 1), BATCH_ROWS))


def bytes_per_row(reader: pq.ParquetFile, number: int = 0) -> float:
    """Of a row group that has rows: by the footer, and by its first rows in memory; whichever is more.

    The footer knows all rows, but counts values in dictionaries once.
    """
    group = reader.metadata.row_group(number)
    encoded = group.total_byte_size / group.num_rows
    probed = min(_PROBED_ROWS, rows_for(encoded))
    probe: pa.RecordBatch = next(reader.iter_batches(batch_size=probed, row_groups=[number], use_threads=False))
    return float(max(encoded, probe.nbytes / max(probe.num_rows, 1)))
