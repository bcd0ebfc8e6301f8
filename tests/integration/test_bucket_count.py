"""A change to any number of buckets rewrites each row once or twice, and changes nothing else."""

from __future__ import annotations

import shutil
from itertools import product
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.contract import BucketIndex
from jobs.errors import DeletesLostError
from jobs.format import bucket_hash
from tests.integration import tables
from tests.integration.hidden import write_stale
from tests.integration.independent import rows_by_hudi_rs, rows_by_spark
from tests.integration.run import hudi_table, proved, run_job
from tests.integration.tables import left_behind, texts
from tests.integration.test_contraction import in_buckets
from tests.integration.writers import At

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

MOR, COW = "MERGE_ON_READ", "COPY_ON_WRITE"
ONCE, THROUGH = "one_rehash", "through_multiple"
SHAPES = list(product((MOR, COW), (6, 8, 9), (True, False)))
CHANGES = list(product(((4, 7), (6, 4), (8, 12)), (ONCE, THROUGH)))
# Each shape of a table has one change, and each change two shapes: one partitioned, the other not.
CASES = [
    pytest.param(*shape, *CHANGES[(number + number // 6) % 6], marks=pytest.mark.exhaustive)
    for number, shape in enumerate(SHAPES)
]


def index_of(number: int) -> BucketIndex:
    return BucketIndex(number, ("id",))


def count_buckets(spark: SparkSession, base: Path, before: int, after: int, **params: Any) -> dict[str, Any]:
    job = {"num_buckets": after, **params}
    return run_job(spark, base, "bucket_count", job, index=index_of(before)).details


# Other tests have seven buckets made at once, which is the cheaper way here.
@pytest.mark.parametrize("ways", [[THROUGH], pytest.param([ONCE, THROUGH], marks=pytest.mark.exhaustive)])
def test_four_buckets_become_seven_by_either_way_and_writers_go_on(
    spark: SparkSession, tmp_path: Path, ways: list[str]
) -> None:
    options = tables.write_table(spark, tmp_path / "trips", count=300, table_type=MOR, partitioned=False)
    # Only some buckets have logs.
    tables.upsert(tables.rows(spark, 0, 3, ts=1), tmp_path / "trips", options)
    before = tables.snapshot(spark, tmp_path / "trips")
    plan = run_job(spark, tmp_path / "trips", "bucket_count", {"num_buckets": 7}, dry_run=True).details
    assert (plan["refusals"], plan["buckets"], plan["file_groups"]) == ([], [4, 7], {"before": 4, "after": 7})
    assert {way["way"] for way in plan["ways"]} == {ONCE, THROUGH}
    assert plan["way"] == plan["ways"][0]["way"]
    assert plan["ways"][0]["cost"] == 1.0 < plan["ways"][1]["cost"]
    for way in ways:
        base = tmp_path / way / "trips"
        shutil.copytree(tmp_path / "trips", base)

        result = count_buckets(spark, base, 4, 7, way=way)

        assert (result["way"], result["buckets"], result["rows"]) == (way, [4, 7], 300)
        assert result["file_groups"] == {"before": 4, "after": 7}
        assert tables.in_order(spark, base, 7) == before
        audit = run_job(spark, base, "audit", index=index_of(4)).details
        assert (audit["clean"], audit["key_digest"]) == (True, result["key_digest"])
        assert rows_by_hudi_rs(base) == rows_by_spark(spark, base)
        assert left_behind(base) == []
        # The writer's options still have four buckets.
        tables.upsert(tables.rows(spark, 200, 400, ts=2), base, options)
        assert len(tables.in_order(spark, base, 7)) == 400


@pytest.mark.parametrize(("table_type", "version", "partitioned", "numbers", "way"), CASES)
def test_a_change_to_any_number_keeps_all_rows_in_all_columns(
    spark: SparkSession,
    base: Path,
    table_type: str,
    version: int,
    partitioned: bool,
    numbers: tuple[int, int],
    way: str,
) -> None:
    before, after = numbers
    shape = {"table_type": table_type, "version": version, "partitioned": partitioned, "num_buckets": before}
    options = tables.write_table(spark, base, count=300, updates=1, **shape)
    index = index_of(before)
    rows = tables.snapshot(spark, base)

    result = count_buckets(spark, base, before, after, way=way)

    assert result["buckets"] == [before, after]
    assert tables.in_order(spark, base, after) == rows
    assert tables.snapshot(spark, base, metadata=True) == tables.snapshot(spark, base, metadata=False)
    assert rows_by_hudi_rs(base) == rows_by_spark(spark, base)
    assert left_behind(base) == []
    tables.upsert(tables.rows(spark, 0, 100, ts=7), base, options)
    gone = tables.rows(spark, 100, 150, ts=8)
    tables.upsert(gone, base, {**options, "hoodie.datasource.write.operation": "delete"})
    if table_type == MOR:
        run_job(spark, base, "compaction", index=index)
    run_job(spark, base, "clustering", {"sort_by": ["city"]}, index=index)
    run_job(spark, base, "cleaning", {"retain": 1}, index=index)
    assert len(proved(spark, base, after, index)) == 250
    count_buckets(spark, base, before, before, way=way)
    tables.upsert(tables.rows(spark, 250, 350, ts=9), base, options)
    assert len(proved(spark, base, before, index)) == 300


@pytest.mark.exhaustive
@pytest.mark.parametrize("way", [ONCE, THROUGH])
@pytest.mark.parametrize("table_type", [MOR, COW])
def test_partitions_with_different_numbers_get_one_number_and_a_partition_that_has_it_stays(
    spark: SparkSession, base: Path, table_type: str, way: str
) -> None:
    options = tables.write_table(spark, base, count=300, table_type=table_type)
    count_buckets(spark, base, 4, 9, partitions=["2026-01-01"])
    count_buckets(spark, base, 4, 6, partitions=[{"prefix": "2026-01-02"}])
    # A new column, so that files of several schemas are rewritten.
    wider = tables.rows(spark, 0, 6, ts=1).withColumn("tip", F.when(F.col("ts") == 1, 1.5))
    tables.upsert(wider, base, options)
    before = tables.snapshot(spark, base)

    result = count_buckets(spark, base, 4, 6, way=way)

    assert (result["partitions"], result["file_groups"]["after"]) == (2, 12)
    assert tables.in_order(spark, base, 6) == before
    assert rows_by_hudi_rs(base) == rows_by_spark(spark, base)
    plan = run_job(spark, base, "bucket_count", {"num_buckets": 6}, index=index_of(4), dry_run=True).details
    assert [refusal["type"] for refusal in plan["refusals"]] == ["num-buckets-unchanged"]
    # All partitions have one number now, so the hashing config may go once every writer has it.
    run_job(spark, base, "finish_expansion", index=index_of(6))
    more = tables.rows(spark, 200, 350, ts=7).withColumn("tip", F.lit(2.5))
    tables.upsert(more, base, {**options, "hoodie.bucket.index.num.buckets": "6"})
    assert len(proved(spark, base, 6, index_of(6))) == 350


@pytest.mark.exhaustive
def test_more_files_than_a_task_writes_at_once_come_from_several_tasks(spark: SparkSession, tmp_path: Path) -> None:
    for way in (ONCE, THROUGH):
        base = tmp_path / way / "trips"
        options = tables.write_table(spark, base, count=300, num_buckets=3, partitioned=False)
        tables.upsert(tables.rows(spark, 0, 2, ts=1), base, options)
        before = tables.snapshot(spark, base)

        result = count_buckets(spark, base, 3, 40, way=way)

        assert result["file_groups"] == {"before": 3, "after": 40}
        assert tables.in_order(spark, base, 40) == before
        assert rows_by_hudi_rs(base) == rows_by_spark(spark, base)
        assert left_behind(base) == []
        rules = hudi_table(spark, base, index_of(3)).bucket_rules()
        assert rules is not None
        assert rules.buckets_of("") == 40


@pytest.mark.exhaustive
def test_deletes_by_the_old_number_are_made_in_the_right_buckets(spark: SparkSession, base: Path) -> None:
    options = tables.write_table(spark, base, count=300, table_type=MOR)
    count_buckets(spark, base, 4, 7)
    # The writer finds the new file groups, and deletes by its own number in them: no row shows that.
    gone = tables.rows(spark, 100, 130, ts=8)
    instant = write_stale(gone, base, {**options, "hoodie.datasource.write.operation": "delete"})
    assert spark.read.format("hudi").load(str(base)).count() > 270
    audit = run_job(spark, base, "audit", index=index_of(4)).details
    (found,) = audit["findings"]
    assert (found["type"], found["cure"]["params"]) == ("deletes-in-wrong-bucket", {"instants": [instant]})

    result = run_job(spark, base, "repair", {"instants": [instant]}, index=index_of(4)).details

    assert (result["repaired"], result["deletes"] > 0) == ([instant], True)
    rows, expected = texts(spark, base, tables.rows(spark, 0, 100), tables.rows(spark, 130, 300))
    assert rows == expected
    assert len(proved(spark, base, 7, index_of(4))) == 270
    # Buckets that were right for a delete are not right any more after the next change.
    few = tables.rows(spark, 130, 150, ts=9).where(in_buckets(spark, 7, {0, 1, 2, 3}))
    tables.upsert(few, base, {**options, "hoodie.datasource.write.operation": "delete"})
    count_buckets(spark, base, 4, 5)
    assert len(proved(spark, base, 5, index_of(4))) == 270 - few.count()


@pytest.mark.parametrize(
    ("before", "after"), [(4, 7), *(pytest.param(*each, marks=pytest.mark.exhaustive) for each in [(6, 4), (4, 1)])]
)
def test_deletes_by_the_old_number_that_removed_no_row_of_copy_on_write_are_found(
    spark: SparkSession, base: Path, before: int, after: int
) -> None:
    shape = {"table_type": COW, "partitioned": False, "num_buckets": before}
    options = tables.write_table(spark, base, count=90, **shape)
    deleting = {**options, "hoodie.datasource.write.operation": "delete"}
    index = index_of(before)
    count_buckets(spark, base, before, after)
    tables.upsert(tables.rows(spark, 80, 90), base, deleting)
    assert run_job(spark, base, "audit", index=index).details["clean"]
    code = (bucket_hash.hash_codes(pa.array([f"k{each}" for each in range(80)]), ("id",)) & 0x7FFFFFFF).tolist()
    # Without a file group in the old bucket, Hudi leaves the key out.
    lost = [each for each in range(80) if code[each] % before != code[each] % after][-2:]
    gone = tables.rows(spark, 0, 80).where(F.col("id").isin([f"k{each}" for each in lost]))
    instant = write_stale(gone, base, deleting)
    assert spark.read.format("hudi").load(str(base)).count() == 80

    (found,) = run_job(spark, base, "audit", index=index).details["findings"]

    assert found["type"] == "deletes-without-effect"
    assert instant in found["detail"]
    with pytest.raises(DeletesLostError, match=instant):
        run_job(spark, base, "repair", {"instants": [instant]}, index=index)
    tables.upsert(gone, base, deleting)
    run_job(spark, base, "repair", {"accepted": [instant]}, index=index)
    assert len(proved(spark, base, after, index)) == 78


@pytest.mark.exhaustive
def test_a_write_by_the_number_before_the_last_but_one_is_found_and_repaired(spark: SparkSession, base: Path) -> None:
    options = tables.write_table(spark, base, count=300, num_buckets=6, copied=False)
    count_buckets(spark, base, 6, 4)
    new_partition = tables.rows(spark, 1000, 1012, ts=5).withColumn("dt", F.lit("2026-02-01"))

    def stale_write() -> None:
        write_stale(new_partition, base, options)

    context = At("watching writers that start", stale_write)
    params = {"num_buckets": 7, "settle_seconds": 2}
    result = run_job(spark, base, "bucket_count", params, index=index_of(6), context=context).details

    assert len(result["repaired"]) == 1
    found, expected = texts(spark, base, tables.rows(spark, 0, 300), new_partition)
    assert found == expected
    assert len(proved(spark, base, 7, index_of(6))) == 312
