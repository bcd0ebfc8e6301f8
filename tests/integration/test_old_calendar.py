"""Dates before 1582 in files of Spark's old calendar remain unchanged after each kind of merge and copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F  # noqa: N812

from jobs.dataplane.parquet_layout import has_old_calendar
from jobs.errors import EngineRefusedError, RowsDifferError
from jobs.format.bucket_hash import bucket_ids
from tests.integration import tables
from tests.integration.run import proved, run_job

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

ANCIENT, RECENT = "date'0001-01-01'", "date'2026-01-01'"
ANCIENT_ROW = "'day': datetime.date(1, 1, 1)"


def write_old(spark: SparkSession, base: Path, options: dict[str, str], day: str = ANCIENT) -> None:
    """Writes in the old calendar, by Hudi's writer of Spark's own rows, the only one that supports it."""
    session = spark.newSession()
    session.conf.set("spark.sql.parquet.datetimeRebaseModeInWrite", "LEGACY")
    bulk = {"hoodie.datasource.write.operation": "bulk_insert"}
    tables.upsert(dated(session, 0, 60, day), base, options | bulk)


def dated(session: SparkSession, first: int, last: int, day: str, **more: Any) -> DataFrame:
    return tables.rows(session, first, last, **more).withColumn("day", F.expr(day))


def old_files(base: Path) -> list[bool]:
    return [has_old_calendar(pq.ParquetFile(path)) for path in base.rglob("0*.parquet")]


@pytest.mark.parametrize(
    ("kind", "params", "buckets"),
    [
        ("bucket_expansion", {"factor": 2}, 8),
        pytest.param("bucket_contraction", {"factor": 2}, 2, marks=pytest.mark.exhaustive),
        pytest.param("clustering", {"sort_by": ["city"]}, 4, marks=pytest.mark.exhaustive),
    ],
)
def test_slices_with_logs_are_merged_by_hudi(
    spark: SparkSession, base: Path, kind: str, params: dict[str, Any], buckets: int
) -> None:
    options = tables.writer_options(base, partitioned=False)
    write_old(spark, base, options)
    tables.upsert(dated(spark, 0, 30, RECENT, ts=2), base, options)
    assert all(old_files(base))
    before = tables.snapshot(spark, base)
    assert sum(ANCIENT_ROW in row for row in before) == 30
    with pytest.raises(EngineRefusedError, match="calendar"):
        run_job(spark, base, kind, {**params, "engine": "arrow"})
    run_job(spark, base, kind, params)
    assert proved(spark, base, buckets) == before
    tables.upsert(dated(spark, 0, 70, "date'2026-02-02'", ts=9), base, options)
    assert len(proved(spark, base, buckets)) == 70


@pytest.mark.exhaustive
def test_files_of_both_calendars_are_not_copied_into_one(spark: SparkSession, base: Path) -> None:
    options = tables.writer_options(base, table_type="COPY_ON_WRITE", partitioned=False)
    keys = [f"k{number}" for number in range(60)]
    of_bucket = bucket_ids(pa.array(keys), ("id",), 4)
    # A file group without ancient dates gets a file without the calendar's mark, in which Spark would refuse such
    # dates.
    group = [key for key, bucket in zip(keys, of_bucket, strict=True) if bucket == of_bucket[0]]
    write_old(spark, base, options, f"if(id in ({', '.join(map(repr, group))}), {RECENT}, {ANCIENT})")
    tables.upsert(dated(spark, 0, 1, RECENT, ts=2), base, options)
    assert sorted(old_files(base)) == [False] + [True] * 4
    before = tables.snapshot(spark, base)
    assert sum(ANCIENT_ROW in row for row in before) == 60 - len(group)
    run_job(spark, base, "bucket_contraction", {"factor": 2})
    assert proved(spark, base, 2) == before


@pytest.mark.exhaustive
def test_hudis_own_compaction_loses_such_rows_so_it_is_not_committed(spark: SparkSession, base: Path) -> None:
    """Hudi's executor counts a row that Spark's writer refuses as failed, and continues without it."""
    options = tables.writer_options(base, partitioned=False)
    write_old(spark, base, options)
    tables.upsert(dated(spark, 0, 30, RECENT, ts=2), base, options)
    before = tables.snapshot(spark, base)
    with pytest.raises(EngineRefusedError, match="calendar"):
        run_job(spark, base, "compaction", {"engine": "arrow"})
    with pytest.raises(RowsDifferError, match="keys are gone"):
        run_job(spark, base, "compaction")
    assert tables.snapshot(spark, base) == before
