"""Compares the column statistics of the metadata table with the values in the files. Hudi's data skipping uses these
statistics to leave out files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.format.index_definitions import COLUMN_STATISTICS
from jobs.hudi import base_files, metadata_table
from jobs.hudi.jvm import translated
from jobs.hudi.records import FileSlice
from jobs.hudi.table import HudiTable

if TYPE_CHECKING:
    from pyspark.sql import Column


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


@dataclass(frozen=True)
class Compared:
    """The comparison of `files` and `columns`; `hiding` maps a column to the files whose rows its statistics hide."""

    files: int
    columns: tuple[str, ...]
    hiding: Mapping[str, Sequence[str]]


def compare(table: HudiTable, slices: Sequence[FileSlice]) -> Compared:
    """Compares the statistics of a sample of base files with their values: at most `_MOST_FILES` files with about
    `_MOST_BYTES` bytes in total, and `_MOST_COLUMNS` columns."""
    chosen = sample(slices) if COLUMN_STATISTICS in table.metadata_partitions else []
    if not chosen:
        return Compared(0, (), {})
    with translated("comparing the column statistics with the files"):
        frame = base_files.read(table, [item.base_file or "" for item in chosen])
        types = {name: kind for name, kind in frame.dtypes if not name.startswith("_hoodie_")}
        flat = [name for name, kind in types.items() if not kind.startswith(("array", "map", "struct"))][:_MOST_COLUMNS]
        records = stored(table, chosen, flat)
        known = [name for name in flat if any(column == name for _, column in records)]
        if not known:
            return Compared(0, (), {})
        wanted = [figure for name in known for figure in figures(name, types[name])]
        actual = frame.groupBy(F.col(base_files.FILE).alias("file")).agg(*wanted).collect()
    hiding: dict[str, list[str]] = {}
    for row in actual:
        for number, name in enumerate(known):
            count, low, high = row[1 + 3 * number : 4 + 3 * number]
            record = records.get((row[0], name))
            if record and count and hides(record, low, high, types[name]):
                hiding.setdefault(name, []).append(row[0])
    return Compared(len(chosen), tuple(known), hiding)


def sample(slices: Sequence[FileSlice]) -> list[FileSlice]:
    """Returns a sample of slices with Parquet base files, spread over all partitions: at most `_MOST_FILES` files with
    about `_MOST_BYTES` bytes in total."""
    based = [item for item in slices if item.base_file and item.base_file.endswith(".parquet")]
    found: list[FileSlice] = []
    total = 0
    for item in based[:: -(-len(based) // _MOST_FILES) or 1]:
        if found and total + item.base_bytes > _MOST_BYTES:
            break
        found.append(item)
        total += item.base_bytes
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
