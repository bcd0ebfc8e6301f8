"""Flink's default index keeps the file group of each key in the job's state, which is wrong after a clustering."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from tests.acceptance.conftest import SETTINGS
from tests.acceptance.daemon import Daemon
from tests.flink import timeline
from tests.flink.check import differences
from tests.flink.job import FlinkJob
from tests.flink.test_flink_writer import BESIDE_OTHERS
from tests.integration.run import run_job

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.flink.cluster import FlinkCluster

MOR, COW = "MERGE_ON_READ", "COPY_ON_WRITE"
STATE = {**BESIDE_OTHERS, "index.type": "FLINK_STATE", "hoodie.bucket.index.num.buckets": ""}
PAUSE = "execution.checkpointing.min-pause"
LOADED = "index.bootstrap.enabled"
# The job still has rows when the service has started, which takes two minutes on a busy machine.
LAST = 12_000
# The parameters of a clustering that sorts, and of one that only joins small files.
SORTED: dict[str, Any] = {"sort_by": ["num"]}
JOINED: dict[str, Any] = {}
PATIENCE_SECONDS = 60.0
_TO_MILLIS, _FIRST = "yyyy-MM-dd HH:mm:ss.SSSSSS", "2024-01-01 00:00:00.123000"


class Lake:
    """A table that a Flink job with a state index writes, registered with a service that may stop the job."""

    def __init__(self, flink: FlinkCluster, daemon: Daemon, base: Path, table_type: str) -> None:
        self.flink, self.daemon, self.base = flink, daemon, base
        self.job = FlinkJob(
            base,
            last=LAST,
            keys=600,
            late=450,
            rate=60,
            table_type=table_type,
            checkpoint_seconds=2 if table_type == MOR else 10,
            more_settings={} if table_type == MOR else {PAUSE: "10 s"},
            name="numbers",
            timestamps=True,
            options=STATE,
        )
        self.running = flink.start(self.job)
        flink.wait_for_checkpoints(self.running, 2)
        writers = {
            "hudi_version": "1.2.0",
            "engines": ["flink"],
            "flink": {"rest_url": flink.url, "job": "numbers", "restart": "without-state"},
        }
        self.table = daemon.register(base, None, writers=writers)
        daemon.wait_for_worker()

    def clustered(self, **params: Any) -> str:
        """Clusters the table, for which the service stops the job, and returns the job's savepoint."""
        if self.job.table_type == MOR:  # Hudi's clustering leaves file groups alone that have logs only.
            self.daemon.succeed(self.table, "compaction")
        # On copy-on-write Hudi's coordinator gives out no instant while that of an aborted checkpoint is pending, and
        # stopping the job aborts a checkpoint.
        self.flink.wait_for_checkpoints(self.running, self.flink.checkpoints(self.running) + 1)
        done = self.daemon.run(self.table, "clustering", **params)
        assert done["state"] == "succeeded", (done, self.daemon.log.read_text()[-4000:])
        assert not done["result"]["nothing_to_do"]
        assert (done["hand_over"]["by"], done["hand_over"]["restart"]) == ("groundskeeper", "without-state")
        assert self.flink.state(self.running) == "FINISHED"
        return str(done["hand_over"]["savepoint"])

    def anew(self, rate: int = 100) -> FlinkJob:
        """Returns the job with the options for a restart after the clustering."""
        path = f"/v1/tables/{self.table}/writer-options"
        printed = self.daemon.call("GET", path, params={"engine": "flink"}).json()["options"]
        assert printed[LOADED] == "true"
        return replace(self.job, rate=rate, options={**STATE, LOADED: "true"})

    def renamed(self, rate: int = 100) -> FlinkJob:
        """Returns the job under another table name: it keeps the source's state, but not that of Hudi's operators,
        which are named after the table."""
        settings = {"execution.state-recovery.ignore-unclaimed-state": "true"}
        return replace(self.anew(rate), table_name="lake_again", more_settings=settings)

    def incidents(self, state: str) -> dict[str, Any]:
        """Returns the incidents in this state by their instants."""
        found = self.daemon.call("GET", f"/v1/tables/{self.table}/incidents").json()["items"]
        return {each["instant"]: each for each in found if each["state"] == state}

    def finished(self, running: str, spark: SparkSession, *, left: tuple[str, ...] = ()) -> None:
        """Asserts that readers find all rows of the job by the metadata table and by listing, and that an audit finds
        nothing.

        `left` are the pending instants that nobody completes.
        """
        self.flink.wait(running, "FINISHED", seconds=120)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while set(timeline.pending(self.base)) - set(left):
            assert time.monotonic() < deadline, timeline.pending(self.base)
            time.sleep(0.1)
        for metadata in (True, False):
            found = differences(spark, self.base, self.job.expected(), metadata=metadata)
            assert found.none, (metadata, found)
        frame = spark.read.format("hudi").load(str(self.base))
        first = f"date_format(at - make_interval(0, 0, 0, 0, 0, 0, ver), '{_TO_MILLIS}')"
        assert frame.where(f"{first} = '{_FIRST}'").count() == self.job.keys
        audit = self.daemon.succeed(self.table, "audit")
        assert (audit["clean"], audit["stale_writes"]) == (True, []), audit
        assert self.incidents("open") == {}


