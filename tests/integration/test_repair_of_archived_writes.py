"""A repair moves rows of writes with an old number of buckets that writers have archived already, as it does for writes
on the active timeline; where a deleted row might come back, it is refused."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from jobs.errors import RefusedError
from tests.integration import tables
from tests.integration.run import hudi_table, proved, run_job
from tests.integration.tables import INDEX
from tests.integration.test_bucket_count import count_buckets, index_of
from tests.integration.test_repair_beside_writers import newest, texts, write_stale

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

MOR, COW = "MERGE_ON_READ", "COPY_ON_WRITE"
ARCHIVING = {
    "hoodie.archive.automatic": "true",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.automatic": "true",
    "hoodie.clean.commits.retained": "1",
}
DELETING = {"hoodie.datasource.write.operation": "delete"}


def archive(spark: SparkSession, base: Path, options: dict[str, str], instant: str) -> int:
    """Lets a writer with its own archival go on until it has archived the instant; returns the number of commits."""
    columns = spark.read.format("hudi").load(str(base)).columns[5:]
    for number in range(8):
        row = tables.rows(spark, 500 + number, 501 + number).select(*columns)
        tables.upsert(row, base, {**options, **ARCHIVING})
        if hudi_table(spark, base, INDEX).was_archived(instant):
            return number + 1
    raise AssertionError(f"{instant} is still on the active timeline")


def cure(spark: SparkSession, base: Path) -> Any:
    audit = run_job(spark, base, "audit", index=index_of(4)).details
    (found,) = (each for each in audit["findings"] if each["type"] == "rows-in-wrong-bucket")
    return found["cure"] and found["cure"]["params"]


def require_history(spark: SparkSession, base: Path, named: dict[str, Any]) -> None:
    """Asserts that a repair without a whole history is refused and changes nothing, and an audit then names none."""
    folder = next(each for name in ("timeline/history", "archived") if (each := base / ".hoodie" / name).exists())
    kept = shutil.move(folder, base.with_name("kept history"))
    for fault in ("gone", "damaged"):
        folder.mkdir()
        # Hadoop would see the fault by its checksums.
        for path in [each for each in kept.iterdir() if each.suffix != ".crc"] if fault == "damaged" else ():
            content = path.read_bytes()
            is_damaged = path.suffix == ".parquet" or path.name.startswith(".commits")
            (folder / path.name).write_bytes(content[:-40] if is_damaged else content)
        before = tables.snapshot(spark, base)
        with pytest.raises(RefusedError) as refused:
            run_job(spark, base, "repair", named, index=index_of(4))
        assert refused.value.problem().type == "history-incomplete"
        assert tables.snapshot(spark, base) == before
        assert cure(spark, base) is None
        shutil.rmtree(folder)
    shutil.move(kept, folder)


@pytest.mark.parametrize(
    ("table_type", "version"),
    [(MOR, 9), *(pytest.param(*each, marks=pytest.mark.exhaustive) for each in [(MOR, 6), (COW, 9), (COW, 6)])],
)
def test_archived_rows_in_wrong_buckets_are_moved_and_no_deleted_one_comes_back(
    spark: SparkSession, base: Path, table_type: str, version: int
) -> None:
    shape = {"table_type": table_type, "version": version, "partitioned": False, "metadata": False}
    options = tables.write_table(spark, base, count=300, **shape)
    count_buckets(spark, base, 4, 7)
    tables.upsert(tables.rows(spark, 200, 210, ts=4), base, options)
    tables.upsert(tables.rows(spark, 290, 300, ts=4), base, {**options, **DELETING})
    stale = write_stale(tables.rows(spark, 0, 100, ts=5).union(tables.rows(spark, 300, 340, ts=5)), base, options)
    tables.upsert(tables.rows(spark, 20, 30, ts=6).union(tables.rows(spark, 320, 330, ts=4)), base, options)
    deletes = []
    for first in (30, 310):
        tables.upsert(tables.rows(spark, first, first + 10, ts=6), base, {**options, **DELETING})
        deletes.append(newest(base))
    more = archive(spark, base, options, deletes[-1])
    named = cure(spark, base)
    assert named == {"instants": [stale]}
    require_history(spark, base, named)

    if table_type == COW:
        # No file names the deleted keys any more: the base files before were cleaned.
        with pytest.raises(RefusedError) as refused:
            run_job(spark, base, "repair", named, index=index_of(4))
        assert refused.value.problem().type == "deletes-unread"
        assert all(each in refused.value.problem().detail for each in deletes)
        named["accepted"] = deletes
    details = run_job(spark, base, "repair", named, index=index_of(4)).details

    assert details["repaired"] == [stale]
    if table_type == COW:
        assert details["deletes_without_rows"] == deletes
        again = tables.rows(spark, 30, 40, ts=6).union(tables.rows(spark, 310, 320, ts=6))
        tables.upsert(again, base, {**options, **DELETING})
    written = [tables.rows(spark, *part, ts=5) for part in [(0, 20), (40, 100), (300, 310), (320, 340)]]
    written += [tables.rows(spark, 20, 30, ts=6), tables.rows(spark, 200, 210, ts=4)]
    others = [tables.rows(spark, *part) for part in [(100, 200), (210, 290), (500, 500 + more)]]
    found, expected = texts(spark, base, *written, *others)
    assert found == expected
    assert len(proved(spark, base, 7, index_of(4))) == 310 + more
    assert run_job(spark, base, "repair", named, index=index_of(4)).details["cleared"] == [stale]
    second = write_stale(tables.rows(spark, 0, 60, ts=9), base, options)
    assert cure(spark, base) == {"instants": [second]}
    run_job(spark, base, "repair", {"instants": [second]}, index=index_of(4))
    assert len(proved(spark, base, 7, index_of(4))) == 320 + more


def test_the_next_attempt_finds_what_was_written_and_archived_after_the_commit_of_a_lost_one(
    spark: SparkSession, base: Path
) -> None:
    options = tables.write_table(spark, base, count=300, partitioned=False, metadata=False)
    job: dict[str, Any] = {"kind": "bucket_count", "params": {"num_buckets": 7}, "index": index_of(4)}
    first = run_job(spark, base, **job)
    fresh = newest(base)
    stale = write_stale(tables.rows(spark, 0, 100, ts=5).union(tables.rows(spark, 300, 340, ts=5)), base, options)
    tables.upsert(tables.rows(spark, 90, 110, ts=6), base, options)
    more = archive(spark, base, options, stale)
    assert hudi_table(spark, base, INDEX).was_archived(fresh)

    again = run_job(spark, base, **job, earlier_instants=first.instants).details

    # One row shows nothing, so the writes of single rows were checked as well.
    assert stale in again["repaired"]
    written = [tables.rows(spark, *part, ts=5) for part in [(0, 90), (300, 340)]]
    others = [tables.rows(spark, *part) for part in [(110, 300), (500, 500 + more)]]
    found, expected = texts(spark, base, tables.rows(spark, 90, 110, ts=6), *written, *others)
    assert found == expected
    assert len(proved(spark, base, 7, index_of(4))) == 340 + more
