"""Versions of Hudi that write and read a table: the declared ones, compared with evidence on the timeline."""

from __future__ import annotations

from collections.abc import Sequence

from jobs.contract import Problem
from jobs.format.hudi_versions import BUCKETS_BY_TABLE, WITH_HASHING_CONFIG, may_ignore_hashing_config, release
from jobs.format.index_definitions import FILES
from jobs.format.table_version import WITH_COMPLETION_TIMES
from jobs.hudi import written_by
from jobs.hudi.merging import TAKING_THE_NEWER, merging_of
from jobs.hudi.records import FileSlice
from jobs.hudi.table import HudiTable
from jobs.problems.arrow_merges import LOG_ORDER_NOT_PROVED
from jobs.problems.rescales import READERS_TOO_OLD

_BY_FILE_GROUP_READER = (1, 0)
_READING_ALL_DELETES = (1, 1)
# A writer counts as upgraded after this number of commits by a newer version.
_LATEST_COMMITS = 10


def without_hashing_config(table: HudiTable) -> str | None:
    """Returns a sentence for users why the table may have writers that ignore hashing configs; None if it has none.

    Tables of version 9 can have no older writers.
    """
    if table.version >= BUCKETS_BY_TABLE:
        return None
    version = table.declared.writers_hudi_version
    declared = f"writers declared: {version or 'none'}"
    if seen := seen_before_1_0(table, _LATEST_COMMITS):
        return f"{seen}; {declared}"
    if may_ignore_hashing_config(table.version, version):
        return f"table version {table.version}, {declared}"
    return None


def of_readers(table: HudiTable) -> list[Problem]:
    """Returns the refusal of another number of buckets while readers prune by the number in their own options.

    Hudi has pruned by buckets since 1.0 (`BucketIndexSupport`), and follows a hashing config since 1.1.
    """
    version = table.declared.readers_hudi_version
    prunes = version is not None and _BY_FILE_GROUP_READER <= release(version) < WITH_HASHING_CONFIG
    if not prunes or table.declared.writers_query_pruning_off:
        return []
    return [READERS_TOO_OLD.because(f"readers declared: Hudi {version}")]


def may_misread_deletes(table: HudiTable) -> bool:
    """Returns whether a declared writer may fail to read deletes in the logs of the metadata table's indexes. A clean
    writes such a delete for each deleted file.

    Hudi before 1.1 reads them by Avro's generated classes (`HoodieDeleteBlock.deserialize`, 1.0.2). Avro looks a class
    up once, in the class loader of the thread. The class is not found in a thread of a parallel stream if Spark has
    loaded the bundle itself (`spark.jars`, `spark.jars.packages`, `--jars`, `--packages`). Each later read in that JVM
    then fails.
    """
    version = table.declared.writers_hudi_version
    return version is not None and release(version) < _READING_ALL_DELETES and not table.metadata_partitions <= {FILES}


def seen_before_1_0(table: HudiTable, latest: int = 0) -> str | None:
    """Returns a sentence for users if a Hudi before 1.0 made a write of the active timeline; None if it made none. If
    `latest` is given, only this number of the latest writes counts."""
    found = list(written_by.older_than_1_0(table).items())[-latest:]
    older = [instant for instant, is_older in found if is_older]
    return f"{older[-1]} was written by a Hudi before 1.0" if older else None


def merging_logs_otherwise(table: HudiTable) -> str | None:
    """Returns who merges the rows in the table's logs differently from this Hudi; None if nobody does. Hudi before 1.0
    keeps the version of a row with the greater ordering value, where Hudi 1.2 keeps the later one
    (`HoodieMergedLogRecordScanner` and `OverwriteWithLatestAvroPayload.preCombine`, 0.15). In Hudi before 1.0 a delete
    wins over earlier rows, and a row wins over an earlier delete, whatever their ordering values are."""
    if not (table.is_merge_on_read and table.ordering_fields and table.version < WITH_COMPLETION_TIMES):
        return None
    payloads = merging_of(table).payloads
    if payloads and not payloads & TAKING_THE_NEWER:
        return None
    declared = table.declared
    for what, version in (("writers", declared.writers_hudi_version), ("readers", declared.readers_hudi_version)):
        if version is not None and release(version) < _BY_FILE_GROUP_READER:
            return f"declared {what}: Hudi {version}"
    return seen_before_1_0(table)


def against_merging_by_hudi(table: HudiTable, slices: Sequence[FileSlice]) -> list[Problem]:
    """Returns the refusal to let this Hudi merge these slices, because only Arrow compares the versions in the logs."""
    older = merging_logs_otherwise(table) if any(item.log_files for item in slices) else None
    return [logs_not_in_order(older)] if older else []


def logs_not_in_order(who: str) -> Problem:
    return LOG_ORDER_NOT_PROVED.because(who)
