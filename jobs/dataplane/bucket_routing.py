"""Routes the rows of whole partitions to the buckets of a bucket index, by one shuffle of Spark.

Hudi's readers merge base files and logs, Hudi's own `BucketIdentifier` (1.2.0) computes the bucket of each row in the
JVM, and a task writes the rows of a bucket to one base file. The task computes the bucket once more, by
`jobs.format.bucket_hash`.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.dataplane.hudi_merge_job import merged_rows, written_by_tasks
from jobs.dataplane.latest_layout import latest_layout
from jobs.dataplane.rewrite import child_layout, conformed
from jobs.dataplane.split_writer import Source, SplitWriter
from jobs.errors import RefusedError
from jobs.format.meta_columns import PARTITION_PATH, RECORD_KEY
from jobs.hudi.records import deletes_in_logs
from jobs.problems.tables import ROWS_MISSING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from jobs.dataplane.parquet_layout import Layout
    from jobs.dataplane.split_writer import Rewrite
    from jobs.format.written_file import WrittenFile
    from jobs.hudi.records import FileSlice
    from jobs.hudi.table import HudiTable
    from jobs.storage.paths import Storage

# No column of a table has this name, because Avro allows no space.
_BUCKET = "groundskeeper bucket"
_IDENTIFIER = "org.apache.hudi.index.bucket.BucketIdentifier"
_BYTES_OF_TASK = 128 * 1024 * 1024
_FOOTERS_AT_ONCE = 16


def route_rows(table: HudiTable, work: Rewrite, slices: Sequence[FileSlice], num_buckets: int) -> list[WrittenFile]:
    """Writes the rows of these slices, which are all of their partitions, to one base file for each partition and
    bucket that has rows. A partition without rows gets an empty file. A written file names a slice of its partition as
    its source.

    Raises `RefusedError` if Hudi's readers return fewer rows than the slices of a partition must hold.
    """
    sources = _sources(slices, num_buckets)
    layout = latest_layout(table, work.codec)
    models = [source.model for source in sources.values() if source.model]
    bucket = F.reflect(
        F.lit(_IDENTIFIER),
        F.lit("getBucketId"),
        F.col(RECORD_KEY),
        F.lit(",".join(work.hash_fields)),
        F.lit(num_buckets),
    )
    merged = merged_rows(table, work.storage, sources, models).withColumn(_BUCKET, bucket.cast("int"))
    by_size = max(table.jvm.spark.sparkContext.defaultParallelism, sum(each.bytes for each in slices) // _BYTES_OF_TASK)
    routed = merged.repartition(min(by_size, len(sources) * num_buckets), PARTITION_PATH, _BUCKET)
    written = written_by_tasks(
        table,
        routed.sortWithinPartitions(PARTITION_PATH, _BUCKET),
        lambda rows, token: _write(work, sources, layout, token, rows),
    )
    _require_all_rows(table, work.storage, slices, written)
    seen = {file.partition for file in written}
    for partition, source in sources.items():
        if partition not in seen:
            written += SplitWriter(work, source, child_layout(work, layout, source), "0-0-1").close()
    return written


def _sources(slices: Sequence[FileSlice], num_buckets: int) -> dict[str, Source]:
    """Returns the source of bucket 0 of each partition. Its model is the newest base file of the partition, or else of
    the table."""
    newest: dict[str, FileSlice] = {}
    for item in sorted(slices, key=lambda each: each.base_name.rpartition("_")[2]):
        newest[item.partition] = item
    any_model = next((item.base_file for item in reversed(newest.values()) if item.base_file), None)
    return {
        partition: Source(
            partition, item.file_id, 0, num_buckets, (0,), base_file=None, model=item.base_file or any_model
        )
        for partition, item in newest.items()
    }


def _write(
    work: Rewrite, sources: dict[str, Source], layout: Layout, token: str, batches: Iterable[pa.RecordBatch]
) -> Iterator[WrittenFile]:
    """Writes one file for each run of rows of the same partition and bucket. Raises `RefusedError` if `bucket_hash`
    gives another bucket for a row."""
    current: tuple[str, int] | None = None
    with ExitStack() as stack:
        writer: SplitWriter | None = None
        for batch in batches:
            for key, rows in _runs(batch):
                if key != current:
                    if writer:
                        yield from writer.close()
                    partition, bucket = current = key
                    source = replace(sources[partition], bucket=bucket, residues=(bucket,))
                    writer = stack.enter_context(SplitWriter(work, source, child_layout(work, layout, source), token))
                if writer:
                    writer.add(conformed(rows, layout.schema))
        if writer:
            yield from writer.close()


def _runs(batch: pa.RecordBatch) -> Iterator[tuple[tuple[str, int], pa.RecordBatch]]:
    """Yields the rows of each partition and bucket, one after the other."""
    paths = batch.column(batch.schema.get_field_index(PARTITION_PATH)).dictionary_encode()
    codes = paths.indices.to_numpy(zero_copy_only=False)
    buckets = batch.column(batch.schema.get_field_index(_BUCKET)).to_numpy(zero_copy_only=False)
    changes = np.flatnonzero((np.diff(codes) != 0) | (np.diff(buckets) != 0)) + 1
    start = 0
    for end in [*changes.tolist(), batch.num_rows] if batch.num_rows else []:
        yield (paths.dictionary[codes[start]].as_py(), int(buckets[start])), batch.slice(start, end - start)
        start = end


def _require_all_rows(
    table: HudiTable, storage: Storage, slices: Sequence[FileSlice], written: Sequence[WrittenFile]
) -> None:
    """Raises `RefusedError` if fewer rows of a partition came than its base files have, minus the rows that logs
    delete."""
    commits, may_be_rows = table.commits(), table.records_operations

    def fewest(item: FileSlice) -> int:
        deletes = deletes_in_logs(item, commits, may_be_rows=may_be_rows) if item.log_files else 0
        if item.base_file is None or deletes is None:
            return 0
        with storage.read_parquet(item.base_file) as base:
            return int(base.metadata.num_rows) - deletes

    needed: Counter[str] = Counter()
    with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
        for item, rows in zip(slices, pool.map(fewest, slices), strict=True):
            needed[item.partition] += rows
    received: Counter[str] = Counter()
    for file in written:
        received[file.partition] += file.rows
    if short := [partition for partition in needed if received[partition] < needed[partition]]:
        first = short[0]
        raise RefusedError(
            [
                ROWS_MISSING.because(
                    f"{received[first]} rows of {first or 'the table'}: its base files have at least {needed[first]}."
                )
            ]
        )
