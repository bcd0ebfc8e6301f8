"""Jobs that execute given pending plans and schedule none."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeVar

from jobs.contract import Problem, WorkOrder
from jobs.hudi.records import Instant
from jobs.hudi.table import HudiTable
from jobs.kinds.cleaning import CleaningResult
from jobs.kinds.clustering import ClusteringResult, GivenClusteringParams
from jobs.kinds.compaction import CompactionResult
from jobs.kinds.words import ExecutesPlans
from jobs.protocol.plan_owner import PlanOwner, plan_instants

OfPlans = TypeVar("OfPlans", CleaningResult, ClusteringResult, CompactionResult)


@dataclass(frozen=True)
class Found:
    """The given plans: `ready` to be executed, `completed` already, or `gone`, which means that they are not on the
    timeline or not of this kind."""

    ready: tuple[str, ...]
    completed: tuple[str, ...]
    gone: tuple[str, ...]

    def result(self, form: type[OfPlans]) -> OfPlans:
        return form(plans=self.ready, completed_before=self.completed, gone=self.gone, scheduled=False)

    def planned(self, form: type[OfPlans], refusals: Collection[Problem] = ()) -> OfPlans:
        """Returns the result of a dry run."""
        return self.result(form).having(nothing_to_do=not self.ready, refusals=tuple(refusals))


def find(table: HudiTable, order: WorkOrder[ExecutesPlans | GivenClusteringParams], actions: Collection[str]) -> Found:
    """Looks up the plans that the parameters name on the timeline. `take_over` allows plans that another process has
    begun; the caller knows that this process is dead. Raises PlanTakenError if a plan has a live runner, because two
    executions of one plan corrupt a table."""
    wanted = sorted(set(order.params.plans or ()))
    instants = {item.requested: item for item in table.instants() if item.requested in wanted}
    pending = {item.requested for item in plan_instants(table, actions)} & set(wanted)
    if not order.dry_run:
        owner = PlanOwner(table, order.job_id, take_over=bool(order.params.take_over))
        for name in sorted(pending):
            owner.check(name)
    others = [name for name in wanted if name not in pending]
    completed = [name for name in others if _has_completed(table, instants.get(name), name)]
    gone = [name for name in others if name not in completed]
    return Found(tuple(sorted(pending)), tuple(completed), tuple(gone))


def _has_completed(table: HudiTable, item: Instant | None, name: str) -> bool:
    return item.state == "COMPLETED" if item else table.was_archived(name)
