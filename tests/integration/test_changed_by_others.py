"""Others change the version of a table, or its numbers of buckets, during a job or before one: an operator by Hudi's
procedures, which take no lock, or a writer with a newer Hudi."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.contract import ExpansionStep
from jobs.errors import BucketRulesChangedError, JobError
from tests.integration import tables
from tests.integration.long_session import LongSession
from tests.integration.run import hudi_table, proved, run_job
from tests.integration.tables import INDEX
from tests.integration.writers import At

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


_NUMBERS = count(1)
_SORTED: tuple[str, dict[str, Any]] = ("clustering", {"sort_by": ["city"]})
_DOUBLED: tuple[str, dict[str, Any]] = ("bucket_expansion", {"factor": 2})
COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"


@pytest.mark.parametrize(
    ("table_type", "calls", "jobs"),
    [
        pytest.param(COW, ("upgrade_table NINE",), (_SORTED,), id="up"),
        *(
            pytest.param(*case, marks=pytest.mark.exhaustive, id=name)
            for name, case in {
                "up and down": (COW, ("upgrade_table NINE", "downgrade_table SIX"), (_DOUBLED, _SORTED)),
                "mor up": (MOR, ("upgrade_table EIGHT",), (_DOUBLED, _SORTED)),
                "mor up and down": (MOR, ("upgrade_table NINE", "downgrade_table SIX"), (_SORTED, _DOUBLED)),
            }.items()
        ),
    ],
)
def test_jobs_before_the_next_write_lose_nothing(
    spark: SparkSession, base: Path, table_type: str, calls: tuple[str, ...], jobs: tuple[tuple[str, dict[str, Any]]]
) -> None:
    """The upgrader renews the times of all files of the timeline, so that they no longer show the writers' clock. Its
    compaction of the metadata table is later than the last commit."""
    options = tables.write_table(spark, base, count=60, updates=1, version=6, table_type=table_type, partitioned=False)
    before = tables.snapshot(spark, base)
    table = f"changed_{next(_NUMBERS)}"
    spark.sql(f"CREATE TABLE {table} USING hudi LOCATION '{base}'")
    for call in calls:
        name, version = call.split()
        assert spark.sql(f"CALL {name}(table => '{table}', to_version => '{version}')").collect()[0][0]

    for kind, params in jobs:
        run_job(spark, base, kind, params)
        assert tables.snapshot(spark, base) == before == tables.snapshot(spark, base, metadata=False), kind

    tables.upsert(tables.rows(spark, 0, 70, ts=9), base, options)
    assert len(proved(spark, base, 8 if _DOUBLED in jobs else 4)) == 70


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


ONE, OTHER, EARLIER = "2026-01-01", "2026-01-02", "2026-01-03"
_RESCALED = [
    ("bucket_expansion", {"num_buckets": 8, "partitions": [ONE]}),
    ("bucket_count", {"num_buckets": 3, "partitions": [ONE]}),
    ("clustering", {"sort_by": ["city"]}),
    ("repair", {}),
]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("kind", "params"), _RESCALED)
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
