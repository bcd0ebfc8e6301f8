"""Refusals of jobs because of what the table, its files or the request are."""

from __future__ import annotations

from typing import Final

from service.api.problem_texts.explanation import JobExplanation

TABLES: Final = {
    "no-bucket-index": JobExplanation(
        "A table does not store its bucket index, and the job computes the bucket of each row from its keys."
        " With a guessed number of buckets or other hash fields it would put rows where writers do not look"
        " for them, and they would be written twice.",
        "",
        title="The table is registered without a bucket index",
        hint='Register it with `"index": {"type": "bucket", "num_buckets": ..., "hash_fields": [...]}`.',
    ),
    "consistent-hashing": JobExplanation(
        "This index keeps a table of hash ranges for each partition, in files of its own, and changes them by"
        " splitting and merging. Files that another program divides or sorts would not agree with these"
        " ranges, and writers would put updates elsewhere.",
        "",
        title="The table uses the consistent-hashing bucket index, which resizes itself",
        hint="Let Hudi's own clustering split and merge its buckets.",
    ),
    "lock-not-atomic": JobExplanation(
        "The lock is a file that is created only if there is none. An object storage does not promise that of"
        " two clients only one succeeds, so a job could replace file groups while a writer commits to them,"
        " and rows would be lost.",
        "s3a://lake/trips/.hoodie/lock",
        title="Hudi's filesystem lock is not safe on an object storage, where two writers could both acquire it",
        hint="PATCH the table with the `lock` that its writers use, such as ZooKeeper.",
    ),
    "lock-not-provable": JobExplanation(
        "Before it commits, the job checks that it still holds the lock, since the lock may have expired"
        " while the worker stood still. Of this provider it cannot be known. A commit without the lock could"
        " replace file groups to which a writer is just committing.",
        "org.example.OurLock",
        title="It cannot be proved before a commit that the table's lock is still held",
        hint="Use a lock provider of Hudi for the table and its writers, and PATCH its `lock`.",
    ),
    "base-files-not-parquet": JobExplanation(
        "The job copies rows between files by Arrow, in the exact layout in which Hudi wrote them. That is"
        " proved for Parquet, and not for ORC or HFile. Compaction by Hudi, cleaning and archival work on such"
        " a table.",
        "",
        title="Only Parquet base files can be rewritten",
    ),
    "no-meta-fields": JobExplanation(
        "The fields `_hoodie_record_key` and `_hoodie_partition_path` are not in the files. Without them the"
        " job cannot compute the bucket of a row, nor count that no row is lost or doubled. They cannot be"
        " added to an existing table: write its rows to a new one. Hudi's own clustering of such a table fails, or"
        " makes it unreadable for Spark SQL.",
        "hoodie.populate.meta.fields=false",
        title="The table has no meta fields, so rows cannot be identified by their keys",
        hint="Write its rows to a table with meta fields. Compaction by Hudi, cleaning and archival need none.",
    ),
    "index-definitions-gone": JobExplanation(
        "The definitions say which columns secondary and expression indexes have, and whether the record index is one"
        " for all partitions. Without them a client updates such an index by guesses, so readers and writers would look"
        " for rows in files that do not have them.",
        ".hoodie/.index_defs/index.json, for record_index, secondary_index_rider",
        title="The definitions of the table's indexes are missing",
        hint="Put the file back, from a backup or an earlier version of the object. The next commit of a writer whose"
        " options name the record index and the statistics writes their definitions anew; secondary and expression"
        " indexes must be created again.",
    ),
    "partition-metadata-gone": JobExplanation(
        "Hudi knows a partition in the storage by this file. A listing passes over a folder without it: the metadata"
        " table would be built without its rows, and where there is none, readers do not see them and a job would leave"
        " the partition as it is, while it changes the others.",
        "'2026-01-01'",
        title="Partitions have data files and no .hoodie_partition_metadata",
        hint="Copy that of another partition of the same depth into the folder. The next write to the partition makes"
        " one as well.",
    ),
    "partition-columns-dropped": JobExplanation(
        "The option `hoodie.datasource.write.drop.partition.columns` leaves these columns out of the files,"
        " so a row read from a file is not complete, and the new files could differ from those that Hudi"
        " writes. Write the rows to a table without the option.",
        "",
        title="The table's files lack the partition columns",
    ),
    "change-data-capture": JobExplanation(
        "Readers of changes expect a record of each change, which only Hudi's own writers add. To them a"
        " commit that replaces file groups would have to say that no row has changed, and the job cannot say"
        " that.",
        "",
        title="The table records changes (CDC), and a replacement would have to appear in them",
        hint="If no reader uses the changes, set hoodie.table.cdc.enabled to false while the job runs.",
    ),
    "bootstrapped-table": JobExplanation(
        "After a metadata bootstrap a base file holds only meta fields, and the other columns are in a file"
        " outside the table. A job that rewrites the base file alone would lose these columns. Rewrite these"
        " partitions with Hudi first (`insert_overwrite`).",
        "",
        title="Some of the table's rows are in the files it was bootstrapped from",
    ),
    "index-maps-keys-to-files": JobExplanation(
        "Such an index names the file of each key. The job commits new files without updating it, so readers"
        " and writers would look for rows in files that were replaced, and not find them.",
        "record_index, secondary_index_city",
        title="The metadata table has indexes that map keys to files",
        hint="Drop these indexes first (`DROP INDEX`), and create them again afterwards.",
    ),
    "non-blocking-writers": JobExplanation(
        "These writers all write to file ids that depend on nothing but the bucket, and Hudi lets them commit"
        " beside each other without a check. A writer that is in flight would commit to the replaced file"
        " group, and no reader would see its rows.",
        "",
        title="The table is written with non-blocking concurrency control (fixed file ids)",
        hint="Such writers never conflict, so their file groups cannot be replaced. Rewrite the table with OCC.",
    ),
    "file-groups-without-bucket": JobExplanation(
        "The number at the beginning of a file id is the bucket of its rows. These file groups have none, so"
        " neither the job nor Hudi's writers can tell which rows belong there, and the rows could be doubled.",
        "3 of 32, such as 5c1f0b2e-0d6a-4c27-9b0e-8f6f1f0d6c11-0 in partition 'dt=2026-01-01'",
        title="Some file groups do not belong to a bucket",
        hint="They were written without the bucket index (Hudi #5116, #11875); an audit lists them.",
    ),
    "several-file-groups-per-bucket": JobExplanation(
        "Hudi's writers expect one file group per bucket of a partition, and fail on these too. If there are"
        " several, a key may be in more than one, and the job cannot know which of its rows is the right one.",
        "2 buckets, such as 3 in partition 'dt=2026-01-01'",
        title="Some buckets have several file groups",
        hint="Hudi's writers fail on these as well (#7216, #9303); an audit lists them.",
    ),
    "schema-not-reproducible": JobExplanation(
        "Arrow would store some column with another type or other levels than the writer did. Readers that"
        " check types would fail on the new file, or read other values, so the job refuses before it writes.",
        "f1-0_0-1-2_20260101120000000.parquet: INT96 ts would become INT64 ts",
        title="A rewritten file would not have exactly the Parquet schema of its input",
        hint="An old type such as INT96 goes when Hudi's current writer writes the rows again. For any other type this"
        " job cannot be done; compaction, cleaning and the audit do not need it.",
    ),
    "types-not-readable": JobExplanation(
        "Hudi on Spark 3.5 stores a VARIANT of a writer's schema, but neither its readers nor its compaction and"
        " clustering know the type. A plan that they cannot execute would only block writers, so none is made.",
        "payload: variant",
        title="The table has columns of types that Spark 3.5 cannot read",
        hint="Hudi reads a VARIANT with Spark 4 only: let a writer there compact and cluster the table. File groups"
        " without logs can be rewritten here all the same.",
    ),
    "codec-not-supported": JobExplanation(
        "The new files get the compression of those that they replace, unless the job has a `codec`. Arrow"
        " has no encoder for this one, and another compression is not chosen without being asked for.",
        "lzo",
        title="Files with this compression cannot be written",
        hint="Request another `codec`: gzip, snappy or zstd.",
    ),
    "rows-missing": JobExplanation(
        "A reader of Hudi has left out rows that are in the base file, for example because of wrong column"
        " statistics. The new files would replace the whole file slice, so the rows left out would be lost for"
        " good.",
        "900 rows of dt=2026-01-01, 00000003-5c1f-4c27-9b0e-8f6f1f0d6c11-0: its base file has 1000, and its"
        " logs delete 0.",
        title="Hudi returned fewer rows of a file slice than it holds",
        hint="Nothing was changed. Run a compaction, which leaves no logs, and submit the job again.",
    ),
    "merge-mode-custom": JobExplanation(
        "A repair takes, of two rows with the same key, the one that a merge by Hudi would keep. Here a class"
        " of the owner decides that. A wrong guess would replace a newer row by an older one.",
        "",
        title="Rows of this table are merged by a class of its owner, so the winning row cannot be determined",
        hint="Write the rows of the stale instants again.",
    ),
    "soft-deletes": JobExplanation(
        "A row of a stale write may mean that its key is to be deleted. The repair writes rows again and does"
        " not apply such deletions, so it could bring back rows that their owner has deleted.",
        "",
        title="Rows of this table may be deletes (`_hoodie_is_deleted`), which cannot be recovered from stale writes",
        hint="Write the rows of the stale instants again.",
    ),
    "name-not-confirmed": JobExplanation(
        "The job removes rows that nobody can bring back. To keep a mistaken table id from doing this, the"
        " name of the table has to be sent along, and it is compared exactly.",
        "trip",
        title="The table's name was not typed in",
        hint="This removes rows for good. Send `table_name`: trips.",
    ),
    "partition-unknown": JobExplanation(
        "The job would do nothing for these partitions and then report success. A mistyped path is much more"
        " likely than a wish for that, so nothing is done for the other partitions either.",
        "'2026-1-1'",
        title="Some of the partitions do not exist",
        hint="Give partition paths as in storage, such as `dt=2026-01-01` or `2026-01-01`.",
    ),
    "column-unknown": JobExplanation(
        "The job is asked to sort by a column that is not in the latest schema of the table. Without it the"
        " files would be rewritten in an order that nobody asked for.",
        "citty",
        title="The table has no such column",
        hint="Its columns are city, ts, uuid.",
    ),
    "column-not-sortable": JobExplanation(
        "Values of such a column cannot be compared, so there is no order by which rows with near values"
        " would come into the same file, and rewriting the files would bring nothing.",
        "tags",
        title="Lists, maps and structs have no order",
        hint="Use other columns.",
    ),
    "local-disk-full": JobExplanation(
        "A file slice that is larger than the memory of its task is sorted on a local disk, in parts that are merged"
        " afterwards. Without room for the parts the sort cannot end, and rows may not be left out.",
        "/var/spark/spark-4711",
        title="The rows of a file slice are sorted on a local disk of the worker, which is full",
        hint="Nothing was changed. Free space there, or give the worker another folder (SPARK_LOCAL_DIRS). A"
        " sort needs about the size of the slice without compression, per task.",
    ),
}
