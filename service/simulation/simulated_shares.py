"""The shares of reads that may cost more, among the tables of a simulation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from service.outcome.read_share import CostlyTable, ReadShare
from service.simulation.table_past import TablePast


class SimulatedShares:
    """The shares by table id. `levels` has the level that sets `of_reads` for a table."""

    def __init__(self, pasts: Sequence[TablePast], levels: Mapping[str, str]) -> None:
        totals: defaultdict[str, float] = defaultdict(float)
        for each in pasts:
            if level := levels.get(each.id):
                totals[level] += each.objective.reads.per_day
        shares = {level: ReadShare(level, reads) for level, reads in totals.items()}
        self.by_id = {each.id: shares[levels[each.id]] for each in pasts if levels.get(each.id)}
        for each in pasts:
            if share := self.by_id.get(each.id):
                share.may_wait = 1 - (each.policy.objective.of_reads or 1.0)

    def note(self, table_id: str, waiting: CostlyTable | None) -> list[str]:
        """Notes whether the table waits. Returns the ids of the tables that can no longer wait because of this."""
        share = self.by_id[table_id]
        share.note(table_id, waiting)
        return share.displaced() if waiting else []
