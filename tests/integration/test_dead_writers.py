"""Writers that are taken for dead: they may be about to commit at that very moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from jobs.hudi.client import WriteClient
from jobs.hudi.options import UNDER_OUR_LOCK
from tests.integration import tables
from tests.integration.run import hudi_table, proved, run_job
from tests.integration.tables import INDEX
from tests.integration.writers import HeldWriter

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("kind", "params", "num_buckets"), [("cleaning", {"retain": 1}, 4), ("bucket_expansion", {"factor": 2}, 8)]
)
def test_a_writer_that_commits_between_two_looks_at_its_heartbeat_keeps_its_rows(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    params: dict[str, int],
    num_buckets: int,
) -> None:
    base = tmp_path / "trips"
    options = tables.write_table(spark, base)
    writer = HeldWriter(tables.rows(spark, 0, 700, ts=5), base, options, tmp_path / "gate").start()
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


def test_a_completed_instant_is_not_rolled_back(spark: SparkSession, tmp_path: Path) -> None:
    base = tmp_path / "trips"
    tables.write_table(spark, base)
    table = hudi_table(spark, base, INDEX)
    (commit,) = table.commits()
    with WriteClient(table, UNDER_OUR_LOCK) as client:
        client.rollback(commit.write.instant)
    assert len(proved(spark, base, 4)) == 600
