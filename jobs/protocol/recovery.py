"""Settles the instants that earlier attempts left on the timeline: completed, unfinished, or to be rolled back."""

from __future__ import annotations

import logging

from jobs.contract import Outcome, Result, WorkOrder
from jobs.format.table_version import WITH_COMPLETION_TIMES
from jobs.hudi import dangling_configs, hashing_config
from jobs.hudi.client import WriteClient
from jobs.hudi.lock import TableLock
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.hudi.records import REPLACE
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.kinds.results import KindResult
from jobs.protocol import own_instant
from jobs.protocol.plan_owner import PlanOwner, take_back

logger = logging.getLogger(__name__)


def settle_replacement(table: HudiTable, order: WorkOrder, context: JobContext) -> Result[KindResult] | None:
    """Returns the result if an earlier attempt's replacecommit has completed; otherwise removes all traces of it."""
    lock = TableLock(table, order.job_id)
    if done := already_completed(table, order):
        return done
    if order.dry_run:
        return None
    remove_unfinished(table, lock, order, context)
    # An attempt that lost its lease without noticing may have committed while we waited for the lock.
    return already_completed(table, order)


def remove_unfinished(table: HudiTable, lock: TableLock, order: WorkOrder, context: JobContext) -> None:
    """Removes all traces of the unfinished instants of the job's earlier attempts, and of dead replacecommits."""
    unfinished = [item for item in order.earlier_instants if not _has_completed(table, item)]
    unfinished += [item for item in _orphans(table) if item not in unfinished]
    if unfinished or dangling_configs.dangling(table):
        context.step("cleaning up after an earlier attempt")
        with context.undoing(), lock.held(context.checkpoint), WriteClient(table, UNDER_OUR_LOCK) as client:
            table.reload()
            for instant in [item for item in unfinished if not _has_completed(table, item)]:
                if table.state_of(instant) is None:
                    # Either the instant was never begun, or others have rolled it back, or died during the rollback.
                    own_instant.remove_rest(table, client, instant, may_be_unmarked=False)
                else:
                    logger.warning("rolling back %s, whose worker is dead", instant)
                    own_instant.announce_again(client, instant)
                    client.rollback(instant)
                    client.tidy_up(instant)
            for instant in dangling_configs.dangling(table):
                logger.warning("removing the hashing config of %s, which never completed", instant)
                hashing_config.remove(table, instant)
        table.reload()


def remove_rest_of_plans(table: HudiTable, lock: TableLock, order: WorkOrder, context: JobContext) -> None:
    """Removes the files of plans that earlier attempts have executed and that are no longer on the timeline. Somebody
    has rolled them back or made the table anew before the attempt died."""
    gone = [] if order.dry_run else [each for each in order.earlier_instants if _is_gone(table, each)]
    if gone:
        context.step("cleaning up after an earlier attempt")
        with context.undoing(), lock.held(context.checkpoint), WriteClient(table, UNDER_OUR_LOCK) as client:
            table.reload()
            for instant in [each for each in gone if _is_gone(table, each)]:
                own_instant.remove_rest(table, client, instant, may_be_unmarked=False)
        table.reload()


def withdraw_begun(table: HudiTable, lock: TableLock, order: WorkOrder, context: JobContext) -> None:
    """Removes the compaction plan that an earlier attempt has begun if that attempt may go on (see
    `PlanOwner.begun_by_living`); the job then plans the same file groups anew. Before table version 8 the plan has to
    stay (see `take_back`), and cannot be completed twice, because both files would have one name."""
    owner = PlanOwner(table, order.job_id)
    if order.dry_run or table.has_logs_named_by_slice or owner.begun_by_living() is None:
        return
    context.step("cleaning up after an earlier attempt")
    with context.undoing(), lock.held(context.checkpoint), WriteClient(table, UNDER_OUR_LOCK) as client:
        table.reload()
        instant = owner.begun_by_living()
        # When Hudi begins the plan again, it finishes a rollback that was interrupted.
        if instant and instant not in client.pending_rollbacks().values():
            logger.warning("removing the plan %s, whose runner may go on", instant)
            take_back(table, client, instant)
    table.reload()


def _is_gone(table: HudiTable, instant: str) -> bool:
    return table.state_of(instant) is None and not table.was_archived(instant)


def _orphans(table: HudiTable) -> list[str]:
    """Returns pending replacecommits with an expired heartbeat, whose worker died before it could report the instant.
    Writers' cleans apply the same rule (LAZY)."""
    pending = [item.requested for item in table.pending() if item.action == REPLACE]
    if table.version < WITH_COMPLETION_TIMES:
        pending = [instant for instant in pending if not table.is_clustering_plan(instant)]
    if not pending:
        return []
    with WriteClient(table, UNDER_OUR_LOCK) as client:
        return [instant for instant in pending if client.is_dead(instant)]


def already_completed(table: HudiTable, order: WorkOrder) -> Result[KindResult] | None:
    """Returns the result if the last instant of an earlier attempt has completed, so that only its report was lost.
    Only the last instant is checked, because an attempt may have completed a writer's plan before it died in the middle
    of its own work."""
    for instant in order.earlier_instants[-1:]:
        if _has_completed(table, instant):
            if not order.dry_run:
                with WriteClient(table, UNDER_OUR_LOCK) as client:
                    client.tidy_up(instant)
            return Result(Outcome.SUCCEEDED, instants=(instant,), details=KindResult(found_completed=instant))
    return None


def _has_completed(table: HudiTable, instant: str) -> bool:
    state = table.state_of(instant)
    return state == "COMPLETED" or (state is None and table.was_archived(instant))
