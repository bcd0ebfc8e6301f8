"""After a SIGKILL of the worker process at any step of a rescale, the next attempt succeeds.

The killed process is a real one (see `victim.py`); the next attempt and the writers, whose options still have the old
number, run in the test's own session. `GROUNDSKEEPER_FAULT_SEED` repeats the random times of a run.
"""

from __future__ import annotations

import os
import random
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hudi import HudiTable as HudiRsTable

from jobs.contract import BucketIndex, JobKind, Table, WorkOrder
from jobs.format.instants import wall_clock
from jobs.hudi.jvm import jvm_of
from jobs.protocol import replacement
from jobs.protocol.writers import NEVER, seconds_until_next_write
from tests.acceptance.storage import completed_instants, left_behind, pending
from tests.integration import tables
from tests.integration.run import run_job

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.integration.doomed import Death, Doomed, Spares

SEED = int(os.environ.get("GROUNDSKEEPER_FAULT_SEED") or random.SystemRandom().randrange(10**6))
BUCKETS_OF_WRITERS = 1
PARTITIONS = 2
FIRST_ROWS, NEW_ROWS = 80, 8
# On any machine a writer that has been started waits for the lock sooner than after these seconds.
UNTIL_AT_THE_LOCK = 120.0
# A writer that waits for the lock has read the number of buckets already, so a rescale that gets the lock first has to
# notice the write. If the writer gets the lock late, the rescale waits for twice the longest pause between writes.
WATCHING_A_WAITING_WRITER = {"settle_seconds": 5, "wait_seconds": 900}

Point = dict[str, Any]


def at_step(name: str, **more: Any) -> Point:
    return {"at": "step", "name": name, **more}


def before_call(call: str, **more: Any) -> Point:
    return {"at": "before", "name": call, **more}


def after_call(call: str, **more: Any) -> Point:
    return {"at": "after", "name": call, **more}


def appears(pattern: str, **more: Any) -> Point:
    return {"at": "file", "name": pattern, **more}


CONFIGS = ".hoodie/.bucket_index/partition_bucket_index_meta/configs"
ROLLED_BACK = ".hoodie/timeline/*_*.rollback"
# The metadata table's commit comes before the table's own.
IN_METADATA = ".hoodie/metadata/.hoodie/timeline/*.deltacommit.requested"


@dataclass(frozen=True)
class Kill:
    """The step at which the process dies, its job, and who runs first afterwards.

    `then` is `writer`, `attempt`, `rolled back` (a writer's clean undoes the job's instant) or `again` (the next
    attempt is killed too). If `meanwhile` is true, a writer commits during the split, so that the job has something to
    catch up.
    """

    point: Point
    params: dict[str, Any]
    then: str = "writer"
    meanwhile: bool = False


WHOLE = {"factor": 2}
ONE, ONE_BY_THREE = ({"partitions": ["2026-01-01"], "factor": factor} for factor in (2, 3))
THROUGH = {"way": "through_multiple"}
OTHER, OTHER_BY_FOUR = ({"partitions": ["2026-01-02"], "factor": factor} for factor in (2, 4))

SHAPES: dict[str, dict[str, Any]] = {
    "cow-9": {"table_type": "COPY_ON_WRITE", "version": 9},
    "mor-9": {"table_type": "MERGE_ON_READ", "version": 9},
    "cow-6": {"table_type": "COPY_ON_WRITE", "version": 6},
    "mor-6": {"table_type": "MERGE_ON_READ", "version": 6},
    "mor-9-plain": {"table_type": "MERGE_ON_READ", "version": 9, "partitioned": False, "metadata": False},
    "mor-9-contracted": {"table_type": "MERGE_ON_READ", "version": 9, "num_buckets": 16},
    "cow-6-contracted": {"table_type": "COPY_ON_WRITE", "version": 6, "num_buckets": 16},
    "mor-9-counted": {"table_type": "MERGE_ON_READ", "version": 9, "num_buckets": 4},
    "cow-6-counted": {"table_type": "COPY_ON_WRITE", "version": 6, "num_buckets": 4, "partitioned": False},
}
# Every run has this place on "mor-9": the metadata table has the commit, and the table has not.
OF_A_SHORT_RUN = (6,)
# The exhaustive run kills at every place, and at these places on one more kind of table.
OF_A_LONG_RUN = SHAPES.keys() - {"mor-9"}


def rescale_params(number: int, day: int | None = None) -> dict[str, Any]:
    return {"num_buckets": number, **({"partitions": [f"2026-01-0{day}"]} if day else {})}


