"""A Spark SQL session whose statements use an older state of the table than other processes have written."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

_NUMBERS = count(1)


class LongSession:
    """A Spark SQL session that has read the table once and caches its files, so that its statements use file ids that
    another process has replaced since."""

    def __init__(self, spark: SparkSession, base: Path | str, options: dict[str, str]) -> None:
        self._session = spark.newSession()
        self._table = f"stale_{next(_NUMBERS)}"
        self.run(f"CREATE TABLE {self._table} USING hudi LOCATION '{base}'")
        for key, value in options.items():
            self.run(f"SET {key}={value}")
        self.run(f"SELECT count(*) FROM {self._table}")

    def run(self, statement: str) -> None:
        self._session.sql(statement.format(table=self._table)).collect()
