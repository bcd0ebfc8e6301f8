"""Executes a compaction plan with Arrow on Spark: one task per file slice, and no shuffle."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark import TaskContext

from jobs.dataplane.bloom_filter import FilterKind
from jobs.dataplane.compacted_file import CompactedFile, Compaction, compact_slice
from jobs.dataplane.footer_entries import AVRO_SCHEMA
from jobs.dataplane.latest_layout import latest_layout
from jobs.dataplane.merge_failures import LeftToHudi
from jobs.dataplane.python_worker import reduce_task_overhead
from jobs.dataplane.spark_tasks import wait_for_tasks_on_error
from jobs.hudi.jvm import translated

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from jobs.contract import Problem
    from jobs.dataplane.slice_merge import MergeRules, SliceFiles
    from jobs.hudi.table import HudiTable
    from jobs.job_context import JobContext
    from jobs.storage.paths import Storage

CODEC = "hoodie.parquet.compression.codec"
_WITH_FILTER = "hoodie.parquet.bloom.filter.enabled"


def compaction_of(table: HudiTable, storage: Storage, instant: str, rules: MergeRules, codec: str | None) -> Compaction:
    """Returns what all tasks share: files as Hudi's own executor would write them with the options of our clients.

    Without `codec` and without the owner's option the codec of the old base files stays, while Hudi's executor would
    use its default (gzip).
    """
    options = table.declared.hudi_options
    codec = codec or options.get(CODEC, "").lower().replace("uncompressed", "none") or None
    layout = latest_layout(table, codec)
    keys = None if options.get(_WITH_FILTER, "true").lower() == "false" else FilterKind.default()
    # Hudi's writer of Spark's rows, which its executor uses, does not write it.
    footer = {key: value for key, value in (layout.schema.metadata or {}).items() if key != AVRO_SCHEMA}
    layout = replace(layout, schema=layout.schema.with_metadata(footer), keys=keys)
    return Compaction(storage, instant, rules, layout, codec)


def compact_slices(
    table: HudiTable, work: Compaction, slices: Sequence[SliceFiles], context: JobContext
) -> tuple[list[CompactedFile], list[Problem]]:
    """Compacts all slices, and returns the written files with the reasons why some slices were left to Hudi.

    `slices` come in the order in which they are begun. Their files exist, but only a commit that names them makes them
    count.
    """
    spark = table.jvm.spark.sparkContext
    bytes_read = spark.accumulator(0)
    context.watch_bytes(lambda: bytes_read.value)

    def task(part: Iterable[SliceFiles]) -> Iterator[CompactedFile | LeftToHudi]:
        reduce_task_overhead()
        for files in part:
            try:
                yield compact_slice(work, files, _token())
            except Exception as error:
                yield LeftToHudi.after(files, error)
            paths = [files.base or "", *files.logs]
            bytes_read.add(work.storage.size([f"{work.storage.root}/{path}" for path in paths if path]))

    with translated("merging the file slices"), wait_for_tasks_on_error(table):
        found = spark.parallelize(slices, len(slices)).mapPartitions(task).collect()
    written = [each for each in found if isinstance(each, CompactedFile)]
    left = [each.problem for each in found if isinstance(each, LeftToHudi)]
    return written, list(dict.fromkeys(left))


def _token() -> str:
    """Returns Hudi's write token `<task>-<stage>-<attempt>`, another one for each attempt of a task (`FSUtils`)."""
    task = TaskContext.get()
    return f"{task.partitionId()}-{task.stageId()}-{task.taskAttemptId()}" if task else "0-0-0"
