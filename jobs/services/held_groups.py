"""Finds file groups of pending plans. Hudi puts such groups into no other plan, so a job skips and reports them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jobs.contract import Problem
from jobs.hudi import plan_checks
from jobs.hudi.plans import held_by_plans
from jobs.hudi.records import FileSlice
from jobs.hudi.table import HudiTable


@dataclass(frozen=True)
class Held:
    """The slices that are `free`, and the number of slices that are in pending `plans`."""

    free: tuple[FileSlice, ...]
    number: int
    plans: frozenset[str]

    @classmethod
    def of(cls, table: HudiTable, slices: Sequence[FileSlice], actions: frozenset[str]) -> Held:
        """Separates slices by whether they are in pending plans of these actions."""
        by_plan = held_by_plans(table, actions) if slices and actions else {}
        free = tuple(item for item in slices if item.key not in by_plan)
        plans = frozenset(by_plan[item.key] for item in slices if item.key in by_plan)
        return cls(free, len(slices) - len(free), plans)

    def notes(self) -> tuple[str, ...]:
        """Returns a sentence for the job's result if slices are left out."""
        if not self.number:
            return ()
        plans = ", ".join(sorted(self.plans))
        return (f"{self.number} file groups are left out, because pending plans hold them: {plans}.",)

    def refusals(self, table: HudiTable) -> list[Problem]:
        """Returns the refusal if no slice is free and none of the pending plans can be executed."""
        return plan_checks.unusable_of(table, self.plans) if self.plans and not self.free else []
