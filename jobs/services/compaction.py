"""Compaction of merge-on-read tables: schedules plans under the table's lock and executes them without it."""

from __future__ import annotations

import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from jobs.contract import Outcome, Problem, Result
from jobs.errors import RefusedError
from jobs.hudi.client import WriteClient
from jobs.hudi.lock import TableLock
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.hudi.records import COMPACTION
from jobs.protocol import recovery
from jobs.protocol.writers import dead_writes
from jobs.services import bounded_compaction, given_plans, log_compactions
from jobs.services.compaction_bounds import Bounds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from jobs.contract import WorkOrder
    from jobs.hudi.table import HudiTable
    from jobs.job_context import JobContext
    from jobs.services.given_plans import GivenPlans

# Writers are not kept waiting meanwhile.
QUIET_SECONDS = 30.0
_POLL_SECONDS = 0.1

# The service has decided to compact, so every file group with a log is due.
DUE = {
    "hoodie.compact.inline.trigger.strategy": "NUM_COMMITS",
    # Also without a commit since the last compaction, which may have left something.
    "hoodie.compact.inline.max.delta.commits": "0",
    # By default Hudi looks only into the partitions written since the last compaction, and so never finds what one of
    # some partitions has left (`BaseTableServicePlanActionExecutor`).
    "hoodie.table.services.incremental.enabled": "false",
    "hoodie.compaction.strategy": "org.apache.hudi.table.action.compact.strategy.UnBoundedCompactionStrategy",
}


def run(table: HudiTable, order: WorkOrder, context: JobContext) -> Result:
    """Executes pending plans (writers may have scheduled them), then schedules and executes a plan for the rest.

    With `plans` in the parameters it executes exactly these, and schedules nothing; with `limit_bytes` or `partitions`
    it compacts that part.
    """
    context.step("planning")
    if wanted := given_plans.of(order):
        if problems := log_compactions.refusals(table, wanted.instants):
            if order.dry_run:
                return Result(Outcome.SUCCEEDED, details={"refusals": [problem.to_json() for problem in problems]})
            raise RefusedError(problems)
        return _execute_given(table, order, context, wanted)
    if done := recovery.already_completed(table, order):
        return done
    if not table.is_merge_on_read:
        problem = Problem("not-merge-on-read", "Only merge-on-read tables have logs to compact")
        if order.dry_run:
            return Result(Outcome.SUCCEEDED, details={"refusals": [problem.to_json()]})
        raise RefusedError([problem])
    bounds = Bounds.of(order)
    if not bounds.is_unlimited:
        execute = partial(_execute, table, order=order, context=context)
        return bounded_compaction.run(table, order, context, bounds, options=DUE, execute=execute)
    due = [item for item in table.file_slices() if item.log_files]
    pending = [item.requested for item in table.pending() if item.action == COMPACTION]
    details: dict[str, Any] = {
        "file_groups": len(due),
        "files": sum(bool(item.base_file) + len(item.log_files) for item in due),
        "log_files": sum(len(item.log_files) for item in due),
        "bytes": sum(item.bytes for item in due),
        "log_bytes": sum(item.log_bytes for item in due),
        "pending_plans": pending,
    }
    if order.dry_run:
        cost = {"bytes_read": details["bytes"], "bytes_written": sum(item.base_bytes for item in due)}
        return Result(Outcome.SUCCEEDED, details={**details, "estimated_cost": cost, "refusals": []})

    lock = TableLock(table, order.job_id)
    lock.break_stale()
    with WriteClient(table, UNDER_OUR_LOCK, DUE) as client:
        instants, withheld = _execute_all(table, client, lock, pending, order=order, context=context)
        context.step("scheduling")
        with lock.held(context.checkpoint):
            scheduled = client.schedule_compaction()
        if scheduled:
            _execute(table, client, lock, scheduled, order=order, context=context)
            instants.append(scheduled)
    return Result(Outcome.SUCCEEDED, instants=tuple(instants), details=details | {"withheld_plans": withheld})


def _execute_given(table: HudiTable, order: WorkOrder, context: JobContext, wanted: GivenPlans) -> Result:
    found = given_plans.find(table, wanted, {COMPACTION}, order)
    if order.dry_run:
        return Result(Outcome.SUCCEEDED, details={**found.details(), "refusals": []})
    lock = TableLock(table, order.job_id)
    lock.break_stale()
    with WriteClient(table, UNDER_OUR_LOCK) as client:
        for instant in found.completed:
            if instant in order.earlier_instants:
                client.tidy_up(instant)
        instants, withheld = _execute_all(table, client, lock, found.ready, order=order, context=context)
    return Result(Outcome.SUCCEEDED, instants=tuple(instants), details=found.details() | {"withheld_plans": withheld})


def _execute_all(
    table: HudiTable,
    client: WriteClient,
    lock: TableLock,
    pending: Iterable[str],
    *,
    order: WorkOrder,
    context: JobContext,
) -> tuple[list[str], list[dict[str, Any]]]:
    """Returns the plans that were executed, and the reasons of those that would harm the table: their file groups stay
    as they are, and the others need not wait for them."""
    executed: list[str] = []
    withheld: list[dict[str, Any]] = []
    for instant in pending:
        try:
            _execute(table, client, lock, instant, order=order, context=context)
            executed.append(instant)
        except RefusedError as error:
            withheld += [{"instant": instant, **reason.to_json()} for reason in error.reasons]
    return executed, withheld


def _execute(
    table: HudiTable, client: WriteClient, lock: TableLock, instant: str, *, order: WorkOrder, context: JobContext
) -> None:
    """Executes one plan under our own lock; if we died with Hudi's, it could not be distinguished from a writer's."""
    context.instant(instant)
    if instant in order.earlier_instants:
        # The instant is ours and its worker is dead: its heartbeat would count for two more minutes.
        client.forget_heartbeat(instant)
    context.step(f"compacting {instant}")
    with lock.held(context.checkpoint):
        begun = client.begin_compaction(instant)
    client.execute_compaction(begun)
    with _held_between_writes(table, client, lock, instant, context):
        lock.verify()
        client.commit_compaction(instant, begun)
        # The compaction is valid, since it changed no rows; but two clients may have written the metadata table at
        # once.
        lock.verify()


@contextmanager
def _held_between_writes(
    table: HudiTable, client: WriteClient, lock: TableLock, instant: str, context: JobContext
) -> Iterator[None]:
    """Holds the lock at a moment without a write in flight, or after `QUIET_SECONDS` at any moment.

    Hudi 1.2 writes wrong partition statistics for a write during which a compaction ends: until the next commit in the
    partition, queries with a filter miss the rows that the write did not change.
    """

    def is_quiet() -> bool:
        return {item.requested for item in table.pending_writes()} <= set(dead_writes(table, client))

    has_statistics = "partition_stats" in table.metadata_partitions
    deadline = time.monotonic() + (QUIET_SECONDS if has_statistics else 0.0)
    is_waiting = False
    while True:
        if time.monotonic() >= deadline or is_quiet():
            with lock.held(context.checkpoint):
                # Writers begin under the lock, so none begins from here on.
                if time.monotonic() >= deadline or is_quiet():
                    yield
                    return
        if not is_waiting:
            context.step(f"waiting for a moment without writes to commit {instant}")
            is_waiting = True
        context.checkpoint()
        time.sleep(_POLL_SECONDS)
