"""Errors that end an attempt, as types. Errors of the JVM, of Spark and of storage are translated into these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jobs.contract import Problem


class JobError(Exception):
    """Base of all errors that end an attempt. `retriable`: the same job may succeed later."""

    type = "job-failed"
    title = "The job failed"
    hint = "The worker's log has the details."
    retriable = False
    why = "The attempt ended by an error that has no type of its own."
    example = "java.lang.IllegalStateException"

    def __init__(self, detail: str = "", *, hint: str | None = None, retriable: bool | None = None) -> None:
        super().__init__(detail or self.title)
        self.detail = detail
        self.hint = self.hint if hint is None else hint
        self.retriable = self.retriable if retriable is None else retriable

    @classmethod
    def because(
        cls, detail: str = "", *, title: str | None = None, hint: str | None = None, retriable: bool | None = None
    ) -> Problem:
        """Returns a problem of this type without raising it. Jobs use this method for reasons that are found before the
        work begins."""
        return Problem(
            cls.type,
            cls.title if title is None else title,
            detail,
            cls.hint if hint is None else hint,
            cls.retriable if retriable is None else retriable,
        )

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
            self._problem = replace(first, detail=f"{first.detail} (also: {also})", retriable=False)

    def problem(self) -> Problem:
        return self._problem


def refuse(problems: Sequence[Problem]) -> None:
    """Raises RefusedError if there are any refusals."""
    if problems:
        raise RefusedError(problems)


class EngineRefusedError(RefusedError):
    """The engine that a compaction was asked to use may not execute it."""


class HudiError(JobError):
    type = "hudi-error"
    title = "A Hudi operation failed"
    retriable = True
    why = (
        "Hudi's own code refused or failed. The next attempt reads the timeline first, and finishes or rolls back what"
        " this one had begun."
    )
    example = "HoodieIOException: Could not read commit details"


class FileMissingError(HudiError):
    """A file that was listed or requested no longer exists; another process removed it in the meantime."""


class MetastoreUnavailableError(JobError):
    type = "metastore-unavailable"
    title = "The metastore cannot be reached"
    hint = (
        "Check that the metastore runs, and that this worker may connect to it. The job is tried again, and does what"
        " is left."
    )
    retriable = True
    why = "The worker could not connect to the Hive metastore or to AWS Glue, or lost the connection."
    example = "metastore:9083: connection refused"


class MetastoreError(JobError):
    type = "metastore-failed"
    title = "The metastore did not do what it was asked for"
    hint = "The table itself is as before. The log of the metastore may say more; run the job again, or as a dry run."
    retriable = True
    why = (
        "The metastore answered with an error. The table in the lake is not affected; the one in the metastore is"
        " behind."
    )
    example = "AlreadyExistsException: Partition already exists"


class WritersActiveError(JobError):
    type = "writers-active"
    title = "The commit found no moment without a conflicting write"
    hint = (
        "Nothing was changed. Allow a longer wait (`wait_seconds`), let the writers retry conflicts and declare that "
        "(`writers.retry_conflicts`), or fence them (`on_active_writers`)."
    )
    why = (
        "A job that replaces file groups commits only at a moment when no write is in flight, so that no writer's batch"
        " fails. There was no such moment within `wait_seconds`."
    )
    example = "20260101120000000 (deltacommit) is in flight since 12 min."


class StaleWriterError(JobError):
    type = "stale-write-committed"
    title = "A write to replaced file groups has committed, so no reader sees its rows"
    hint = "Run a `repair` job, which recovers its rows. Until then the table must not be cleaned."
    why = (
        "A writer planned its batch before an expansion or a clustering and committed after it, to file groups that no"
        " reader looks at any more."
    )
    example = "20260101120000000"


class FilesGoneError(JobError):
    type = "files-gone"
    title = "Files of a stale write were removed, so its rows cannot be recovered"
    hint = "Write these rows again. `GET /v1/tables/{id}/incidents` lists the instants."
    why = "A cleaning, of this service or of a writer, has removed the files that alone held these rows."
    example = "3, such as 2026/01/01/f1_0-1-2_20260101120000000.parquet"


class DeletesLostError(JobError):
    type = "deletes-lost"
    title = "A stale statement deleted rows of a copy-on-write table, and their keys cannot be determined any more"
    hint = (
        "Everything else has been repaired. Run these statements again in a new session, then run a `repair` job with "
        "these instants as `accepted`."
    )
    why = (
        "A delete of a copy-on-write table leaves no trace of the keys that it removed once the versions before it are"
        " gone."
    )
    example = "20260101120000000"


class PlanTakenError(JobError):
    type = "plan-taken"
    title = "Another runner is executing this plan"
    hint = (
        "A writer should execute no plans beside this service: `writer-options` has the options. A runner counts as "
        "dead two minutes after its last heartbeat; one that sends none counts as dead an hour after its last file. If "
        "you know that it is dead, run a job with these `plans` and `take_over`."
    )
    retriable = True
    why = (
        "Another process has begun the plan that this job wanted to execute, and is not proved dead: it sent a"
        " heartbeat within the last two minutes, or sends none and has written a file of the plan within the last hour."
        " A job of this service that was killed a moment ago may be that process."
    )
    example = "Instant 20260101120000000 (compaction, inflight) has a runner: it sent a heartbeat 12 s ago."


class ClocksDisagreeError(JobError):
    """Retriable if the clock that is behind will catch up with the timeline by itself."""

    type = "clocks-disagree"
    title = "The clocks of the table's writers do not agree"
    hint = (
        "Hudi orders rows by instants, and each writer names its instants by its own clock and time zone. Let all "
        "writers of the table run in one time zone, with clocks that a time server sets. Jobs run again when new "
        "commits show that the clocks agree; `clock` in the result of an audit says what the newest commits show."
    )
    why = (
        "Writers commit alternately, and their clocks disagree; or the clock of the newest write is behind instants "
        "that are already on the timeline. Hudi orders rows by instants, so the job's instant would come before those "
        "of some writers and after those of others. Nothing was changed."
    )
    example = (
        "Some writers of this table name their instants by UTC and others 8:00:00 behind UTC, since 2026-01-01 12:00"
        " UTC."
    )


class RowsDifferError(JobError):
    type = "rows-differ"
    title = "The new files do not hold the rows that they should"
    hint = (
        "Nothing was committed. This is an error of Hudi, of Groundskeeper, or of the machine's memory or storage: run"
        " an audit of the table, and please report it."
    )
    why = (
        "Before each commit the job counts the rows and keys that it has written and compares them with those that it"
        " has read. The two differ, so nothing was committed."
    )
    example = "Read 1000000 rows, wrote 999999."


class CommitLostError(JobError):
    type = "instant-rolled-back"
    title = "Another client rolled back the job's pending instant"
    hint = "Nothing was committed; the next attempt starts over."
    retriable = True
    why = (
        "A writer or an operator rolled back the pending instant of the job, as Hudi does with instants that look"
        " abandoned."
    )
    example = "20260101120000000"


class CommitUndoneError(JobError):
    type = "commit-rolled-back"
    title = "A completed commit was rolled back while the job merged its rows"
    hint = "Nothing was committed; the next attempt starts over, without the rows of that commit."
    retriable = True
    why = (
        "Somebody undid a commit whose rows the job may have read, for example by Hudi's procedure"
        " `rollback_to_instant`. The job's new files would bring these rows back."
    )
    example = "20260101120000000"


class IndexesChangedError(JobError):
    type = "indexes-changed"
    title = "An index of the table was built or dropped while the job ran"
    hint = "Nothing was committed; the next attempt starts over."
    retriable = True
    why = (
        "A commit must update every index of the table, but the job was prepared for other indexes. If it left out a "
        "new index, writers would not find the rows that the job has moved."
    )
    example = "record_index"


class BucketRulesChangedError(JobError):
    type = "bucket-rules-changed"
    title = "Somebody else has changed the number of buckets while the job ran"
    hint = "Nothing was committed; the next attempt starts over with the new numbers."
    retriable = True
    why = (
        "The job has computed the buckets of its rows by the numbers that the table had when the job began. Hudi's"
        " procedure `partition_bucket_index_manager` changes these numbers without the table's lock. After a commit of"
        " the job, writers would look rows up in buckets that do not have them."
    )
    example = ".*,4 became 2026-01-02,6; default 4"


class TableUpgradedError(JobError):
    type = "table-upgraded"
    title = "Another version of Hudi has changed the version of the table while the job ran"
    hint = "Nothing was committed; the next attempt works on the new version."
    retriable = True
    why = (
        "Hudi upgrades a table when a newer version writes to it for the first time, unless "
        "`hoodie.write.auto.upgrade=false`. An upgrade moves the timeline and renames its files, so the job no longer "
        "sees what it was prepared for. Hudi expects that nobody else works on the table during an upgrade, so pause "
        "its upkeep first."
    )
    example = "table version 6 became 9"


class NotProvedError(JobError):
    """The merge of a file slice by Arrow is not proved to be equal to Hudi's own, so Hudi's executor has to do it."""

    type = "merge-not-proved"
    title = "This file slice cannot be merged without Hudi"
    hint = "Nothing was changed. Hudi's own executor merges it: `engine` `hudi` or `auto`."
    why = (
        "The log files of a slice hold something whose merge is not proved to be equal to Hudi's own, such as partial"
        " updates or the remains of a failed append. A wrong merge would lose rows, so nothing was written."
    )
    example = "partition '2026-01-01', file group 00000000-b-0: a data block has no schema"

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
    why = (
        "One attempt took longer than the job's `timeout_seconds` or, if the job has none, than the timeout of the"
        " settings."
    )
    example = "3600 s"


class NoExecutorsError(JobError):
    type = "no-executors"
    title = "The worker's Spark application has no executor to run the job on"
    hint = "Free resources of the Spark cluster, or start other workers. The job is tried again."
    retriable = True
    why = "The cluster manager took away the last executor of the worker's Spark application, or never gave it one."
    example = "spark://master:7077"


class CancelledError(JobError):
    type = "cancelled"
    title = "The job was cancelled"
    hint = ""
    example = ""
    why = "Somebody cancelled the job, or the service did since it was no longer wanted. The worker cleaned up first."


class LeaseLostError(JobError):
    """The service gave the job to another attempt, or ended it: stop, report nothing."""

    type = "lease-lost"
    title = "This attempt no longer holds the job"
    hint = ""
    why = (
        "A job belongs to one attempt of one worker. Either the lease expired without a heartbeat, so another attempt "
        "may hold the job, or the job has ended. A late report must change nothing."
    )
    example = "Attempt 1 of job_4be1c0d2f6a89b37 is over."


class CommitStateUnknownError(JobError):
    """The commit may or may not have landed; the next attempt reads the timeline."""

    type = "commit-state-unknown"
    title = "Nobody knows whether the commit landed"
    hint = "The next attempt reads the table's timeline and decides."
    retriable = True
    why = (
        "The connection to the storage broke in the middle of the commit. The next attempt reads the timeline, which"
        " says whether the commit landed."
    )
    example = "20260101120000000"
