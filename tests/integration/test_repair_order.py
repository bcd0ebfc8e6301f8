"""A repair writes rows and deletes of earlier writes. When another stale write is repaired later, these rows and
deletes have the time of their original writes, not of the repair's commits."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.errors import RefusedError
from jobs.hudi.stale_slices import deleted_keys
from tests.integration import tables
from tests.integration.hidden import hidden, write_stale
from tests.integration.run import hudi_table, proved, run_job
from tests.integration.tables import completed_files, newest, texts
from tests.integration.test_bucket_count import count_buckets, index_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

MOR, COW = "MERGE_ON_READ", "COPY_ON_WRITE"
BY_COMMIT = {"hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"}
DELETE = {"hoodie.datasource.write.operation": "delete"}
PARTIAL = {"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.PartialUpdateAvroPayload"}


@contextmanager
def in_flight(base: Path, instant: str, folder: Path) -> Iterator[None]:
    (done,) = [path for path in completed_files(base) if path.name.startswith(instant)]
    away = shutil.move(done, folder / done.name)
    yield
    shutil.move(away, done)


@pytest.mark.parametrize(
    ("shape", "more"),
    [
        ({"partitioned": False, "metadata": False}, {}),
        *(
            pytest.param(*each, marks=pytest.mark.exhaustive)
            for each in [({}, {}), ({}, BY_COMMIT), ({"version": 6}, {})]
        ),
    ],
)
def test_a_delete_that_is_repaired_takes_no_row_of_a_later_stale_write(
    spark: SparkSession, tmp_path: Path, base: Path, shape: dict[str, Any], more: dict[str, str]
) -> None:
    def rows(first: int, last: int, ts: int = 0) -> DataFrame:
        """A table may have columns of any name."""
        found = tables.rows(spark, first, last, ts=ts)
        for name in ("deleted_at", "deleted_by", "was_there", "now_at", "now_ts", "_rank", "_file_id"):
            found = found.withColumn(name, F.concat(F.lit(name), F.col("id")))
        return found

    options = tables.writer_options(base, **shape, **more)
    tables.upsert(rows(0, 300), base, options)
    count_buckets(spark, base, 4, 7)
    change = newest(base)
    deleted = write_stale(rows(0, 60), base, {**options, **DELETE})
    # Writers with the new number: a row that comes after the delete, and deletes of others.
    again = rows(0, 20, ts=6)
    tables.upsert(again, base, options)
    tables.upsert(rows(290, 300), base, {**options, **DELETE})
    # A writer that does not know of the replacement goes on with its file groups.
    late = rows(40, 80, ts=5)
    with hidden(base, change, tmp_path / "away"):
        last = write_stale(late, base, options)

    # The deletes are repaired first.
    result = run_job(spark, base, "repair", {"instants": [deleted]}).details

    assert {deleted, last} <= set(result["repaired"])
    found, expected = texts(spark, base, again, late, rows(80, 290))
    assert found == expected
    assert len(proved(spark, base, 7, index_of(4))) == 270


@pytest.mark.exhaustive
@pytest.mark.parametrize("table_type", [MOR, COW])
def test_rows_are_compared_by_an_ordering_field_inside_a_struct(
    spark: SparkSession, base: Path, table_type: str
) -> None:
    def rows(first: int, last: int, ts: int) -> DataFrame:
        return tables.rows(spark, first, last, ts=ts).withColumn("change", F.struct(F.col("ts").alias("at")))

    shape: dict[str, Any] = {"table_type": table_type, "partitioned": False, "metadata": False}
    options = tables.writer_options(base, **shape, **{"hoodie.datasource.write.precombine.field": "change.at"})
    tables.upsert(rows(0, 60, 0), base, options)
    count_buckets(spark, base, 4, 7)
    tables.upsert(rows(0, 20, 9), base, options)
    stale = write_stale(rows(10, 40, 5), base, options)

    result = run_job(spark, base, "repair", {"instants": [stale]}).details

    assert result["repaired"] == [stale]
    found, expected = texts(spark, base, rows(0, 20, 9), rows(20, 40, 5), rows(40, 60, 0))
    assert found == expected


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", [9, 6])
def test_a_delete_with_an_event_time_keeps_it_when_it_is_repaired(
    spark: SparkSession, tmp_path: Path, base: Path, version: int
) -> None:
    marker = {"hoodie.payload.delete.field": "region", "hoodie.payload.delete.marker": "gone"}
    options = {**tables.write_table(spark, base, count=300, version=version), **marker}
    tables.upsert(tables.rows(spark, 299, 300, ts=1), base, options)
    count_buckets(spark, base, 4, 7)
    change = newest(base)
    deleted = write_stale(tables.rows(spark, 0, 60, ts=7).withColumn("region", F.lit("gone")), base, options)
    earlier, later = tables.rows(spark, 20, 40, ts=6), tables.rows(spark, 40, 80, ts=8)
    with hidden(base, change, tmp_path / "away"):
        write_stale(earlier.union(later), base, options)

    result = run_job(spark, base, "repair", {"instants": [deleted]}).details

    assert deleted in result["repaired"]
    left = tables.rows(spark, 80, 299).union(tables.rows(spark, 299, 300, ts=1))
    found, expected = texts(spark, base, later, left)
    assert found == expected
    table = hudi_table(spark, base, tables.INDEX)
    values = [each.ordering for commit in table.commits() for each in deleted_keys(table, commit)]
    assert set(values) == {"7"}
    # Hudi holds the value against rows that come later.
    tables.upsert(tables.rows(spark, 0, 10, ts=6).union(tables.rows(spark, 10, 20, ts=9)), base, options)
    found, expected = texts(spark, base, tables.rows(spark, 10, 20, ts=9), later, left)
    assert found == expected
    run_job(spark, base, "compaction")
    assert len(proved(spark, base, 7, index_of(4))) == 270


@pytest.mark.exhaustive
@pytest.mark.parametrize("shape", [{}, BY_COMMIT, {"table_type": COW}, {"version": 6}])
def test_no_update_is_lost_that_lies_between_two_that_were_repaired_together(
    spark: SparkSession, tmp_path: Path, base: Path, shape: dict[str, str]
) -> None:
    options = tables.write_table(spark, base, count=100, partitioned=False, **shape)
    count_buckets(spark, base, 4, 7)
    change = newest(base)
    stale = []
    # The values of the ordering field are equal, so that the instants decide.
    frames = [
        tables.rows(spark, first, last, ts=5).withColumn("fare", F.lit(fare))
        for first, last, fare in [(0, 20, 1.0), (0, 20, 2.0), (50, 60, 3.0), (10, 15, 4.0)]
    ]
    for number, frame in enumerate(frames):
        with hidden(base, change, tmp_path / f"away {number}"):
            stale.append(write_stale(frame, base, options))
    first, between, last, latest = stale
    with in_flight(base, between, tmp_path):
        instants = {"instants": [first, last, latest]}
        result = run_job(spark, base, "repair", instants, writers_retry_conflicts=True)
    assert result.details["repaired"] == [first, last, latest]

    result = run_job(spark, base, "repair", {"instants": [between]})

    assert (result.details["repaired"], result.details["rows"]) == ([between], 15)
    kept = [frames[1].where("id NOT IN ('k10', 'k11', 'k12', 'k13', 'k14')"), frames[3], frames[2]]
    unchanged = tables.rows(spark, 20, 50).union(tables.rows(spark, 60, 100))
    found, expected = texts(spark, base, *kept, unchanged)
    assert found == expected
    assert len(proved(spark, base, 7, index_of(4))) == 100


@pytest.mark.exhaustive
@pytest.mark.parametrize("more", [{}, BY_COMMIT])
def test_no_update_is_lost_that_lies_between_two_deletes_that_were_repaired_together(
    spark: SparkSession, tmp_path: Path, base: Path, more: dict[str, str]
) -> None:
    options = tables.write_table(spark, base, count=100, partitioned=False, **more)
    count_buckets(spark, base, 4, 7)
    change = newest(base)
    stale = []
    late = tables.rows(spark, 0, 10, ts=5)
    writes = [(tables.rows(spark, 0, 20), DELETE), (late, {}), (tables.rows(spark, 50, 60), DELETE)]
    for number, (frame, operation) in enumerate(writes):
        with hidden(base, change, tmp_path / f"away {number}"):
            stale.append(write_stale(frame, base, {**options, **operation}))
    first, between, last = stale
    with in_flight(base, between, tmp_path):
        result = run_job(spark, base, "repair", {"instants": [first, last]}, writers_retry_conflicts=True)
    assert (result.details["repaired"], result.details["deletes"]) == ([first, last], 30)

    result = run_job(spark, base, "repair", {"instants": [between]})

    assert (result.details["repaired"], result.details["rows"]) == ([between], 10)
    unchanged = tables.rows(spark, 20, 50).union(tables.rows(spark, 60, 100))
    found, expected = texts(spark, base, late, unchanged)
    assert found == expected
    assert len(proved(spark, base, 7, index_of(4))) == 80


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", [9, 6])
def test_a_later_delete_of_a_lesser_ordering_value_takes_back_no_earlier_delete(
    spark: SparkSession, tmp_path: Path, base: Path, version: int
) -> None:
    marker = {"hoodie.payload.delete.field": "region", "hoodie.payload.delete.marker": "gone"}
    options = {**tables.write_table(spark, base, count=100, version=version), **marker}
    tables.upsert(tables.rows(spark, 99, 100, ts=1), base, options)
    count_buckets(spark, base, 4, 7)
    change = newest(base)
    for ts in (9, 5):
        tables.upsert(tables.rows(spark, 0, 10, ts=ts).withColumn("region", F.lit("gone")), base, options)
    late = tables.rows(spark, 0, 20, ts=7)
    with hidden(base, change, tmp_path / "away"):
        stale = write_stale(late, base, options)

    result = run_job(spark, base, "repair", {"instants": [stale]}).details

    assert (result["repaired"], result["rows"]) == ([stale], 10)
    left = tables.rows(spark, 20, 99).union(tables.rows(spark, 99, 100, ts=1))
    found, expected = texts(spark, base, tables.rows(spark, 10, 20, ts=7), left)
    assert found == expected


@pytest.mark.parametrize(
    "shape",
    [
        {"metadata": False},
        *(pytest.param(each, marks=pytest.mark.exhaustive) for each in ({"version": 6}, {"table_type": COW})),
    ],
)
def test_no_stale_write_is_repaired_where_a_later_row_keeps_columns_of_an_earlier_one(
    spark: SparkSession, base: Path, shape: dict[str, Any]
) -> None:
    options = tables.writer_options(base, partitioned=False, **PARTIAL, **shape)
    tables.upsert(tables.rows(spark, 0, 60), base, options)
    count_buckets(spark, base, 4, 7)
    stale = write_stale(tables.rows(spark, 0, 6, ts=5).withColumn("note", F.lit("x")), base, options)
    # The row that wins has no note, so that the note of the stale write should stay.
    tables.upsert(tables.rows(spark, 0, 6, ts=8).withColumn("note", F.lit(None).cast("string")), base, options)
    for params in ({"instants": [stale]}, {}):
        with pytest.raises(RefusedError) as refused:
            run_job(spark, base, "repair", params)
        assert [each.type for each in refused.value.reasons] == ["merge-mode-custom"]
    planned = run_job(spark, base, "repair", dry_run=True).details
    assert [each["type"] for each in planned["refusals"]] == ["merge-mode-custom"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("shape", [{}, {"version": 6}, {"table_type": COW}])
def test_a_stale_write_whose_rows_no_job_can_know_is_marked_when_the_owner_has_written_whole_rows(
    spark: SparkSession, tmp_path: Path, base: Path, shape: dict[str, Any]
) -> None:
    options = tables.writer_options(base, partitioned=False, **PARTIAL, **shape)
    tables.upsert(tables.rows(spark, 0, 60), base, options)
    count_buckets(spark, base, 4, 7)
    lost = tables.rows(spark, 1, 5, ts=5).withColumn("note", F.lit("x"))
    with hidden(base, newest(base), tmp_path / "away"):
        stale = write_stale(lost, base, options)
    # The row that wins has no note, so that the note of the stale write should stay.
    tables.upsert(tables.rows(spark, 1, 5, ts=8).withColumn("note", F.lit(None).cast("string")), base, options)
    if shape.get("table_type") != COW:
        run_job(spark, base, "compaction")
    tables.upsert(lost, base, options)
    # The row in the base file has kept an older note, under its own ordering value, so the lost one comes too late.
    notes = [row["note"] for row in tables.collected(spark, base).rows]
    assert (len(notes), "x" in notes) == (60, False)
    whole = tables.rows(spark, 1, 5, ts=8).withColumn("note", F.lit("x"))
    tables.upsert(whole, base, options)
    with pytest.raises(RefusedError) as refused:
        run_job(spark, base, "cleaning", {"retain": 1})
    assert [each.type for each in refused.value.reasons] == ["stale-write-committed"]
    params: dict[str, Any]
    for params in ({"accepted": [newest(base)]}, {"instants": [stale], "accepted": [stale]}):
        with pytest.raises(RefusedError) as refused:
            run_job(spark, base, "repair", params)
        assert [each.type for each in refused.value.reasons] == ["merge-mode-custom"]
    planned = run_job(spark, base, "repair", {"accepted": [stale]}, dry_run=True).details
    assert (planned["refusals"], planned["left"]) == ([], [stale])

    done = run_job(spark, base, "repair", {"accepted": [stale]}).details

    assert (done["waived"], done["repaired"], done["left"]) == ([stale], [], [])
    found, expected = texts(spark, base, whole, tables.rows(spark, 0, 1), tables.rows(spark, 5, 60))
    assert found == expected
    assert len(proved(spark, base, 7, index_of(4))) == 60
    run_job(spark, base, "cleaning", {"retain": 1})
    tables.upsert(tables.rows(spark, 0, 60, ts=9), base, options)
    assert len(proved(spark, base, 7, index_of(4))) == 60
