"""A savepoint keeps its files during all later jobs, and a restore returns exactly its rows or is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import BucketIndex
from jobs.errors import RefusedError, WritersActiveError
from jobs.hudi.cleaner import Cleaner
from jobs.hudi.client import WriteClient
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.hudi.savepoints import Savepoints
from jobs.job_context import JobContext
from jobs.lock_errors import LockLostError
from jobs.services import cleans
from tests.integration import tables
from tests.integration.dying_job import DyingJob
from tests.integration.independent import rows_by_hudi_rs, rows_by_spark
from tests.integration.plans import clean, instant_now, leave_plan
from tests.integration.run import hudi_table, perform_order, proved, run_job, work_order
from tests.integration.tables import INDEX
from tests.integration.writers import HeldWriter

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from jobs.hudi.clean_plan import CleanPlan
    from tests.integration.doomed import Spares

SHAPES = [
    pytest.param({"table_type": "MERGE_ON_READ", "version": 9, "partitioned": False}, id="mor-9-plain"),
    pytest.param({"table_type": "MERGE_ON_READ", "version": 9}, id="mor-9", marks=pytest.mark.exhaustive),
    pytest.param({"table_type": "COPY_ON_WRITE", "version": 9}, id="cow-9", marks=pytest.mark.exhaustive),
    pytest.param({"table_type": "MERGE_ON_READ", "version": 6}, id="mor-6", marks=pytest.mark.exhaustive),
    pytest.param(
        {"table_type": "COPY_ON_WRITE", "version": 6, "partitioned": False, "metadata": False},
        id="cow-6-plain",
        marks=pytest.mark.exhaustive,
    ),
]


def make_savepoint(spark: SparkSession, base: Path) -> str:
    return str(run_job(spark, base, "savepoint", {"comment": "before the migration"}).details["savepoint"])


def restore(spark: SparkSession, base: Path, savepoint: str, **order: Any) -> Any:
    params = {"savepoint": savepoint, "table_name": "test"}
    return run_job(spark, base, "restore", params, **{"writers_stopped": True, **order})


def refusals(spark: SparkSession, base: Path, params: dict[str, Any], **order: Any) -> set[str]:
    found = run_job(spark, base, "restore", params, dry_run=True, **order).details["refusals"]
    with pytest.raises(RefusedError) as refused:
        run_job(spark, base, "restore", params, **order)
    assert [each["type"] for each in found] == [each.type for each in refused.value.reasons]
    return {each["type"] for each in found}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_restored_table_is_what_it_was_at_the_savepoint(
    spark: SparkSession, base: Path, shape: dict[str, Any]
) -> None:
    options = tables.write_table(spark, base, count=60, updates=1, **shape)
    before = tables.in_order(spark, base, 4)
    savepoint = make_savepoint(spark, base)
    # The sink of Structured Streaming puts its position into the commit like this.
    batch = {"_hudi_streaming_sink_checkpoint": '{"numbers":"7"}'}
    tables.upsert(tables.rows(spark, 0, 90, ts=7), base, options | batch)
    if shape["table_type"] == "MERGE_ON_READ":
        run_job(spark, base, "compaction")
    run_job(spark, base, "clustering", {"sort_by": ["city"]})
    tables.upsert(tables.rows(spark, 0, 30, ts=8), base, options)
    run_job(spark, base, "cleaning", {"policy": "KEEP_LATEST_FILE_VERSIONS", "retain": 2})
    assert len(tables.snapshot(spark, base)) == 90

    result = restore(spark, base, savepoint)

    assert (result.details["writers_commits"], result.details["streams"]) == (2, ["numbers"])
    assert tables.snapshot(spark, base) == before
    tables.upsert(tables.rows(spark, 0, 70, ts=50), base, options)
    assert len(proved(spark, base, 4)) == 70
    assert rows_by_hudi_rs(base) == rows_by_spark(spark, base)
    assert tables.left_behind(base) == []
    listed = run_job(spark, base, "savepoint", {"action": "delete", "instant": savepoint}).details["savepoints"]
    assert listed == []
    # The deleted files remain deleted, and a repeated deletion changes nothing.
    assert run_job(spark, base, "savepoint", {"action": "delete", "instant": savepoint}).details["savepoints"] == []


@pytest.mark.parametrize("version", [6, pytest.param(9, marks=pytest.mark.exhaustive)])
def test_a_table_is_restored_if_its_metadata_table_was_compacted_and_the_table_cleaned_since(
    spark: SparkSession, base: Path, spares: Spares, version: int
) -> None:
    shape = {"table_type": "COPY_ON_WRITE", "version": version, "partitioned": False}
    options = tables.write_table(spark, base, count=60, updates=1, **shape)
    before = tables.in_order(spark, base, 4)
    savepoint = make_savepoint(spark, base)
    for ts in (7, 8):
        tables.upsert(tables.rows(spark, 0, 90, ts=ts), base, options)
    assert run_job(spark, base, "cleaning", {"retain": 1}).details["files_deleted"]
    run_job(spark, base, "metadata_table", {"action": "compact"})
    order = work_order(base, "restore", {"savepoint": savepoint, "table_name": "test"}, writers_stopped=True)
    job = DyingJob(spark, order, spares)
    job.die_at(kills(version)["done"])
    # Readers may come before the next attempt, which builds the indexes. A metadata table that stayed would name files
    # that the restore has removed.
    assert not (base / ".hoodie" / "metadata").exists()
    assert tables.snapshot(spark, base) == before

    job.finish()

    assert proved(spark, base, 4) == before
    assert "files" in hudi_table(spark, base, INDEX).metadata_partitions
    tables.upsert(tables.rows(spark, 0, 70, ts=50), base, options)
    assert len(proved(spark, base, 4)) == 70


def test_writers_that_cluster_go_on_after_a_restore_has_undone_a_clustering(spark: SparkSession, base: Path) -> None:
    """Hudi's restore leaves the plan of the clustering, whose files are gone."""
    shape: dict[str, Any] = {"num_buckets": None, "partitioned": False}
    options = tables.write_table(spark, base, count=30, **shape)
    before = tables.snapshot(spark, base)
    savepoint = run_job(spark, base, "savepoint", index=None).details["savepoint"]
    clusters = options | {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "1"}
    tables.upsert(tables.rows(spark, 0, 40, ts=1), base, clusters)
    assert {each.action for each in hudi_table(spark, base, None).instants()} >= {"deltacommit", "replacecommit"}

    restore(spark, base, savepoint, index=None)

    assert tables.snapshot(spark, base) == before
    assert run_job(spark, base, "audit", index=None).details["findings"] == []
    tables.upsert(tables.rows(spark, 20, 50, ts=2), base, clusters)
    assert len(tables.snapshot(spark, base)) == 50
    assert run_job(spark, base, "audit", index=None).details["clean"]


