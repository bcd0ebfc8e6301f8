"""Estimates the cost of an index, for writers at each commit and for the job that builds it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from jobs.hudi import column_stats, file_indexes, indexes
from jobs.hudi.hadoop import storage_of
from jobs.kinds.index import IndexCost, IndexParams, WriterOption
from jobs.kinds.results import EstimatedCost
from jobs.protocol import index_refusals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobs.hudi.indexes import Indexes
    from jobs.hudi.records import FileSlice
    from jobs.hudi.table import HudiTable

_LATEST_COMMITS = 20
# `HoodieBackedTableMetadataWriter.RECORD_INDEX_AVERAGE_RECORD_SIZE` of Hudi 1.2.0.
_BYTES_OF_RECORD = 48
# Size of a record of column statistics in a log file, measured with columns of numbers and short texts.
_BYTES_OF_STATISTICS = 200
_DEFAULT_COLUMNS = 32
# `WriteOperationType`s of table services.
_SERVICES = frozenset({"COMPACT", "LOG_COMPACT", "CLUSTER", "BUCKET_RESCALE"})


def cost_of(table: HudiTable, slices: Sequence[FileSlice], params: IndexParams) -> tuple[IndexCost, EstimatedCost]:
    """Returns the cost for a writer, by the latest commits, and for the job. Entries of a record index are counted as
    if each written row was new, so they are upper bounds."""
    latest = [each for each in table.commits() if each.write.operation not in _SERVICES][-_LATEST_COMMITS:]
    rows = sum(sum(each.rows.values()) for each in latest)
    files = sum(len(each.file_names) for each in latest)
    size = {
        indexes.RECORDS: _BYTES_OF_RECORD,
        indexes.COLUMN_STATISTICS: _BYTES_OF_STATISTICS,
    }
    (partition, *_) = index_refusals.partitions_of(table, params)
    if partition == indexes.RECORDS:
        entries, of_table = rows, _rows(table, slices)
    elif partition == indexes.COLUMN_STATISTICS:
        names = len(json.loads(table.schema())["fields"])
        columns = len(params.columns) if params.columns else min(names, _DEFAULT_COLUMNS)
        entries, of_table = files * columns, len(slices) * columns
    else:
        entries, of_table = files, len(slices)
        size[partition] = _bytes_of_filter(table, slices)
    each = -(-entries // len(latest)) if latest else 0
    cost = IndexCost(commits=len(latest), entries_per_commit=each, bytes_per_commit=each * size[partition])
    read = sum(item.bytes for item in slices)
    return cost, EstimatedCost(bytes_read=read, bytes_written=of_table * size[partition], tasks=len(slices))


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


def writer_options(table: HudiTable, wanted: Indexes) -> tuple[WriterOption, ...]:
    """Returns the options that a Spark writer needs to keep these indexes."""
    chosen = indexes.options(table, wanted)
    enabled = {name: value for name, value in chosen.items() if name.endswith(".enable") and value == "true"}
    listed = {name: value for name, value in chosen.items() if name.endswith(".column.list")}
    return tuple(WriterOption(name=name, value=value) for name, value in {**enabled, **listed}.items())
