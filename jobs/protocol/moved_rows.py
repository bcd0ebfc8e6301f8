"""Finds rows that have left a partition of a table with a global record index, if only the partition's logs show that.

When a partition is deleted, Hudi (1.2.0) deletes the index entries of all keys in its base files
(`SparkHoodieBackedTableMetadataWriter`, `getRecordIndexReplacedRecords`), also those of rows that a writer has moved to
other partitions. The next upsert of such a key inserts a second row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.format.index_definitions import RECORDS
from jobs.format.meta_columns import PARTITION_PATH, RECORD_KEY
from jobs.hudi import base_files, index_entries, indexes, rows
from jobs.hudi.jvm import translated
from jobs.problems.plans import ROWS_MOVED_AWAY

if TYPE_CHECKING:
    from jobs.contract import Problem
    from jobs.hudi.records import FileSlice
    from jobs.hudi.table import HudiTable
    from jobs.protocol.partition_expiry import Expired

_KEYS = f"{RECORD_KEY} string, {PARTITION_PATH} string"


class MovedRows:
    """Finds the partitions whose deletion would take entries of other partitions out of the record index, with the
    reason. The results are cached as long as the files are the same."""

    def __init__(self, table: HudiTable) -> None:
        self._table = table
        self._known: dict[tuple[FileSlice, ...], Problem | None] = {}

    def of(self, partitions: Sequence[Expired]) -> dict[str, Problem]:
        table = self._table
        if not table.is_merge_on_read or RECORDS not in table.metadata_partitions:
            return {}
        if indexes.has_record_index_by_partition(table):
            # Hudi deletes only the entries in the part of the index that belongs to the partition.
            return {}
        unknown = [each for each in partitions if each.slices not in self._known]
        with_logs = [each for each in unknown if any(item.log_files for item in each.slices)]
        found = _found(table, with_logs) if with_logs else {}
        self._known |= {each.slices: found.get(each.partition) for each in unknown}
        return {each.partition: problem for each in partitions if (problem := self._known[each.slices])}


def _found(table: HudiTable, partitions: Sequence[Expired]) -> dict[str, Problem]:
    paths = [item.base_file for each in partitions for item in each.slices if item.base_file and item.log_files]
    if not paths:
        return {}
    with translated("looking for rows that have moved to other partitions"):
        before = base_files.read(table, paths, schema=_KEYS)
        now = rows.of_partitions(table, [each.partition for each in partitions]).select(PARTITION_PATH, RECORD_KEY)
        gone = before.join(now, [PARTITION_PATH, RECORD_KEY], "left_anti")
        left = gone.cache()
        try:
            # Usually no row has left, and then the index need not be read.
            if left.isEmpty():
                return {}
            away = index_entries.partitions_of_keys(table, left).where(F.col("there") != F.col(PARTITION_PATH))
            first = F.min(F.struct(RECORD_KEY, "there")).alias("first")
            counted = away.groupBy(PARTITION_PATH).agg(F.count("*").alias("keys"), first).collect()
        finally:
            left.unpersist()
    return {
        row[PARTITION_PATH]: ROWS_MOVED_AWAY.because(
            f"'{row[PARTITION_PATH]}': {row['keys']} keys, such as '{row['first'][0]}', now in '{row['first'][1]}'"
        )
        for row in counted
    }
