"""Somebody drops a table and makes it anew at the same place, while the service knows the old one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from jobs.contract import BucketIndex
from jobs.errors import RefusedError
from tests.integration import tables
from tests.integration.run import hudi_table, proved, run_job
from tests.integration.tables import INDEX

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"


@pytest.mark.parametrize(
    ("table_type", "number"),
    [(COW, 8), *(pytest.param(*each, marks=pytest.mark.exhaustive) for each in [(MOR, 2), (COW, 3), (MOR, 5)])],
)
def test_no_row_is_moved_from_where_the_writers_of_another_number_look_for_it(
    spark: SparkSession, base: Path, table_type: str, number: int
) -> None:
    """If a repair moved rows by the registered number, the writer's next batch would add a second row for each moved
    key."""
    options = tables.write_table(spark, base, count=60, partitioned=False, table_type=table_type, num_buckets=number)
    before = tables.snapshot(spark, base)
    details = run_job(spark, base, "audit").details
    found = {each["type"]: each for each in details["findings"]}
    assert found.keys() - {"bucket-beyond-number"} == {"bucket-number-differs"}
    assert f"by {number}, and {details['misplaced']} are not by 4" in found["bucket-number-differs"]["detail"]
    assert [each["cure"] for each in found.values() if each.get("cure")] == []
    written = [commit.write.instant for commit in hudi_table(spark, base, INDEX).commits()]

    with pytest.raises(RefusedError) as refused:
        run_job(spark, base, "repair", {"instants": written})

    assert [each.type for each in refused.value.reasons] == ["bucket-index-contradicted"]
    assert tables.snapshot(spark, base) == before
    tables.upsert(tables.rows(spark, 0, 70, ts=9), base, options)
    assert len(proved(spark, base, number, BucketIndex(number, ("id",)))) == 70


@pytest.mark.exhaustive
def test_rows_that_were_overwritten_with_a_wrong_number_are_moved_by_an_adoption(
    spark: SparkSession, base: Path
) -> None:
    options = tables.write_table(spark, base, count=60, partitioned=False)
    wrong = {"hoodie.datasource.write.operation": "insert_overwrite_table", "hoodie.bucket.index.num.buckets": "7"}
    tables.upsert(tables.rows(spark, 0, 60, ts=3), base, {**options, **wrong})
    assert "bucket-number-differs" in {each["type"] for each in run_job(spark, base, "audit").details["findings"]}

    run_job(spark, base, "bucket_index", {"action": "adopt"}, declared={"writers_stopped": True})

    tables.upsert(tables.rows(spark, 0, 70, ts=9), base, options)
    assert len(proved(spark, base, 4)) == 70


@pytest.mark.parametrize("table_type", [MOR, pytest.param(COW, marks=pytest.mark.exhaustive)])
def test_a_table_with_another_record_key_than_the_registered_index_is_refused_by_that_name(
    spark: SparkSession, base: Path, table_type: str
) -> None:
    shape = {"record_key": "note,city", "hash_fields": "city", "table_type": table_type, "partitioned": False}
    tables.write_table(spark, base, count=60, **shape)
    before = tables.snapshot(spark, base)
    (found,) = run_job(spark, base, "audit").details["findings"]
    assert (found["type"], found["detail"], found.get("cure")) == (
        "hash-fields-not-in-key",
        "id; the record key is note, city",
        None,
    )
    for kind, params in (("clustering", {"sort_by": ["city"]}), ("bucket_expansion", {"factor": 2})):
        with pytest.raises(RefusedError) as refused:
            run_job(spark, base, kind, params)
        assert [each.type for each in refused.value.reasons] == ["hash-fields-not-in-key"], kind
    assert tables.snapshot(spark, base) == before


@pytest.mark.exhaustive
@pytest.mark.parametrize("table_type", [COW, MOR])
def test_no_repair_is_offered_for_a_table_whose_writers_have_no_bucket_index(
    spark: SparkSession, base: Path, table_type: str
) -> None:
    index = {"num_buckets": None, "hoodie.index.type": "SIMPLE"}
    tables.write_table(spark, base, count=60, partitioned=False, table_type=table_type, **index)
    found = {each["type"]: each for each in run_job(spark, base, "audit").details["findings"]}
    assert found.keys() == {"file-ids-without-bucket", "rows-in-wrong-bucket"}
    assert [each["cure"] for each in found.values() if each.get("cure")] == []
    assert "PATCH its `index` with null" in found["file-ids-without-bucket"]["hint"]
    assert run_job(spark, base, "audit", index=None).details["clean"]
