"""Runs tasks of the Arrow data plane, on Spark or in processes beside the driver, and returns their results."""

from __future__ import annotations

import logging
import secrets
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark import TaskContext

from jobs.contract import Problem
from jobs.dataplane.driver_processes import MOST_BYTES, MOST_PIECES, ProcessDiedError, run_beside_driver
from jobs.dataplane.python_worker import reduce_task_overhead
from jobs.errors import RefusedError
from jobs.format.written_file import WrittenFile
from jobs.hudi.jvm import translated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark import SparkContext

    from jobs.hudi.table import HudiTable
    from jobs.job_context import JobContext

logger = logging.getLogger(__name__)

Found = TypeVar("Found")
# The arguments of a task, and the bytes that it reads.
Piece = tuple[tuple[Any, ...], int]

# Spark kills the Python process of a cancelled task after 2 s (`spark.python.task.killTimeout`).
TASK_END_SECONDS = 30.0


def run_tasks(
    table: HudiTable,
    what: str,
    function: Callable[..., Iterable[Found]],
    pieces: Sequence[Piece],
    context: JobContext,
    *,
    of_task: int = 1,
    share: float = 1.0,
) -> list[Found]:
    """Calls the function for the arguments of each piece, and returns all that it yields, in the order of the pieces.

    The function's last argument is Hudi's write token `<task>-<stage>-<attempt>`, different for each attempt at a task.
    The stage is a random number for each call. Otherwise a worker that was frozen, and goes on, could write over a file
    that the next attempt has committed for the same plan. Each piece is a task; if there are more pieces than cores,
    `of_task` of them make one task. A few small pieces run in processes beside the driver; `share` is the part of their
    bytes that the function reads. `what` names the step in errors. Raises HudiError for any exception of the function.
    """
    if not pieces:
        return []
    sizes = [size for _, size in pieces]
    stage = secrets.randbelow(1 << 30)
    if len(pieces) <= MOST_PIECES and share * sum(sizes) <= MOST_BYTES:
        done: list[int] = []
        context.watch_bytes(lambda: sum(done))
        given = [(function, *arguments, f"{number}-{stage}-0") for number, (arguments, _) in enumerate(pieces)]
        try:
            found = run_beside_driver(_listed, given, context.checkpoint, lambda number: done.append(sizes[number]))
        except ProcessDiedError:
            logger.warning("%s: a process has died, so Spark does it", what)
        else:
            return [item for of_piece in found for item in of_piece]
    spark = table.jvm.spark.sparkContext
    tasks = len(pieces)
    if of_task > 1:
        tasks = min(tasks, max(spark.defaultParallelism, -(-tasks // of_task)))
    bytes_read = spark.accumulator(0)
    context.watch_bytes(lambda: bytes_read.value)

    def task(part: Iterable[Piece]) -> Iterator[Found]:
        reduce_task_overhead()
        for arguments, size in part:
            yield from function(*arguments, _token(stage))
            bytes_read.add(size)

    with translated(what), wait_for_tasks_on_error(table):
        return list(spark.parallelize(pieces, tasks).mapPartitions(task).collect())


def _listed(function: Callable[..., Iterable[Found]], *arguments: Any) -> list[Found]:
    return list(function(*arguments))


def _token(stage: int) -> str:
    task = TaskContext.get()
    return f"{task.partitionId()}-{stage}-{task.taskAttemptId()}" if task else f"0-{stage}-0"


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


def written_files(found: Iterable[WrittenFile | Problem]) -> list[WrittenFile]:
    """Returns the files that tasks have written. Raises `RefusedError` if a task has refused its slice."""
    items = list(found)
    written = [item for item in items if isinstance(item, WrittenFile)]
    refusals = [item for item in items if isinstance(item, Problem)]
    if refusals:
        raise RefusedError(list(dict.fromkeys(refusals)))
    return written


def token(task: int) -> str:
    """Returns Hudi's write token `<task>-<stage>-<attempt>`.

    A retried task may repeat it, since file ids are unique.
    """
    return f"{task}-0-0"
