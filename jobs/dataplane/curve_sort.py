"""Sorts rows along a space-filling curve (`space_curve`) when they do not fit into memory.

A row's place on the curve depends on the ranks of its values among all distinct values of their columns. So the rows
are kept on the disk as they come, and with them the distinct values of each column, sorted; after the last row, each
row's distance along the curve can be computed, and the rows are sorted by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jobs.dataplane.external_sort import BATCH_BYTES, ExternalSort
from jobs.dataplane.space_curve import bits_of, dense_ranks, distances, steps_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from jobs.dataplane.spill import Run, SpillFolder

_DISTANCE = "_hoodie_distance"  # no column of a user begins with this
_VALUE = "value"


class CurveSort:
    """Rows that come in tables and leave in the order of `sort_indices(all of them, columns, curve)`.

    Memory: as much as an `ExternalSort`, and up to 2^20 values of each column.
    """

    def __init__(self, columns: Sequence[str], curve: str, folder: SpillFolder) -> None:
        self._columns = list(columns)
        self._curve = curve
        self._bits = bits_of(self._columns)
        self._folder = folder
        self._runs: list[Run] = []
        self._values = [ExternalSort([_VALUE], folder, nulls="at_start") for _ in self._columns]

    def add(self, table: pa.Table) -> None:
        """Writes the rows to the disk. Raises `RefusedError` when the disk is full."""
        if not table.num_rows:
            return
        for column, values in zip(self._columns, self._values, strict=True):
            values.add(_with_new_ranks(table.column(column).combine_chunks()))
        rows = max(1, BATCH_BYTES * table.num_rows // max(table.nbytes, 1))
        self._runs.append(self._folder.write([table.combine_chunks()], rows))

    def tables(self, rows: int) -> Iterator[pa.Table]:
        """Yields all rows in order, in tables of `rows` rows (the last one may be shorter). The tables can be read only
        once."""
        if not self._runs:
            return
        steps = [_Steps.of(values, self._bits, self._folder) for values in self._values]
        by_distance = ExternalSort([_DISTANCE], self._folder)
        for run in self._runs:
            by_distance.add(self._with_distances(run, steps))
        for table in by_distance.tables(rows):
            yield table.drop_columns([_DISTANCE])

    def _with_distances(self, run: Run, steps: Sequence[_Steps]) -> pa.Table:
        table = pa.Table.from_batches(run.batches()).unify_dictionaries()
        places = [each.places(table.column(name)) for name, each in zip(self._columns, steps, strict=True)]
        return table.append_column(_DISTANCE, pa.array(distances(places, self._curve, self._bits)))


@dataclass(frozen=True)
class _Steps:
    """The first value of each step of a column, in order, and the steps' numbers."""

    values: pa.Array
    numbers: NDArray[np.uint64]

    @classmethod
    def of(cls, values: ExternalSort, bits: int, folder: SpillFolder) -> _Steps:
        """Reads the sorted values twice: their number must be known before they can be scaled."""
        count = 0

        def distinct() -> Iterator[pa.Table]:
            nonlocal count
            last: pa.Array | None = None
            for table in values.tables(_BATCH):
                column = table.column(0).combine_chunks()
                new = _with_new_ranks(column, last)
                last = column.slice(len(column) - 1)
                count += new.num_rows
                yield new

        run = folder.write(distinct(), _BATCH)
        firsts: list[pa.Array] = []
        numbers: list[NDArray[np.uint64]] = []
        rank, latest = 0, -1
        for batch in run.batches():
            ranks = np.arange(rank, rank + batch.num_rows, dtype=np.uint64)
            scaled = steps_of(ranks, count - 1, bits)
            is_first = np.diff(scaled.astype(np.int64), prepend=latest) != 0
            firsts.append(batch.column(0).filter(pa.array(is_first)))
            numbers.append(scaled[is_first])
            rank, latest = rank + batch.num_rows, int(scaled[-1])
        return cls(pa.concat_arrays(firsts), np.concatenate(numbers))

    def places(self, column: pa.ChunkedArray) -> NDArray[np.uint64]:
        """Returns the step of each value: the last one whose first value does not come after it."""
        joined = pa.chunked_array([self.values, *column.chunks])
        order = pc.sort_indices(joined, sort_keys=[("", "ascending", "at_start")]).to_numpy()
        # The order is stable, so the first value of a step comes before equal values.
        places = np.cumsum(order < len(self.values)) - 1
        found = np.empty(len(order), np.uint64)
        found[order] = self.numbers[places]
        return found[len(self.values) :]


_BATCH = 65_536


def _with_new_ranks(column: pa.Array, last: pa.Array | None = None) -> pa.Table:
    """Returns each distinct value once, in order. If `last` is given, the values are in order already, and `last` is
    left out."""
    joined = pa.concat_arrays([last, column]) if last is not None else column
    order = pc.sort_indices(joined, sort_keys=[("", "ascending", "at_start")])
    ranks = dense_ranks(pa.chunked_array([joined])).astype(np.int64)[order.to_numpy()]
    is_new = np.diff(ranks, prepend=ranks[:1] if last is not None else -1) != 0
    return pa.table({_VALUE: joined.take(order.filter(pa.array(is_new)))})