def kills(shape: str, rng: random.Random) -> list[Kill]:
    """Returns 60 kills: at all places, each on some of the tables, and at random times."""
    anywhere = {"at": "start", "delay": rng.uniform(0.5, 12.0)}
    in_split = rng.uniform(0.0, 1.5)
    in_commit = rng.uniform(0.0, 0.8)
    file = rng.randint(1, 4)
    match shape:
        case "cow-9":
            return [
                Kill(at_step("watching writers"), WHOLE | {"settle_seconds": 3}),
                Kill(at_step("planning"), ONE_BY_THREE),
                Kill(after_call("the hashing config"), OTHER),
                Kill(at_step("rewriting", delay=in_split), ONE, then="again"),
                Kill(before_call("the rollback", delay=in_commit), ONE, then="again"),
                Kill(after_call("the rollback"), ONE),
                Kill(after_call("the commit"), OTHER, then="attempt"),
                Kill(anywhere, OTHER),
            ]
        case "mor-9":
            return [
                Kill({"at": "unheard"}, WHOLE),
                Kill(appears("2026-01-0?/*.parquet", nth=file), OTHER_BY_FOUR),
                Kill(at_step("waiting for writers"), ONE, then="rolled back"),
                Kill(at_step("catching up"), ONE | {"lock_seconds": 0}, meanwhile=True),
                Kill(at_step("committing"), OTHER, then="again"),
                Kill(appears(ROLLED_BACK), OTHER),
                Kill(appears(IN_METADATA, delay=in_commit / 4), ONE),
                Kill({"at": "end"}, ONE),
                Kill(anywhere, OTHER),
            ]
        case "cow-6":
            return [
                Kill(after_call("the instant"), ONE_BY_THREE),
                Kill(before_call("the hashing config"), WHOLE),
                Kill(after_call("the hashing config", delay=in_commit), OTHER),
                Kill(after_call("inflight"), OTHER, then="rolled back"),
                Kill(appears(".hoodie/*.replacecommit"), ONE),
                Kill(anywhere, OTHER),
            ]
        case "mor-6":
            return [
                Kill(appears(f"{CONFIGS}/*"), ONE_BY_THREE),
                Kill(at_step("rewriting", delay=in_split), OTHER, then="attempt"),
                Kill(before_call("the commit", delay=in_commit), WHOLE),
                Kill({"at": "unheard"}, ONE),
                Kill(at_step("committing", only="python"), OTHER),
                Kill(anywhere, OTHER),
            ]
        case "mor-9-contracted":
            return [
                # The kill comes while rows that Hudi reads go to temporary files, which are not part of the commit.
                Kill(appears("2026-01-01/*.parquet", nth=file), ONE),
                Kill(at_step("rewriting", delay=in_split), OTHER, then="again"),
                Kill(at_step("waiting for writers"), OTHER, then="rolled back"),
                Kill(at_step("catching up"), ONE | {"lock_seconds": 0}, meanwhile=True),
                Kill(before_call("the hashing config"), OTHER),
                Kill(after_call("the hashing config"), ONE, then="attempt"),
                Kill(appears(IN_METADATA, delay=in_commit / 4), OTHER),
            ]
        case "mor-9-counted":
            return [
                Kill(appears("2026-01-01/*.parquet", nth=file), rescale_params(7, 1)),
                # The kill comes when all pieces are written, and some of the files into which they are joined.
                Kill(appears("2026-01-02/*.parquet", nth=16 + file), rescale_params(7, 2) | THROUGH, then="attempt"),
                Kill(at_step("rewriting", delay=in_split), rescale_params(6, 1), then="again"),
                Kill(at_step("waiting for writers"), rescale_params(6, 1), then="rolled back"),
                Kill(at_step("catching up"), rescale_params(10, 1) | THROUGH | {"lock_seconds": 0}, meanwhile=True),
                Kill(after_call("the hashing config"), rescale_params(5, 2)),
                Kill(appears(IN_METADATA, delay=in_commit / 4), rescale_params(4, 1)),
            ]
        case "cow-6-counted":
            return [
                Kill(before_call("the hashing config"), rescale_params(7)),
                Kill(at_step("rewriting", delay=in_split), rescale_params(6) | THROUGH, then="again"),
                Kill(at_step("committing"), rescale_params(6) | THROUGH),
                Kill(after_call("the commit"), rescale_params(9), then="attempt"),
                Kill(at_step("watching writers"), rescale_params(4) | {"settle_seconds": 3}),
                Kill(anywhere, rescale_params(5)),
            ]
        case "cow-6-contracted":
            return [
                Kill(at_step("committing"), ONE),
                Kill(before_call("the commit", delay=in_commit), OTHER),
                Kill(after_call("the commit"), ONE, then="attempt"),
                Kill(at_step("watching writers"), OTHER | {"settle_seconds": 3}),
                Kill(anywhere, ONE),
            ]
        case _:
            return [
                Kill(appears(CONFIGS), {"factor": 2}),
                Kill(appears(".hoodie/lock"), {"factor": 3}),
                Kill(at_step("rewriting", only="jvm", delay=in_split), {"factor": 2}),
                Kill(after_call("the hashing config"), {"factor": 2}, then="rolled back"),
                Kill(appears(".hoodie/timeline/*_*.replacecommit"), {"factor": 2}),
                Kill(anywhere, {"factor": 2}),
            ]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("shape", "places"),
    [
        *(pytest.param(name, OF_A_SHORT_RUN, id=name) for name in SHAPES if name not in OF_A_LONG_RUN),
        *(pytest.param(name, None, id=f"{name}-all", marks=pytest.mark.exhaustive) for name in SHAPES),
    ],
)
def test_a_kill_of_the_worker_at_any_step_leaves_no_lost_duplicate_or_misplaced_row_and_no_file(
    spark: SparkSession, tmp_path: Path, spares: Spares, shape: str, places: Sequence[int] | None
) -> None:
    print(f"GROUNDSKEEPER_FAULT_SEED={SEED}")
    scene = Scene(spark, tmp_path / "trips", **SHAPES[shape])
    scene.write()
    planned = kills(shape, random.Random(f"{SEED} {shape}"))
    if places is not None:
        planned = [planned[place] for place in places]
    job, earlier = "", []
    for number, kill in enumerate(planned):
        job = job or f"job_{shape}_{number}"
        death = scene.strike(spares.take(is_last=kill is planned[-1]), kill, job, earlier)
        earlier += death.stored
        scene.read("after the death")
        if kill.then == "again":
            continue
        scene.recover(kill, death, job, earlier)
        job, earlier = "", []
    scene.write()
    scene.prove("at the end")
    assert tables.snapshot(spark, scene.base, metadata=True) == tables.snapshot(spark, scene.base, metadata=False)


