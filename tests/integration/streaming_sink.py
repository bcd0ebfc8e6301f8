"""A structured stream that upserts one micro-batch after the other, and the rows that its table must have afterwards.

Number n is version n of key n modulo `KEYS`, so each row follows from its `ts`.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

KEYS, PARTITIONS = 1500, 3
PER_FILE = 500
# The source is this number of files ahead, so that no test waits for the end of a long backlog.
_AHEAD = 3
_PATIENCE_SECONDS = 120


@contextmanager
def running(
    spark: SparkSession, folder: Path, base: Path | str, options: dict[str, str], *, batches: int = 2
) -> Iterator[StreamingQuery]:
    """Runs the stream until the end of the block, which begins after the first `batches`, and fails if the stream
    fails.

    The source is files in `folder`, so the stream can end after it has written all of them, and continue later.
    """
    source, stopped = folder / "source", threading.Event()
    source.mkdir(parents=True, exist_ok=True)

    def produce() -> None:
        number = len(list(source.iterdir()))
        while not stopped.wait(0.05):
            if number > committed(folder) + _AHEAD:
                continue
            values = pa.table({"value": range(number * PER_FILE, (number + 1) * PER_FILE)})
            unfinished = folder / f"{number:05}.parquet"
            pq.write_table(values, unfinished)
            unfinished.rename(source / unfinished.name)
            number += 1

    producer = threading.Thread(target=produce, daemon=True)
    producer.start()
    numbers = spark.readStream.schema("value long").option("maxFilesPerTrigger", 1).parquet(str(source))
    options = {**options, "hoodie.datasource.write.streaming.checkpoint.identifier": "numbers"}
    sink = _rows(numbers).writeStream.format("hudi").options(**options).outputMode("append")
    query = sink.option("checkpointLocation", str(folder / "checkpoints")).start(str(base))
    try:
        wait_for_batches(query, folder, batches)
        yield query
        stopped.set()
        producer.join()
        query.processAllAvailable()
    finally:
        stopped.set()
        query.stop()


def wait_for_batches(query: StreamingQuery, folder: Path, more: int) -> None:
    """Waits until this number of additional batches has been committed."""
    wanted, deadline = committed(folder) + more, time.monotonic() + _PATIENCE_SECONDS
    while committed(folder) < wanted:
        assert query.isActive, query.exception()
        assert time.monotonic() < deadline, query.lastProgress
        time.sleep(0.05)


def committed(folder: Path) -> int:
    """Returns the number of batches by Spark's checkpoints."""
    return max((int(path.name) + 1 for path in (folder / "checkpoints" / "commits").glob("[0-9]*")), default=0)


def _rows(values: DataFrame) -> DataFrame:
    """The same columns as `found` compares."""
    key = F.col("value") % KEYS
    return values.select(
        F.concat(F.lit("k"), key).alias("id"),
        F.col("value").alias("ts"),
        F.concat(F.lit("p"), key % PARTITIONS).alias("dt"),
        (F.col("value") * 2.5).alias("fare"),
        F.when(key % 5 != 0, F.concat(F.lit("näme 😀 "), F.col("value"))).alias("note"),
        F.expr(f"array(named_struct('a', value, 'b', concat('x', value % {KEYS})))").alias("items"),
        F.expr("cast(concat('bin', value) as binary)").alias("blob"),
    )


def differences(spark: SparkSession, base: Path | str) -> tuple[int, list[str]]:
    """Returns the number of rows, and the rows that are missing or differ in any column from the last version that the
    stream wrote."""
    columns = ["id", "ts", "dt", "fare", "note", "items", "blob"]
    found = spark.read.format("hudi").load(str(base)).select(*columns)
    last = found.agg(F.max("ts")).first()
    assert last
    numbers = spark.range(max(0, last[0] + 1 - KEYS), last[0] + 1).withColumnRenamed("id", "value")
    expected = _rows(numbers).select(*columns)
    wrong = found.exceptAll(expected).union(expected.exceptAll(found)).collect()
    return found.count(), [str(row) for row in wrong]
