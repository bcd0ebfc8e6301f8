"""An audit finds the damage that faults of runners and writers cause, even if all readers read the table without an
error; and it finds nothing in healthy tables."""

from __future__ import annotations

import re
import shutil
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.contract import BucketIndex
from jobs.errors import RefusedError
from jobs.format.instants import instant_of, wall_clock
from jobs.hudi.client import WriteClient
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.table_errors import TableEmptyError
from tests.integration import tables
from tests.integration.long_session import LongSession
from tests.integration.plans import OtherRunner, schedule_clustering
from tests.integration.run import hudi_table, run_job
from tests.integration.tables import INDEX
from tests.integration.writers import At, HeldWriter

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
EACH_COMMIT = {"hoodie.clustering.async.max.commits": "1", "hoodie.clustering.plan.strategy.sort.columns": "city"}


def found(spark: SparkSession, base: Path, *, rows: bool = False, index: Any = None) -> dict[str, str]:
    """Returns types and texts of an audit's findings, after it has asserted that all checks were made."""
    details = run_job(spark, base, "audit", {"rows": rows}, index=index).details
    assert details["unchecked"] == []
    assert details["clean"] == (not details["findings"]), details
    assert ("rows" in details) == rows
    return {finding["type"]: finding["detail"] for finding in details["findings"]}


class Runner:
    """A runner of Hudi's clustering that has loaded the timeline and continues with this state."""

    def __init__(self, spark: SparkSession, base: Path) -> None:
        self.table = hudi_table(spark, base, None)
        self.client = WriteClient(self.table, UNDER_OUR_LOCK, EACH_COMMIT)

    def look(self) -> None:
        """Loads the current state of the table for later steps."""
        self.table.reload()
        jvm = self.table.jvm
        self.seen = jvm.hudi.table.HoodieSparkTable.create(self.client._config, jvm.engine_context, self.table.meta)
        self.seen.getMetaClient().getActiveTimeline().countInstants()

    def execute(self, instant: str) -> Any:
        """Writes the files of the plan, and returns Hudi's metadata of the execution."""
        begun = self.client.clusterings.begin(instant)
        self.client.clusterings.execute(begun)
        return begun

    def commit(self, instant: str, begun: Any) -> None:
        services = self.client._client.getTableServiceClient()
        self.table.jvm.call_hidden(services, "commitClustering", begun, self.seen, instant)

    def roll_back(self, instant: str, *, by_markers: bool) -> None:
        """Rolls back as a writer does with a clustering that it has seen pending
        (`HoodieTable.rollbackInflightClustering`)."""
        context = self.table.jvm.engine_context
        pending = self.table.jvm.items(self.seen.getMetaClient().getActiveTimeline().getInstantsAsStream())
        (inflight,) = [item for item in pending if item.requestedTime() == instant]
        at = self.table.meta.createNewInstantTime(False)
        self.seen.scheduleRollback(context, at, inflight, False, by_markers, False)
        self.seen.rollback(context, at, inflight, True, False)


def small_files(spark: SparkSession, base: Path, **shape: Any) -> str:
    """Writes a table without a bucket index whose small files a pending plan clusters, and returns the plan's
    instant."""
    tables.write_table(spark, base, count=200, updates=1, num_buckets=None, **shape)
    with WriteClient(hudi_table(spark, base, None), UNDER_OUR_LOCK, EACH_COMMIT) as client:
        instant = schedule_clustering(client)
    assert found(spark, base) == {}
    return instant


def forget_inflight(base: Path, instant: str) -> None:
    """Shows the plan as requested, as a runner sees it that begins at the same time as another runner."""
    for path in [
        *(base / ".hoodie").glob(f"*{instant}*inflight*"),
        *(base / ".hoodie").glob(f"*/*{instant}*inflight*"),
    ]:
        path.unlink()


