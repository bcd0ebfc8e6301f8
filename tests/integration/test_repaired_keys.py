"""Tests repairs of tables whose record keys or partition paths cannot be computed from the table's properties."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.contract import BucketIndex
from jobs.errors import StaleWriterError
from jobs.hudi.client import WriteClient
from jobs.hudi.keyed_writes import keyed_write_options
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.services import stray_row_writes
from tests.integration import tables
from tests.integration.hidden import hidden
from tests.integration.run import hudi_table, run_job

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from jobs.format.stale_writes import Group
    from jobs.hudi.table import HudiTable
    from jobs.services.stray_rows import Decided

MOR, COW = "MERGE_ON_READ", "COPY_ON_WRITE"
_DAYS = {
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.timezone": "UTC",
}
GENERATORS = {
    "timestamp": {"hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled": "true"},
    "complex of one": {
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
        "hoodie.write.complex.keygen.validation.enable": "false",
        "hoodie.write.complex.keygen.new.encoding": "false",
    },
    "custom": {
        **_DAYS,
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator",
        "hoodie.datasource.write.partitionpath.field": "dt:SIMPLE,on:TIMESTAMP",
        "hoodie.keygen.timebased.output.dateformat": "yyyyMMdd",
    },
    "time": {
        **_DAYS,
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        "hoodie.datasource.write.partitionpath.field": "on",
        "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd",
    },
}
ROWS = 40


def rows(spark: SparkSession, count: int, ts: int = 0) -> DataFrame:
    on = F.lit(1_700_000_000_000) + (F.col("city") % 2) * 86_400_000
    return tables.rows(spark, 0, count, ts=ts, partitions=2).withColumn("on", on)


def keys(spark: SparkSession, base: Path) -> dict[str, tuple[str, str]]:
    """Returns the stored record key and partition path of each row by its `id`, and asserts that each `id` exists
    once."""
    found = spark.read.format("hudi").load(str(base)).select("id", "_hoodie_record_key", "_hoodie_partition_path")
    collected = found.collect()
    assert len({row[0] for row in collected}) == len(collected)
    return {row[0]: (row[1], row[2]) for row in collected}


@pytest.mark.parametrize(
    ("generator", "version", "table_type"),
    [
        pytest.param("timestamp", 9, MOR, marks=pytest.mark.exhaustive),
        pytest.param("timestamp", 6, COW, marks=pytest.mark.exhaustive),
        pytest.param("complex of one", 8, MOR, marks=pytest.mark.exhaustive),
        pytest.param("custom", 6, MOR, marks=pytest.mark.exhaustive),
        pytest.param("time", 9, COW, marks=pytest.mark.exhaustive),
    ],
)
def test_rows_come_back_under_the_keys_that_they_have(
    spark: SparkSession, tmp_path: Path, generator: str, version: int, table_type: str
) -> None:
    base, field = tmp_path / "trips", "at" if generator == "timestamp" else "id"
    index = BucketIndex(2, (field,))
    options = tables.writer_options(base, table_type=table_type, version=version, num_buckets=2, record_key=field)
    options |= {**GENERATORS[generator], "hoodie.metadata.enable": "false"}
    tables.upsert(rows(spark, ROWS), base, options)
    (clustering,) = run_job(spark, base, "clustering", {"sort_by": ["city"]}, index=index).instants
    before = keys(spark, base)
    with hidden(base, clustering, tmp_path / "away"):
        tables.upsert(rows(spark, ROWS, ts=5).where("city < 500"), base, options)

    result = run_job(spark, base, "repair", index=index)

    assert result.details["rows"] == spark.read.format("hudi").load(str(base)).where("ts = 5").count() > 0
    assert keys(spark, base) == before
    audit = run_job(spark, base, "audit", index=index).details
    assert audit["clean"], audit
    tables.upsert(rows(spark, ROWS + 5, ts=9), base, options)
    after = keys(spark, base)
    assert {name: after[name] for name in before} == before
    assert len(after) == ROWS + 5


@pytest.mark.exhaustive
def test_a_repair_with_wrong_rows_is_rolled_back(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Afterwards no instant marks the stale write as repaired."""
    base, index = tmp_path / "trips", BucketIndex(2, ("id",))
    options = tables.writer_options(base, num_buckets=2)
    tables.upsert(rows(spark, ROWS), base, options)
    (clustering,) = run_job(spark, base, "clustering", {"sort_by": ["city"]}, index=index).instants
    with hidden(base, clustering, tmp_path / "away"):
        tables.upsert(rows(spark, ROWS, ts=5).where("city < 500"), base, options)
    before = tables.snapshot(spark, base)
    instants = len(hudi_table(spark, base, index).commits())

    def find_a_fault(table: HudiTable, decided: Decided, apart: Collection[Group] = ()) -> None:
        really_required(table, decided, apart)
        raise StaleWriterError("after the repair 1 rows differ")

    really_required = stray_row_writes.require_written
    monkeypatch.setattr(stray_row_writes, "require_written", find_a_fault)
    with pytest.raises(StaleWriterError, match="1 rows differ"):
        run_job(spark, base, "repair", index=index)

    table = hudi_table(spark, base, index)
    assert (tables.snapshot(spark, base), table.pending()) == (before, [])
    assert len(table.commits()) == instants
    assert [each["operation"] for each in run_job(spark, base, "audit", index=index).details["stale_writes"]] == [
        "UPSERT"
    ]
    monkeypatch.undo()
    assert run_job(spark, base, "repair", index=index).details["rows"] > 0
    assert keys(spark, base).keys() == {f"k{number}" for number in range(ROWS)}