@pytest.mark.exhaustive
def test_a_later_attempt_leaves_the_plans_of_undone_clusterings_to_writers_that_have_started(
    spark: SparkSession, base: Path, spares: Spares
) -> None:
    options = tables.write_table(spark, base, count=30, num_buckets=None, partitioned=False)
    before = tables.snapshot(spark, base)
    savepoint = run_job(spark, base, "savepoint", index=None).details["savepoint"]
    clusters = options | {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "1"}
    tables.upsert(tables.rows(spark, 0, 40, ts=1), base, clusters)
    params = {"savepoint": savepoint, "table_name": "test"}
    order = work_order(base, "restore", params, index=None, writers_stopped=True)
    job = DyingJob(spark, order, spares)
    job.die_at(kills(9)["done"])
    order = replace(order, attempt=2, earlier_instants=tuple(job.instants), writers_stopped=False)

    assert perform_order(spark, order).instants == tuple(job.instants)
    assert [each["type"] for each in run_job(spark, base, "audit", index=None).details["findings"]] == [
        "plan-files-gone"
    ]
    assert perform_order(spark, replace(order, attempt=3, writers_stopped=True)).instants == tuple(job.instants)
    assert run_job(spark, base, "audit", index=None).details["findings"] == []
    assert tables.snapshot(spark, base) == before
    tables.upsert(tables.rows(spark, 20, 50, ts=2), base, clusters)
    assert len(tables.snapshot(spark, base)) == 50


