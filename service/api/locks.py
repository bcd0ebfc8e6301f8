"""Shows and breaks the lock of a table: /v1/tables/{id}/lock"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, Field

from jobs.contract import JobKind
from service.api.answers import Declared
from service.api.dependencies import CallerDep, DatabaseDep, LakeDep, QueueDep
from service.api.observed import PendingOut
from service.api.requests import A_REASON, SOME_TEXT
from service.api.routes import Routes
from service.api.structs import made
from service.api.tables import READING_ERRORS, TableId
from service.events.database import Database
from service.lake.table_lock import LockFile
from service.locks import errors as reasons
from service.locks.lock_breaking import LockBreaker
from service.locks.lock_report import LockReport, Writer, refusal
from service.observation.lake_access import LakeAccess
from service.queue.job import Job, JobState
from service.scheduling.queue_settings import QueueSettings

router = Routes(prefix="/v1/tables", tags=["tables"])

MOST_WRITERS = 100


class WriterHeartbeatOut(Declared, declared=Writer):
    """A heartbeat below `.hoodie/.heartbeat`. Writers in single-writer mode send none."""

    heartbeat_age_seconds: float = Field(description="Seconds since the last heartbeat", examples=[42.0])
    is_alive: bool = Field(description="Whether the last heartbeat is less than five minutes old")

    @classmethod
    def of(cls, writer: Writer, now: datetime) -> WriterHeartbeatOut:
        age = (now - writer.heartbeat_at).total_seconds()
        return made(cls, writer, heartbeat_age_seconds=age, is_alive=writer.is_alive(now))


class LockJobOut(BaseModel):
    """A job of this table that a worker has, or that the lock keeps in the queue."""

    id: str = Field(examples=["job_4be1c0d2f6a89b37"])
    kind: JobKind = Field(examples=["compaction"])
    state: JobState = Field(examples=["running"])
    holds: bool = Field(
        description="Whether the lock's file names this job as its owner; false for a lock without a file"
    )
    waits: bool = Field(description="Whether the job waits for the lock, in its worker or in the queue")
    step: str | None = Field(description="What the job's worker does now", examples=["planning"])

    @classmethod
    def of(cls, job: Job, lock: LockReport) -> LockJobOut:
        step = job.progress.step if job.progress else None
        return made(cls, job, holds=job == lock.holding_job(), waits=job in lock.waiting, step=step)


class RefusalOut(BaseModel):
    """The problem with which a request to break the lock would be refused now."""

    type: str = Field(
        description="Name of the problem's type: GET /problems/{name} explains it", examples=["lock-too-young"]
    )
    title: str = Field(examples=["The lock has not been held for long enough to prove that its holder is dead"])
    detail: str = Field(description="The reason in this case; may be empty")
    hint: str = Field(description="What to do")


class HeldLockOut(Declared, declared=LockFile):
    """A table's lock, and signs of whether its holder is alive."""

    table_id: str = Field(examples=["tbl_0f3c2a9d5e7b1c44"])
    provider: str = Field(
        description="Class of Hudi's lock provider",
        examples=["org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"],
    )
    detail: str | None = Field(description="Why the state is unknown")
    age_seconds: float | None = Field(description="Seconds since the lock was taken", examples=[10800.0])
    ending: str = Field(
        description="How a lock of this provider ends if its holder never releases it",
        examples=["The lock never ends by itself: the file stays until somebody deletes it."],
    )
    break_after_seconds: float = Field(description="Age from which the lock may be broken", examples=[3600.0])
    is_breakable: bool = Field(description="Whether DELETE would break the lock now")
    refusal: RefusalOut | None = Field(description="Why the lock cannot be broken now; null if it can")
    writers: list[WriterHeartbeatOut] = Field(
        description=f"Heartbeats of writers, latest first; at most {MOST_WRITERS}"
    )
    pending: list[PendingOut] = Field(description="Pending instants of the table")
    jobs: list[LockJobOut] = Field(description="Jobs of this service that may hold the lock or wait for it")

    @classmethod
    def of(cls, lock: LockReport, breaker: LockBreaker) -> HeldLockOut:
        now, file = breaker.database.clock(), lock.file
        age, why_not = lock.age(now), refusal(lock, now, breaker.break_after)
        return made(
            cls,
            file,
            table_id=lock.table_id,
            provider=lock.provider,
            state=lock.state,
            detail=file.detail or None,
            age_seconds=None if age is None else age.total_seconds(),
            ending=lock.ending,
            break_after_seconds=breaker.break_after.total_seconds(),
            is_breakable=why_not is None,
            refusal=why_not.problem() if why_not else None,
            writers=[WriterHeartbeatOut.of(each, now) for each in lock.writers[:MOST_WRITERS]],
            pending=[PendingOut.of(each, now) for each in lock.pending],
            jobs=[LockJobOut.of(each, lock) for each in lock.jobs],
        )


