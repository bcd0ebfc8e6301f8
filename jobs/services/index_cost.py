"""Estimates the cost of an index, for writers at each commit and for the job that builds it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from jobs.format.index_definitions import BLOOM_FILTERS, COLUMN_STATISTICS, PARTITION_STATISTICS, RECORDS
from jobs.hudi import column_stats, file_indexes
from jobs.hudi.hadoop import storage_of
from jobs.hudi.records import FileSlice
from jobs.hudi.table import HudiTable
from jobs.kinds.index import IndexCost, IndexParams
from jobs.kinds.results import EstimatedCost
from jobs.protocol import index_refusals

_LATEST_COMMITS = 20
# `HoodieBackedTableMetadataWriter.RECORD_INDEX_AVERAGE_RECORD_SIZE` of Hudi 1.2.0.
_BYTES_OF_RECORD = 48
# Bytes of an entry of statistics, and of an empty log block and base file of the metadata table, which hold the schema
# of its records. Measured with Hudi 1.2.0 and columns of numbers and short texts.
_BYTES_OF_STATISTICS = 65
_BYTES_OF_BLOCK, _BYTES_OF_BASE_FILE = 15_700, 8_700
# Hudi's default numbers of file groups.
_FILE_GROUPS = {
    RECORDS: 10,
    COLUMN_STATISTICS: 2,
    BLOOM_FILTERS: 4,
}
_DEFAULT_COLUMNS = 32


def cost_of(table: HudiTable, slices: Sequence[FileSlice], params: IndexParams) -> tuple[IndexCost, EstimatedCost]:
    """Returns the cost for a writer, by the latest commits, and for the job. Entries of a record index are counted as
    if each written row was new, so they are upper bounds."""
    latest = [each for each in table.commits() if each.write.brings_rows][-_LATEST_COMMITS:]
    files = sum(len(each.file_names) for each in latest)
    names = index_refusals.partitions_of(table, params)
    groups = params.file_groups or _FILE_GROUPS[names[0]]
    if RECORDS in names:
        size, entries = _BYTES_OF_RECORD, sum(sum(each.rows.values()) for each in latest)
        of_table = _rows(table, slices)
    elif COLUMN_STATISTICS in names:
        columns = len(params.columns or json.loads(table.schema())["fields"][:_DEFAULT_COLUMNS])
        size, entries, of_table = _BYTES_OF_STATISTICS, files * columns, len(slices) * columns
        if PARTITION_STATISTICS in names:
            groups += 1
            entries += sum(len(each.files) for each in latest) * columns
            of_table += len({item.partition for item in slices}) * columns
    else:
        size, entries, of_table = _bytes_of_filter(table, slices), files, len(slices)
    per_commit = math.ceil(entries / len(latest)) if latest else 0
    bytes_per_commit = per_commit * size + min(per_commit, groups) * _BYTES_OF_BLOCK
    cost = IndexCost(commits=len(latest), entries_per_commit=per_commit, bytes_per_commit=bytes_per_commit)
    read, written = sum(item.bytes for item in slices), of_table * size + groups * _BYTES_OF_BASE_FILE
    return cost, EstimatedCost(bytes_read=read, bytes_written=written, tasks=len(slices))


def _rows(table: HudiTable, slices: Sequence[FileSlice]) -> int:
    """Returns about how many rows the table has, by the footers of some base files."""
    storage = storage_of(table)
    rows = size = 0
    for item in column_stats.sample(slices):
        with storage.read_parquet(item.base_file or "") as reader:
            rows += reader.metadata.num_rows
            size += item.base_bytes
    return round(rows / size * sum(item.bytes for item in slices)) if size else 0


def _bytes_of_filter(table: HudiTable, slices: Sequence[FileSlice]) -> int:
    """Returns the size of the Bloom filter of one base file, 0 if it has none."""
    for item in column_stats.sample(slices)[:1]:
        return file_indexes.filter_bytes(table, item)
    return 0
