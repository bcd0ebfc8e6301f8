"""A table in an object store or HDFS, and what each kind of storage must let jobs do with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from pyarrow import fs
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.contract import BucketIndex, Outcome, Result, TableLock
from jobs.errors import CancelledError
from jobs.storage.paths import of_hadoop
from service.lake.active_timeline import read_active_timeline
from service.registration.detection import examine
from tests.integration import tables
from tests.integration.run import run_job
from tests.integration.writers import At

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

INDEX = BucketIndex(2, ("id",))
# Hadoop escapes none of these characters in a path, so we must not, either.
PARTITIONS = ("a b", "ü+y 50%")


def rows(spark: SparkSession, first: int, last: int, ts: int = 0) -> DataFrame:
    named = F.element_at(F.array(*map(F.lit, PARTITIONS)), F.substring("dt", 10, 1).cast("int"))
    return tables.rows(spark, first, last, ts=ts, partitions=2).withColumn("dt", named)


@dataclass(frozen=True)
class StoredTable:
    """A table of two buckets. `storage` are the options by which the service and Arrow find it; Spark's session has
    them, too."""

    spark: SparkSession
    base: str
    storage: Mapping[str, str]
    lock: TableLock = field(default_factory=TableLock)

    def options(self, **more: Any) -> dict[str, str]:
        """Returns the options of a writer."""
        return tables.writer_options(self.base, num_buckets=2, **self.lock.options, **more)

    def write(self, first: int, last: int, options: dict[str, str], ts: int = 0) -> None:
        tables.upsert(rows(self.spark, first, last, ts), self.base, options)

    def run(self, kind: str, params: dict[str, Any] | None = None, **more: Any) -> Result:
        return run_job(self.spark, self.base, kind, params, index=INDEX, lock=self.lock, **more)

    def in_order(self, num_buckets: int) -> list[str]:
        return tables.in_order(self.spark, self.base, num_buckets)

    def names(self) -> set[str]:
        """Returns the names of the table's files, relative to its base path."""
        return names_of_files(self.base, self.storage)

    def expand(self, root: str) -> None:
        """Registers the table, which has 200 rows, and doubles its buckets."""
        before = tables.snapshot(self.spark, self.base)
        assert len(before) == 200
        # The service reads the table by the same options.
        found = examine(f"{self.base}/", allowed_roots=(root,), claimed=None, storage_options=self.storage)
        assert (found.base_path, found.index) == (self.base, INDEX)
        expanded = self.run("bucket_expansion", {"num_buckets": 4})
        assert expanded.outcome is Outcome.SUCCEEDED, expanded
        assert expanded.details["rows"] == 200
        assert self.in_order(4) == before

    def keep_house(self, options: dict[str, str]) -> list[str]:
        """Runs the other services after a writer that still has 2 buckets in its options and leaves logs. Returns the
        rows."""
        self.write(100, 300, options, ts=7)
        before = self.in_order(4)
        assert len(before) == 300

        compacted = self.run("compaction")
        assert compacted.outcome is Outcome.SUCCEEDED
        assert compacted.details["file_groups"] > 0
        assert self.in_order(4) == before

        assert self.run("clustering", {"sort_by": ["city"]}).details["inside_buckets"] is True
        assert self.in_order(4) == before

        names = self.names()
        assert self.run("cleaning", {"retain": 2}).outcome is Outcome.SUCCEEDED
        gone = {name for name in names - self.names() if name.endswith(".parquet")}
        assert {name.partition("/")[0] for name in gone} == set(PARTITIONS)
        assert self.in_order(4) == before
        in_listing = tables.snapshot(self.spark, self.base, metadata=False)
        assert tables.snapshot(self.spark, self.base, metadata=True) == in_listing
        return before

    def require_audited(self) -> None:
        audit = self.run("audit").details
        assert audit["clean"], audit

    def require_nothing_left(self) -> None:
        assert left_behind(self.base, self.storage) == []
        assert {name.partition("/")[0] for name in self.names()} == {".hoodie", *PARTITIONS}
        assert read_active_timeline(self.base, self.storage).pending == ()

    def require_nothing_of_an_abort(self, **shape: Any) -> None:
        """Makes the table, and ends an expansion when it has written all files."""
        self.write(0, 200, self.options(**shape))
        before, names = tables.snapshot(self.spark, self.base), self.names()
        written: set[str] = set()

        def cancel() -> None:
            written.update(name for name in self.names() - names if name.endswith((".parquet", ".CREATE")))
            raise CancelledError

        with pytest.raises(CancelledError):
            self.run("bucket_expansion", {"factor": 2}, context=At("waiting", cancel))
        assert len(written) == 2 * 8  # each of the four slices became two files, each with its marker
        assert left_behind(self.base, self.storage) == []
        assert tables.snapshot(self.spark, self.base) == before


def names_of_files(base: str, options: Mapping[str, str]) -> set[str]:
    storage = of_hadoop(base, options)
    found = storage.filesystem.get_file_info(fs.FileSelector(storage.root, recursive=True))
    return {info.path.removeprefix(f"{storage.root}/") for info in found if info.is_file}


def left_behind(base: str, options: Mapping[str, str]) -> list[str]:
    """Returns the data files and markers that belong to no completed instant, pending and half-written instants, and a
    lock file."""
    found = names_of_files(base, options)
    timeline = {name.rsplit("/", 1)[-1] for name in found if name.startswith(".hoodie/timeline/")}
    completed = {name.split("_")[0] for name in timeline if "_" in name}
    data = {name for name in found if name.endswith(".parquet") and not name.startswith(".hoodie")}
    odd = {name for name in data if name.rsplit("_", 1)[-1].removesuffix(".parquet") not in completed}
    odd |= {name for name in found if name.startswith(".hoodie/.temp/") and ".marker." in name}
    odd |= {f"pending {name}" for name in timeline if name.split(".")[0] not in completed and "_" not in name}
    odd |= {name for name in timeline if name.count(".") > 1 and "_" in name}
    return sorted(odd | ({".hoodie/lock"} & found))
