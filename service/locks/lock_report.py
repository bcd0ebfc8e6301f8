"""A table's lock, the signs of whether its holder may be alive, and the decision whether the lock may be broken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated

from jobs.contract import TABLE_LOCKED
from jobs.spec import Documented, Spec
from service.lake.snapshot import Pending
from service.lake.table_lock import LockFile
from service.locks.errors import (
    LockEndsError,
    LockFreeError,
    LockHeldByJobError,
    LockKeptError,
    LockNotRemovableError,
    LockTooYoungError,
    WritersAliveError,
)
from service.model.formatting import duration
from service.model.lock_state import LockState
from service.observation.late_files import SILENT_AFTER
from service.queue.job import Job, JobState

_LOCK = "the table's lock"


@dataclass(frozen=True)
class Writer(Documented):
    """A writer with a heartbeat file. `job_id` is set if the instant belongs to a job of this service. A writer without
    heartbeats may be alive as well, because Hudi's writers in single-writer mode send none."""

    instant: Annotated[str, Spec("Instant of the write", examples=("20260101120000000",))]
    heartbeat_at: Annotated[datetime, Spec("Time of the last heartbeat")]
    job_id: Annotated[
        str | None, Spec("The job of this service to which the instant belongs", examples=("job_4be1c0d2f6a89b37",))
    ] = None

    def is_alive(self, now: datetime) -> bool:
        return now - self.heartbeat_at < SILENT_AFTER


@dataclass(frozen=True)
class LockReport:
    """A table's lock, with the writers and jobs that may hold it or wait for it."""

    table_id: str
    provider: str
    file: LockFile
    ending: str  # The way in which a lock of this provider ends by itself.
    is_removable: bool  # Whether the lock is a file that can be removed safely.
    writers: Sequence[Writer] = ()
    pending: Sequence[Pending] = ()
    jobs: Sequence[Job] = ()  # The jobs that workers hold on this table, and those that the lock keeps in the queue.

    @property
    def state(self) -> LockState:
        """The state of the lock. If the service cannot read the lock, but a job waits for it, the lock is held."""
        is_known_from_jobs = self.file.state is LockState.UNKNOWN and any(map(_found_held, self.jobs))
        return LockState.HELD if is_known_from_jobs else self.file.state

    @property
    def waiting(self) -> list[Job]:
        """The jobs that wait for the lock, at their worker or in the queue."""
        return [job for job in self.jobs if job.state is JobState.QUEUED or _found_held(job)]

    def age(self, now: datetime) -> timedelta | None:
        return None if self.file.since is None else now - self.file.since

    def holding_job(self) -> Job | None:
        """The job of this service that holds the lock, according to the lock's file."""
        return next((job for job in self.jobs if job.state.has_worker and job.id == self.file.job_id), None)


def _found_held(job: Job) -> bool:
    """Returns whether the job waits because an attempt at it found the lock held."""
    if job.state is JobState.QUEUED:
        return job.error is not None and job.error.type == TABLE_LOCKED
    return job.state.has_worker and job.progress is not None and f"waits for {_LOCK}" in job.progress.step


def refusal(lock: LockReport, now: datetime, limit: timedelta) -> LockKeptError | None:
    """Returns why the lock may not be broken now, or None if it may be broken. `limit` is the age from which a lock may
    be broken."""
    file = lock.file
    if file.state is LockState.FREE:
        return LockFreeError(f"{file.path} does not exist." if lock.is_removable else "")
    if file.ends_at is not None:
        when = f"The lock ends {duration(file.ends_at - now)} from now" if file.ends_at > now else "The lock has ended"
        return LockEndsError(
            f"{when}, at {file.ends_at.isoformat(timespec='seconds')}, unless its holder renews it. {lock.ending}",
            extensions={"ends_at": file.ends_at.isoformat()},
        )
    if not lock.is_removable or file.state is LockState.UNKNOWN or file.id is None or file.since is None:
        return LockNotRemovableError(f"{file.detail} {lock.ending}".strip())
    if job := lock.holding_job():
        return held_by_job(job)
    age = now - file.since
    if age < limit:
        breakable_at = file.since + limit
        return LockTooYoungError(
            f"The lock has been held for {duration(age)} by {file.holder}; it may be broken after {duration(limit)}.",
            extensions={"breakable_at": breakable_at.isoformat()},
        )
    # Heartbeats of this service's jobs do not count, because a job that waits for the lock sends them too.
    if alive := [each for each in lock.writers if each.job_id is None and each.is_alive(now)]:
        last = max(each.heartbeat_at for each in alive)
        return WritersAliveError(
            f"The last heartbeat of {', '.join(each.instant for each in alive[:5])} was {duration(now - last)} ago.",
            extensions={"instants": [each.instant for each in alive[:100]]},
        )
    return None


def held_by_job(job: Job) -> LockHeldByJobError:
    return LockHeldByJobError(
        f"{job.kind.value.replace('_', ' ').capitalize()} job {job.id} on worker {job.worker_id} signed it.",
        extensions={"job_id": job.id},
    )
