"""Refusals because of the properties of a table, its files, or the job's parameters."""

from __future__ import annotations

from typing import Final

from jobs.problems.problem_type import ProblemType

NO_BUCKET_INDEX: Final = ProblemType(
    "no-bucket-index",
    "The table is registered without a bucket index",
    why="A table does not store its bucket index, and the job computes the bucket of each row from its keys. A guessed"
    " number of buckets or guessed hash fields would put rows where writers do not look for them, and the rows would"
    " be written twice.",
    hint='Register it with `"index": {"type": "bucket", "num_buckets": ..., "hash_fields": [...]}`.',
)
CONSISTENT_HASHING: Final = ProblemType(
    "consistent-hashing",
    "The table uses the consistent-hashing bucket index, whose buckets this job does not change",
    why="This index keeps a table of hash ranges for each partition, in files of its own, and changes them by "
    "splitting and merging. If the job split or sorted the files, they would no longer agree with these "
    "ranges, and writers would put updates into other files.",
    hint="Split and merge its buckets by a `bucket_resize`.",
)
LOCK_NOT_ATOMIC: Final = ProblemType(
    "lock-not-atomic",
    "Hudi's filesystem lock is not safe on an object storage, where two writers could both acquire it",
    why="The lock is a file that is created only if there is none. If two clients create the file at once, both may"
    " succeed on an object storage. Then a job could replace file groups while a writer commits to them, and rows"
    " would be lost.",
    example="s3a://lake/trips/.hoodie/lock",
    hint="PATCH the table with the `lock` that its writers use, such as ZooKeeper.",
)
LOCK_NOT_PROVABLE: Final = ProblemType(
    "lock-not-provable",
    "The job cannot prove before a commit that it still holds the table's lock",
    why="Before it commits, the job checks that it still holds the lock, since the lock may have expired while the "
    "worker stood still. This provider cannot say that. A commit without the lock could replace file groups to which a "
    "writer is just committing.",
    example="org.example.OurLock",
    hint="Use a lock provider of Hudi for the table and its writers, and PATCH its `lock`.",
)
BASE_FILES_NOT_PARQUET: Final = ProblemType(
    "base-files-not-parquet",
    "Only Parquet base files can be rewritten",
    why="The job copies rows between files by Arrow, in the exact layout in which Hudi wrote them. The copy is proved "
    "for Parquet, but not for ORC or HFile. Compaction by Hudi, cleaning and archival work on such a table.",
)
NO_META_FIELDS: Final = ProblemType(
    "no-meta-fields",
    "The table has no meta fields, so rows cannot be identified by their keys",
    why="The fields `_hoodie_record_key` and `_hoodie_partition_path` are not in the files. Without these fields the "
    "job cannot compute the bucket of a row, nor prove that no row is lost or doubled. An existing table cannot get "
    "these fields: write its rows to a new table. Hudi's own clustering of such a table fails, or makes it unreadable "
    "for Spark SQL.",
    example="hoodie.populate.meta.fields=false",
    hint="Write its rows to a table with meta fields. Compaction by Hudi, cleaning and archival still work.",
)
INDEX_DEFINITIONS_GONE: Final = ProblemType(
    "index-definitions-gone",
    "The definitions of the table's indexes are missing",
    why="The definitions say which columns secondary and expression indexes have, and whether the record index is one"
    " for all partitions. Without them a client updates such an index by guesses, so readers and writers would look"
    " for rows in files that do not have them.",
    example=".hoodie/.index_defs/index.json, for record_index, secondary_index_rider",
    hint="Put the file back, from a backup or an earlier version of the object. The next commit of a writer whose"
    " options name the record index and the statistics writes their definitions anew; secondary and expression indexes"
    " must be created again.",
)
PARTITION_METADATA_GONE: Final = ProblemType(
    "partition-metadata-gone",
    "Partitions have data files and no .hoodie_partition_metadata",
    why="Hudi recognizes a partition in the storage by this file, and a listing leaves out a folder without it. A "
    "metadata table would be built without the rows of the folder. On a table without a metadata table readers do not "
    "see these rows, and a job would change all partitions but this one.",
    example="'2026-01-01'",
    hint="Copy this file from another partition of the same depth into the folder. The next write to the partition "
    "also creates it.",
)
PARTITION_COLUMNS_DROPPED: Final = ProblemType(
    "partition-columns-dropped",
    "The table's files lack the partition columns",
    why="The option `hoodie.datasource.write.drop.partition.columns` leaves these columns out of the files, so a row"
    " read from a file is not complete, and the new files could differ from those that Hudi writes. Write the rows to"
    " a table without the option.",
)
CHANGE_DATA_CAPTURE: Final = ProblemType(
    "change-data-capture",
    "The table records changes (CDC), and a replacement would have to appear in them",
    why="Readers of changes expect a record of each change, which only Hudi's own writers add. A commit that replaces "
    "file groups would have to tell those readers that no row has changed, and the job cannot write such a record.",
    hint="If no reader uses the changes, set hoodie.table.cdc.enabled to false while the job runs.",
)
BOOTSTRAPPED_TABLE: Final = ProblemType(
    "bootstrapped-table",
    "Some of the table's rows are in the files it was bootstrapped from",
    why="After a metadata bootstrap a base file holds only meta fields, and the other columns are in a file outside"
    " the table. A job that rewrites the base file alone would lose these columns. Rewrite these partitions with Hudi"
    " first (`insert_overwrite`).",
)
COLUMNS_CHANGED: Final = ProblemType(
    "columns-changed",
    "Columns were renamed or changed by schema on read, and some files still have the old ones",
    why="Hudi reads a file by the schema of the instant that wrote it. The job's new files would have a later instant"
    " and the old columns. Readers would find no values in renamed columns, and values of dropped columns in"
    " columns that were added again. Readers would fail at columns whose type has changed.",
    example="city -> town",
    hint="Rewrite these files by Hudi with schema on read, for example by a compaction, or write the rows to a new"
    " table.",
)
SCHEMA_ON_READ_FORGOTTEN: Final = ProblemType(
    "schema-on-read-forgotten",
    "The latest commit was written without schema on read, after columns were renamed or replaced",
    why="Hudi's readers follow the latest commit. Since its writer had no schema on read, they look for the columns"
    " of older files by their present names: they find no values in renamed columns, and find values of dropped"
    " columns in columns that were added again. Files that are rewritten meanwhile stay like this.",
    example="city -> town",
    hint="Roll the commits without schema on read back (`rollback`), and write their rows again with"
    " `hoodie.schema.on.read.enable=true`, which all writers need; or restore a savepoint. If columns were only"
    " renamed, any `ALTER TABLE` with that option, such as one of a comment, brings their values back as well. If"
    " a column was dropped, added or moved, such a statement would mix up the values of all columns.",
)
INDEX_MAPS_KEYS_TO_FILES: Final = ProblemType(
    "index-maps-keys-to-files",
    "The metadata table has indexes that map keys to files",
    why="Such an index names the file of each key. The job commits new files without updating it, so readers and"
    " writers would look for rows in files that were replaced, and not find them.",
    example="record_index, secondary_index_city",
    hint="Drop these indexes first (`DROP INDEX`), and create them again afterwards.",
)
NON_BLOCKING_WRITERS: Final = ProblemType(
    "non-blocking-writers",
    "The table is written with non-blocking concurrency control (fixed file ids)",
    why="All these writers write to the same file id for a bucket, and Hudi lets them commit beside each other without "
    "a check for conflicts. A writer that is in flight would commit to the replaced file group, and no reader would "
    "see its rows.",
    hint="Hudi reports no conflict to such writers, so their file groups cannot be replaced. Write the"
    " table anew with optimistic concurrency control (OCC).",
)
FILE_GROUPS_WITHOUT_BUCKET: Final = ProblemType(
    "file-groups-without-bucket",
    "Some file groups do not belong to a bucket",
    why="The number at the beginning of a file id is the bucket of its rows. The ids of these file groups have no such "
    "number, so neither the job nor Hudi's writers can tell which rows belong there, and the rows could be doubled.",
    example="3 of 32, such as 5c1f0b2e-0d6a-4c27-9b0e-8f6f1f0d6c11-0 in partition 'dt=2026-01-01'",
    hint="A writer without the bucket index wrote them (Hudi #5116, #11875); an audit lists them.",
)
SEVERAL_FILE_GROUPS_PER_BUCKET: Final = ProblemType(
    "several-file-groups-per-bucket",
    "Some buckets have several file groups",
    why="Hudi's writers expect one file group per bucket of a partition, and fail on a bucket with several. A key may"
    " have rows in more than one of them, and the job cannot know which of these rows is the right one.",
    example="2 buckets, such as 3 in partition 'dt=2026-01-01'",
    hint="An audit lists them. Hudi #7216 and #9303 describe how writers fail.",
)
SCHEMA_NOT_REPRODUCIBLE: Final = ProblemType(
    "schema-not-reproducible",
    "A rewritten file would not have exactly the Parquet schema of its input",
    why="Arrow would store some column with another type or other levels than the writer did. Some readers would fail"
    " on the new file, and others would read wrong values, so the job refuses before it writes.",
    example="f1-0_0-1-2_20260101120000000.parquet: INT96 ts would become INT64 ts",
    hint="An old type such as INT96 disappears when Hudi's current writer writes the rows again. For any other type "
    "this job is impossible; compaction, cleaning and the audit still work.",
)
ENCRYPTED_BASE_FILES: Final = ProblemType(
    "encrypted-base-files",
    "Base files are encrypted by Parquet's modular encryption",
    why="The pages of such a file are bound to their places in it, so they cannot be copied to another file. Rows"
    " that were decoded would be stored without the encryption that the owner has chosen.",
    example="partition '2026-01-01': encrypted columns",
    hint="Let Hudi rewrite the files with the table's encryption: give the worker's Spark session the keys and the job "
    "`engine` `hudi`.",
)
TYPES_NOT_READABLE: Final = ProblemType(
    "types-not-readable",
    "The table has columns of types that Spark 3.5 cannot read",
    why="Hudi on Spark 3.5 accepts a VARIANT in a writer's schema, but its readers, its compaction and its clustering "
    "do not know the type. A plan that cannot be executed would only block writers, so the job makes none.",
    example="payload: variant",
    hint="Hudi reads a VARIANT with Spark 4 only: let a writer there compact and cluster the table. Jobs here can "
    "still rewrite file groups without logs.",
)
SCHEMA_ON_READ_UNREADABLE: Final = ProblemType(
    "schema-on-read-unreadable",
    "Hudi cannot read the schema that it has stored for schema on read",
    why="An `ALTER TABLE` with `hoodie.schema.on.read.enable` stores the schema in its commit. Hudi 1.2 writes the name"
    " of the type of a `timestamp_ntz` column there, and cannot read it again: its compaction and its clustering fail."
    " A plan that cannot be executed would only block writers, so the job makes none.",
    example="a column has the type local-timestamp-micros",
    hint="Let a writer commit rows to the table, and start the job again: the next commit does not have this schema. Do"
    " not rename or drop a column of such a table by schema on read.",
)
MERGE_RULES_UNCLEAR: Final = ProblemType(
    "merge-rules-unclear",
    "The table's properties do not say how rows are merged, or contradict each other",
    why="When two rows have the same key, the properties say which one readers see. If somebody has changed them by "
    "hand, Hudi's readers fail at file slices with logs. A job that took one of the properties for right could keep "
    "the wrong row for good.",
    example="Configured record merge mode (COMMIT_TIME_ORDERING) is inconsistent with payload class (...)",
    hint="Put `hoodie.record.merge.mode`, `hoodie.record.merge.strategy.id`, `hoodie.compaction.payload.class` and "
    "`hoodie.table.ordering.fields` back to what the table was made with.",
)
UNSENT_VALUES_IN_LOGS: Final = ProblemType(
    "unsent-values-in-logs",
    "A clustering by Hudi would replace values by the mark for values that were not sent",
    why="Debezium sends a mark in place of a large value that has not changed, and readers then keep the earlier "
    "value. Hudi's clustering (1.2.0) does not know the mark where it merges logs. So it writes the mark to the new "
    "files, and the earlier values are lost. A compaction by a job keeps them.",
    example="20 file groups have logs",
    hint="Compact the table first.",
)
CODEC_NOT_SUPPORTED: Final = ProblemType(
    "codec-not-supported",
    "Files with this compression cannot be written",
    why="The new files get the compression of those that they replace, unless the job has a `codec`. Arrow cannot "
    "write this compression, and the job does not choose another one by itself.",
    example="lzo",
    hint="Request another `codec`: gzip, snappy or zstd.",
)
ROWS_MISSING: Final = ProblemType(
    "rows-missing",
    "Hudi returned fewer rows of a file slice than it holds",
    why="Hudi's reader has left out rows of the base file, for example because of wrong column statistics. The new "
    "files would replace the whole file slice, so these rows would be lost for good.",
    example="900 rows of dt=2026-01-01, 00000003-5c1f-4c27-9b0e-8f6f1f0d6c11-0: its base file has 1000, and its logs"
    " delete 0.",
    hint="Nothing was changed. Run a compaction, which leaves no logs, and submit the job again.",
)
MERGE_MODE_CUSTOM: Final = ProblemType(
    "merge-mode-custom",
    "Rows of this table are merged by a class of its owner, so the winning row cannot be determined",
    why="When two rows have the same key, a repair keeps the one that Hudi would keep. In this table a class of the "
    "owner decides that. A wrong guess would replace a newer row by an older one.",
    hint="Write the rows of the stale instants again, and then run a `repair` that names these instants in `accepted`.",
)
SOFT_DELETES: Final = ProblemType(
    "soft-deletes",
    "Rows of this table may be deletes (`_hoodie_is_deleted`), which cannot be recovered from stale writes",
    why="A row of a stale write may mean that its key is to be deleted. The repair writes rows again and does not"
    " apply such deletions, so it could bring back rows that their owner has deleted.",
    hint="Write the rows of the stale instants again, and then run a `repair` that names these instants in `accepted`.",
)
KEYS_IN_OTHER_PARTITIONS: Final = ProblemType(
    "keys-in-other-partitions",
    "Rows of stale writes have keys that are in other partitions, too",
    why="Writers with a global index keep one row of a key in the whole table. A row that moved to another partition"
    " after a stale write had read it, or before a stale write came, would be there twice after a repair. Only the"
    " options of the writer (`hoodie.*.index.update.partition.path`) say which of the partitions keeps the key.",
    example="'k17' in '2026-01-01' and '2026-01-02'",
    hint="If a key may be in several partitions, PATCH the table's `hudi_options` with"
    ' `{"hoodie.index.type": "SIMPLE"}` or `"BLOOM"`, as its writers have it. If not, declare the global index of the'
    " writers (`GLOBAL_SIMPLE`, `GLOBAL_BLOOM`), so that older rows are left out, and delete the rows of keys in the"
    " partitions that shall not have them; or leave the rows of the stale write where they are (`accepted`).",
)
PARAMS_INVALID: Final = ProblemType(
    "params-invalid",
    "The worker cannot read the job's parameters",
    why="The service checks the parameters of a job before it stores it. The worker still cannot read them. So the "
    "versions of worker and service differ, or another version of the service has stored the job.",
    example="Expected `int`, got `str` - at `$.retain`",
    hint="Bring service and workers to one version, and submit the job again.",
)
HISTORY_INCOMPLETE: Final = ProblemType(
    "history-incomplete",
    "The table's history lacks commits whose rows shall be moved",
    why="Writers may have deleted keys of these rows since, and a repair must not bring them back. The commits after"
    " the repaired ones name the deletes, on the active timeline or in the history. If the history was removed, not"
    " copied with the table, or damaged, nobody knows these deletes.",
    example="250 rows of 20260101120000000",
    hint="Copy the history back if you have a copy (`.hoodie/timeline/history`; before table version 8 the folder that"
    " `hoodie.archivelog.folder` names). Otherwise, if no key exists twice, run a `bucket_index` job with `adopt`; if"
    " keys exist twice, write the partitions again (`insert_overwrite`) with the right row of each key.",
)
INSTANTS_UNKNOWN: Final = ProblemType(
    "instants-unknown",
    "Neither the timeline nor the history has these commits",
    why="The job was told to repair these instants, or to mark them as repaired. None of them is a completed commit of"
    " this table, and no row has them, so there is nothing to do for them. An instant may be mistyped, of another"
    " table, not completed, or rolled back long ago; or the history with it was removed.",
    example="20260101120000000",
    hint="Take the instants from an incident, an audit or `GET /v1/commits`. If an incident names a commit that"
    " is gone for good, close the incident with a reason.",
)
ROWS_THERE_TWICE: Final = ProblemType(
    "rows-there-twice",
    "Keys of these commits have rows in other file groups as well",
    why="A writer that still uses the file groups from before a clustering or an overwrite does not find rows that"
    " were moved since. If neither the timeline nor the history has what replaced these file groups, readers see"
    " both rows of each such key, and nothing tells which one is right.",
    example="20 keys of 20260101120000000",
    hint="Copy the history back if you have a copy. Otherwise stop the writer, and `rollback` these commits, the latest"
    " first; or write the partitions again (`insert_overwrite`) with the right row of each key.",
)
DELETES_UNREAD: Final = ProblemType(
    "deletes-unread",
    "Rows to move may have been deleted by later commits whose files are gone",
    why="A writer with the right number of buckets deletes a key in the right bucket, where the row is not. Only the"
    " files of that commit name the key, and a clean has removed them. If the repair wrote the row, the deleted row"
    " might be back.",
    example="12 rows by 20260101120500000",
    hint="If the deletes can be run again: name these commits as `accepted`, so that the repair writes the rows, and"
    " then run the deletes again. The result names the commits in `deletes_without_rows`.",
)
NAME_NOT_CONFIRMED: Final = ProblemType(
    "name-not-confirmed",
    "The table's name was not typed in",
    why="The job removes rows that nobody can bring back. To protect against a mistaken table id, the request has to "
    "contain the exact name of the table.",
    example="trip",
    hint="This removes rows for good. Send `table_name`: trips.",
)
PARTITION_UNKNOWN: Final = ProblemType(
    "partition-unknown",
    "Some of the partitions do not exist",
    why="The job would do nothing for these partitions and then report success. The path is probably mistyped, so the "
    "job does nothing for the other partitions either.",
    example="'2026-1-1'",
    hint="Give partition paths as in storage, such as `dt=2026-01-01` or `2026-01-01`.",
)
COLUMN_UNKNOWN: Final = ProblemType(
    "column-unknown",
    "The table has no such column",
    why="The job is asked to sort by a column that is not in the latest schema of the table. Without it the files"
    " would be rewritten in an order that nobody asked for.",
    example="citty",
    hint="Its columns are city, ts, uuid.",
)
COLUMN_NOT_SORTABLE: Final = ProblemType(
    "column-not-sortable",
    "Lists, maps and structs have no order",
    why="Values of such a column cannot be compared. So no order brings rows with similar values into the same file, "
    "and rewriting the files would be useless.",
    example="tags",
    hint="Use other columns.",
)
LOCAL_DISK_FULL: Final = ProblemType(
    "local-disk-full",
    "The rows of a file slice are sorted on a local disk of the worker, which is full",
    why="A file slice that is larger than the memory of its task is sorted on a local disk, in parts that are merged "
    "afterwards. Without room for the parts the sort cannot end.",
    example="/var/spark/spark-4711",
    hint="Nothing was changed. Free space there, or give the worker another folder (SPARK_LOCAL_DIRS). A sort needs"
    " about the size of the slice without compression, per task.",
    retriable=True,
)
