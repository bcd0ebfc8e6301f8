"""Tables whose writers record the changes of rows (CDC): no job mistakes the files with changes for logs, and readers
of changes see the same after each job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from jobs.contract import Outcome
from jobs.errors import RefusedError
from tests.integration import tables
from tests.integration.run import hudi_table, run_job
from tests.integration.tables import INDEX

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
CHANGES = {"hoodie.table.cdc.enabled": "true", "hoodie.table.cdc.supplemental.logging.mode": "data_before_after"}


def changes(spark: SparkSession, base: Path) -> list[str]:
    """Returns all changes that a reader of changes sees."""
    options = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.query.incremental.format": "cdc",
        "hoodie.datasource.read.begin.instanttime": "0",
    }
    return sorted(map(str, spark.read.format("hudi").options(**options).load(str(base)).collect()))


def changed_table(spark: SparkSession, base: Path, table_type: str) -> dict[str, str]:
    options = tables.write_table(spark, base, count=60, updates=2, table_type=table_type, partitioned=False, **CHANGES)
    delete = {**options, "hoodie.datasource.write.operation": "delete"}
    tables.upsert(tables.rows(spark, 50, 60), base, delete)
    return options


@pytest.mark.exhaustive
def test_a_bucket_index_is_given_up_beside_files_of_changes(spark: SparkSession, base: Path) -> None:
    changed_table(spark, base, COW)
    before = changes(spark, base), tables.snapshot(spark, base)
    assert list(base.glob(".*.cdc"))
    assert [item.log_files for item in hudi_table(spark, base, INDEX).file_slices()] == [()] * 4

    stopped = {"writers_stopped": True}
    done = run_job(spark, base, "bucket_index", {"action": "drop"}, declared=stopped)

    assert done.outcome is Outcome.SUCCEEDED
    assert (changes(spark, base), tables.snapshot(spark, base)) == before
    assert run_job(spark, base, "audit", index=None).details["clean"]


@pytest.mark.exhaustive
def test_a_compaction_keeps_recorded_changes_and_leaves_nothing_to_compact(spark: SparkSession, base: Path) -> None:
    options = changed_table(spark, base, MOR)
    before = changes(spark, base), tables.snapshot(spark, base)
    assert run_job(spark, base, "compaction").details["log_files"] > 0
    assert list(base.glob(".*.cdc"))
    assert (changes(spark, base), tables.snapshot(spark, base)) == before
    assert run_job(spark, base, "compaction").details["nothing_to_do"]
    with pytest.raises(RefusedError) as refused:
        run_job(spark, base, "clustering", {"sort_by": ["city"]})
    assert [each.type for each in refused.value.reasons] == ["change-data-capture"]
    tables.upsert(tables.rows(spark, 40, 80, ts=9), base, options)
    assert len(tables.in_order(spark, base, 4)) == 80
    assert run_job(spark, base, "audit").details["clean"]
