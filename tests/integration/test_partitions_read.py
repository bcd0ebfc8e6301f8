"""Reads of some partitions open only their files, and return the same rows as a read of the whole table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from groundskeeper_spark.table import java_hash
from jobs.contract import BucketIndex
from jobs.dataplane.hudi_merge_job import merged_rows
from jobs.errors import HudiError
from jobs.format.bucket_rules import BucketRules
from jobs.format.meta_columns import PARTITION_PATH
from jobs.hudi import rows
from jobs.hudi.hadoop import storage_of
from jobs.services import stray_rows
from jobs.services.checks import row_counts
from tests.integration import tables
from tests.integration.hidden import write_stale
from tests.integration.run import hudi_table, proved, run_job
from tests.integration.tables import INDEX, newest
from tests.integration.test_bucket_count import count_buckets, index_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from jobs.hudi.table import HudiTable

_KEYGEN, _TIME = "hoodie.datasource.write.keygenerator.class", "hoodie.keygen.timebased."
_HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
_ENCODED = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
_COMPLEX = {_KEYGEN: "org.apache.hudi.keygen.ComplexKeyGenerator"}
_SECONDS = {f"{_TIME}timestamp.type": "UNIX_TIMESTAMP"}
_DAYS = {_KEYGEN: "org.apache.hudi.keygen.TimestampBasedKeyGenerator", f"{_TIME}output.dateformat": "yyyy-MM-dd"}
_SLASHED = {"hoodie.datasource.write.slash.separated.date.partitioning": "true"}
_CUSTOM = {_KEYGEN: "org.apache.hudi.keygen.CustomKeyGenerator", f"{_TIME}output.dateformat": "yyyy/MM/dd"}
_TWO = "hoodie.datasource.write.partitionpath.field"
_OF_TIME = "1700000000L + (id % 3) * 86400"

# SQL of the partition fields `dt` and `hr`, options of the writer, and whether Hudi finds a folder by its values.
SHAPES: dict[str, tuple[str, str, dict[str, str], bool]] = {
    "flat": ("concat('2026-01-0', id % 3 + 1)", "''", {}, True),
    "hive-style": ("concat('2026-01-0', id % 3 + 1)", "''", _HIVE, True),
    "encoded": ("if(id % 3 = 0, 'a b%c:d=é', if(id % 3 = 1, null, 'x/y'))", "''", _ENCODED, True),
    "encoded, hive-style": ("if(id % 3 = 0, 'a=b', if(id % 3 = 1, 'x y', 'p%20q'))", "''", _HIVE | _ENCODED, True),
    "null": ("if(id % 3 = 0, null, cast(id % 3 as string))", "''", _HIVE, True),
    "text with a zero": ("concat('0', id % 3)", "''", {}, True),
    "slashes": ("concat('2026/0', id % 3)", "''", {}, True),
    "slashes, hive-style": ("concat('2026/0', id % 3)", "''", _HIVE, True),
    "number": ("cast(id % 3 as int)", "''", {}, True),
    "date": ("date_add(date'2020-01-01', cast(id % 3 as int))", "''", {}, True),
    "two levels": ("concat('d', id % 3)", "concat('h', id % 2)", _COMPLEX | {_TWO: "dt,hr"}, True),
    "two levels, null": ("concat('d', id % 3)", "if(id % 2 = 0, null, '1')", _COMPLEX | _HIVE | {_TWO: "dt,hr"}, True),
    "two levels, slashes": ("concat('d/', id % 3)", "concat('h', id % 2)", _COMPLEX | {_TWO: "dt,hr"}, False),
    "timestamp generator": (_OF_TIME, "''", _SECONDS | _DAYS, True),
    "custom generator": (_OF_TIME, "''", _SECONDS | _CUSTOM | {_TWO: "dt:TIMESTAMP"}, False),
}
ALWAYS = ("encoded", "custom generator")
# SQL of a partition field whose values Hudi's readers do not find in the paths, and options of the writer.
NOT_IN_PATHS: dict[str, tuple[str, dict[str, str]]] = {
    "texts": ("case id % 4 when 0 then '' when 1 then 'a=b' when 2 then '10%20x' end", {}),
    "times": ("timestamp_micros(1700000000123456 + id % 3 * 86400000000)", _HIVE),
    "dates with slashes": ("concat('2026-01-0', id % 3 + 1)", _SLASHED),
}


def _table(
    spark: SparkSession, base: Path, dt: str, hr: str, more: dict[str, str], index: BucketIndex | None = INDEX
) -> HudiTable:
    frame = spark.range(60).select(
        F.col("id").cast("string").alias("id"), F.lit(1).alias("ts"), F.expr(dt).alias("dt"), F.expr(hr).alias("hr")
    )
    options = tables.writer_options(base, num_buckets=2 if index else None, **more)
    # The second write adds logs.
    for written in (frame, frame.where("cast(id as int) % 5 = 0").withColumn("ts", F.lit(2))):
        written.write.format("hudi").options(**options).mode("append").save(str(base))
    return hudi_table(spark, base, index)


def _files_opened(frame: DataFrame) -> int:
    """Returns how many files the scan of a collected data frame has opened (those of logs not counted)."""
    plan: Any = frame._jdf.queryExecution().executedPlan()  # type: ignore[operator]
    leaves = plan.collectLeaves()
    assert leaves.size() == 1
    return int(leaves.apply(0).metrics().apply("numFiles").value())


@pytest.mark.parametrize(
    "shape", [pytest.param(each, marks=() if each in ALWAYS else pytest.mark.exhaustive) for each in SHAPES]
)
def test_a_read_of_one_partition_opens_its_files_only(spark: SparkSession, base: Path, shape: str) -> None:
    dt, hr, more, is_found = SHAPES[shape]
    table = _table(spark, base, dt, hr, more)
    slices = table.file_slices()
    paths = table.partitions()
    assert len(paths) >= 3
    whole = rows.current(table).collect()
    for path in paths:
        found = rows.of_partitions(table, [path])
        expected = sorted(str(row) for row in whole if row[PARTITION_PATH] == path)
        assert sorted(map(str, found.collect())) == expected != []
        own = sum(item.partition == path for item in slices)
        assert _files_opened(found) == (own if is_found else len(slices))


def _damage(base: Path, keep: str) -> None:
    """Makes each data file outside of one partition unreadable."""
    for path in base.rglob("*"):
        outside = path.relative_to(base).parts[0] not in (".hoodie", keep)
        if outside and path.is_file() and not path.name.startswith(".hoodie") and not path.name.endswith(".crc"):
            path.write_bytes(b"x" * path.stat().st_size)
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def test_jobs_on_one_partition_do_not_need_the_files_of_others(spark: SparkSession, base: Path) -> None:
    dt, hr, more, _ = SHAPES["flat"]
    table = _table(spark, base, dt, hr, more)
    kept = table.partitions()[0]
    groups = [item.key for item in table.file_slices() if item.partition == kept]
    _damage(base, kept)
    with pytest.raises(Py4JJavaError, match="is not a Parquet file"):
        rows.current(table).collect()

    assert rows.count_by_partition(table, [kept]) == {kept: 20}
    assert rows.count_in_groups(table, groups) == 20
    assert rows.keys_there_twice(table, [kept], by_partition=True, most=5) == {}
    # The table has two buckets, and four are declared.
    wrong = stray_rows.misplaced(table, [kept])
    expected = {str(key) for key in range(0, 60, 3) if java_hash((str(key),)) % 4 > 1}
    assert {row[0] for row in wrong.rows.select("id").collect()} == expected
    assert len(row_counts.writers_of_misplaced(table, BucketRules.uniform(4), [kept])) == 2
    merged = merged_rows(table, storage_of(table), [kept], [])
    assert {row[0] for row in merged.select("id").collect()} == {str(key) for key in range(0, 60, 3)}


@pytest.mark.exhaustive
def test_a_partition_that_is_not_there_has_no_rows(spark: SparkSession, base: Path) -> None:
    dt, hr, more, _ = SHAPES["flat"]
    table = _table(spark, base, dt, hr, more)
    first, *_ = table.partitions()

    assert rows.count_by_partition(table, [first, "none"]) == {first: 20, "none": 0}


def _stored(spark: SparkSession, table: HudiTable) -> list[str]:
    """Returns the columns `id` and `dt` of the base files."""
    files = [item.base_file or "" for item in table.file_slices()]
    # Spark would take a folder for the value of a partition.
    stored = spark.read.option("recursiveFileLookup", "true").parquet(*files)
    return sorted(str(row) for row in stored.select("id", "dt").collect())


@pytest.mark.parametrize("kind", ["bucket_expansion", pytest.param("bucket_index", marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize(
    "values", [pytest.param(each, marks=() if each == "texts" else pytest.mark.exhaustive) for each in NOT_IN_PATHS]
)
def test_rows_that_are_written_again_keep_the_values_of_partition_fields_that_paths_do_not_have(
    spark: SparkSession, base: Path, values: str, kind: str
) -> None:
    dt, more = NOT_IN_PATHS[values]
    is_expansion = kind == "bucket_expansion"
    index = index_of(2) if is_expansion else None
    params = {"factor": 2, "engine": "hudi"} if is_expansion else {"action": "adopt", "num_buckets": 3}
    table = _table(spark, base, dt, "''", more, index)
    before = _stored(spark, table)
    assert [str(row) for row in rows.current(table).select("id", "dt").sort("id").collect()] == before

    run_job(spark, base, kind, params, index=index, declared={"writers_stopped": True})

    assert _stored(spark, hudi_table(spark, base, index)) == before


@pytest.mark.parametrize("index", [INDEX, pytest.param(None, marks=pytest.mark.exhaustive)])
def test_rows_that_name_another_partition_than_their_folder_are_found_by_an_audit(
    spark: SparkSession, base: Path, index: BucketIndex | None
) -> None:
    """A narrowed read leaves them out."""
    tables.write_table(spark, base, count=60, table_type="COPY_ON_WRITE", num_buckets=4 if index else None)
    paths = sorted(path.name for path in base.iterdir() if path.name != ".hoodie")
    file = next((base / paths[0]).glob("*.parquet"))
    found = pq.read_table(file)
    at = found.schema.get_field_index(PARTITION_PATH)
    moved = pa.array([paths[1]] * found.num_rows, found.schema.field(at).type)
    pq.write_table(found.set_column(at, found.schema.field(at), moved), file)
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    table = hudi_table(spark, base, index)
    narrow = rows.of_partitions(table, [paths[1]])
    wide = rows.current(table).where(F.col(PARTITION_PATH) == paths[1])
    assert narrow.count() == wide.count() - found.num_rows

    for kind in ("diagnosis", "audit"):
        details = run_job(spark, base, kind, index=index).details
        texts = {each["type"]: each["detail"] for each in details["findings"]}
        assert texts["rows-in-wrong-partition"] == f"{found.num_rows} of '{paths[1]}'", details
    assert details["rows"] == 60


@pytest.mark.exhaustive
def test_a_repair_knows_what_was_deleted_in_a_partition_whose_name_is_a_pattern(
    spark: SparkSession, base: Path
) -> None:
    """Spark takes a path with brackets for a pattern, which does not match this path itself."""
    options = tables.writer_options(base, table_type="COPY_ON_WRITE", num_buckets=1, metadata=False)

    def rows_in_brackets(first: int, last: int, ts: int) -> DataFrame:
        return tables.rows(spark, first, last, ts=ts).withColumn("dt", F.lit("[1]"))

    tables.upsert(rows_in_brackets(0, 60, 0), base, options)
    count_buckets(spark, base, 1, 2)
    stale = write_stale(rows_in_brackets(40, 80, 5), base, options)
    tables.upsert(rows_in_brackets(60, 70, 5), base, options)
    before = newest(base)
    tables.upsert(rows_in_brackets(50, 70, 6), base, {**options, "hoodie.datasource.write.operation": "delete"})
    file = next((base / "[1]").glob(f"*_{before}.parquet"))
    content = file.read_bytes()
    file.with_name(f".{file.name}.crc").unlink()
    file.write_bytes(b"x" * len(content))
    # The deletes must not count as none because the storage does not let the job read this file.
    with pytest.raises(HudiError, match="comparing base files"):
        run_job(spark, base, "repair", {"instants": [stale]}, index=index_of(1))
    file.write_bytes(content)

    run_job(spark, base, "repair", {"instants": [stale]}, index=index_of(1))

    left = {row["id"]: row["ts"] for row in tables.collected(spark, base).rows}
    assert left == {f"k{number}": 5 * (number >= 40) for number in range(80) if not 50 <= number < 70}
    proved(spark, base, 2, index_of(1))


def test_an_empty_value_of_a_column_that_may_not_be_null_is_named(spark: SparkSession, base: Path) -> None:
    """Hudi's own read fails: the path has Hive's default partition, which it reads as null."""
    frame = spark.range(20).select(
        F.col("id").cast("string").alias("id"), F.lit(1).alias("ts"), F.expr("if(id % 2 = 0, '', 'x')").alias("dt")
    )
    assert not frame.schema["dt"].nullable
    options = tables.writer_options(base, num_buckets=2, **_HIVE | _ENCODED)
    for written in (frame, frame.where("id < 6")):  # The read fails where it merges logs.
        tables.upsert(written, base, options)
    with pytest.raises(Py4JJavaError, match="NullPointerException"):
        spark.newSession().read.format("hudi").load(str(base)).collect()
    details = run_job(spark, base, "audit", index=BucketIndex(2, ("id",))).details
    assert "partition-values-unreadable" in {each["reason"]["type"] for each in details["unchecked"]}
    assert "checks-not-made" in {each["type"] for each in details["findings"]}


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("dt", "more"),
    [("concat('YWI', id % 3, '=')", {}), ("date_add(date'2026-01-01', cast(id % 3 as int))", _SLASHED)],
    ids=["a text with an equals sign at its end", "a day in three folders"],
)
def test_values_that_hudi_cannot_read_from_paths_are_named(
    spark: SparkSession, base: Path, dt: str, more: dict[str, str]
) -> None:
    table = _table(spark, base, dt, "''", more)
    assert len(table.partitions()) == 3
    with pytest.raises(Py4JJavaError):
        spark.newSession().read.format("hudi").load(str(base)).collect()
    details = run_job(spark, base, "audit", index=index_of(2)).details
    assert {each["reason"]["type"] for each in details["unchecked"]} == {"partition-values-unreadable"}
