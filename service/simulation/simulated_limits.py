"""Limits that tables share, on the clock of a simulation: budgets, and the shares of reads that may cost more."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from service.outcome.read_share import CostlyTable, ReadShare
from service.scheduling.budgets import MEMBERS, Key, SharedBudget
from service.simulation.table_past import TablePast

_DAY = timedelta(days=1)


@dataclass(frozen=True)
class BudgetsPast:
    """The budgets that are simulated. `keys` has the budgets of each table. `spent` has the hours that were spent on
    each day before the simulation, by the beginning of the day (in UTC). `left_out` are clauses about budgets of these
    tables that are not simulated."""

    shared: Sequence[SharedBudget] = ()
    keys: Mapping[str, Sequence[Key]] = field(default_factory=dict)
    spent: Mapping[tuple[Key, datetime], float] = field(default_factory=dict)
    left_out: Sequence[str] = ()


class SimulatedBudgets:
    """The budgets with what the simulated jobs have spent."""

    def __init__(self, past: BudgetsPast) -> None:
        self._keys = past.keys
        self._shared: dict[Key, SharedBudget] = {}
        self._counts_for: defaultdict[str, list[Key]] = defaultdict(list)
        self._spent = defaultdict(float, past.spent)
        for each in past.shared:
            self._shared |= dict.fromkeys(each.keys, each)
            for table_id in each.tables:
                self._counts_for[table_id] += each.keys

    def concern(self, table_id: str) -> bool:
        return any(each in self._shared for each in self._keys.get(table_id, ()))

    def add(self, table_id: str, now: datetime, seconds: float, gib: float) -> None:
        """Counts a job that ends now. `gib` is the memory that it had."""
        hours = {"seconds": seconds / 3600, "gb_seconds": seconds * gib / 3600}
        for key in self._counts_for.get(table_id, ()):
            self._spent[key, day_of(now)] += hours[MEMBERS[key[1]]]

    def over(self, table_id: str, now: datetime) -> tuple[str, datetime] | None:
        """Returns the clause about a spent budget of the table, and when the day ends; None if no budget is spent."""
        for key in self._keys.get(table_id, ()):
            if (shared := self._shared.get(key)) is None:
                continue
            today = day_of(now)
            before = sum(self._spent.get((key, each), 0.0) for each in days_before(today, shared.carry_over_days))
            if clause := shared.overspent(key[1], self._spent.get((key, today), 0.0), before):
                return clause, today + _DAY
        return None


def day_of(at: datetime) -> datetime:
    return at.replace(hour=0, minute=0, second=0, microsecond=0)


def days_before(day: datetime, number: int) -> Iterator[datetime]:
    return (day - each * _DAY for each in range(1, number + 1))


class SimulatedShares:
    """The shares of reads that may cost more, by table id. `levels` has the level that sets `of_reads` for a table."""

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