@pytest.mark.exhaustive
@pytest.mark.parametrize("other", ["savepoint", pytest.param("clean", marks=pytest.mark.exhaustive)])
def test_a_clean_is_planned_anew_if_a_savepoint_or_another_clean_came_since(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    options = tables.write_table(spark, base, count=60, partitioned=False, table_type="COPY_ON_WRITE")
    for ts in (6, 7, 8):
        tables.upsert(tables.rows(spark, 0, 60, ts=ts), base, options)
    first, second, *_ = sorted(commit.write.instant for commit in hudi_table(spark, base, INDEX).commits())
    of_first = set(base.glob(f"*_{first}.parquet"))
    assert len(of_first) == 4
    before = tables.in_order(spark, base, 4)
    planned = cleans.remove_all_late_files
    policy = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "2"}

    def meanwhile(*given: Any) -> int:
        if other == "savepoint":
            spark.sql(f"CALL create_savepoint(path => '{base}', commit_time => '{first}')")
        else:
            with WriteClient(hudi_table(spark, base, INDEX), UNDER_OUR_LOCK, policy) as client:
                client._client.clean()
        return planned(*given)

    monkeypatch.setattr(cleans, "remove_all_late_files", meanwhile)
    run_job(spark, base, "cleaning", {"policy": "KEEP_LATEST_FILE_VERSIONS", "retain": 2})
    assert set(base.glob(f"*_{first}.parquet")) == (of_first if other == "savepoint" else set())
    assert not list(base.glob(f"*_{second}.parquet"))
    done = [each for each in hudi_table(spark, base, INDEX).instants() if each.action == "clean"]
    assert [each.state for each in done] == ["COMPLETED"]
    assert proved(spark, base, 4) == before
    tables.upsert(tables.rows(spark, 0, 60, ts=9), base, options)
    proved(spark, base, 4)


