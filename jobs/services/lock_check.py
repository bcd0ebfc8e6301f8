"""Checks in a dry run that the table's lock could be taken: an address that is wrong shows before anything runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from jobs.hudi.lock import TableLock
from jobs.protocol.preflight import LOCK_NOT_ATOMIC

if TYPE_CHECKING:
    from jobs.contract import Result, WorkOrder
    from jobs.hudi.table import HudiTable


def with_lock_checked(table: HudiTable, order: WorkOrder, result: Result) -> Result:
    """Returns the result of a dry run with `lock` in its details, and with why the lock cannot be taken among its
    refusals.

    Connects to the lock's server and takes nothing, so no writer waits. That another holds the lock is in order.
    """
    problems = [problem.to_json() for problem in TableLock(table, order.job_id).problems()]
    lock = {"provider": table.declared.lock.provider, "reachable": not problems}
    refusals = list(result.details.get("refusals", ()))
    # What the preflight says of such a lock is clearer than the JVM's word, and needs no second one.
    if not any(refusal["type"] == LOCK_NOT_ATOMIC for refusal in refusals):
        refusals += problems
    return replace(result, details={**result.details, "lock": lock, "refusals": refusals})
