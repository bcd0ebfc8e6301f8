"""Opens a table's Parquet files within bounds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from service.lake.storage import MAX_METADATA_BYTES, Storage
from service.model.storage_errors import FileDamagedError, StorageError

_TAIL = 8
"""The last eight bytes of a Parquet file are the length of the footer and the magic number."""

_MAX_COLUMNS = 10_000


@contextmanager
def opened(storage: Storage, path: str) -> Iterator[pq.ParquetFile]:
    """Opens a file for reading. Raises StorageError for damage and for files beyond the bounds; also translates errors
    that the block raises."""
    where = f"{storage.base_path}/{path}"
    with storage.open(path) as source:
        size = source.size()
        source.seek(max(size - _TAIL, 0))
        footer = int.from_bytes(source.read(4), "little")
        if footer > size - _TAIL:
            raise FileDamagedError(f"{where} is damaged: it is shorter than its footer")
        if footer > MAX_METADATA_BYTES:
            raise StorageError(f"{where} has a footer of more than {MAX_METADATA_BYTES} bytes")
        source.seek(0)
        try:
            file = pq.ParquetFile(source)
            if file.metadata.num_columns > _MAX_COLUMNS:
                raise StorageError(f"{where} has more than {_MAX_COLUMNS} columns")
            yield file
        except pa.ArrowInvalid as error:
            raise FileDamagedError(f"{where} is damaged: {error}") from error
