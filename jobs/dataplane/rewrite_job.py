"""Runs the Arrow data plane on Spark: one task per file slice, and no shuffle."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, replace
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql.functions import col

from jobs.contract import Problem
from jobs.dataplane import parquet_layout
from jobs.dataplane.python_worker import reduce_task_overhead
from jobs.dataplane.rewrite import Routes, child_layout, rewrite_base_file, rewrite_merged_rows
from jobs.dataplane.split_writer import Rewrite, Source, SplitWriter, misplaced
from jobs.errors import RefusedError
from jobs.format.meta_columns import PARTITION_PATH
from jobs.format.written_file import WrittenFile
from jobs.hudi import rows
from jobs.hudi.jvm import translated
from jobs.hudi.records import deletes_in_logs
from jobs.storage.paths import bytes_per_row, rows_that_fit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark import SparkContext
    from pyspark.sql import DataFrame

    from jobs.dataplane.parquet_layout import Layout
    from jobs.format.bucket_rules import BucketChange
    from jobs.hudi.records import FileSlice
    from jobs.hudi.table import HudiTable
    from jobs.job_context import JobContext
    from jobs.storage.paths import Storage

_ROWS_OF_WRITTEN_FILES = (
    "partition string, source string, file_id string, file_name string, rows bigint, bytes bigint, "
    "key_digest string, "
    "refusal struct<type: string, title: string, detail: string, hint: string, retriable: boolean>"
)

# Spark kills the Python process of a cancelled task after 2 s (`spark.python.task.killTimeout`).
TASK_END_SECONDS = 30.0
# Number of base files probed for the row width, and the batch size in rows when there is none to probe.
_PROBED_MODELS, _ROWS_OF_UNKNOWN_WIDTH = 8, 4096

_FOOTERS_AT_ONCE, _MOST_REASONS = 16, 5

# One task per slice: no base file is so large that Spark would split it, and the cost of opening a file, as large as
# that, keeps it from packing several into a task.
_ONE_TASK_PER_SLICE = {"spark.sql.files.maxPartitionBytes": "1t", "spark.sql.files.openCostInBytes": "1t"}


def rewrite_slices(
    table: HudiTable,
    work: Rewrite,
    chosen: Sequence[FileSlice],
    everything: Sequence[FileSlice],
    buckets: BucketChange,
    *,
    context: JobContext,
    all_by_hudi: bool = False,
) -> list[WrittenFile]:
    """Rewrites the `chosen` slices: those without logs with pyarrow alone, the others from the rows that Hudi merges.

    `everything` holds all slices of the table. With `all_by_hudi`, Hudi reads also those without logs, and all files
    have the table's latest schema.
    """
    sources = [source_of(item, buckets, by_hudi=all_by_hudi or bool(item.log_files)) for item in chosen]
    plain = [source for source in sources if source.base_file]
    merged = {(source.partition, source.bucket): source for source in _with_models(sources)}
    written = rewrite_base_files(table, work, plain, context) if plain else []
    if merged:
        known = frozenset((item.partition, item.bucket) for item in everything)
        old = {partition: buckets.old.buckets_of(partition) for partition, _ in merged}
        written += _rewrite_merged(table, work, Routes(merged, known, old, work.leaves_others_out))
        if not work.leaves_others_out:
            by_hudi = [item for item, source in zip(chosen, sources, strict=True) if not source.base_file]
            _require_all_rows(table, work.storage, by_hudi, written)
    return written


def source_of(item: FileSlice, buckets: BucketChange, *, by_hudi: bool) -> Source:
    contracts = buckets.contracts(item.partition)
    return Source(
        item.partition,
        item.file_id,
        item.bucket,
        buckets.finer(item.partition),
        buckets.residues(item.partition, item.bucket),
        base_file=None if by_hudi else item.base_file,
        model=item.base_file,
        contracted_to=buckets.new.buckets_of(item.partition) if contracts else None,
    )


def rewrite_base_files(
    table: HudiTable, work: Rewrite, sources: Sequence[Source], context: JobContext
) -> list[WrittenFile]:
    """Rewrites base files with pyarrow alone, one task per source."""
    spark = table.jvm.spark.sparkContext
    bytes_read = spark.accumulator(0)
    context.watch_bytes(lambda: bytes_read.value)

    def task(index: int, part: Iterable[Source]) -> Iterator[WrittenFile | Problem]:
        reduce_task_overhead()
        for source in part:
            try:
                yield from rewrite_base_file(work, source, _token(index), bytes_read.add)
            except RefusedError as error:
                yield error.problem()

    with translated("rewriting the base files"), wait_for_tasks_on_error(table):
        return _written(spark.parallelize(sources, len(sources)).mapPartitionsWithIndex(task).collect())


def _rewrite_merged(table: HudiTable, work: Rewrite, routes: Routes) -> list[WrittenFile]:
    layout = latest_layout(table, work.codec)
    schema = _arrow_schema()

    def task(merged: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        reduce_task_overhead()
        task_context = TaskContext.get()
        token = _token(task_context.partitionId() if task_context else 0)
        found: list[dict[str, Any]] = []
        try:
            found += (asdict(item) for item in rewrite_merged_rows(work, routes, layout, token, merged))
        except RefusedError as error:
            found.append({"refusal": error.problem().to_json()})
        yield pa.RecordBatch.from_pylist(found, schema=schema)

    with translated("rewriting the merged slices"), wait_for_tasks_on_error(table):
        collected = _merged_rows(table, work.storage, routes).mapInArrow(task, _ROWS_OF_WRITTEN_FILES).collect()
    written = _written(
        Problem(**row.refusal.asDict())
        if row.refusal
        else WrittenFile(row.partition, row.source, row.file_id, row.file_name, row.rows, row.bytes, row.key_digest)
        for row in collected
    )
    _require_one_task_per_slice(written)
    # No task receives rows of a slice whose rows are all deleted, but its children must exist all the same.
    seen = {(item.partition, item.source) for item in written}
    for source in routes.sources.values():
        if (source.partition, source.file_id) not in seen:
            written += SplitWriter(work, source, child_layout(work, layout, source), "0-0-1").close()
    return written


def _merged_rows(table: HudiTable, storage: Storage, routes: Routes) -> DataFrame:
    """Returns the table's rows as a Hudi reader sees them (base files and logs merged), one Spark task per slice."""
    spark = table.jvm.spark.newSession()
    for key, value in _ONE_TASK_PER_SLICE.items():
        spark.conf.set(key, value)
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(_rows_of_batch(storage, routes)))
    return rows.current(table, spark=spark).where(col(PARTITION_PATH).isin(sorted(routes.old)))


