"""The reasons for which a lock is not broken."""

from __future__ import annotations

from service.model.errors import ConflictError


class LockKeptError(ConflictError):
    """The lock was not broken. The types below say why."""

    hint = "GET /v1/tables/{id}/lock shows the lock and what is beside it."


class LockFreeError(LockKeptError):
    type = "lock-free"
    title = "Nobody holds the table's lock"
    hint = "There is nothing to break. A job that waits all the same takes it within moments."


class LockNotRemovableError(LockKeptError):
    type = "lock-not-removable"
    title = "The service cannot remove a lock of this provider"


class LockEndsError(LockKeptError):
    """`extensions["ends_at"]` is the time, if it is known."""

    type = "lock-ends-by-itself"
    title = "The lock ends by itself"
    hint = "Wait until then. If a living holder renews it all the time, stop the holder."


class LockTooYoungError(LockKeptError):
    """`extensions["breakable_at"]` is the time from which on its age is no obstacle."""

    type = "lock-too-young"
    title = "The lock has not been held for long enough to take its holder for dead"
    hint = (
        "Wait until `breakable_at`; an administrator can change GROUNDSKEEPER_LOCK_BREAK_SECONDS. If you are sure that"
        " the holder is dead, remove the file by hand."
    )


class LockHeldByJobError(LockKeptError):
    """`extensions["job_id"]` is the job."""

    type = "lock-held-by-job"
    title = "A job of this service holds the lock"
    hint = "Cancel the job: its worker then gives the lock back. If the worker has died, the next attempt removes it."


class WritersAliveError(LockKeptError):
    """`extensions["instants"]` are those with a heartbeat."""

    type = "writers-alive"
    title = "A writer of the table is alive, and may be the one that holds the lock"
    hint = "Wait until it has ended, or stop it. Its heartbeat counts for five minutes."


class LockChangedError(LockKeptError):
    type = "lock-changed"
    title = "Another holder has the lock by now"
    hint = "Nothing was broken. Look again: GET /v1/tables/{id}/lock."
