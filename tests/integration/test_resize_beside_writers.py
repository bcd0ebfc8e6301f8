"""Writers beside a resize, and older ones after it, lose no row and write none twice."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import ExpansionStep
from jobs.errors import RefusedError, WritersActiveError
from jobs.hudi.client import WriteClient
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.protocol.replacement import Replacement
from tests.integration.old_writer import OldWriter
from tests.integration.run import hudi_table, run_job
from tests.integration.tables import duplicates, rows, snapshot, upsert, writer_options
from tests.integration.test_bucket_resize import MERGE, SPLIT, refusals, resize
from tests.integration.test_consistent_hashing import ENGINE, findings, num_buckets, write
from tests.integration.test_consistent_hashing import resize as of_hudi
from tests.integration.writers import At, HeldWriter, let_heartbeat_expire

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

_STRATEGIES = "org.apache.hudi.client.clustering.update.strategy"
UPDATES = "hoodie.clustering.updates.strategy"
WRITERS = {
    "rejects its own updates": {},
    "writes twice": {UPDATES: f"{_STRATEGIES}.SparkConsistentBucketDuplicateUpdateStrategy"},
    "rolls clusterings back": {"hoodie.clustering.rollback.pending.replacecommit.on.conflict": "true"},
    "simple conflicts": {
        "hoodie.write.lock.conflict.resolution.strategy": "org.apache.hudi.client.transaction"
        ".SimpleConcurrentFileWritesConflictResolutionStrategy"
    },
}
PARAMS = {"split": SPLIT, "merge": MERGE}


def _require_newest(spark: SparkSession, base: Path, *, newest: int, count: int) -> None:
    found = spark.read.format("hudi").load(str(base))
    assert (len(snapshot(spark, base)), len(snapshot(spark, base, metadata=False))) == (count, count)
    assert found.where(f"ts = {newest}").count() == count
    assert (duplicates(spark, base), findings(spark, base)) == (0, {})


@pytest.mark.exhaustive
@pytest.mark.parametrize("change", PARAMS)
@pytest.mark.parametrize("writer", WRITERS)
def test_a_batch_that_begins_during_a_resize_is_waited_for_and_kept(
    spark: SparkSession, base: Path, writer: str, change: str
) -> None:
    options = write(spark, base) | WRITERS[writer]
    held = HeldWriter(rows(spark, 0, 350, ts=5, partitions=2), base, options)

    def let_go_later() -> None:
        threading.Timer(2, held.let_go).start()

    context = At("comparing the record keys", lambda: held.start() and None, (ExpansionStep.DRAINING, let_go_later))
    done = resize(spark, base, PARAMS[change], context=context)
    held.finish()
    assert done["rewritten_again"] + done["left_out"] > 0
    # The writer continues with its old state of the table.
    upsert(rows(spark, 0, 400, ts=6, partitions=2), base, options)
    _require_newest(spark, base, newest=6, count=400)


@pytest.mark.exhaustive
@pytest.mark.parametrize("writer", WRITERS)
def test_a_batch_that_began_before_the_instant_of_the_resize_is_kept(
    spark: SparkSession, base: Path, writer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = write(spark, base) | WRITERS[writer]
    held = HeldWriter(rows(spark, 0, 350, ts=5, partitions=2), base, options)
    real = Replacement.run

    def start_write_first(self: Replacement) -> Any:
        held.start().let_go_after(8)
        return real(self)

    monkeypatch.setattr(Replacement, "run", start_write_first)
    resize(spark, base, SPLIT)
    held.finish()
    upsert(rows(spark, 0, 400, ts=6, partitions=2), base, options)
    _require_newest(spark, base, newest=6, count=400)


@pytest.mark.exhaustive
def test_rows_and_partitions_that_are_committed_during_a_resize_are_kept(spark: SparkSession, base: Path) -> None:
    options = write(spark, base)

    def commit_rows() -> None:
        upsert(rows(spark, 0, 350, ts=5, partitions=2), base, options)
        upsert(rows(spark, 1000, 1050, ts=6, partitions=5), base, options)

    done = resize(spark, base, SPLIT, context=At("comparing the record keys", commit_rows))
    assert done["rewritten_again"] > 0
    upsert(rows(spark, 0, 350, ts=6, partitions=2), base, options)
    _require_newest(spark, base, newest=6, count=400)


@pytest.mark.exhaustive
def test_a_write_that_stays_in_flight_prevents_the_plan(spark: SparkSession, base: Path) -> None:
    options = write(spark, base)
    held = HeldWriter(rows(spark, 0, 300, ts=5, partitions=2), base, options).start()
    for policy in ("wait", "fence"):
        with pytest.raises(WritersActiveError):
            run_job(spark, base, "bucket_resize", {**SPLIT, "wait_seconds": 2, "on_active_writers": policy}, index=None)
    started = time.monotonic()
    with pytest.raises(WritersActiveError):
        run_job(spark, base, "bucket_resize", {**SPLIT, "on_active_writers": "abort"}, index=None)
    assert time.monotonic() - started < 60
    planned = resize(spark, base, {**SPLIT, "wait_seconds": 1}, dry_run=True)
    assert any("plans no resize" in each for each in planned["notes"])
    held.finish()
    assert num_buckets(base) == 4
    _require_newest(spark, base, newest=5, count=300)
    assert resize(spark, base, SPLIT)["split"] == 8


@pytest.mark.exhaustive
def test_a_dead_write_is_rolled_back_before_the_plan(spark: SparkSession, base: Path) -> None:
    options = write(spark, base)
    table = hudi_table(spark, base, None)
    with WriteClient(table, UNDER_OUR_LOCK) as client:
        instant = str(client._client.startCommit("deltacommit", table.meta))
        client._client.getHeartbeatClient().stopHeartbeatTimers()
    let_heartbeat_expire(base, instant)
    planned = resize(spark, base, SPLIT, dry_run=True)
    assert (planned["refusals"], planned["would_roll_back"]) == ([], [instant])
    assert any("plans no resize" in each for each in planned["notes"])
    assert resize(spark, base, {**SPLIT, "on_active_writers": "abort"})["split"] == 8
    upsert(rows(spark, 0, 400, ts=1, partitions=2), base, options)
    _require_newest(spark, base, newest=1, count=400)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("hudi", "version"), [("0.15.0", 6), ("1.0.2", 8), ("1.1.1", 9)])
def test_an_older_writer_goes_on_after_a_resize(spark: SparkSession, base: Path, hudi: str, version: int) -> None:
    options = {**writer_options(base, version=version), **ENGINE}
    upsert(rows(spark, 0, 300), base, options)
    declared: dict[str, Any] = {"writers_hudi_version": hudi}
    with OldWriter(hudi) as old:
        old.upsert(base, options, 0, 300, ts=1)
        if version < 9:
            with pytest.raises(RefusedError) as refused:
                run_job(spark, base, "bucket_resize", SPLIT, index=None, declared=declared)
            assert "writers-not-stopped" in {each.type for each in refused.value.reasons}
        declared["writers_stopped"] = True
        for number, params in enumerate((SPLIT, MERGE), 2):
            if version < 8:
                # Only Arrow merges logs as Hudi 0.15 does.
                assert "log-order-not-proved" in refusals(spark, base, declared=declared)
                run_job(spark, base, "compaction", index=None, declared=declared)
            before = snapshot(spark, base)
            resize(spark, base, params, declared=declared)
            assert snapshot(spark, base) == before
            assert len(old.snapshot(base)) == len(before)
            old.upsert(base, options, 0, 300 + 20 * number, ts=number)
            assert len(old.snapshot(base)) == 300 + 20 * number
        _require_newest(spark, base, newest=3, count=360)


@pytest.mark.exhaustive
def test_a_partition_with_a_pending_plan_of_hudi_is_left_alone(spark: SparkSession, base: Path) -> None:
    options = write(spark, base)

    def plans() -> None:
        of_hudi(spark, base, completes=None)

    done = resize(spark, base, SPLIT, dry_run=True)
    assert done["partitions"] == 2
    with pytest.raises(WritersActiveError):
        resize(spark, base, SPLIT, context=At("comparing the record keys", plans))
    assert resize(spark, base, SPLIT)["nothing_to_do"]
    # Hudi 1.2.0 reads a number of a bucket from the file ids of its own plan, also for upserts of other partitions.
    with pytest.raises(Exception, match="For input string"):
        upsert(rows(spark, 1000, 1100, ts=1, partitions=5).where("dt > '2026-01-02'"), base, options)
    assert (num_buckets(base), duplicates(spark, base), len(snapshot(spark, base))) == (4, 0, 300)
