"""A writer with another index has put rows into file groups without a bucket. A repair of them loses no row, even if it
dies half way and a writer's cleaner deletes all old files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from jobs.errors import RefusedError
from jobs.hudi.savepoints import OF_REPAIR
from tests.integration import dying_job, tables
from tests.integration.dying_job import DyingJob
from tests.integration.hidden import hidden
from tests.integration.independent import rows_by_hudi_rs, rows_by_spark
from tests.integration.run import run_job, work_order
from tests.integration.tables import newest, texts
from tests.integration.test_bucket_index import COW, MOR, adopted_table, bucketed, proved
from tests.integration.test_rows_out_of_use import savepoints
from tests.integration.writers import At, HeldWriter

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.integration.doomed import Spares

_CLEANS_AT_ONCE = {
    "hoodie.clean.automatic": "true",
    "hoodie.clean.async.enabled": "false",
    "hoodie.clean.commits.retained": "1",
    "hoodie.parquet.small.file.limit": "0",
}


@dying_job.cases("table_type version", (COW, 9), [(COW, 9), (MOR, 9), (MOR, 6), (COW, 6)])
def test_a_writer_that_cleans_at_once_removes_no_row_that_a_killed_repair_has_not_written(
    spark: SparkSession, base: Path, spares_if_killed: Spares | None, table_type: str, version: int
) -> None:
    shape = {"table_type": table_type, "version": version, "metadata": bool(spares_if_killed)}
    old, result = adopted_table(spark, base, partitioned=False, **shape)
    cleaning = {**old, **_CLEANS_AT_ONCE}
    tables.upsert_outside_buckets(tables.rows(spark, 280, 340, ts=5), base, cleaning)
    first = newest(base)
    # The next version of the file group has the rows of the first one, which is cleaned.
    tables.upsert_outside_buckets(tables.rows(spark, 330, 333, ts=6), base, cleaning)
    tables.upsert_outside_buckets(tables.rows(spark, 333, 335, ts=6), base, cleaning)
    job = DyingJob(spark, work_order(base, "repair", {"instants": [first]}), spares_if_killed)
    job.die_at({"at": "step", "name": "reading the rows of stale writes"})
    assert savepoints(spark, base) == [OF_REPAIR]

    for ts in (7, 8, 9):
        tables.upsert_outside_buckets(tables.rows(spark, 335, 338, ts=ts), base, cleaning)
    repaired = job.finish().details
    assert first in repaired["repaired"]
    parts = [tables.rows(spark, 0, 280), tables.rows(spark, 280, 330, ts=5), tables.rows(spark, 330, 335, ts=6)]
    found, expected = texts(spark, base, *parts, tables.rows(spark, 335, 338, ts=9), tables.rows(spark, 338, 340, ts=5))
    assert found == expected
    assert rows_by_hudi_rs(base) == rows_by_spark(spark, base)
    assert savepoints(spark, base) == []
    # A writer with the bucket index cleans what the savepoint has held.
    tables.upsert(tables.rows(spark, 320, 360, ts=10), base, bucketed(cleaning, result))
    assert len(proved(spark, base, tables.INDEX)) == 360


@pytest.mark.exhaustive
@pytest.mark.parametrize(("table_type", "version"), [(COW, 9), (MOR, 9), (MOR, 6), (COW, 6)])
def test_a_write_that_commits_after_its_file_group_was_taken_out_of_use_is_repaired_by_the_same_job(
    spark: SparkSession, base: Path, table_type: str, version: int
) -> None:
    old, result = adopted_table(spark, base, table_type=table_type, version=version, partitioned=False)
    # Hudi looks for no conflicts of such a writer.
    alone = {**old, "hoodie.write.concurrency.mode": "single_writer", "hoodie.parquet.small.file.limit": "0"}
    tables.upsert_outside_buckets(tables.rows(spark, 280, 340, ts=5), base, alone)
    first = newest(base)
    held = HeldWriter(tables.rows(spark, 300, 310, ts=6), base, alone).start()
    context = At("reading the rows of stale writes", held.end)

    repaired = run_job(spark, base, "repair", {"instants": [first]}, context=context).details

    assert held.error is None
    assert len(repaired["repaired"]) == 2
    parts = [(0, 280, 0), (280, 300, 5), (300, 310, 6), (310, 340, 5)]
    found, expected = texts(spark, base, *(tables.rows(spark, *ids, ts=ts) for *ids, ts in parts))
    assert (found, savepoints(spark, base)) == (expected, [])
    tables.upsert(tables.rows(spark, 320, 360, ts=10), base, bucketed(old, result))
    assert len(proved(spark, base, tables.INDEX)) == 360


def test_a_dry_run_names_rows_that_a_repair_could_not_keep(spark: SparkSession, tmp_path: Path, base: Path) -> None:
    old, _ = adopted_table(spark, base, table_type=COW, version=9, partitioned=False, metadata=False)
    old["hoodie.parquet.small.file.limit"] = "0"
    tables.upsert_outside_buckets(tables.rows(spark, 280, 340, ts=5), base, old)
    first = newest(base)
    tables.upsert_outside_buckets(tables.rows(spark, 330, 340, ts=6), base, old)
    second = newest(base)
    ready = run_job(spark, base, "repair", {"instants": [second]}, dry_run=True).details
    assert (ready["refusals"], ready["stale"]) == ([], [first, second])
    # The active timeline no longer has the commit that wrote most of the rows.
    with hidden(base, first, tmp_path / "away"):
        before = tables.snapshot(spark, base)
        held = spark.read.format("hudi").load(str(base)).where(f"_hoodie_commit_time = '{first}'").count()
        assert held
        plan = run_job(spark, base, "repair", {"instants": [second]}, dry_run=True).details
        assert [(each["type"], each["detail"]) for each in plan["refusals"]] == [
            ("rows-of-unknown-commits", f"{held} rows of {first}")
        ]
        with pytest.raises(RefusedError) as caught:
            run_job(spark, base, "repair", {"instants": [second]})
        assert caught.value.problem().type == "rows-of-unknown-commits"
        assert tables.snapshot(spark, base) == before
