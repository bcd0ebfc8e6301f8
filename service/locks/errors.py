"""Errors that say why a lock is not broken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from service.model.errors import ConflictError


class LockKeptError(ConflictError):
    """The lock was not broken. The types below say why."""

    hint = "GET /v1/tables/{id}/lock shows the lock, the writers and the jobs."


class LockFreeError(LockKeptError):
    type = "lock-free"
    title = "Nobody holds the table's lock"
    hint = "There is nothing to break. A job that waits for the lock will take it within moments."
    why = (
        "The call asked to break the lock of a table, but nobody holds it. Perhaps its holder has released it since "
        "the caller read the lock."
    )
    example = "/data/orders/.hoodie/.locks/lock does not exist."


class LockNotRemovableError(LockKeptError):
    type = "lock-not-removable"
    title = "The service cannot remove a lock of this provider"
    why = (
        "A server keeps the lock, such as ZooKeeper, DynamoDB or a Hive metastore, and the service has no client for"
        " this server. Such a server ends a dead holder's lock by itself, or its own tools can remove the lock."
    )
    example = "ZooKeeper ends it when the session of its holder ends."


class LockEndsError(LockKeptError):
    """The lock expires by itself. `extensions["ends_at"]` is the time of its end, if that is known."""

    type = "lock-ends-by-itself"
    title = "The lock ends by itself"
    hint = "Wait until the lock has ended. If a living holder renews the lock all the time, stop the holder."
    why = (
        "The lock has a time at which it ends, and a living holder postpones that time again and again. So the lock of"
        " a dead holder ends by itself, and a lock that does not end has a living holder."
    )
    example = "The lock ends 40 s from now, at 2026-03-01T10:20:30+00:00, unless its holder renews it."
    example_members: ClassVar[Mapping[str, Any]] = {"ends_at": "2026-03-01T10:20:30Z"}


class LockTooYoungError(LockKeptError):
    """The lock is too young to be broken. The lock is old enough from `extensions["breakable_at"]` on. Other reasons
    may still protect the lock then."""

    type = "lock-too-young"
    title = "The lock has not been held for long enough to prove that its holder is dead"
    hint = (
        "Wait until `breakable_at`. An administrator can change the required age, GROUNDSKEEPER_LOCK_BREAK_SECONDS. If"
        " you are sure that the holder is dead, remove the file by hand."
    )
    why = (
        "A writer may pause for minutes, for example during a garbage collection, and then looks just like a dead one."
        " So the service breaks only a lock that has been held for far longer than any pause."
    )
    example = (
        "The lock has been held for 12 min by a writer that Hudi's lock file does not name; it may be broken after 1 h."
    )
    example_members: ClassVar[Mapping[str, Any]] = {"breakable_at": "2026-03-01T11:08:00Z"}


class LockHeldByJobError(LockKeptError):
    """A job of this service holds the lock. `extensions["job_id"]` is the job."""

    type = "lock-held-by-job"
    title = "A job of this service holds the lock"
    hint = "Cancel the job: its worker then releases the lock. If the worker has died, the next attempt removes it."
    why = (
        "A running job of this service has signed the lock. A job releases its lock when the job ends or is cancelled."
        " If its worker has died, the next attempt removes the lock."
    )
    example = "Compaction job job_4be1c0d2f6a89b37 on worker host-4711-1f0c2a signed it."
    example_members: ClassVar[Mapping[str, Any]] = {"job_id": "job_4be1c0d2f6a89b37"}


class WritersAliveError(LockKeptError):
    """A writer is alive. `extensions["instants"]` are the instants with a heartbeat."""

    type = "writers-alive"
    title = "A writer of the table is alive, and may hold the lock"
    hint = "Wait until it has ended, or stop it. Its heartbeat counts for five minutes."
    why = (
        "An instant of the table has had a heartbeat within the last five minutes, so its writer is alive. A lock of"
        " Hudi does not name its holder, so this writer may hold the lock. If the lock were broken, two writers could"
        " commit at the same time."
    )
    example = "The last heartbeat of 20260301102000123 was 20 s ago."
    example_members: ClassVar[Mapping[str, Any]] = {"instants": ["20260301102000123"]}


class LockChangedError(LockKeptError):
    type = "lock-changed"
    title = "Another holder has the lock now"
    hint = "Nothing was broken. Read the lock again: GET /v1/tables/{id}/lock."
    why = (
        "The call named the lock that its caller had seen (`lock_id`). Since then another holder has taken the lock,"
        " and this holder may be alive."
    )
    example = "The lock was released or taken again while it was checked."
