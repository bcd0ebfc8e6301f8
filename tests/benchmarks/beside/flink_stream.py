"""A Flink job with its state, which is submitted again whenever the service has stopped it."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import httpx

from jobs.contract import BucketIndex
from tests.acceptance.daemon import ENDED
from tests.benchmarks.beside.clock import Clock
from tests.benchmarks.beside.writer import printed_options
from tests.flink import timeline
from tests.flink.check import differences
from tests.flink.cluster import FlinkCluster
from tests.flink.job import FlinkJob
from tests.integration import tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.acceptance.daemon import Daemon
    from tests.benchmarks.beside.writer import Json

NAME = "by itself"
RATE = 100
_IN_STATE = {"index.type": "FLINK_STATE", "hoodie.bucket.index.num.buckets": ""}


class FlinkStream:
    """The job is submitted again from its savepoint if it has a bucket index. A job with `in_state` (Flink's default)
    is submitted without the state of Hudi's operators, which are named after the table, so the table gets another name
    each time."""

    sort_by = "num"
    # For each job of the service Flink has to be stopped and started again, which takes a while.
    pause_seconds = 240

    def __init__(self, table_type: str, minutes: float, *, in_state: bool = False, clock: Clock | None = None) -> None:
        self.index = None if in_state else BucketIndex(4, ("id",))
        self._table_type = table_type
        self._clock = clock or Clock()
        self._last = int(minutes * 60 * RATE)
        self._job: FlinkJob | None = None
        self._resumed: set[str] = set()
        self._ended = threading.Event()
        self._daemon: Daemon | None = None
        self._table = ""
        self._running = ""
        self.declared: Json = {}
        self.settings: dict[str, str] = {}

    @contextmanager
    def running(self, folder: Path, base: Path) -> Iterator[None]:
        self._job = FlinkJob(
            base,
            last=self._last,
            rate=RATE,
            # Each key is written at least three times, before and after each clustering.
            keys=(keys := min(5_000 if self.index is None else 20_000, self._last // 3)),
            late=keys * 3 // 4,
            checkpoint_seconds=5,
            table_type=self._table_type,
            name=NAME,
            options={
                **tables.LOCK,
                "hoodie.write.concurrency.mode": "single_writer",
                "hoodie.write.lock.client.wait_time_ms_between_retry": "250",
                "hoodie.write.lock.client.num_retries": "200",
                "write.extra.metadata.enabled": "true",
                **({} if self.index else _IN_STATE),
            },
        )
        with FlinkCluster(folder / "flink", java_options=self._clock.java_options) as cluster:
            self._running = cluster.start(self._job)
            cluster.wait_for_checkpoints(self._running, 2)
            address = cluster.url.removeprefix("http://")
            self.settings = {"flink_hosts": address}
            self.declared = {
                "hudi_version": "1.2.0",
                "engines": ["flink"],
                "flink": {
                    "rest_url": cluster.url,
                    "job": NAME,
                    "savepoint_folder": (folder / "savepoints").as_uri(),
                    "restart": "from-savepoint" if self.index else "without-state",
                },
            }
            keeper = threading.Thread(target=self._keep, args=(cluster,), daemon=True)
            keeper.start()
            yield
            self._wait_for_the_last_hand_over()
            self._ended.set()
            keeper.join(120)
            # The hand-overs delayed the job, so the rest of its rows may take as long as all of them without
            # hand-overs.
            cluster.wait(self._running, "FINISHED", seconds=self._last / RATE)
            timeline.wait_until_complete(base)

    def _wait_for_the_last_hand_over(self) -> None:
        """Returns when no hand-over begins any more and the job has been submitted again after the last."""
        assert self._daemon
        self._daemon.call("PUT", "/v1/pause", {"reason": "the end of the benchmark"})
        deadline = time.monotonic() + 300
        while any(job["state"] not in ENDED for job in self._jobs()) or self._to_resume():
            assert time.monotonic() < deadline, "a hand-over did not end"
            time.sleep(0.5)

    def _jobs(self) -> list[Json]:
        assert self._daemon
        answer = self._daemon.call("GET", "/v1/jobs", params={"table_id": self._table, "limit": "200"})
        found: list[Json] = answer.json()["items"]
        return found

    def _to_resume(self) -> list[Json]:
        """Returns the ended jobs for which Flink was stopped and not restarted yet."""
        return [
            job
            for job in self._jobs()
            if job["state"] in ENDED
            and (job.get("hand_over") or {}).get("savepoint")
            and job["id"] not in self._resumed
        ]

    def _keep(self, cluster: FlinkCluster) -> None:
        """Acts as an orchestrator: submits the job again after a hand-over, with the offsets of its source."""
        while not self._ended.wait(0.5):
            if self._daemon is None or self._job is None:
                continue
            with suppress(httpx.TransportError):  # The service may just have been killed.
                for job in self._to_resume():
                    self._running = cluster.start(self._again(job), savepoint=job["hand_over"]["savepoint"])
                    self._resumed.add(job["id"])

    def _again(self, stopped_for: Json) -> FlinkJob:
        assert self._job
        assert self._daemon
        if stopped_for["hand_over"]["restart"] == "from-savepoint":
            return self._job
        loaded = "index.bootstrap.enabled"
        printed = printed_options(self._daemon, self._table, "flink")
        return replace(
            self._job,
            table_name=f"lake_{len(self._resumed)}",
            options={**self._job.options, loaded: printed[loaded]},
            more_settings={"execution.state-recovery.ignore-unclaimed-state": "true"},
        )

    def registered(self, daemon: Daemon, table: str) -> None:
        self._daemon, self._table = daemon, table

    def changed(self, options: Mapping[str, str]) -> None:
        """Does nothing: an index is not built on a table that Flink writes."""

    def compared(self, spark: SparkSession, base: Path) -> Json:
        assert self._job
        found = {
            name: differences(spark, base, self._job.expected(), metadata=metadata)
            for name, metadata in (("by_metadata", True), ("by_listing", False))
        }
        counted = {name: asdict(each) for name, each in found.items()}
        return {"ok": all(each.none for each in found.values()), **counted, "resumed": len(self._resumed)}
