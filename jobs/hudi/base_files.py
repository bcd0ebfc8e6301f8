"""Reads base files directly, without the table's timeline."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know
from pyspark.sql.types import StructField, StructType

from jobs.errors import RefusedError
from jobs.hudi.hadoop import storage_of
from jobs.hudi.jvm import translated
from jobs.hudi.table import HudiTable
from jobs.table_errors import DamagedFileError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FOOTERS_AT_ONCE = 16
_MOST_SUSPECTS = 100
_SCHEMA = "_hoodie_record_key string"
# Footers by the row writer of Hudi 0.15 mark the meta columns so. Spark then does not add `FILE` to the columns.
_OF_METADATA = "__metadata_col"

FILE = "_metadata.file_name"
"""Name of the column with the file of each row."""


def read(
    table: HudiTable, paths: Sequence[str], *, schema: str | StructType | None = None, **options: str
) -> DataFrame:
    """Returns the rows of these Parquet files, by this schema or else by the schema of one of the files. `options` are
    Spark's."""
    # Spark would otherwise expand the paths as patterns, and read folder names as columns.
    reader = table.jvm.spark.newSession().read.option("__globPaths__", "false").option("recursiveFileLookup", "true")
    frame = (reader.schema(schema) if schema else reader).options(**options).parquet(*paths)
    if schema or not any(_OF_METADATA in field.metadata for field in frame.schema):
        return frame
    return read(table, paths, schema=StructType([_unmarked(field) for field in frame.schema]), **options)


def _unmarked(field: StructField) -> StructField:
    kept = {key: value for key, value in field.metadata.items() if key != _OF_METADATA}
    return StructField(field.name, field.dataType, field.nullable, kept)


def alike(table: HudiTable, paths: Sequence[str]) -> list[list[str]]:
    """Returns these Parquet files in lists of the same columns that are not nested, the longest first. Spark (3.5)
    cannot read files together in which a column has different types. On a storage that Arrow does not know, all files
    are in one list. Reads footers."""
    try:
        storage = storage_of(table)
    except RefusedError:
        return [list(paths)]

    def columns(path: str) -> tuple[str, ...]:
        with storage.read_parquet(path) as file:
            return tuple(sorted(f"{each.name}: {each.type}" for each in file.schema_arrow if not each.type.num_fields))

    found: dict[tuple[str, ...], list[str]] = {}
    with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
        for path, key in zip(paths, pool.map(columns, paths), strict=True):
            found.setdefault(key, []).append(path)
    return sorted(found.values(), key=len, reverse=True)


def damaged(table: HudiTable, paths: Sequence[str]) -> dict[str, str]:
    """Returns the Parquet files that cannot be read, at most a hundred, with the reason. Reads only footers.

    Spark also skips a file if the storage does not answer, so each skipped file, and each file without rows, is read
    once more alone.
    """
    if not paths:
        return {}
    skipping = read(table, paths, schema=_SCHEMA, ignoreCorruptFiles="true")
    with translated("reading the footers of base files"):
        well = {row[0] for row in skipping.select(FILE).distinct().collect()}
    found = {}
    for path in [each for each in paths if each.rpartition("/")[2] not in well][:_MOST_SUSPECTS]:
        try:
            with translated(f"reading {path}", expected=DamagedFileError):
                read(table, [path], schema=_SCHEMA).count()
        except DamagedFileError as error:
            found[path] = error.detail
    return found


def counts(table: HudiTable, paths: Sequence[str]) -> dict[str, int]:
    """Returns the number of rows by file name; files without rows are left out. Reads only footers."""
    if not paths:
        return {}
    with translated("counting the rows of base files"):
        by_file = read(table, paths, schema=_SCHEMA).groupBy(F.col(FILE).alias("file"))
        return {row[0]: int(row[1]) for row in by_file.count().collect()}
