"""Clustering prepares a table for its next expansion, which then copies row groups and changes nothing else."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given

from jobs.contract import BucketIndex, Outcome
from jobs.dataplane.rewrite import rewrite_base_file
from jobs.dataplane.split_writer import Rewrite, Source
from jobs.errors import RefusedError
from jobs.format.bucket_hash import bucket_ids
from jobs.storage.paths import of_hadoop
from tests.integration import tables
from tests.integration.independent import rows_by_hudi_rs, rows_by_spark
from tests.integration.run import hudi_table, run_job
from tests.integration.tables import INDEX
from tests.integration.test_base_file_fidelity import files_of, hudi_table_jvm
from tests.integration.test_generated_tables import History, generated, histories, write

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

KEY, NAME = "_hoodie_record_key", "_hoodie_file_name"
exhaustive = pytest.mark.exhaustive


def chunks(paths: list[Path]) -> list[tuple[Any, ...]]:
    """Returns the column chunks of all files, except those of `_hoodie_file_name`, as bytes in the files' order."""
    found = []
    for path in paths:
        footer, content = pq.read_metadata(path), path.read_bytes()
        for number in range(footer.num_row_groups):
            group = footer.row_group(number)
            for column in (group.column(place) for place in range(group.num_columns)):
                start = column.dictionary_page_offset or column.data_page_offset
                if column.path_in_schema != NAME:
                    found.append((column.path_in_schema, content[start : start + column.total_compressed_size]))
    return sorted(found)


@pytest.mark.parametrize(
    ("table_type", "version", "params", "factor"),
    [
        ("COPY_ON_WRITE", 9, {"sort_by": ["city", "id"]}, 2),
        pytest.param("MERGE_ON_READ", 6, {}, 2, marks=exhaustive),
        pytest.param("MERGE_ON_READ", 9, {"sort_by": ["city", "at"], "layout": "hilbert"}, 4, marks=exhaustive),
        pytest.param("COPY_ON_WRITE", 6, {"sort_by": ["city"]}, 2, marks=exhaustive),
    ],
)
def test_an_expansion_of_a_prepared_table_copies_its_row_groups_and_every_reader_finds_the_same_rows(
    spark: SparkSession, base: Path, table_type: str, version: int, params: dict[str, Any], factor: int
) -> None:
    # Hudi needs many times as long for this part as for the rest of the test.
    more = {"hoodie.metadata.index.column.stats.enable": str(version == 6).lower()}
    partitioned = table_type == "MERGE_ON_READ"
    options = tables.write_table(
        spark, base, updates=1, table_type=table_type, version=version, partitioned=partitioned, **more
    )
    before = tables.snapshot(spark, base)

    prepared = run_job(spark, base, "clustering", {**params, "expansion_factor": factor})

    assert prepared.details["files_copied"] == 0
    assert tables.in_order(spark, base, 4) == before
    files = files_of(base, prepared.instants[0])
    for path in files:
        with pq.ParquetFile(path) as file:
            for number in range(file.num_row_groups):
                keys = file.read_row_group(number, columns=[KEY]).column(0)
                assert len(set(bucket_ids(keys, ("id",), 4 * factor).tolist())) == 1
                if "city" in params.get("sort_by", ()) and params.get("layout") is None:
                    cities = file.read_row_group(number, columns=["city"]).column(0).to_pylist()
                    assert cities == sorted(cities)

    expanded = run_job(spark, base, "bucket_expansion", {"factor": 2})

    assert expanded.details["files_copied"] == expanded.details["files_written"] == (24 if partitioned else 8)
    assert chunks(files_of(base, expanded.instants[0])) == chunks(files)
    assert tables.in_order(spark, base, 8) == before
    assert rows_by_hudi_rs(base) == rows_by_spark(spark, base)
    skipping = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
    frame = spark.read.format("hudi").options(**skipping).load(str(base))
    expected = sorted(row.id for row in spark.read.format("hudi").load(str(base)).collect() if row.city > 900)
    assert sorted(row.id for row in frame.where("city > 900").collect()) == expected
    require_what_hudi_keeps_in_footers(spark, base, files_of(base, expanded.instants[0]))

    tables.upsert(tables.rows(spark, 100, 900, ts=7), base, options)  # its options still have 4 buckets
    if table_type == "MERGE_ON_READ":
        assert run_job(spark, base, "compaction").outcome is Outcome.SUCCEEDED
    assert len(tables.in_order(spark, base, 8)) == 900
    assert run_job(spark, base, "audit").details["clean"]


