"""The writers of `by_itself.py`: each runs beside the daemon until it is told to end, and knows what must be there."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import httpx

from jobs.contract import BucketIndex
from tests.acceptance.daemon import ENDED
from tests.flink import timeline
from tests.flink.check import differences
from tests.flink.cluster import FlinkCluster
from tests.flink.job import FlinkJob
from tests.integration import ceaseless_writer, sql_writer, tables

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.acceptance.daemon import Daemon

# So that buckets reach the least size that a policy may name.
PAYLOAD_BYTES = 8000
FIRST_ID_OF_THE_SECOND = 3_000_000
SUFFIX_OF_FLINK = "by itself"
FLINK_RATE = 100

Json = dict[str, Any]


class Writer(Protocol):
    """One kind of writer, of a table with `index`."""

    index: BucketIndex
    declared: Json
    settings: dict[str, str]

    def running(self, folder: Path, base: Path) -> Any:
        """A context in which it writes; the table is there when it is entered."""

    def registered(self, daemon: Daemon, table: str) -> None:
        """The table has been registered; the writer may ask for its options."""

    def compared(self, spark: SparkSession, base: Path) -> Json:
        """After its end: `ok`, and the counts of what was found."""


class Batches:
    """DataFrames of upserts, back to back; with `overlapping` by two processes."""

    index = BucketIndex(2, ("id",))

    def __init__(self, table_type: str, version: int, *, overlapping: bool) -> None:
        self.declared: Json = {"hudi_version": "1.2.0", "retry_conflicts": True, "engines": ["spark"]}
        self.settings: dict[str, str] = {}
        self._shape = {"table_type": table_type, "version": version}
        self._ids = (0, FIRST_ID_OF_THE_SECOND) if overlapping else (0,)
        self._ledgers: list[Path] = []

    @contextmanager
    def running(self, folder: Path, base: Path) -> Iterator[None]:
        options = tables.writer_options(base, num_buckets=self.index.num_buckets, **self._shape)  # type: ignore[arg-type]
        options |= {
            "hoodie.write.num.retries.on.conflict.failures": "5",
            # Else every small file has 430 KB of it, and buckets hardly get smaller.
            "hoodie.parquet.bloom.filter.enabled": "false",
        }
        with ExitStack() as stack:
            for first in self._ids:
                context = ceaseless_writer.running(folder / f"writer_{first}", base, options, PAYLOAD_BYTES, first)
                self._ledgers.append(stack.enter_context(context))
            yield

    def registered(self, daemon: Daemon, table: str) -> None:
        """Its options are its own."""

    def compared(self, spark: SparkSession, base: Path) -> Json:
        lines = [line for ledger in self._ledgers for line in ceaseless_writer.read(ledger)]
        found, expected = ceaseless_writer.found(spark, base), ceaseless_writer.expected(lines)
        failed = [line.error for line in lines if line.error]
        return {
            "ok": found == expected and not failed,
            "rows": len(found),
            "lost_or_old": sum(found.get(key) != number for key, number in expected.items()),
            "batches": len(lines) - len(failed),
            "failed_batches": len(failed),
        }


class SqlUser:
    """One Spark SQL session for all its statements, with the options that the service prints."""

    index = BucketIndex(2, ("id",))

    def __init__(self, table_type: str, version: int, seed: int, *, careless: bool) -> None:
        self.declared: Json = {
            "hudi_version": "1.2.0",
            "retry_conflicts": True,  # It repeats a statement that failed.
            "engines": ["spark-sql"],
            "query_pruning_off": True,
        }
        self.settings: dict[str, str] = {}
        self._shape = {"table_type": table_type, "version": version, "seed": seed, "refresh": not careless}
        self._writing: sql_writer.Writing | None = None

    @contextmanager
    def running(self, folder: Path, base: Path) -> Iterator[None]:
        with sql_writer.running(folder / "user", base, **self._shape) as writing:  # type: ignore[arg-type]
            self._writing = writing
            yield

    def registered(self, daemon: Daemon, table: str) -> None:
        answer = daemon.call("GET", f"/v1/tables/{table}/writer-options", params={"engine": "spark-sql"}).json()
        assert self._writing
        self._writing.begin(answer["options"])

    def compared(self, spark: SparkSession, base: Path) -> Json:
        assert self._writing
        ledger = self._writing.ledger()
        found, duplicates = sql_writer.found(spark, base)
        wrong = [key for key in found.keys() | ledger.rows.keys() if found.get(key) != ledger.rows.get(key)]
        return {
            "ok": not wrong and not duplicates,
            "rows": len(found),
            "lost_or_old": len(wrong),
            "statements": dict(ledger.done),
            "failed_statements": dict(ledger.failed),
        }


class FlinkStream:
    """A Flink job with its state, that is submitted again from its savepoint whenever the service has stopped it."""

    index = BucketIndex(4, ("id",))

    def __init__(self, table_type: str, minutes: float) -> None:
        self._table_type = table_type
        self._last = int(minutes * 60 * FLINK_RATE)
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
            rate=FLINK_RATE,
            keys=20_000,
            late=15_000,
            checkpoint_seconds=5,
            table_type=self._table_type,
            name=SUFFIX_OF_FLINK,
            options={
                **tables.LOCK,
                "hoodie.write.concurrency.mode": "single_writer",
                "hoodie.write.lock.client.wait_time_ms_between_retry": "250",
                "hoodie.write.lock.client.num_retries": "200",
                "write.extra.metadata.enabled": "true",
            },
        )
        with FlinkCluster(folder / "flink") as cluster:
            self._running = cluster.start(self._job)
            cluster.wait_for_checkpoints(self._running, 2)
            address = cluster.url.removeprefix("http://")
            self.settings = {"flink_hosts": address}
            self.declared = {
                "hudi_version": "1.2.0",
                "engines": ["flink"],
                "flink": {
                    "rest_url": cluster.url,
                    "job": SUFFIX_OF_FLINK,
                    "savepoint_folder": (folder / "savepoints").as_uri(),
                },
            }
            keeper = threading.Thread(target=self._keep, args=(cluster,), daemon=True)
            keeper.start()
            yield
            self._wait_for_the_last_hand_over()
            self._ended.set()
            keeper.join(120)
            # Each hand-over held it up, so the rest of its rows may take as long as all of them would have.
            cluster.wait(self._running, "FINISHED", seconds=self._last / FLINK_RATE)
            timeline.wait_until_complete(base)

    def _wait_for_the_last_hand_over(self) -> None:
        """From here on none begins, and the job has been submitted again after the last."""
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
        """Jobs that have ended, and for which Flink was stopped and not started again yet."""
        return [
            job
            for job in self._jobs()
            if job["state"] in ENDED
            and (job.get("hand_over") or {}).get("savepoint")
            and job["id"] not in self._resumed
        ]

    def _keep(self, cluster: FlinkCluster) -> None:
        """What an orchestrator does: after a hand-over the job is submitted again, from where it was stopped."""
        while not self._ended.wait(0.5):
            if self._daemon is None or self._job is None:
                continue
            with suppress(httpx.TransportError):  # The service may just have been killed.
                for job in self._to_resume():
                    self._running = cluster.start(replace(self._job), savepoint=job["hand_over"]["savepoint"])
                    self._resumed.add(job["id"])

    def registered(self, daemon: Daemon, table: str) -> None:
        self._daemon, self._table = daemon, table

    def compared(self, spark: SparkSession, base: Path) -> Json:
        assert self._job
        found = differences(spark, base, self._job.expected())
        return {"ok": found.none, "differences": str(found), "resumed": len(self._resumed)}