class Scene:
    """One table, its writer with the original number of buckets, and the expected rows."""

    def __init__(self, spark: SparkSession, base: Path, **shape: Any) -> None:
        self.spark, self.base = spark, base
        self.is_partitioned = shape.get("partitioned", True)
        by_number = {16: JobKind.BUCKET_CONTRACTION, 4: JobKind.BUCKET_COUNT}
        self.kind = by_number.get(shape.get("num_buckets", BUCKETS_OF_WRITERS), JobKind.BUCKET_EXPANSION)
        self.options = tables.writer_options(base, **{"num_buckets": BUCKETS_OF_WRITERS, **shape})
        self.index = BucketIndex(shape.get("num_buckets", BUCKETS_OF_WRITERS), ("id",))
        self.rows: dict[str, int] = {}
        self.batch = 0
        self.may_be_left: set[str] = set()

    # -- the writer

    def write(self, **more: str) -> None:
        """Writes new versions of half of the rows, and some new rows."""
        first, last = (0, FIRST_ROWS) if not self.rows else (len(self.rows) // 2, len(self.rows) + NEW_ROWS)
        frame = tables.rows(self.spark, first, last, ts=self.batch, partitions=PARTITIONS)
        tables.upsert(frame, self.base, self.options | more)
        self.rows |= {f"k{number}": self.batch for number in range(first, last)}
        self.batch += 1

    def roll_back_by_a_writer(self) -> None:
        """Lets heartbeats and the lock expire, so that a writer that cleans rolls the dead instant back."""
        for heartbeat in (self.base / ".hoodie" / ".heartbeat").glob("[0-9]*"):
            os.utime(heartbeat, (time.time() - 3600, time.time() - 3600))
        (self.base / ".hoodie" / "lock").unlink(missing_ok=True)
        self.write(**{"hoodie.clean.automatic": "true"})
        assert pending(self.base) == set()

    # -- the worker

    def strike(self, doomed: Doomed, kill: Kill, job: str, earlier: list[str]) -> Death:
        params = {"settle_seconds": 0, **kill.params}
        declared = Table(str(self.base), "trips", self.index, writers_hudi_version="1.2.0")
        plan = WorkOrder(job, 1, self.kind, declared, params, earlier_instants=tuple(earlier))
        hold = "waiting for writers" if kill.meanwhile else None
        death = doomed.run(plan, kill.point, hold=hold, meanwhile=self.write)
        _require_intended(kill, death)
        print(f"{job}: {kill.point} {kill.then}: {death.steps} {death.stored} {death.seconds:.1f} s, {death.result}")
        return death

    def recover(self, kill: Kill, death: Death, job: str, earlier: list[str]) -> None:
        started = time.monotonic()
        params = {"settle_seconds": 0, **kill.params}
        if death.result and death.result["outcome"] == "failed":
            assert kill.point.get("only") == "jvm", death.result

        def attempt(**watching: Any) -> dict[str, Any]:
            result = run_job(
                self.spark,
                self.base,
                self.kind.value,
                params | watching,
                index=self.index,
                job_id=job,
                earlier_instants=tuple(earlier),
            )
            return dict(result.details)

        was_completed = bool(earlier) and earlier[-1] in completed_instants(self.base)
        if kill.then == "rolled back":
            self.roll_back_by_a_writer()
            self.write()
            self.read("after a writer's rollback")
            details = attempt()
        elif kill.then == "attempt":
            details = attempt()
            self.write()
        elif (self.base / ".hoodie" / "lock").exists():
            details = self._attempt_while_a_writer_waits(attempt)
        else:
            self.write()
            self.read("after the writer went on")
            details = attempt()
        assert ("found_completed" in details) == was_completed, details
        self.prove(f"after {kill}")
        print(f"  recovered in {time.monotonic() - started:.1f} s, {'completed' if was_completed else 'done again'}")

    def _attempt_while_a_writer_waits(self, attempt: Any) -> dict[str, Any]:
        """The dead worker's lock stops the writer until the next attempt breaks it.

        Either of the two may get the lock then. A writer that follows the commit fails, and writes its batch again.
        """
        known = {wall_clock(instant) for instant in completed_instants(self.base)}

        def until_the_next_write(writes: Sequence[tuple[datetime, datetime]], now: datetime) -> float:
            """Expects no further write after the waiting writer has written. Otherwise the attempt would wait for twice
            the longest pause, and so double this pause for the next such attempt."""
            has_come = any(start not in known for start, _ in writes)
            return NEVER if has_come else seconds_until_next_write(writes, now)

        with ThreadPoolExecutor(1) as pool, pytest.MonkeyPatch.context() as patch:
            patch.setattr(replacement, "seconds_until_next_write", until_the_next_write)
            writing = pool.submit(self.write)
            self._wait_for_a_writer_at_the_lock()
            assert not writing.done(), writing.exception()
            details: dict[str, Any] = attempt(**WATCHING_A_WAITING_WRITER)
            stopped = writing.exception(120)
        if stopped:
            (instant,) = details["fenced"]
            # The tasks of that writer were still at work.
            self.may_be_left.add(f"marker folder {instant}")
            self.write()
        return details

    def _wait_for_a_writer_at_the_lock(self) -> None:
        """Waits until a thread of the session waits between two tries of Hudi's clients to get a lock."""
        threads = jvm_of(self.spark).java.java.lang.management.ManagementFactory.getThreadMXBean()
        end = time.monotonic() + UNTIL_AT_THE_LOCK
        while not any("RetryHelper.start" in str(thread) for thread in threads.dumpAllThreads(False, False)):
            assert time.monotonic() < end, "no writer waits for a lock"
            time.sleep(0.05)

    # -- what must be true

    def read(self, when: str) -> None:
        """Returns the rows by a reader that shares no code with Hudi's writers or ours, also while a dead worker's
        instant is pending."""
        found = pa.Table.from_batches(HudiRsTable(str(self.base)).read()).select(["id", "ts", "fare"]).to_pylist()
        assert sorted((row["id"], row["ts"]) for row in found) == sorted(self.rows.items()), when
        assert all(row["fare"] == int(row["id"][1:]) * 2.5 + row["ts"] for row in found), when

    def prove(self, when: str) -> None:
        self.read(when)
        audit = run_job(self.spark, self.base, "audit", index=self.index).details
        assert audit["clean"], (when, audit)
        assert (audit["rows"], audit["duplicates"], audit["misplaced"]) == (len(self.rows), 0, 0), (when, audit)
        assert set(left_behind(self.spark, self.base)) <= self.may_be_left, when


def _require_intended(kill: Kill, death: Death) -> None:
    """Asserts that the process died at the intended place, because an unreached place would not be tested."""
    is_certain = kill.point["at"] not in {"start", "end"} and "delay" not in kill.point and "only" not in kill.point
    assert not is_certain or death.result is None, (kill, death)
    if kill.point["at"] == "step" and is_certain:
        assert death.steps[-1].startswith(kill.point["name"]), (kill, death)
