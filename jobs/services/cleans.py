"""The cleans of one job: each is planned, checked, scheduled and executed before the next one is planned."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection
from dataclasses import dataclass, field

from jobs.errors import PlanTakenError, refuse
from jobs.hudi import plan_checks
from jobs.hudi.clean_plan import CleanPlan
from jobs.hudi.client import WriteClient
from jobs.hudi.lock import TableLock
from jobs.hudi.lock_bridge import bridged_lock
from jobs.hudi.options import LOCKED_WITHOUT_ROLLBACKS, UNDER_OUR_LOCK, UNDER_OUR_LOCK_WITHOUT_ROLLBACKS
from jobs.hudi.records import CLEAN, CleanSummary
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.kinds.cleaning import CleaningResult
from jobs.protocol.clean_retention import CleanRetention
from jobs.protocol.partition_holds import being_written, writing_into
from jobs.protocol.writers import remove_all_late_files

logger = logging.getLogger(__name__)

WAIT_SECONDS, POLL_SECONDS = 60.0, 0.5
_FEW_FILES = 64  # deleting so few files takes less time than to release and take the lock twice
_MOST_PATHS = 1000


def unfinished(table: HudiTable) -> frozenset[str]:
    """Returns the pending cleans."""
    return frozenset(each.requested for each in table.instants() if each.action == CLEAN and each.state != "COMPLETED")


@dataclass
class Deletable:
    """What the planned cleans delete, all together."""

    cleans: int = 0
    files: int = 0
    bytes: int = 0
    partitions: set[str] = field(default_factory=set)
    dropped: set[str] = field(default_factory=set)
    paths: list[str] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not self.files and not self.dropped

    def add(self, plan: CleanPlan) -> None:
        self.cleans += not plan.is_empty
        self.files += plan.number_of_files
        self.bytes += plan.bytes
        self.partitions |= set(plan.files)
        self.dropped |= set(plan.partitions)
        for paths in plan.files.values():
            self.paths += paths[: _MOST_PATHS - len(self.paths)]

    def added_to(self, result: CleaningResult) -> CleaningResult:
        return result.having(
            cleans=self.cleans,
            files=self.files,
            bytes=self.bytes,
            partitions=len(self.partitions),
            dropped_partitions=tuple(sorted(self.dropped)),
        )


class Cleans:
    """The cleans of one job, one after the other. `done` are the executed cleans. `deletable` is what the cleans that
    this job has planned delete. `late_files` is the number of deleted files of fenced writers."""

    def __init__(
        self, table: HudiTable, lock: TableLock, context: JobContext, kept: CleanRetention, most_files: int
    ) -> None:
        self._table = table
        self._lock = lock
        self._context = context
        self._kept = kept
        self._most_files = most_files
        self.done: list[CleanSummary] = []
        self.deletable = Deletable()
        self.late_files = 0
        self.is_idle = True
        # The cleans that Hudi was told to execute, and how many of them it may have completed.
        self._pending: frozenset[str] = frozenset()
        self._passed = 0

    def preview(self) -> Deletable:
        options = self._kept.options(self._table.commits(), self._table.now())
        with WriteClient(self._table, LOCKED_WITHOUT_ROLLBACKS, options) as client:
            for plan in client.cleaner.preview(self._most_files):
                self.deletable.add(plan)
        return self.deletable

    def run(self) -> None:
        """Cleans until nothing is left. The first clean may be one that an earlier attempt left half done."""
        last: CleanPlan | None = None
        has_finished_other = False
        while True:
            plan, summary = self._next(last)
            if summary is None:
                return
            self.done.append(summary)
            if plan is None:
                self.is_idle = False
                if has_finished_other:
                    return
                has_finished_other = True
                continue
            self.deletable.add(plan)
            self.is_idle = self.is_idle and plan.is_empty
            # A storage that deletes nothing would keep the job busy forever.
            if plan.is_last or not summary.deleted_files:
                return
            last = plan.executed_as(summary.instant)

    def _next(self, last: CleanPlan | None) -> tuple[CleanPlan | None, CleanSummary | None]:
        """Plans and executes the clean after `last`. Returns no plan for a clean that others have planned, and no
        summary if there was nothing to clean."""
        table, lock, context = self._table, self._lock, self._context
        with WriteClient(table, LOCKED_WITHOUT_ROLLBACKS, self._kept.options(table.commits(), table.now())) as client:
            plan = client.cleaner.plan(self._most_files, last)
            if last is None:
                # Without a metadata table, rows of late files would reappear when the rollback of their instant is
                # archived.
                self.late_files += remove_all_late_files(table, client)
            dropped = {*(plan.partitions if plan else ()), *plan_checks.dropped_by_pending_cleans(table)}
            if not dropped and plan and not self._kept.consumers and plan.number_of_files <= _FEW_FILES:
                with lock.held(context.checkpoint):
                    if client.cleaner.is_current(plan):
                        client.cleaner.request(plan, lock.verify)
                        self._deletes(plan)
                        return plan, client.cleaner.execute()
            if not dropped:
                try:
                    with bridged_lock(table, lock, context.checkpoint, may_pass=self._may_complete):
                        if self._kept.consumers or (plan and not self._scheduled(client, plan)):
                            plan = self._schedule_beside(last)
                        self._deletes(plan)
                        self._pending, self._passed = unfinished(table), 0
                        # The clean runs even if there is nothing to delete, to finish a clean that an earlier attempt
                        # left half done.
                        return plan, client.cleaner.execute()
                except PlanTakenError:
                    logger.warning("others have completed a clean of %s", ", ".join(sorted(self._pending)))
                    return None, CleanSummary(min(self._pending - unfinished(table)), 0, 0)
        return self._without_writes(last, dropped)

    def _may_complete(self) -> bool:
        """Raises PlanTakenError if others have completed a clean while this attempt deleted without the lock. A writer
        that commits may have done so, or the next attempt if this one was suspended. Called with the lock held, before
        each completion: Hudi (1.2) would complete the clean once more."""
        if len(self._pending - unfinished(self._table)) > self._passed:
            raise PlanTakenError(f"Others have completed a clean of {', '.join(sorted(self._pending))}.")
        self._passed += 1
        return True

    def _deletes(self, plan: CleanPlan | None) -> None:
        step = "deleting"
        if plan and (self.deletable.cleans or not plan.is_last):
            step += f": clean {self.deletable.cleans + 1}, up to partition {plan.reached} of {plan.looked_at}"
        self._context.step(step)

    def _scheduled(self, client: WriteClient, plan: CleanPlan) -> bool:
        """Schedules the plan under the lock; returns False if the plan is not valid any more."""
        with self._lock.held(self._context.checkpoint):
            if is_current := client.cleaner.is_current(plan):
                client.cleaner.request(plan, self._lock.verify)
            return is_current

    def _schedule_beside(self, last: CleanPlan | None) -> CleanPlan | None:
        """Plans the clean with the lock held, so that no commit can be added in between: Hudi's cleaner counts commits,
        and with one more it would not keep the first commit that a consumer needs."""
        table = self._table
        with self._lock.held(self._context.checkpoint):
            commits = table.commits()
            refuse(self._kept.problems(commits))
            with WriteClient(table, UNDER_OUR_LOCK, self._kept.options(commits, table.now())) as client:
                plan = client.cleaner.plan(self._most_files, last)
                # Dropping a partition needs more checks and time, so it is left to the next cleaning.
                if not plan or plan.partitions:
                    return None
                client.cleaner.request(plan, self._lock.verify)
                return plan

    def _without_writes(
        self, last: CleanPlan | None, dropped: Collection[str]
    ) -> tuple[CleanPlan | None, CleanSummary | None]:
        """Cleans while the lock is held and no write in flight may write to a dropped partition. Hudi (1.2) deletes the
        folder of such a partition (`CleanActionExecutor.clean`) with all files, including those of a write that has
        begun since the plan was made."""
        table, lock, context = self._table, self._lock, self._context
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
                refuse(self._kept.problems(commits))
                options = self._kept.options(commits, table.now())
                with WriteClient(table, UNDER_OUR_LOCK_WITHOUT_ROLLBACKS, options) as client:
                    plan = client.cleaner.plan(self._most_files, last)
                    dropped = {
                        *(plan.partitions if plan else ()),
                        *plan_checks.dropped_by_pending_cleans(table),
                    }
                    if not writing_into(table, dropped):
                        self._deletes(plan)
                        if plan:
                            client.cleaner.request(plan, lock.verify)
                        else:
                            lock.verify()
                        return plan, client.cleaner.execute()
