"""Writers of Hudi 0.15, 1.0 and 1.1 go on after a join of small files, another number of buckets, an upgrade, and the
end of an index. A build of an index is refused for such writers (`test_index_builds`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from jobs.hudi import column_stats
from jobs.hudi.client import WriteClient
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.services import metadata_table
from jobs.table_errors import MetadataTableBusyError
from service.lake.table import TableType
from tests.integration import tables
from tests.integration.indexed import FEW_FILES, STATISTICS
from tests.integration.old_writer import OldWriter
from tests.integration.run import hudi_table, run_job
from tests.integration.tables import INDEX
from tests.integration.test_older_hudi import CHANGED, ROWS, Story, writer_of, writers
from tests.integration.writers import At

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

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
def test_older_writers_go_on_after_a_join_of_small_files(
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
    assert_audited(story)


@pytest.mark.parametrize(
    ("version", "table_version", "table_type"),
    [("1.0.2", 6, COW), ("1.0.2", 8, MOR), ("1.1.1", 9, COW), ("1.1.1", 6, MOR)],
)
def test_older_writers_go_on_after_a_change_of_the_number_of_buckets(
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
    assert_audited(story)


@pytest.mark.parametrize(
    ("path", "index"), [((6, 9), "bucket"), ((6, 8), "record"), ((8, 9), "record"), ((9, 8), "bucket")]
)
def test_older_writers_go_on_after_a_change_of_the_version(
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
    assert_audited(story)


def test_older_writers_go_on_after_a_clean_of_files_with_statistics(spark: SparkSession, base: Path) -> None:
    with OldWriter("1.0.2") as old:
        # The thread that reads the first delete decides, so the other tests do not share this process.
        old.misread_deletes()
        compacting = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
        story = Story(spark, base, old, {**Story.printed(base, "1.0.2", MOR, 8, "bucket"), **compacting}, "bucket")
        story.write(0, ROWS, ts=0, create=True)
        for ts in (1, 2):
            story.write(0, CHANGED, ts=ts)
        assert "column_stats" in hudi_table(spark, base, None).metadata_partitions
        assert story.serve("cleaning", {"retain": 1}) == "done"
        for _ in range(2):
            story.go_on()
    assert_audited(story)


def test_hudi_before_1_0_archives_a_clean(spark: SparkSession, base: Path, writers: dict[str, OldWriter]) -> None:
    """Each commit cleans, so that the timeline has more cleans than commits that it keeps."""
    options = Story.printed(base, "0.15.0", COW, 6, "bucket")
    story = Story(spark, base, writer_of(writers, "0.15.0"), options, "bucket")
    story.write(0, CHANGED, ts=0, create=True)
    for ts in (1, 2):
        story.write(0, CHANGED, ts=ts)
    assert story.serve("cleaning", {"retain": 1}) == "done"
    own = ("cleaner.commits.retained", "1"), ("keep.min.commits", "2"), ("keep.max.commits", "3")
    services = {"hoodie.clean.automatic": "true", "hoodie.archive.automatic": "true"}
    story.options |= {**services, **{f"hoodie.{name}": value for name, value in own}}
    done = {item.requested for item in hudi_table(spark, base, None).instants()}
    for ts in range(3, 10):
        story.write(0, CHANGED, ts=ts)
    assert not done & {item.requested for item in hudi_table(spark, base, None).instants()}
    story.check()
    assert_audited(story)


def test_a_cleaning_merges_the_deletes_of_an_earlier_attempt_that_failed_to(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape: dict[str, Any] = {
        "table_type": "COPY_ON_WRITE",
        "version": 8,
        "partitioned": False,
        "count": 60,
        "updates": 2,
    }
    tables.write_table(spark, base, **shape, **STATISTICS)
    params, declared = {"retain": 1}, {"declared": {"writers_hudi_version": "1.0.2"}}
    with monkeypatch.context() as busy:
        busy.setattr(metadata_table, "merge_logs", _is_busy)
        with pytest.raises(MetadataTableBusyError):
            run_job(spark, base, "cleaning", params, **declared)
    table = hudi_table(spark, base, None)
    cleans = {item.requested for item in table.instants() if item.action == "clean"}
    assert len(cleans) == 1
    done = run_job(spark, base, "cleaning", params, **declared)
    assert (done.instants, done.details["nothing_to_do"]) == ((), False)
    with WriteClient(table, UNDER_OUR_LOCK) as client:
        assert not client.metadata_table.has_logs_of(cleans)
    assert run_job(spark, base, "cleaning", params, **declared).details["nothing_to_do"]


def _is_busy(*_: Any) -> None:
    raise MetadataTableBusyError("tried")


@pytest.mark.parametrize(("version", "table_version"), [("0.15.0", 6), ("1.0.2", 8), ("1.1.1", 9)])
def test_older_writers_go_on_after_an_index_was_dropped(
    spark: SparkSession, base: Path, writers: dict[str, OldWriter], version: str, table_version: int
) -> None:
    old = writer_of(writers, version)
    options = {**Story.printed(base, version, COW, table_version, "simple"), "hoodie.metadata.enable": "true"}
    story = Story(spark, base, old, {**options, **STATISTICS}, "simple")
    story.write(0, ROWS, ts=0, create=True)
    story.write(0, CHANGED, ts=1)
    assert "column_stats" in hudi_table(spark, base, None).metadata_partitions
    assert story.serve("index", {"action": "drop", "index": "column_stats"}) == "done"
    assert "column_stats" not in hudi_table(spark, base, None).metadata_partitions
    # A writer that has still its option builds the index anew.
    story.go_on()
    story.serve("index", {"action": "drop", "index": "column_stats"})
    story.options = options
    story.go_on()
    assert_audited(story)


@pytest.mark.parametrize("index", ["bucket", "record"])
def test_a_commit_of_1_0_during_a_compaction_does_not_make_it_fail(
    spark: SparkSession, base: Path, writers: dict[str, OldWriter], index: str
) -> None:
    """Hudi 1.0 rolls back what it finds open in the metadata table."""
    old = writer_of(writers, "1.0.2")
    options = {**Story.printed(base, "1.0.2", MOR, 8, index), **STATISTICS, **FEW_FILES}
    story = Story(spark, base, old, options, index)
    story.write(0, ROWS, ts=0, create=True)
    story.write(0, CHANGED, ts=1)
    context = At("comparing", lambda: story.write(ROWS, ROWS + CHANGED, ts=2))
    declared = {"writers_hudi_version": "1.0.2"}
    of_index = INDEX if index == "bucket" else None
    assert run_job(spark, base, "compaction", context=context, index=of_index, declared=declared).instants
    story.check()
    story.go_on()
    assert_audited(story)


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_indexes_of_1_0_are_compared_with_the_rows(
    spark: SparkSession, base: Path, writers: dict[str, OldWriter], table_type: TableType
) -> None:
    """Several records of a key have to be merged, with the schema of the metadata table that Hudi 1.0 stores."""
    old = writer_of(writers, "1.0.2")
    options = Story.printed(base, "1.0.2", table_type, 8, "record")
    story = Story(spark, base, old, {**options, **STATISTICS, **FEW_FILES}, "record")
    story.write(0, ROWS, ts=0, create=True)
    clustering = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "1"}
    for ts in (1, 2):
        story.old.upsert(base, {**story.options, **clustering}, 0, CHANGED, ts=ts)
    story.rows |= {f"k{number}": 2 for number in range(CHANGED)}
    story.check()
    table = hudi_table(spark, base, None)
    assert {"record_index", "partition_stats"} <= table.metadata_partitions
    compared = column_stats.of_partitions(table, table.file_slices())
    assert (compared.places, compared.unindexed, compared.hiding) == (3, [], {})
    assert_audited(story)


def test_statistics_of_files_that_0_15_clustered_are_compared(
    spark: SparkSession, base: Path, writers: dict[str, OldWriter]
) -> None:
    """The footers of these files mark meta columns in a way that hides the name of the file from Spark's queries."""
    options = {**Story.printed(base, "0.15.0", COW, 6, "simple"), **STATISTICS}
    clustering = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "1"}
    story = Story(spark, base, writer_of(writers, "0.15.0"), {**options, **clustering}, "simple")
    story.write(0, ROWS, ts=0, create=True)
    table = hudi_table(spark, base, None)
    assert (table.instants()[-1].action, "column_stats" in table.metadata_partitions) == ("replacecommit", True)
    compared = column_stats.of_files(table, table.file_slices())
    assert (compared.places, compared.unindexed, compared.hiding) == (len(table.file_slices()), [], {})
    assert_audited(story)