def _require_all_rows(
    table: HudiTable, storage: Storage, merged: Sequence[FileSlice], written: Sequence[WrittenFile]
) -> None:
    """Raises `RefusedError` if a merged slice came with fewer rows than it must hold.

    It holds at least the rows of its base file, less those that logs delete. Hudi's readers have left out whole slices
    because of wrong statistics, and the written files replace the slice.
    """
    # Read after the rows were: they may lack what a writer has deleted in the meantime.
    commits = table.commits()
    came: Counter[tuple[str, str]] = Counter()
    for each in written:
        came[(each.partition, each.source)] += each.rows

    def shortfall(item: FileSlice) -> Problem | None:
        deletes = deletes_in_logs(item, commits)
        if item.base_file is None or (deletes is None and came[item.key]):
            return None
        with storage.read_parquet(item.base_file) as base:
            in_base = int(base.metadata.num_rows)
        if came[item.key] >= in_base - (deletes or 0):
            return None
        return Problem(
            "rows-missing",
            "Hudi returned fewer rows of a file slice than it holds",
            f"{came[item.key]} rows of {item.partition or 'the table'}, {item.file_id}: its base file has {in_base},"
            f" and its logs delete {'an unknown number' if deletes is None else deletes}.",
            "Nothing was changed. Run a compaction, which leaves no logs, and submit the job again.",
        )

    with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
        if problems := [problem for problem in pool.map(shortfall, merged) if problem]:
            raise RefusedError(problems[:_MOST_REASONS])


def _with_models(sources: Sequence[Source]) -> Iterator[Source]:
    """Yields the slices with logs.

    A slice of logs alone gets the newest base file of the others, if any, as its model.
    """
    models = [name for source in sources if (name := source.base_file or source.model)]
    newest = max(models, key=lambda name: name.rsplit("_", 1)[-1], default=None)
    for source in sources:
        if not source.base_file:
            yield replace(source, model=source.model or newest)


