"""Notes for users about the needs of a writer that options cannot express."""

from __future__ import annotations

from jobs.contract import WriterEngine
from jobs.format import lock_providers
from jobs.format.consistent_hashing import RANGES_STAY
from jobs.format.hudi_versions import release
from service.writer_options.known_options import name_in
from service.writer_options.written_table import Target

# If a filter does not name the hash field, rows may be in any bucket. On a table with a hashing config, Hudi 1.2 takes
# that for "rows are in no bucket" and reads nothing. So queries with such a filter miss rows, and so do `UPDATE` and
# `DELETE`. Without a hashing config, pruning only avoids reading some files. So the option can be set in advance.
NO_PRUNING = {"hoodie.bucket.index.query.pruning": "false"}
# A long-lived session must not plan a statement with files that have been replaced meanwhile. `SET` cannot change this
# option.
FRESH_SESSION = {"spark.sql.filesourceTableRelationCacheSize": "0"}
# A Flink job without a bucket index has the file groups of keys in its state. Without this option, a Flink job that
# starts without that state would write existing keys of the table a second time.
LOADED_INDEX = {"index.bootstrap.enabled": "true"}

_SKIPPING_NOTE = (
    "If a compaction ends during a write, Hudi 1.2's statistics of that write hide other rows from queries with a"
    " filter, until the next commit in the partition. So sessions that only read the table also need"
    " hoodie.enable.data.skipping=false."
)
_FRESH_NOTE = (
    f"Set {next(iter(FRESH_SESSION))} when the session starts (--conf, or the builder): SET cannot change it later."
    " Without this option, a long-lived session reads a table as it was at the session's last statement. In such a"
    " session, run REFRESH TABLE before an UPDATE or DELETE if others write the table too, and before you repeat a"
    " failed statement."
)
# `jobs.protocol.older_hudi.may_misread_deletes` explains the cause.
_BUNDLE_NOTE = (
    "Put the bundle of Hudi 1.0 into Java's class path (Spark's folder jars, or spark.driver.extraClassPath and"
    " spark.executor.extraClassPath). If Spark loads it (--packages, --jars), all writes after a clean may fail with a"
    " ClassCastException (HoodieDeleteRecord)."
)


def of(target: Target, engine: WriterEngine) -> list[str]:
    notes = []
    if target.index and target.exists and target.num_buckets != target.index.num_buckets:
        notes.append(
            f"The table was registered with {target.index.num_buckets} buckets and now has a hashing config, which"
            " sets the number of each partition. Writers with Hudi 1.1 or later use it and ignore their option."
        )
    if target.index and release(target.hudi_version) < (1, 1):
        notes.append(
            f"Hudi {target.hudi_version} uses the number of buckets in its options, even if the table has another"
            " number. Stop this writer before a bucket expansion, and start it again with the new number."
        )
    if lock_providers.first_release(target.lock_provider) > release(target.hudi_version):
        notes.append(f"Hudi {target.hudi_version} does not have this lock provider. Use another one for all writers.")
    if target.is_non_blocking:
        notes.append(
            "The table is written with non-blocking concurrency control. Its writers never conflict, so no job can"
            " replace its file groups (no bucket expansion, no clustering inside buckets). Never run an INSERT"
            " OVERWRITE in Flink: it hides all rows, its own too, because the ids of file groups stay the same."
        )
    if target.has_consistent_hashing:
        notes.append(
            "The table has the consistent-hashing bucket index. A bucket_resize splits and merges its buckets; Hudi's"
            " own clustering must not do so. Do not use optimistic_concurrency_control in a Flink job on this table: a"
            " compaction during an instant of the Flink job breaks Hudi's check for conflicts."
        )
        notes.append(RANGES_STAY)
    notes += _NOTES_OF[engine](target)
    if lock_providers.is_in_a_file(target.lock_provider):
        notes.append(
            "Hudi's filesystem lock works only for writers on one machine. The lock expires only if an option says so."
        )
    elif not target.lock_options:
        notes.append("Add the lock provider's own options, the same for all writers and in the table's registration.")
    return notes


def _of_spark(target: Target) -> list[str]:
    return [*([_BUNDLE_NOTE] if release(target.hudi_version) == (1, 0) else []), *_of_reads(target)]


def _of_reads(target: Target) -> list[str]:
    if not target.index:
        return [_SKIPPING_NOTE]
    pruning = next(iter(NO_PRUNING))
    if not name_in(pruning, target.hudi_version):
        return [_SKIPPING_NOTE, _FRESH_NOTE]
    return [
        "In local mode use the master local[N,F], such as local[2,4]: Hudi 1.2 occasionally fails a task.",
        f"After an expansion every SQL reader of the table needs {pruning}=false as well, otherwise Hudi 1.2 loses"
        f" rows: SET {pruning}=false, spark.{pruning}=false in the session's conf, or for all sessions ALTER TABLE ..."
        f" SET TBLPROPERTIES ('{pruning}'='false'). A `finish_expansion` job removes this need.",
        _SKIPPING_NOTE,
        _FRESH_NOTE,
    ]


def _of_spark_sql(target: Target) -> list[str]:
    return [
        *_of_spark(target),
        *([] if target.index else [_FRESH_NOTE]),
        "UPDATE and DELETE first find the files of their rows and then write to these files. So a statement that"
        " conflicts fails; run the whole statement again.",
        "In a MERGE INTO a merge-on-read table, name all columns in UPDATE SET and give WHEN NOT MATCHED an INSERT:"
        " otherwise Hudi 1.2 loses or adds rows, with any index.",
    ]


def _of_flink(target: Target) -> list[str]:
    notes = [
        "Set pekko.ask.timeout to 60 s in the Flink cluster. Its coordinator may wait for the table's lock in a call"
        " that has a time limit of 10 s by default. If the wait lasts longer, the Flink job fails over.",
        "No other writer may change the same rows at the same time, because Flink with single_writer does not check for"
        " conflicts. Flink with optimistic_concurrency_control would conflict with itself and lose rows.",
        "Flink ignores hoodie.write.num.retries.on.conflict.failures. If a batch of a Flink job is rolled back after"
        " its checkpoint, the batch is lost. So Groundskeeper never fences a Flink writer.",
    ]
    if target.has_consistent_hashing:
        notes.append("A bucket_resize is refused as long as Flink may write the table: Flink keeps its hash ranges.")
    if (target.index or target.has_consistent_hashing) and not target.is_non_blocking:
        notes.append(
            "A Flink job reads the number of buckets and the file groups only once. A bucket expansion or a"
            " clustering waits until the job has been stopped with a savepoint (see `writers.flink` of"
            " the table, and POST /v1/jobs/{id}/writers-stopped). Afterwards submit it again with the options shown"
            " then."
        )
    elif not target.index and not target.has_consistent_hashing:
        notes.append(
            "Without a bucket index the state of a Flink job holds the file group of each key (FLINK_STATE, its "
            "default), in savepoints and checkpoints as well. A clustering, a repair or any other job that replaces "
            "file groups waits until the Flink job has been stopped. Afterwards start it without that state: with "
            f"{next(iter(LOADED_INDEX))}=true and no savepoint; or from the savepoint with another name for the table "
            "in Flink SQL and execution.state-recovery.ignore-unclaimed-state=true, which keeps the source's offsets."
        )
    return notes


_NOTES_OF = {
    WriterEngine.SPARK: _of_spark,
    WriterEngine.SPARK_SQL: _of_spark_sql,
    WriterEngine.FLINK: _of_flink,
}
