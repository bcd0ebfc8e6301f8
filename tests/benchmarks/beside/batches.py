"""Upserts one DataFrame after the other, by any version of Hudi."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from jobs.contract import BucketIndex
from tests.benchmarks.beside import rows
from tests.benchmarks.beside.clock import Clock
from tests.benchmarks.beside.writer import printed_options
from tests.integration import ceaseless_writer, tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.acceptance.daemon import Daemon
    from tests.benchmarks.beside.writer import Json

OURS = rows.OURS
# The newest table version of each version of Hudi.
TABLE_VERSIONS = {"0.15.0": 6, "1.0.2": 8, "1.1.1": 9, OURS: 9}
# The payload makes buckets reach the smallest size that a policy accepts.
PAYLOAD_BYTES = 8000
FIRST_ID_OF_THE_SECOND = 3_000_000


class Batches:
    """One writing process, or two if `overlapping`. `index` is `bucket`, `none` (Hudi's own default), or the name of
    another index type of Hudi.

    After the registration the processes use the options that the service prints, but keep their first number of
    buckets.
    """

    sort_by = "fare"
    pause_seconds = 60

    def __init__(
        self,
        table_type: str,
        version: int,
        *,
        hudi_version: str = OURS,
        index: str = "bucket",
        clock: Clock | None = None,
        overlapping: bool = False,
    ) -> None:
        self.index = BucketIndex(2, ("id",)) if index == "bucket" else None
        self.declared: Json = {"hudi_version": hudi_version, "retry_conflicts": True, "engines": ["spark"]}
        self.settings: dict[str, str] = {}
        self._hudi_version, self._clock = hudi_version, clock or Clock()
        self._shape = {"table_type": table_type, "version": min(version, TABLE_VERSIONS[hudi_version])}
        self._type = {} if index in ("bucket", "none") else {"hoodie.index.type": index.upper()}
        self._ids = (0, FIRST_ID_OF_THE_SECOND) if overlapping else (0,)
        self._options: dict[str, str] = {}
        self._folders: list[Path] = []

    @contextmanager
    def running(self, folder: Path, base: Path) -> Iterator[None]:
        buckets = self.index.num_buckets if self.index else None
        self._options = tables.writer_options(base, num_buckets=buckets, **self._shape)  # type: ignore[arg-type]
        self._options |= {
            **self._type,
            "hoodie.write.num.retries.on.conflict.failures": "5",
            # Hudi's default gives every small file a Bloom filter of 430 KB, and an expansion hardly makes buckets
            # smaller.
            "hoodie.parquet.bloom.filter.enabled": "false",
        }
        with ExitStack() as stack:
            for first in self._ids:
                self._folders.append(folder / f"writer_{first}")
                stack.enter_context(
                    ceaseless_writer.running(
                        self._folders[-1],
                        base,
                        self._options,
                        PAYLOAD_BYTES,
                        first,
                        conf=rows.conf_of(self._hudi_version, self._clock),
                    )
                )
            yield

    def registered(self, daemon: Daemon, table: str) -> None:
        printed = printed_options(daemon, table, "spark")
        kept = {key: value for key, value in self._options.items() if key == "hoodie.bucket.index.num.buckets"}
        self._options |= {**printed, **self._type, **kept}
        self.changed({})

    def changed(self, options: Mapping[str, str]) -> None:
        self._options |= options
        for folder in self._folders:
            ceaseless_writer.change_options(folder, self._options)

    def compared(self, spark: SparkSession, base: Path) -> Json:
        lines = [line for folder in self._folders for line in ceaseless_writer.read(ceaseless_writer.ledger_of(folder))]
        expected = {f"k{item}": (number,) for item, number in ceaseless_writer.expected(lines).items()}
        failed = [line.error for line in lines if line.error]
        found = rows.compared(base, ["id", "ts"], expected, own=(self._hudi_version, self._clock))
        return {
            **found,
            "batches": len(lines) - len(failed),
            "failed_batches": len(failed),
            "failures": sorted({failure[:300] for failure in failed})[:5],
        }
