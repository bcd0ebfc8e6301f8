"""Compaction of merge-on-read tables: schedules plans under the table's lock and executes them without it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace

from jobs.contract import Outcome, Problem, Result, WorkOrder
from jobs.errors import RefusedError
from jobs.hudi import rows
from jobs.hudi.client import WriteClient
from jobs.hudi.lock import TableLock
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.hudi.plans import CLUSTERING_ACTIONS
from jobs.hudi.records import COMPACTION, FileSlice
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.kinds.compaction import CompactionParams, CompactionResult
from jobs.kinds.results import EstimatedCost, KindResult
from jobs.problems.plans import LOG_COMPACTION_UNSOUND, NOT_MERGE_ON_READ
from jobs.protocol import preflight, recovery
from jobs.services import bounded_compaction, compaction_engines, delegated_plans
from jobs.services.compaction_bounds import Bounds
from jobs.services.compaction_plans import PlanRunner
from jobs.services.held_groups import Held

# The service has decided to compact, so every file group with a log is due.
DUE = {
    "hoodie.compact.inline.trigger.strategy": "NUM_COMMITS",
    # A plan is made even without a commit since the last compaction, which may have left some log files.
    "hoodie.compact.inline.max.delta.commits": "0",
    # Hudi's default considers only partitions written since the last compaction, so it never finds what a compaction of
    # some partitions has left (`BaseTableServicePlanActionExecutor`).
    "hoodie.table.services.incremental.enabled": "false",
    "hoodie.compaction.strategy": "org.apache.hudi.table.action.compact.strategy.UnBoundedCompactionStrategy",
}


def run(table: HudiTable, order: WorkOrder[CompactionParams], context: JobContext) -> Result[KindResult]:
    """Executes pending plans (writers may have scheduled them), then schedules and executes a plan for the rest.

    If the parameters have `plans`, it executes exactly these, and schedules nothing; `limit_bytes`, `limit_file_groups`
    and `partitions` bound what it compacts.
    """
    context.step("planning")
    if not order.params.plans and (done := recovery.already_completed(table, order)):
        return done
    if problems := _refusals(table, order):
        return _refused(order, problems)
    recovery.remove_rest_of_plans(table, TableLock(table, order.job_id), order, context)
    if order.params.plans:
        return _execute_delegated(table, order, context)
    recovery.withdraw_begun(table, TableLock(table, order.job_id), order, context)
    bounds = Bounds.of(order.params)
    if not bounds.is_unlimited:
        return bounded_compaction.run(table, order, context, bounds, options=DUE)
    with ExitStack() as planning:
        # Hudi's planner sees what this job has read, unless a writer commits in between.
        planning.enter_context(table.reading())
        return _compact(table, order, context, planning)


def of_everything(table: HudiTable, order: WorkOrder, context: JobContext) -> tuple[str, ...]:
    """Compacts all logs for a job of another kind; returns the instants."""
    if not table.is_merge_on_read:
        return ()
    earlier = tuple(each for each in order.earlier_instants if table.state_of(each) != "COMPLETED")
    return run(table, replace(order.having(CompactionParams()), earlier_instants=earlier), context).instants


def refusals_of_everything(table: HudiTable, order: WorkOrder, context: JobContext) -> list[Problem]:
    """Returns the refusals of `of_everything`, in a dry run of the other job."""
    if not table.is_merge_on_read:
        return []
    return list(run(table, order.having(CompactionParams()), context).details.refusals or ())


def _compact(
    table: HudiTable, order: WorkOrder[CompactionParams], context: JobContext, planning: ExitStack
) -> Result[KindResult]:
    """Executes all pending plans, then a new plan for the rest. Closes `planning` before the new plan."""
    pending = [item.requested for item in table.pending() if item.action == COMPACTION]
    held = Held.of(table, [item for item in table.file_slices() if item.log_files], CLUSTERING_ACTIONS)
    if not pending and (problems := held.refusals(table)):
        return _refused(order, problems)
    due = held.free
    found = bounded_compaction.measured(due).having(pending_plans=tuple(pending), notes=held.notes())
    if order.dry_run:
        planned = found.having(
            estimated_cost=EstimatedCost(bytes_read=found.bytes, bytes_written=sum(item.base_bytes for item in due)),
            nothing_to_do=not due and not pending,
            refusals=(),
        )
        return Result(Outcome.SUCCEEDED, details=compaction_engines.forecast(planned, table, order))

    runner = PlanRunner(table, order, context)
    with WriteClient(table, UNDER_OUR_LOCK, {**DUE, **compaction_engines.options(order)}) as client:
        if pending:
            planning.close()
        instants = [instant for instant in pending if runner.executes(client, instant)]
        context.step("scheduling")
        scheduled = None
        # Hudi (1.2.0) takes logs of changes (CDC) for logs of rows, so it would plan the same file groups each time.
        if due:
            with runner.lock.held(context.checkpoint):
                scheduled = runner.schedule(client)
        planning.close()
        if scheduled:
            runner.run(client, scheduled)
            instants.append(scheduled)
    return runner.result(found, instants)


def _refused(order: WorkOrder[CompactionParams], problems: Sequence[Problem]) -> Result[KindResult]:
    """Returns the problems as the result of a dry run; in a real run raises RefusedError."""
    if not order.dry_run:
        raise RefusedError(problems)
    return Result(Outcome.SUCCEEDED, details=CompactionResult(refusals=tuple(problems)))


def _refusals(table: HudiTable, order: WorkOrder[CompactionParams]) -> list[Problem]:
    problems = _log_compactions(table, order.params.plans or ())
    if not order.params.plans and not table.is_merge_on_read:
        problems = [NOT_MERGE_ON_READ.because()]
    problems = problems or rows.not_readable(table) or compaction_engines.refusals(table, order)
    return problems or preflight.of_forgotten_columns(table, _to_merge(table))


def _to_merge(table: HudiTable) -> Iterator[FileSlice]:
    """Lists the slices with logs once they are asked for."""
    yield from (item for item in table.file_slices() if item.log_files)


def _log_compactions(table: HudiTable, plans: Collection[str]) -> list[Problem]:
    """Returns the refusal of log compactions among these plans, which merge the log files of a file slice into one.
    Observed with Hudi 1.2.0: the merged rows get the log compaction's `_hoodie_commit_time` and sequence number. Hudi
    does not execute a log compaction that was interrupted, or that has a later compaction on the timeline
    (`BaseHoodieTableServiceClient.logCompact`)."""
    pending = (each for each in table.instants() if each.action == "logcompaction" and each.state != "COMPLETED")
    found = ", ".join(sorted(each.requested for each in pending if each.requested in plans)[:5])
    why = "the merged rows would get a new commit time, as if they had been written again"
    return [LOG_COMPACTION_UNSOUND.because(f"{found}: {why}")] if found else []


def _execute_delegated(table: HudiTable, order: WorkOrder[CompactionParams], context: JobContext) -> Result[KindResult]:
    found = delegated_plans.find(table, order, {COMPACTION})
    if order.dry_run:
        return Result(Outcome.SUCCEEDED, details=found.planned(CompactionResult))
    runner = PlanRunner(table, order, context)
    with WriteClient(table, UNDER_OUR_LOCK, compaction_engines.options(order)) as client:
        for instant in found.completed:
            if instant in order.earlier_instants:
                client.tidy_up(instant)
        instants = [instant for instant in found.ready if runner.executes(client, instant)]
    return runner.result(found.result(CompactionResult), instants)
