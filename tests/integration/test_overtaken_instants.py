"""Tests that instants, which Hudi's archiver leaves on the timeline, do not change the rows of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.contract import BucketIndex
from jobs.errors import HudiError, RefusedError
from jobs.hudi.archiver import keeping
from jobs.hudi.client import WriteClient
from jobs.hudi.lock import TableLock
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.hudi.table import HudiTable
from jobs.protocol import overtaken_instants
from tests.integration import tables
from tests.integration.run import hudi_table, run_job

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ONE = BucketIndex(1, ("id",))
AT_ONCE = {"hoodie.metadata.compact.max.delta.commits": "1"}
DELETE = {"hoodie.datasource.write.operation": "delete"}
BEYOND = {"hoodie.archive.beyond.savepoint": "true"}
CLEAN_ALL = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
FINDING = "completion-times-unknown"
OF_METADATA_TABLE = ".hoodie/metadata/.hoodie/timeline/*.restore*"
CLEANING = ("cleaning", {"retain": 5})
INDEX = ("index", {"action": "build", "index": "column_stats"})


@pytest.mark.parametrize(
    "mending", [CLEANING, pytest.param(INDEX, marks=pytest.mark.exhaustive)], ids=["cleaning", "index"]
)
def test_rows_that_were_deleted_stay_deleted_when_commits_after_a_restore_are_archived(
    spark: SparkSession, base: Path, mending: tuple[str, dict[str, Any]]
) -> None:
    """The archiver is Hudi's own, with the options of any writer, and Hudi's readers then see the deleted row."""
    metadata = mending is INDEX
    options = tables.writer_options(base, num_buckets=1, partitioned=False, metadata=metadata) | AT_ONCE
    write_and_restore(spark, base, options)
    right = with_a_deleted_row(spark, base, options)
    archive(spark, base, 2)
    assert len(tables.snapshot(spark, base)) == len(right) + 1, "Hudi has mended its readers"

    assert FINDING in audited(spark, base)
    run_job(spark, base, *mending, index=ONE)
    assert tables.snapshot(spark, base) == right
    assert audited(spark, base) == []
    goes_on(spark, base, options, right)


def test_rows_that_were_deleted_stay_deleted_when_commits_after_a_pending_clean_are_archived(
    spark: SparkSession, base: Path
) -> None:
    options = tables.writer_options(base, num_buckets=1, partitioned=False, metadata=False)
    for ts in (0, 1):
        tables.upsert(tables.rows(spark, 0, 9, ts=ts), base, options)
    run_job(spark, base, "compaction", index=ONE)
    plan_clean(spark, base)
    archive(spark, base, 1)
    right = with_a_deleted_row(spark, base, options, compact=hudi_compaction)
    archive(spark, base, 2)

    assert FINDING in audited(spark, base)
    for dry_run in (True, False):
        assert refused(spark, base, "compaction", dry_run=dry_run) == ["archived-commits-hidden"]
    run_job(spark, base, *CLEANING, index=ONE)
    assert tables.snapshot(spark, base) == right
    assert audited(spark, base) == []
    goes_on(spark, base, options, right)


@pytest.mark.exhaustive
def test_an_audit_of_version_6_finds_nothing_where_only_a_restore_is_older_than_archived_commits(
    spark: SparkSession, base: Path
) -> None:
    """A log of version 6 is in a slice by its name, so Hudi's readers are right."""
    options = tables.writer_options(base, num_buckets=1, partitioned=False, version=6, metadata=False)
    write_and_restore(spark, base, options)
    right = with_a_deleted_row(spark, base, options)
    archive(spark, base, 1)
    table = hudi_table(spark, base, ONE)
    [restored] = [item.requested for item in table.instants() if item.action == "restore"]
    assert table.archived_writes_after(restored), "no archived commit is later"
    assert list(base.glob(".*.log.*"))
    assert tables.snapshot(spark, base) == right
    assert audited(spark, base) == []


