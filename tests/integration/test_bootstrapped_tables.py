"""Tables that Hudi has bootstrapped from Parquet files: base files have the meta fields alone, and readers and services
take the other columns from the files outside of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from tests.integration import tables
from tests.integration.run import run_job

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

_HUDI = "org.apache.hudi"
_BOOTSTRAP = {
    "hoodie.datasource.write.operation": "bootstrap",
    "hoodie.bootstrap.mode.selector": f"{_HUDI}.client.bootstrap.selector.MetadataOnlyBootstrapModeSelector",
    "hoodie.bootstrap.keygen.class": f"{_HUDI}.keygen.NonpartitionedKeyGenerator",
}


def _rows(spark: SparkSession, first: int, last: int, ts: int = 0) -> DataFrame:
    """Returns rows whose columns may be null, as those of Parquet files may."""
    columns = [F.expr(f"if(ts < 0, null, {name})").alias(name) for name in ("id", "ts", "city", "note", "price", "day")]
    return tables.rows(spark, first, last, ts=ts).select(*columns)


@pytest.mark.exhaustive
def test_a_compaction_merges_rows_of_the_source_files(spark: SparkSession, base: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    _rows(spark, 0, 60).coalesce(1).write.parquet(str(source))
    [file] = source.glob("*.parquet")
    content = file.read_bytes()
    options = tables.writer_options(base, num_buckets=None, partitioned=False)
    # Hudi (1.2.0) sends the lock to tasks here, and one of files cannot be sent.
    alone = {name: value for name, value in options.items() if name not in tables.LOCK}
    begun = {**alone, **_BOOTSTRAP, "hoodie.bootstrap.base.path": str(source)}
    spark.createDataFrame([], "id string").write.format("hudi").options(**begun).mode("overwrite").save(str(base))
    tables.upsert(_rows(spark, 0, 20, ts=1), base, options)
    before = tables.snapshot(spark, base)
    assert len(before) == 60

    done = run_job(spark, base, "compaction", index=None).details

    assert (done["rows"], [each["type"] for each in done["engines"][0]["reasons"]]) == (60, ["bootstrapped-table"])
    assert tables.snapshot(spark, base) == before
    tables.upsert(_rows(spark, 50, 70, ts=2), base, options)
    assert len(tables.snapshot(spark, base)) == 70
    run_job(spark, base, "cleaning", {"policy": "KEEP_LATEST_COMMITS", "retain": 1}, index=None)
    assert file.read_bytes() == content
    audit = run_job(spark, base, "audit", index=None).details
    assert (audit["clean"], audit["rows"], audit["duplicates"]) == (True, 70, 0), audit
