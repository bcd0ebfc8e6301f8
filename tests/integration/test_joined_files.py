"""Tests the merge of small files of tables without a bucket index: row groups are copied where that is allowed, and all
readers and writers find the same rows as before. If the worker is killed at any step, the next attempt succeeds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.contract import Outcome
from jobs.errors import EngineRefusedError
from jobs.services import joining
from tests.integration import tables
from tests.integration.dying_job import DyingJob
from tests.integration.independent import rows_by_hudi_rs, rows_by_spark
from tests.integration.run import hudi_table, run_job, work_order
from tests.integration.writers import At

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from jobs.contract import Result
    from tests.integration.doomed import Spares


_ALONE = {"hoodie.parquet.small.file.limit": "0"}
_LZ4_RAW = {"hudi_options": {"hoodie.parquet.compression.codec": "lz4_raw"}}


def _copies_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the job copy row groups of any size, because those of the tests are small."""
    made = joining.compaction_of
    monkeypatch.setattr(joining, "compaction_of", lambda *arguments: replace(made(*arguments), copies_from=0))


def _table(spark: SparkSession, base: Path, *, operation: str = "upsert", **shape: Any) -> dict[str, str]:
    """Writes three file groups in each partition. A bulk insert writes Spark rows, an upsert Avro records,
    whose lists have another form in Parquet."""
    options = tables.writer_options(base, num_buckets=None, **shape)
    more = {**options, **_ALONE, "hoodie.datasource.write.operation": operation}

    def write(path: Path) -> None:
        tables.write_table(spark, path, count=120, num_buckets=None, **shape)
        tables.upsert(tables.rows(spark, 120, 240).coalesce(1), path, more)
        tables.upsert(tables.rows(spark, 240, 300).coalesce(1), path, {**options, **_ALONE})

    tables.prepared(base, f"to join {sorted(more.items())}", write)
    return options


def _evolved(rows: DataFrame) -> DataFrame:
    """Returns the rows with a wider column and a new one."""
    return rows.withColumn("city", F.col("city").cast("long")).withColumn("more", F.when(F.col("ts") > 0, "x"))


def _merge(spark: SparkSession, base: Path, **params: Any) -> Result:
    return run_job(spark, base, "clustering", params, index=None)


def _require_same(spark: SparkSession, base: Path, before: list[str], options: dict[str, str], count: int) -> None:
    assert tables.snapshot(spark, base) == tables.snapshot(spark, base, metadata=False) == before
    assert tables.left_behind(base) == []
    assert run_job(spark, base, "audit", index=None).details["clean"]
    names = spark.read.format("hudi").load(str(base)).select("_hoodie_file_name", F.input_file_name()).distinct()
    assert all(found.endswith(f"/{name}") for name, found in names.collect())
    # Each upsert finds its rows by the key ranges and Bloom filters.
    tables.upsert(tables.rows(spark, 0, count + 20, ts=9), base, {**options, "hoodie.index.type": "BLOOM"})
    after = spark.read.format("hudi").load(str(base))
    assert (after.count(), after.where("ts = 9").count()) == (count + 20, count + 20)
    assert tables.duplicates(spark, base) == 0


@pytest.mark.parametrize(
    ("table_type", "version", "partitions"),
    [
        ("COPY_ON_WRITE", 9, 1),
        pytest.param("COPY_ON_WRITE", 9, 3, marks=pytest.mark.exhaustive),
        pytest.param("COPY_ON_WRITE", 6, 3, marks=pytest.mark.exhaustive),
        pytest.param("MERGE_ON_READ", 8, 3, marks=pytest.mark.exhaustive),
    ],
)
def test_small_files_are_joined_without_decoding_rows(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch, table_type: str, version: int, partitions: int
) -> None:
    options = _table(spark, base, table_type=table_type, version=version, partitioned=partitions > 1)
    before, independent = tables.snapshot(spark, base), rows_by_hudi_rs(base)
    _copies_all(monkeypatch)

    planned = run_job(spark, base, "clustering", index=None, dry_run=True).details
    assert (planned["engine"], planned["engine_reasons"], planned["refusals"]) == ("arrow", [], [])
    done = _merge(spark, base, engine="arrow")
    assert done.outcome is Outcome.SUCCEEDED
    found = done.details
    assert found["file_groups"] == {"before": 3 * partitions, "after": partitions}
    assert (found["rows"], found["files_copied"]) == (300, partitions)
    assert (found["proof"]["rows_before"], found["proof"]["left_out"]) == (300, ["joined"])
    files = [item.base_file or "" for item in hudi_table(spark, base, None).file_slices()]
    assert [pq.read_metadata(path).num_row_groups for path in files] == [3] * partitions
    assert rows_by_hudi_rs(base) == independent
    filtered = spark.read.format("hudi").option("hoodie.enable.data.skipping", "true").load(str(base))
    assert filtered.where("_hoodie_record_key = 'k133' and city >= 0").count() == 1
    assert _merge(spark, base).details["nothing_to_do"]
    _require_same(spark, base, before, options, 300)


