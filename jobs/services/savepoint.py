"""Savepoints: creates, lists and deletes them. The cleaner and the archiver of Hudi keep what a savepoint needs."""

from __future__ import annotations

import time

from jobs.contract import Outcome, Problem, Result, WorkOrder
from jobs.errors import HudiError, WritersActiveError, refuse
from jobs.hudi.client import WriteClient
from jobs.hudi.lock import TableLock
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.hudi.records import CLEAN
from jobs.hudi.savepoints import BY, savepoints_of
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.kinds.savepoint import SavepointOfTable, SavepointParams, SavepointResult
from jobs.problems.undoing import NO_INSTANT, NO_SUCH_COMMIT, REPLACED_SINCE
from jobs.protocol import preflight

CREATE, LIST, DELETE = "create", "list", "delete"
POLL_SECONDS = 0.1


def run(table: HudiTable, order: WorkOrder[SavepointParams], context: JobContext) -> Result[SavepointResult]:
    """Creates, lists or deletes savepoints, by `action`. Creating an existing savepoint or deleting a missing one
    changes nothing, but a savepoint that a repair has made becomes the user's."""
    context.step("planning")
    action = order.params.action
    problems = [] if action == LIST else _problems(table, order.params, action)
    if order.dry_run or action == LIST:
        planned = SavepointResult(savepoints=_listed(table), refusals=tuple(problems))
        return Result(Outcome.SUCCEEDED, details=planned)
    refuse(problems)
    lock = TableLock(table, order.job_id)
    if action == DELETE:
        instant = order.params.instant or ""
        context.step("deleting the savepoint")
        with lock.held(context.checkpoint), WriteClient(table, UNDER_OUR_LOCK) as client:
            lock.verify()
            client.savepoints.delete(instant)
        if any(each.instant == instant for each in _listed(table)):
            raise HudiError(f"The savepoint {instant} is still there.")
        return Result(Outcome.SUCCEEDED, details=SavepointResult(deleted=instant, savepoints=_listed(table)))
    instant = _create(table, lock, order, context)
    created = SavepointResult(savepoint=instant, savepoints=_listed(table))
    return Result(Outcome.SUCCEEDED, instants=(instant,), details=created)


def _create(table: HudiTable, lock: TableLock, order: WorkOrder[SavepointParams], context: JobContext) -> str:
    """Waits until no write that began before the commit of the savepoint is in flight. Such a write would complete
    after the savepoint, with an earlier instant. Table version 6 orders by instants only, so a restore would keep its
    rows. Waits for the end of a clean as well.
    """
    seconds = order.params.wait_seconds
    deadline = time.monotonic() + seconds
    context.step("waiting for earlier writes")
    while True:
        with lock.held(context.checkpoint):
            table.reload()
            instant = order.params.instant or latest_commit(table)
            # Somebody may have replaced file groups meanwhile.
            refuse(_problems(table, order.params, CREATE))
            # Hudi compares the commit with the first commit that pending cleans keep, but a clean by file versions
            # names no such commit.
            earlier = [item for item in table.pending() if item.requested < instant]
            earlier += [item for item in table.instants() if item.action == CLEAN and item.state != "COMPLETED"]
            if not earlier:
                with WriteClient(table, UNDER_OUR_LOCK) as client:
                    found = client.savepoints.find(instant)
                    if found is not None and found.is_of_repair:
                        # A repair removes its own savepoints at its end, but never one of a user.
                        lock.verify()
                        client.savepoints.delete(instant)
                        found = None
                    if found is None:
                        lock.verify()
                        client.savepoints.create(instant, BY, order.params.comment)
                    if client.savepoints.find(instant) is None:
                        raise HudiError(f"The savepoint {instant} is not on the timeline.")
                return instant
        if time.monotonic() > deadline:
            names = ", ".join(map(str, earlier))
            raise WritersActiveError(f"After {seconds} s: in flight since before {instant}, or a clean: {names}.")
        context.checkpoint()
        time.sleep(POLL_SECONDS)


def latest_commit(table: HudiTable) -> str:
    """Returns the last completed commit in the order of Hudi's timeline; empty if there is none."""
    return max((each.write.instant for each in table.commits()), default="")


def _problems(table: HudiTable, params: SavepointParams, action: str) -> list[Problem]:
    given = params.instant
    if action == DELETE:
        if given:
            return []
        return [NO_INSTANT.because()]
    commits = table.commits()
    instant = given or latest_commit(table)
    chosen = next((each for each in commits if each.write.instant == instant), None)
    if chosen is None:
        title = "The table has no such completed commit on its active timeline" if given else "The table has no commit"
        return [NO_SUCH_COMMIT.because(given or "", title=title)]
    problems = []
    replaced = [each.write.instant for each in commits if each.completed > chosen.completed and each.write.replaced]
    if replaced:
        problems.append(REPLACED_SINCE.because(", ".join(replaced[:5])))
    return problems + preflight.misplaced_rows(commits, "The savepoint would keep rows that no reader sees")


def _listed(table: HudiTable) -> tuple[SavepointOfTable, ...]:
    return tuple(
        SavepointOfTable(
            instant=each.instant, by=each.by, comment=each.comment, files=sum(map(len, each.files.values()))
        )
        for each in savepoints_of(table)
    )