@pytest.mark.exhaustive
@pytest.mark.parametrize("by_markers", [True, False])
@pytest.mark.parametrize("version", [9, 6])
def test_a_clustering_that_was_rolled_back_after_its_completion_is_found(
    spark: SparkSession, base: Path, version: int, by_markers: bool
) -> None:
    instant = small_files(spark, base, table_type=COW, version=version)
    runner, writer = Runner(spark, base), Runner(spark, base)
    executed = runner.execute(instant)
    runner.look()
    writer.look()
    runner.commit(instant, executed)
    assert found(spark, base) == {}
    writer.roll_back(instant, by_markers=by_markers)
    assert tables.snapshot(spark, base, metadata=True) == []

    light = found(spark, base)

    assert light["completed-instant-rolled-back"].startswith(f"{instant} by ")
    assert ("is not in the metadata table" in light.get("metadata-table-out-of-step", "")) == by_markers
    assert ("commit-files-gone" in light) == (not by_markers)
    details = run_job(spark, base, "audit", index=None).details
    assert {each["type"] for each in details["findings"]} == light.keys()
    if by_markers:
        by_listing = [(each["rows_by_metadata_table"], each["rows_by_listing"]) for each in details["readers"]]
        assert sum(rows for _, rows in by_listing) == 200
        assert {rows for rows, _ in by_listing} == {0}


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", [9, pytest.param(6, marks=pytest.mark.exhaustive)])
def test_a_plan_that_two_runners_have_completed_is_found(spark: SparkSession, base: Path, version: int) -> None:
    instant = small_files(spark, base, table_type=COW, version=version)
    one, other = Runner(spark, base), Runner(spark, base)
    first = one.execute(instant)
    forget_inflight(base, instant)
    second = other.execute(instant)
    # A commit removes files that have markers, but are not in the commit. So the markers of both runners are deleted.
    shutil.rmtree(base / ".hoodie" / ".temp" / instant)
    one.look()
    other.look()
    one.commit(instant, first)
    other.commit(instant, second)
    # When Hudi commits, it drops the cached write statuses of the instant for the whole process. So the other runner,
    # which is in the same process, may write its files once more.
    written = len(list(base.glob(f"2026-01-01/*_{instant}.parquet")))
    assert written in {2, 3}
    assert len(tables.snapshot(spark, base, metadata=False)) == 200 * written

    seen = found(spark, base)
    unnamed = seen["files-without-commit"]
    assert unnamed.count(f"_{instant}.parquet") == 3 if written == 2 else unnamed.startswith("6, such as ")
    # Before version 8 the later completion replaces the earlier one.
    assert seen.get("instant-completed-twice") == (f"{instant} (2 times)" if version == 9 else None)


