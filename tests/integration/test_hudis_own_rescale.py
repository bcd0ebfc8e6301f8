"""An operator calls Hudi's own rescale, which takes no lock, while a job runs (`partition_bucket_index_manager`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.contract import ExpansionStep
from jobs.errors import BucketRulesChangedError
from tests.integration import tables
from tests.integration.long_session import LongSession
from tests.integration.run import hudi_table, run_job
from tests.integration.writers import At

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ONE, OTHER, EARLIER = "2026-01-01", "2026-01-02", "2026-01-03"
_CASES = [
    ("bucket_expansion", {"num_buckets": 8, "partitions": [ONE]}),
    ("bucket_count", {"num_buckets": 3, "partitions": [ONE]}),
    ("clustering", {"sort_by": ["city"]}),
    ("repair", {}),
]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("kind", "params"), _CASES)
def test_a_job_commits_nothing_after_the_number_of_buckets_was_changed_by_others(
    spark: SparkSession, base: Path, kind: str, params: dict[str, Any]
) -> None:
    """Hudi would follow the config of the rescale, which is later, and look for the rows in other buckets."""
    options = tables.write_table(spark, base, count=60, table_type="COPY_ON_WRITE", copied=False)
    before = len(tables.snapshot(spark, base))
    if kind == "repair":
        # The rows of two buckets are in the others, too, until the repair rewrites these.
        wrong = tables.rows(spark, 0, 60, ts=3).where(F.col("dt") == ONE)
        tables.upsert(wrong, base, {**options, "hoodie.bucket.index.num.buckets": "2"})
        params = {"instants": [hudi_table(spark, base, tables.INDEX).commits()[-1].write.instant]}
        assert tables.duplicates(spark, base) > 0
    run_job(spark, base, "bucket_expansion", {"num_buckets": 8, "partitions": [EARLIER]})
    user = LongSession(spark, base, {name: value for name, value in options.items() if ".table." not in name})

    def rescale() -> None:
        user.run(f"CALL partition_bucket_index_manager(table => '{{table}}', add => '{OTHER},6', dry_run => false)")

    # A repair has also waited for writers before it began to rewrite.
    step = "rewriting" if kind == "repair" else ExpansionStep.DRAINING
    with pytest.raises(BucketRulesChangedError):
        run_job(spark, base, kind, params, context=At(step, rescale))
    assert tables.left_behind(base) == []

    run_job(spark, base, kind, params)
    tables.upsert(tables.rows(spark, 0, 60, ts=9), base, options)
    assert tables.duplicates(spark, base) == 0
    assert len(tables.snapshot(spark, base)) == before
    assert run_job(spark, base, "audit").details["clean"]
