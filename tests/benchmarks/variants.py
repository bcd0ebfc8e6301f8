"""The compared ways to give a table more buckets, and the minimum cost of any rewrite."""

from __future__ import annotations

import os
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.contract import BucketIndex, JobKind, Outcome, Table, WorkOrder
from jobs.dataplane import parquet_layout
from jobs.hudi.executors import Executors
from jobs.hudi.jvm import Jvm
from jobs.hudi.session import start_session
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.kinds.registry import typed
from jobs.worker.attempt import RUN
from tests.benchmarks.trips import Shape, table_options

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

INDEX_FIELDS = ("id",)


class Steps(JobContext):
    """Records when each step of a job began, to show where its time went."""

    def __init__(self) -> None:
        super().__init__()
        self.began: list[tuple[str, float]] = []

    def step(self, name: str, *, bytes_total: int = 0) -> None:
        super().step(name, bytes_total=bytes_total)
        self.began.append((str(name), time.monotonic()))

    def seconds(self) -> dict[str, float]:
        """Returns the seconds of each step; the last one is still running."""
        ends = [*(at for _, at in self.began[1:]), time.monotonic()]
        return {name: round(end - at, 3) for (name, at), end in zip(self.began, ends, strict=True)}


def session() -> SparkSession:
    """Starts a session as a worker does, so that no measured job starts the first of Spark's Python workers."""
    spark = start_session(master=f"local[{os.cpu_count()},4]", driver_memory="4g")
    Executors(spark.sparkContext).prove()
    return spark


def ours(spark: SparkSession, base: Path, shape: Shape, factor: int, codec: str) -> dict[str, float]:
    """Runs Groundskeeper's bucket expansion as a worker does; returns the seconds of its steps."""
    index = BucketIndex(shape.buckets, INDEX_FIELDS)
    declared = Table(str(base), "trips", index, writers_hudi_version="1.2.0", writers_stopped=True)
    # A requested codec may be written at another level than the table's own.
    params = {"factor": factor} | ({} if codec == shape.codec else {"codec": codec})
    plan = WorkOrder("benchmark", 1, JobKind.BUCKET_EXPANSION, declared, params)
    steps = Steps()
    steps.step("opening")
    result = RUN[plan.kind](HudiTable(Jvm(spark), declared), typed(plan), steps)
    if result.outcome is not Outcome.SUCCEEDED:
        raise RuntimeError(f"the expansion ended as {result.outcome}: {result.error}")
    return steps.seconds()


def hudi_rescale(spark: SparkSession, base: Path, shape: Shape, factor: int, codec: str) -> dict[str, float]:
    """Runs Hudi's own procedure (`PartitionBucketIndexManager` 1.2), which reads, shuffles and writes all rows."""
    options = {**table_options(base, shape), "hoodie.parquet.compression.codec": codec}
    given = ",".join(f"{key}={options[key]}" for key in sorted(options) if _matters_to_a_rewrite(key))
    spark.sql(f"create table if not exists rescaled using hudi location '{base}'")
    try:
        done = spark.sql(
            f"call partition_bucket_index_manager(table => 'rescaled', overwrite => '.*,{shape.buckets * factor}', "
            f"rule => 'regex', bucket_number => {shape.buckets}, dry_run => false, options => '{given}')"
        ).collect()
    finally:
        spark.sql("drop table rescaled")
    if done[0][0] != "SUCCESS":
        raise RuntimeError(f"Hudi's rescale ended as {done}")
    return {}


def overwrite(spark: SparkSession, base: Path, shape: Shape, factor: int, codec: str) -> dict[str, float]:
    """Rewrites the table by Spark: `insert_overwrite_table` with the new number of buckets in the writer's options."""
    options = table_options(base, shape) | {
        "hoodie.datasource.write.operation": "insert_overwrite_table",
        "hoodie.bucket.index.num.buckets": str(shape.buckets * factor),
        "hoodie.parquet.compression.codec": codec,
    }
    frame = spark.read.format("hudi").load(str(base))
    data = frame.select(*(name for name in frame.columns if not name.startswith("_hoodie_")))
    data.write.format("hudi").options(**options).mode("append").save(str(base))
    return {}


class Floor:
    """Reads every base file with pyarrow and writes its rows to one new file, in `processes` warm processes.

    The codec, its level and the columns that use a dictionary are those of our expansion. The variant routes, commits
    and checks nothing, so no rewrite with pyarrow can cost less than about this.
    """

    def __init__(self, processes: int) -> None:
        self._pool = ProcessPoolExecutor(processes, mp_context=get_context("spawn"))
        list(self._pool.map(_warm_up, range(processes)))

    def run(self, files: list[Path], target: Path, codec: str | None) -> None:
        """Copies these base files to `target`. `codec` is None for their own."""
        target.mkdir(parents=True, exist_ok=True)
        targets = [target / f"{number}.parquet" for number in range(len(files))]
        list(self._pool.map(_copy, files, targets, [codec] * len(files)))

    def close(self) -> None:
        self._pool.shutdown()


def _matters_to_a_rewrite(option: str) -> bool:
    """Returns whether to pass this option to the procedure, which knows the table's own options, and splits its
    argument at commas."""
    return option.startswith(("hoodie.metadata.", "hoodie.parquet.", "hoodie.clean.auto", "hoodie.bulkinsert."))


def _warm_up(_: int) -> None:
    pa.set_cpu_count(1)
    time.sleep(1)  # The pause lets every process of the pool get a task.


def _copy(source: Path, target: Path, codec: str | None) -> None:
    with pq.ParquetFile(source) as reader:
        layout = parquet_layout.of_file(reader, codec)
        with pq.ParquetWriter(target, layout.schema, **layout.options()) as writer:
            writer.write_table(reader.read(use_threads=False).replace_schema_metadata(layout.schema.metadata))
