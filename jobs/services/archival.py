"""Archival: moves the oldest instants of the timeline to the history, with Hudi's own archiver.

The active timeline is listed and read by every reader and writer, and by the service at every poll. Nothing on it
changes while the lock is held, so the limits that are read under the lock hold until the archiver has ended.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET
from msgspec.structs import replace

from jobs.contract import Outcome, Result, WorkOrder
from jobs.errors import HudiError, refuse
from jobs.hudi.archiver import keeping, remove_unfinished
from jobs.hudi.client import WriteClient
from jobs.hudi.lock import TableLock
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.kinds.archival import ArchivalLimit, ArchivalParams, ArchivalResult
from jobs.protocol import preflight
from jobs.protocol.archival_limits import completed_commits, limits


def run(table: HudiTable, order: WorkOrder[ArchivalParams], context: JobContext) -> Result[ArchivalResult]:
    """Archives all but the latest `retain` completed commits, but no instant that a limit keeps; the result names the
    limits.

    An attempt that dies may have archived some instants twice, or not removed all of them. The next archiver corrects
    both.
    """
    context.step("planning")
    title = "The table has commits that wrote rows to replaced file groups; their repair reads the timeline"
    problems = preflight.misplaced_rows(table.commits(), title)
    if order.dry_run:
        planned = ArchivalResult() if problems else _planned(table, order.params)[0]
        found = replace(planned, nothing_to_do=not planned.candidates, refusals=tuple(problems))
        return Result(Outcome.SUCCEEDED, details=found)
    refuse(problems)
    lock = TableLock(table, order.job_id)
    context.step("archiving")
    remove_unfinished(table, context.checkpoint)
    with lock.held(context.checkpoint):
        table.reload()
        planned, keep = _planned(table, order.params)
        before = {item.requested for item in table.instants()}
        with WriteClient(table, UNDER_OUR_LOCK, keeping(keep)) as client:
            context.checkpoint()
            lock.verify()
            client.archiver.archive()
        lock.verify()
        after = {item.requested for item in table.instants()}
    archived = sorted(before - after)
    if missing := [instant for instant in planned.candidates or () if instant in after]:
        raise HudiError(f"still on the timeline: {', '.join(missing[:5])}")
    done = replace(
        planned,
        candidates=UNSET,
        archived=len(archived),
        nothing_to_do=not archived,
        instants=len(after),
        last_archived=archived[-1] if archived else None,
    )
    return Result(Outcome.SUCCEEDED, details=done)


def _planned(table: HudiTable, params: ArchivalParams) -> tuple[ArchivalResult, int]:
    """Returns the plan, and the number of commits that Hudi's archiver must leave on the timeline."""
    retain = params.retain
    instants = table.instants()
    commits = completed_commits(instants)
    with WriteClient(table, UNDER_OUR_LOCK) as client:
        found = limits(table, client, params)
    first = found[0].instant if found else None
    keep = max(retain, sum(instant >= first for instant in commits) if first is not None else 0)
    with WriteClient(table, UNDER_OUR_LOCK, keeping(keep)) as client:
        candidates = client.archiver.candidates()
    if first is not None and any(instant >= first for instant in candidates):
        raise HudiError(f"the archiver would go beyond {first}: {', '.join(candidates[-3:])}")
    planned = ArchivalResult(
        retain=retain,
        instants=len(instants),
        commits=len(commits),
        candidates=tuple(candidates),
        limits=tuple(_in_the_way(found, commits, retain)),
    )
    return planned, keep


def _in_the_way(found: Sequence[ArchivalLimit], commits: Sequence[str], retain: int) -> list[ArchivalLimit]:
    """Returns the limits that keep commits on the timeline in addition to the latest `retain`."""
    if len(commits) <= retain:
        return []
    first_retained = commits[-retain]
    return [limit for limit in found if limit.instant < first_retained]
