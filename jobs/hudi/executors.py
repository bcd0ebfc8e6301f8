"""The executors of a Spark session on a cluster."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from jobs.format.spark_options import is_local
from jobs.hudi.jvm import first_line

if TYPE_CHECKING:
    from pyspark import SparkContext

# The module imports every module that the tasks of jobs need.
_OF_TASKS = "jobs.dataplane.rewrite_job"
_ASK_IDLE_SECONDS = 15.0


class ExecutorsUnfitError(Exception):
    """The executors cannot run the tasks of jobs, for example because their Python lacks a package."""


class SessionLostError(ConnectionError):
    """The JVM of the session does not answer."""


class Executors:
    """The executors of a session. The methods raise SessionLostError."""

    def __init__(self, context: SparkContext) -> None:
        self._context: Any = context
        self._scala: Any = self._context._jsc.sc()
        self.are_local = is_local(str(context.master))
        allocation = context.getConf().get("spark.dynamicAllocation.enabled") or "false"
        # If executors are allocated dynamically, Spark may have none while no task waits.
        self.come_on_demand = allocation.lower() == "true"
        self._asked_at = 0.0

    def count(self) -> int | None:
        """Returns the number of executors; None in local mode."""
        if self.are_local:
            return None
        with _lost():
            # The driver is in this map too.
            return int(self._scala.getExecutorMemoryStatus().size()) - 1

    def has_ended(self, *, is_idle: bool = False) -> bool:
        """Returns whether Spark has stopped the session, because its master no longer knows it. In local mode only jobs
        can stop a session, so an idle session is checked seldom."""
        if self.are_local and is_idle and time.monotonic() < self._asked_at + _ASK_IDLE_SECONDS:
            return False
        self._asked_at = time.monotonic()
        with _lost():
            return bool(self._scala.isStopped())

    def has_running_job(self, group: str) -> bool:
        """Returns whether a Spark job of this job group runs, or waits to run."""
        tracker = self._context.statusTracker()
        with _lost():
            infos = [tracker.getJobInfo(number) for number in tracker.getJobIdsForGroup(group)]
        return any(info is not None and info.status == "RUNNING" for info in infos)

    def prove(self) -> None:
        """Runs two tasks, which on a cluster wait for an executor and import the modules of jobs.

        The tasks load classes and start Python workers, so that the first job need not wait for that. Raises
        ExecutorsUnfitError.
        """
        task = iter if self.are_local else _import
        try:
            self._context.parallelize(range(2), 2).mapPartitions(task).collect()
        except (Py4JError, PySparkException) as error:
            raise ExecutorsUnfitError(_last_line(error)) from error


@contextmanager
def _lost() -> Iterator[None]:
    try:
        yield
    except (Py4JError, PySparkException, OSError) as error:
        raise SessionLostError("the JVM of the Spark session does not answer") from error


def _import(_numbers: Iterator[int]) -> list[str]:
    import importlib

    importlib.import_module(_OF_TASKS)
    return []


def _last_line(error: Py4JError | PySparkException) -> str:
    """Returns the last line of a Python task's traceback, or else the first line of the JVM's error."""
    lines = [line.strip() for line in str(error).splitlines()]
    thrown = [line for line in lines if line.startswith(("ModuleNotFoundError", "ImportError", "RuntimeError"))]
    return thrown[0] if thrown else first_line(error)