@pytest.mark.exhaustive
def test_files_of_other_schemas_and_slices_with_logs_are_decoded(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = _table(spark, base, operation="bulk_insert", partitioned=False)
    tables.upsert(_evolved(tables.rows(spark, 300, 330)).coalesce(1), base, {**options, **_ALONE})
    tables.upsert(_evolved(tables.rows(spark, 0, 40, ts=3)), base, options)
    delete = {**options, "hoodie.datasource.write.operation": "delete"}
    tables.upsert(_evolved(tables.rows(spark, 40, 50, ts=4)), base, delete)
    before, independent = tables.snapshot(spark, base), rows_by_hudi_rs(base)
    assert any(item.log_files for item in hudi_table(spark, base, None).file_slices())
    _copies_all(monkeypatch)

    found = _merge(spark, base, engine="arrow").details
    assert (found["file_groups"]["after"], found["rows"], found["files_copied"]) == (1, 320, 0)
    assert (found["merged"]["hudi"], found["merged"]["arrow"] > 0) == (0, True)
    assert tables.snapshot(spark, base) == before
    assert rows_by_hudi_rs(base) == independent
    assert not any(item.log_files for item in hudi_table(spark, base, None).file_slices())


@pytest.mark.exhaustive
@pytest.mark.parametrize(("table_type", "version"), [("MERGE_ON_READ", 9), ("MERGE_ON_READ", 6), ("COPY_ON_WRITE", 9)])
def test_rows_that_are_committed_during_a_join_are_in_its_files(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch, table_type: str, version: int
) -> None:
    options = _table(spark, base, table_type=table_type, version=version)
    _copies_all(monkeypatch)

    def commit_rows() -> None:
        tables.upsert(tables.rows(spark, 50, 350, ts=5).coalesce(1), base, {**options, **_ALONE})
        delete = {**options, "hoodie.datasource.write.operation": "delete"}
        tables.upsert(tables.rows(spark, 60, 70, ts=6).coalesce(1), base, delete)

    done = run_job(spark, base, "clustering", index=None, context=At("rewriting", commit_rows)).details
    assert (done["rewritten_again"], done["merged"]["hudi"]) == (9, 0)
    for metadata in (True, False):
        frame = spark.read.format("hudi").option("hoodie.metadata.enable", str(metadata).lower()).load(str(base))
        found = {row["id"]: row["ts"] for row in frame.select("id", "ts").collect()}
        assert found == {f"k{n}": 5 if n >= 50 else 0 for n in range(350) if not 60 <= n < 70}
    assert tables.duplicates(spark, base) == 0
    assert tables.left_behind(base) == []
    assert run_job(spark, base, "audit", index=None).details["clean"]


def test_small_row_groups_become_large_ones(spark: SparkSession, base: Path) -> None:
    options = _table(spark, base, table_type="COPY_ON_WRITE", version=9, partitioned=False)
    before = tables.snapshot(spark, base)
    # Only Hudi can write files of this codec.
    with pytest.raises(EngineRefusedError, match="lz4_raw"):
        run_job(spark, base, "clustering", {"engine": "arrow"}, index=None, declared=_LZ4_RAW)
    found = _merge(spark, base, engine="arrow").details
    assert (found["file_groups"], found["rows"], found["files_copied"]) == ({"before": 3, "after": 1}, 300, 0)
    files = [item.base_file or "" for item in hudi_table(spark, base, None).file_slices()]
    assert [pq.read_metadata(path).num_row_groups for path in files] == [1]
    _require_same(spark, base, before, options, 300)


COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
ROLLED_BACK = ".hoodie/**/*.rollback"
IN_METADATA = ".hoodie/metadata/.hoodie/**/*.deltacommit.requested"
FOUND = ({"at": "after", "name": "the commit"}, {"at": "end"})

# The points at which one attempt after the other dies.
_DEATHS: list[tuple[dict[str, Any], ...]] = [
    ({"at": "file", "name": "*/*.parquet", "nth": 2}, {"at": "before", "name": "the commit"}),
    ({"at": "after", "name": "inflight"}, {"at": "after", "name": "the rollback"}),
    ({"at": "unheard"}, {"at": "before", "name": "inflight"}),
    ({"at": "step", "name": "rewriting", "only": "python"}, {"at": "file", "name": ROLLED_BACK}),
    ({"at": "step", "name": "waiting for writers"}, {"at": "step", "name": "committing"}),
    ({"at": "file", "name": IN_METADATA}, {"at": "before", "name": "the rollback"}),
    *((each,) for each in FOUND),
]


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
@pytest.mark.parametrize("points", _DEATHS)
@pytest.mark.parametrize(("table_type", "version"), [(MOR, 9), (COW, 6)])
def test_wherever_the_worker_is_killed_the_next_attempt_succeeds(
    spark: SparkSession,
    base: Path,
    spares: Spares,
    table_type: str,
    version: int,
    points: tuple[dict[str, Any], ...],
) -> None:
    alone = {"hoodie.parquet.small.file.limit": "0"}
    options = tables.writer_options(base, table_type=table_type, version=version, num_buckets=None, **alone)
    for first in (0, 60, 120):
        tables.upsert(tables.rows(spark, first, first + 60).coalesce(1), base, options)
    tables.upsert(tables.rows(spark, 30, 90, ts=1), base, options)
    before = tables.snapshot(spark, base)
    job = DyingJob(spark, work_order(base, "clustering", index=None), spares)
    for point, death in zip(points, job.deaths(points), strict=True):
        assert death.result is None or point["at"] == "end"
        assert tables.snapshot(spark, base) == tables.snapshot(spark, base, metadata=False) == before

    done = job.finish().details

    assert ("found_completed" in done) == (points[-1] in FOUND)
    assert len(hudi_table(spark, base, None).file_slices()) == 3
    assert tables.snapshot(spark, base) == tables.snapshot(spark, base, metadata=False) == before
    assert tables.left_behind(base) == []
    assert rows_by_hudi_rs(base) == rows_by_spark(spark, base)
    tables.upsert(tables.rows(spark, 150, 220, ts=9), base, options)
    found = tables.snapshot(spark, base)
    assert (len(found), tables.duplicates(spark, base)) == (220, 0)
    audit = run_job(spark, base, "audit", index=None).details
    assert (audit["clean"], audit["pending_instants"]) == (True, []), audit
