"""An operator changes the version of a table by Hudi's procedures, and jobs go on before any writer does."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration import tables
from tests.integration.run import proved, run_job

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

_NUMBERS = count(1)
_SORTED: tuple[str, dict[str, Any]] = ("clustering", {"sort_by": ["city"]})
_DOUBLED: tuple[str, dict[str, Any]] = ("bucket_expansion", {"factor": 2})
COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"


@pytest.mark.parametrize(
    ("table_type", "calls", "jobs"),
    [
        pytest.param(COW, ("upgrade_table NINE",), (_SORTED,), id="up"),
        *(
            pytest.param(*case, marks=pytest.mark.exhaustive, id=name)
            for name, case in {
                "up and down": (COW, ("upgrade_table NINE", "downgrade_table SIX"), (_DOUBLED, _SORTED)),
                "mor up": (MOR, ("upgrade_table EIGHT",), (_DOUBLED, _SORTED)),
                "mor up and down": (MOR, ("upgrade_table NINE", "downgrade_table SIX"), (_SORTED, _DOUBLED)),
            }.items()
        ),
    ],
)
def test_jobs_before_the_next_write_lose_nothing(
    spark: SparkSession, base: Path, table_type: str, calls: tuple[str, ...], jobs: tuple[tuple[str, dict[str, Any]]]
) -> None:
    """The upgrader renews the times of all files of the timeline, so that they no longer show the writers' clock. Its
    compaction of the metadata table is later than the last commit."""
    options = tables.write_table(spark, base, count=60, updates=1, version=6, table_type=table_type, partitioned=False)
    before = tables.snapshot(spark, base)
    table = f"changed_{next(_NUMBERS)}"
    spark.sql(f"CREATE TABLE {table} USING hudi LOCATION '{base}'")
    for call in calls:
        name, version = call.split()
        assert spark.sql(f"CALL {name}(table => '{table}', to_version => '{version}')").collect()[0][0]

    for kind, params in jobs:
        run_job(spark, base, kind, params)
        assert tables.snapshot(spark, base) == before == tables.snapshot(spark, base, metadata=False), kind

    tables.upsert(tables.rows(spark, 0, 70, ts=9), base, options)
    assert len(proved(spark, base, 8 if _DOUBLED in jobs else 4)) == 70
