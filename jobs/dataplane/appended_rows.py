"""Adds rows to a file of copied row groups (`CopyWriter`), as row groups of their own at its end."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from jobs.dataplane.arrow_of_spark import without_hidden_nulls
from jobs.dataplane.row_group_copy import file_of, one_file_name
from jobs.format.meta_columns import FILE_NAME

if TYPE_CHECKING:
    from jobs.dataplane.column_chunks import CopyWriter
    from jobs.dataplane.parquet_layout import Layout

# Decoded bytes of a row group.
_ROW_GROUP_BYTES = 64 * 1024 * 1024


@dataclass
class AppendedRows(AbstractContextManager["AppendedRows"]):
    """The rows, which get the name of the new file. All batches must have one schema.

    The methods raise NotCopyableError if a column would have another form than in the copied row groups.
    """

    layout: Layout
    writer: CopyWriter
    file_name: str
    _waiting: list[pa.RecordBatch] = field(default_factory=list)
    _bytes: int = 0

    def add(self, batch: pa.RecordBatch) -> None:
        columns = list(map(without_hidden_nulls, batch.columns))
        self._waiting.append(pa.RecordBatch.from_arrays(columns, batch.schema.names))
        self._bytes += self._waiting[-1].nbytes
        if self._bytes >= _ROW_GROUP_BYTES:
            self._write()

    def __exit__(self, _: object, error: BaseException | None, *__: object) -> None:
        """Writes the rows that wait."""
        if error is None and self._waiting:
            self._write()

    def _write(self) -> None:
        # The dictionaries are unified, because the writer stops using one when the next batch has another.
        table = pa.Table.from_batches(self._waiting).unify_dictionaries()
        self._waiting, self._bytes = [], 0
        names, columns = self.layout.schema.names, dict(zip(table.column_names, table.columns, strict=True))
        if FILE_NAME in columns:
            columns[FILE_NAME] = pa.chunked_array([one_file_name(self.file_name, table.num_rows)])
        table = pa.table([columns[name] for name in names], names)
        self.writer.add(file_of(self.layout, self.writer.like, table), 0)
