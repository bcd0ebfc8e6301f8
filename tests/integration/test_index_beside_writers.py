"""An index is built, on a disk and on S3, while a batch writer and a SQL session go on: no row is lost or hidden."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration import tables
from tests.integration.long_session import LongSession
from tests.integration.run import run_job
from tests.integration.test_index_builds import COW, MOR, order
from tests.integration.test_s3 import lake, lock, on_s3

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from jobs.contract import TableLock

__all__ = ["lake", "lock", "on_s3"]
FIRST = 60


class Writers:
    """A thread in which batches and statements of one session take turns; what fails is tried again."""

    def __init__(self, spark: SparkSession, base: str, options: dict[str, str]) -> None:
        self.options, self.rows, self.failed = options, dict.fromkeys(range(FIRST), 0.0), [""]
        self._spark, self._base, self._ends = spark, base, threading.Event()
        self._session = LongSession(spark, base, tables.LOCK | {k: v for k, v in options.items() if "lock" in k})
        self._set({"hoodie.metadata.index.column.stats.enable": "false"})
        self._thread = threading.Thread(target=self._write, daemon=True)
        self.rounds = 0

    def __enter__(self) -> Writers:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join(180)
        assert not self._thread.is_alive()

    def keep(self, printed: list[dict[str, str]]) -> None:
        """Gives the options that a build has printed to both writers."""
        more = {each["name"]: each["value"] for each in printed}
        self._set(more)
        self.options = self.options | more

    def _set(self, options: dict[str, str]) -> None:
        for name, value in options.items():
            self._session.run(f"SET {name}={value}")

    def _write(self) -> None:
        while not self._ends.is_set():
            number, last = self.rounds + 1, len(self.rows)
            frame = tables.rows(self._spark, last - 20, last + 10, ts=number)
            self._until_done(lambda rows=frame: tables.upsert(rows, self._base, self.options))
            self.rows |= {each: float(number) for each in range(last - 20, last + 10)}
            self._until_done(
                lambda at=number: self._session.run(f"UPDATE {{table}} SET fare = -{at} WHERE id = 'k{at}'")
            )
            self.rows[number] = -float(number)
            self.rounds += 1

    def _until_done(self, act: Any) -> None:
        while True:
            try:
                act()
                return
            except Exception as error:
                self.failed.append(str(error)[:200])

    def expected(self) -> dict[str, float]:
        return {f"k{each}": at if at < 0 else each * 2.5 + at for each, at in self.rows.items()}


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("index", "table_type"), [("record", COW), ("column_stats", MOR), ("bloom_filters", COW)])
@pytest.mark.parametrize("where", ["disk", "s3"])
def test_writers_go_on_while_an_index_is_built(
    request: pytest.FixtureRequest, lock: TableLock, where: str, index: str, table_type: str
) -> None:
    if where == "s3":
        spark, base = request.getfixturevalue("on_s3"), f"s3a://lake/indexed_{index}/trips"
    else:
        spark, base = request.getfixturevalue("spark"), str(request.getfixturevalue("tmp_path") / "trips")
    options = tables.writer_options(base, num_buckets=None, table_type=table_type, **lock.options)
    tables.upsert(tables.rows(spark, 0, FIRST), base, options)
    with Writers(spark, base, options) as writers:
        done = run_job(spark, base, "index", order("build", index), index=None, lock=lock).details
        # The writers get the options as soon as the index is there; a commit in between may have dropped it.
        writers.keep(done["writer_options"])
        began = writers.rounds
        while writers.rounds < began + 2:
            threading.Event().wait(0.2)
    print(index, where, "rounds", writers.rounds, "failed", writers.failed[1:])
    found = spark.read.format("hudi").load(base).select("id", "fare").collect()
    assert {row.id: row.fare for row in found} == writers.expected()
    assert len(found) == len(writers.rows)
    run_job(spark, base, "index", order("build", index), index=None, lock=lock)
    verified = run_job(spark, base, "index", {}, index=None, lock=lock).details
    assert verified["differences"] == []
    assert set(done["partitions"]) <= set(verified["compared"])
    audited = run_job(spark, base, "audit", index=None, lock=lock).details
    assert audited["clean"], audited["findings"]
