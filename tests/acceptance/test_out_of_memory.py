"""A worker without enough memory for a job is replaced, and the job is not repeated endlessly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from tests.acceptance.conftest import SETTINGS
from tests.acceptance.daemon import Daemon
from tests.acceptance.storage import left_behind
from tests.integration import tables

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ROWS, ROW_BYTES = 30, 8_000_000


@pytest.mark.exhaustive
def test_a_worker_out_of_memory_is_replaced_and_other_tables_are_still_served(
    spark: SparkSession, tmp_path: Path
) -> None:
    huge, small = tmp_path / "huge", tmp_path / "small"
    options = tables.writer_options(huge, num_buckets=1, partitioned=False)
    for batch in range(2):
        text = F.concat(F.col("id"), F.lit(batch), F.expr(f"repeat('x', {ROW_BYTES})")).alias("text")
        rows = spark.range(0, ROWS, 1, 1).select(F.col("id").cast("string"), F.lit(batch).alias("ts"), text)
        tables.upsert(rows, huge, options)
    before = tables.snapshot(spark, huge)
    tables.write_table(spark, small, updates=1, partitioned=False)

    settings = {**SETTINGS, "driver_memory": "512m", "max_attempts": "2", "slots": "1"}
    with Daemon(tmp_path / "service", **settings) as daemon:
        large_one = daemon.register(huge, 1)
        job = daemon.run(large_one, "compaction")
        assert (job["state"], job["attempt"]) == ("failed", 2), job
        assert job["error"]["type"] == "/problems/worker-lost"
        assert daemon.log.read_text().count("its JVM has died, perhaps out of memory") == 2
        # The next worker has replaced the first one.
        assert daemon.succeed(daemon.register(small), "compaction")["log_files"] > 0
    assert tables.snapshot(spark, huge) == before
    # The next attempt has enough memory.
    with Daemon(tmp_path / "service", **{**settings, "driver_memory": "2g"}) as daemon:
        assert daemon.succeed(large_one, "compaction")["log_files"] > 0
    assert tables.snapshot(spark, huge) == before
    assert left_behind(spark, huge) == []
