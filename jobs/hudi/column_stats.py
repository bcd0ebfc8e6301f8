"""Compares the statistics of the metadata table with the values in the files and in the partitions. Hudi's data
skipping uses these statistics to leave out files and partitions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know
from pyspark.sql.types import StructType

from jobs.format.index_definitions import COLUMN_STATISTICS, PARTITION_STATISTICS
from jobs.format.meta_columns import PARTITION_PATH
from jobs.hudi import base_files, file_indexes, indexes, metadata_table
from jobs.hudi.index_entries import entries_of
from jobs.hudi.jvm import translated
from jobs.hudi.partition_pruning import narrowed
from jobs.hudi.records import FileSlice
from jobs.hudi.rows import current
from jobs.hudi.table import HudiTable

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

Item = TypeVar("Item")

_RECORD = "ColumnStatsMetadata"  # the field of `HoodieMetadataRecord`
_MOST_FILES = 64
_MOST_COLUMNS = 32
_MOST_BYTES = 1 << 30
# Ranges are compared for these types. For all others only the counts of nulls are compared.
_RANGED: Mapping[str, Callable[[Any], Any]] = {
    "string": str,
    "int": int,
    "bigint": int,
    "smallint": int,
    "tinyint": int,
    "double": float,
    "float": np.float32,
}


@dataclass
class Compared:
    """The comparison of statistics with the values of `places`: base files, or partition paths. Each mapping has the
    places by column.

    `hiding` have entries that do not cover the values. `lacking` have values without an entry: Hudi skips them for a
    filter on such a column and another one, and partitions also for a filter on the column alone. `added` have neither
    values nor entry, because they are older than the column: Hudi skips them for `column IS NULL` with another filter,
    and partitions also for a function of the column. `unindexed` have no entries at all, so that Hudi always reads
    them. (`DataSkippingUtils`, `PartitionStatsIndexSupport.prunePartitions`, 1.2.0.)
    """

    places: int = 0
    hiding: dict[str, list[str]] = field(default_factory=dict)
    lacking: dict[str, list[str]] = field(default_factory=dict)
    added: dict[str, list[str]] = field(default_factory=dict)
    unindexed: list[str] = field(default_factory=list)


def of_files(table: HudiTable, slices: Sequence[FileSlice]) -> Compared:
    """Compares the column statistics of a sample of base files with their values, for `_MOST_COLUMNS` columns."""
    chosen = sample(slices) if COLUMN_STATISTICS in table.metadata_partitions else []
    if not chosen:
        return Compared()
    found = Compared()
    with translated("comparing the column statistics with the files"):
        defined = _defined(table)
        frames = [_opened(table, paths, defined) for paths in base_files.alike(table, [_path(item) for item in chosen])]
        entries = stored(table, chosen, list(dict.fromkeys(name for frame in frames for name in _flat(frame))))
        files, columns = {file for file, _ in entries}, defined | {column for _, column in entries}
        for frame in frames:
            types = {name: kind for name, kind in _flat(frame).items() if name in columns}
            actual = _figures(frame, F.col(base_files.FILE).alias("file"), types)
            _compare(found, actual, types, entries, indexed=files, expected=defined, defined=defined)
    return found


def of_partitions(table: HudiTable, slices: Sequence[FileSlice]) -> Compared:
    """Compares the statistics of a sample of partitions with the values of their rows, for `_MOST_COLUMNS` columns: of
    at most `_MOST_FILES` partitions, with about `_MOST_BYTES` bytes in total. If a partition is larger, or its path is
    not made of the values of its columns, only some of its files without logs are read: the statistics have to cover
    their rows as well."""
    sizes: Counter[str] = Counter()
    for item in slices:
        sizes[item.partition] += item.bytes
    paths = _limited(sorted(sizes.items()))
    if not paths or PARTITION_STATISTICS not in table.metadata_partitions:
        return Compared()
    found = Compared()
    with translated("comparing the statistics of partitions with the rows"):
        frame, record = current(table), F.col(_RECORD)
        every = _kept(table, PARTITION_STATISTICS)
        # If a column is no longer indexed, Hudi ignores its bounds, but still skips the partitions without an entry.
        columns = {row[0] for row in every.select(record["columnName"]).distinct().collect()}
        defined = _defined(table)
        types = {name: kind for name, kind in _flat(frame).items() if name in defined | columns}
        # Hudi prunes by the values of partition columns, and not by their statistics.
        types = {name: kind for name, kind in types.items() if name not in table.partition_fields}
        entries, indexed = _scanned(every, paths), paths if columns else ()
        whole = [] if sum(sizes[each] for each in paths) > _MOST_BYTES else paths
        narrow = narrowed(table, frame, whole) if whole else None
        actual = (
            _figures(narrow.rows.where(F.col(PARTITION_PATH).isin(whole)), F.col(PARTITION_PATH), types)
            if narrow
            else []
        )
        _compare(found, actual, types, entries, indexed=indexed, expected=types, defined=defined)
        # Without meta fields no row has the path of its partition.
        left = set(paths) - {row[0] for row in actual} if table.has_meta_fields else set()
        if files := sample([item for item in slices if item.partition in left and not item.log_files]):
            frame = _opened(table, base_files.alike(table, [_path(item) for item in files])[0], types)
            types = {name: kind for name, kind in _flat(frame).items() if name in types}
            actual = _figures(frame, F.col(PARTITION_PATH), types)
            _compare(found, actual, types, entries, indexed=indexed, expected=types, defined=defined)
    return found


def _opened(table: HudiTable, paths: Sequence[str], columns: Collection[str]) -> DataFrame:
    """Returns the rows of these files, which have the same columns, with null in those of `columns` that they lack."""
    frame = base_files.read(table, paths)
    if not set(columns) - set(frame.columns):
        return frame
    fields = [each for each in current(table).schema if each.name in set(columns) - set(frame.columns)]
    return base_files.read(table, paths, schema=StructType([*frame.schema, *fields]))


def _path(item: FileSlice) -> str:
    return item.base_file or ""


def _figures(frame: DataFrame, place: Column, types: Mapping[str, str]) -> list[Row]:
    wanted = [figure for name, kind in types.items() for figure in figures(name, kind)]
    return frame.groupBy(place).agg(F.count("*"), *wanted).collect()


def _compare(
    found: Compared,
    actual: Sequence[Row],
    types: Mapping[str, str],
    entries: Mapping[tuple[str, str], Any],
    *,
    indexed: Collection[str],
    expected: Collection[str],
    defined: Collection[str],
) -> None:
    """Adds what is wrong to `found`. `actual` has a row for each place: its name, the number of its rows, and the
    `figures` of each column. The `expected` columns should have an entry for each of the `indexed` places; bounds are
    those of `defined` columns, or of all if none is defined."""
    found.places += len(actual)
    for row in actual:
        place = row[0]
        if place not in indexed:
            found.unindexed.append(place)
            continue
        for number, (name, kind) in enumerate(types.items()):
            count, low, high = row[2 + 3 * number : 5 + 3 * number]
            entry = entries.get((place, name))
            if entry is None and name in expected:
                (found.lacking if count else found.added).setdefault(name, []).append(place)
            elif entry is not None and count and name in (defined or types) and hides(entry, low, high, kind):
                found.hiding.setdefault(name, []).append(place)


def _defined(table: HudiTable) -> set[str]:
    """Returns the columns that have statistics by the definition of the index."""
    defined = indexes.definitions(table).get(COLUMN_STATISTICS)
    return (
        {name for name in defined.columns if not name.startswith("_hoodie_") and "." not in name} if defined else set()
    )


def _flat(frame: DataFrame) -> dict[str, str]:
    """Returns the types of the columns that are neither nested nor meta fields, at most `_MOST_COLUMNS`."""
    types = [(name, kind) for name, kind in frame.dtypes if not name.startswith("_hoodie_")]
    return dict([each for each in types if not each[1].startswith(("array", "map", "struct"))][:_MOST_COLUMNS])


def _kept(table: HudiTable, partition: str) -> DataFrame:
    return entries_of(table, partition).where(~F.col(_RECORD)["isDeleted"])


def _scanned(every: DataFrame, places: Sequence[str]) -> dict[tuple[str, str], Any]:
    """Returns the records of these places, by place and column."""
    record = F.col(_RECORD)
    rows = every.where(record["fileName"].isin(list(places))).select(F.to_json(record)).collect()
    return {(each["fileName"], each["columnName"]): each for each in (_record(row[0]) for row in rows)}


def _record(text: str) -> dict[str, Any]:
    """Returns a record of statistics with its values in the form of Avro's JSON. Spark reads a union as a struct."""
    found: dict[str, Any] = json.loads(text)
    for name in ("minValue", "maxValue"):
        values = [each for each in (found.get(name) or {}).values() if isinstance(each, dict) and "value" in each]
        found[name] = values[0] if values else None
    return found


