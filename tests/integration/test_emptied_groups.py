"""Each service works on file groups without rows, on a table without rows, and after rows are inserted again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.contract import BucketIndex
from jobs.errors import RefusedError
from tests.integration import tables
from tests.integration.run import run_job

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("table_type", "version", "buckets"),
    [
        pytest.param("COPY_ON_WRITE", 9, None, marks=pytest.mark.exhaustive),
        *(
            pytest.param(*shape, marks=pytest.mark.exhaustive)
            for shape in (
                ("MERGE_ON_READ", 9, None),
                ("MERGE_ON_READ", 6, None),
                ("MERGE_ON_READ", 9, 2),
                ("COPY_ON_WRITE", 6, 2),
            )
        ),
    ],
)
def test_file_groups_without_rows_get_every_service(
    spark: SparkSession, base: Path, table_type: str, version: int, buckets: int | None
) -> None:
    options = tables.writer_options(base, table_type=table_type, version=version, num_buckets=buckets)
    deletes = {**options, "hoodie.datasource.write.operation": "delete"}
    index = BucketIndex(buckets, ("id",)) if buckets else None

    def services(sort_by: str) -> None:
        expected = tables.snapshot(spark, base)
        kinds: list[tuple[str, dict[str, Any]]] = [
            ("compaction", {}),
            ("clustering", {"sort_by": [sort_by]}),
            ("cleaning", {"policy": "KEEP_LATEST_COMMITS", "retain": 1}),
        ]
        for kind, params in kinds if table_type == "MERGE_ON_READ" else kinds[1:]:
            run_job(spark, base, kind, params, index=index)
            for metadata in (True, False):
                assert tables.snapshot(spark, base, metadata=metadata) == expected, kind

    emptied = tables.rows(spark, 100, 120).withColumn("dt", F.lit("2026-02-01"))
    tables.upsert(tables.rows(spark, 0, 40), base, options)
    tables.upsert(emptied, base, options)
    tables.upsert(emptied, base, deletes)
    services("city")
    assert len(tables.snapshot(spark, base)) == 40
    tables.upsert(tables.rows(spark, 0, 40), base, deletes)
    services("fare")
    assert tables.snapshot(spark, base) == []
    tables.upsert(tables.rows(spark, 20, 60, ts=5), base, options)
    services("city")
    assert len(tables.snapshot(spark, base)) == 40
    assert run_job(spark, base, "audit", index=index).details["clean"]


def test_a_table_without_file_groups_is_neither_expanded_nor_clustered(spark: SparkSession, base: Path) -> None:
    base.mkdir()
    spark.sql(
        f"create table without_groups (id string, ts bigint) using hudi location '{base}'"
        " tblproperties (type = 'mor', primaryKey = 'id', preCombineField = 'ts')"
    )
    kinds: list[tuple[str, dict[str, Any]]] = [
        ("bucket_count", {"num_buckets": 3}),
        ("bucket_expansion", {"factor": 2}),
    ]
    for kind, params in kinds:
        with pytest.raises(RefusedError) as caught:
            run_job(spark, base, kind, params)
        assert [each.type for each in caught.value.reasons] == ["no-file-groups"]
    for dry in (True, False):
        assert run_job(spark, base, "clustering", {"sort_by": ["ts"]}, dry_run=dry).details["nothing_to_do"]
    assert [each.name for each in (base / ".hoodie" / "timeline").iterdir()] == ["history"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", [9, 6])
def test_a_group_is_clustered_whose_deletes_are_archived(spark: SparkSession, base: Path, version: int) -> None:
    options = tables.writer_options(base, version=version, num_buckets=None, metadata=False)
    emptied = tables.rows(spark, 100, 120).withColumn("dt", F.lit("2026-02-01"))
    tables.upsert(emptied, base, options)
    tables.upsert(emptied, base, {**options, "hoodie.datasource.write.operation": "delete"})
    for number in range(3):
        tables.upsert(tables.rows(spark, 0, 9, ts=number), base, options)
    assert run_job(spark, base, "archival", {"retain": 2}, index=None).details["archived"]
    expected = tables.snapshot(spark, base)

    run_job(spark, base, "clustering", {"sort_by": ["city"]}, index=None)

    assert tables.snapshot(spark, base) == expected
    assert run_job(spark, base, "audit", index=None).details["clean"]
