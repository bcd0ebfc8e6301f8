"""Hudi's readers (1.2.0) misread some columns of tables whose rows a payload class merges: jobs read all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.hudi import rows
from tests.integration import tables
from tests.integration.run import hudi_table, proved, run_job
from tests.integration.tables import INDEX
from tests.integration.test_repair_order import PARTIAL

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", [6, 8])
def test_audits_and_counts_read_slices_whose_logs_update_some_columns(
    spark: SparkSession, base: Path, version: int
) -> None:
    options = tables.write_table(spark, base, count=60, version=version, **PARTIAL)
    # Several logs update one key, with greater, equal and lesser ordering values, and some columns have no value.
    for last, ts, name in ((30, 2, "region"), (20, 2, "note"), (10, 1, "city"), (40, 3, "price")):
        frame = tables.rows(spark, 0, last, ts=ts)
        tables.upsert(frame.withColumn(name, F.lit(None).cast(frame.schema[name].dataType)), base, options)
    tables.upsert(tables.rows(spark, 5, 8, ts=9), base, {**options, "hoodie.datasource.write.operation": "delete"})
    table = hudi_table(spark, base, INDEX)
    whole = {row["id"]: row for row in tables.collected(spark, base).rows}
    assert len(whole) == 57
    for columns in (["id", "dt", "note"], ["_hoodie_record_key", "id", "city", "at"], ["price", "region", "id"]):
        found = rows.current(table).select(*columns).collect()
        assert {row["id"]: tuple(row) for row in found} == {
            key: tuple(row[name] for name in columns) for key, row in whole.items()
        }
    assert sum(rows.count_by_partition(table, table.partitions()).values()) == 57
    before = proved(spark, base, 4)

    jobs: dict[str, dict[str, Any]] = {"compaction": {}, "clustering": {"sort_by": ["city"]}}
    for kind, params in (*jobs.items(), ("bucket_expansion", {"num_buckets": 8})):
        tables.upsert(tables.rows(spark, 50, 52, ts=3).withColumn("note", F.lit(None).cast("string")), base, options)
        before = tables.in_order(spark, base, 4)
        run_job(spark, base, kind, params)
        assert proved(spark, base, 8 if kind == "bucket_expansion" else 4) == before
