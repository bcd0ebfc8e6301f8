"""What can go wrong in a job, as types. Errors of the JVM, of Spark and of storage are translated into these."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.contract import Problem

if TYPE_CHECKING:
    from collections.abc import Sequence


class JobError(Exception):
    """Base of everything that ends an attempt. `retriable`: the same plan may succeed later."""

    type = "job-failed"
    title = "The job failed"
    hint = "The worker's log has the details."
    retriable = False

    def __init__(self, detail: str = "", *, hint: str | None = None) -> None:
        super().__init__(detail or self.title)
        self.detail = detail
        self.hint = self.hint if hint is None else hint

    def problem(self) -> Problem:
        return Problem(self.type, self.title, self.detail, self.hint, self.retriable)


class RefusedError(JobError):
    """We cannot prove that the operation is safe or makes sense, so nothing was written."""

    def __init__(self, reasons: Sequence[Problem]) -> None:
        first, *others = reasons
        super().__init__(first.detail)
        self.reasons = tuple(reasons)
        self._problem = first
        if others:
            also = "; ".join(f"{reason.type}: {reason.detail or reason.title}" for reason in others)
            self._problem = Problem(first.type, first.title, f"{first.detail} (also: {also})", first.hint)

    def problem(self) -> Problem:
        return self._problem


class HudiError(JobError):
    type = "hudi-error"
    title = "Hudi could not do it"
    retriable = True


class FileMissingError(HudiError):
    """A file that was listed or looked for is there no more: somebody removed it meanwhile."""


class TableGoneError(JobError):
    type = "table-gone"
    title = "There is no Hudi table at the registered base path any more"
    hint = "Unregister the table, or restore it."


class TableLockedError(JobError):
    type = "table-locked"
    title = "The table's lock could not be had in time"
    hint = (
        "Another writer holds it. If none is alive, the lock was left by one that died: "
        "with the filesystem provider remove .hoodie/lock after making sure of that."
    )
    retriable = True


class WritersActiveError(JobError):
    type = "writers-active"
    title = "No moment came at which the commit would not have hit a write"
    hint = (
        "Nothing was changed. Allow a longer wait (`wait_seconds`), let the writers retry conflicts and declare it "
        "(`writers.retry_conflicts`), or fence them (`on_active_writers`)."
    )


class StaleWriterError(JobError):
    type = "stale-write-committed"
    title = "A write to file groups that had been replaced has committed, so nobody sees its rows"
    hint = "Run a `repair` job, which brings its rows over. Until then nothing may clean the table."


class FilesGoneError(JobError):
    type = "files-gone"
    title = "Files of a stale write were removed, so its rows cannot be brought over"
    hint = "Write these rows again. `GET /v1/tables/{id}/incidents` names the instants."


class DeletesLostError(JobError):
    type = "deletes-lost"
    title = "A stale statement deleted rows of a copy-on-write table, and nothing tells any more which ones"
    hint = (
        "All else has been repaired. Run these statements again in a new session, and then a `repair` job with these "
        "instants as `accepted`."
    )


class PlanTakenError(JobError):
    type = "plan-taken"
    title = "Another runner is executing this plan"
    hint = "A writer's inline compaction, perhaps: switch it off. A dead runner's heartbeat runs out in two minutes."
    retriable = True


class LockLostError(JobError):
    type = "lock-lost"
    title = "The table's lock was taken from us before the commit"
    hint = "Nothing was committed. Look for a client that breaks locks (a failed Hudi client deletes the holder's)."
    retriable = True


class CommitLostError(JobError):
    type = "instant-rolled-back"
    title = "Somebody rolled our pending instant back"
    hint = "Nothing was committed; the next attempt starts over."
    retriable = True


class TimedOutError(JobError):
    type = "timed-out"
    title = "The attempt took longer than it was allowed to"
    hint = "Raise the timeout, or give the worker more cores."
    retriable = True


class CancelledError(JobError):
    type = "cancelled"
    title = "The job was cancelled"
    hint = ""


class LeaseLostError(JobError):
    """The service gave the job to another attempt (or ended it): stop, report nothing."""

    type = "lease-lost"
    title = "This attempt does not hold the job any more"
    hint = ""


class CommitStateUnknownError(JobError):
    """The commit may or may not have landed; the next attempt looks at the timeline."""

    type = "commit-state-unknown"
    title = "It is not known whether the commit landed"
    hint = "The next attempt looks at the table's timeline and settles it."
    retriable = True
