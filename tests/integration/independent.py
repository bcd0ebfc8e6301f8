"""Reads tables with hudi-rs, which shares no code with Hudi's Java or with ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from hudi import HudiTable

from service.lake.file_slices import FileSlice
from tests.integration import tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, Row, SparkSession


def rows_by_hudi_rs(base: Path | str, options: dict[str, str] | None = None) -> list[str]:
    table = pa.Table.from_batches(HudiTable(str(base), options=options or {}).read())
    return sorted(str(_plain(row)) for row in table.drop_columns(["_hoodie_file_name"]).to_pylist())


def slices_by_hudi_rs(base: Path | str) -> list[FileSlice]:
    """Returns the latest file slices that have a base file, in the order of partition and file id."""
    found = [
        FileSlice(
            partition_path=each.partition_path,
            file_id=each.file_id,
            base_file=each.base_file_name,
            base_bytes=each.base_file_size,
            logs=tuple(sorted(each.log_file_names)),
            log_bytes=sum(each.log_file_sizes),
        )
        for each in HudiTable(str(base)).get_file_slices()
    ]
    return sorted(found, key=lambda each: (each.partition_path, each.file_id))


def rows_by_spark(spark: SparkSession, base: Path | str) -> list[str]:
    found = tables.collected(spark, base)
    return _texts(found.rows, found.columns)


def rows_of(frame: DataFrame) -> list[str]:
    """Returns the rows of a Hudi table; the order of its columns does not matter."""
    return _texts(frame.collect(), frame.columns)


def _texts(rows: Iterable[Row], columns: Sequence[str]) -> list[str]:
    names = [name for name in columns if name != "_hoodie_file_name"]
    dictionaries = (row.asDict(recursive=True) for row in rows)
    return sorted(str(_plain({name: row[name] for name in names})) for row in dictionaries)


def _plain(value: Any) -> Any:
    """Converts the values of both readers to the same types: Arrow has maps as lists of pairs, Spark has binary values
    as bytearray, and times without zone."""
    if isinstance(value, dict):
        return sorted((key, _plain(item)) for key, item in value.items())
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, tuple):
        return tuple(_plain(item) for item in value)
    if isinstance(value, bytearray):
        return bytes(value)
    if hasattr(value, "tzinfo") and value.tzinfo is not None:
        return value.replace(tzinfo=None)
    return value
