"""Cleaning: deletes file versions that no reader needs any more, with Hudi's own cleaner."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jobs.contract import (
    Outcome,
    Problem,
    Result,
    WriterEngine,
)
from jobs.errors import RefusedError, refuse
from jobs.format.stale_writes import hits
from jobs.hudi import plan_firewall
from jobs.hudi.client import WriteClient
from jobs.hudi.hadoop import storage_of
from jobs.hudi.lock import TableLock
from jobs.hudi.lock_bridge import bridged_lock
from jobs.hudi.options import LOCKED_WITHOUT_ROLLBACKS, UNDER_OUR_LOCK, UNDER_OUR_LOCK_WITHOUT_ROLLBACKS
from jobs.hudi.records import CLEAN, INGESTION, Cleanable
from jobs.job_params import CleaningPolicy
from jobs.kinds.cleaning import CleaningParams, CleaningResult, Consumer, ConsumerSeen
from jobs.kinds.results import EstimatedCost
from jobs.problems.plans import OTHER_PLANS_PENDING, RETAIN_TOO_SMALL, STALE_WRITE_IN_FLIGHT
from jobs.protocol import preflight
from jobs.protocol.consumers import behind_replacements, first_needed, pending_cleans, retention
from jobs.protocol.partition_holds import being_written, writing_into
from jobs.protocol.writers import dead_writes, remove_all_late_files, roll_back_dead
from jobs.services import delegated_plans

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

    from jobs.contract import WorkOrder
    from jobs.hudi.cleaner import Cleaner, CleanPlan
    from jobs.hudi.records import CleanSummary, Commit
    from jobs.hudi.table import HudiTable
    from jobs.job_context import JobContext

WAIT_SECONDS, POLL_SECONDS = 60.0, 0.5
_FEW_FILES = 64  # deleting so few files takes less time than to release and take the lock twice
_MOST_PARALLELISM = 200  # Hudi's default
_IN_FLIGHT = "stale-write-in-flight"
# A running query may read the version before the latest, so its files must not be deleted.
_MIN_RETAIN = {
    CleaningPolicy.KEEP_LATEST_COMMITS: 1,
    CleaningPolicy.KEEP_LATEST_BY_HOURS: 1,
    CleaningPolicy.KEEP_LATEST_FILE_VERSIONS: 2,
}
_RETAINED = {
    CleaningPolicy.KEEP_LATEST_COMMITS: "hoodie.clean.commits.retained",
    CleaningPolicy.KEEP_LATEST_BY_HOURS: "hoodie.clean.hours.retained",
    CleaningPolicy.KEEP_LATEST_FILE_VERSIONS: "hoodie.clean.fileversions.retained",
}


def run(table: HudiTable, order: WorkOrder[CleaningParams], context: JobContext) -> Result[CleaningResult]:
    """Cleans by `policy`, keeping `retain` commits, hours or file versions; a dry run lists what would be deleted."""
    context.step("planning")
    if order.params.plans:
        return _execute_delegated(table, order, context)
    policy = order.params.policy
    retain = order.params.retain
    problems = _retention_problems(policy, retain)
    consumers = order.params.consumers
    has_sessions = WriterEngine.SPARK_SQL in table.declared.writers_engines
    kept = _Retention(policy, retain, consumers, has_sessions)
    problems += kept.problems(table.commits()) + pending_cleans(table, consumers)
    lock = TableLock(table, order.job_id)
    rolled_back: list[str] = []
    has_remains = False
    with WriteClient(table, UNDER_OUR_LOCK) as client:
        if order.dry_run:
            problems += _stale_write_problems(table, dead_writes(table, client))
            has_remains = bool(client.late_files.rolled_back_but_writing()) or bool(_unfinished_cleans(table))
        else:
            refuse(problems)
            lock.break_stale()
            context.step("rolling back dead writers")
            # The files of failed writes are useless, but only writes of writers that are certainly dead are rolled
            # back.
            rolled_back = _roll_back(table, lock, client, context)
    options = kept.options(table.commits(), table.now())
    with WriteClient(table, LOCKED_WITHOUT_ROLLBACKS, options) as client:
        plan = None if order.dry_run else client.cleaner.plan()
        found = client.cleaner.preview() if order.dry_run and not problems else plan or Cleanable()
        files = [path for paths in found.files.values() for path in paths]
        result = CleaningResult(
            policy=policy,
            retain=retain,
            retained=int(options[_RETAINED[policy]]),
            consumers=tuple(ConsumerSeen(name=each.name, instant=each.instant) for each in consumers),
            partitions=len(found.files),
            dropped_partitions=tuple(found.partitions),
            files=len(files),
            bytes=_size(table, files),
        )
        if order.dry_run:
            planned = result.having(
                paths=tuple(files[:1000]),
                estimated_cost=EstimatedCost(deletes=len(files)),
                nothing_to_do=not files and not found.partitions and not has_remains,
                refusals=tuple(problems),
            )
            return Result(Outcome.SUCCEEDED, details=planned)
        # Without a metadata table, their rows would reappear when their rollback is archived.
        late_files = remove_all_late_files(table, client)
        dropped = {*found.partitions, *plan_firewall.dropped_by_pending_cleans(table)}
        summary = None
        if not dropped and plan and not consumers and len(files) <= _FEW_FILES:
            summary = _clean_few(client.cleaner, plan, lock, context)
        if not dropped and summary is None:
            with bridged_lock(table, lock, context.checkpoint):
                if consumers or (plan and not _scheduled(client.cleaner, plan, lock, context)):
                    _schedule_beside(table, lock, context, kept)
                context.step("deleting")
                # The clean runs even if there is nothing to delete, to finish a clean that an earlier attempt left half
                # done.
                summary = client.cleaner.execute()
    if dropped:
        summary = _clean_without_writes(table, lock, context, kept, dropped)
    result = result.having(rolled_back=tuple(rolled_back), late_files_deleted=late_files)
    if summary is None:
        idle = result.having(files_deleted=0, nothing_to_do=not rolled_back and not late_files)
        return Result(Outcome.SUCCEEDED, details=idle)
    result = result.having(
        files_deleted=summary.deleted_files, failed_deletes=summary.failed_deletes, nothing_to_do=False
    )
    return Result(Outcome.SUCCEEDED, instants=(summary.instant,), details=result)


def _clean_few(cleaner: Cleaner, plan: CleanPlan, lock: TableLock, context: JobContext) -> CleanSummary | None:
    """Executes a plan of few files while the lock is held; returns None if the plan is not valid any more."""
    with lock.held(context.checkpoint):
        if not cleaner.is_current(plan):
            return None
        cleaner.request(plan)
        context.step("deleting")
        return cleaner.execute()


def _clean_without_writes(
    table: HudiTable, lock: TableLock, context: JobContext, retention: _Retention, dropped: Collection[str]
) -> CleanSummary | None:
    """Cleans while the lock is held and no write in flight may write to a dropped partition. Hudi (1.2) deletes the
    folder of such a partition (`CleanActionExecutor.clean`) with all files, including those of a write that has begun
    since the plan was made."""
    deadline = time.monotonic() + WAIT_SECONDS
    context.step("waiting for writes to dropped partitions")
    while True:
        # The wait happens without the lock, so that writers need not wait.
        if busy := writing_into(table, dropped):
            if time.monotonic() > deadline:
                refuse([being_written(partition, instants) for partition, instants in busy.items()])
            context.checkpoint()
            time.sleep(POLL_SECONDS)
            continue
        with lock.held(context.checkpoint):
            table.reload()
            commits = table.commits()
            refuse(retention.problems(commits))
            options = retention.options(commits, table.now())
            with WriteClient(table, UNDER_OUR_LOCK_WITHOUT_ROLLBACKS, options) as client:
                plan = client.cleaner.plan()
                dropped = {
                    *(plan.partitions if plan else ()),
                    *plan_firewall.dropped_by_pending_cleans(table),
                }
                if not writing_into(table, dropped):
                    context.step("deleting")
                    lock.verify()
                    if plan:
                        client.cleaner.request(plan)
                    return client.cleaner.execute()


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
    lock = TableLock(table, order.job_id)
    if order.dry_run:
        found = delegated_plans.find(table, order, {CLEAN})
        return Result(Outcome.SUCCEEDED, details=found.planned(CleaningResult, problems))
    refuse(problems)
    lock.break_stale()
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
            return Result(Outcome.SUCCEEDED, details=result)
        if others := sorted(_unfinished_cleans(table) - set(found.ready)):
            refuse([_others_pending(others)])
        refuse(pending_cleans(table, consumers))
        busy = writing_into(table, plan_firewall.dropped_by_pending_cleans(table))
        refuse([being_written(partition, instants) for partition, instants in busy.items()])
        for instant in found.ready:
            context.instant(instant)
        context.step("deleting")
        if summary := client.cleaner.execute_delegated():
            result = result.having(files_deleted=summary.deleted_files, failed_deletes=summary.failed_deletes)
        lock.verify()
    return Result(Outcome.SUCCEEDED, instants=found.ready, details=result)


def _unfinished_cleans(table: HudiTable) -> set[str]:
    return {item.requested for item in table.instants() if item.action == CLEAN and item.state != "COMPLETED"}


def _others_pending(instants: Sequence[str]) -> Problem:
    return OTHER_PLANS_PENDING.because(", ".join(instants[:5]))


@dataclass(frozen=True)
class _Retention:
    """The retention of a clean, by its parameters and the needs of these consumers."""

    policy: CleaningPolicy
    retain: int
    consumers: Sequence[Consumer]
    has_sessions: bool

    def options(self, commits: Sequence[Commit], now: datetime) -> dict[str, str]:
        """Returns the options of the client; `commits` are all that the cleaner will see."""
        own = self.retain
        if self.policy is CleaningPolicy.KEEP_LATEST_COMMITS:
            own = commits_to_retain(commits, self.retain, has_sessions=self.has_sessions)
        retained = retention(self.policy, own, commits, first_needed(commits, self.consumers), now)
        return {"hoodie.clean.policy": self.policy.value, _RETAINED[self.policy]: str(retained)}

    def problems(self, commits: Sequence[Commit]) -> list[Problem]:
        return behind_replacements(self.policy, commits, first_needed(commits, self.consumers))


def _scheduled(cleaner: Cleaner, plan: CleanPlan, lock: TableLock, context: JobContext) -> bool:
    """Schedules the plan under the lock; returns False if the plan is not valid any more."""
    with lock.held(context.checkpoint):
        if is_current := cleaner.is_current(plan):
            cleaner.request(plan)
        return is_current


def _schedule_beside(table: HudiTable, lock: TableLock, context: JobContext, retention: _Retention) -> None:
    """Plans the clean with the lock held, so that no commit can be added in between: Hudi's cleaner counts commits, and
    with one more it would not keep the first commit that a consumer needs."""
    with lock.held(context.checkpoint):
        commits = table.commits()
        refuse(retention.problems(commits))
        with WriteClient(table, UNDER_OUR_LOCK, retention.options(commits, table.now())) as client:
            plan = client.cleaner.plan()
            lock.verify()
            # Dropping a partition needs more checks and time, so it is left to the next cleaning.
            if plan and not plan.partitions:
                client.cleaner.request(plan)


def commits_to_retain(commits: Sequence[Commit], retain: int, *, has_sessions: bool) -> int:
    """Returns the number of commits to retain so that Hudi's cleaner keeps what the last `retain` commits replaced.
    `commits` are in the order of completion. Hudi counts back by the start times of commits. If others began later and
    completed earlier than a long commit, the files that it replaced would be deleted as soon as it has completed, and
    running queries would fail.

    `has_sessions`: sessions of Spark SQL write the table. Such a session plans a query with the files that it has
    cached since its last statement. So that table services in between do not make the query fail, only commits that
    bring rows are counted.
    """
    counting = [place for place, commit in enumerate(commits) if commit.write.brings_rows or not has_sessions]
    start = counting[-retain] if len(counting) >= retain else 0
    first = min((commit.write.instant for commit in commits[start:]), default="")
    return max(retain, sum(commit.write.instant >= first for commit in commits))


def _retention_problems(policy: CleaningPolicy, retain: int) -> list[Problem]:
    least = _MIN_RETAIN[policy]
    if retain >= least:
        return []
    return [
        RETAIN_TOO_SMALL.because(
            f"{policy.value} with retain {retain}",
            hint=f"Retain at least {least}: running readers still need that version.",
        )
    ]


def _roll_back(table: HudiTable, lock: TableLock, client: WriteClient, context: JobContext) -> list[str]:
    """Rolls back dead writers, and waits for writes that were in flight when file groups were replaced, because most of
    these will soon fail. Returns the instants that were rolled back. Raises RefusedError."""
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
    """Returns the refusals because of stale writes, because only files that the cleaning could delete have their rows.
    The instants `dead` count as not in flight.

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


def _size(table: HudiTable, files: list[str]) -> int | None:
    """Returns the bytes of the files if Arrow supports their storage, else None."""
    try:
        return storage_of(table).size(files)
    except (RefusedError, OSError):
        return None
