"""Refusals of rollbacks, restores and savepoints."""

from __future__ import annotations

from typing import Final

from jobs.problems.problem_type import ProblemType

NO_SUCH_INSTANT: Final = ProblemType(
    "no-such-instant",
    "The active timeline has no such instant",
    why="The job looks for the instant on the active timeline only. The instant may be mistyped, rolled back already,"
    " or archived; an archived commit cannot be taken back, since later ones build on it.",
    example="20260101120000000",
)
COMPACTION_PLAN: Final = ProblemType(
    "compaction-plan",
    "A compaction plan is not rolled back: logs that were written since refer to it",
    why="Since the plan was made, writers have put their rows into logs that are named by its instant. Without the "
    "plan these logs would belong to a file slice that does not exist, and readers would not see their rows.",
    example="20260101120000000 (compaction, requested)",
    hint="Run a `compaction` job, which executes it unless another runner is alive.",
)
LOG_COMPACTION: Final = ProblemType(
    "log-compaction",
    "Hudi 1.2 does not roll back a log compaction: its `rollback` finds no such instant",
    why="The job uses Hudi's own rollback, which does not look for log compactions, so it would do nothing and the"
    " plan would stay. A pending one harms neither readers nor other services.",
    example="20260101120000000 (requested)",
    hint="The plan may stay: readers ignore it, and compactions run beside it. Switch log compaction off in the "
    "writers (`hoodie.log.compaction.inline=false`).",
)
NOT_A_WRITE: Final = ProblemType(
    "not-a-write",
    "Only writes and clustering plans are rolled back",
    why="A rollback removes files that an instant has written. A rollback cannot undo instants of other kinds, such as "
    "a clean that has deleted files already; some of them have to be finished instead.",
    example="20260101120000000 (clean)",
    hint="A `cleaning` job finishes an interrupted clean, and rolls back dead writers.",
)
WRITER_ACTIVE: Final = ProblemType(
    "writer-active",
    "The writer of that instant may be alive",
    why="If an instant is rolled back while its writer is alive, the writer goes on creating files under it. Those"
    " files would be left in the table, and would count once the rollback has been archived.",
    example="20260101120000000 (deltacommit, inflight)",
    hint="Stop the writer. Its heartbeat expires two minutes after the writer has died.",
    retriable=True,
)
WITHOUT_HEARTBEAT: Final = (
    "The writer of the instant has failed, or sends no heartbeats. If all writers retry conflicts, declare it with"
    ' their version: PATCH the table, for example, with `{"writers": {"hudi_version": "1.2.0", "retry_conflicts":'
    ' true}}`. Otherwise stop all writers, PATCH `{"writers": {"stopped": true}}`, and roll back two minutes after the'
    " write began."
)
"""The hint of `WRITER_ACTIVE` for a write that has no heartbeat which could expire, as after a failed write."""

FINISH_ROLLBACK: Final = (
    "A `rollback` of the same instant finishes it. If the instant is still completed and has to stay, delete the files"
    " `<rollback>.rollback.inflight` and `<rollback>.rollback.requested` on the timeline while no writer runs: the"
    " rollback has not changed anything then."
)
"""What to do about a rollback that nobody finishes."""

ROLLBACK_PENDING: Final = ProblemType(
    "rollback-pending",
    "A rollback was begun, and nobody finishes it",
    why="The process that rolled back has failed or died. Hudi's `rollback_to_instant`, for example, fails beside an"
    " instant in flight when its plan is on the timeline. A writer may execute this plan with its next commit. If the"
    " job committed before that, the rows of the commit that is rolled back would be in the new files.",
    example="20260101120000000 of 20260101110000000",
    hint=FINISH_ROLLBACK,
)
NOT_BEGUN: Final = (
    "The writer of the requested replacecommit has not begun to write, or has failed, as Hudi's `run_ttl` does if no"
    " partition has expired. Wait: an hour after the request, the next job takes it back, and so does a `rollback`. To"
    ' roll it back two minutes after the request, stop all writers, and PATCH `{"writers": {"stopped": true}}`.'
)
"""The hint for a replacecommit that is only requested, and has no heartbeat."""