class BrokenLockOut(BaseModel):
    """The lock that was broken, as it was before."""

    table_id: str = Field(examples=["tbl_0f3c2a9d5e7b1c44"])
    path: str | None = Field(description="The file that was removed", examples=["/data/trips/.hoodie/lock"])
    since: datetime | None = Field(description="Time at which the lock was taken")
    held_seconds: float | None = Field(description="For how long the lock was held", examples=[10800.0])
    holder: str | None = Field(
        description="Who held the lock, as far as this was known",
        examples=["a writer that Hudi's lock file does not name"],
    )
    reason: str = Field(examples=["the writer was killed with its machine"])
    waiting_jobs: list[str] = Field(
        description="Jobs that waited for the lock. Those that are queued are due now",
        examples=[["job_4be1c0d2f6a89b37"]],
    )


def lock_breaker_of(database: Database, lake: LakeAccess, queue: QueueSettings) -> LockBreaker:
    return LockBreaker(database, lake, queue.lock_break_after)


@router.reader("GET /{table_id}/lock", "Show the table's lock, and who may hold it", *READING_ERRORS)
def get_lock(table_id: TableId, database: DatabaseDep, lake: LakeDep, queue: QueueDep) -> HeldLockOut:
    """Reads the storage of the table: the file of the lock, the heartbeats and the timeline. Takes no lock."""
    breaker = lock_breaker_of(database, lake, queue)
    return HeldLockOut.of(breaker.read(table_id), breaker)


@router.operator(
    "DELETE /{table_id}/lock",
    "Break a lock that a dead writer has left",
    *READING_ERRORS,
    reasons.LockFreeError,
    reasons.LockNotRemovableError,
    reasons.LockEndsError,
    reasons.LockTooYoungError,
    reasons.LockHeldByJobError,
    reasons.WritersAliveError,
    reasons.LockChangedError,
)
def break_lock(
    table_id: TableId,
    database: DatabaseDep,
    lake: LakeDep,
    queue: QueueDep,
    caller: CallerDep,
    *,
    reason: Annotated[
        str,
        Query(
            min_length=1,
            max_length=500,
            pattern=A_REASON,
            description="How you know that the holder is dead; stored in the audit trail",
            examples=["the writer was killed with its machine"],
        ),
    ],
    lock_id: Annotated[
        str | None,
        Query(min_length=1, max_length=64, pattern=SOME_TEXT, description="Break only the lock with this `id`"),
    ] = None,
) -> BrokenLockOut:
    """Removes the file of a lock that never ends by itself. The lock must be older than the limit, no writer may have a
    current heartbeat, and no job of this service may hold the lock. **If the holder is only slow, it would then write
    at the same time as others**, so the limit has to be far longer than any pause of a writer."""
    breaker = lock_breaker_of(database, lake, queue)
    lock = breaker.break_lock(table_id, reason=reason, by=caller.name, lock_id=lock_id)
    # The poll ends the problem that the lock has caused.
    lake.poll_requests.ask(table_id)
    age = lock.age(breaker.database.clock())
    return BrokenLockOut(
        table_id=table_id,
        path=lock.file.path,
        since=lock.file.since,
        held_seconds=None if age is None else age.total_seconds(),
        holder=lock.file.holder,
        reason=reason,
        waiting_jobs=[each.id for each in lock.waiting],
    )
