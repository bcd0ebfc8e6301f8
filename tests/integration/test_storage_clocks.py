"""Our instants follow the clock of the writers, even if the storage's clock differs from that of the machines."""

from __future__ import annotations

import time
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import BucketIndex, Outcome, TableLock
from jobs.format.clock_frame import utc_now
from jobs.format.instants import wall_clock
from jobs.hudi.client import WriteClient
from jobs.hudi.options import UNDER_OUR_LOCK
from tests.integration import tables
from tests.integration.run import hudi_table, run_job
from tests.support import hdfs, s3
from tests.support.session_storage import reached_by
from tests.support.wall_clock import LIBRARY, NOT_INSTALLED

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

INSTANT = "20260101000000000"
HOUR = timedelta(hours=1)
CLOSE = timedelta(seconds=60)
PARAMS: dict[str, dict[str, Any]] = {
    "compaction": {},
    "clustering": {"sort_by": ["city"]},
    "bucket_expansion": {"factor": 2},
    "cleaning": {"retain": 1},
}


@pytest.fixture
def lock(tmp_path: Path) -> TableLock:
    return TableLock("filesystem", {"hoodie.write.lock.filesystem.path": f"file://{tmp_path}/locks"})


def served(spark: SparkSession, base: str, lock: TableLock, version: int, kinds: list[str]) -> None:
    """Runs services between the batches of a writer whose clock is right."""
    shape = {"num_buckets": 2, "partitioned": False, "version": version, "metadata": False}
    options = tables.writer_options(base, **shape, **lock.options)  # type: ignore[arg-type]
    job = partial(run_job, spark, base, lock=lock)
    buckets = 2
    for ts, kind in enumerate(kinds):
        tables.upsert(tables.rows(spark, 0, 100, ts=2 * ts), base, options)
        tables.upsert(tables.rows(spark, 0, 60, ts=2 * ts + 1), base, options)
        before = tables.snapshot(spark, base)
        begun = utc_now()
        done = job(kind, PARAMS[kind], index=BucketIndex(buckets, ("id",)))
        assert done.outcome is Outcome.SUCCEEDED
        for instant in done.instants:
            assert begun - CLOSE < wall_clock(instant) < utc_now() + CLOSE
        buckets *= 2 if kind == "bucket_expansion" else 1
        assert tables.snapshot(spark, base) == before
    tables.upsert(tables.rows(spark, 0, 120, ts=99), base, options)
    assert [row.ts for row in spark.read.format("hudi").load(base).select("ts").collect()] == [99] * 120
    audit = job("audit", {"rows": len(kinds) > 1}, index=BucketIndex(buckets, ("id",))).details
    assert audit["clean"], audit


def writers_are_told_from_dead_ones(spark: SparkSession, base: str) -> None:
    """Hudi writes heartbeats by the storage's clock, and compares them with its own clock."""
    beats = {"hoodie.client.heartbeat.interval_in_ms": "3000"}
    table = hudi_table(spark, base, None, hudi_options=beats)
    with table.clock.kept(writes=True), WriteClient(table, UNDER_OUR_LOCK) as client:
        beat = table.jvm.hudi.storage.StoragePath(f"{base}/.hoodie/.heartbeat/{INSTANT}")
        table.meta.getStorage().create(beat, True).close()
        assert not client.is_dead(INSTANT)
        deadline = time.monotonic() + 60
        while not client.is_dead(INSTANT):
            assert time.monotonic() < deadline
            time.sleep(0.5)
        client.forget_heartbeat(INSTANT)


@pytest.mark.parametrize(
    ("ahead", "version", "kinds"),
    [
        pytest.param(-HOUR, 9, ["compaction"], marks=pytest.mark.exhaustive),
        *(
            pytest.param(ahead, version, list(PARAMS), marks=pytest.mark.exhaustive)
            for ahead in (-HOUR, -8 * HOUR, timedelta(minutes=10), 8 * HOUR)
            for version in (9, 6)
        ),
    ],
)
def test_our_instants_follow_the_writers_clock_instead_of_the_storages(
    spark: SparkSession, lock: TableLock, ahead: timedelta, version: int, kinds: list[str]
) -> None:
    with s3.running(ahead=ahead) as server, reached_by(spark, server.options, "s3a://lake"):
        served(spark, "s3a://lake/trips", lock, version, kinds)
        writers_are_told_from_dead_ones(spark, "s3a://lake/trips")


@pytest.mark.exhaustive
@pytest.mark.skipif(LIBRARY is None, reason=NOT_INSTALLED)
@pytest.mark.parametrize("ahead", [-HOUR, 8 * HOUR])
def test_our_instants_follow_the_writers_clock_on_hdfs(spark: SparkSession, lock: TableLock, ahead: timedelta) -> None:
    with hdfs.running(ahead_seconds=ahead.total_seconds()) as cluster:
        base = f"{cluster.uri}/lake/trips"
        with reached_by(spark, cluster.options, base):
            served(spark, base, lock, 9, list(PARAMS))
            writers_are_told_from_dead_ones(spark, base)