@pytest.mark.exhaustive
def test_an_audit_finds_a_savepoint_whose_files_a_clean_has_deleted_meanwhile(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hudi's procedure takes no lock, so it makes the savepoint between the last check of a clean and its plan."""
    options = tables.write_table(spark, base, count=60, partitioned=False, table_type="COPY_ON_WRITE", updates=1)
    for ts in (6, 7):
        tables.upsert(tables.rows(spark, 0, 60, ts=ts), base, options)
    first = hudi_table(spark, base, INDEX).commits()[0].write.instant
    request = Cleaner.request

    def meanwhile(cleaner: Cleaner, plan: CleanPlan, *require: Any) -> None:
        spark.sql(f"CALL create_savepoint(path => '{base}', commit_time => '{first}')").collect()
        request(cleaner, plan, *require)

    monkeypatch.setattr(Cleaner, "request", meanwhile)
    cleaned = run_job(spark, base, "cleaning", {"policy": "KEEP_LATEST_FILE_VERSIONS", "retain": 2}).details
    assert cleaned["files_deleted"] == 8
    audit = run_job(spark, base, "audit", {"rows": False}).details
    assert [each["type"] for each in audit["findings"]] == ["savepoint-files-gone"]
    assert f" of {first}" in audit["findings"][0]["detail"]
    run_job(spark, base, "savepoint", {"action": "delete", "instant": first})
    assert len(proved(spark, base, 4)) == 60


def test_a_clean_that_was_frozen_deletes_no_file_that_was_saved_since_its_last_check(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables.write_table(spark, base, count=60, partitioned=False, table_type="COPY_ON_WRITE", updates=2)
    first = hudi_table(spark, base, INDEX).commits()[0].write.instant
    files = set(base.glob("*.parquet"))
    order = work_order(base, "cleaning", {"policy": "KEEP_LATEST_FILE_VERSIONS", "retain": 2})
    request = Cleaner.request

    def frozen(cleaner: Cleaner, plan: CleanPlan, *require: Any) -> None:
        monkeypatch.undo()
        # The savepoint's job breaks the lock like the next attempt, which would be refused.
        run_job(spark, base, "savepoint", {"instant": first}, job_id=order.job_id)
        request(cleaner, plan, *require)

    monkeypatch.setattr(Cleaner, "request", frozen)
    with pytest.raises(LockLostError):
        perform_order(spark, order)

    assert set(base.glob("*.parquet")) == files
    assert not list((base / ".hoodie" / "timeline").glob("*.clean.*"))
    assert run_job(spark, base, "audit").details["clean"]


def test_no_savepoint_is_made_while_a_clean_is_pending(spark: SparkSession, base: Path) -> None:
    """Hudi cannot tell which commit a clean by file versions keeps, and fails with a NullPointerException."""
    tables.write_table(spark, base, count=60)
    unbounded = {**clean({}), "earliestInstantToRetain": None, "policy": "KEEP_LATEST_FILE_VERSIONS"}
    plan = instant_now()
    leave_plan(spark, base, "clean", plan, unbounded)
    with pytest.raises(WritersActiveError, match=rf"{plan} \(clean\)"):
        run_job(spark, base, "savepoint", {"wait_seconds": 0})
    (base / ".hoodie" / "timeline" / f"{plan}.clean.requested").unlink()
    assert make_savepoint(spark, base)


@pytest.mark.exhaustive
def test_a_restore_that_cannot_be_proved_to_be_sound_is_refused(spark: SparkSession, base: Path) -> None:
    options = tables.write_table(spark, base, count=60, table_type="COPY_ON_WRITE", metadata=False)
    savepoint = make_savepoint(spark, base)
    assert make_savepoint(spark, base) == savepoint
    (listed,) = run_job(spark, base, "savepoint", {"action": "list"}).details["savepoints"]
    assert (listed["comment"], listed["files"]) == ("before the migration", 12)
    params = {"savepoint": savepoint, "table_name": "test"}

    assert refusals(spark, base, params) == {"writers-not-stopped"}
    wrong = {"savepoint": "20200101000000000", "table_name": "trips"}
    assert refusals(spark, base, wrong, writers_stopped=True) == {"name-not-confirmed", "no-such-savepoint"}
    writer = HeldWriter(tables.rows(spark, 0, 30, ts=9), base, options).start()
    assert refusals(spark, base, params, writers_stopped=True) == {"writers-active"}
    writer.finish()
    run_job(spark, base, "bucket_expansion", {"factor": 2})
    before = proved(spark, base, 8)
    assert refusals(spark, base, params, writers_stopped=True) == {"expanded-since"}
    # The files of the earlier commit were replaced and may be gone, so a savepoint of this commit is refused.
    (earlier, *_) = hudi_table(spark, base, INDEX).commits()
    found = run_job(spark, base, "savepoint", {"instant": earlier.write.instant}, dry_run=True).details["refusals"]
    assert [each["type"] for each in found] == ["replaced-since"]
    assert proved(spark, base, 8) == before
    assert tables.left_behind(base) == []


@pytest.mark.parametrize("action", ["drop", pytest.param("adopt", marks=pytest.mark.exhaustive)])
def test_a_restore_does_not_bring_back_files_of_another_index(spark: SparkSession, tmp_path: Path, action: str) -> None:
    """After a restore to a time before the drop, a writer with another index would write those keys a second time that
    only logs have."""
    base = tmp_path / "trips"
    options = tables.write_table(spark, base, count=60, partitioned=False)
    tables.upsert(tables.rows(spark, 60, 90), base, options)
    savepoint = make_savepoint(spark, base)
    given = {"action": action, **({"num_buckets": 8} if action == "adopt" else {})}
    run_job(spark, base, "bucket_index", given, declared={"writers_stopped": True})
    before = tables.snapshot(spark, base)
    params = {"savepoint": savepoint, "table_name": "test"}
    index = None if action == "drop" else BucketIndex(8, ("id",))
    assert refusals(spark, base, params, index=index, writers_stopped=True) == {"expanded-since"}
    assert tables.snapshot(spark, base) == before


def kills(version: int) -> dict[str, dict[str, Any]]:
    timeline = ".hoodie/timeline" if version > 6 else ".hoodie"
    return {
        "told": {"at": "unheard"},
        "planned": {"at": "file", "name": f"{timeline}/*.restore.requested"},
        "begun": {"at": "file", "name": f"{timeline}/*.restore.inflight", "delay": 0.2},
        "in the midst": {"at": "file", "name": f"{timeline}/*.restore.inflight", "delay": 0.8},
        "in a rollback": {"at": "file", "name": f"{timeline}/*.rollback.requested"},
        "in a second rollback": {"at": "file", "name": f"{timeline}/*.rollback.inflight", "nth": 2},
        "done": {"at": "after", "name": "the restore"},
        "reported": {"at": "end"},
    }


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("table_type", "version"), [("MERGE_ON_READ", 9), ("COPY_ON_WRITE", 9), ("MERGE_ON_READ", 6), ("COPY_ON_WRITE", 6)]
)
@pytest.mark.parametrize("kill", kills(9))
def test_a_restore_that_was_killed_is_finished_by_the_next_attempt(
    spark: SparkSession, base: Path, spares: Spares, kill: str, table_type: str, version: int
) -> None:
    options = tables.write_table(spark, base, count=60, updates=1, table_type=table_type, version=version)
    before = proved(spark, base, 4)
    savepoint = make_savepoint(spark, base)
    for number in range(3):
        tables.upsert(tables.rows(spark, 0, 90, ts=7 + number), base, options)
    params = {"savepoint": savepoint, "table_name": "test"}
    job = DyingJob(spark, work_order(base, "restore", params, writers_stopped=True), spares)
    job.die_at(kills(version)[kill])
    assert len(job.instants) == (0 if kill == "told" else 1)
    if kill == "reported":
        # Writers continued after the restore, so their rows must remain.
        tables.upsert(tables.rows(spark, 0, 60, ts=90), base, options)
        before = proved(spark, base, 4)

    known = job.instants
    assert job.finish().instants == known or not known
    assert proved(spark, base, 4) == before
    assert tables.left_behind(base) == []
    tables.upsert(tables.rows(spark, 0, 70, ts=100), base, options)
    assert len(proved(spark, base, 4)) == 70


def test_a_restore_that_was_frozen_rolls_back_no_commit_that_came_after_the_next_attempt(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = tables.write_table(spark, base, count=60, partitioned=False)
    savepoint = make_savepoint(spark, base)
    tables.upsert(tables.rows(spark, 0, 90, ts=7), base, options)
    order = work_order(base, "restore", {"savepoint": savepoint, "table_name": "test"}, writers_stopped=True)
    context, schedule = JobContext(), Savepoints.schedule_restore

    def frozen(savepoints: Savepoints, instant: str, to: str) -> None:
        schedule(savepoints, instant, to)
        monkeypatch.undo()
        perform_order(spark, replace(order, attempt=2, earlier_instants=tuple(context.instants)))
        tables.upsert(tables.rows(spark, 0, 70, ts=9), base, options)

    monkeypatch.setattr(Savepoints, "schedule_restore", frozen)
    with pytest.raises(LockLostError):
        perform_order(spark, order, context)

    assert [row["ts"] for row in tables.collected(spark, base).rows] == [9] * 70
    assert len(proved(spark, base, 4)) == 70


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("point", "action"),
    [
        ({"at": "file", "name": ".hoodie/timeline/*.savepoint.inflight"}, "create"),
        ({"at": "after", "name": "the savepoint"}, "create"),
        ({"at": "file", "name": ".hoodie/timeline/*.savepoint.inflight"}, "delete"),
        ({"at": "before", "name": "the deletion"}, "delete"),
    ],
    ids=["in the midst", "made", "in the midst of deleting", "before deleting"],
)
def test_a_savepoint_whose_making_or_deletion_was_killed_is_made_or_deleted_by_the_next_attempt(
    spark: SparkSession, base: Path, spares: Spares, point: dict[str, Any], action: str
) -> None:
    options = tables.write_table(spark, base, count=60)
    before = proved(spark, base, 4)
    params: dict[str, Any] = {"action": action}
    if action == "delete":
        params["instant"] = make_savepoint(spark, base)
    job = DyingJob(spark, work_order(base, "savepoint", params), spares)
    assert job.die_at(point).result is None or point["at"] == "file"

    found = job.finish().details["savepoints"]

    assert len(found) == (action == "create")
    assert not list((base / ".hoodie" / "timeline").glob("*.savepoint.inflight")) or action == "create"
    assert proved(spark, base, 4) == before
    tables.upsert(tables.rows(spark, 0, 70, ts=100), base, options)
    assert len(proved(spark, base, 4)) == 70
    assert tables.left_behind(base) == []
