"""A user whose statements share one Spark SQL session, with the options that the service prints."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from jobs.contract import BucketIndex
from tests.benchmarks.beside import rows
from tests.benchmarks.beside.clock import Clock
from tests.benchmarks.beside.writer import printed_options
from tests.integration import sql_writer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.acceptance.daemon import Daemon
    from tests.benchmarks.beside.writer import Json

_VERSION = rows.OURS


class SqlUser:
    """A `careless` user keeps the cached state of a table."""

    sort_by = "qty"
    pause_seconds = 60

    def __init__(
        self,
        table_type: str,
        version: int,
        seed: int,
        *,
        careless: bool = False,
        index: str = "bucket",
        clock: Clock | None = None,
    ) -> None:
        self.index = BucketIndex(2, ("id",)) if index == "bucket" else None
        self.declared: Json = {
            "hudi_version": _VERSION,
            "retry_conflicts": True,  # The user repeats a failed statement.
            "engines": ["spark-sql"],
            "query_pruning_off": True,
        }
        self.settings: dict[str, str] = {}
        self._clock = clock or Clock()
        self._shape = {"table_type": table_type, "version": version, "seed": seed, "refresh": not careless}
        self._index = index
        self._options: dict[str, str] = {}
        self._writing: sql_writer.Writing | None = None

    @contextmanager
    def running(self, folder: Path, base: Path) -> Iterator[None]:
        with sql_writer.running(
            folder / "user",
            base,
            index=self._index,
            conf=self._clock.spark_conf,
            **self._shape,  # type: ignore[arg-type]
        ) as writing:
            self._writing = writing
            yield

    def registered(self, daemon: Daemon, table: str) -> None:
        self.changed(printed_options(daemon, table, "spark-sql"))

    def changed(self, options: Mapping[str, str]) -> None:
        assert self._writing
        self._options |= options
        self._writing.give(self._options)

    def compared(self, spark: SparkSession, base: Path) -> Json:
        assert self._writing
        ledger = self._writing.ledger()
        columns = ["id", "qty", "ver", "region"]
        found = rows.compared(base, columns, ledger.rows, own=(_VERSION, self._clock))
        return {**found, "statements": dict(ledger.done), "failed_statements": dict(ledger.failed)}
