"""Flink reads the files that jobs have written: copied chunks of columns, and pages that ISA-L has compressed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from jobs.contract import Outcome
from jobs.dataplane import compaction_job
from jobs.dataplane.compacted_file import Compaction
from tests.flink import timeline
from tests.flink.check import differences
from tests.flink.job import FlinkJob
from tests.flink.test_flink_writer import BESIDE_OTHERS, change
from tests.integration.both_engines import newest_files
from tests.integration.run import run_job
from tests.integration.tables import INDEX
from tests.support import paged_rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.flink.cluster import FlinkCluster

KEYS = 80_000  # Arrow compresses smaller files, such as those of the late partition.


@dataclass(frozen=True)
class Reading(FlinkJob):
    """A job that ends after it has written all rows of another table into its own one."""

    table_name: str = "read"
    of: str = ""  # The statement that creates the other table, whose name there is `lake`.

    def settings(self) -> dict[str, str]:
        return {**super().settings(), "execution.runtime-mode": "batch"}

    def statements(self) -> list[str]:
        return [self.of, self.table(), f"INSERT INTO {self.table_name} SELECT * FROM lake"]


@pytest.mark.exhaustive
def test_flink_reads_copied_chunks_and_pages_of_isa_l(
    flink: FlinkCluster, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Chunks of small row groups are not copied otherwise, and pages of small files are Arrow's.
    monkeypatch.setattr(compaction_job, "Compaction", partial(Compaction, copies_from=0))
    base = tmp_path / "numbers"
    job = FlinkJob(base, last=KEYS - 1, keys=KEYS, late=KEYS * 3 // 4, rate=KEYS, options=BESIDE_OTHERS)
    for number, last in enumerate((KEYS - 1, KEYS + 2000)):
        job = replace(job, first=number * KEYS, last=last)
        flink.wait(flink.start(job), "FINISHED")
        timeline.wait_until_complete(base)
        compacted = run_job(spark, base, "compaction", {"engine": "arrow"}, index=INDEX)
        assert compacted.outcome is Outcome.SUCCEEDED
        assert any(map(paged_rows.has_pages_of_isa_l, newest_files(base).values()))
    require_read(flink, spark, job, tmp_path / "compacted")
    change(spark, base, 8)
    assert any(map(paged_rows.has_pages_of_isa_l, newest_files(base).values()))
    require_read(flink, spark, replace(job, buckets=8), tmp_path / "expanded")


def require_read(flink: FlinkCluster, spark: SparkSession, job: FlinkJob, copy: Path) -> None:
    reading = Reading(copy, last=job.last, keys=job.keys, late=job.late, of=job.table())
    flink.wait(flink.start(reading), "FINISHED")
    timeline.wait_until_complete(copy)
    found = differences(spark, copy, job.expected(), num_buckets=reading.buckets)
    assert found.none, found
