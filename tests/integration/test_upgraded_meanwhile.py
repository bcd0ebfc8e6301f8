"""A writer with a newer Hudi upgrades the table during a job, as Hudi does by default."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from jobs.errors import JobError
from tests.integration import tables
from tests.integration.run import hudi_table, proved, run_job
from tests.integration.tables import INDEX
from tests.integration.writers import At

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

# While a replacecommit is in flight, Hudi's upgrade fails by itself: it waits for a lock that its own process holds.
_CASES = [("arrow", 6), *(pytest.param(*each, marks=pytest.mark.exhaustive) for each in [("hudi", 6), ("arrow", 8)])]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("engine", "version"), _CASES)
def test_the_job_commits_nothing_and_its_next_attempt_works_on_the_new_version(
    spark: SparkSession, tmp_path: Path, engine: str, version: int
) -> None:
    base, params = tmp_path / "trips", {"engine": engine}
    options = tables.write_table(spark, base, count=100, updates=1, version=version, partitioned=False)
    newer = {"hoodie.write.auto.upgrade": "true", "hoodie.write.table.version": "9"}

    def upgrade() -> None:
        tables.upsert(tables.rows(spark, 50, 120, ts=9), base, options | newer)

    context = At("comparing the record keys", upgrade)
    with pytest.raises(JobError) as ended:
        run_job(spark, base, "compaction", params, context=context, job_id="job_first")

    assert (ended.value.type, ended.value.retriable) == ("table-upgraded", True)
    assert hudi_table(spark, base, INDEX).version == 9
    assert len(tables.snapshot(spark, base)) == 120
    # Logs from before the upgrade keep their old names, which do not have the instant of their own commit.
    audit = run_job(spark, base, "audit").details
    assert audit["clean"], audit

    earlier = tuple(context.instants)
    run_job(spark, base, "compaction", params, job_id="job_first", earlier_instants=earlier)
    assert len(proved(spark, base, 4)) == 120
    tables.upsert(tables.rows(spark, 0, 130, ts=11), base, options | {"hoodie.write.table.version": "9"})
    assert len(proved(spark, base, 4)) == 130
    assert spark.read.format("hudi").load(str(base)).where("ts = 11").count() == 130