def test_lists_and_maps_of_a_rewritten_file_are_merged_with_new_rows(
    spark: SparkSession, base: Path, writers: dict[str, OldWriter]
) -> None:
    """Hudi 0.15 takes a list for null if the file has lists and maps of different forms."""
    old = writer_of(writers, "0.15.0")
    options = Story.printed(base, old.version, COW, 6, "bucket")
    schema = "id string, ts long, dt string, items array<struct<a: long, b: string>>, tags map<string, string>"
    rows = [[f"k{n}", 0, "2026-01-01", [[n, f"x{n}"]] if n % 3 else None, {"t": f"y{n}"}] for n in range(60)]
    old.write(base, options, rows, schema, create=True)
    assert run_job(spark, base, "clustering", {"sort_by": ["id"]}).instants
    rows[:20] = [[key, 1, *rest] for key, _, *rest in rows[:20]]
    old.write(base, options, rows[:20], schema)
    old.write(base, {**options, "hoodie.datasource.write.operation": "delete"}, rows[50:], schema)

    columns = ["id", "ts", "items", "tags"]
    expected = sorted([key, ts, items, tags] for key, ts, _, items, tags in rows[:50])
    assert sorted(old.read(base, columns)) == expected
    ours = spark.read.format("hudi").load(str(base)).select(*columns).collect()
    assert sorted(
        [row.id, row.ts, row["items"] and [list(each) for each in row["items"]], row.tags] for row in ours
    ) == (expected)


def assert_audited(story: Story) -> None:
    """Asserts that an audit makes all checks, finds all rows once, and nothing wrong."""
    index = INDEX if story.index == "bucket" else None
    audit = run_job(story.spark, story.base, "audit", index=index).details
    assert (audit["findings"], audit["unchecked"], audit["clean"]) == ([], [], True), audit
    assert (audit["rows"], audit["duplicates"]) == (len(story.rows), 0), audit