def _rows_of_batch(storage: Storage, routes: Routes) -> int:
    """Returns the rows per batch from the JVM to Python, by the widest rows of some models.

    Without a model the batches are small.
    """
    known = []
    models = list(dict.fromkeys(source.model for source in routes.sources.values() if source.model))
    for name in models[:_PROBED_MODELS]:
        with storage.read_parquet(name) as reader:
            if reader.metadata.num_row_groups:
                known.append(bytes_per_row(reader))
    return rows_that_fit(max(known)) if known else _ROWS_OF_UNKNOWN_WIDTH


@contextmanager
def wait_for_tasks_on_error(table: HudiTable) -> Iterator[None]:
    """Waits for the running tasks of a Spark job that failed or was cancelled.

    Spark kills them only a few seconds later. Files that they write until then would appear after the rollback, which
    would not find them; and on S3 an upload that began earlier becomes visible when it ends.
    """
    try:
        yield
    except BaseException:
        spark = table.jvm.spark.sparkContext
        tracker = spark.statusTracker()
        deadline = time.monotonic() + TASK_END_SECONDS
        while time.monotonic() < deadline:
            jobs = [tracker.getJobInfo(number) for number in _jobs_of_this_thread(spark)]
            stages = [tracker.getStageInfo(number) for job in jobs if job for number in job.stageIds]
            if not any(stage and stage.numActiveTasks for stage in stages):
                break
            time.sleep(0.1)
        raise


def _jobs_of_this_thread(spark: SparkContext) -> list[int]:
    tracker: Any = spark.statusTracker()
    return list(tracker.getJobIdsForGroup(spark.getLocalProperty("spark.jobGroup.id")))


def latest_layout(table: HudiTable, codec: str | None) -> Layout:
    """Returns the layout of base files with the table's latest schema, converted from Avro by Hudi's own converter.

    Uses an empty file, since it is the only form of a Parquet schema that both sides can read.
    """
    jvm = table.jvm
    with TemporaryDirectory() as folder, translated("converting the table's schema"):
        path = f"{folder}/schema.parquet"
        avro = jvm.hudi.common.table.TableSchemaResolver(table.meta).getTableSchema(True)
        converters = jvm.java.org.apache.parquet.avro.HoodieAvroParquetSchemaConverter
        # Lists of three levels, which Arrow writes in any case: in the old lists of two levels, no element can be null.
        conf = jvm.java.org.apache.hadoop.conf.Configuration(jvm.hadoop_conf)
        conf.setBoolean("parquet.avro.write-old-list-structure", False)
        message = converters.getAvroSchemaConverter(conf).convert(avro)
        target = jvm.java.org.apache.hadoop.fs.Path(f"file:{path}")
        writer = jvm.java.org.apache.parquet.hadoop.ParquetFileWriter(jvm.hadoop_conf, message, target)
        writer.start()
        writer.end(jvm.map({}))
        with pq.ParquetFile(path) as empty:
            layout = parquet_layout.of_schema(empty, str(avro.toString()), jvm.spark.version, codec)
            parquet_layout.require_reproducible(layout, empty.schema, "the table's schema")
            return layout


def _require_one_task_per_slice(written: Iterable[WrittenFile]) -> None:
    """Raises `RefusedError` if two tasks wrote the same bucket.

    One of them found rows of it in another bucket's slice.
    """
    seen: set[tuple[str, str]] = set()
    for item in written:
        key = (item.partition, item.file_id[:8])
        if key in seen:
            raise RefusedError([misplaced(item.partition, int(item.file_id[:8]))])
        seen.add(key)


def _written(found: Iterable[WrittenFile | Problem]) -> list[WrittenFile]:
    items = list(found)
    written = [item for item in items if isinstance(item, WrittenFile)]
    refusals = [item for item in items if isinstance(item, Problem)]
    if refusals:
        raise RefusedError(list(dict.fromkeys(refusals)))
    return written


def _token(task: int) -> str:
    """Returns Hudi's write token `<task>-<stage>-<attempt>`.

    A retried task may repeat it, since file ids are unique.
    """
    return f"{task}-0-0"


def _arrow_schema() -> pa.Schema:
    """Returns the Arrow schema of `_ROWS_OF_WRITTEN_FILES`."""
    columns = [(name, pa.string()) for name in ("partition", "source", "file_id", "file_name")]
    columns += [(name, pa.int64()) for name in ("rows", "bytes")]
    columns += [("key_digest", pa.string())]
    refusal = [(name, pa.string()) for name in ("type", "title", "detail", "hint")] + [("retriable", pa.bool_())]
    return pa.schema([*columns, ("refusal", pa.struct(refusal))])
