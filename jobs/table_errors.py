"""Errors of a table's files: they are damaged, missing, or outside of the table."""

from __future__ import annotations

from jobs.errors import HudiError, JobError, NotProvedError


class DamagedFileError(HudiError):
    """Retries cannot help, because every reader of the file fails in the same way."""

    type = "file-damaged"
    title = "A file of the table is damaged, or is not what its name says"
    hint = (
        "Put the file back from a copy, from an earlier version of the object or from a snapshot, then POST"
        " /v1/tables/{id}/poll. An audit names each base file that is damaged, a diagnosis each file of the timeline."
        " Where there is no copy, restore a savepoint, or write the rows of that file anew."
    )
    why = (
        "A base file, a log or a file of the timeline has other content than its format demands: something wrote over"
        " it, cut it off, or the storage lost it. Readers of that file fail alike, so the job is not tried again; once"
        " the file is back, a poll lets policies go on."
    )
    example = (
        "compacting: RuntimeException: file:/data/trips/2026-01-01/00000000-5a4a-458c-9325-7cf3e74ee759-0_3-13-18"
        "_20261126071813026.parquet is not a Parquet file (length is too low: 0)"
    )
    retriable = False


class TableGoneError(JobError):
    """The table's own `hoodie.properties` is gone, and there is no backup of it."""

    type = "table-gone"
    title = "The Hudi table at the registered base path no longer exists"
    hint = "Unregister the table, or restore it."
    why = "The base path had a Hudi table when it was registered, and has none now: it was deleted or moved."
    example = "/data/trips has no .hoodie/hoodie.properties"


class OperationsHiddenError(NotProvedError):
    """Hudi's own merge of such logs also differs from what their writer meant."""

    type = "operations-hidden"
    title = "The newest file of the table lacks the changes of rows (`_hoodie_operation`) that older logs have"
    hint = (
        "Wait for the next commit of the writer that keeps them (Flink with `changelog.enabled`). Where there is no"
        " such writer any more, `engine` `hudi` takes the rows as readers see them now, also those that were deleted."
    )
    why = (
        "In such logs a delete is a row with the operation D. Hudi's readers know of operations only while the"
        " newest file has the column. Spark's writers leave the column out, so readers see deleted rows until the next"
        " commit of Flink. A job that rewrites the logs meanwhile would bring these rows back for good."
    )
    example = "partition '2026-01-01', file group 00000000-b-0: a log block has the column _hoodie_operation"


class RowsIncompleteError(NotProvedError):
    """Hudi's own readers return garbage for such rows, or end the JVM."""

    type = "rows-incomplete"
    title = "Logs hold only some columns of rows that no file has as a whole"
    hint = (
        "Undo the commits of such statements (`rollback` jobs, the newest first, or a `restore`). Instead of each, run"
        " a `MERGE INTO` that only updates and an `INSERT INTO` for the new rows, also later on. Until the commits are"
        " undone let no query read these file groups: it may end its process."
    )
    why = (
        "`MERGE INTO` of Spark SQL writes the updates of some columns as partial updates. On a table with a bucket"
        " index, Hudi (1.2.0) writes the rows that such a statement inserts with these columns only, too. The other"
        " values are lost, and Hudi's readers take the part for a whole row: they return garbage, or end with an"
        " OutOfMemoryError, which ends the worker. So the job does not let Hudi read these logs."
    )
    example = "partition '2026-01-01', file group 00000000-b-0: 3 rows, such as k22"


class TableEmptyError(JobError):
    type = "table-empty"
    title = "The table has no schema, because it has no commit with rows"
    hint = "Submit the job again after the first write."
    why = (
        "Hudi stores the schema of a table in its commits. The table was just created, or `TRUNCATE TABLE` has removed"
        " its commits and its files. So there is nothing to do yet."
    )
    example = "reading the table's schema: No schema found for table at /data/trips"


class MetadataTableGoneError(JobError):
    """The table itself exists: its metadata table is only a second record of its files."""

    type = "metadata-table-gone"
    title = "The metadata table that hoodie.properties names is missing, or a part of it is"
    hint = (
        "Stop the writers, PATCH the table with `writers.stopped`, and build it anew: a `metadata_table` job with"
        " `action` `rebuild`."
    )
    why = (
        "The properties of the table name partitions of its metadata table, and the folder `.hoodie/metadata` or a part"
        " of it is not there: usually somebody deleted it. Hudi's readers list the storage instead, or find no rows;"
        " its write clients fail when they commit. So jobs are refused before they begin. Nothing is lost: a job builds"
        " the metadata table anew from the storage, with the same indexes."
    )
    example = "There is no .hoodie/metadata."


