"""Compares the statistics of the metadata table with the values in the files and in the partitions. Hudi's data
skipping uses these statistics to leave out files and partitions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know
from pyspark.sql.types import StructType

from jobs.format.index_definitions import COLUMN_STATISTICS, PARTITION_STATISTICS
from jobs.format.meta_columns import PARTITION_PATH
from jobs.hudi import base_files, file_indexes, indexes, metadata_table
from jobs.hudi.jvm import translated
from jobs.hudi.partition_pruning import narrowed
from jobs.hudi.records import FileSlice
from jobs.hudi.rows import current
from jobs.hudi.table import HudiTable

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

Item = TypeVar("Item")

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

    `hiding` have entries that do not cover the values. `lacking` have values but no entry: Hudi skips these places if a
    query filters such a column and another one, and skips partitions even if it filters the column alone. `added` have
    neither values nor an entry, because they are older than the column: Hudi skips them for `column IS NULL` with
    another filter, and skips partitions also for a function of the column. `unindexed` have no entries at all, so that
    Hudi always reads them. (`DataSkippingUtils`, `PartitionStatsIndexSupport.prunePartitions`, 1.2.0.)
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
        frame, defined = current(table), _defined(table)
        # Hudi prunes by the values of partition columns, and not by their statistics.
        types = {name: kind for name, kind in _flat(frame).items() if name not in table.partition_fields}
        with metadata_table.reader(table) as metadata:
            raw_key = table.jvm.hudi.metadata.ColumnStatsIndexPrefixRawKey
            keys = [raw_key(name, path) for name in types for path in paths]
            entries = _by_place(_scanned(table, metadata, PARTITION_STATISTICS, keys))
            # If a column is no longer indexed, Hudi ignores its bounds, but skips the partitions without an entry.
            columns = {column for _, column in entries}
            columns |= _indexed(table, metadata, types.keys() - columns - (defined if columns else set()))
        types = {name: kind for name, kind in types.items() if name in defined | columns}
        indexed = paths if columns else ()
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
    """Returns the rows of these files, which all have the same columns. Columns in `columns` that the files lack are
    null."""
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
    """Adds the places with wrong statistics to `found`. `actual` has a row for each place: its name, the number of its
    rows, and the `figures` of each column. The `expected` columns should have an entry for each of the `indexed`
    places; bounds are compared for the `defined` columns, or for all columns if none is defined."""
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


def _scanned(table: HudiTable, metadata: Any, partition: str, keys: Sequence[Any]) -> Iterator[Any]:
    """Yields the records (`HoodieMetadataColumnStats`) with these keys, or with keys that begin with them, of all file
    groups of a partition of the metadata table.

    Spark cannot read all of them: Hudi 1.0 stores the metadata table's schema without meta fields, and a query of Hudi
    1.2.0 cannot merge two records of statistics with it (`HoodieMetadataPayload.getInsertValue`).
    """
    wanted = table.jvm.hudi.common.data.HoodieListData.eager(table.jvm.objects(keys))
    found = metadata.getRecordsByKeyPrefixes(wanted, partition, True).collectAsList()
    records = (each.getData().getColumnStatMetadata().get() for each in found)
    return (each for each in records if not each.getIsDeleted())


def _indexed(table: HudiTable, metadata: Any, columns: Collection[str]) -> set[str]:
    """Returns which of these columns have an entry of any partition."""

    def has_entry(names: Collection[str]) -> bool:
        keys = [table.jvm.hudi.metadata.ColumnStatsIndexPrefixRawKey(name) for name in names]
        return any(True for _ in _scanned(table, metadata, PARTITION_STATISTICS, keys))

    return {name for name in columns if has_entry([name])} if columns and has_entry(columns) else set()


def _by_place(records: Iterable[Any]) -> dict[tuple[str, str], Any]:
    """Returns records of statistics by place and column. Avro prints a record as JSON."""
    groups = (json.loads(str(each.toString())) for each in records)
    return {(each["fileName"], each["columnName"]): each for each in groups}


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
    jvm = table.jvm
    with metadata_table.reader(table) as metadata:
        if file_indexes.mixed_in(table, COLUMN_STATISTICS):  # Queries scan all file groups, a lookup only one of them.
            raw_key = jvm.hudi.metadata.ColumnStatsIndexRawKey
            keys = [raw_key(item.partition, item.base_name, name) for item in chosen for name in columns]
            return _by_place(_scanned(table, metadata, COLUMN_STATISTICS, keys))
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