@pytest.mark.exhaustive
def test_a_completed_plan_whose_files_another_runner_has_rolled_back_is_found(spark: SparkSession, base: Path) -> None:
    instant = small_files(spark, base, table_type=COW)
    one, other = Runner(spark, base), Runner(spark, base)
    executed = one.execute(instant)
    other.execute(instant)
    one.look()
    one.commit(instant, executed)

    details = run_job(spark, base, "audit", index=None).details

    findings = {each["type"]: each for each in details["findings"]}
    assert findings["commit-files-gone"]["detail"].count(f" of {instant}") == 3
    # No reader can read this table.
    unchecked = [each["check"] for each in details["unchecked"]]
    assert unchecked == ["rows", "rows in buckets", "rows that statistics hide"]
    assert findings["checks-not-made"]["check"] == unchecked[-1]
    assert findings["checks-not-made"]["detail"].startswith("rows (")
    assert not details["clean"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("table_type", [MOR, COW])
def test_files_whose_replacement_was_archived_before_their_writer_are_not_missed(
    spark: SparkSession, base: Path, table_type: str
) -> None:
    """The writer began after the clustering and completed before it, and its files were cleaned."""
    shape: dict[str, Any] = {"partitioned": False, "metadata": False, "table_type": table_type}
    options = tables.write_table(spark, base, count=60, **shape)

    def write(ts: int, **more: str) -> None:
        tables.upsert(tables.rows(spark, 0, 30, ts=ts), base, {**options, **more})

    during = At("waiting for writers", lambda: write(2))
    (clustering,) = run_job(spark, base, "clustering", {"sort_by": ["city"]}, context=during).instants
    beside = hudi_table(spark, base, INDEX).instants()[-1].requested
    write(3)
    run_job(spark, base, "cleaning", {"policy": "KEEP_LATEST_COMMITS", "retain": 1})
    kept = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", "hoodie.cleaner.commits.retained": "1"}
    while clustering in {item.requested for item in hudi_table(spark, base, INDEX).instants()}:
        write(4, **kept, **{"hoodie.archive.automatic": "true", "hoodie.commits.archival.batch": "1"})
    assert hudi_table(spark, base, INDEX).instants()[0].requested == beside > clustering

    assert found(spark, base, index=INDEX) == {}
    (lost, *_) = hudi_table(spark, base, INDEX).file_slices()
    for path in base.glob(f"*{lost.file_id}*"):
        path.unlink()
    assert "commit-files-gone" in found(spark, base, index=INDEX)


@pytest.mark.parametrize("version", [9, pytest.param(6, marks=pytest.mark.exhaustive)])
def test_rows_that_column_statistics_hide_are_found(spark: SparkSession, tmp_path: Path, version: int) -> None:
    """Statistics of columns with NaN or with values over 4 KB hide rows (Hudi #18754, #18755)."""
    options = {"hoodie.metadata.index.column.stats.enable": "true"}
    hiding = tmp_path / "hiding"
    rows = tables.rows(spark, 0, 90)
    wrong = rows.withColumn("fare", F.when(F.col("city") % 9 == 3, float("nan")).otherwise(F.col("fare")))
    wrong = wrong.withColumn("note", F.when(F.col("city") % 9 == 4, F.expr("repeat(id, 2000)")).otherwise("short"))
    shape = {"table_type": COW, "version": version, "partitioned": False}
    tables.upsert(wrong, hiding, tables.writer_options(hiding, **shape, **options))
    filtered = spark.read.format("hudi").option("hoodie.enable.data.skipping", "true").load(str(hiding))
    assert filtered.where("note = 'short'").count() < wrong.where("note = 'short'").count()

    detail = found(spark, hiding, rows=True, index=INDEX)["statistics-hide-rows"]
    assert "column 'fare' in " in detail
    assert "column 'note' in " in detail


@pytest.mark.exhaustive
def test_a_log_with_the_instant_of_an_earlier_commit_is_left_to_the_write_in_flight_that_announced_it(
    spark: SparkSession, base: Path
) -> None:
    tables.write_table(spark, base, count=60, updates=1)
    log = next(base.glob("2026-*/.*.log.1_*[0-9]"))
    # Writers of consistent hashing name logs like this (Hudi 1.2.0).
    copy = log.with_name(log.name.replace(".log.1_", ".log.2_"))
    shutil.copyfile(log, copy)
    unnamed = str(copy.relative_to(base))
    assert found(spark, base, index=INDEX)["files-without-commit"] == unnamed

    table = hudi_table(spark, base, INDEX)
    with WriteClient(table, UNDER_OUR_LOCK) as client:
        instant = str(client._client.startCommit("deltacommit", table.meta))
        client.late_files.announce(instant, [unnamed])
        assert found(spark, base, index=INDEX) == {}


def test_a_base_file_with_other_rows_than_its_commit_says_is_found(spark: SparkSession, base: Path) -> None:
    tables.write_table(spark, base, count=60, table_type=COW, partitioned=False)
    one, other = sorted(base.glob("*.parquet"))[:2]
    shutil.copyfile(other, one)
    one.with_name(f".{one.name}.crc").unlink(missing_ok=True)
    assert one.name in found(spark, base, rows=True, index=INDEX)["commit-rows-differ"]


@pytest.mark.parametrize("version", [9, pytest.param(6, marks=pytest.mark.exhaustive)])
def test_rows_of_a_commit_that_was_rolled_back_during_a_compaction_are_found(
    spark: SparkSession, base: Path, version: int
) -> None:
    options = tables.write_table(spark, base, count=60, partitioned=False, updates=2, version=version, metadata=False)
    last = hudi_table(spark, base, INDEX).completed_writes()[-1][0]
    runner, user = OtherRunner(spark, base, options), OtherRunner(spark, base, options)
    runner.begin(plan := runner.plan())
    assert user.client.rollback(last)
    runner.commit(plan)
    expect_rows_of(spark, base, last, index=INDEX)

    tables.upsert(tables.rows(spark, 0, 60, ts=9), base, options)
    assert found(spark, base, rows=True, index=INDEX) == {}


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", [9, 6])
def test_rows_of_a_commit_that_was_rolled_back_during_a_clustering_are_found(
    spark: SparkSession, base: Path, version: int
) -> None:
    shape: dict[str, Any] = {"num_buckets": None, "table_type": COW, "version": version, "metadata": False}
    options = tables.write_table(spark, base, count=60, partitioned=False, updates=2, **shape)
    last = hudi_table(spark, base, None).completed_writes()[-1][0]
    runner = Runner(spark, base)
    plan = schedule_clustering(runner.client)
    executed = runner.execute(plan)
    assert OtherRunner(spark, base, options).client.rollback(last)
    runner.look()
    runner.commit(plan, executed)
    expect_rows_of(spark, base, last)


def expect_rows_of(spark: SparkSession, base: Path, instant: str, index: BucketIndex | None = None) -> None:
    assert {row["ts"] for row in tables.collected(spark, base).rows} == {0, 2}
    text = found(spark, base, rows=True, index=index)["rolled-back-rows"]
    assert re.fullmatch(rf"\d+ rows of {instant}, which \d{{17}} rolled back", text)


@pytest.mark.exhaustive
def test_an_incremental_reader_misses_one_of_two_commits_with_the_same_completion_time(
    spark: SparkSession, base: Path
) -> None:
    options = tables.write_table(spark, base, count=60, partitioned=False, metadata=False)
    tables.upsert(tables.rows(spark, 60, 70), base, options)
    timeline = base / ".hoodie" / "timeline"
    first, second = sorted(timeline.glob("*_*.deltacommit"))
    assert found(spark, base, index=INDEX) == {}
    reader = spark.read.format("hudi").option("hoodie.datasource.query.type", "incremental")
    time = first.stem.partition("_")[2]
    second.rename(timeline / f"{second.stem.partition('_')[0]}_{time}.deltacommit")
    # The consumer has read the first commit before the second one completed.
    assert reader.option("hoodie.datasource.read.begin.instanttime", time).load(str(base)).count() == 0
    expected = f"{first.stem.partition('_')[0]} and {second.stem.partition('_')[0]} at {time}"
    assert found(spark, base, index=INDEX)["completion-times-equal"] == expected


@pytest.mark.exhaustive
def test_logs_that_a_clock_set_back_has_put_into_an_older_slice_are_found(spark: SparkSession, base: Path) -> None:
    """The test renames the completed instant; readers go by the time of completion in its name."""
    options = tables.write_table(spark, base, count=60, updates=1, partitioned=False)
    run_job(spark, base, "compaction")
    tables.upsert(tables.rows(spark, 0, 20, ts=5), base, options)
    assert 5 in {row["ts"] for row in tables.collected(spark, base).rows}
    timeline = base / ".hoodie" / "timeline"
    first, *_, last = sorted(timeline.glob("*_*.deltacommit"))
    instant, early = last.stem.partition("_")[0], int(first.stem.partition("_")[2]) + 1
    moved = last.rename(timeline / f"{instant}_{early}.deltacommit")
    for by_listing in (True, False):
        assert 5 not in {row["ts"] for row in tables.collected(spark, base, by_listing=by_listing).rows}
    (compaction,) = timeline.glob("*_*.commit")
    expected = f"{instant} completed at {early}, before {compaction.stem.partition('_')[0]} of its slice in ''"
    assert found(spark, base, index=INDEX)["logs-in-older-slices"] == expected
    moved.rename(last)
    assert 5 in {row["ts"] for row in tables.collected(spark, base).rows}
    assert found(spark, base, index=INDEX) == {}


@pytest.mark.exhaustive
def test_a_clean_at_the_time_of_a_commit_takes_its_files_out_of_the_metadata_table(
    spark: SparkSession, base: Path
) -> None:
    tables.write_table(spark, base, count=60, updates=2, partitioned=False, table_type=COW)
    table = hudi_table(spark, base, INDEX)
    instant = table.commits()[-1].write.instant
    with WriteClient(table, UNDER_OUR_LOCK, {"hoodie.clean.commits.retained": "1"}) as client:
        client._client.clean(instant)
    by_listing = tables.snapshot(spark, base, metadata=False)
    assert tables.snapshot(spark, base, metadata=True) != by_listing
    seen = found(spark, base, index=INDEX)
    assert seen.keys() == {"instants-share-time", "metadata-table-out-of-step"}
    assert seen["instants-share-time"] == f"{instant} (clean and commit)"
    # The metadata table still lists these files, and nothing shows that a clean was allowed to delete them.
    with pytest.raises(RefusedError):
        run_job(spark, base, "metadata_table", {"action": "rebuild"}, writers_stopped=True)
    shutil.rmtree(base / ".hoodie" / "metadata")
    run_job(spark, base, "metadata_table", {"action": "rebuild"}, writers_stopped=True)
    assert tables.snapshot(spark, base, metadata=True) == by_listing
    assert found(spark, base, index=INDEX).keys() == {"instants-share-time"}


@pytest.mark.exhaustive
@pytest.mark.parametrize("bytes_left", [0, 700])
def test_a_replacement_whose_commit_was_written_in_part_is_found(
    spark: SparkSession, base: Path, bytes_left: int
) -> None:
    """Hudi lists no file slices while it cannot read the file."""
    tables.write_table(spark, base, count=60, partitioned=False, table_type=COW)
    run_job(spark, base, "clustering", {"sort_by": ["city"]})
    (commit,) = (base / ".hoodie" / "timeline").glob("*_*.replacecommit")
    commit.write_bytes(commit.read_bytes()[:bytes_left])
    details = run_job(spark, base, "audit", index=INDEX).details
    (broken,) = [each for each in details["findings"] if each["type"] == "timeline-file-broken"]
    assert commit.name.partition("_")[0] in broken["detail"]
    assert not details["clean"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", [9, 6])
def test_writes_to_the_file_groups_of_a_running_clustering_are_found(
    spark: SparkSession, base: Path, version: int
) -> None:
    """The table has as many rows as before, in their older versions."""
    shape: dict[str, Any] = {"num_buckets": None, "partitioned": False, "table_type": COW, "version": version}
    options = tables.write_table(spark, base, count=60, metadata=False, **shape)
    runner = Runner(spark, base)
    plan = schedule_clustering(runner.client)
    executed = runner.execute(plan)
    strategy = "org.apache.hudi.client.clustering.update.strategy.SparkAllowUpdateStrategy"
    alone = {"hoodie.write.concurrency.mode": "single_writer", "hoodie.clustering.updates.strategy": strategy}
    tables.upsert(tables.rows(spark, 0, 30, ts=7), base, {**options, **alone})
    lost = hudi_table(spark, base, None).completed_writes()[-1][0]
    runner.look()
    runner.commit(plan, executed)
    assert {row["ts"] for row in tables.collected(spark, base).rows} == {0}
    assert found(spark, base, rows=True)["replacement-lacks-writes"] == f"{plan} without rows of {lost}"


@pytest.mark.exhaustive
@pytest.mark.parametrize("is_first", [True, False])
def test_overwritten_rows_that_a_clustering_of_hudi_brings_back_are_found(
    spark: SparkSession, base: Path, *, is_first: bool
) -> None:
    """The overwrite completes before the clustering, which had been planned while it was in flight, or after it."""
    shape: dict[str, Any] = {"num_buckets": None, "partitioned": False, "table_type": COW}
    options = tables.write_table(spark, base, count=60, updates=1, **shape)
    # Hudi 1.2 compares the replaced file groups, too, but only a writer with concurrency control does that.
    alone = {"hoodie.write.concurrency.mode": "single_writer"}
    overwrite = {**options, **alone, "hoodie.datasource.write.operation": "insert_overwrite_table"}
    writer = HeldWriter(tables.rows(spark, 300, 330, ts=7), base, overwrite).start()
    runner = Runner(spark, base)
    plan = schedule_clustering(runner.client)
    executed = runner.execute(plan)
    if is_first:
        writer.finish()
    runner.look()
    runner.commit(plan, executed)
    writer.finish()
    assert len(tables.snapshot(spark, base)) == 90
    details = found(spark, base)
    assert plan in details["overwritten-rows-back"]
    tables.upsert(tables.rows(spark, 300, 330, ts=8), base, overwrite)
    assert found(spark, base) == {}


def test_a_table_without_commits_is_clean(spark: SparkSession, base: Path) -> None:
    options = tables.write_table(spark, base, count=60)
    LongSession(spark, base, options).run("TRUNCATE TABLE {table}")
    details = run_job(spark, base, "audit").details
    assert (details["clean"], details["rows"], details["unchecked"]) == (True, 0, [])
    for kind, params in (("compaction", {}), ("clustering", {"sort_by": ["ts"]})):
        with pytest.raises(TableEmptyError):
            run_job(spark, base, kind, params)
    with pytest.raises(RefusedError) as refused:
        run_job(spark, base, "bucket_expansion", {"factor": 2})
    assert [reason.type for reason in refused.value.reasons] == ["no-file-groups"]


@pytest.mark.exhaustive
def test_instants_of_a_writer_in_another_time_zone_are_found(spark: SparkSession, base: Path) -> None:
    """The test renames the instants on the timeline; the storage's times remain unchanged."""
    tables.write_table(spark, base, count=200, updates=4, partitioned=False)
    time.sleep(2.5)  # If they were closer together, both could have been running concurrently.
    tables.upsert(tables.rows(spark, 0, 9, ts=9), base, tables.writer_options(base, partitioned=False))
    assert "instants-out-of-order" not in found(spark, base, index=INDEX)
    timeline = base / ".hoodie" / "timeline"
    last = max(path.name.split(".")[0] for path in timeline.glob("*.requested"))
    for path in timeline.glob(f"*{last}*"):
        path.rename(path.with_name(re.sub(r"\d{17}", in_chicago, path.name)))
    shifted = in_chicago(re.fullmatch(r"\d{17}", last))

    assert found(spark, base, index=INDEX)["instants-out-of-order"].startswith(f"{shifted} ")


def in_chicago(match: re.Match[str] | None) -> str:
    assert match
    return instant_of(wall_clock(match[0]) - timedelta(hours=6))


SHAPES = [
    {"table_type": table_type, "version": version, "num_buckets": buckets, "metadata": metadata}
    for table_type in (COW, MOR)
    for version in (9, 8, 6)
    for buckets in (4, None)
    for metadata in (True, False)
]


@pytest.mark.exhaustive
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "-".join(str(each) for each in shape.values()))
def test_nothing_is_found_in_healthy_tables(
    spark: SparkSession, tmp_path: Path, base: Path, shape: dict[str, Any]
) -> None:
    options = tables.write_table(spark, base, count=200, updates=2, **shape)
    index = INDEX if shape["num_buckets"] else None
    tables.upsert(tables.rows(spark, 0, 9), base, {**options, "hoodie.datasource.write.operation": "delete"})

    def served(kind: str, **params: Any) -> None:
        details = run_job(spark, base, kind, params, index=index, writers_retry_conflicts=True).details
        audit = details.get("audit") or run_job(spark, base, "audit", {"rows": False}, index=index).details
        assert (audit["findings"], audit["unchecked"]) == ([], [])

    if shape["table_type"] == MOR:
        served("compaction")
    tables.upsert(tables.rows(spark, 0, 300, ts=9), base, options)
    served("savepoint")
    if index:
        served("bucket_expansion", num_buckets=8)
        index = BucketIndex(8, ("id",))
    served("clustering", sort_by=["city"])
    tables.upsert(tables.rows(spark, 0, 320, ts=10), base, options)
    served("cleaning", retain=1)
    for ts in range(11, 14):
        tables.upsert(tables.rows(spark, 0, 20, ts=ts), base, options)
    served("archival", retain=2)
    copy = shutil.copytree(base, tmp_path / "copies" / "trips", copy_function=shutil.copyfile)
    for each in (base, copy):
        assert found(spark, each, rows=True, index=index) == {}
