"""Holds batches of rows until they are needed: in memory if they are small, otherwise in a file."""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from jobs.storage import local_copy

if TYPE_CHECKING:
    from typing import IO

_IN_MEMORY = 96 * 1024 * 1024


@dataclass(frozen=True)
class HeldRows:
    """The rows as one table, which may lie in a file that is mapped into memory."""

    table: pa.Table
    _mapped: mmap.mmap | None = None

    def release(self) -> None:
        """Frees the memory of the file's pages; the system reads a page again when it is needed."""
        if self._mapped is not None:
            self._mapped.madvise(mmap.MADV_DONTNEED)


class HeldBatches:
    """Batches of one schema, which are added one after the other and then read as one table.

    Beyond 96 MiB the batches go into a nameless file, whose pages the system caches if it has memory for them.
    """

    def __init__(self, schema: pa.Schema, in_memory: int = _IN_MEMORY) -> None:
        self._schema = schema
        self._in_memory = in_memory
        self._batches: list[pa.RecordBatch] = []
        self._file: IO[bytes] | None = None
        self._writer: Any = None
        self.size = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self.size += batch.nbytes
        self._batches.append(batch)
        if self.size > self._in_memory:
            if self._file is None:
                self._file = NamedTemporaryFile(prefix="rows-", dir=local_copy.folder())  # noqa: SIM115 - until `rows`
                self._writer = pa.ipc.new_file(self._file, self._schema)
            for each in self._batches:
                self._writer.write_batch(each)
            self._batches.clear()

    def rows(self) -> HeldRows:
        """Returns all rows. Nothing can be added any more."""
        if self._file is None:
            # One array per column makes taking rows at random places twice as fast.
            table = pa.Table.from_batches(self._batches, self._schema).combine_chunks()
            self._batches.clear()
            return HeldRows(table)
        self._writer.close()
        self._file.flush()
        mapped = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        self._file.close()
        return HeldRows(pa.ipc.open_file(pa.py_buffer(mapped)).read_all(), mapped)

    def close(self) -> None:
        """Removes the file, if there is one and the rows have not been read."""
        if self._file is not None:
            self._file.close()