class MetadataTableError(HudiError):
    type = "metadata-table-failed"
    title = "Hudi could not read or write the table's metadata table"
    hint = (
        "Run a diagnosis: where parts of the metadata table are missing or out of step, a `metadata_table` job with"
        " `action` `rebuild` builds it anew. The worker's log has the details."
    )
    why = (
        "Hudi looks files, keys and statistics up in its metadata table, and writes them there with each commit. One of"
        " these steps failed; the table itself is as before. The detail has the first cause."
    )
    example = "committing: IllegalStateException: No file slices found for partition: files"


class PartitionValuesError(JobError):
    """Hudi's data source takes the values of partition columns from the paths, so every read of rows by it fails."""

    type = "partition-values-unreadable"
    title = "Hudi cannot make the values of the partition columns from the table's paths"
    hint = (
        "Every query of this table by Spark fails as well. Its key generator writes values to the paths that the"
        " column's type cannot hold: write the table anew with another output format, such as yyyyMMdd for a number. If"
        " the column may not be null and Hive's default partition has a folder, write the table anew: with another"
        " value in place of the empty one, or with a column that may be null."
    )
    why = (
        "Hudi's data source takes the values of partition columns from the paths, by the types of the columns. A custom"
        " key generator may write a date to the path for a column that holds a number of milliseconds, and a date is no"
        " number; in `a=` Hudi finds no value. Hudi writes an empty value as Hive's default partition, which is read as"
        " null, and fails with a NullPointerException if the column's type has no null."
    )
    example = "counting the rows: Failed to cast value `2023-11-14` to `LongType` for partition column `day`"


class KeyWithoutBucketError(JobError):
    """Hudi's `BucketIdentifier` (1.2.0) fails on a record key, or never comes to an end."""

    type = "keys-without-bucket"
    title = "Hudi cannot compute the bucket of a record key"
    hint = "Hash all fields of the record key (`hash_fields`), or the last one as well."
    why = (
        "The bucket of a row follows from the hash fields in its stored record key. If the key's last field is none of"
        " them and its value holds a colon, Hudi 1.2.0 loops for ever: each writer with such an index would do so at"
        " this key. A key must also be valid UTF-8."
    )
    example = (
        "counting the rows: Hudi 1.2.0 loops for ever on the record key 'id:k1,time:10:05': its last field is none of"
        " the hash fields id and its value holds a colon"
    )


class OrderingValuesError(HudiError):
    """Retries cannot help: Hudi's readers fail in the same way (`BufferedRecordMergerFactory.shouldKeepNewerRecord`,
    1.2.0)."""

    type = "ordering-values-not-comparable"
    title = "Hudi cannot compare the ordering values of two versions of a row"
    hint = (
        "Every query of these rows fails as well. Undo the commits that wrote the null (`rollback` jobs, the newest"
        " first, or a `restore`), and write their rows again with a value in the ordering field. Let the writer fill"
        " that field, for example by `coalesce`."
    )
    why = (
        "One version of a row has null in the ordering (precombine) field and another has a value, or the two values"
        " have different types. Hudi takes a null for the Integer 0, and can compare that number only with other"
        " Integers. So Hudi's readers fail at this row, and nobody can tell which version they would keep. Where the"
        " field is an `int` or a `date`, null counts as 0, and jobs merge such rows as readers do."
    )
    example = "compacting: class java.lang.Integer cannot be cast to class java.lang.Long"
    retriable = False


