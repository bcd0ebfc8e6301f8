"""Finds what the statistics of files and of partitions lack (Hudi 1.2.0). A build of Hudi leaves out files whose footer
it cannot read, and says so in the log only (`HoodieTableMetadataUtil.readColumnRangeMetadataFrom`)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.format.index_definitions import COLUMN_STATISTICS, PARTITION_STATISTICS
from jobs.format.meta_columns import PARTITION_PATH
from jobs.hudi import column_stats, indexes
from jobs.hudi.hadoop import storage_of
from jobs.hudi.index_entries import entries_of
from jobs.hudi.jvm import translated
from jobs.hudi.records import FileSlice
from jobs.hudi.rows import current
from jobs.hudi.table import HudiTable

_MOST_NAMED = 100
_MOST_COLUMNS, _MOST_PARTITIONS = 32, 64


def find(table: HudiTable, partition: str, slices: Sequence[FileSlice]) -> tuple[str, ...]:
    """Returns texts for users about what these statistics lack or hide, at most `_MOST_NAMED`. Compares a sample of
    files, or of partitions."""
    found = _of_files(table, slices) if partition == COLUMN_STATISTICS else _of_partitions(table, slices)
    return tuple(found[:_MOST_NAMED])


def _of_files(table: HudiTable, slices: Sequence[FileSlice]) -> list[str]:
    chosen = column_stats.sample(slices)
    columns = _columns(table)
    with translated("reading the column statistics"):
        stored = {file for file, _ in column_stats.stored(table, chosen, columns)} if columns else set()
    found = [f"file {item.base_name}" for item in chosen if item.base_name not in stored and _has_rows(table, item)]
    hiding = column_stats.compare(table, slices).hiding
    return found + [f"{name} in {len(files)} files, such as {files[0]}" for name, files in hiding.items()]


def _has_rows(table: HudiTable, item: FileSlice) -> bool:
    with storage_of(table).read_parquet(item.base_file or "") as reader:
        return bool(reader.metadata.num_rows)


def _of_partitions(table: HudiTable, slices: Sequence[FileSlice]) -> list[str]:
    paths = sorted({item.partition for item in slices})
    paths = paths[:: -(-len(paths) // _MOST_PARTITIONS) or 1]
    with translated("comparing the statistics of partitions with the rows"):
        frame = current(table).where(F.col(PARTITION_PATH).isin(paths))
        types = {name: kind for name, kind in frame.dtypes if name in _columns(table)}
        record = F.col("ColumnStatsMetadata")
        stored = entries_of(table, PARTITION_STATISTICS).where(record["fileName"].isin(paths))
        rows = stored.select(F.to_json(record)).collect()
        known = {(each["fileName"], each["columnName"]): each for each in (_record(row[0]) for row in rows)}
        wanted = [figure for name, kind in types.items() for figure in column_stats.figures(name, kind)]
        actual = frame.groupBy(F.col(PARTITION_PATH)).agg(*wanted).collect()
    found = []
    for row in actual:
        for number, (name, kind) in enumerate(types.items()):
            count, low, high = row[1 + 3 * number : 4 + 3 * number]
            each = known.get((row[0], name))
            if each is None or (count and column_stats.hides(each, low, high, kind)):
                found.append(f"{name} of partition '{row[0]}'")
    return found


def _columns(table: HudiTable) -> list[str]:
    """Returns the columns that have statistics, without meta fields and nested ones."""
    defined = indexes.definitions(table).get(COLUMN_STATISTICS)
    names = defined.columns if defined else ()
    return [name for name in names if not name.startswith("_hoodie_") and "." not in name][:_MOST_COLUMNS]


def _record(text: str) -> dict[str, Any]:
    """Returns a record of statistics with its values in the form of Avro's JSON. Spark reads a union as a struct."""
    found: dict[str, Any] = json.loads(text)
    for name in ("minValue", "maxValue"):
        values = [each for each in (found.get(name) or {}).values() if isinstance(each, dict) and "value" in each]
        found[name] = values[0] if values else None
    return found
