"""The state of the table that every dry run reports: its lock, writes in flight, dead writes, and pending plans. Only a
lock that cannot be reached is a reason to refuse, so that a wrong address is found before a job runs.
"""

from __future__ import annotations

from dataclasses import replace

from msgspec import UNSET

from jobs.contract import JobKind, Result, WorkOrder
from jobs.errors import ClocksDisagreeError, JobError
from jobs.hudi.client import WriteClient
from jobs.hudi.lock import TableLock
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.hudi.plans import CLUSTERING_ACTIONS, COMPACTION_ACTIONS, pending_plans
from jobs.hudi.records import REPLACE
from jobs.hudi.table import HudiTable
from jobs.kinds.kind import WorksOn
from jobs.kinds.registry import KINDS
from jobs.kinds.results import FoundBeside, KindResult, LockFound
from jobs.problems.tables import LOCK_NOT_ATOMIC
from jobs.protocol import abandoned, log_formats
from jobs.protocol.writers import dead_writes

_NAMED = 5


def with_surroundings(table: HudiTable, order: WorkOrder, result: Result[KindResult]) -> Result[KindResult]:
    """Returns the result of a dry run with the state of the table.

    `lock`: whether it can be reached, and is held, as far as its provider tells. `beside`: the instants of
    `dead_writers`, those that `writers` have in flight, and the `plans` that are pending. `would_roll_back`: the dead
    writers' instants, if the job would roll them back. `notes` say in sentences what this means for the job. The dry
    run connects to the lock's server but takes no lock, so no writer waits.
    """
    lock = TableLock(table, order.job_id).status()
    planned = result.details
    refusals = list(planned.refusals or ())
    # The preflight refuses such a lock with a clearer text than the JVM's error.
    if not any(refusal.type == LOCK_NOT_ATOMIC.type for refusal in refusals):
        refusals += lock.problems
    try:
        table.clock.verify()
    except ClocksDisagreeError as error:
        refusals.append(error.problem())
    notes = list(planned.notes or ())
    dead: list[str] = []
    writing: list[str] = []
    plans: list[str] = []
    try:
        dead, writing = _writes(table)
        plans = _plans(table)
        if _merges_logs(table, order) and not refusals and not planned.nothing_to_do:
            refusals += log_formats.unreadable(table, table.file_slices())
    except JobError as error:
        # The plan is still shown, because this may be the job that repairs such a table.
        notes.append(f"Its writers and pending plans could not be read: {error.detail or error.title}")
    rolled_back = dead if _rolls_back_dead(table, order) and not refusals else []
    is_idle = planned.nothing_to_do
    if is_idle is not UNSET:
        is_idle = is_idle and not rolled_back and not refusals
    if lock.is_held:
        notes.append(f"The table's lock is {lock.holder or 'held by others'}: the job would wait for it.")
    if rolled_back:
        notes.append(f"The job would roll back these instants of dead writers: {_names(rolled_back)}.")
    elif dead:
        notes.append(f"Dead writers left {_names(dead)}. A cleaning, or a rollback of each, takes them back.")
    if writing:
        notes.append(f"In flight: {_names(writing)}.")
    found = planned.having(
        lock=LockFound(
            provider=table.declared.lock.provider,
            reachable=not lock.problems,
            held=lock.is_held,
            holder=lock.holder,
        ),
        beside=FoundBeside(dead_writers=tuple(dead), writers=tuple(writing), plans=tuple(plans)),
        would_roll_back=tuple(rolled_back),
        refusals=tuple(refusals),
        nothing_to_do=is_idle,
        notes=tuple(notes),
    )
    return replace(result, details=found)


def _writes(table: HudiTable) -> tuple[list[str], list[str]]:
    """Returns the pending instants of writers that are certainly dead, and the others."""
    pending = [item.requested for item in table.pending_writes()]
    if not pending and not abandoned.requests(table):
        return [], []
    with WriteClient(table, UNDER_OUR_LOCK) as client:
        dead = dead_writes(table, client)
    return dead, [instant for instant in pending if instant not in dead]


def _plans(table: HudiTable) -> list[str]:
    return [
        f"{plan.instant} ({plan.action})"
        for plan in pending_plans(table, COMPACTION_ACTIONS | CLUSTERING_ACTIONS)
        # A pending replacecommit without a plan is a writer's overwrite.
        if plan.content or plan.action != REPLACE
    ]


def _rolls_back_dead(table: HudiTable, order: WorkOrder) -> bool:
    """Returns whether the job rolls back dead writers. Jobs with given plans, Hudi's own clustering, and repairs that
    only remove leftovers do not."""
    if getattr(order.params, "plans", None) or getattr(order.params, "leftovers", None):
        return False
    is_hudis = order.kind is JobKind.CLUSTERING and table.declared.index is None
    return KINDS[order.kind].rolls_back_dead and not is_hudis


def _merges_logs(table: HudiTable, order: WorkOrder) -> bool:
    kind = KINDS[order.kind]
    return table.is_merge_on_read and kind.rewrites and kind.works_on in {WorksOn.EVERYTHING, WorksOn.LOGGED}


def _names(instants: list[str]) -> str:
    return ", ".join(instants[:_NAMED]) + (" ..." if len(instants) > _NAMED else "")
