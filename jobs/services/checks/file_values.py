"""Compares two indexes with the values in the files: Bloom filters of record keys, and expression indexes. A writer
looks for a key only in files whose Bloom filter contains it, and a query with an expression reads only files whose
index entry contains the value. So a value that the index lacks hides rows; a value that only the index has costs time,
nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.dataplane.bloom_filter import BloomFilter
from jobs.format.index_definitions import BLOOM_FILTERS, EXPRESSION
from jobs.format.meta_columns import RECORD_KEY
from jobs.hudi import base_files, column_stats, file_indexes, indexes
from jobs.hudi.index_entries import MOST_NAMED, SAME_TEXT, Differences
from jobs.hudi.jvm import translated

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from pyspark.sql import Column

    from jobs.format.index_definitions import IndexDefinition
    from jobs.hudi.records import FileSlice
    from jobs.hudi.table import HudiTable

# The values of these functions depend on the time zone of the session that wrote the index.
_BY_ZONE = frozenset({"hour", "from_unixtime", "to_timestamp", "unix_timestamp"})


def compare(table: HudiTable, slices: Sequence[FileSlice], names: Collection[str] | None = None) -> list[Differences]:
    """Returns the indexes that lack values of the sampled base files (`column_stats.sample`). Without `names` all
    indexes are compared."""
    among = table.metadata_partitions.intersection(names) if names else table.metadata_partitions
    names = {name for name in among if name.startswith((BLOOM_FILTERS, EXPRESSION))}
    files = column_stats.sample(slices) if names else []
    if not files:
        return []
    defined = indexes.definitions(table)
    found = []
    for name in sorted(names):
        missing: list[str] = []
        if name in defined and name.startswith(EXPRESSION):
            missing = _of_expression(table, defined[name], files)
        elif name == BLOOM_FILTERS and table.has_meta_fields:
            missing = _of_keys(table, files)
        if missing:
            found.append(Differences(name, tuple(missing[:MOST_NAMED]), ()))
    return found


def _of_keys(table: HudiTable, files: Sequence[FileSlice]) -> list[str]:
    filters = file_indexes.filters(table, BLOOM_FILTERS, files)
    without = [item for item in files if item.base_name not in filters and file_indexes.has_filter(table, item)]
    lacking = _beyond(table, filters, files, "key", F.col(RECORD_KEY))
    return [f"the Bloom filter of file {item.base_name}" for item in without] + lacking


def _of_expression(table: HudiTable, index: IndexDefinition, files: Sequence[FileSlice]) -> list[str]:
    with translated(f"comparing {index.name} with the files"):
        rows = base_files.read(table, [item.base_file or "" for item in files])
        if index.columns[0].partition(".")[0] not in rows.columns:
            return []  # Spark takes the schema of one of the files, which may lack a new column.
        is_by_zone = index.function in _BY_ZONE or rows.select(file_indexes.source(index)).dtypes[0][1] == "timestamp"
        value = file_indexes.expression(table, index)
        kind = rows.select(value).dtypes[0][1]
    what = f"{index.function}({', '.join(index.columns)})"
    if is_by_zone:
        return []
    if index.kind == BLOOM_FILTERS:
        filters = file_indexes.filters(table, index.name, files)
        return _beyond(table, filters, files, what, value) if kind in SAME_TEXT else []
    entries = file_indexes.ranges(table, index, files)
    with translated(f"comparing {index.name} with the files"):
        by_file = rows.select(F.col(base_files.FILE).alias("file"), value.alias("value")).groupBy("file")
        counted = by_file.agg(*column_stats.figures("value", kind)).orderBy("file").collect()
    return [
        f"the range {'' if low is None else f'{low!r} to {high!r} '}of {what} in file {file}"
        for file, count, low, high in counted
        if file in entries and count and column_stats.hides(entries[file], low, high, kind)
    ]


def _beyond(
    table: HudiTable,
    filters: Mapping[str, tuple[str, bytes]],
    files: Sequence[FileSlice],
    what: str,
    column: Column,
) -> list[str]:
    """Returns the values that the filters of their files do not contain."""

    def judge(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        name, of_name = "", None
        for batch in batches:
            for file in pc.unique(batch.column(0)).to_pylist():
                if of_name is None or name != file:
                    code, serialized = filters[file]
                    name, of_name = file, BloomFilter.stored(serialized, code)
                values = batch.filter(pc.equal(batch.column(0), file))
                yield values.filter(pa.array(~of_name.has(values.column(1))))

    paths = [item.base_file or "" for item in files if item.base_name in filters]
    if not paths:
        return []
    with translated("comparing Bloom filters with the files"):
        file, value = F.col(base_files.FILE).alias("file"), column.cast("string").alias("value")
        values = base_files.read(table, paths).select(file, value)
        lacking = values.where(F.col("value").isNotNull()).mapInArrow(judge, values.schema)
        found = lacking.orderBy("value", "file").limit(MOST_NAMED).collect()
    return [f"{what} '{row.value}' of file {row.file}" for row in found]
