"""Errors that end an attempt, as types. Errors of the JVM, of Spark and of storage are translated into these."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.contract import LOCK_UNAVAILABLE, TABLE_LOCKED, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence


class JobError(Exception):
    """Base of all errors that end an attempt. `retriable`: the same job may succeed later."""

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
    """Nothing was written, because the operation cannot be proved to be safe or useful."""

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


class EngineRefusedError(RefusedError):
    """The engine that a compaction was asked to use may not execute it."""


class HudiError(JobError):
    type = "hudi-error"
    title = "A Hudi operation failed"
    retriable = True


class FileMissingError(HudiError):
    """A file that was listed or requested no longer exists; another process removed it in the meantime."""


class DamagedFileError(HudiError):
    """Retries cannot help: whatever reads the file fails alike."""

    type = "file-damaged"
    title = "A file of the table is damaged, or is not what its name says"
    hint = (
        "Put the file back from a copy, from an earlier version of the object or from a snapshot, then POST"
        " /v1/tables/{id}/poll. An audit names each base file that is damaged, a diagnosis each file of the timeline."
        " Where there is no copy, restore a savepoint, or write the rows of that file anew."
    )
    retriable = False


class TableGoneError(JobError):
    """Its own `hoodie.properties` is gone, and there is no backup of it."""

    type = "table-gone"
    title = "The Hudi table at the registered base path no longer exists"
    hint = "Unregister the table, or restore it."


class MetadataTableGoneError(JobError):
    """The table itself is there: its metadata table is only a second record of what it has."""

    type = "metadata-table-gone"
    title = "The metadata table that hoodie.properties names is missing, or a part of it is"
    hint = (
        "Stop the writers, PATCH the table with `writers.stopped`, and build it anew: a `metadata_table` job with"
        " `action` `rebuild`."
    )


class MetadataTableError(HudiError):
    type = "metadata-table-failed"
    title = "Hudi could not read or write the table's metadata table"
    hint = (
        "Run a diagnosis: where parts of the metadata table are missing or out of step, a `metadata_table` job with"
        " `action` `rebuild` builds it anew. The worker's log has the details."
    )


class PartitionValuesError(JobError):
    """Hudi's data source takes the values of partition columns from the paths; whatever reads rows by it fails."""

    type = "partition-values-unreadable"
    title = "Hudi cannot make the values of the partition columns from the table's paths"
    hint = (
        "Every query by Spark fails at the table alike. Its key generator writes to the paths what the column's type"
        " cannot hold: write the table anew with another output format, such as yyyyMMdd for a number."
    )


class PathOutsideTableError(JobError):
    """A job follows no path that leads out of its table: not to read, and still less to write or to delete."""

    type = "path-outside-table"
    title = "A path of the table leads out of it"
    hint = "Nothing was changed. See who wrote it: Hudi's writers make no such links, properties or metadata."


class PlanOfAnotherPathError(PathOutsideTableError):
    """Hudi's plans hold absolute paths, so those of a table that was copied lead to the original."""

    type = "plan-of-another-path"
    title = "A pending plan names files of another path than the table's"
    hint = (
        "Nothing of it was executed. The table was probably copied or moved while the plan was pending: roll it back"
        " (a `rollback` job with its `instant`), and the next job makes a new one. Else see who wrote it."
    )


class TableLockedError(JobError):
    type = TABLE_LOCKED
    title = "The table's lock could not be acquired in time"
    hint = (
        "Another writer holds it. GET /v1/tables/{id}/lock shows who, as far as its provider tells; a lock file that a "
        "dead writer left is broken by DELETE (`groundskeeper lock show`, `lock break`)."
    )
    retriable = True


class LockUnavailableError(JobError):
    """Nobody is known to hold the lock: its server cannot be asked."""

    type = LOCK_UNAVAILABLE
    title = "The server or storage of the table's lock cannot be reached"
    hint = (
        "Nothing was changed. See that it runs, that this worker may connect to it, and that the `lock` of the table's "
        "registration has its address; or PATCH the table with the `lock` that its writers use."
    )
    retriable = True


class LockUnusableError(JobError):
    """No attempt on a worker like this one will succeed."""

    type = "lock-unusable"
    title = "The table's lock provider cannot be loaded"
    hint = "PATCH the table with the `lock` that its writers use."


class MetastoreUnavailableError(JobError):
    type = "metastore-unavailable"
    title = "The Hive metastore cannot be reached"
    hint = "See that it runs, and that this worker may connect to it. The job is tried again, and does what is left."
    retriable = True


class MetastoreError(JobError):
    type = "metastore-failed"
    title = "The Hive metastore did not do what it was asked for"
    hint = "The table itself is as before. The log of the metastore may say more; run the job again, or dry."
    retriable = True


