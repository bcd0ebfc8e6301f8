"""Common code of the jobs that undo commits: restore and rollback."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from jobs.contract import Outcome, Problem, Result, WorkOrder
from jobs.errors import refuse
from jobs.hudi.client import WriteClient
from jobs.hudi.lock import TableLock
from jobs.hudi.options import METADATA_NOT_COMPACTED, UNDER_OUR_LOCK
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.kinds.results import KindResult
from jobs.protocol import recovery

Given = TypeVar("Given")


@dataclass(frozen=True)
class Attempt(Generic[Given]):
    """One attempt. The lock is held, except for a dry run."""

    table: HudiTable
    client: WriteClient
    lock: TableLock
    order: WorkOrder[Given]
    context: JobContext


def undo(
    table: HudiTable,
    order: WorkOrder[Given],
    context: JobContext,
    *,
    problems: Callable[[Attempt[Given]], list[Problem]],
    describe: Callable[[Attempt[Given]], KindResult],
    execute: Callable[[Attempt[Given]], str],
    finish: Callable[[Attempt[Given]], Mapping[str, object]] | None = None,
) -> Result[KindResult]:
    """Holds the lock from the checks to the end. `execute` returns the instant. `finish` returns members of the result,
    and may be repeated: if an earlier attempt has completed its instant, nothing else is done. Raises RefusedError if
    there are `problems`."""
    context.step("planning")
    lock = TableLock(table, order.job_id)
    if (order.dry_run or finish is None) and (done := recovery.already_completed(table, order)):
        return done
    if order.dry_run:
        with WriteClient(table, UNDER_OUR_LOCK) as client:
            attempt = Attempt(table, client, lock, order, context)
            refusals = tuple(problems(attempt))
            return Result(Outcome.SUCCEEDED, details=describe(attempt).having(refusals=refusals))
    with lock.held(context.checkpoint), WriteClient(table, UNDER_OUR_LOCK, METADATA_NOT_COMPACTED) as client:
        table.reload()
        attempt = Attempt(table, client, lock, order, context)
        if done := recovery.already_completed(table, order):
            return replace(done, details=done.details.having(**finish(attempt))) if finish else done
        refuse(problems(attempt))
        details = describe(attempt)
        instant = execute(attempt)
        if finish:
            details = details.having(**finish(attempt))
    return Result(Outcome.SUCCEEDED, instants=(instant,), details=details)
