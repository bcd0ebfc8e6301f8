"""History of a table's jobs of one kind, and the back-off after failures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from jobs.contract import JobKind
from jobs.kinds.bucket_resize import BucketResizeResult, ResizedBuckets
from jobs.kinds.compaction import CompactionResult
from service.model.formatting import duration
from service.queue.job import Job, JobState
from service.queue.problem_types import WITHDRAWN

_FIRST = timedelta(minutes=10)
_MOST = timedelta(days=1)
_MOST_SELDOM = timedelta(hours=6)
FRUITLESS = 3
"""After this many jobs in a row that have gained nothing, the policy starts such jobs less often."""

_WITHHELD_FOR = timedelta(days=1)
_LIMITS = frozenset({"limit_bytes", "limit_file_groups", "limit_partitions"})


@dataclass(frozen=True)
class JobHistory:
    asked_at: datetime | None = None  # When the last job was submitted.
    began_at: datetime | None = None  # When the last successful job began.
    ended_at: datetime | None = None  # When the last successful job ended.
    failures: int = 0  # Jobs that failed or were cancelled since the last successful one.
    failed_at: datetime | None = None  # When the last failed or cancelled job ended.
    error: str | None = None  # The error of the last failed job; None if that job was cancelled.
    # Whether the last successful job reached a limit of its policy and left work for the next one.
    is_unfinished: bool = False
    fruitless: int = 0  # Number of the policy's last successful jobs, in a row, that have gained nothing.
    # The last completed instant that the last successful job saw, if its result says so.
    last_instant: str | None = None

    @property
    def next_try_at(self) -> datetime | None:
        """When the next job may start after failures: ten minutes after the first failure, and twice as long after each
        further one, but at most a day after it. None without a failure."""
        if self.failed_at is None:
            return None
        # Bounded, because a timedelta cannot hold 2 ** 1000 minutes.
        doublings = min(self.failures - 1, 16)
        return self.failed_at + min(_MOST, _FIRST * (1 << doublings))

    @property
    def seldom_until(self) -> datetime | None:
        """When the next job may start after jobs that have gained nothing: ten minutes after the end of the third one
        in a row, and twice as long after each further one, but at most six hours after it. None before the third
        one."""
        if self.ended_at is None or self.fruitless < FRUITLESS:
            return None
        doublings = min(self.fruitless - FRUITLESS, 16)
        return self.ended_at + min(_MOST_SELDOM, _FIRST * (1 << doublings))

    def description(self, now: datetime) -> str:
        """Returns a clause about the last failure, such as "failed 5 min ago: ..."."""
        ago = duration(now - self.failed_at) if self.failed_at else "never"
        times = f", the {self.failures}th time in a row" if self.failures > 3 else ""
        return f"failed {ago} ago{times}: {self.error}" if self.error else f"was cancelled {ago} ago{times}"


def history_of(jobs: Iterable[Job], kind: JobKind, *, forgive_before: datetime | None = None) -> JobHistory:
    """Returns the history of one kind. `jobs` are the table's jobs without dry runs, newest first.

    Jobs submitted before `forgive_before`, when the policy was changed, count neither as failures nor as jobs that have
    gained nothing.
    """
    ours = [job for job in jobs if job.kind is kind and job.state is not JobState.UNKNOWN and not _is_withdrawn(job)]
    failed: list[Job] = []
    good: Job | None = None
    for job in ours:
        if job.state is JobState.SUCCEEDED:
            good = job
            break
        if not job.state.is_active:
            failed.append(job)
    counted = [job for job in failed if forgive_before is None or job.created_at >= forgive_before]
    last = counted[0] if counted else None
    return JobHistory(
        asked_at=ours[0].created_at if ours else None,
        began_at=(good.leased_at or good.created_at) if good else None,
        ended_at=good.finished_at if good else None,
        failures=len(counted),
        failed_at=last.finished_at if last else None,
        error=_error(last) if last else None,
        is_unfinished=good is not None and _is_unfinished(good),
        fruitless=_fruitless(job for job in ours if forgive_before is None or job.created_at >= forgive_before),
        last_instant=good.parsed_result.seen_until if good else None,
    )


def withdrawn_kinds(jobs: Iterable[Job]) -> frozenset[JobKind]:
    """Returns the kinds whose newest job was started by the policy and withdrawn. `jobs` are as in `history_of`."""
    newest: dict[JobKind, Job] = {}
    for job in jobs:
        newest.setdefault(job.kind, job)
    return frozenset(kind for kind, job in newest.items() if job.reason is not None and _is_withdrawn(job))


def _is_withdrawn(job: Job) -> bool:
    return job.error is not None and job.error.type == WITHDRAWN.type


def _fruitless(jobs: Iterable[Job]) -> int:
    """Counts the newest successful jobs that have gained nothing. Counting stops at a job that gained something, that a
    person has submitted, or whose result does not say what it gained."""
    number = 0
    for job in jobs:
        if job.state is not JobState.SUCCEEDED:
            continue
        if job.reason is None or job.parsed_result.has_gained is not False:
            break
        number += 1
    return number


def withheld_plans(jobs: Iterable[Job], now: datetime) -> frozenset[str]:
    """Returns the instants of the plans that successful jobs of the last day left out, according to their results."""
    found: set[str] = set()
    for job in jobs:
        is_recent = job.finished_at is not None and now - job.finished_at < _WITHHELD_FOR
        if job.state is JobState.SUCCEEDED and is_recent:
            found.update(plan.instant for plan in CompactionResult.parse(job.result).withheld_plans or ())
    return frozenset(found)


def one_sided_splits(jobs: Iterable[Job]) -> dict[str, int]:
    """Looks at the newest job that resized each partition. Returns the partitions in which all splits by this job were
    of no use. The values are the size in bytes of the largest bucket that was split. `jobs` are successful resizes,
    newest first."""
    newest: dict[str, list[ResizedBuckets]] = {}
    for job in jobs:
        of_job: dict[str, list[ResizedBuckets]] = {}
        for change in BucketResizeResult.parse(job.result).changes or ():
            of_job.setdefault(change.partition, []).append(change)
        newest = {**of_job, **newest}
    # Merges do not count, because each split of no use leaves an empty bucket that is merged later.
    splits = {path: [each for each in changes if each.change == "split"] for path, changes in newest.items()}
    return {
        path: max(each.bytes for each in found)
        for path, found in splits.items()
        if found and all(each.is_one_sided for each in found)
    }


def _is_unfinished(job: Job) -> bool:
    if job.reason is None or not job.params.keys() & _LIMITS:
        return False
    # An attempt that only reports the commit of a dead attempt does not know whether work is left.
    return job.parsed_result.leaves_work is not False


def _error(job: Job) -> str | None:
    if job.state is JobState.CANCELLED:
        return None
    return job.error.type if job.error else "job-failed"
