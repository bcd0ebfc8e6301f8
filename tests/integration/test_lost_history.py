"""Jobs on tables whose history was removed, or not copied with the table."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.integration import tables
from tests.integration.run import hudi_table, proved, run_job
from tests.integration.tables import newest
from tests.integration.test_bucket_count import count_buckets, index_of
from tests.integration.test_repair_of_archived_writes import archive
from tests.integration.test_stale_writes import PARQUET_METADATA

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("version", "more_options"),
    [
        (9, {}),
        pytest.param(9, PARQUET_METADATA, marks=pytest.mark.exhaustive),
        pytest.param(6, {}, marks=pytest.mark.exhaustive),
    ],
)
def test_a_number_of_buckets_outlives_the_history_that_has_its_change(
    spark: SparkSession, base: Path, version: int, more_options: dict[str, str]
) -> None:
    """Without the hashing config, writers would go back to the number in their options, and write each key again."""
    shape = {"version": version, "partitioned": False, "metadata": False}
    options = tables.write_table(spark, base, count=100, **shape, **more_options)  # type: ignore[arg-type]
    count_buckets(spark, base, 4, 7)
    more = archive(spark, base, options, newest(base))
    (history,) = (each for name in ("timeline/history", "history") if (each := base / ".hoodie" / name).exists())
    shutil.rmtree(history)
    history.mkdir()

    run_job(spark, base, "clustering", {"sort_by": ["city"]}, index=index_of(4))

    assert hudi_table(spark, base, index_of(4)).bucket_rules().default == 7  # type: ignore[union-attr]
    tables.upsert(tables.rows(spark, 0, 110, ts=9), base, options)
    assert len(proved(spark, base, 7, index_of(4))) == 110 + more
