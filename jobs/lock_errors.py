"""Errors of the lock of a table."""

from __future__ import annotations

from jobs.contract import LOCK_UNAVAILABLE, TABLE_LOCKED
from jobs.errors import JobError


class TableLockedError(JobError):
    type = TABLE_LOCKED
    title = "The table's lock could not be acquired in time"
    hint = (
        "Another writer holds the lock. GET /v1/tables/{id}/lock shows who, as far as its provider tells; DELETE"
        " removes a lock file that a dead writer has left (`groundskeeper lock show`, `lock break`)."
    )
    retriable = True
    why = (
        "The job needs the table's lock for a moment, but others held it for longer than the job may wait. The job "
        "goes back to the queue, so that its worker can serve other tables."
    )
    example = "Held for 3 h"


class LockUnavailableError(JobError):
    """Nobody is known to hold the lock: its server cannot be asked."""

    type = LOCK_UNAVAILABLE
    title = "The server or storage of the table's lock cannot be reached"
    hint = (
        "Nothing was changed. Check that the server runs, that this worker may connect to it, and that the `lock` of "
        "the table's registration has its address; or PATCH the table with the `lock` that its writers use."
    )
    retriable = True
    why = (
        "The table's lock is kept by a server, such as ZooKeeper or DynamoDB, or by its storage, which did not answer."
        " Nothing can be committed without the lock, so nothing was changed."
    )
    example = "zk-1:2181 does not answer: connection refused"


class LockUnusableError(JobError):
    """No attempt on a worker like this one will succeed."""

    type = "lock-unusable"
    title = "The table's lock provider cannot be loaded"
    hint = "PATCH the table with the `lock` that its writers use."
    why = (
        "The class of the lock provider, or a library that it needs, is not on the worker's class path, or its options"
        " are incomplete."
    )
    example = "ClassNotFoundException: org.example.OurLock"


class LockLostError(JobError):
    type = "lock-lost"
    title = "The table's lock was lost before the commit"
    hint = (
        "Nothing was committed. Either the worker stood still or the lock's server was away for longer than the lock "
        "lasts, or another client broke the lock (with the filesystem provider, a Hudi client that fails deletes the "
        "holder's lock)."
    )
    retriable = True
    why = "The lock was no longer the job's at the moment of the commit, so the job did not commit."
    example = "The lease of the lock expired 4 s ago."