@pytest.mark.exhaustive
def test_timestamps_to_the_millisecond_as_flink_has_them_come_back(spark: SparkSession, tmp_path: Path) -> None:
    """Hudi's Spark data source cannot write to such a table (`MISSING_UNION_BRANCH`)."""
    base, index = tmp_path / "trips", BucketIndex(2, ("id",))
    spark.sql(
        f"CREATE TABLE trips_of_flink (id string, ts bigint, dt string, at timestamp) USING hudi"
        " TBLPROPERTIES (type = 'mor', primaryKey = 'id', orderingFields = 'ts')"
        f" PARTITIONED BY (dt) LOCATION '{base}'"
    )
    properties = base / ".hoodie" / "hoodie.properties"
    properties.with_name(".hoodie.properties.crc").unlink(missing_ok=True)
    properties.write_text(properties.read_text().replace("timestamp-micros", "timestamp-millis"))

    def write(count: int, ts: int) -> None:
        table = hudi_table(spark, base, index)
        assert "timestamp-millis" in table.schema()
        found = rows(spark, count, ts=ts).select("id", "ts", "dt", "at")
        meta = {"_hoodie_record_key": F.col("id"), "_hoodie_partition_path": F.concat(F.lit("dt="), F.col("dt"))}
        with WriteClient(table, UNDER_OUR_LOCK, keyed_write_options(table)) as client:
            client.keyed_writes.upsert(found.withColumns(meta))

    write(ROWS, 0)
    (clustering,) = run_job(spark, base, "clustering", {"sort_by": ["at"]}, index=index).instants
    before = keys(spark, base)
    with hidden(base, clustering, tmp_path / "away"):
        write(ROWS // 2, 5)

    assert run_job(spark, base, "repair", index=index).details["rows"] == ROWS // 2
    assert keys(spark, base) == before
    assert run_job(spark, base, "audit", index=index).details["clean"]
    found = spark.read.format("hudi").load(str(base)).where("ts = 5").select(F.unix_micros("at"))
    expected = rows(spark, ROWS // 2).select(F.unix_millis("at") * 1000)
    assert sorted(row[0] for row in found.collect()) == sorted(row[0] for row in expected.collect())


@pytest.mark.exhaustive
@pytest.mark.parametrize("table_type", [MOR, COW])
def test_a_time_of_which_a_generator_makes_the_paths_keeps_its_value(
    spark: SparkSession, tmp_path: Path, table_type: str
) -> None:
    """Hudi's readers take such a time for a text; `tests/flink/test_partitions_by_time.py` has those of Flink."""
    base, index = tmp_path / "trips", BucketIndex(2, ("id",))
    options = tables.writer_options(base, table_type=table_type, num_buckets=2, **GENERATORS["time"])
    options |= {"hoodie.metadata.enable": "false", "hoodie.keygen.timebased.timestamp.type": "EPOCHMICROSECONDS"}
    on = "timestamp_millis(1700000000123 + city % 2 * 86400000)"

    def write(count: int, ts: int) -> None:
        tables.upsert(rows(spark, count, ts=ts).withColumn("on", F.expr(on)), base, options)

    write(ROWS, 0)
    (clustering,) = run_job(spark, base, "clustering", {"sort_by": ["city"]}, index=index).instants
    with hidden(base, clustering, tmp_path / "away"):
        write(ROWS // 2, 5)
    assert run_job(spark, base, "repair", index=index).details["rows"] == ROWS // 2
    if table_type == MOR:
        run_job(spark, base, "compaction", index=index)

    assert run_job(spark, base, "audit", index=index).details["clean"]
    files = [item.base_file or "" for item in hudi_table(spark, base, index).file_slices()]
    stored = spark.read.parquet(*files)
    assert (stored.where("ts = 5").count(), stored.count()) == (ROWS // 2, ROWS)
    assert stored.where(f"on is null or on <> {on}").count() == 0


@pytest.mark.exhaustive
@pytest.mark.parametrize(("dates", "is_readable"), [("yyyy/MM/dd", True), ("yyyy-MM-dd", False)])
def test_an_audit_reads_what_hudi_can_read_by_the_paths_of_partitions_and_names_the_rest(
    spark: SparkSession, base: Path, dates: str, *, is_readable: bool
) -> None:
    custom = {**GENERATORS["custom"], "hoodie.keygen.timebased.output.dateformat": dates}
    options = tables.writer_options(base, version=6, num_buckets=None, metadata=False, **custom)
    tables.upsert(rows(spark, ROWS), base, options)
    tables.upsert(rows(spark, 9, ts=1), base, options)
    run_job(spark, base, "compaction", index=None)

    audit = run_job(spark, base, "audit", index=None).details

    assert audit["clean"] == is_readable, audit
    assert [each["reason"]["type"] for each in audit["unchecked"]] == (
        [] if is_readable else ["partition-values-unreadable"]
    )
    assert [each["type"] for each in audit["findings"]] == ([] if is_readable else ["checks-not-made"])
    assert audit.get("rows") == (ROWS if is_readable else None)
