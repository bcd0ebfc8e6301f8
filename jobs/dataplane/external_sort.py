"""Sorts rows that do not fit into memory: sorted runs in files, then merged as streams, in whole batches of Arrow.

The order is that of `pyarrow.compute.sort_indices` over all rows at once, because this function makes every comparison.
Rows with equal keys stay in the order in which they came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from jobs.dataplane.spill import Run, SpillFolder

# The number of runs merged at once, and the bytes of a batch; up to three batches of each run are in memory.
MOST_RUNS = 64
BATCH_BYTES = 512 * 1024
_BATCHES_AT_ONCE = 16  # while a run is being written


class ExternalSort:
    """Rows that come in tables and leave in the order of `columns`, ascending, with `nulls` at the end or the start.

    Memory, if single rows are small compared with a batch: two times the largest table that is added; or three batches
    of each run and two times a returned table, if that is more.
    """

    def __init__(self, columns: Sequence[str], folder: SpillFolder, *, nulls: str = "at_end") -> None:
        self._columns = list(columns)
        self._nulls = nulls
        self._folder = folder
        self._runs: list[Run] = []
        self._rows_of_batch = 1
        self.rows = 0

    def add(self, table: pa.Table) -> None:
        """Sorts the rows, and writes them to the disk. Raises `RefusedError` when the disk is full."""
        if not table.num_rows:
            return
        self.rows += table.num_rows
        width = table.nbytes / table.num_rows
        self._rows_of_batch = max(1, int(BATCH_BYTES // max(width, 1)))
        # `take` needs columns of one chunk, and equal dictionaries are then written only once.
        table = table.combine_chunks()
        if len(self._runs) == MOST_RUNS:
            self._runs = [self._folder.write(self._merged(), self._rows_of_batch)]
        self._runs.append(self._folder.write(self._in_order(table), self._rows_of_batch))

    def _in_order(self, table: pa.Table) -> Iterator[pa.Table]:
        order = self._order(table)
        step = self._rows_of_batch * _BATCHES_AT_ONCE
        for first in range(0, table.num_rows, step):
            yield table.take(order.slice(first, step))

    def tables(self, rows: int) -> Iterator[pa.Table]:
        """Yields all rows in order, in tables of `rows` rows (the last one may be shorter). The tables can be read only
        once."""
        waiting: list[pa.Table] = []
        count = 0
        for table in self._merged():
            waiting.append(table)
            count += table.num_rows
            while count >= rows:
                # Only the small remaining tables are combined, not everything at once.
                whole = pa.concat_tables(waiting)
                yield whole.slice(0, rows).unify_dictionaries()
                waiting, count = [whole.slice(rows)], count - rows
        if count:
            yield pa.concat_tables(waiting).unify_dictionaries()

    def _merged(self) -> Iterator[pa.Table]:
        """Yields rows whose place is certain. The rows of a run that are not in memory yet come after its last row in
        memory. So the limit is the smallest of the runs' last rows in memory.
        """
        fronts = [_Front(run, self._columns) for run in self._runs]
        self._runs = []
        while fronts := [front for front in fronts if front.fill()]:
            counts = self._certain(fronts)
            taken = [front.take(count) for front, count in zip(fronts, counts, strict=True) if count]
            table = pa.concat_tables(taken).unify_dictionaries() if len(taken) > 1 else taken[0]
            yield table.take(self._order(table)) if len(taken) > 1 else table

    def _certain(self, fronts: list[_Front]) -> NDArray[np.int64]:
        """Returns how many rows of each front come before any row that is not in memory."""
        sizes = np.array([len(front) for front in fronts], dtype=np.int64)
        unfinished = [place for place, front in enumerate(fronts) if front.has_more]
        if not unfinished:
            return sizes
        lasts = pa.concat_tables([fronts[place].key(len(fronts[place]) - 1) for place in unfinished])
        bound = unfinished[self._order(lasts)[0].as_py()]
        limit = fronts[bound].key(len(fronts[bound]) - 1)
        # A binary search in all fronts at once: rows before `low` come before the limit, rows from `high` on after it.
        low, high = np.zeros_like(sizes), sizes.copy()
        low[bound] = high[bound]
        while len(open_fronts := np.flatnonzero(low < high)):
            middles = (low + high) // 2
            # Rows that equal the limit come before it in earlier runs, and after it in later ones.
            keys = [fronts[place].key(int(middles[place])) for place in open_fronts]
            at = int(np.searchsorted(open_fronts, bound))
            places = self._order(pa.concat_tables([*keys[:at], limit, *keys[at:]])).to_numpy()
            is_before = np.zeros(len(places), np.bool_)
            is_before[places[: int(np.flatnonzero(places == at)[0])]] = True
            is_before = np.delete(is_before, at)
            low[open_fronts[is_before]] = middles[open_fronts[is_before]] + 1
            high[open_fronts[~is_before]] = middles[open_fronts[~is_before]]
        return low

    def _order(self, table: pa.Table) -> pa.Array:
        """Returns the row numbers in order; rows with equal keys keep their order."""
        keys = [(column, "ascending", self._nulls) for column in self._columns]
        return pc.sort_indices(table, sort_keys=keys)


class _Front:
    """The next rows of a run: at least one batch, unless the run has ended."""

    def __init__(self, run: Run, columns: list[str]) -> None:
        self._batches = run.batches()
        self._columns = columns
        self._rows: pa.Table | None = None
        self._keys: pa.Table | None = None
        self._batch_rows = 1
        self._left = run.rows

    def __len__(self) -> int:
        return self._rows.num_rows if self._rows is not None else 0

    @property
    def has_more(self) -> bool:
        return self._left > 0

    def fill(self) -> bool:
        """Returns whether there are rows."""
        if self._left and (self._rows is None or self._rows.num_rows < self._batch_rows):
            batch = next(self._batches)
            self._left -= batch.num_rows
            self._batch_rows = batch.num_rows
            tables = [pa.table(batch)] if self._rows is None else [self._rows, pa.table(batch)]
            self._rows = pa.concat_tables([table for table in tables if table.num_rows])
            self._keys = self._rows.select(self._columns).combine_chunks()
        if not self._left:
            next(self._batches, None)  # removes the file
        return len(self) > 0

    def key(self, row: int) -> pa.Table:
        if self._keys is None:
            raise AssertionError("the front was not filled")
        return self._keys.slice(row, 1)

    def take(self, rows: int) -> pa.Table:
        """Removes that many rows."""
        if self._rows is None or self._keys is None:
            raise AssertionError("the front was not filled")
        taken = self._rows.slice(0, rows)
        self._rows, self._keys = self._rows.slice(rows), self._keys.slice(rows)
        return taken
