"""Rewrites file slices with logs from the rows that Hudi's readers merge: one Spark task per slice, and no shuffle."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext

from jobs.contract import Problem
from jobs.dataplane import partial_rows
from jobs.dataplane.arrow_merge_job import files_of
from jobs.dataplane.latest_layout import latest_layout
from jobs.dataplane.python_worker import reduce_task_overhead
from jobs.dataplane.rewrite import Routes, child_layout, rewrite_merged_rows
from jobs.dataplane.spark_tasks import token, wait_for_tasks_on_error, written_files
from jobs.dataplane.split_writer import SplitWriter, misplaced
from jobs.errors import RefusedError
from jobs.format.table_version import WITH_COMPLETION_TIMES
from jobs.format.written_file import WrittenFile
from jobs.hudi import rows
from jobs.hudi.jvm import translated
from jobs.hudi.records import deletes_in_logs
from jobs.problems.tables import ROWS_MISSING
from jobs.storage.paths import bytes_per_row, rows_that_fit

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from pyspark.sql import DataFrame

    from jobs.dataplane.split_writer import Rewrite, Source
    from jobs.format.bucket_rules import BucketChange
    from jobs.hudi.records import FileSlice
    from jobs.hudi.table import HudiTable
    from jobs.storage.paths import Storage

_ROWS_OF_WRITTEN_FILES = (
    "partition string, source string, file_id string, file_name string, rows bigint, bytes bigint, "
    "key_digest string, "
    "refusal struct<type: string, title: string, detail: string, hint: string, retriable: boolean>"
)

# The number of base files that are probed for the width of rows, and the rows per batch if there is no base file.
_PROBED_MODELS, _ROWS_OF_UNKNOWN_WIDTH = 8, 4096

_FOOTERS_AT_ONCE, _MOST_REASONS = 16, 5

# Each slice gets one task by these options: Spark does not split a base file below this size, and because it assumes
# such a high cost of opening a file, it does not pack several files into a task.
_ONE_TASK_PER_SLICE = {"spark.sql.files.maxPartitionBytes": "1t", "spark.sql.files.openCostInBytes": "1t"}


def rewrite_by_hudi(
    table: HudiTable,
    work: Rewrite,
    slices: Sequence[tuple[FileSlice, Source]],
    everything: Sequence[FileSlice],
    buckets: BucketChange,
) -> list[WrittenFile]:
    """Rewrites these slices. `everything` holds all slices of the table.

    Raises `RefusedError` if Hudi's readers return fewer rows than a slice must hold, or rows of another bucket, and
    before Hudi reads if the logs have a part of a row that no file has as a whole.
    """
    if table.version >= WITH_COMPLETION_TIMES:
        partial_rows.require_whole(work.storage, [files_of(item) for item, _ in slices if item.log_files])
    sources = {(source.partition, source.bucket): source for _, source in slices}
    known = frozenset((item.partition, item.bucket) for item in everything)
    old = {partition: buckets.old.buckets_of(partition) for partition, _ in sources}
    written = _rewrite(table, work, Routes(sources, known, old, by_file=work.leaves_out is not None))
    if work.leaves_out is None:
        _require_all_rows(table, work.storage, [item for item, _ in slices], written)
    return written


def _rewrite(table: HudiTable, work: Rewrite, routes: Routes) -> list[WrittenFile]:
    layout = latest_layout(table, work.codec)
    models = [source.model for source in routes.sources.values() if source.model]
    written = written_by_tasks(
        table,
        merged_rows(table, work.storage, routes.old, models),
        lambda merged, own: rewrite_merged_rows(work, routes, layout, own, merged),
    )
    _require_one_task_per_slice(written)
    # No task receives rows of a slice whose rows are all deleted, but its new files must exist nevertheless.
    seen = {(item.partition, item.source) for item in written}
    for source in routes.sources.values():
        if (source.partition, source.file_id) not in seen:
            written += SplitWriter(work, source, child_layout(work, layout, source), "0-0-1").close()
    return written


def written_by_tasks(
    table: HudiTable, rows_: DataFrame, write: Callable[[Iterable[pa.RecordBatch], str], Iterable[WrittenFile]]
) -> list[WrittenFile]:
    """Returns the files that `write` makes in Spark's tasks. `write` gets the rows of one task and Hudi's write token.
    Raises `RefusedError` if a task does."""
    schema = _arrow_schema()

    def task(merged: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        reduce_task_overhead()
        task_context = TaskContext.get()
        own = token(task_context.partitionId() if task_context else 0)
        found: list[dict[str, Any]] = []
        try:
            found += (asdict(item) for item in write(merged, own))
        except RefusedError as error:
            found.append({"refusal": error.problem().to_json()})
        yield pa.RecordBatch.from_pylist(found, schema=schema)

    with translated("rewriting the merged slices"), wait_for_tasks_on_error(table):
        collected = rows_.mapInArrow(task, _ROWS_OF_WRITTEN_FILES).collect()
    return written_files(
        Problem(**row.refusal.asDict())
        if row.refusal
        else WrittenFile(row.partition, row.source, row.file_id, row.file_name, row.rows, row.bytes, row.key_digest)
        for row in collected
    )


def merged_rows(table: HudiTable, storage: Storage, partitions: Collection[str], models: Sequence[str]) -> DataFrame:
    """Returns the rows of these partitions as a Hudi reader sees them (base files and logs merged), one Spark task per
    slice. `models` are base files whose rows are about as wide."""
    spark = table.jvm.spark.newSession()
    for key, value in _ONE_TASK_PER_SLICE.items():
        spark.conf.set(key, value)
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(_rows_of_batch(storage, models)))
    return rows.of_partitions(table, partitions, rows.current(table, all_columns=True, spark=spark))


def _require_all_rows(
    table: HudiTable, storage: Storage, merged: Sequence[FileSlice], written: Sequence[WrittenFile]
) -> None:
    """Raises `RefusedError` if a merged slice came with fewer rows than it must hold.

    A slice holds at least the rows of its base file, minus the rows that logs delete. Hudi's readers have left out
    whole slices because of wrong statistics, and the written files replace the slice.
    """
    # The deletes are read after the rows, because a writer may have deleted rows before these were read.
    commits, may_be_rows = table.commits(), table.records_operations
    received: Counter[tuple[str, str]] = Counter()
    for each in written:
        received[(each.partition, each.source)] += each.rows

    def shortfall(item: FileSlice) -> Problem | None:
        deletes = deletes_in_logs(item, commits, may_be_rows=may_be_rows)
        if item.base_file is None or (deletes is None and received[item.key]):
            return None
        with storage.read_parquet(item.base_file) as base:
            in_base = int(base.metadata.num_rows)
        if received[item.key] >= in_base - (deletes or 0):
            return None
        return ROWS_MISSING.because(
            f"{received[item.key]} rows of {item.partition or 'the table'}, {item.file_id}: its base file has"
            f" {in_base}, and its logs delete {'an unknown number' if deletes is None else deletes}."
        )

    with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
        if problems := [problem for problem in pool.map(shortfall, merged) if problem]:
            raise RefusedError(problems[:_MOST_REASONS])


def _rows_of_batch(storage: Storage, models: Sequence[str]) -> int:
    """Returns the number of rows per batch from the JVM to Python, computed from the widest rows of some base files.
    Without a base file the batches are small.
    """
    known = []
    for name in list(dict.fromkeys(models))[:_PROBED_MODELS]:
        with storage.read_parquet(name) as reader:
            if reader.metadata.num_row_groups:
                known.append(bytes_per_row(reader))
    return rows_that_fit(max(known)) if known else _ROWS_OF_UNKNOWN_WIDTH


def _require_one_task_per_slice(written: Iterable[WrittenFile]) -> None:
    """Raises `RefusedError` if two tasks wrote the same bucket.

    One of the two tasks found rows of that bucket in another bucket's slice.
    """
    seen: set[tuple[str, str]] = set()
    for item in written:
        key = (item.partition, item.file_id[:8])
        if key in seen:
            raise RefusedError([misplaced(item.partition, int(item.file_id[:8]))])
        seen.add(key)


def _arrow_schema() -> pa.Schema:
    """Returns the Arrow schema of `_ROWS_OF_WRITTEN_FILES`."""
    columns = [(name, pa.string()) for name in ("partition", "source", "file_id", "file_name")]
    columns += [(name, pa.int64()) for name in ("rows", "bytes")]
    columns += [("key_digest", pa.string())]
    refusal = [(name, pa.string()) for name in ("type", "title", "detail", "hint")] + [("retriable", pa.bool_())]
    return pa.schema([*columns, ("refusal", pa.struct(refusal))])
