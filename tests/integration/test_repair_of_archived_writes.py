"""A repair moves rows of writes with an old number of buckets that writers have archived already, as it does for writes
on the active timeline; where a deleted row might come back, it is refused."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.errors import JobError, RefusedError
from jobs.format import bucket_hash
from tests.integration import streaming_sink, tables
from tests.integration.hidden import write_stale
from tests.integration.run import hudi_table, proved, run_job
from tests.integration.tables import INDEX, newest, texts
from tests.integration.test_bucket_count import count_buckets, index_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from jobs.contract import BucketIndex

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


def cure(spark: SparkSession, base: Path, index: BucketIndex = INDEX) -> Any:
    audit = run_job(spark, base, "audit", index=index).details
    (found,) = (each for each in audit["findings"] if each["type"] == "rows-in-wrong-bucket")
    return found["cure"]["params"]


def require_history(spark: SparkSession, base: Path, named: dict[str, Any], index: BucketIndex) -> None:
    """Asserts that a repair without a whole history fails and changes nothing."""
    (folder,) = (each for name in ("timeline/history", "history") if (each := base / ".hoodie" / name).exists())
    rules, before = hudi_table(spark, base, index).bucket_rules(), tables.snapshot(spark, base)
    kept = shutil.move(folder, base.with_name("kept history"))
    for fault in ("gone", "damaged"):
        folder.mkdir()
        # Hadoop would see the fault by its checksums.
        for path in [each for each in kept.iterdir() if each.suffix != ".crc"] if fault == "damaged" else ():
            content = path.read_bytes()
            is_damaged = path.suffix == ".parquet" or path.name.startswith(".commits")
            (folder / path.name).write_bytes(content[:-40] if is_damaged else content)
        with pytest.raises(JobError) as refused:
            run_job(spark, base, "repair", named, index=index)
        # Hudi cannot read the rows of a table whose history has a damaged Parquet file.
        assert fault == "damaged" or refused.value.problem().type == "history-incomplete"
        shutil.rmtree(folder)
    shutil.move(kept, folder)
    assert tables.snapshot(spark, base) == before
    assert hudi_table(spark, base, index).bucket_rules() == rules


@pytest.mark.parametrize(
    ("table_type", "version", "before", "after"),
    [
        (MOR, 9, 4, 7),
        *(
            pytest.param(*each, marks=pytest.mark.exhaustive)
            for each in [(MOR, 6, 6, 4), (COW, 9, 6, 4), (COW, 6, 4, 7)]
        ),
    ],
)
def test_archived_rows_in_wrong_buckets_are_moved_and_no_deleted_one_comes_back(
    spark: SparkSession, base: Path, table_type: str, version: int, before: int, after: int
) -> None:
    shape = {"table_type": table_type, "version": version, "partitioned": False, "metadata": False}
    options, index = tables.write_table(spark, base, count=300, num_buckets=before, **shape), index_of(before)
    count_buckets(spark, base, before, after)
    tables.upsert(tables.rows(spark, 200, 210, ts=4), base, options)
    tables.upsert(tables.rows(spark, 290, 300, ts=4), base, {**options, **DELETING})
    stale = write_stale(tables.rows(spark, 0, 100, ts=5).union(tables.rows(spark, 300, 340, ts=5)), base, options)
    tables.upsert(tables.rows(spark, 20, 30, ts=6).union(tables.rows(spark, 320, 330, ts=4)), base, options)
    deletes = []
    for first in (30, 310):
        tables.upsert(tables.rows(spark, first, first + 10, ts=6), base, {**options, **DELETING})
        deletes.append(newest(base))
    more = archive(spark, base, options, deletes[-1])
    named = cure(spark, base, index)
    assert named == {"instants": [stale]}
    require_history(spark, base, named, index)

    if table_type == COW:
        # No file names the deleted keys any more: the base files before were cleaned.
        with pytest.raises(RefusedError) as refused:
            run_job(spark, base, "repair", named, index=index)
        assert refused.value.problem().type == "deletes-unread"
        assert all(each in refused.value.problem().detail for each in deletes)
        named["accepted"] = deletes
    details = run_job(spark, base, "repair", named, index=index).details

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
    assert len(proved(spark, base, after, index)) == 310 + more
    assert run_job(spark, base, "repair", named, index=index).details["cleared"] == [stale]
    second = write_stale(tables.rows(spark, 0, 60, ts=9), base, options)
    assert cure(spark, base, index) == {"instants": [second]}
    run_job(spark, base, "repair", {"instants": [second]}, index=index)
    assert len(proved(spark, base, after, index)) == 320 + more


@pytest.mark.parametrize(
    ("table_type", "version"),
    [(MOR, 9), *(pytest.param(*each, marks=pytest.mark.exhaustive) for each in [(MOR, 6), (COW, 9), (COW, 6)])],
)
def test_archived_deletes_in_wrong_buckets_are_found(
    spark: SparkSession, base: Path, table_type: str, version: int
) -> None:
    shape = {"table_type": table_type, "version": version, "partitioned": False, "metadata": False}
    options, index = tables.write_table(spark, base, count=300, **shape), index_of(4)
    count_buckets(spark, base, 4, 8)
    deleting = {**options, **DELETING}
    gone = tables.rows(spark, 0, 100)
    stale = write_stale(gone, base, deleting)
    tables.upsert(tables.rows(spark, 290, 300, ts=4), base, deleting)
    # Keys that do not exist, all of which belong to buckets that the table had before, prove nothing.
    keys = [f"k{each}" for each in range(900, 940)]
    codes = (bucket_hash.hash_codes(pa.array(keys), ("id",)) & 0x7FFFFFFF).tolist()
    known = [key for key, code in zip(keys, codes, strict=True) if code % 8 < 4]
    tables.upsert(tables.rows(spark, 900, 940).where(F.col("id").isin(known)), base, deleting)
    assert sum(hudi_table(spark, base, index).commits()[-1].deleted.values()) == len(known) > 10
    left = spark.read.format("hudi").load(str(base)).count()
    assert 190 < left < 290
    more = archive(spark, base, options, newest(base))

    (found,) = run_job(spark, base, "audit", index=index).details["findings"]

    if table_type == MOR:
        assert found["cure"] == {"kind": "repair", "params": {"instants": [stale]}}
        done = run_job(spark, base, "repair", {"instants": [stale]}, index=index).details
        assert (done["repaired"], done["deletes"]) == ([stale], left - 190)
    else:
        assert (found["type"], found["detail"]) == ("deletes-without-effect", f"{left - 190} deletes of {stale}")
        tables.upsert(gone, base, deleting)
        run_job(spark, base, "repair", {"accepted": [stale]}, index=index)
    assert len(proved(spark, base, 8, index)) == 190 + more


@pytest.mark.exhaustive
def test_the_next_attempt_finds_what_was_written_and_archived_after_the_commit_of_a_lost_one(
    spark: SparkSession, base: Path
) -> None:
    options = tables.write_table(spark, base, count=300, partitioned=False, metadata=False)
    # The expansion records only instants of the active timeline, although it copies the rows of this one, too.
    right = newest(base)
    before = archive(spark, base, options, right)
    job: dict[str, Any] = {"kind": "bucket_count", "params": {"num_buckets": 7}, "index": index_of(4)}
    first = run_job(spark, base, **job)
    fresh = newest(base)
    stale = write_stale(tables.rows(spark, 0, 100, ts=5).union(tables.rows(spark, 300, 340, ts=5)), base, options)
    tables.upsert(tables.rows(spark, 90, 110, ts=6), base, options)
    more = max(before, archive(spark, base, options, stale))
    assert hudi_table(spark, base, INDEX).was_archived(fresh)

    again = run_job(spark, base, **job, earlier_instants=first.instants).details

    # One row shows nothing, so the writes of single rows were checked as well.
    assert stale in again["repaired"]
    written = [tables.rows(spark, *part, ts=5) for part in [(0, 90), (300, 340)]]
    others = [tables.rows(spark, *part) for part in [(110, 300), (500, 500 + more)]]
    found, expected = texts(spark, base, tables.rows(spark, 90, 110, ts=6), *written, *others)
    assert found == expected
    assert len(proved(spark, base, 7, index_of(4))) == 340 + more
    details = run_job(spark, base, "repair", {"instants": [right]}, index=index_of(4)).details
    assert (details["cleared"], details["repaired"]) == ([right], [])
    assert len(proved(spark, base, 7, index_of(4))) == 340 + more


@pytest.mark.exhaustive
@pytest.mark.parametrize("table_type", [MOR, COW])
def test_the_batches_that_a_stream_has_written_by_its_old_number_and_archived_are_moved(
    spark: SparkSession, tmp_path: Path, table_type: str
) -> None:
    base, folder = tmp_path / "numbers", tmp_path / "stream"
    options = tables.writer_options(base, table_type=table_type, metadata=False, **ARCHIVING)
    options["hoodie.datasource.compaction.async.enable"] = "false"
    with streaming_sink.running(spark, folder, base, options) as query:
        run_job(spark, base, "bucket_expansion", {"factor": 2, "settle_seconds": 0}, writers_stopped=True)
        expanded = newest(base)
        while not hudi_table(spark, base, INDEX).was_archived(expanded):
            streaming_sink.wait_for_batches(query, folder, 1)
        streaming_sink.wait_for_batches(query, folder, 2)
    last = newest(base)
    empty = spark.read.format("hudi").load(str(base)).limit(0)
    columns = [name for name in empty.columns if not name.startswith("_hoodie")]
    while not hudi_table(spark, base, INDEX).was_archived(last):
        tables.upsert(empty.select(*columns), base, options)

    named = cure(spark, base)
    run_job(spark, base, "repair", named)

    assert last in named["instants"]
    assert streaming_sink.differences(spark, base) == (streaming_sink.KEYS, [])
    proved(spark, base, 8)
