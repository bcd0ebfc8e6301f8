"""Refusals because of pending plans, and because a job would delete files that somebody needs."""

from __future__ import annotations

from typing import Final

from jobs.problems.problem_type import ProblemType

PENDING_PLAN: Final = ProblemType(
    "pending-plan",
    "A table service on this partition is pending",
    why="A plan of Hudi fixes the files that it will read. If the job replaced these files first, the plan could no "
    "longer be executed, or would bring back old versions of the rows.",
    example="20260101120000000 (compaction, requested, 3 h old, probably made by a Flink job)",
    hint="Execute it while the Flink job is stopped, or has `compaction.async.enabled=false`: `groundskeeper jobs run "
    "compaction trips --param 'plans=[\"20260101120000000\"]'`.",
    retriable=True,
)
PLAN_UNREADABLE: Final = ProblemType(
    "plan-unreadable",
    "The file of a pending plan cannot be read",
    why="Hudi reads the file of each pending plan whenever it lists file groups. While one of these files is damaged,"
    " neither Hudi nor this job knows which files its plan needs. The plan can only be rolled back.",
    example="instant 20260101120000000 (compaction)",
)
PLAN_FILES_GONE: Final = ProblemType(
    "plan-files-gone",
    "A pending plan reads files that are not there any more",
    why="Hudi executes a plan with the files that are left. The new base file would then lack the rows of the missing"
    " files, so they would be lost without any error (Hudi #10964).",
    example="instant 20260101120000000: dt=2026-01-01/.f1-0_20260101110000000.log.1_0-1-2",
    hint="Find out who deleted the files; the plan was not executed, and can only be rolled back.",
)
PLAN_OVERTAKEN: Final = ProblemType(
    "plan-overtaken",
    "A pending clustering plan rewrites file groups that were replaced or written after it was made",
    why="After the plan was made, something else replaced its file groups, such as an overwrite, or wrote to them. "
    "Hudi would still execute the plan, with the rows of the time when it was made.",
    example="instant 20260101120000000: dt=2026-01-01/f1-0",
    hint="The plan would bring back rows that were replaced, and lose rows that were written since. Roll it back.",
)
PLAN_UNUSABLE: Final = ProblemType(
    "plan-unusable",
    "Hudi's own clustering would break the table's bucket index",
    why="The file ids of a bucket index begin with the number of the bucket. Files with other ids make the next write"
    " to the table fail, and as long as the plan is pending, it blocks the rescale of its buckets.",
    example="The table has a bucket index, and Hudi 1.2 gives clustered files ids without the number of their bucket.",
    hint="Roll the plan back, and switch clustering off in the writers (`hoodie.clustering.inline` and"
    " `hoodie.clustering.schedule.inline`). A clustering job with `sort_by` sorts inside each bucket.",
)
COMMITS_HIDDEN: Final = ProblemType(
    "archived-commits-hidden",
    "Hudi takes archived commits for pending, because an older instant is still on the timeline",
    why="Hudi takes each instant that is later than the first one of the active timeline, and not on it, for pending. "
    "The archiver goes beyond pending cleans, rollbacks and indexings, and with `hoodie.archive.beyond.savepoint` "
    "beyond savepoints. Then rows of archived commits vanish, or deleted rows come back, for every reader. The job "
    "would write such rows into new base files.",
    example="20260101120000000 (savepoint); 2 files, such as dt=2026-01-01/f1-0_0-1-2_20260101130000000.parquet",
    hint="Delete the savepoint (`savepoint` with `action: delete`); the job then archives its commit. Remove "
    "`hoodie.archive.beyond.savepoint` from the writers.",
)
BUCKET_FILES_NOT_MERGEABLE: Final = ProblemType(
    "bucket-files-not-mergeable",
    "The files of a table with a bucket index cannot be merged",
    why="The bucket index allows one file group per bucket and partition. If files of several buckets became one,"
    " writers would not find the rows any more, and would write them a second time.",
    example="Each bucket of a partition is one file group, however small, and clustering without `sort_by` only merges"
    " files.",
    hint="Give `sort_by` to order the rows inside each bucket, or `expansion_factor` to prepare them for an expansion."
    " Compaction merges the logs.",
)
NOT_MERGE_ON_READ: Final = ProblemType(
    "not-merge-on-read",
    "Only merge-on-read tables have logs to compact",
    why="A copy-on-write table has base files only: each write merges its rows itself. There is no log that a"
    " compaction could merge, now or later. Clustering with `sort_by` rewrites base files.",
)
LOG_COMPACTION_UNSOUND: Final = ProblemType(
    "log-compaction-unsound",
    "Log compactions are not executed, because Hudi 1.2 changes rows by them",
    why="A log compaction merges several log files into one. Hudi 1.2 gives the merged rows the commit time of the log "
    "compaction, so incremental readers take old rows for new ones. A plan that was interrupted cannot be executed at "
    "all.",
    example="20260101120000000: the merged rows would get a new commit time, as if they had been written again",
    hint="Run a `compaction` job, which keeps commit times and needs no log compaction; its `limit_bytes` bounds what "
    "one job rewrites. Switch log compaction off in the writers (`hoodie.log.compaction.inline=false`).",
)
OTHER_PLANS_PENDING: Final = ProblemType(
    "other-plans-pending",
    "Hudi executes all pending cleans together, and the table has others",
    why="Hudi has no call to execute one pending clean by itself. The job was given only some of the pending plans. "
    "Hudi would execute the others with them, and so delete files for plans that were not handed over.",
    example="20260101120000000",
    hint="Name the other cleans in `plans` as well.",
)
RETAIN_TOO_SMALL: Final = ProblemType(
    "retain-too-small",
    "Cleaning must leave at least one version before the latest",
    why="A query lists its files when it begins, and reads them until it ends. If a cleaning deletes a version as soon"
    " as there is a newer one, each query that runs beside a commit fails.",
    example="KEEP_LATEST_FILE_VERSIONS with retain 0",
    hint="Retain at least 1: running readers still need that version.",
)
STALE_WRITE_IN_FLIGHT: Final = ProblemType(
    "stale-write-in-flight",
    "A write in flight writes to replaced file groups; cleaning could delete its files",
    why="The write has planned its files in file groups that were replaced since. Hudi's cleaner deletes all files of"
    " a replaced file group, including those that the write has just created, and its commit would name files that are"
    " gone.",
    example="20260101120000000",
    hint="Wait until the write has ended; a repair then recovers its rows.",
    retriable=True,
)
CLEAN_DELETES_FILES_OF_PLAN: Final = ProblemType(
    "clean-deletes-files-of-plan",
    "A clean would delete files that a pending plan needs",
    why="The clean was planned without regard to another pending plan, which reads these files. If the files were "
    "deleted, that plan would write a new file without their rows, and the rows would be lost.",
    example="clean 20260101130000000 deletes, of plan 20260101120000000:"
    " dt=2026-01-01/f1-0_0-1-2_20260101110000000.parquet",
    hint="Nothing was deleted. Let the pending plan run first, or roll the clean back.",
)
CLEAN_DELETES_FILES_OF_SAVEPOINT: Final = ProblemType(
    "clean-deletes-files-of-savepoint",
    "A clean would delete files of a savepoint",
    why="The clean was planned before the savepoint, or without regard to it. Without these files nobody could restore "
    "the table to the savepoint, or read it as it was then.",
    example="clean 20260101130000000 deletes, of savepoint 20260101120000000:"
    " dt=2026-01-01/f1-0_0-1-2_20260101110000000.parquet",
    hint="Nothing was deleted. Roll the clean back, or delete the savepoint.",
)
CLEAN_DELETES_LATEST_FILES: Final = ProblemType(
    "clean-deletes-latest-files",
    "A clean would delete files that readers of the latest state read",
    why="These files belong to the latest version of the table. If the clean were executed, every query of their"
    " partitions would fail, or would lack rows, and no other version has all of them.",
    example="the new clean: dt=2026-01-01/f1-0_0-1-2_20260101110000000.parquet",
    hint="Nothing was deleted. Roll the clean back, and run an audit.",
)
CLEAN_DELETES_FILES_OF_CONSUMER: Final = ProblemType(
    "clean-deletes-files-of-consumer",
    "A pending clean would delete files that a consumer needs to go on",
    why="A registered consumer goes on reading from the last commit that it has seen, and needs the files of that "
    "time. The clean was planned without regard to the consumer, whose next read would fail or lack changes.",
    example="clean 20260101130000000 deletes, needed by nightly-export:"
    " dt=2026-01-01/f1-0_0-1-2_20260101110000000.parquet",
    hint="Nothing was deleted. Wait for the consumer or delete it, or roll the clean back.",
    retriable=True,
)
CONSUMER_BEHIND: Final = ProblemType(
    "consumer-behind",
    "A consumer has not read all commits of this partition",
    why="A registered consumer goes on reading from the last commit that it has seen. The job would remove files of "
    "later commits, so that the consumer would miss rows or fail.",
    example="'dt=2026-01-01' was modified at 20260101120000000, which has not been seen by: nightly-export",
    hint="Wait for the consumer, or delete it.",
    retriable=True,
)
NOT_PARTITIONED: Final = ProblemType(
    "not-partitioned",
    "The table has no partitions that could expire",
    why="Partitions that have become old are dropped completely. This table has no partitions, so old rows cannot be "
    "dropped separately. Delete old rows by a DELETE statement.",
)
FILE_IDS_REPEAT: Final = ProblemType(
    "file-ids-repeat",
    "Writers of this table reuse file ids, so later rows would go to replaced file groups, where no reader sees them",
    why="Readers ignore all files with the ids of replaced file groups. Dropping a partition replaces its file groups, "
    "and so does a clustering. Writers of this table reuse these ids, so no reader would see the rows that they write "
    "later.",
    example="consistent-hashing bucket index, or non-blocking concurrency control",
    hint="Compactions and cleanings are safe. Delete the rows of old partitions by DELETE statements.",
)
SECONDARY_INDEX: Final = ProblemType(
    "secondary-index",
    "Hudi cannot drop partitions of a table with a secondary index",
    why="Hudi 1.2 refuses each deletion of partitions and each `INSERT OVERWRITE` of a table with a secondary index:"
    " it cannot take the entries of the dropped rows out of the index.",
    example="secondary_index_idx_city",
    hint="Drop the index (`DROP INDEX`) and create it again afterwards; or delete the rows by statements.",
)
ROWS_MOVED_AWAY: Final = ProblemType(
    "rows-moved-away",
    "Rows of the partition have moved to other partitions, where the record index would lose them",
    why="Hudi 1.2 takes the keys in the base files of a dropped partition out of the global record index, although logs"
    " say that some of these rows are no longer there. A writer would then not find the keys in their new partitions,"
    " and would insert these rows a second time.",
    example="'2026-01-01': 2 keys, such as 'k17', now in '2026-01-02'",
    hint="Run a `compaction` of the partition first. The age of the strategy `KEEP_BY_TIME` counts from then on.",
)
KEYS_NOT_UNIQUE: Final = ProblemType(
    "keys-not-unique",
    "There are duplicate keys, and the table's record index can have only one row for each key",
    why="A clustering moves rows to other files, and the record index must name the new place of each key; a `rebuild`"
    " writes that index anew. Hudi cannot write two places for one key: the commit would fail after all rows had been"
    " written, and the rebuild after the old index was deleted.",
    example="'k17' in '2026-01-01' and '2026-01-02'",
    hint="Hudi's own services fail as well. Decide which row is right, and write the partition again without the other"
    " (`insert_overwrite`); or drop the record index.",
)
FILES_WITHOUT_COMMIT: Final = ProblemType(
    "files-without-commit",
    "Data files have the instant of a commit that does not name them",
    why="A new metadata table is built from the files in storage, and would include these files. The commit with their "
    "instant does not name them, so a failed attempt has written them, and readers would see their rows twice.",
    example="2, such as dt=2026-01-01/f1-0_0-1-2_20260101120000000.parquet",
    hint="Delete them first; a diagnosis names them as well.",
)
EXPANSION_FACTOR_WITHOUT_BUCKETS: Final = ProblemType(
    "expansion-factor-without-buckets",
    "Only a table with a bucket index can be prepared for an expansion",
    why="`expansion_factor` orders the rows of a file by the bucket that they will have after an expansion, so that "
    "the expansion can copy parts of files. Without a bucket index no row has a bucket, and order is useless.",
    example="`expansion_factor` keeps rows apart that will be in different buckets.",
    hint="Leave `expansion_factor` out; or, if the table does have a bucket index, declare it in its registration.",
)
