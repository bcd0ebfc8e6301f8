"""The reads that may cost more than an objective allows. The price of a table is the work of regular compactions,
divided by the number of reads that they would keep cheap. Tables with a high price wait for their compaction, as long
as the reads of all waiting tables are few enough."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CostlyTable:
    """A table whose reads would cost more than allowed without a compaction. `price` is the work of regular compactions
    in seconds, divided by the number of reads that they keep cheap."""

    table_id: str
    reads_per_day: float
    price: float

    @property
    def _rank(self) -> tuple[float, str]:
        return -self.price, self.table_id


class ReadShare:
    """The waiting tables of a level of a policy, those with the highest price first, and the number of reads of all
    tables of this level. `may_wait` is the share of these reads that may cost more; None before the first decision
    about a table of the level."""

    def __init__(self, level: str, reads_per_day: float = 0.0, waiting: Iterable[CostlyTable] = ()) -> None:
        self.level, self.reads_per_day = level, reads_per_day
        self.may_wait: float | None = None
        self._tables = {each.table_id: each for each in waiting}
        self._order = sorted(each._rank for each in self._tables.values())
        self._reads = [self._tables[table_id].reads_per_day for _, table_id in self._order]

    def with_costlier(self, table: CostlyTable) -> float:
        """Returns the share of all reads that go to this table and to the waiting tables with a higher price."""
        place = bisect_left(self._order, table._rank)
        costlier = sum(self._reads[:place]) + table.reads_per_day
        own = self._tables.get(table.table_id)
        if own is not None and own._rank < table._rank:
            costlier -= own.reads_per_day
        # A table cannot be read more often than all together, but its reads may have become known only now.
        return costlier / max(self.reads_per_day, costlier) if costlier > 0 else 0.0

    def note(self, table_id: str, waiting: CostlyTable | None) -> None:
        """Notes that the table waits. If `waiting` is None, the table does not wait any more."""
        before = self._tables.pop(table_id, None)
        if before is not None:
            place = bisect_left(self._order, before._rank)
            del self._order[place], self._reads[place]
        if waiting is not None:
            self._tables[table_id] = waiting
            place = bisect_left(self._order, waiting._rank)
            self._order.insert(place, waiting._rank)
            self._reads.insert(place, waiting.reads_per_day)

    def displaced(self) -> list[str]:
        """Removes the tables that can no longer wait because tables with a higher price wait now. Returns their ids."""
        if self.may_wait is None:
            return []
        # Sums that are computed in different ways differ in their last digits. Without a margin, one sum might let a
        # table wait and the other one wake it, again and again.
        found, left = [], self.may_wait * self.reads_per_day * (1 + 1e-9)
        for (_, table_id), reads in zip(self._order, self._reads, strict=True):
            if reads <= left:
                left -= reads
            else:
                found.append(table_id)
        for table_id in found:
            self.note(table_id, None)
        return found