@pytest.mark.parametrize(
    ("table_type", "version"),
    [
        ("COPY_ON_WRITE", 9),
        pytest.param("MERGE_ON_READ", 9, marks=pytest.mark.exhaustive),
        pytest.param("COPY_ON_WRITE", 6, marks=pytest.mark.exhaustive),
    ],
)
def test_rows_come_back_that_an_archival_beyond_a_savepoint_has_hidden(
    spark: SparkSession, base: Path, table_type: str, version: int
) -> None:
    """The archiver is Hudi's own, and Hudi's readers then miss the rows of a whole partition."""
    options = tables.writer_options(base, num_buckets=1, table_type=table_type, version=version, metadata=False)

    def upsert(partition: str, ts: int) -> None:
        tables.upsert(tables.rows(spark, 0, 9, ts=ts).withColumn("dt", F.lit(partition)), base, options)

    upsert("a", 0)
    saved = run_job(spark, base, "savepoint", index=ONE).details["savepoint"]
    upsert("b", 1)
    for ts in (2, 3, 4):
        upsert("a", ts)
    right = tables.snapshot(spark, base)
    archive(spark, base, 2, BEYOND)
    assert len(right) == 2 * len(tables.snapshot(spark, base)), "Hudi has mended its readers"

    assert FINDING in audited(spark, base)
    assert refused(spark, base, *CLEANING) == ["archived-commits-hidden"]
    assert refused(spark, base, "clustering", {"sort_by": ["fare"]}) == ["archived-commits-hidden"]
    run_job(spark, base, "savepoint", {"action": "delete", "instant": saved}, index=ONE)
    if version == 6:
        assert FINDING in audited(spark, base)
        for _ in range(3):
            upsert("a", 4)
        archive(spark, base, 1)
    assert of_b(tables.snapshot(spark, base)) == of_b(right)
    assert len(tables.snapshot(spark, base)) == len(right)
    assert audited(spark, base) == []
    run_job(spark, base, "clustering", {"sort_by": ["fare"]}, index=ONE)
    upsert("b", 5)
    assert len(tables.snapshot(spark, base)) == len(right)
    assert audited(spark, base) == []