def require_what_hudi_keeps_in_footers(spark: SparkSession, base: Path, files: list[Path]) -> None:
    jvm = hudi_table_jvm(spark)
    storage = hudi_table(spark, base, INDEX).meta.getStorage()
    reader = jvm.hudi.common.util.ParquetUtils()
    assert files
    for path in files:
        where = jvm.hudi.storage.StoragePath(str(path))
        keys = pq.read_table(path, columns=[KEY], partitioning=None)[KEY].to_pylist()
        found = reader.readBloomFilterFromMetadata(storage, where)
        assert all(found.mightContain(key) for key in keys)
        assert sum(found.mightContain(f"other{number}") for number in range(100)) == 0
        assert list(reader.readMinMaxRecordKeys(storage, where)) == [min(keys), max(keys)]
        assert reader.getRowCount(storage, where) == len(keys)


@exhaustive
@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_row_groups_that_hudi_wrote_are_copied_so_that_parquets_own_reader_reads_them(
    spark: SparkSession, base: Path, codec: str
) -> None:
    """Hudi's writer makes lists of two levels, and pages, indexes and statistics of its own."""
    more = {"hoodie.parquet.compression.codec": codec}
    tables.write_table(spark, base, count=3000, table_type="COPY_ON_WRITE", partitioned=False, num_buckets=2, **more)
    work = Rewrite(of_hadoop(str(base), {}), "20260101000000000", ("id",))
    for path in sorted(base.glob("*.parquet")):
        bucket = int(path.name[:8])
        source = Source("", path.name[:38], bucket, 2, (bucket,), str(path))

        [written] = rewrite_base_file(work, source, "0-0-0")

        assert written.copied
        copy = base / written.file_name
        assert chunks([copy]) == chunks([path])
        both = [spark.read.parquet(str(each)).drop(NAME).collect() for each in (path, copy)]
        assert both[0] == both[1]
        assert len(both[0]) == written.rows
        [name] = spark.read.parquet(str(copy)).select(NAME).distinct().collect()
        assert name[0] == written.file_name
        # A filter makes the reader use statistics and page indexes.
        some = both[0][len(both[0]) // 3].id
        assert [row.id for row in spark.read.parquet(str(copy)).where(f"id = '{some}'").collect()] == [some]
        assert pq.read_table(copy).drop_columns([NAME]).equals(pq.read_table(path).drop_columns([NAME]))


def test_a_table_without_buckets_cannot_be_prepared(spark: SparkSession, base: Path) -> None:
    tables.write_table(spark, base, num_buckets=None, table_type="COPY_ON_WRITE", partitioned=False)
    with pytest.raises(RefusedError) as caught:
        run_job(spark, base, "clustering", {"expansion_factor": 2}, index=None)
    assert caught.value.problem().type == "expansion-factor-without-buckets"


@exhaustive
@pytest.mark.timeout(0)
@generated
@given(history=histories())
def test_every_row_of_a_generated_table_is_there_after_it_was_prepared_and_expanded(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, history: History
) -> None:
    base = tmp_path_factory.mktemp("generated") / "t"
    options = write(spark, base, history)
    if options is None:
        return
    before = tables.snapshot(spark, base)
    fields = ",".join(history.keys)
    index = BucketIndex(history.num_buckets, history.keys)
    run_job(spark, base, "clustering", {"expansion_factor": history.factor, "sort_by": ["ts"]}, index=index)
    assert tables.in_order(spark, base, history.num_buckets, fields) == before

    result = run_job(spark, base, "bucket_expansion", {"factor": history.factor}, index=index)

    assert result.details["files_copied"] > 0 or not before
    assert tables.in_order(spark, base, history.num_buckets * history.factor, fields) == before
    assert rows_by_hudi_rs(base) == rows_by_spark(spark, base)
    shutil.rmtree(base)
