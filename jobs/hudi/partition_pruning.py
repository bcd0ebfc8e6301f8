"""Narrows a read to some partitions, so that Hudi opens no file of any other one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.format.partition_values import NULL

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark.sql import Column, DataFrame

    from jobs.hudi.table import HudiTable


@dataclass(frozen=True)
class Narrowed:
    """Rows, and the paths of the partitions in whose folders they are."""

    rows: DataFrame
    paths: frozenset[str]


def narrowed(table: HudiTable, frame: DataFrame, partitions: Collection[str]) -> Narrowed | None:
    """Returns the rows in the folders of these partitions, and perhaps of a few more partitions. Partitions are left
    out if their paths are not made of the values of the partition fields. Returns None if Hudi cannot choose folders of
    this table by values.

    A filter by the meta column alone would read the whole table.
    """
    if not table.partition_fields or not set(table.partition_fields) <= set(frame.columns):
        return None
    chosen = frame.where(_path(table).isin(_spellings(partitions)))
    try:
        paths = _paths_read(chosen)
    except Py4JJavaError:
        # For a custom key generator of timestamps, Hudi takes the text of a path for a value of the column's type.
        return None
    return None if paths is None else Narrowed(chosen, paths)


def _path(table: HudiTable) -> Column:
    """Returns the path that the values of a partition make."""
    is_named = table.names_partition_fields
    values = [F.coalesce(F.col(f"`{name}`").cast("string"), F.lit(NULL)) for name in table.partition_fields]
    names = [f"{name}=" if is_named else "" for name in table.partition_fields]
    return F.concat_ws("/", *(F.concat(F.lit(name), value) for name, value in zip(names, values, strict=True)))


def _spellings(partitions: Collection[str]) -> list[str]:
    # Hudi decodes the values of some tables. A spelling too many only makes Hudi read one more partition.
    return sorted({text for path in partitions for text in (path, unquote(path))})


def _paths_read(chosen: DataFrame) -> frozenset[str] | None:
    """Returns the paths of the partitions that this plan reads, or None if it compares rows with the condition. The
    values in the files may differ from those in the path."""
    plan: Any = chosen._jdf.queryExecution().executedPlan()
    leaves = plan.collectLeaves()
    scan = leaves.apply(0)
    if leaves.size() != 1 or scan.getClass().getSimpleName() != "FileSourceScanExec":
        return None
    conditions = scan.partitionFilters()
    index = scan.relation().location()
    if conditions.isEmpty() or not scan.dataFilters().isEmpty():
        return None
    # Spark asks for the same files when it reads the rows.
    read = index.filterFileSlices(scan.dataFilters(), conditions, False)
    found = (read.apply(at)._1() for at in range(read.size()))
    return frozenset(str(each.get().getPath()) for each in found if each.isDefined())
