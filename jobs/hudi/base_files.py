"""Reads base files as they are, whatever the table's timeline says about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.hudi.jvm import translated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from jobs.hudi.table import HudiTable

FILE = "_metadata.file_name"
"""The column with the name of a row's file."""


def read(table: HudiTable, paths: Sequence[str], *, schema: str | None = None) -> DataFrame:
    """Returns the rows of these Parquet files, by this schema or that of one of them."""
    # The paths are no patterns, and the names of their folders are no columns.
    reader = table.jvm.spark.newSession().read.option("__globPaths__", "false").option("recursiveFileLookup", "true")
    return (reader.schema(schema) if schema else reader).parquet(*paths)


def counts(table: HudiTable, paths: Sequence[str]) -> dict[str, int]:
    """Returns the number of rows of each of these Parquet files by its name, without those that have none. Reads only
    footers."""
    if not paths:
        return {}
    with translated("counting the rows of base files"):
        by_file = read(table, paths, schema="_hoodie_record_key string").groupBy(F.col(FILE).alias("file"))
        return {row[0]: int(row[1]) for row in by_file.count().collect()}
