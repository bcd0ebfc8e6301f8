"""The demo's writer: a typical Spark job. The job upserts without pause and has no code for Groundskeeper.

The writer keeps its old number of buckets to the end. `OPTIONS` has what a writer needs while table services run:
optimistic concurrency control, the table's lock, and no inline services.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the usual name in PySpark

from jobs.hudi.session import start_session
from service.demo import ledger
from service.demo.ledger import PARTITIONS, Batch
from service.runtime import settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NUM_BUCKETS = 4
PAUSE_SECONDS = 8.0

OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "dt",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": str(NUM_BUCKETS),
    "hoodie.bucket.index.hash.field": "id",
    # A writer beside table services must detect conflicts, write a batch again after a conflict, leave failed writes to
    # the cleaner, and share the lock.
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.write.num.retries.on.conflict.failures": "3",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "hoodie.write.lock.client.num_retries": "600",
    "hoodie.write.lock.client.wait_time_ms_between_retry": "100",
    # Groundskeeper runs the services.
    "hoodie.compact.inline": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    # Two cores are enough for the demo with these options.
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.markers.type": "DIRECT",
    "hoodie.upsert.shuffle.parallelism": "2",
}


def rows(spark: SparkSession, batch: Batch) -> DataFrame:
    """Returns the rows of a batch. `ts`, the ordering field of Hudi, is the batch's number."""
    return spark.range(batch.ids.start, batch.ids.stop, batch.ids.step, 1).select(
        F.concat(F.lit("k"), F.col("id")).alias("id"),
        F.lit(batch.number).cast("long").alias("ts"),
        F.concat(F.lit("2026-01-0"), (F.col("id") % PARTITIONS + 1).cast("string")).alias("dt"),
        (F.col("id") * 2.5 + batch.number).alias("fare"),
        ((F.col("id") * 7919) % 1000).cast("int").alias("city"),
        F.concat(F.lit("rider-"), F.sha1(F.col("id").cast("string"))).alias("rider"),
    )


def write_until(stop: Path, base_path: Path, ledger_path: Path, count: int, callback: str) -> None:
    spark = start_session(
        master="local[1,4]",
        app_name="a writer",
        driver_memory="1g",
        jars=settings.load().jars,
        conf={"spark.sql.shuffle.partitions": "2"},
    )
    callback_options = {"hoodie.write.commit.callback.on": "true", "hoodie.write.commit.callback.http.url": callback}
    options = OPTIONS | callback_options
    batch = Batch(number=0, below=count)
    while not stop.exists():
        try:
            rows(spark, batch).write.format("hudi").options(**options).mode("append").save(str(base_path))
            ledger.append(ledger_path, batch)
            batch = batch.next()
        except Exception as error:
            # A real job would fail here, and somebody would run it again. The demo counts the failure and writes the
            # same batch again.
            first_line = (str(error).splitlines() or [""])[0]
            ledger.append(ledger_path, replace(batch, error=f"{type(error).__name__}: {first_line}"[:300]))
        time.sleep(PAUSE_SECONDS)
    spark.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--base", "--ledger", "--stop"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--callback", required=True)
    given = parser.parse_args()
    write_until(given.stop, given.base, given.ledger, given.rows, given.callback)