NOT_A_PLAIN_WRITE: Final = ProblemType(
    "not-a-plain-write",
    "Only commits that add rows are rolled back; this one rewrote or replaced file groups",
    why="This commit replaced file groups or moved rows. The replaced files may have been cleaned since, and the "
    "number of buckets may have changed with the commit, so undoing it could lose rows.",
    example="20260101120000000 (insert_overwrite)",
    hint="A `restore` to a savepoint undoes such commits as well.",
)
OVERWRITE_HIDES_ITSELF: Final = ProblemType(
    "overwrite-hides-itself",
    "An overwrite has replaced the file groups to which it wrote; its rows cannot be told from removed ones",
    why="Flink gives file groups fixed ids under non-blocking concurrency control. An `INSERT OVERWRITE` of Flink"
    " then replaces the file groups that it writes (Hudi 1.2.0). Readers see neither the overwrite's rows nor the"
    " rows from before.",
    example="20260101120000000",
    hint="Roll the overwrite back, as long as it is the latest commit; later ones have to be rolled back first. If its"
    " rows are not needed, name it in `accepted`.",
)
NOT_THE_LATEST: Final = ProblemType(
    "not-the-latest",
    "Only the latest completed commit can be rolled back",
    why="Later commits build on the files of this one: their base files contain its rows, and their logs continue its "
    "files. Without this commit the later ones would be incomplete, or would still contain its rows.",
    example="20260101130000000, 20260101140000000",
    hint="Roll back the later ones first, or restore a savepoint.",
)
SAVEPOINT: Final = ProblemType(
    "savepoint",
    "A savepoint holds this partition",
    why="A savepoint promises that the table can be restored to that commit, or be read as it was then. The job would "
    "remove files that the savepoint needs, so that nobody could restore it any more.",
    example="'dt=2026-01-01': 20260101120000000",
    hint="Delete the savepoint first (`savepoint` with `action: delete`).",
)
FLINK_WRITER: Final = ProblemType(
    "flink-writer",
    "A running Flink job would not write these rows again",
    why="A Flink job commits after its checkpoint, and does not read the same input again. Rows of a commit that is"
    " taken back would therefore be missing, unless the job starts from an earlier state.",
    example="Flink is a declared or detected writer",
    hint='Stop it with a savepoint, and PATCH the table with `{"writers": {"stopped": true}}`.',
)
METADATA_TABLE_COMPACTED: Final = ProblemType(
    "metadata-table-compacted",
    "The metadata table has been compacted since, and cannot go back",
    why="The metadata table has merged this commit into its base files, so the commit can no longer be removed from "
    "it. Hudi 1.2 would notice that only after it has deleted the data files, and would fail in the middle of the "
    "rollback.",
    example="compacted at 20260101130000000",
    hint="Restore a savepoint instead.",
)
VERSIONS_GONE: Final = ProblemType(
    "versions-gone",
    "The versions before that commit have been cleaned",
    why="Each base file of the commit also contains the rows of the version before. That version was deleted by a"
    " cleaning, so without the commit all these rows would be lost. Correct the rows by another write.",
    example="3, such as 00000003-5c1f-4c27-9b0e-8f6f1f0d6c11-0 of 20260101110000000 in partition 'dt=2026-01-01'",
)
RESTORE_UNFINISHED: Final = ProblemType(
    "restore-unfinished",
    "Another restore has begun and must be finished first",
    why="An unfinished restore has removed only some of its commits and files. Until it has ended, the table is in a "
    "mixed state, so a restore to another savepoint cannot begin. Run a `restore` to that savepoint first.",
    example="to 20260101120000000",
)
NO_SUCH_SAVEPOINT: Final = ProblemType(
    "no-such-savepoint",
    "The table has no such savepoint",
    why="A table is restored only to a savepoint: the files of any other commit may have been cleaned. The savepoint"
    " may be mistyped or deleted, or its commit is not on the active timeline any more.",
    example="20260101120000000",
    hint="A `savepoint` job lists them.",
)
EXPANDED_SINCE: Final = ProblemType(
    "expanded-since",
    "The number of buckets was changed after the savepoint",
    why="A restore would bring back the files of the old number of buckets. The writers' options may have the new"
    " number, so they would not find existing rows in their buckets and would write them a second time.",
    example="20260101120000000",
    hint="Writers may have the new number by now, and would duplicate rows in the old buckets. Instead read the table "
    "as of that instant (`as.of.instant`), and write the rows to a new table. If Hudi refuses that because a clean has "
    "passed the instant, read the files that the savepoint names.",
)
STALE_WRITE_IN_SAVEPOINT: Final = ProblemType(
    "stale-write-in-savepoint",
    "The restore would undo the repair of commits whose rows no reader could see",
    why="The savepoint has rows in file groups that no reader looks at, and a later repair has recovered them. The "
    "restore would undo the repair, and the rows would be hidden again. Restore a savepoint after the repair.",
    example="20260101120000000",
)
NO_INSTANT: Final = ProblemType(
    "no-instant",
    "Which savepoint to delete is not given",
    why="A table may have several savepoints, and deleting one allows cleanings to delete its files for good. The job"
    " therefore does not choose one by itself.",
    hint="Send its `instant`.",
)
NO_SUCH_COMMIT: Final = ProblemType(
    "no-such-commit",
    "The table has no such completed commit on its active timeline",
    why="A savepoint keeps the files of one completed commit, and the job finds none to keep. The instant may be"
    " mistyped, rolled back, still in flight or archived; GET /v1/tables/{id}/timeline lists those that can be chosen.",
    example="20260101120000000",
)
REPLACED_SINCE: Final = ProblemType(
    "replaced-since",
    "File groups of that commit have been replaced since, so its files may be gone",
    why="Cleanings delete replaced file groups, and may have deleted files of that commit already. A savepoint without "
    "all of its files cannot be restored, and nobody would notice before it is needed.",
    example="20260101130000000",
    hint="Create the savepoint of a later commit; the latest is the default.",
)
