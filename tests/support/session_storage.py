"""Sets a store's options in the tests' session, as a writer does, and removes them afterwards."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from jobs.hudi.hadoop import close_file_system
from jobs.hudi.jvm import Jvm

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession


@contextmanager
def reached_by(spark: SparkSession, options: Mapping[str, str], *paths: str) -> Iterator[None]:
    """`paths` lie in buckets of the store. Hadoop caches a file system for each bucket. Without the removal, Hadoop
    would call a stopped server when the next server has a bucket of the same name."""
    conf: Any = spark._jsc.hadoopConfiguration()  # type: ignore[attr-defined]
    for name, value in options.items():
        conf.set(name, value)
    try:
        yield
    finally:
        for name in options:
            conf.unset(name)
        for path in paths:
            close_file_system(Jvm(spark), path)
