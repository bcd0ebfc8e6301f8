"""Writers of Hudi 0.15, 1.0 and 1.1 go on after a join of small files, another number of buckets, and an upgrade."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from service.lake.table import TableType
from tests.integration import tables
from tests.integration.run import hudi_table, run_job
from tests.integration.tables import INDEX
from tests.integration.test_older_hudi import CHANGED, ROWS, Story, writer_of, writers

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.integration.old_writer import OldWriter

__all__ = ["writers"]

pytestmark = pytest.mark.exhaustive
COW, MOR = TableType.COPY_ON_WRITE, TableType.MERGE_ON_READ


@pytest.mark.parametrize(
    ("version", "table_version", "table_type", "index"),
    [
        ("0.15.0", 6, COW, "simple"),
        ("0.15.0", 6, COW, "bloom"),
        ("1.0.2", 6, MOR, "simple"),
        ("1.0.2", 8, COW, "bloom"),
        ("1.1.1", 8, COW, "simple"),
        ("1.1.1", 9, MOR, "bloom"),
    ],
)
def test_after_a_join_of_small_files(
    spark: SparkSession,
    base: Path,
    writers: dict[str, OldWriter],
    version: str,
    table_version: int,
    table_type: TableType,
    index: str,
) -> None:
    old = writer_of(writers, version)
    options = Story.printed(base, version, table_type, table_version, index)
    story = Story(spark, base, old, {**options, "hoodie.parquet.small.file.limit": "0"}, index)
    for number in range(3):
        story.write(number * ROWS, (number + 1) * ROWS, ts=0, create=not number)
    story.write(ROWS - CHANGED, ROWS + CHANGED, ts=1)
    groups = len(hudi_table(spark, base, None).file_slices())
    assert story.serve("clustering") == "done"
    assert len(hudi_table(spark, base, None).file_slices()) == 3 < groups
    for _ in range(2):
        story.go_on()
    audit = run_job(spark, base, "audit", index=None).details
    assert (audit["clean"], audit["rows"], audit["duplicates"]) == (True, len(story.rows), 0), audit


@pytest.mark.parametrize(
    ("version", "table_version", "table_type"),
    [("1.0.2", 6, COW), ("1.0.2", 8, MOR), ("1.1.1", 9, COW), ("1.1.1", 6, MOR)],
)
def test_after_another_number_of_buckets(
    spark: SparkSession,
    base: Path,
    writers: dict[str, OldWriter],
    version: str,
    table_version: int,
    table_type: TableType,
) -> None:
    story = Story.begin(spark, base, writer_of(writers, version), table_type, table_version, "bucket")
    for number, way in ((7, "one_rehash"), (3, "through_multiple")):
        # Hudi 1.1 follows the number in the storage, and keeps its old option.
        follows = version == "1.1.1"
        declared = {} if follows else {"writers_stopped": True}
        assert story.serve("bucket_count", {"num_buckets": number, "way": way}, **declared) == "done"
        if not follows:
            story.options["hoodie.bucket.index.num.buckets"] = str(number)
        story.go_on()
        assert tables.misplaced(spark, base, number) == 0
    audit = run_job(spark, base, "audit", index=INDEX).details
    assert (audit["clean"], audit["rows"], audit["duplicates"]) == (True, len(story.rows), 0), audit


@pytest.mark.parametrize(
    ("path", "index"), [((6, 9), "bucket"), ((6, 8), "record"), ((8, 9), "record"), ((9, 8), "bucket")]
)
def test_after_a_change_of_the_version(
    spark: SparkSession, base: Path, writers: dict[str, OldWriter], path: tuple[int, int], index: str
) -> None:
    old, (before, after) = writer_of(writers, "1.1.1"), path
    story = Story.begin(spark, base, old, MOR, before, index)
    declared = {"readers_hudi_version": "1.1.1", "writers_stopped": True}
    assert story.serve("upgrade", {"to_version": after}, **declared) == "done"
    assert hudi_table(spark, base, None).version == after
    story.options = Story.printed(base, "1.1.1", MOR, after, index)
    for _ in range(2):
        story.go_on()
    audit = run_job(spark, base, "audit", index=INDEX if index == "bucket" else None).details
    assert (audit["clean"], audit["rows"], audit["duplicates"]) == (True, len(story.rows), 0), audit
