"""Writes tables with the indexes of Hudi 1.2 as a user's Spark job does, and reads the indexes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.format.index_definitions import EXPRESSION, SECONDARY
from jobs.hudi import index_entries
from jobs.hudi.indexes import definitions
from jobs.services.checks import file_values
from tests.integration import tables
from tests.integration.run import hudi_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

GLOBAL = {"hoodie.index.type": "RECORD_INDEX", "hoodie.metadata.record.index.enable": "true"}
BY_PARTITION = {"hoodie.index.type": "RECORD_LEVEL_INDEX", "hoodie.metadata.record.level.index.enable": "true"}
SECONDARY_ON_CITY = {"hoodie.metadata.index.secondary.column": "city"}
STATISTICS = {"hoodie.metadata.index.column.stats.enable": "true"}
OF_SOME_COLUMNS = {**STATISTICS, "hoodie.metadata.index.column.stats.column.list": "region,city"}
BLOOM = {"hoodie.metadata.index.bloom.filter.enable": "true"}
YEAR = {
    "hoodie.metadata.index.expression.enable": "true",
    "hoodie.metadata.index.expression.column": "day",
    "hoodie.metadata.index.expression.options": "expr=year",
}
UPPER_REGION = {
    "hoodie.metadata.index.expression.enable": "true",
    "hoodie.metadata.index.expression.column": "region",
    "hoodie.metadata.index.expression.options": "expr=upper",
    "hoodie.expression.index.type": "bloom_filters",
}
"""Writer options that build an index, or use it to look up keys."""

# A record index has ten files by default, all of which are rewritten or read each time. Each write looks for the
# secondary keys of a handful of files in 200 tasks, and for rows that have moved in 60, four times beside logs. Each
# query looks for the entries of its keys in 200.
FEW_FILES = {
    **{f"hoodie.metadata.record.index.{most}.filegroup.count": "2" for most in ("min", "max")},
    "hoodie.metadata.index.secondary.parallelism": "2",
    "hoodie.metadata.repartition.default.partitions": "2",
    "hoodie.global.index.reconcile.parallelism": "2",
}

ALL = {**GLOBAL, **SECONDARY_ON_CITY, **STATISTICS, **BLOOM, **YEAR}
ALL_BY_PARTITION = {**BY_PARTITION, **STATISTICS, **BLOOM, **YEAR}

COUNT = 90
# The file in which a rebuild of the metadata table keeps its progress, for the next attempt if this one dies.
NOTE = ".hoodie/.aux/groundskeeper.indexes"
CONDITIONS = ("id = 'k7'", "city = 433", "region = 'r3'", "year(day) = 2020", "ts >= 0")


def write(spark: SparkSession, base: Path, indexes: dict[str, str], **shape: Any) -> dict[str, str]:
    """Writes `COUNT` rows, in two small file groups in each partition, the first of them updated; returns the writer's
    options."""
    # An expression index needs an existing schema. A secondary index misses the new rows of the write that builds it
    # (Hudi 1.2.0).
    first = {name for name in indexes if ".expression." not in name and ".secondary." not in name}
    more = {
        "hoodie.parquet.small.file.limit": "0",
        # See `jobs.hudi.indexes`.
        "hoodie.embed.timeline.server": "true",
        **FEW_FILES,
    }
    options = tables.writer_options(base, num_buckets=None, **{**shape, **more, **indexes})
    before = {name: value for name, value in options.items() if name in first or name not in indexes}
    tables.upsert(tables.rows(spark, 0, COUNT * 2 // 3), base, before)
    tables.upsert(tables.rows(spark, COUNT * 2 // 3, COUNT), base, before)
    tables.upsert(tables.rows(spark, 0, COUNT // 3, ts=1), base, options)
    return options


def index_state(spark: SparkSession, base: Path) -> tuple[list[str], dict[str, Any]]:
    """Returns the partitions of the metadata table, and the stored definitions of the indexes."""
    table = hudi_table(spark, base, None)
    stored = base / ".hoodie" / ".index_defs" / "index.json"
    assert definitions(table).keys() >= {
        name for name in table.metadata_partitions if name.startswith((SECONDARY, EXPRESSION))
    }
    return sorted(table.metadata_partitions), json.loads(stored.read_text()) if stored.exists() else {}


def file_groups(base: Path) -> dict[str, set[str]]:
    """Returns the file ids in the partitions of the metadata table."""
    files = (base / ".hoodie" / "metadata").glob("[a-z]*/**/*-0_*")
    found: dict[str, set[str]] = {}
    for file in files:
        if not file.name.endswith(".crc"):
            found.setdefault(file.parent.name, set()).add(file.name.lstrip(".").partition("-0_")[0])
    return found


def assert_right(spark: SparkSession, base: Path) -> None:
    """Asserts that each index agrees with the rows, and that queries by the indexes find the same rows as a scan."""
    table = hudi_table(spark, base, None)
    slices = table.file_slices()
    assert [*index_entries.compare(table, slices), *file_values.compare(table, slices)] == []
    assert all(found_by_indexes(spark, base, CONDITIONS))


def found_by_indexes(spark: SparkSession, base: Path, conditions: Sequence[str]) -> list[list[str]]:
    """Returns the keys that a query of each condition finds by the indexes, after it has asserted that a scan finds the
    same."""
    scanned = _frame(spark, base, by_indexes=False).select("id", *(F.expr(each) for each in conditions)).collect()
    assert len(scanned) == len({row[0] for row in scanned})
    wanted = [sorted(row[0] for row in scanned if row[number]) for number in range(1, len(conditions) + 1)]
    frame = _frame(spark, base, by_indexes=True)
    assert [sorted(row[0] for row in frame.where(each).select("id").collect()) for each in conditions] == wanted
    return wanted


def _frame(spark: SparkSession, base: Path, *, by_indexes: bool) -> DataFrame:
    flag = str(by_indexes).lower()
    options = {"hoodie.enable.data.skipping": flag, "hoodie.metadata.enable": flag, **FEW_FILES}
    return spark.newSession().read.format("hudi").options(**options).load(str(base))
