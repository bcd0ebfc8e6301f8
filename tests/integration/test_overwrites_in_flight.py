"""An overwrite whose inflight file is empty, such as that of Spark's row writer or of Flink, counts as a write."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import ExpansionStep
from jobs.errors import WritersActiveError
from tests.integration import tables
from tests.integration.run import hudi_table, proved, run_job
from tests.integration.tables import INDEX
from tests.integration.writers import At, HeldWriter

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

BY_ROWS = {
    "hoodie.datasource.write.operation": "bulk_insert",
    "hoodie.bulkinsert.overwrite.operation.type": "insert_overwrite_table",
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", [9, 6])
def test_an_expansion_waits_for_an_overwrite_that_does_not_name_its_operation_yet(
    spark: SparkSession, base: Path, version: int
) -> None:
    options = tables.write_table(spark, base, count=60, partitioned=False, version=version)
    writer = HeldWriter(tables.rows(spark, 0, 60, ts=7), base, options | BY_ROWS).start()
    (instant,) = writer.pending()
    timeline = base / ".hoodie" / ("timeline" if version > 6 else "")
    inflight = timeline / f"{instant}.replacecommit.inflight"
    while not inflight.exists():
        time.sleep(0.05)
    assert inflight.stat().st_size == 0
    table = hudi_table(spark, base, INDEX)
    assert [item.requested for item in table.pending_writes()] == [instant]
    expansion: dict[str, Any] = {"num_buckets": 8}
    planned = run_job(spark, base, "bucket_expansion", expansion, dry_run=True).details
    assert (planned["refusals"], planned["beside"]["writers"]) == ([], [instant])
    with pytest.raises(WritersActiveError, match=instant):
        run_job(spark, base, "bucket_expansion", {**expansion, "wait_seconds": 0})

    run_job(spark, base, "bucket_expansion", expansion, context=At(ExpansionStep.DRAINING, writer.finish))

    assert {row["ts"] for row in tables.collected(spark, base).rows} == {7}
    assert len(proved(spark, base, 8)) == 60
