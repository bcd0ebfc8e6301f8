"""Tests writers that seem to be dead but may be about to commit, and overwrites whose inflight file is empty."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import BucketIndex
from jobs.errors import RefusedError, WritersActiveError, refuse
from jobs.hudi.client import WriteClient
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.hudi.records import REPLACE
from jobs.services.cleaning import WAIT_SECONDS, _stale_write_problems
from tests.integration import tables
from tests.integration.run import hudi_table, proved, run_job
from tests.integration.tables import INDEX
from tests.integration.writers import HeldWriter, let_heartbeat_expire

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("kind", "params", "num_buckets"),
    [
        ("cleaning", {"retain": 1}, 4),
        ("bucket_expansion", {"factor": 2}, 8),
    ],
)
def test_a_writer_that_commits_between_two_looks_at_its_heartbeat_keeps_its_rows(
    spark: SparkSession,
    base: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    params: dict[str, int],
    num_buckets: int,
) -> None:
    options = tables.write_table(spark, base)
    writer = HeldWriter(tables.rows(spark, 0, 700, ts=5), base, options).start()
    (instant,) = writer.pending()
    has_heartbeat = WriteClient.has_heartbeat
    looks: list[str] = []

    def and_then_it_commits(client: WriteClient, looked_for: str) -> bool:
        found = has_heartbeat(client, looked_for)
        if looked_for == instant and not looks:
            looks.append(looked_for)
            writer.finish()
        return found

    monkeypatch.setattr(WriteClient, "has_heartbeat", and_then_it_commits)
    run_job(spark, base, kind, params)

    assert looks == [instant]
    assert spark.read.format("hudi").load(str(base)).where("ts = 5").count() == 700
    proved(spark, base, num_buckets)


def test_a_completed_instant_is_not_rolled_back(spark: SparkSession, base: Path) -> None:
    tables.write_table(spark, base)
    table = hudi_table(spark, base, INDEX)
    (commit,) = table.commits()
    with WriteClient(table, UNDER_OUR_LOCK) as client:
        client.rollback(commit.write.instant)
    assert len(proved(spark, base, 4)) == 600


def test_an_instant_that_its_writer_abandoned_does_not_keep_an_expansion_from_its_end(
    spark: SparkSession, base: Path
) -> None:
    tables.write_table(spark, base)
    run_job(spark, base, "bucket_expansion", {"factor": 2})
    eight = BucketIndex(8, ("id",))
    client = WriteClient(hudi_table(spark, base, eight), UNDER_OUR_LOCK)
    instant = str(client._client.startCommit())
    with pytest.raises(WritersActiveError, match=instant) as caught:
        run_job(spark, base, "finish_expansion", index=eight)
    assert "wait_seconds" not in caught.value.hint
    client._client.getHeartbeatClient().stopHeartbeatTimers()
    let_heartbeat_expire(base, instant)
    assert not run_job(spark, base, "finish_expansion", index=eight).details["in_force"]
    assert hudi_table(spark, base, eight).state_of(instant) is None


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("version", "kind"),
    [
        (6, "clustering"),
        (9, "cleaning"),
        (6, "cleaning"),
        (9, "clustering"),
    ],
)
def test_an_overwrite_that_its_writer_abandoned_blocks_nothing(
    spark: SparkSession, base: Path, version: int, kind: str
) -> None:
    options = tables.write_table(spark, base, version=version)
    overwrite = {**options, "hoodie.datasource.write.operation": "insert_overwrite"}
    writer = HeldWriter(tables.rows(spark, 0, 100, ts=5), base, overwrite).start()
    tables.upsert(tables.rows(spark, 0, 700, ts=6), base, options)
    writer.end()
    assert "Conflict" in str(writer.error)
    table = hudi_table(spark, base, INDEX)
    (abandoned,) = table.pending()
    assert (abandoned.action, abandoned.state) == ("replacecommit", "INFLIGHT")
    before = tables.snapshot(spark, base)

    params = {"retain": 1} if kind == "cleaning" else {"sort_by": ["city"]}
    run_job(spark, base, kind, params, writers_retry_conflicts=True)

    assert table.state_of(abandoned.requested) is None
    assert tables.snapshot(spark, base) == before
    proved(spark, base, 4)


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", [6, 9])
def test_an_abandoned_write_to_replaced_file_groups_does_not_keep_cleaning_waiting(
    spark: SparkSession, base: Path, version: int
) -> None:
    options = tables.write_table(spark, base, version=version)
    writer = HeldWriter(tables.rows(spark, 0, 600, ts=5), base, options).start()
    (abandoned,) = writer.pending()
    tables.upsert(tables.rows(spark, 0, 700, ts=6), base, options)
    writer.end()
    assert "Conflict" in str(writer.error)
    overwrite = {**options, "hoodie.datasource.write.operation": "insert_overwrite"}
    tables.upsert(tables.rows(spark, 0, 300, ts=7), base, overwrite)
    table = hudi_table(spark, base, INDEX)
    before = tables.snapshot(spark, base)
    with pytest.raises(RefusedError, match=abandoned):
        refuse(_stale_write_problems(table))

    started = time.monotonic()
    cleaned = run_job(spark, base, "cleaning", {"retain": 1}, writers_retry_conflicts=True)

    assert time.monotonic() - started < WAIT_SECONDS
    assert cleaned.details["rolled_back"] == [abandoned]
    assert table.state_of(abandoned) is None
    assert tables.snapshot(spark, base) == before
    proved(spark, base, 4)


EXPANSION: dict[str, Any] = {"num_buckets": 8}


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", [9, 6])
def test_an_expansion_waits_for_an_overwrite_that_names_no_operation_and_rolls_back_a_dead_one(
    spark: SparkSession, base: Path, version: int
) -> None:
    options = tables.write_table(spark, base, count=60, partitioned=False, version=version)
    before = tables.in_order(spark, base, 4)
    table = hudi_table(spark, base, INDEX)
    with WriteClient(table, UNDER_OUR_LOCK) as writer:
        instant = writer.new_instant()
        writer.start_replacement(instant, "INSERT_OVERWRITE_TABLE")
        meta: Any = table.meta
        meta.reloadActiveTimeline()
        requested = table.jvm.hudi.common.table.timeline.HoodieInstant.State.valueOf("REQUESTED")
        begun = meta.createNewInstant(requested, REPLACE, instant)
        meta.getActiveTimeline().transitionReplaceRequestedToInflight(begun, table.jvm.nothing())
        (inflight,) = (base / ".hoodie").rglob(f"{instant}.replacecommit.inflight")
        assert inflight.stat().st_size == 0

        assert [item.requested for item in table.pending_writes()] == [instant]
        planned = run_job(spark, base, "bucket_expansion", EXPANSION, dry_run=True).details
        assert (planned["refusals"], planned["beside"]["writers"]) == ([], [instant])
        with pytest.raises(WritersActiveError, match=instant):
            run_job(spark, base, "bucket_expansion", {**EXPANSION, "wait_seconds": 0})
    let_heartbeat_expire(base, instant)

    run_job(spark, base, "bucket_expansion", EXPANSION)

    assert not inflight.exists()
    assert proved(spark, base, 8) == before
    tables.upsert(tables.rows(spark, 0, 70, ts=9), base, options)
    assert len(proved(spark, base, 8)) == 70