def sample(slices: Sequence[FileSlice]) -> list[FileSlice]:
    """Returns a sample of slices with Parquet base files, spread over all partitions: at most `_MOST_FILES` files with
    about `_MOST_BYTES` bytes in total."""
    based = [item for item in slices if item.base_file and item.base_file.endswith(".parquet")]
    return _limited([(item, item.base_bytes) for item in based])


def _limited(sized: Sequence[tuple[Item, int]]) -> list[Item]:
    """Returns a sample of these items, given with their sizes in bytes."""
    found: list[Item] = []
    total = 0
    for item, size in sized[:: -(-len(sized) // _MOST_FILES) or 1]:
        if found and total + size > _MOST_BYTES:
            break
        found.append(item)
        total += size
    return found


def figures(name: str, kind: str) -> list[Column]:
    """Returns aggregations for the number of values, the least and the greatest value of a column of this type."""
    column = F.col(f"`{name}`")
    count = F.count(column)
    if kind not in _RANGED:
        return [count, F.lit(None), F.lit(None)]
    # NaN is left out, because data skipping ignores it too.
    ranged = F.when(~F.isnan(column), column) if kind in ("double", "float") else column
    return [count, F.min(ranged), F.max(ranged)]


def stored(table: HudiTable, chosen: Sequence[FileSlice], columns: Sequence[str]) -> dict[tuple[str, str], Any]:
    """Returns the records (`HoodieMetadataColumnStats`) by file name and column."""
    if file_indexes.mixed_in(table, COLUMN_STATISTICS):  # Queries scan all file groups, a lookup only one of them.
        return _scanned(_kept(table, COLUMN_STATISTICS), [item.base_name for item in chosen])
    jvm = table.jvm
    with metadata_table.reader(table) as metadata:
        files = [jvm.hudi.common.util.collection.Pair.of(item.partition, item.base_name) for item in chosen]
        found = metadata.getColumnStats(jvm.objects(files), jvm.list(columns))
        # Avro prints a record as JSON.
        groups = [json.loads(str(records.toString())) for file in files if (records := found.get(file)) is not None]
    return {(each["fileName"], each["columnName"]): each for group in groups for each in group}


def hides(record: Mapping[str, Any], low: Any, high: Any, kind: str) -> bool:
    """Returns whether a filter on the record's column of type `kind` may wrongly skip the file, whose values go from
    `low` to `high`."""
    typed = _RANGED.get(kind)
    if record.get("isDeleted"):
        return False
    if record["nullCount"] == record["valueCount"]:  # According to these statistics the file has no value.
        return True
    least, most = (record[name] and record[name].get("value") for name in ("minValue", "maxValue"))
    if typed is None or low is None:
        return False
    if least is None or most is None:
        return True
    return bool(typed(low) < typed(least) or typed(high) > typed(most))