class WritersActiveError(JobError):
    type = "writers-active"
    title = "The commit found no moment without a conflicting write"
    hint = (
        "Nothing was changed. Allow a longer wait (`wait_seconds`), let the writers retry conflicts and declare that "
        "(`writers.retry_conflicts`), or fence them (`on_active_writers`)."
    )


class StaleWriterError(JobError):
    type = "stale-write-committed"
    title = "A write to replaced file groups has committed, so no reader sees its rows"
    hint = "Run a `repair` job, which recovers its rows. Until then the table must not be cleaned."


class FilesGoneError(JobError):
    type = "files-gone"
    title = "Files of a stale write were removed, so its rows cannot be recovered"
    hint = "Write these rows again. `GET /v1/tables/{id}/incidents` lists the instants."


class DeletesLostError(JobError):
    type = "deletes-lost"
    title = "A stale statement deleted rows of a copy-on-write table, and their keys cannot be determined any more"
    hint = (
        "Everything else has been repaired. Run these statements again in a new session, then run a `repair` job with "
        "these instants as `accepted`."
    )


class PlanTakenError(JobError):
    type = "plan-taken"
    title = "Another runner is executing this plan"
    hint = (
        "A writer should execute no plans beside this service: `writer-options` has the options. A runner that has died"
        " is found out, by its heartbeat after two minutes, without one an hour after its last file. If you know that"
        " it is dead, run a job with these `plans` and `take_over`."
    )
    retriable = True


class LockLostError(JobError):
    type = "lock-lost"
    title = "The table's lock was lost before the commit"
    hint = (
        "Nothing was committed. Either the worker stood still, or the lock's server was away, for longer than the lock "
        "lasts; or a client breaks locks (with the filesystem provider a failed Hudi client deletes the holder's)."
    )
    retriable = True


class ClocksDisagreeError(JobError):
    """Retriable if the clock that is behind passes the others by itself."""

    type = "clocks-disagree"
    title = "The clocks of the table's writers do not agree"
    hint = (
        "Hudi puts rows in order by instants, which each writer names by its own clock and zone. Let all writers of "
        "the table run in one time zone, with clocks that a time server sets; jobs run when new commits show it. "
        "The `clock` in the results of an audit is what the newest ones show."
    )

    def __init__(self, detail: str, *, retriable: bool = False) -> None:
        super().__init__(detail)
        self.retriable = retriable


class RowsDifferError(JobError):
    type = "rows-differ"
    title = "The new files do not hold the rows that they should"
    hint = (
        "Nothing was committed. This is an error of Hudi, of Groundskeeper, or of the machine's memory or storage: run"
        " an audit of the table, and please report it."
    )


class CommitLostError(JobError):
    type = "instant-rolled-back"
    title = "Another client rolled back the job's pending instant"
    hint = "Nothing was committed; the next attempt starts over."
    retriable = True


class IndexesChangedError(JobError):
    type = "indexes-changed"
    title = "An index of the table was built or dropped while the job ran"
    hint = "Nothing was committed; the next attempt starts over."
    retriable = True


class TableUpgradedError(JobError):
    type = "table-upgraded"
    title = "Another version of Hudi has changed the version of the table while the job ran"
    hint = "Nothing was committed; the next attempt works on the new version."
    retriable = True


class NotProvedError(JobError):
    """The merge of a file slice by Arrow is not proved to be equal to Hudi's own, so Hudi's executor has to do it."""

    type = "merge-not-proved"
    title = "This file slice is not one that is merged without Hudi"
    hint = "Nothing was changed. Hudi's own executor merges it: `engine` `hudi` or `auto`."

    @property
    def reason(self) -> str:
        return self.detail


class TimedOutError(JobError):
    type = "timed-out"
    title = "The attempt exceeded its timeout"
    hint = (
        "Raise the timeout (`timeout_seconds`), bound a compaction (`limit_bytes`, `limit_file_groups`), or give the"
        " worker more cores."
        " The next attempt finishes what this one left, or rolls it back."
    )
    retriable = True


class NoExecutorsError(JobError):
    type = "no-executors"
    title = "The worker's Spark application has no executor to run the job on"
    hint = "Free resources of the Spark cluster, or start other workers. The job is tried again."
    retriable = True


class CancelledError(JobError):
    type = "cancelled"
    title = "The job was cancelled"
    hint = ""


class LeaseLostError(JobError):
    """The service gave the job to another attempt, or ended it: stop, report nothing."""

    type = "lease-lost"
    title = "This attempt no longer holds the job"
    hint = ""


class CommitStateUnknownError(JobError):
    """The commit may or may not have landed; the next attempt reads the timeline."""

    type = "commit-state-unknown"
    title = "It is not known whether the commit landed"
    hint = "The next attempt reads the table's timeline and decides."
    retriable = True
