"""Batches of rows that are held until they are needed: few in memory, many in a file."""

from __future__ import annotations

from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from jobs.storage import local_copy

if TYPE_CHECKING:
    from typing import IO

_IN_MEMORY = 96 * 1024 * 1024


class HeldBatches:
    """Batches of one schema, added one after the other and then read as one table.

    More than 96 MiB of them go into a file without a name, of which the system holds in memory what it has room for.
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
                self._file = NamedTemporaryFile(prefix="rows-", dir=local_copy.folder())  # noqa: SIM115 - until `table`
                self._writer = pa.ipc.new_file(self._file, self._schema)
            for each in self._batches:
                self._writer.write_batch(each)
            self._batches.clear()

    def table(self) -> pa.Table:
        """Returns all rows. Nothing can be added any more."""
        if self._file is None:
            # One array per column: rows are taken from it at random, which is twice as fast.
            table = pa.Table.from_batches(self._batches, self._schema).combine_chunks()
            self._batches.clear()
            return table
        self._writer.close()
        self._file.flush()
        reader = pa.ipc.open_file(pa.memory_map(self._file.name))
        self._file.close()
        return reader.read_all()

    def close(self) -> None:
        """Removes the file, if there is one and the table has not been read."""
        if self._file is not None:
            self._file.close()
