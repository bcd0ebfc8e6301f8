"""A repair takes file groups without a bucket, into which a writer with another index has put rows, out of use, and
writes their rows again afterwards. Whatever fails in between, and although a writer's cleaner deletes all old files,
the rows stay readable, or a savepoint keeps their files until the next repair writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from jobs.errors import FilesGoneError, HudiError, LeaseLostError, RefusedError
from jobs.hudi.client import WriteClient
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.hudi.savepoints import BY, OF_REPAIR
from tests.integration import dying_job, tables
from tests.integration.dying_job import DyingJob
from tests.integration.hidden import hidden
from tests.integration.independent import rows_by_hudi_rs, rows_by_spark
from tests.integration.run import hudi_table, run_job, work_order
from tests.integration.tables import newest, texts
from tests.integration.test_bucket_index import COW, MOR, adopted_table, bucketed, proved
from tests.integration.writers import At, HeldWriter, let_heartbeat_expire

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from pyspark.sql import SparkSession

    from tests.integration.doomed import Spares


# Every write makes a new file group for new rows.
_APART = {"hoodie.parquet.small.file.limit": "0"}
_CLEANS_AT_ONCE = {
    **_APART,
    "hoodie.clean.automatic": "true",
    "hoodie.clean.async.enabled": "false",
    "hoodie.clean.commits.retained": "1",
}
_DELETES = {"hoodie.datasource.write.operation": "delete"}


def adopted(spark: SparkSession, base: Path) -> tuple[dict[str, str], dict[str, Any]]:
    old, result = adopted_table(spark, base, table_type=COW, partitioned=False)
    return {**old, **_APART}, result


def ids(spark: SparkSession, base: Path) -> list[str]:
    return sorted(row[0] for row in spark.read.format("hudi").load(str(base)).select("id").collect())


def savepoints(spark: SparkSession, base: Path) -> list[str]:
    return [each["comment"] for each in run_job(spark, base, "savepoint", {"action": "list"}).details["savepoints"]]


def lose_the_lease() -> None:
    raise LeaseLostError("another worker has the job")


@pytest.mark.exhaustive
@pytest.mark.parametrize(("first", "end"), [(300, 330), (340, 350)], ids=["old keys", "new keys"])
def test_a_write_that_comes_before_the_drop_is_repaired_before_the_savepoint_goes(
    spark: SparkSession, base: Path, first: int, end: int
) -> None:
    old, result = adopted(spark, base)
    tables.upsert_outside_buckets(tables.rows(spark, 280, 340, ts=5), base, old)
    named, later = newest(base), []

    def write_outside_buckets() -> None:
        tables.upsert_outside_buckets(tables.rows(spark, first, end, ts=6), base, old)
        later.append(newest(base))

    repaired = run_job(
        spark, base, "repair", {"instants": [named]}, context=At("rewriting", write_outside_buckets)
    ).details

    assert set(repaired["repaired"]) == {named, *later}
    assert savepoints(spark, base) == []
    for ts in (7, 8, 9):
        tables.upsert(tables.rows(spark, 0, 3, ts=ts), base, bucketed({**old, **_CLEANS_AT_ONCE}, result))
    parts = [tables.rows(spark, 0, 3, ts=9), tables.rows(spark, 3, 280), tables.rows(spark, 280, first, ts=5)]
    parts += [tables.rows(spark, first, end, ts=6)] + ([tables.rows(spark, end, 340, ts=5)] if end < 340 else [])
    found, expected = texts(spark, base, *parts)
    assert found == expected
    assert len(proved(spark, base, tables.INDEX)) == max(end, 340)


@pytest.mark.exhaustive
def test_the_base_file_before_a_delete_may_be_cleaned(spark: SparkSession, base: Path) -> None:
    old, _ = adopted(spark, base)
    cleaning = {**old, **_CLEANS_AT_ONCE}
    tables.upsert_outside_buckets(tables.rows(spark, 280, 340, ts=5), base, cleaning)
    named = newest(base)
    tables.upsert(tables.rows(spark, 330, 333, ts=6), base, {**cleaning, **_DELETES})
    for ts in (6, 7, 8):
        tables.upsert_outside_buckets(tables.rows(spark, 333, 335, ts=ts), base, cleaning)
    # Only files of buckets have such names.
    assert {path.name[:7] for path in base.glob(f"*_{named}.parquet")} == {"0000000"}
    before = ids(spark, base)
    assert len(before) == 337
    assert named in run_job(spark, base, "repair", {"instants": [named]}).details["repaired"]
    assert ids(spark, base) == before
    assert savepoints(spark, base) == []
    proved(spark, base, tables.INDEX)


@pytest.mark.exhaustive
def test_a_row_that_cannot_be_read_fails_the_repair_before_readers_miss_others(
    spark: SparkSession, tmp_path: Path, base: Path
) -> None:
    old, _ = adopted(spark, base)
    with hidden(base, newest(base), tmp_path / "away"):
        tables.upsert_outside_buckets(tables.rows(spark, 0, 50, ts=5), base, old)
        gone = newest(base)
    tables.upsert_outside_buckets(tables.rows(spark, 280, 340, ts=5), base, old)
    named = newest(base)
    for path in base.glob(f"*_{gone}.parquet"):
        path.unlink()
    before = ids(spark, base)
    with pytest.raises(FilesGoneError):
        run_job(spark, base, "repair", {"instants": [gone, named]})
    assert ids(spark, base) == before
    assert savepoints(spark, base) == []


@pytest.mark.exhaustive
def test_rows_of_a_commit_that_is_archived_in_between_keep_the_savepoint(
    spark: SparkSession, tmp_path: Path, base: Path
) -> None:
    old, _ = adopted(spark, base)
    tables.upsert_outside_buckets(tables.rows(spark, 280, 340, ts=5), base, old)
    named = newest(base)
    tables.upsert_outside_buckets(tables.rows(spark, 330, 335, ts=6), base, old)
    second = newest(base)
    # A write of keys that are in buckets.
    tables.upsert_outside_buckets(tables.rows(spark, 0, 3, ts=7), base, old)
    before = ids(spark, base)
    dies = At("reading the rows of stale writes", lose_the_lease)
    with pytest.raises(LeaseLostError):
        run_job(spark, base, "repair", {"instants": [named]}, context=dies, job_id="job_k")
    with hidden(base, named, tmp_path / "away"):
        with pytest.raises(RefusedError) as caught:
            run_job(spark, base, "repair", job_id="job_k")
        assert caught.value.problem().type == "rows-of-unknown-commits"
        assert savepoints(spark, base) == [OF_REPAIR]
        with hidden(base, second, tmp_path / "away, too"):
            with pytest.raises(RefusedError) as caught:
                run_job(spark, base, "repair", job_id="job_k")
            assert caught.value.problem().detail == f"rows of {named}, {second}"
            assert savepoints(spark, base) == [OF_REPAIR]
    assert named in run_job(spark, base, "repair", job_id="job_k").details["repaired"]
    assert ids(spark, base) == before
    assert savepoints(spark, base) == []


@pytest.mark.exhaustive
def test_a_repair_that_died_in_its_replacement_does_not_block_its_next_attempt(spark: SparkSession, base: Path) -> None:
    old, _ = adopted(spark, base)
    tables.upsert_outside_buckets(tables.rows(spark, 280, 340, ts=5), base, old)
    named = newest(base)
    before = ids(spark, base)
    job = DyingJob(spark, work_order(base, "repair", {"instants": [named], "wait_seconds": 5}))
    job.die_at({"at": "step", "name": "rewriting"})
    (pending,) = [item.requested for item in hudi_table(spark, base, tables.INDEX).pending()]
    assert job.instants == (pending,)
    let_heartbeat_expire(base, pending)
    repaired = job.finish().details
    assert repaired["repaired"] == [named]
    assert ids(spark, base) == before
    assert savepoints(spark, base) == []
    assert hudi_table(spark, base, tables.INDEX).pending() == []


@pytest.mark.exhaustive
def test_a_repair_removes_only_its_own_savepoints(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, _ = adopted(spark, base)
    tables.upsert_outside_buckets(tables.rows(spark, 280, 340, ts=5), base, old)
    named = newest(base)

    def raise_error(*_: object) -> None:
        raise HudiError("the storage is away")

    with monkeypatch.context() as patch:
        patch.setattr(WriteClient, "commit_replacement", raise_error)
        with pytest.raises(HudiError):
            run_job(spark, base, "repair", {"instants": [named]})
    assert savepoints(spark, base) == []
    # A worker that is killed right before the commit leaves its savepoint.
    with WriteClient(hudi_table(spark, base, tables.INDEX), UNDER_OUR_LOCK) as client:
        client.savepoints.create(named, BY, OF_REPAIR)
    found = run_job(spark, base, "diagnosis").details["findings"]
    left = [each for each in found if each["type"] == "savepoint-of-repair-left"]
    assert [(each["detail"], each["cure"]["kind"]) for each in left] == [(named, "repair")]
    run_job(spark, base, "savepoint", {"action": "create", "comment": "mine"})
    assert savepoints(spark, base) == ["mine"]
    run_job(spark, base, "repair", {"instants": [named]})
    assert savepoints(spark, base) == ["mine"]
    assert len(ids(spark, base)) == 340


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
