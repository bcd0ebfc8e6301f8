"""Compactions with limits: each job compacts a part of the table, and its result says what is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobs.contract import Outcome, Result, WorkOrder
from jobs.errors import RefusedError
from jobs.hudi.client import WriteClient
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.hudi.plans import CLUSTERING_ACTIONS, COMPACTION_ACTIONS, held_by_plans, pending_plans
from jobs.hudi.records import COMPACTION, FileSlice
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.kinds.compaction import CompactionParams, CompactionResult
from jobs.kinds.results import EstimatedCost
from jobs.protocol import preflight
from jobs.services import compaction_engines
from jobs.services.compaction_bounds import Bounds, PendingPlan, left_of
from jobs.services.compaction_plans import PlanRunner
from jobs.services.held_groups import Held


def run(
    table: HudiTable,
    order: WorkOrder[CompactionParams],
    context: JobContext,
    bounds: Bounds,
    *,
    options: Mapping[str, str],
) -> Result[CompactionResult]:
    """Executes the oldest pending plans within the bounds, and a new plan within the rest of the bounds.

    `options` are those of a plan without bounds. A plan cannot be divided, so the first one is executed whatever its
    size.
    """
    problems = preflight.unknown_partitions(bounds.selection, table.partitions()) if bounds.selection else []
    if problems and not order.dry_run:
        raise RefusedError(problems)
    pending = _pending(table)
    if order.dry_run:
        plans = bounds.plans(pending, order.earlier_instants)
        due = _due(table)
        choice = bounds.choose(due.free, plans)
        left = left_of(choice.left, [plan for plan in pending if plan not in plans])
        whole = measured(choice.slices, plans)
        foreseen = whole.having(
            left=left,
            nothing_to_do=not choice.slices and not plans,
            estimated_cost=EstimatedCost(
                bytes_read=whole.bytes, bytes_written=sum(item.base_bytes for item in choice.slices)
            ),
            refusals=tuple(problems),
            notes=due.notes(),
        )
        return Result(Outcome.SUCCEEDED, details=compaction_engines.forecast(foreseen, table, order))
    runner = PlanRunner(table, order, context)
    executed: list[PendingPlan] = []
    with WriteClient(table, UNDER_OUR_LOCK, compaction_engines.options(order)) as client:
        for plan in pending:
            if bounds.takes(plan, executed, order.earlier_instants) and runner.executes(client, plan.instant):
                executed.append(plan)
        context.step("scheduling")
        with runner.lock.held(context.checkpoint), table.reading():
            # Hudi's planner sees the same files as this job, because the lock is held.
            due = _due(table)
            choice = bounds.choose(due.free, executed)
            scheduled = _schedule(table, runner, {**options, **choice.options}) if choice.slices else None
            planned = [plan for plan in _pending(table) if plan.instant == scheduled]
        for plan in planned:
            runner.run(client, plan.instant)
    groups = {group for plan in planned for group in plan.groups}
    done = [item for item in due.free if item.key in groups]
    remaining = [item for item in (*choice.slices, *choice.left) if item.key not in groups]
    instants = [plan.instant for plan in (*executed, *planned)]
    # A withheld plan does not count as left to later jobs, because they will not execute it either.
    settled = {*instants, *(each.instant for each in runner.withheld)}
    left = left_of(remaining, [plan for plan in pending if plan.instant not in settled])
    return runner.result(measured(done, executed).having(left=left, notes=due.notes()), instants)


def _schedule(table: HudiTable, runner: PlanRunner, options: Mapping[str, str]) -> str | None:
    with WriteClient(table, UNDER_OUR_LOCK, options) as client:
        return runner.schedule(client)


def _pending(table: HudiTable) -> list[PendingPlan]:
    return [PendingPlan.of(plan) for plan in pending_plans(table, frozenset({COMPACTION}))]


def _due(table: HudiTable) -> Held:
    """Separates the slices with logs by whether they are in pending clusterings. Those of pending compactions, which
    the job executes or reports as left, are left out."""
    planned = held_by_plans(table, COMPACTION_ACTIONS - {"logcompaction"})
    logged = [item for item in table.file_slices() if item.log_files and item.key not in planned]
    return Held.of(table, logged, CLUSTERING_ACTIONS)


def measured(slices: Sequence[FileSlice], plans: Sequence[PendingPlan] = ()) -> CompactionResult:
    return CompactionResult(
        file_groups=len(slices) + sum(len(plan.groups) for plan in plans),
        files=sum(item.number_of_files for item in slices),
        log_files=sum(len(item.log_files) for item in slices),
        bytes=sum(item.bytes for item in slices) + sum(plan.bytes for plan in plans),
        log_bytes=sum(item.log_bytes for item in slices),
        pending_plans=tuple(plan.instant for plan in plans),
    )
