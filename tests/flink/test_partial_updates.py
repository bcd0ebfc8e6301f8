"""A Flink job updates some columns of a row (`PartialUpdateAvroPayload`): where a new version of a row has no value,
the value of the earlier version stays. Jobs of this service change no column of any row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.flink import timeline
from tests.flink.check import differences
from tests.flink.job import FlinkJob
from tests.flink.test_beside_flink import COW, MOR
from tests.flink.test_flink_writer import BESIDE_OTHERS
from tests.flink.test_goes_on import stopped
from tests.flink.test_state_index import PAUSE
from tests.integration import tables
from tests.integration.run import run_job

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.flink.cluster import FlinkCluster
    from tests.flink.job import Row

PAYLOAD = {"payload.class": "org.apache.hudi.common.model.PartialUpdateAvroPayload"}
_WITHOUT = 3


@dataclass(frozen=True)
class Partial(FlinkJob):
    """A third of the versions have no `val`. There is one subtask, so that the versions of a key come in order. Where a
    version has no value, Hudi (1.2.0) takes the value of the version that it has at that moment, and never corrects
    it."""

    parallelism: int = 1

    def _insert(self) -> str:
        val = "'v' || CAST(seq * 31 AS STRING)"
        some = f"CASE WHEN MOD(seq, {_WITHOUT}) = 0 THEN CAST(NULL AS STRING) ELSE {val} END"
        return super()._insert().replace(val, some)

    def expected(self, last: int | None = None) -> dict[str, Row]:
        rows = super().expected(last)
        for key, row in rows.items():
            earlier = [number for number in range(row.ver, -1, -self.keys) if number % _WITHOUT]
            if row.ver % _WITHOUT == 0:
                rows[key] = replace(row, val=f"v{earlier[0] * 31}" if earlier else "")
        return rows


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("table_type", "version"), [(MOR, "9"), (MOR, "6"), (COW, "9")])
def test_no_column_of_a_row_changes_in_jobs_beside_and_between_partial_updates(
    flink: FlinkCluster, spark: SparkSession, tmp_path: Path, table_type: str, version: str
) -> None:
    base = tmp_path / "numbers"
    options = {**BESIDE_OTHERS, **PAYLOAD, "metadata.enabled": "true", "hoodie.write.table.version": version}
    # The number of keys is no multiple of 3, so each key has versions with and without a value.
    job = Partial(base, last=30_000, keys=301, late=250, rate=60, table_type=table_type, options=options)
    job = replace(job, checkpoint_seconds=8, more_settings={PAUSE: "8 s"})
    running = flink.start(job)
    flink.wait_for_checkpoints(running, 2)
    jobs: dict[str, dict[str, Any]] = {"clustering": {"sort_by": ["num"]}, "bucket_expansion": {"num_buckets": 8}}
    if table_type == MOR:
        run_job(spark, base, "compaction")
    saved = stopped(flink, job, running)
    before = tables.snapshot(spark, base)

    for kind, params in jobs.items():
        run_job(spark, base, kind, params, writers_stopped=True)
        for metadata in (True, False):
            assert tables.snapshot(spark, base, metadata=metadata) == before

    flink.wait(flink.start(replace(job, rate=6000), savepoint=saved), "FINISHED", seconds=200)
    timeline.wait_until_complete(base)
    if table_type == MOR:
        before = tables.snapshot(spark, base)
        run_job(spark, base, "compaction")
        assert tables.snapshot(spark, base) == before
    found = differences(spark, base, job.expected(), num_buckets=8)
    assert found.none, found
    assert run_job(spark, base, "audit").details["clean"]
