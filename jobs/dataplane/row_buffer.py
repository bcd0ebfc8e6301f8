"""Holds rows of a base file that are not written yet, in the order in which they came, or to be sorted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from jobs.dataplane.curve_sort import CurveSort
from jobs.dataplane.external_sort import ExternalSort
from jobs.dataplane.space_curve import is_linear, sort_indices

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jobs.dataplane.spill import SpillFolder


class RowBuffer:
    """Rows that become row groups. `sort_by` sorts them in memory, or on the disk once `spill` was called; the order is
    the same."""

    def __init__(self, sort_by: Sequence[str], curve: str, folder: SpillFolder) -> None:
        self._sort_by, self._curve, self._folder = sort_by, curve, folder
        self._waiting: list[pa.RecordBatch] = []
        self._on_disk: ExternalSort | CurveSort | None = None
        self._width = 0.0
        self.bytes = 0
        self.rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch)
        self.bytes += batch.nbytes
        self.rows += batch.num_rows

    def spill(self) -> None:
        """Moves the rows to the disk. Raises `RefusedError` when the disk is full."""
        if self._on_disk is None:
            is_plain = is_linear(self._sort_by, self._curve)
            self._on_disk = (
                ExternalSort(self._sort_by, self._folder)
                if is_plain
                else CurveSort(self._sort_by, self._curve, self._folder)
            )
        if self._waiting:
            self._on_disk.add(self._taken())

    def tables(self, rows: int | None, bytes_at_most: int) -> Iterator[pa.Table]:
        """Yields all rows, in tables for one row group each: at most `rows` rows (None for any number) and about
        `bytes_at_most` bytes."""
        if self._on_disk is not None:
            self.spill()
            fitting = max(1, int(bytes_at_most // max(self._width, 1)))
            yield from self._on_disk.tables(min(rows or fitting, fitting))
        elif self._waiting:
            table = self._taken()
            if self._sort_by:
                table = table.take(sort_indices(table, self._sort_by, self._curve))
            for first in range(0, table.num_rows, rows or table.num_rows):
                yield table.slice(first, rows or table.num_rows)

    def _taken(self) -> pa.Table:
        self._width = max(self._width, self.bytes / max(self.rows, 1))
        # The dictionaries are unified, because the writer stops using one when the next batch has another.
        table = pa.Table.from_batches(self._waiting).unify_dictionaries()
        self._waiting, self.bytes, self.rows = [], 0, 0
        return table
