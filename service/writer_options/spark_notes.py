"""Sentences for users: what a Spark writer needs that options cannot express."""

from __future__ import annotations

from jobs.format.hudi_versions import release
from service.writer_options.known_options import name_in
from service.writer_options.written_table import Target

# On a table with a hashing config Hudi 1.2 treats "rows may be in any bucket" as "rows are in no bucket" and reads
# nothing: a filter that is not on the hash field loses rows, and `UPDATE` and `DELETE` read the rows that they change.
# (Without a config, pruning only saves reading some files, so it can be switched off in advance.)
NO_PRUNING = {"hoodie.bucket.index.query.pruning": "false"}
# A long-lived session must not plan a statement with files that have been replaced since. `SET` cannot change this
# option.
FRESH_SESSION = {"spark.sql.filesourceTableRelationCacheSize": "0"}

_SKIPPING_NOTE = (
    "When a compaction ends during a write, Hudi 1.2's statistics of that write hide other rows from filters until the"
    " next commit in the partition. Sessions that only read the table need hoodie.enable.data.skipping=false too."
)
_FRESH_NOTE = (
    f"Set {next(iter(FRESH_SESSION))} when the session starts (--conf, or the builder): SET cannot change it later."
    " Without it a"
    " long-lived session reads a table as it was at its last statement: run REFRESH TABLE before an UPDATE or DELETE if"
    " others write the table too, and before you repeat one that has failed."
)
# `jobs.protocol.older_hudi.may_misread_deletes` has the cause.
_BUNDLE_NOTE = (
    "Put the bundle of Hudi 1.0 into Java's class path (Spark's folder jars, or spark.driver.extraClassPath and"
    " spark.executor.extraClassPath). If Spark loads it (--packages, --jars), all writes after a clean may fail with a"
    " ClassCastException (HoodieDeleteRecord)."
)


def of(target: Target) -> list[str]:
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


def of_sql(target: Target) -> list[str]:
    return [
        *of(target),
        *([] if target.index else [_FRESH_NOTE]),
        "UPDATE and DELETE first find the files of their rows and then write there, so a statement that conflicts "
        "must fail and be run again as a whole.",
        "In a MERGE INTO a merge-on-read table, name all columns in UPDATE SET and give WHEN NOT MATCHED an INSERT:"
        " otherwise Hudi 1.2 loses or adds rows, with any index.",
    ]
