"""Spark's Python workers begin with the data plane: importing it costs more than a small task."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import SparkSession


def test_a_worker_that_starts_later_has_imported_what_tasks_need(spark: SparkSession) -> None:
    def look(_: Iterable[int]) -> Iterator[tuple[int, bool]]:
        yield os.getpid(), "jobs.dataplane.rewrite_job" in sys.modules

    ended: set[int] = set()
    for _ in range(10):
        found = dict(spark.sparkContext.parallelize(range(2), 2).mapPartitions(look).collect())
        if ended and not ended & found.keys():
            break
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        ended |= found.keys()
    assert all(found.values())
    assert not ended & found.keys()
