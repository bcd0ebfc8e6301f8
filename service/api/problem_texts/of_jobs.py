"""Problems with which attempts of jobs end. Workers report them as the `error` of a job, not as answers to calls.

Titles and hints are those of `jobs.errors` and of the service's queue; a test compares them.
"""

from __future__ import annotations

from typing import Final

from service.api.problem_texts.explanation import JobExplanation

_LOG = "The worker's log has the details."

OF_JOBS: Final = {
    "job-failed": JobExplanation(
        "The attempt ended by an error that has no type of its own.",
        "java.lang.IllegalStateException",
        title="The job failed",
        hint=_LOG,
    ),
    "hudi-error": JobExplanation(
        "Hudi's own code refused or failed. What it had begun is finished or rolled back by the next attempt, which"
        " reads the timeline first.",
        "HoodieIOException: Could not read commit details",
        title="A Hudi operation failed",
        hint=_LOG,
    ),
    "file-damaged": JobExplanation(
        "A base file, a log or a file of the timeline has other content than its format demands: something wrote over"
        " it, cut it off, or the storage lost it. Readers of that file fail alike, so the job is not tried again; once"
        " the file is back, a poll lets policies go on.",
        "compacting: RuntimeException: file:/data/trips/2026-01-01/00000000-5a4a-458c-9325-7cf3e74ee759-0_3-13-18"
        "_20261126071813026.parquet is not a Parquet file (length is too low: 0)",
        title="A file of the table is damaged, or is not what its name says",
        hint="Put the file back from a copy, from an earlier version of the object or from a snapshot, then POST"
        " /v1/tables/{id}/poll. An audit names each base file that is damaged, a diagnosis each file of the timeline."
        " Where there is no copy, restore a savepoint, or write the rows of that file anew.",
    ),
    "storage-read-only": JobExplanation(
        "The file system is mounted for reading only, or the path is one of a snapshot. Jobs that write are not tried"
        " again; those that only read run.",
        "writing to /mnt/lake/orders/.hoodie: FileNotFoundException: lock (Read-only file system)",
        title="The table is on a storage that can only be read",
        hint="A snapshot or a file system that is mounted for reading only takes no writes. Register the table at the"
        " path that its writers use, mount the file system for writing, or switch the services off in the table's"
        " policy.",
    ),
    "storage-full": JobExplanation(
        "The disk, the bucket's quota or a quota of HDFS is used up. What the job had begun is rolled back by the next"
        " one; it is not tried again by itself, since it would fill what is freed.",
        "compacting: IOException: No space left on device",
        title="No space is left, or a quota is used up",
        hint="Free space on the table's storage, or raise its quota: a `cleaning` job frees what no reader needs any"
        " more. Where the path in the detail is of a worker's own disk (spark.local.dir), free space there.",
    ),
    "table-gone": JobExplanation(
        "The base path had a Hudi table when it was registered, and has none now: it was deleted or moved.",
        "/data/trips has no .hoodie/hoodie.properties",
        title="The Hudi table at the registered base path no longer exists",
        hint="Unregister the table, or restore it.",
    ),
    "metadata-table-gone": JobExplanation(
        "The properties of the table name partitions of its metadata table, and the folder `.hoodie/metadata` or a part"
        " of it is not there: usually somebody deleted it. Hudi's readers list the storage instead, or find no rows;"
        " its write clients fail when they commit. So jobs are refused before they begin. Nothing is lost: a job builds"
        " the metadata table anew from the storage, with the same indexes.",
        "There is no .hoodie/metadata.",
        title="The metadata table that hoodie.properties names is missing, or a part of it is",
        hint="Stop the writers, PATCH the table with `writers.stopped`, and build it anew: a `metadata_table` job with"
        " `action` `rebuild`.",
    ),
    "metadata-table-failed": JobExplanation(
        "Hudi looks files, keys and statistics up in its metadata table, and writes them there with each commit. That"
        " failed; the table itself is as before. What the first cause was is in the detail.",
        "committing: IllegalStateException: No file slices found for partition: files",
        title="Hudi could not read or write the table's metadata table",
        hint="Run a diagnosis: where parts of the metadata table are missing or out of step, a `metadata_table` job"
        " with `action` `rebuild` builds it anew. The worker's log has the details.",
    ),
    "partition-values-unreadable": JobExplanation(
        "Hudi's data source takes the values of partition columns from the paths, by the types of the columns. With a"
        " custom key generator the path of a column that holds a number of milliseconds may have a date, which is no"
        " number.",
        "counting the rows: Failed to cast value `2023-11-14` to `LongType` for partition column `day`",
        title="Hudi cannot make the values of the partition columns from the table's paths",
        hint="Every query by Spark fails at the table alike. Its key generator writes to the paths what the column's"
        " type cannot hold: write the table anew with another output format, such as yyyyMMdd for a number.",
    ),
    "plan-of-another-path": JobExplanation(
        "Hudi's plans of clusterings, cleans and rollbacks hold absolute paths. In a table that was copied or moved"
        " while one was pending, they lead to the original, from which the job would read, or delete.",
        "instant 20260101120000000 (replacecommit): /old/trips/dt=2026-01-01/f1-0_0-1-2_20260101110000000.parquet",
        title="A pending plan names files of another path than the table's",
        hint="Nothing of it was executed. The table was probably copied or moved while the plan was pending: roll it"
        " back (a `rollback` job with its `instant`), and the next job makes a new one. Else see who wrote it.",
    ),
    "table-locked": JobExplanation(
        "The job needs the table's lock for moments, and others held it for longer than the job may wait. It goes back"
        " to the queue and gives its worker to other tables.",
        "Held for 3 h",
        title="The table's lock could not be acquired in time",
        hint="Another writer holds it. If no writer is alive, a dead writer left the lock.",
    ),
    "lock-unusable": JobExplanation(
        "The class of the lock provider, or a library that it needs, is not on the worker's class path, or its options"
        " are incomplete.",
        "ClassNotFoundException: org.example.OurLock",
        title="The table's lock provider cannot be loaded",
        hint="PATCH the table with the `lock` that its writers use.",
    ),
    "metastore-unavailable": JobExplanation(
        "The worker could not connect to the Hive metastore, or lost the connection.",
        "metastore:9083: connection refused",
        title="The Hive metastore cannot be reached",
        hint="See that it runs, and that this worker may connect to it.",
    ),
    "metastore-failed": JobExplanation(
        "The metastore answered with an error. The table in the lake is not affected; the one in the metastore is"
        " behind.",
        "AlreadyExistsException: Partition already exists",
        title="The Hive metastore did not do what it was asked for",
        hint="The log of the metastore may say more; run the job again, or dry.",
    ),
    "writers-active": JobExplanation(
        "What replaces file groups commits only at a moment when no write is in flight, so that no writer's batch"
        " fails."
        " There was none within `wait_seconds`.",
        "20260101120000000 (deltacommit) is in flight since 12 min.",
        title="The commit found no moment without a conflicting write",
        hint="Allow a longer wait, let the writers retry conflicts, or fence them.",
    ),
    "stale-write-committed": JobExplanation(
        "A writer planned its batch before an expansion or a clustering and committed after it, to file groups that no"
        " reader looks at any more.",
        "20260101120000000",
        title="A write to replaced file groups has committed, so no reader sees its rows",
        hint="Run a `repair` job, which recovers its rows.",
    ),
    "files-gone": JobExplanation(
        "A cleaning, of this service or of a writer, has removed the files that alone held these rows.",
        "3, such as 2026/01/01/f1_0-1-2_20260101120000000.parquet",
        title="Files of a stale write were removed, so its rows cannot be recovered",
        hint="Write these rows again.",
    ),
    "deletes-lost": JobExplanation(
        "A delete of a copy-on-write table leaves no trace of the keys that it removed once the versions before it are"
        " gone.",
        "20260101120000000",
        title="A stale statement deleted rows of a copy-on-write table, and their keys cannot be determined any more",
        hint="Run these statements again, then a `repair` job with these instants as `accepted`.",
    ),
    "plan-taken": JobExplanation(
        "Another process has begun the plan that this job wanted to execute, and is not proved dead: it sent a"
        " heartbeat within the last two minutes, or sends none and has written a file of the plan within the last hour."
        " A job of this service that was killed a moment ago may be that process.",
        "Instant 20260101120000000 (compaction, inflight) has a runner: it sent a heartbeat 12 s ago.",
        title="Another runner is executing this plan",
        hint="A writer should execute no plans beside this service: `writer-options` has the options.",
    ),
    "lock-lost": JobExplanation(
        "The lock was no longer the job's at the moment of the commit, so the job did not commit.",
        "The lease of the lock expired 4 s ago.",
        title="The table's lock was lost before the commit",
        hint="The worker or the lock's server stood still for longer than the lock lasts; or a client breaks locks.",
    ),
    "clocks-disagree": JobExplanation(
        "Writers name their instants by clocks that are apart, in turn; or the clock of the newest write is behind what"
        " is on the timeline already. Hudi puts rows in order by these instants, so an instant of the job would come"
        " before some writers' and after others'. Nothing was changed.",
        "Some writers of this table name their instants by UTC and others 8:00:00 behind UTC, since 2026-01-01 12:00"
        " UTC.",
        title="The clocks of the table's writers do not agree",
        hint="Let all writers of the table run in one time zone, with clocks that a time server sets.",
    ),
    "rows-differ": JobExplanation(
        "Before each commit the job counts the rows and keys that it has written and compares them with those that it"
        " has read. They differ, and so nothing was committed.",
        "Read 1000000 rows, wrote 999999.",
        title="The new files do not hold the rows that they should",
        hint="Run an audit of the table, and please report it.",
    ),
    "instant-rolled-back": JobExplanation(
        "A writer or an operator rolled back the pending instant of the job, as Hudi does with instants that look"
        " abandoned.",
        "20260101120000000",
        title="Another client rolled back the job's pending instant",
        hint="Nothing was committed; the next attempt starts over.",
    ),
    "table-upgraded": JobExplanation(
        "Hudi upgrades a table when a newer version writes to it for the first time, unless"
        " `hoodie.write.auto.upgrade=false`. It moves the timeline and renames its files, so the job no longer sees"
        " what it was prepared for. Hudi expects that nobody else works on the table then: pause its upkeep before.",
        "table version 6 became 9",
        title="Another version of Hudi has changed the version of the table while the job ran",
        hint="Nothing was committed; the next attempt works on the new version.",
    ),
    "indexes-changed": JobExplanation(
        "A commit must bring all indexes of the table up to date, and the job was prepared for others. With the new"
        " ones left out, writers would not find the rows that it has moved.",
        "record_index",
        title="An index of the table was built or dropped while the job ran",
        hint="Nothing was committed; the next attempt starts over.",
    ),
    "timed-out": JobExplanation(
        "One attempt took longer than `timeout_seconds` of the job, or else of the settings.",
        "3600 s",
        title="The attempt exceeded its timeout",
        hint="Raise the timeout, bound a compaction, or give the worker more cores.",
    ),
    "no-executors": JobExplanation(
        "The cluster manager took away the last executor of the worker's Spark application, or never gave it one.",
        "spark://master:7077",
        title="The worker's Spark application has no executor to run the job on",
        hint="Free resources of the Spark cluster, or start other workers.",
    ),
    "cancelled": JobExplanation(
        "Somebody cancelled the job, or the service did since it was no longer wanted. The worker cleaned up first.",
        "",
        title="The job was cancelled",
    ),
    "commit-state-unknown": JobExplanation(
        "The connection to the storage broke in the middle of the commit. The next attempt reads the timeline, which"
        " tells.",
        "20260101120000000",
        title="It is not known whether the commit landed",
        hint="The next attempt reads the table's timeline and decides.",
    ),
    "worker-lost": JobExplanation(
        "No heartbeat came before the lease expired: the worker died, lost its network, or stood still.",
        "Worker host-4711-1f0c2a held attempt 1 of 3.",
        title="The worker sent no heartbeat before its lease expired",
        hint="See the worker's log, and the memory of its machine.",
    ),
    "outcome-unknown": JobExplanation(
        "The worker could not find out whether its commit has landed, for example since the storage did not answer.",
        "",
        title="It is not known whether the attempt committed",
        hint="The next attempt checks the table's timeline first.",
    ),
    "instant-not-completed": JobExplanation(
        "The service compares each success with the table's timeline, and the reported instant is not complete there.",
        "Not completed: 20260101120000000.",
        title="The worker reported success, but the table's timeline does not show it",
        hint="See the worker's log; the next poll of the timeline settles the job.",
    ),
    "instant-not-archived": JobExplanation(
        "The service compares each archival with the table's timeline, where the instants still are.",
        "Still on the timeline: 20260101120000000.",
        title="The worker reported an archival, but the table's timeline does not show it",
        hint="See the worker's log.",
    ),
    "writers-not-stopped": JobExplanation(
        "The job needed a moment without the table's Flink job, and nobody stopped it within `hand_over_seconds`.",
        "The job waited until 2026-01-01 12:00:00 UTC.",
        title="The writers were not stopped in time",
        hint="Stop them when the job waits, or let the service do it (`writers.flink`).",
    ),
    "withdrawn": JobExplanation(
        "A job that a policy had queued was no longer wanted before a worker took it: automatic jobs were paused, its"
        " window closed, or an incident was opened.",
        "Upkeep was paused.",
        title="The service withdrew the job before it began",
        hint="It is decided again afterwards.",
    ),
    "merge-not-proved": JobExplanation(
        "The log files of a slice hold something whose merge is not proved to be equal to Hudi's own, such as partial"
        " updates or the remains of a failed append. A wrong merge would be lost rows, so nothing was written.",
        "partition '2026-01-01', file group 00000000-b-0: a data block has no schema",
        title="This file slice is not one that is merged without Hudi",
        hint="Nothing was changed. Hudi's own executor merges it: `engine` `hudi` or `auto`.",
    ),
}
