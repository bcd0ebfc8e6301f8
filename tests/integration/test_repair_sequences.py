"""Tests repairs of several stale writes of the same keys, which were made to different states of a table: the rows
are those that Hudi would have kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.integration import tables
from tests.integration.hidden import hidden, write_stale
from tests.integration.run import proved, run_job
from tests.integration.tables import INDEX, newest, texts
from tests.integration.test_bucket_count import count_buckets, index_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

BY_COMMIT = {"hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"}
DELETE = {"hoodie.datasource.write.operation": "delete"}
MOR, COW = "MERGE_ON_READ", "COPY_ON_WRITE"


class Sequence:
    """A table whose file groups are replaced again and again, and writers that do not see the last replacement."""

    def __init__(self, spark: SparkSession, folder: Path, **shape: Any) -> None:
        self.base = folder / "trips"
        self.index = INDEX if shape.get("num_buckets", 4) else None
        self.options = tables.write_table(spark, self.base, count=100, partitioned=False, **shape)
        self._spark, self._folder, self._number = spark, folder, 0

    def stale(self, frame: DataFrame, **more: str) -> str:
        """Replaces all file groups, and writes to the old ones."""
        self._number += 1
        params = {"sort_by": ["city"]} if self._number % 2 else {"sort_by": ["id"]}
        (change,) = run_job(self._spark, self.base, "clustering", params, index=self.index).instants
        with hidden(self.base, change, self._folder / f"away {self._number}"):
            tables.upsert(frame, self.base, {**self.options, **more})
        return newest(self.base)

    def write(self, frame: DataFrame, **more: str) -> None:
        tables.upsert(frame, self.base, {**self.options, **more})

    def repair(self, *stale: str) -> dict[str, Any]:
        result = run_job(self._spark, self.base, "repair", index=self.index).details
        assert result["repaired"] == list(stale)
        return result

    def require(self, *expected: DataFrame) -> None:
        found, wanted = texts(self._spark, self.base, *expected)
        assert found == wanted
        audit = run_job(self._spark, self.base, "audit", index=self.index).details
        assert (audit["findings"], audit["stale_writes"], audit["duplicates"]) == ([], [], 0)


@pytest.fixture
def rows(spark: SparkSession) -> Callable[..., DataFrame]:
    return lambda first, last, ts=0: tables.rows(spark, first, last, ts=ts)


SHAPES: list[dict[str, Any]] = [{}, BY_COMMIT, {"version": 6}, {"table_type": COW}, {"num_buckets": None}]


@pytest.mark.exhaustive
@pytest.mark.parametrize("shape", SHAPES)
def test_a_repair_keeps_the_same_one_of_two_stale_rows_as_hudi(
    spark: SparkSession, tmp_path: Path, rows: Callable[..., DataFrame], shape: dict[str, Any]
) -> None:
    table = Sequence(spark, tmp_path, **shape)
    first = table.stale(rows(0, 60, ts=9))
    second = table.stale(rows(40, 80, ts=5))
    table.repair(first, second)
    if shape is BY_COMMIT:
        table.require(rows(0, 40, ts=9), rows(40, 80, ts=5), rows(80, 100))
    else:
        table.require(rows(0, 60, ts=9), rows(60, 80, ts=5), rows(80, 100))


@pytest.mark.exhaustive
@pytest.mark.parametrize("shape", [each for each in SHAPES if each != {"table_type": COW}])
def test_a_row_that_a_later_stale_delete_removes_stays_deleted(
    spark: SparkSession, tmp_path: Path, rows: Callable[..., DataFrame], shape: dict[str, Any]
) -> None:
    table = Sequence(spark, tmp_path, **shape)
    first = table.stale(rows(0, 60, ts=5))
    second = table.stale(rows(40, 80, ts=6), **DELETE)
    table.repair(first, second)
    table.require(rows(0, 40, ts=5), rows(80, 100))


@pytest.mark.exhaustive
@pytest.mark.parametrize("shape", SHAPES)
def test_a_key_that_was_deleted_and_inserted_again_has_its_last_row(
    spark: SparkSession, tmp_path: Path, rows: Callable[..., DataFrame], shape: dict[str, Any]
) -> None:
    table = Sequence(spark, tmp_path, **shape)
    stale = table.stale(rows(0, 60, ts=5))
    table.write(rows(20, 80, ts=6), **DELETE)
    table.write(rows(30, 40, ts=7))
    table.repair(stale)
    table.require(rows(0, 20, ts=5), rows(30, 40, ts=7), rows(80, 100))


@pytest.mark.exhaustive
@pytest.mark.parametrize("values", [(5, 6), (6, 5)])
@pytest.mark.parametrize("table_type", [MOR, COW])
def test_a_key_in_wrong_buckets_of_two_old_numbers_is_moved_once(
    spark: SparkSession, base: Path, table_type: str, values: tuple[int, int]
) -> None:
    options = tables.write_table(spark, base, count=100, table_type=table_type)
    count_buckets(spark, base, 4, 7)
    count_buckets(spark, base, 4, 5)
    one, other = tables.rows(spark, 0, 60, ts=values[0]), tables.rows(spark, 20, 80, ts=values[1])
    first = write_stale(one, base, options)
    second = write_stale(other, base, {**options, "hoodie.bucket.index.num.buckets": "7"})
    result = run_job(spark, base, "repair", {"instants": [first, second]}).details
    assert set(result["repaired"]) == {first, second}
    kept = other if values[0] < values[1] else one
    rest = (one if values[0] < values[1] else other).join(kept, "id", "left_anti")
    found, wanted = texts(spark, base, kept, rest.select(*kept.columns), tables.rows(spark, 80, 100))
    assert found == wanted
    assert len(proved(spark, base, 5, index_of(4))) == 100
