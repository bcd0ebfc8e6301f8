"""Cleaning: deletes file versions that no reader needs any more, with Hudi's own cleaner."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence

from jobs.contract import (
    Outcome,
    Problem,
    Result,
    WorkOrder,
    WriterEngine,
)
from jobs.errors import refuse
from jobs.format.stale_writes import hits
from jobs.hudi import plan_checks
from jobs.hudi.client import WriteClient
from jobs.hudi.lock import TableLock
from jobs.hudi.options import UNDER_OUR_LOCK, UNDER_OUR_LOCK_WITHOUT_ROLLBACKS
from jobs.hudi.records import CLEAN, INGESTION
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.kinds.cleaning import FILES_PER_CLEAN, CleaningParams, CleaningResult, ConsumerSeen
from jobs.kinds.results import EstimatedCost
from jobs.problems.plans import OTHER_PLANS_PENDING, STALE_WRITE_IN_FLIGHT
from jobs.protocol import index_refusals, older_hudi, preflight
from jobs.protocol.clean_retention import CleanRetention
from jobs.protocol.consumers import pending_cleans
from jobs.protocol.partition_holds import being_written, writing_into
from jobs.protocol.writers import dead_writes, roll_back_dead
from jobs.services import delegated_plans, metadata_table
from jobs.services.cleans import Cleans, Deletable, unfinished

WAIT_SECONDS, POLL_SECONDS = 60.0, 0.5
_MOST_PARALLELISM = 200  # Hudi's default
_IN_FLIGHT = "stale-write-in-flight"


def run(table: HudiTable, order: WorkOrder[CleaningParams], context: JobContext) -> Result[CleaningResult]:
    """Cleans by `policy`, keeping `retain` commits, hours or file versions; a dry run lists what would be deleted.

    More than `files_per_clean` files are deleted by several cleans (`jobs.hudi.clean_parts`).
    """
    context.step("planning")
    params = order.params
    if params.plans:
        return _execute_delegated(table, order, context)
    has_sessions = WriterEngine.SPARK_SQL in table.declared.writers_engines
    kept = CleanRetention(params.policy, params.retain, params.consumers, has_sessions)
    problems = kept.too_small() + kept.problems(table.commits()) + pending_cleans(table, params.consumers)
    problems += index_refusals.of_cleaning(table)
    lock = TableLock(table, order.job_id)
    rolled_back: list[str] = []
    has_remains = False
    with WriteClient(table, UNDER_OUR_LOCK) as client:
        if order.dry_run:
            problems += _stale_write_problems(table, dead_writes(table, client))
            has_remains = bool(client.late_files.rolled_back_but_writing()) or bool(unfinished(table))
        else:
            refuse(problems)
            context.step("rolling back dead writers")
            # The files of failed writes are useless, but only writes of writers that are certainly dead are rolled
            # back.
            rolled_back = _roll_back(table, lock, client, context)
    result = CleaningResult(
        policy=params.policy,
        retain=params.retain,
        retained=kept.retained(table.commits(), table.now()),
        consumers=tuple(ConsumerSeen(name=each.name, instant=each.instant) for each in params.consumers),
    )
    cleans = Cleans(table, lock, context, kept, params.files_per_clean or FILES_PER_CLEAN)
    if order.dry_run:
        deletable = Deletable() if problems else cleans.preview()
        planned = deletable.added_to(result).having(
            paths=tuple(deletable.paths),
            estimated_cost=EstimatedCost(deletes=deletable.files),
            nothing_to_do=deletable.is_empty and not has_remains,
            refusals=tuple(problems),
        )
        return Result(Outcome.SUCCEEDED, details=planned)
    cleans.run()
    has_merged = False
    if _has_deletes_to_merge(table):
        with lock.held(context.checkpoint):
            has_merged = _merge_deletes(table, lock, context)
    result = cleans.deletable.added_to(result).having(
        rolled_back=tuple(rolled_back),
        late_files_deleted=cleans.late_files,
        files_deleted=sum(each.deleted_files for each in cleans.done),
        nothing_to_do=not rolled_back and not cleans.late_files and cleans.is_idle and not has_merged,
    )
    if cleans.done:
        result = result.having(failed_deletes=sum(each.failed_deletes for each in cleans.done))
    return Result(Outcome.SUCCEEDED, instants=tuple(each.instant for each in cleans.done), details=result)


def _execute_delegated(
    table: HudiTable, order: WorkOrder[CleaningParams], context: JobContext
) -> Result[CleaningResult]:
    """Executes the given pending cleans while the lock is held.

    Hudi (1.2) completes a clean without checking the timeline, so two clients that execute one plan complete it twice.
    A writer executes a pending clean itself with its next commit, even if it delegates cleaning
    (`BaseHoodieTableServiceClient.clean`); while the lock is held, no writer commits.
    """
    consumers = order.params.consumers
    problems = [*_stale_write_problems(table), *pending_cleans(table, consumers)]
    problems += index_refusals.of_cleaning(table)
    lock = TableLock(table, order.job_id)
    if order.dry_run:
        found = delegated_plans.find(table, order, {CLEAN})
        return Result(Outcome.SUCCEEDED, details=found.planned(CleaningResult, problems))
    refuse(problems)
    # If this option allowed several pending cleans, Hudi would schedule another one.
    options = {"hoodie.clean.multiple.enabled": "false"}
    if parallelism := order.params.parallelism:
        options["hoodie.clean.parallelism"] = str(min(parallelism, _MOST_PARALLELISM))
    with (
        lock.held(context.checkpoint),
        WriteClient(table, UNDER_OUR_LOCK_WITHOUT_ROLLBACKS, options) as client,
    ):
        table.reload()
        found = delegated_plans.find(table, order, {CLEAN})
        result = found.result(CleaningResult).having(files_deleted=0, failed_deletes=0)
        if not found.ready:
            _merge_deletes(table, lock, context)
            return Result(Outcome.SUCCEEDED, details=result)
        if others := sorted(unfinished(table) - set(found.ready)):
            refuse([_others_pending(others)])
        refuse(pending_cleans(table, consumers))
        busy = writing_into(table, plan_checks.dropped_by_pending_cleans(table))
        refuse([being_written(partition, instants) for partition, instants in busy.items()])
        for instant in found.ready:
            context.instant(instant)
        context.step("deleting")
        if summary := client.cleaner.execute_delegated():
            result = result.having(files_deleted=summary.deleted_files, failed_deletes=summary.failed_deletes)
        lock.verify()
        _merge_deletes(table, lock, context)
    return Result(Outcome.SUCCEEDED, instants=found.ready, details=result)


def _has_deletes_to_merge(table: HudiTable) -> bool:
    """Returns whether an older writer may misread deletes of a clean, which an earlier attempt or a writer may have
    executed."""
    if not older_hudi.may_misread_deletes(table):
        return False
    cleans = {item.requested for item in table.instants() if item.action == CLEAN and item.state == "COMPLETED"}
    with WriteClient(table, UNDER_OUR_LOCK) as client:
        return client.metadata_table.has_logs_of(cleans)


def _merge_deletes(table: HudiTable, lock: TableLock, context: JobContext) -> bool:
    """Compacts the metadata table, so that older writers do not find the deletes of cleans. Returns whether there were
    such deletes. The lock must be held. If a write is in flight, Hudi compacts only logs from before that write."""
    if not _has_deletes_to_merge(table):
        return False
    context.step("compacting the metadata table for older writers")
    metadata_table.merge_logs(table, lock)
    return True


def _others_pending(instants: Sequence[str]) -> Problem:
    return OTHER_PLANS_PENDING.because(", ".join(instants[:5]))


def _roll_back(table: HudiTable, lock: TableLock, client: WriteClient, context: JobContext) -> list[str]:
    """Rolls back dead writers, and waits for writes that were in flight when file groups were replaced, because most of
    these writes will soon fail. Returns the instants that were rolled back. Raises RefusedError."""
    deadline = time.monotonic() + WAIT_SECONDS
    rolled_back: list[str] = []
    is_waiting = False
    while True:
        rolled_back += roll_back_dead(table, lock, client, context.checkpoint)
        problems = _stale_write_problems(table)
        if [problem.type for problem in problems] != [_IN_FLIGHT] or time.monotonic() > deadline:
            refuse(problems)
            return rolled_back
        if not is_waiting:
            context.step("waiting for a write to replaced file groups")
            is_waiting = True
        context.checkpoint()
        time.sleep(POLL_SECONDS)


def _stale_write_problems(table: HudiTable, dead: Collection[str] = ()) -> list[Problem]:
    """Returns the refusals because of stale writes, whose rows are only in files that the cleaning could delete. The
    instants `dead` do not count as writes in flight.

    Hudi's cleaner deletes all files of a file group that was replaced (`CleanPlanner.getReplacedFilesEligibleToClean`),
    including those of a write in flight that writes there.
    """
    commits = table.commits()
    replaced = {group for commit in commits for group in commit.write.replaced}
    pending = [item.requested for item in table.pending() if item.action in INGESTION] if replaced else []
    in_flight = [instant for instant in pending if instant not in dead]
    touched = {instant: table.touched(instant) for instant in in_flight}
    hitting = [instant for instant, where in touched.items() if where and hits(where.keys, replaced)]
    if hitting:
        return [STALE_WRITE_IN_FLIGHT.because(", ".join(hitting))]
    title = "The table has commits that wrote rows to replaced file groups; cleaning could delete them"
    return preflight.misplaced_rows(commits, title)
