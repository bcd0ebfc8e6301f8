"""Each job that changes the number of buckets keeps the same promises to writers, and stops at the same tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.contract import BucketIndex
from jobs.errors import RefusedError
from tests.integration import tables
from tests.integration.hidden import write_stale
from tests.integration.independent import rows_by_hudi_rs, rows_by_spark
from tests.integration.run import proved, run_job
from tests.integration.tables import left_behind, texts
from tests.integration.writers import At, HeldWriter, prepared_while_committing

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from jobs.job_context import JobContext

MOR, COW = "MERGE_ON_READ", "COPY_ON_WRITE"


@dataclass(frozen=True)
class Change:
    """A job from one number of buckets to another, and the parameters of a further job of its kind."""

    kind: str
    before: int
    after: int
    params: dict[str, Any]
    further: dict[str, Any]

    def __str__(self) -> str:
        return "-".join([self.kind, str(self.before), *map(str, self.params.values())])

    @property
    def index(self) -> BucketIndex:
        return BucketIndex(self.before, ("id",))

    def run(self, spark: SparkSession, base: Path, context: JobContext | None = None, **more: Any) -> dict[str, Any]:
        return run_job(spark, base, self.kind, self.params | more, index=self.index, context=context).details


def counted(before: int, after: int, **way: str) -> Change:
    return Change("bucket_count", before, after, {"num_buckets": after, **way}, {"num_buckets": after + 1})


EXPANSION = Change("bucket_expansion", 4, 8, {"factor": 2}, {"factor": 2})
CONTRACTION = Change("bucket_contraction", 8, 2, {"factor": 4}, {"factor": 2})
WAYS = ["one_rehash", "through_multiple"]


def exhaustive(change: Change, *more: Any) -> Any:
    return pytest.param(change, *more, marks=pytest.mark.exhaustive, id="-".join(map(str, [change, *more])))


@pytest.mark.parametrize(
    ("change", "table_type"),
    [
        pytest.param(EXPANSION, MOR, id=f"{EXPANSION}-{MOR}"),
        exhaustive(EXPANSION, COW),
        *(exhaustive(CONTRACTION, table_type) for table_type in (MOR, COW)),
        *(exhaustive(counted(6, 4, way=way), table_type) for way in WAYS for table_type in (MOR, COW)),
    ],
)
def test_commits_of_writers_during_the_job_are_rewritten_as_well(
    spark: SparkSession, base: Path, change: Change, table_type: str
) -> None:
    options = tables.writer_options(base, table_type=table_type, num_buckets=change.before)
    tables.upsert(tables.rows(spark, 0, 60, partitions=1), base, options)

    def writers_commit() -> None:
        # Only some buckets have another file then.
        tables.upsert(tables.rows(spark, 0, 4, ts=5, partitions=1), base, options)
        tables.upsert(tables.rows(spark, 60, 150, ts=5).withColumn("dt", F.lit("2026-02-01")), base, options)

    result = change.run(spark, base, At("waiting for writers", writers_commit))

    assert result["rewritten_again"] > 0
    assert result["files_written"] == 2 * change.after
    assert len(proved(spark, base, change.after, change.index)) == 150
    assert sum(row["ts"] == 5 for row in tables.collected(spark, base).rows) == 94
    assert rows_by_hudi_rs(base) == rows_by_spark(spark, base)


@pytest.mark.parametrize(
    ("change", "table_type"),
    [
        *(exhaustive(change, table_type) for change in (EXPANSION, CONTRACTION) for table_type in (MOR, COW)),
        *(exhaustive(change, MOR) for change in (counted(8, 6), counted(6, 8))),
    ],
)
def test_a_writer_that_read_the_old_number_before_the_commit_and_starts_after_it_is_stopped(
    spark: SparkSession, base: Path, change: Change, table_type: str
) -> None:
    options = tables.write_table(spark, base, count=300, num_buckets=change.before, table_type=table_type)
    writer = HeldWriter(tables.rows(spark, 0, 350, ts=5), base, options)
    result = change.run(spark, base, prepared_while_committing(writer), settle_seconds=8)

    writer.end()
    assert writer.error is not None
    assert len(result["fenced"]) == 1
    assert len(proved(spark, base, change.after, change.index)) == 300
    # The writer's retry reads the new number.
    tables.upsert(tables.rows(spark, 0, 350, ts=5), base, options)
    assert len(proved(spark, base, change.after, change.index)) == 350


@pytest.mark.parametrize(
    ("change", "table_type", "version"),
    [
        *(exhaustive(EXPANSION, *shape) for shape in [(MOR, 9), (COW, 6)]),
        *(exhaustive(CONTRACTION, *shape) for shape in [(MOR, 9), (COW, 9), (MOR, 6), (COW, 6)]),
        *(exhaustive(counted(8, 6), *shape) for shape in [(MOR, 9), (COW, 9), (MOR, 6)]),
        *(exhaustive(counted(6, 8), *shape) for shape in [(MOR, 9), (COW, 9), (MOR, 6)]),
    ],
)
def test_rows_that_a_writer_wrote_by_the_old_number_are_moved_in_all_columns(
    spark: SparkSession, base: Path, change: Change, table_type: str, version: int
) -> None:
    shape = {"num_buckets": change.before, "table_type": table_type, "version": version}
    options = tables.write_table(spark, base, count=300, **shape)
    index = change.index
    change.run(spark, base)
    new_partition = tables.rows(spark, 1000, 1100, ts=5).withColumn("dt", F.lit("2026-02-01"))
    written = tables.rows(spark, 0, 150, ts=5).union(new_partition)
    instant = write_stale(written, base, options)
    audit = run_job(spark, base, "audit", index=index).details
    assert not audit["clean"]
    assert audit["misplaced"] == tables.misplaced(spark, base, change.after) > 0
    with pytest.raises(RefusedError, match="bucket"):
        run_job(spark, base, change.kind, change.further, index=index)

    result = run_job(spark, base, "repair", {"instants": [instant]}, index=index).details

    assert result["repaired"] == [instant]
    assert result["moved"] == audit["misplaced"]
    assert len(proved(spark, base, change.after, index)) == 400
    found, expected = texts(spark, base, tables.rows(spark, 150, 300), written)
    assert found == expected
    assert rows_by_hudi_rs(base) == rows_by_spark(spark, base)
    tables.upsert(tables.rows(spark, 0, 300, ts=9), base, options)
    assert len(proved(spark, base, change.after, index)) == 400
    assert run_job(spark, base, "repair", {"instants": [instant]}, index=index).details["cleared"] == [instant]


@pytest.mark.parametrize(
    ("change", "table_type"),
    [
        exhaustive(change, table_type)
        for change in (CONTRACTION, *(counted(8, 5, way=way) for way in WAYS))
        for table_type in (MOR, COW)
    ],
)
def test_a_key_in_two_buckets_is_refused_before_the_commit(
    spark: SparkSession, base: Path, change: Change, table_type: str
) -> None:
    options = tables.write_table(spark, base, count=300, num_buckets=8, table_type=table_type)
    # The writer has half of the number, so keys of the buckets 4 to 7 are written to the buckets 0 to 3 a second time.
    wrong = {**options, "hoodie.bucket.index.num.buckets": "4"}
    tables.upsert(tables.rows(spark, 0, 50, ts=5), base, wrong)
    assert tables.duplicates(spark, base) > 0
    before = tables.snapshot(spark, base)

    with pytest.raises(RefusedError) as caught:
        change.run(spark, base)

    assert caught.value.problem().type == "bucket-index-contradicted"
    assert tables.snapshot(spark, base) == before
    assert left_behind(base) == []