def test_a_job_locks_no_table_whose_restores_need_not_be_archived_yet(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restore is archived half an hour after it completed, and once the metadata table has been compacted since. The
    compaction archives the restore of the metadata table's own timeline."""
    options = tables.writer_options(base, num_buckets=1, partitioned=False)
    for ts in (0, 1):
        tables.upsert(tables.rows(spark, 0, 9, ts=ts), base, options)
    saved = run_job(spark, base, "savepoint", index=ONE).details["savepoint"]
    tables.upsert(tables.rows(spark, 0, 9, ts=2), base, options)
    run_job(spark, base, "restore", {"savepoint": saved, "table_name": "test"}, index=ONE, writers_stopped=True)
    right = tables.snapshot(spark, base)
    locked: list[str] = []
    held = TableLock.held
    monkeypatch.setattr(TableLock, "held", lambda lock, *args: (locked.append("held"), held(lock, *args))[1])
    table = hudi_table(spark, base, ONE)

    def settle() -> int:
        overtaken_instants.archive(table, TableLock(table, "job_1"), lambda *_: None)
        return len(locked)

    assert settle() == 0, "the restore is young"
    monkeypatch.setattr(overtaken_instants, "_POLLED_AFTER", overtaken_instants._POLLED_AFTER * 0)
    assert settle() == 0, "the metadata table has not been compacted"
    assert list(base.glob(OF_METADATA_TABLE)), "Hudi has built the metadata table anew"
    run_job(spark, base, "metadata_table", {"action": "compact"}, index=ONE)
    assert not list(base.glob(OF_METADATA_TABLE))
    locked.clear()
    assert settle() == 1
    assert "restore" not in {item.action for item in table.instants()}
    assert settle() == 1
    assert tables.snapshot(spark, base) == tables.snapshot(spark, base, metadata=False) == right
    assert audited(spark, base) == []


def test_a_job_reads_the_history_again_only_after_it_may_have_hidden_or_shown_commits(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On S3 each reading is five requests, and one of every file once an instant is overtaken."""
    shape: dict[str, Any] = {"table_type": "COPY_ON_WRITE", "partitioned": False, "metadata": False}
    tables.write_table(spark, base, count=9, updates=4, num_buckets=1, **shape)
    readings: list[str] = []
    read = HudiTable.archived_writes_after
    monkeypatch.setattr(
        HudiTable, "archived_writes_after", lambda table, *args: (readings.append(""), read(table, *args))[1]
    )

    def count(kind: str, params: Any = None) -> int:
        readings.clear()
        run_job(spark, base, kind, params, index=ONE)
        return len(readings)

    assert count(*CLEANING) == 1
    assert count("archival", {"retain": 9}) == 1, "nothing is archived"
    assert count("savepoint") == 1
    assert count("archival", {"retain": 2}) == 2


def test_a_damaged_history_stops_a_job_only_where_it_may_hide_commits(spark: SparkSession, base: Path) -> None:
    shape: dict[str, Any] = {"table_type": "COPY_ON_WRITE", "partitioned": False, "metadata": False}
    options = tables.writer_options(base, num_buckets=1, **shape)
    for ts in range(5):
        tables.upsert(tables.rows(spark, 0, 9, ts=ts), base, options)
        if ts == 2:
            saved = run_job(spark, base, "savepoint", index=ONE).details["savepoint"]
    archive(spark, base, 1)
    right = tables.snapshot(spark, base)
    next((base / ".hoodie" / "timeline" / "history").glob("manifest_*")).write_text("damaged")
    with pytest.raises(HudiError, match="reading the archived timeline"):
        run_job(spark, base, "clustering", {"sort_by": ["fare"]}, index=ONE)
    run_job(spark, base, "savepoint", {"action": "delete", "instant": saved}, index=ONE)
    run_job(spark, base, "clustering", {"sort_by": ["fare"]}, index=ONE)
    assert sorted(tables.snapshot(spark, base)) == sorted(right)


def of_b(rows: list[str]) -> list[str]:
    return [row for row in rows if "'dt': 'b'" in row]


def write_and_restore(spark: SparkSession, base: Path, options: dict[str, str]) -> None:
    """Writes a table twice, and takes it back to the first commit by a savepoint, which is then deleted."""
    tables.upsert(tables.rows(spark, 0, 9), base, options)
    saved = run_job(spark, base, "savepoint", index=ONE).details["savepoint"]
    tables.upsert(tables.rows(spark, 0, 9, ts=1), base, options)
    run_job(spark, base, "restore", {"savepoint": saved, "table_name": "test"}, index=ONE, writers_stopped=True)
    run_job(spark, base, "savepoint", {"action": "delete", "instant": saved}, index=ONE)


def with_a_deleted_row(spark: SparkSession, base: Path, options: dict[str, str], compact: Any = None) -> list[str]:
    """Updates nine rows, compacts, deletes one row, and compacts again; returns the other eight."""
    compact = compact or (lambda *_: run_job(spark, base, "compaction", index=ONE))
    tables.upsert(tables.rows(spark, 0, 9, ts=2), base, options)
    compact(spark, base)
    tables.upsert(tables.rows(spark, 0, 1, ts=3), base, options | DELETE)
    compact(spark, base)
    right = tables.snapshot(spark, base)
    assert len(right) == 8
    return right


def hudi_compaction(spark: SparkSession, base: Path) -> None:
    """Compacts as a writer does, beside a pending clean."""
    options = "hoodie.compact.inline.max.delta.commits=1,hoodie.metadata.enable=false"
    call = f"call run_compaction(op => 'scheduleAndExecute', path => '{base}', options => '{options}')"
    assert spark.sql(call).count() == 1


def plan_clean(spark: SparkSession, base: Path) -> None:
    with WriteClient(hudi_table(spark, base, ONE), UNDER_OUR_LOCK, CLEAN_ALL) as client:
        hudi: Any = client._jvm.hudi
        kind = hudi.common.model.TableServiceType.CLEAN
        assert client._client.scheduleTableService(hudi.common.util.Option.empty(), kind).isPresent()


def archive(spark: SparkSession, base: Path, commits: int, more: dict[str, str] | None = None) -> None:
    """Lets Hudi archive all but the latest commits; those with savepoints stay, too."""
    options = {**keeping(commits), **AT_ONCE, **(more or {})}
    with WriteClient(hudi_table(spark, base, ONE), UNDER_OUR_LOCK, options) as client:
        client.archiver.archive()


def goes_on(spark: SparkSession, base: Path, options: dict[str, str], right: list[str]) -> None:
    tables.upsert(tables.rows(spark, 0, 9, ts=4), base, options)
    run_job(spark, base, "compaction", index=ONE)
    assert len(tables.snapshot(spark, base)) == len(right) + 1
    assert tables.snapshot(spark, base, metadata=False) == tables.snapshot(spark, base)
    assert audited(spark, base) == []


def refused(spark: SparkSession, base: Path, kind: str, params: Any = None, *, dry_run: bool = False) -> list[str]:
    """Returns the types of the refusals of a job."""
    if dry_run:
        found = run_job(spark, base, kind, params, index=ONE, dry_run=True).details["refusals"]
        return [each["type"] for each in found]
    with pytest.raises(RefusedError) as caught:
        run_job(spark, base, kind, params, index=ONE)
    return [each.type for each in caught.value.reasons]


def audited(spark: SparkSession, base: Path) -> list[str]:
    """Returns the types of the audit's findings."""
    details = run_job(spark, base, "audit", index=ONE).details
    assert details["unchecked"] == []
    return [each["type"] for each in details["findings"]]
