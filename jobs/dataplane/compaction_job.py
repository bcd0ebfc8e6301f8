"""Executes a compaction plan with Arrow on Spark: one task per file slice, and no shuffle."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark import TaskContext

from jobs.contract import Problem
from jobs.dataplane.bloom_filter import FilterKind
from jobs.dataplane.compacted_file import CompactedFile, Compaction, compact_slice
from jobs.dataplane.parquet_layout import SPARK_VERSION
from jobs.dataplane.python_worker import reduce_task_overhead
from jobs.dataplane.rewrite_job import latest_layout, wait_for_tasks_on_error
from jobs.errors import JobError
from jobs.hudi.jvm import translated

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from jobs.dataplane.slice_merge import MergeRules, SliceFiles
    from jobs.hudi.table import HudiTable
    from jobs.job_context import JobContext
    from jobs.storage.paths import Storage

logger = logging.getLogger(__name__)

CODEC = "hoodie.parquet.compression.codec"
_WITH_FILTER = "hoodie.parquet.bloom.filter.enabled"


@dataclass(frozen=True)
class _Left:
    """A slice that Hudi has to merge."""

    problem: Problem


def compaction_of(table: HudiTable, storage: Storage, instant: str, rules: MergeRules, codec: str | None) -> Compaction:
    """Returns what all tasks share: files as Hudi's own executor would write them with the options of our clients.

    Without `codec` and without the owner's option the codec of the old base files stays, while Hudi's executor would
    use its default (gzip).
    """
    options = table.declared.hudi_options
    codec = codec or options.get(CODEC, "").lower().replace("uncompressed", "none") or None
    layout = latest_layout(table, codec)
    keys = None if options.get(_WITH_FILTER, "true").lower() == "false" else FilterKind.default()
    footer = {SPARK_VERSION: (layout.schema.metadata or {})[SPARK_VERSION]}
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

    def task(part: Iterable[SliceFiles]) -> Iterator[CompactedFile | _Left]:
        reduce_task_overhead()
        for files in part:
            try:
                yield compact_slice(work, files, _token())
            except JobError as error:
                yield _Left(replace(error.problem(), detail=f"{_where(files)}: {error.detail}"))
            except Exception as error:
                # Whatever it is, Hudi's executor can still do it; and the slice must not be lost sight of.
                logger.exception("%s was not merged", _where(files))
                yield _Left(failure(f"{_where(files)}: {type(error).__name__}: {str(error)[:200]}"))
            paths = [files.base or "", *files.logs]
            bytes_read.add(work.storage.size([f"{work.storage.root}/{path}" for path in paths if path]))

    with translated("merging the file slices"), wait_for_tasks_on_error(table):
        found = spark.parallelize(slices, len(slices)).mapPartitions(task).collect()
    written = [each for each in found if isinstance(each, CompactedFile)]
    left = [each.problem for each in found if isinstance(each, _Left)]
    return written, list(dict.fromkeys(left))


def failure(detail: str) -> Problem:
    """Returns why Hudi has to execute a plan that could not be executed here."""
    return Problem("arrow-failed", "Merging by Arrow has failed", detail, "The log of the worker has the details.")


def _where(files: SliceFiles) -> str:
    return f"partition '{files.partition_path}', file group {files.file_id}"


def _token() -> str:
    """Returns Hudi's write token `<task>-<stage>-<attempt>`, another one for each attempt of a task (`FSUtils`)."""
    task = TaskContext.get()
    return f"{task.partitionId()}-{task.stageId()}-{task.taskAttemptId()}" if task else "0-0-0"
