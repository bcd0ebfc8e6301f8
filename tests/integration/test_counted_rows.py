"""One task counts the rows of a small table as Spark's shuffles count those of a large one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.contract import BucketIndex
from jobs.services.checks import record_keys, row_counts
from tests.integration import tables
from tests.integration.run import hudi_table

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from pyspark.sql import SparkSession


def test_one_task_and_many_count_the_same(spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = BucketIndex(2, ("id",))
    options = tables.write_table(spark, base, count=60, num_buckets=2, metadata=False)
    # In Java's order of texts the first of these keys is the last one.
    odd = F.when(F.col("id") == "k1", "\uff5a").when(F.col("id") == "k4", "\U0001f600")
    written = tables.rows(spark, 0, 60, ts=5).withColumn("id", F.coalesce(odd, "id"))
    tables.upsert(written, base, {**options, "hoodie.bucket.index.num.buckets": "3"})
    for path in (base / "2026-01-03").glob("*00000000-*"):
        path.rename(base / "2026-01-01" / path.name)

    table = hudi_table(spark, base, index)
    by_task = row_counts.count_rows(table, table.bucket_rules(), with_forms=True)
    monkeypatch.setattr(row_counts, "_SLICES_OF_TASK", 0)
    by_shuffles = row_counts.count_rows(table, table.bucket_rules(), with_forms=True)

    assert by_task == by_shuffles
    first, second, third = by_task
    assert first.rows + second.rows + third.rows == len(tables.snapshot(spark, base))
    assert second.last_key == "\U0001f600"
    assert sum(each.misplaced for each in by_task) == tables.misplaced(spark, base, 2) > 0
    assert sum(each.duplicates for each in by_task) == tables.duplicates(spark, base) > 0
    assert (first.elsewhere, second.elsewhere) == (0, 0) < (third.elsewhere, 0)
    assert all(each.forms == {record_keys.PLAIN: each.rows} for each in by_task)