class LogFormatError(HudiError):
    """Retries cannot help: Hudi's readers of rows fail in the same way (1.2.0)."""

    type = "log-format-unreadable"
    title = "Log files hold their rows in HFile blocks, which Hudi's readers on Spark cannot read"
    hint = (
        "Every query of these file groups fails as well. Let the writers use another format"
        " (`hoodie.logfile.data.block.format` is `avro` by default), undo their commits (`rollback` jobs, the newest"
        " first, or a `restore`), and write the rows again."
    )
    why = (
        "A writer has `hoodie.logfile.data.block.format=hfile`, which Hudi uses for its metadata table. Hudi's readers"
        " on Spark make Avro records of such blocks where they need rows of Spark, and fail. So neither queries nor"
        " jobs can merge these logs. Nothing was changed."
    )
    example = "partition '2026-01-01', log .00000000-5a4a-458c-9325-7cf3e74ee759-0_20260101120000000.log.1_0-1-2"
    retriable = False


class PathOutsideTableError(JobError):
    """A job reads, writes and deletes nothing outside of its table, so it follows no path that leads there."""

    type = "path-outside-table"
    title = "A path of the table leads out of it"
    hint = "Nothing was changed. See who wrote it: Hudi's writers make no such links, properties or metadata."
    why = (
        "A link, a property or the metadata of a commit names a file that is not below the table's base path. Hudi"
        " writes no such thing, so the cause is either a mistake of an operator or an attempt to have foreign files"
        " read or deleted."
    )
    example = "/data/trips/2026 leads to /etc"


class PlanOfAnotherPathError(PathOutsideTableError):
    """Hudi's plans hold absolute paths, so the plans of a copied table lead to the original."""

    type = "plan-of-another-path"
    title = "A pending plan names files of another path than the table's"
    hint = (
        "Nothing of it was executed. The table was probably copied or moved while the plan was pending: roll it back"
        " (a `rollback` job with its `instant`), and the next job makes a new one. Otherwise find out who wrote it."
    )
    why = (
        "Hudi's plans of clusterings, cleans and rollbacks hold absolute paths. In a table that was copied or moved"
        " while a plan was pending, the paths lead to the original, and the job would read or delete files there."
    )
    example = "instant 20260101120000000 (replacecommit): /old/trips/dt=2026-01-01/f1-0_0-1-2_20260101110000000.parquet"


class UpgradeDiffersError(HudiError):
    """Retries cannot help: Hudi's upgrader would do the same again."""

    type = "upgrade-differs"
    title = "After the change of its version the table was not the same"
    hint = "The table has its old version again. Please report what differs; an `audit` shows that nothing is lost."
    why = (
        "The job compares rows, file slices, instants and archived instants before and after the change. Something"
        " differs, so the job has restored the old version from its backup of the timeline."
    )
    example = "archived: 2 gone, 0 new, such as ('20260101120000000', 'commit')"
    retriable = False


class MetadataTableBusyError(HudiError):
    """Nobody can tell a dead runner from a slow one before its heartbeat has expired."""

    type = "metadata-table-busy"
    title = "The runner of a compaction of the metadata table may be alive"
    hint = "Nothing was changed. Wait for two minutes: the job is tried again, and ends what a dead runner has left."
    why = (
        "A compaction of the metadata table is pending, and its runner has sent a heartbeat a short while ago. Hudi"
        " refuses to execute it a second time until the heartbeat has expired. Writers' commits fail meanwhile, too."
    )
    example = "Cannot execute instant 20260101120000000 due to heartbeat by concurrent writer/job"
    retriable = True


class IndexDiffersError(HudiError):
    """Retries cannot help: Hudi would do the same again."""

    type = "index-differs"
    title = "The index that Hudi has built does not agree with the rows"
    hint = (
        "The index was dropped again. If columns are named, build `column_stats` with other `columns`. Run an audit to "
        "see whether keys exist twice."
    )
    why = (
        "After a build the job compares the index with the rows. Hudi leaves out some values, such as texts of more"
        " than 4 KiB in column statistics, and queries would then miss these rows."
    )
    example = "column_stats: note in 3 files, such as 1a2b_0-1-1_20260101120000000.parquet"
    retriable = False


class IndexTooSlowError(JobError):
    """The attempt is not tried again, because it would take as long."""

    type = "index-too-slow"
    title = "The build of the index would keep writers waiting for too long"
    hint = (
        "Nothing of the index is left. Raise `lock_seconds`, or give the worker more cores, at a time without writes."
    )
    why = (
        "A commit that completes during the build would be missing in the index, so the job holds the table's lock"
        " until the index is complete and compared with the rows. Writers wait meanwhile, for `lock_seconds` at most."
    )
    example = "after 120 s"
