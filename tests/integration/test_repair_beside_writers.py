"""A writer with an old number of buckets goes on while a repair moves its rows: no row is lost, old or there twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration import tables
from tests.integration.hidden import write_stale
from tests.integration.run import proved, run_job
from tests.integration.tables import newest, texts
from tests.integration.test_bucket_count import count_buckets, index_of
from tests.integration.writers import At

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

MOR, COW = "MERGE_ON_READ", "COPY_ON_WRITE"
# The rows of the first write are in their buckets by then, and the files that hold them twice are rewritten.
REWRITING = "rewriting"
WAITING = "waiting for writers to finish"


@pytest.mark.parametrize(
    ("table_type", "version", "partitioned", "before", "after", "step"),
    [
        (MOR, 9, False, 4, 7, REWRITING),
        # The writer commits after the repair has looked for the rows, and before it has the lock.
        *(pytest.param(each, 9, False, 4, 7, WAITING, marks=pytest.mark.exhaustive) for each in (MOR, COW)),
        *(
            pytest.param(*each[:2], True, *each[2:], REWRITING, marks=pytest.mark.exhaustive)
            for each in [
                (MOR, 9, 4, 7),
                (MOR, 9, 6, 4),
                (COW, 9, 4, 7),
                (COW, 9, 6, 4),
                (MOR, 6, 6, 4),
                (COW, 6, 4, 8),
            ]
        ),
    ],
)
def test_rows_that_a_stale_writer_adds_during_the_repair_of_earlier_ones_are_not_left_out(
    spark: SparkSession,
    base: Path,
    table_type: str,
    version: int,
    partitioned: bool,
    before: int,
    after: int,
    step: str,
) -> None:
    shape = {"table_type": table_type, "version": version, "partitioned": partitioned, "metadata": partitioned}
    options = tables.write_table(spark, base, count=300, num_buckets=before, **shape)
    index = index_of(before)
    count_buckets(spark, base, before, after)
    first = write_stale(tables.rows(spark, 0, 300, ts=5), base, options)
    later: list[str] = []

    def write_during_repair() -> None:
        later.append(write_stale(tables.rows(spark, 100, 330, ts=6), base, options))

    context = At(step, write_during_repair)
    result = run_job(spark, base, "repair", {"instants": [first]}, index=index, context=context)

    assert result.details["repaired"] == [first]
    second = run_job(spark, base, "repair", {"instants": later}, index=index).details
    found, expected = texts(spark, base, tables.rows(spark, 0, 100, ts=5), tables.rows(spark, 100, 330, ts=6))
    assert found == expected
    assert second["repaired" if step == REWRITING else "cleared"] == later
    assert len(proved(spark, base, after, index)) == 330


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("table_type", "version", "partitioned"),
    [(COW, 9, False), *((*each, True) for each in [(COW, 9), (MOR, 9), (MOR, 6), (COW, 6)])],
)
def test_a_row_that_a_writer_with_the_new_number_has_deleted_does_not_come_back_or_the_delete_is_named(
    spark: SparkSession, base: Path, table_type: str, version: int, partitioned: bool
) -> None:
    shape = {"table_type": table_type, "version": version, "partitioned": partitioned}
    options = tables.write_table(spark, base, count=300, **shape)
    count_buckets(spark, base, 4, 7)
    stale = write_stale(tables.rows(spark, 0, 100, ts=5).union(tables.rows(spark, 300, 340, ts=5)), base, options)
    # Readers go on seeing the version in the wrong bucket.
    deleting = {**options, "hoodie.datasource.write.operation": "delete"}
    tables.upsert(tables.rows(spark, 0, 60, ts=6), base, deleting)
    # The right buckets lack most of the new keys, and no file of copy-on-write names those that are deleted.
    tables.upsert(tables.rows(spark, 310, 320, ts=6), base, deleting)
    in_vain = [newest(base)] if table_type == COW else []
    again = tables.rows(spark, 50, 60, ts=7)
    tables.upsert(again, base, options)

    result = run_job(spark, base, "repair", {"instants": [stale]}).details

    assert (result["repaired"], result["deletes_without_rows"]) == ([stale], in_vain)
    if in_vain:
        tables.upsert(tables.rows(spark, 310, 320, ts=7), base, deleting)
    kept = [tables.rows(spark, 60, 100, ts=5), tables.rows(spark, 100, 300)]
    added = [tables.rows(spark, 300, 310, ts=5), tables.rows(spark, 320, 340, ts=5)]
    found, expected = texts(spark, base, again, *kept, *added)
    assert found == expected
    assert len(proved(spark, base, 7, index_of(4))) == 280
