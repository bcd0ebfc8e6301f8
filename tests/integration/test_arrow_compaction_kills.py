"""After a SIGKILL of the worker process at any step of an Arrow compaction, no row is lost or duplicate, and no file is
left.

The killed process is a real one, as in `test_kills` (see `victim.py`).
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hudi import HudiTable as HudiRsTable

from jobs.contract import BucketIndex, JobKind, Table, WorkOrder
from jobs.errors import PlanTakenError
from tests.acceptance.storage import completed_instants, left_behind, pending
from tests.integration import tables
from tests.integration.run import run_job
from tests.integration.test_kills import IN_METADATA, SEED, Point, after_call, appears, at_step, before_call
from tests.integration.writers import let_heartbeat_expire

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.integration.doomed import Spares

BUCKETS, PARTITIONS = 3, 2
FIRST_ROWS, NEW_ROWS = 120, 6
IN_OLD_METADATA = ".hoodie/metadata/.hoodie/*.deltacommit.requested"
AFTER_METADATA = ".hoodie/metadata/.hoodie/timeline/*_*.deltacommit"
AFTER_OLD_METADATA = ".hoodie/metadata/.hoodie/*.deltacommit"
INDEX = BucketIndex(BUCKETS, ("id",))


def kills(version: int, rng: random.Random) -> list[tuple[Point, str]]:
    """Yields the steps at which the process is killed, and who runs first afterwards."""
    files, markers = "2026-01-0?/*.parquet", ".hoodie/.temp/*/*/*.marker.MERGE"
    return [
        (before_call("the compaction"), "writer"),
        (after_call("the compaction"), "attempt"),
        (appears(markers, nth=rng.randint(1, 6)), "writer"),
        (appears(files, nth=rng.randint(1, 3)), "attempt"),
        (appears(files, nth=rng.randint(4, 6)), "writer"),
        (before_call("the taking over"), "writer"),
        (at_step("comparing the record keys"), "attempt"),
        (before_call("the commit of the compaction", delay=rng.uniform(0.0, 0.4)), "writer"),
        # The metadata table's commit is begun with the plan, and ends right before the table's own.
        (appears(IN_METADATA if version > 6 else IN_OLD_METADATA, delay=rng.uniform(0.0, 0.3)), "attempt"),
        (appears(AFTER_METADATA if version > 6 else AFTER_OLD_METADATA), "attempt"),
        (after_call("the commit of the compaction"), "attempt"),
    ]


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("version", [6, 9])
def test_a_kill_of_a_compaction_at_any_step_leaves_no_lost_or_duplicate_row_and_no_file(
    spark: SparkSession, tmp_path: Path, spares: Spares, version: int
) -> None:
    print(f"GROUNDSKEEPER_FAULT_SEED={SEED}")
    scene = Scene(spark, tmp_path / "trips", version)
    scene.write()
    for number, (point, then) in enumerate(kills(version, random.Random(f"{SEED} {version}"))):
        scene.write()
        job = f"job_{version}_{number}"
        order = WorkOrder(job, 1, JobKind.COMPACTION, scene.declared, {"engine": "arrow"})
        death = spares.take().run(order, point)
        print(f"{job}: {point} {then}: {death.steps} {death.stored} {death.seconds:.1f} s, {death.result}")
        # A job may end before the delay does.
        assert death.result is None or "delay" in point, (point, death)
        scene.read("after the death")
        was_completed = bool(death.stored) and death.stored[-1] in completed_instants(scene.base)
        # The lock of the killed process would stop the writer.
        if then == "writer" and not (scene.base / ".hoodie" / "lock").exists():
            scene.write()
        begun = {path.name for path in (scene.base / ".hoodie" / ".heartbeat").glob("[0-9]*")} & pending(scene.base)
        # The worker died before it could report the plan as its own, so the plan's heartbeat decides.
        for plan in begun - set(death.stored):
            with pytest.raises(PlanTakenError, match=plan):
                scene.compact(job, ())
            let_heartbeat_expire(scene.base, plan)
        details = scene.compact(job, tuple(death.stored))
        assert ("found_completed" in details) == was_completed, details
        scene.prove(f"after {point}")
        assert "arrow" in {each["engine"] for each in details.get("engines", [{"engine": "arrow"}])}
    scene.write()
    scene.compact("job_last", ())
    scene.prove("at the end")
    assert tables.snapshot(spark, scene.base, metadata=True) == tables.snapshot(spark, scene.base, metadata=False)


class Scene:
    """One table, its writer, and the expected rows."""

    def __init__(self, spark: SparkSession, base: Path, version: int) -> None:
        self.spark, self.base = spark, base
        self.options = tables.writer_options(base, num_buckets=BUCKETS, version=version)
        self.declared = Table(str(base), "trips", INDEX, writers_hudi_version="1.2.0")
        self.rows: dict[str, int] = {}
        self.batch = 0

    def write(self) -> None:
        """Writes new versions of half of the rows, and some new rows."""
        first, last = (0, FIRST_ROWS) if not self.rows else (len(self.rows) // 2, len(self.rows) + NEW_ROWS)
        frame = tables.rows(self.spark, first, last, ts=self.batch, partitions=PARTITIONS)
        tables.upsert(frame, self.base, self.options)
        self.rows |= {f"k{number}": self.batch for number in range(first, last)}
        self.batch += 1

    def compact(self, job: str, earlier: tuple[str, ...]) -> dict[str, Any]:
        result = run_job(
            self.spark, self.base, "compaction", {"engine": "arrow"}, index=INDEX, job_id=job, earlier_instants=earlier
        )
        return dict(result.details)

    def read(self, when: str) -> None:
        """Returns the rows by a reader that shares no code with Hudi's writers or ours."""
        found = pa.Table.from_batches(HudiRsTable(str(self.base)).read()).select(["id", "ts", "fare"]).to_pylist()
        assert sorted((row["id"], row["ts"]) for row in found) == sorted(self.rows.items()), when
        assert all(row["fare"] == int(row["id"][1:]) * 2.5 + row["ts"] for row in found), when

    def prove(self, when: str) -> None:
        self.read(when)
        audit = run_job(self.spark, self.base, "audit", index=INDEX).details
        assert audit["clean"], (when, audit)
        assert (audit["rows"], audit["duplicates"], audit["misplaced"]) == (len(self.rows), 0, 0), (when, audit)
        assert left_behind(self.spark, self.base) == [], when
