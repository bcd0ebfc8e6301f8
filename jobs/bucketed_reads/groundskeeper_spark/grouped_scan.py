"""Hudi's own read of a table with one task per bucket, and data sets over it with a declared partitioning.

Hudi's relation plans a scan of file slices; the scan's file partitions are replaced by one for each bucket, so that
Hudi's file group reader, the pushed filters and the pruned columns stay. `HashPartitioning` declares more than is true:
rows are placed by Hudi's hash, not by Spark's. So no data set with this declaration leaves this package; `sealed` hides
the declaration.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from groundskeeper_spark.table import NotColocatedError, Snapshot, Table, bucket_of_file, snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TYPES = {"string", "tinyint", "smallint", "int", "bigint"}
_ATTEMPTS = 3
_NOT_READ = -1


@dataclass(frozen=True)
class Opened:
    """A table whose keys can be co-located: its snapshot, its rows of that snapshot or a later one, and the types of
    its hash fields."""

    table: Table
    snapshot: Snapshot
    rows: DataFrame
    types: tuple[str, ...]


@dataclass(frozen=True)
class GroupedScan:
    """The rows of a table. Spark takes them for partitioned by the hash fields, so they must be `sealed` before they
    leave this package. Task i reads bucket i, modulo the length of `bytes_of_buckets`. `listed` are the buckets of all
    files of the listing, also of those that are not read."""

    snapshot: Snapshot
    rows: DataFrame
    bytes_of_buckets: list[int]
    listed: frozenset[int]


def opened(spark: SparkSession, plan: Any, table: Table) -> Opened:
    """Raises `NotColocatedError` unless the table has simple buckets and equal values of its keys have equal texts."""
    found = snapshot(plan, table)
    rows = plan.read(table.path)
    types = json.loads(plan.types(rows))
    for name in table.hash_fields:
        if types.get(name) not in _TYPES:
            raise NotColocatedError(f"the hash field {name} has the type {types.get(name)}, whose text is not fixed")
    return Opened(table, found, DataFrame(rows, spark), tuple(types[name] for name in table.hash_fields))


def scan(
    spark: SparkSession,
    plan: Any,
    found: Opened,
    modulus: int,
    narrowed: Callable[[DataFrame], DataFrame],
    *,
    only: Collection[int] | None = None,
) -> GroupedScan:
    """Plans the read of one snapshot, narrowed by columns and filters. If `only` is given, it reads only these buckets.

    Raises `NotColocatedError` if commits keep landing meanwhile, or a file group is not of the layout.
    """
    table = found.table
    fields = json.dumps(table.hash_fields)
    wrong = f"groundskeeper: {table.path} has a row outside of its bucket. Check the declared buckets and hash fields."

    def checked(rows: DataFrame) -> DataFrame:
        return DataFrame(plan.checked(rows._jdf, fields, modulus, wrong), spark)

    for _ in range(_ATTEMPTS):
        # Where buckets are left out, all rows of the others are checked: a filter by key would hide the misplaced rows.
        rows = checked(narrowed(found.rows)) if only is None else narrowed(checked(found.rows))
        files = json.loads(plan.files(rows._jdf))
        if isinstance(files, str):
            raise NotColocatedError(f"Hudi {files}")
        listed = [bucket_of_file(name) for name, _ in files]
        buckets = [number % modulus for number in listed]
        if only is not None:
            buckets = [bucket if bucket in only else _NOT_READ for bucket in buckets]
        if snapshot(plan, table) == found.snapshot:
            sizes = [0] * modulus
            for bucket, (_, size) in zip(buckets, files, strict=True):
                if bucket != _NOT_READ:
                    sizes[bucket] += size
            declared = plan.declared(rows._jdf, json.dumps(buckets), fields, modulus)
            return GroupedScan(found.snapshot, DataFrame(declared, spark), sizes, frozenset(listed))
        found = opened(spark, plan, table)
    raise NotColocatedError(f"commits kept landing in {table.path} while it was planned")


def sealed(spark: SparkSession, plan: Any, rows: DataFrame) -> tuple[DataFrame, str]:
    """Returns the rows without the declared partitioning, by which Spark would misplace the rows of a third table, and
    their plan.

    Raises `NotColocatedError` if the plan moves rows between tasks.
    """
    found = plan.sealed(rows._jdf)
    if found is None:
        raise NotColocatedError("Spark plans an exchange although the rows are co-located")
    return DataFrame(found, spark), str(plan.text())
