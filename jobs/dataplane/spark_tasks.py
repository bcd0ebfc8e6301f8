"""Runs tasks of the Arrow data plane on Spark, and takes what they report."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from jobs.contract import Problem
from jobs.errors import RefusedError
from jobs.format.written_file import WrittenFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark import SparkContext

    from jobs.hudi.table import HudiTable

# Spark kills the Python process of a cancelled task after 2 s (`spark.python.task.killTimeout`).
TASK_END_SECONDS = 30.0


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
    """Returns the files that tasks have written. Raises `RefusedError` if some refused."""
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