@pytest.fixture
def daemon(flink: FlinkCluster, tmp_path: Path) -> Any:
    hosts = urlsplit(flink.url).netloc
    with Daemon(tmp_path / "service", flink_hosts=hosts, poll_seconds="1", **SETTINGS) as running:
        yield running


def written_by(base: Path, *, after: str) -> int:
    """Returns the number of rows that Flink has committed since this instant."""
    return sum(commit.rows for commit in timeline.commits(base) if commit.instant > after)


@pytest.mark.exhaustive
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("table_type", "keeps_offsets", "params"),
    [
        (MOR, False, SORTED),
        (MOR, True, SORTED),
        (COW, False, SORTED),
        (COW, True, SORTED),
        (MOR, True, JOINED),
    ],
)
def test_after_a_clustering_the_job_begins_without_its_state_and_no_row_is_lost(
    flink: FlinkCluster,
    daemon: Daemon,
    spark: SparkSession,
    tmp_path: Path,
    table_type: str,
    keeps_offsets: bool,
    params: dict[str, Any],
) -> None:
    lake = Lake(flink, daemon, tmp_path / "numbers", table_type)
    saved = lake.clustered(**params)
    stopped = timeline.commits(lake.base)[-1].instant
    top = max(row["ver"] for row in spark.read.format("hudi").load(str(lake.base)).select("ver").collect())
    if keeps_offsets:
        running = flink.start(lake.renamed(1000), savepoint=saved)
    else:
        running = flink.start(replace(lake.anew(1000), first=top - 100))
    lake.finished(running, spark)
    if table_type == MOR:  # Copy-on-write tables get whole files.
        assert written_by(lake.base, after=stopped) == LAST - top + (0 if keeps_offsets else 101)


@pytest.mark.exhaustive
@pytest.mark.timeout(600)
def test_rows_that_a_job_writes_after_a_start_from_its_savepoint_are_an_incident_and_repaired(
    flink: FlinkCluster, daemon: Daemon, spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake(flink, daemon, tmp_path / "numbers", MOR)
    saved = lake.clustered(**SORTED)
    lake.running = flink.start(replace(lake.job, rate=50), savepoint=saved)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(lake.incidents("open")) < 3:
        assert time.monotonic() < deadline, lake.incidents("open")
        time.sleep(0.2)
    opened = lake.incidents("open")
    assert {each["kind"] for each in opened.values()} == {"stale-write"}
    # The service stops the job for the clustering, and knows that it wrote meanwhile.
    repaired = daemon.run(lake.table, "repair")
    assert repaired["state"] == "succeeded", (repaired, daemon.log.read_text()[-4000:])
    assert set(opened) <= set(repaired["result"]["repaired"])
    assert flink.state(lake.running) == "FINISHED"
    running = flink.start(lake.renamed(1000), savepoint=repaired["hand_over"]["savepoint"])
    lake.finished(running, spark)
    assert set(opened) <= set(lake.incidents("repaired"))


@pytest.mark.exhaustive
@pytest.mark.timeout(600)
def test_on_copy_on_write_a_job_from_its_savepoint_fails_and_commits_nothing(
    flink: FlinkCluster, daemon: Daemon, spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake(flink, daemon, tmp_path / "numbers", COW)
    saved = lake.clustered(**SORTED)
    before = timeline.commits(lake.base)[-1].instant
    running = flink.start(replace(lake.job, rate=200, checkpoint_seconds=2, more_settings={}), savepoint=saved)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not flink.exceptions(running):
        assert time.monotonic() < deadline, flink.state(running)
        time.sleep(0.2)
    flink.cancel(running)
    assert written_by(lake.base, after=before) == 0
    audit = run_job(spark, lake.base, "audit", index=None).details
    assert (audit["duplicates"], audit["stale_writes"]) == (0, []), audit
    left = tuple(timeline.pending(lake.base))
    lake.finished(flink.start(lake.renamed(1000), savepoint=saved), spark, left=left)
