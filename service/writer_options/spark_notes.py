"""Notes for users about the needs of a Spark writer that options cannot express."""

from __future__ import annotations

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
        "UPDATE and DELETE first find the files of their rows and then write to these files. So a statement that"
        " conflicts fails; run the whole statement again.",
        "In a MERGE INTO a merge-on-read table, name all columns in UPDATE SET and give WHEN NOT MATCHED an INSERT:"
        " otherwise Hudi 1.2 loses or adds rows, with any index.",
    ]
