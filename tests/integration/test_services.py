"""Each service on real tables of each shape keeps the rows and their buckets, and writers with old options continue."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise, product
from typing import TYPE_CHECKING

import pytest

from jobs.contract import BucketIndex, JobKind, Outcome
from jobs.errors import RefusedError
from jobs.kinds.registry import KINDS
from service.queue.attempt_figures import of_attempt
from service.queue.job import AttemptOutcome, Job
from tests.integration import tables
from tests.integration.independent import rows_by_hudi_rs, rows_by_spark
from tests.integration.run import run_job

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import Row, SparkSession

    from jobs.contract import Result
    from service.queue.attempt_figures import Figures

# The acceptance test of the services has a partitioned merge-on-read table of version 9.
OF_A_SHORT_RUN = [("COPY_ON_WRITE", 6, False)]
SHAPES = [
    pytest.param(
        *shape,
        id=f"{shape[0][:1]}-v{shape[1]}-{'partitioned' if shape[2] else 'flat'}",
        marks=() if shape in OF_A_SHORT_RUN else pytest.mark.exhaustive,
    )
    for shape in product(("MERGE_ON_READ", "COPY_ON_WRITE"), (9, 6), (True, False))
]
NOW = datetime(2026, 1, 1, tzinfo=UTC)
MISPLACED = [("bucket_expansion", "COPY_ON_WRITE", 4, 2)]


def figures_of(kind: str, result: Result) -> Figures:
    """Returns the figures that a report sums up, of the real result of a job."""
    job = Job("job", "tbl", JobKind(kind), NOW, NOW, leased_at=NOW, attempt=1)
    return of_attempt(job, AttemptOutcome.SUCCEEDED, KINDS[job.kind].result.parse(result.to_json()["details"]), NOW)


def size_of(base: Path) -> int:
    """Returns the size of all base and log files."""
    files = [
        each for each in base.rglob("*") if ".hoodie" not in each.relative_to(base).parts and each.suffix != ".crc"
    ]
    return sum(each.stat().st_size for each in files if each.suffix == ".parquet" or ".log." in each.name)


@pytest.mark.parametrize(("table_type", "version", "partitioned"), SHAPES)
def test_all_services_one_after_the_other_keep_every_row_and_bucket(
    spark: SparkSession, base: Path, table_type: str, version: int, partitioned: bool
) -> None:
    options = tables.write_table(
        spark, base, table_type=table_type, version=version, partitioned=partitioned, updates=1
    )
    merge_on_read = table_type == "MERGE_ON_READ"

    def proved_rows(num_buckets: int) -> list[str]:
        rows = tables.in_order(spark, base, num_buckets)
        assert rows_by_hudi_rs(base) == rows_by_spark(spark, base)
        audit = run_job(spark, base, "audit").details
        assert audit["clean"], audit
        assert audit["rows"] == len(rows)
        return rows

    before = tables.in_order(spark, base, 4)
    assert len(before) == 600

    # The logs are still uncompacted, so the split reads the merged rows.
    expanded = run_job(spark, base, "bucket_expansion", {"num_buckets": 8})
    assert expanded.outcome is Outcome.SUCCEEDED
    assert expanded.details["buckets"] == [4, 8]
    assert expanded.details["rows"] == 600
    figures = figures_of("bucket_expansion", expanded)
    assert (figures.files_before, figures.files_after) == (
        expanded.details["files_read"],
        expanded.details["files_written"],
    )
    assert figures.files_after > 0
    assert figures.locked_seconds == expanded.details["locked_seconds"] > 0
    assert tables.in_order(spark, base, 8) == before

    # The writer's options still have 4 buckets; Hudi must follow the hashing config.
    tables.upsert(tables.rows(spark, 300, 700, ts=7), base, options)
    before = tables.snapshot(spark, base)
    assert len(before) == 700

    if merge_on_read:
        compacted = run_job(spark, base, "compaction")
        assert len(compacted.instants) == 1
        assert compacted.details["log_files"] > 0
        figures = figures_of("compaction", compacted)
        assert (figures.log_files, figures.log_bytes) == (
            compacted.details["log_files"],
            compacted.details["log_bytes"],
        )
        written = base.rglob(f"*_{compacted.instants[0]}.parquet")
        assert compacted.details["bytes_written"] == sum(each.stat().st_size for each in written) > 0
        assert tables.snapshot(spark, base) == before

    clustered = run_job(spark, base, "clustering", {"sort_by": ["city", "fare"], "layout": "zorder"})
    assert clustered.details["inside_buckets"] is True
    assert tables.snapshot(spark, base) == before

    stored = size_of(base)
    cleaned = run_job(spark, base, "cleaning", {"policy": "KEEP_LATEST_COMMITS", "retain": 1})
    assert 0 < figures_of("cleaning", cleaned).freed_bytes == stored - size_of(base)
    assert cleaned.details["files_deleted"] > 0
    assert cleaned.details["failed_deletes"] == 0
    assert tables.snapshot(spark, base) == before

    tables.upsert(tables.rows(spark, 0, 800, ts=9), base, options)
    assert len(proved_rows(8)) == 800


@pytest.mark.parametrize(
    "layout",
    [
        pytest.param("linear", marks=pytest.mark.exhaustive),
        pytest.param("zorder", marks=pytest.mark.exhaustive),
        pytest.param("hilbert", marks=pytest.mark.exhaustive),
    ],
)
def test_a_table_without_bucket_index_is_clustered_by_hudi(spark: SparkSession, tmp_path: Path, layout: str) -> None:
    base = tmp_path / "plain"
    options = tables.write_table(spark, base, table_type="COPY_ON_WRITE", num_buckets=None)
    before = tables.snapshot(spark, base)

    result = run_job(spark, base, "clustering", {"sort_by": ["city", "fare"], "layout": layout}, index=None)

    assert result.details["inside_buckets"] is False
    assert len(result.instants) == 1
    assert tables.snapshot(spark, base) == before
    day = spark.read.format("hudi").load(str(base)).where("dt = '2026-01-01'").collect()
    cities = [row.city for row in day]
    if layout == "linear":
        assert cities == sorted(cities)
    else:
        # Neighbouring rows are near in both columns; in the order of the keys or of one column they are near in at most
        # one.
        assert _jumps(day) < min(_jumps(sorted(day, key=lambda row: row.fare)), _jumps(sorted(day, key=_city))) / 2
    tables.upsert(tables.rows(spark, 0, 700, ts=3), base, options)
    assert tables.duplicates(spark, base) == 0


def _city(row: Row) -> int:
    return int(row.city)


def _jumps(rows: list[Row]) -> float:
    """Returns the distance from each row to the next, by their ranks in both columns."""
    ranks = [
        {row.id: rank for rank, row in enumerate(sorted(rows, key=lambda row: row[by]))} for by in ("city", "fare")
    ]
    return sum(abs(rank[after.id] - rank[before.id]) for rank in ranks for before, after in pairwise(rows))


def test_rows_are_in_order_inside_each_file_after_clustering_in_buckets(spark: SparkSession, base: Path) -> None:
    import pyarrow.parquet as pq

    tables.write_table(spark, base, table_type="COPY_ON_WRITE", partitioned=False)
    instant = run_job(spark, base, "clustering", {"sort_by": ["city"]}).instants[0]
    files = [path for path in base.glob("*.parquet") if instant in path.name]
    assert len(files) == 4
    for path in files:
        cities = pq.read_table(path, columns=["city"])["city"].to_pylist()
        assert len(cities) > 100
        assert cities == sorted(cities)


@pytest.mark.exhaustive
def test_composite_keys_are_split_by_their_hash_fields(spark: SparkSession, tmp_path: Path) -> None:
    base = tmp_path / "composite"
    shape = {"record_key": "id,region", "hash_fields": "region,id", "table_type": "MERGE_ON_READ"}
    options = tables.write_table(spark, base, updates=1, num_buckets=2, **shape)
    before = tables.snapshot(spark, base)
    index = BucketIndex(2, ("region", "id"))

    run_job(spark, base, "bucket_expansion", {"factor": 3}, index=index)

    assert tables.snapshot(spark, base) == before
    assert tables.misplaced(spark, base, 6, "region,id") == 0
    tables.upsert(tables.rows(spark, 0, 700, ts=5), base, options)
    assert tables.misplaced(spark, base, 6, "region,id") == 0
    assert tables.duplicates(spark, base) == 0


@pytest.mark.exhaustive
def test_only_the_partitions_asked_for_get_more_buckets(spark: SparkSession, tmp_path: Path) -> None:
    base = tmp_path / "skewed"
    options = tables.write_table(spark, base, num_buckets=2)
    before = tables.snapshot(spark, base)
    index = BucketIndex(2, ("id",))

    run_job(spark, base, "bucket_expansion", {"factor": 4, "partitions": ["2026-01-02"]}, index=index)
    assert tables.snapshot(spark, base) == before
    tables.upsert(tables.rows(spark, 0, 900, ts=5, partitions=4), base, options)
    audit = run_job(spark, base, "audit", index=index).details
    assert audit["clean"], audit
    assert _buckets(base) == {"2026-01-01": 2, "2026-01-02": 8, "2026-01-03": 2, "2026-01-04": 2}

    # A later job expands the whole table, each partition by the same factor.
    before = tables.snapshot(spark, base)
    run_job(spark, base, "bucket_expansion", {"factor": 2}, index=index)
    assert tables.snapshot(spark, base) == before
    tables.upsert(tables.rows(spark, 0, 1000, ts=6, partitions=5), base, options)
    audit = run_job(spark, base, "audit", index=index).details
    assert audit["clean"], audit
    assert audit["rows"] == tables.duplicates(spark, base) + len(tables.snapshot(spark, base))
    run_job(spark, base, "cleaning", {"policy": "KEEP_LATEST_FILE_VERSIONS", "retain": 2}, index=index)
    assert _latest_buckets(spark, base) == {
        "2026-01-01": 4, "2026-01-02": 16, "2026-01-03": 4, "2026-01-04": 4, "2026-01-05": 4,
    }  # fmt: skip


def test_the_audit_finds_what_a_writer_with_another_bucket_number_did(spark: SparkSession, tmp_path: Path) -> None:
    base = tmp_path / "broken"
    options = tables.write_table(spark, base, table_type="COPY_ON_WRITE", num_buckets=2, partitioned=False)
    tables.upsert(tables.rows(spark, 0, 600, ts=5), base, {**options, "hoodie.bucket.index.num.buckets": "4"})

    audit = run_job(spark, base, "audit", index=BucketIndex(2, ("id",))).details

    assert not audit["clean"]
    assert audit["duplicates"] == tables.duplicates(spark, base) > 0
    assert audit["misplaced"] == tables.misplaced(spark, base, 2) > 0


@pytest.mark.parametrize(
    ("kind", "table_type", "num_buckets", "wrong"),
    [
        pytest.param(*case, marks=() if case in MISPLACED else pytest.mark.exhaustive)
        for case in (
            (kind, table_type, *numbers)
            for kind, table_type, numbers in product(
                ("bucket_expansion", "clustering"), ("COPY_ON_WRITE", "MERGE_ON_READ"), ((4, 2), (2, 4))
            )
        )
    ],
)
def test_a_table_with_misplaced_rows_is_refused_and_no_row_of_it_is_lost(
    spark: SparkSession, tmp_path: Path, kind: str, table_type: str, num_buckets: int, wrong: int
) -> None:
    base = tmp_path / "broken"
    options = tables.write_table(spark, base, table_type=table_type, num_buckets=num_buckets, partitioned=False)
    tables.upsert(tables.rows(spark, 0, 100, ts=5), base, {**options, "hoodie.bucket.index.num.buckets": str(wrong)})
    before = tables.snapshot(spark, base)
    assert tables.misplaced(spark, base, num_buckets) > 0
    params = {"factor": 2} if kind == "bucket_expansion" else {"sort_by": ["city"]}

    with pytest.raises(RefusedError) as refused:
        run_job(spark, base, kind, params, index=BucketIndex(num_buckets, ("id",)))

    assert refused.value.problem().type == "bucket-index-contradicted"
    assert tables.snapshot(spark, base) == before
    assert tables.left_behind(base) == []


def _buckets(base: Path) -> dict[str, int]:
    """Returns the highest bucket id of any file plus one, by partition."""
    found: dict[str, int] = {}
    for path in base.glob("2026-*/*.parquet"):
        found[path.parent.name] = max(found.get(path.parent.name, 0), int(path.name[:8]) + 1)
    return found


def _latest_buckets(spark: SparkSession, base: Path) -> dict[str, int]:
    rows = spark.read.format("hudi").load(str(base)).select("_hoodie_partition_path", "_hoodie_file_name").collect()
    found: dict[str, int] = {}
    for partition, name in rows:
        found[partition] = max(found.get(partition, 0), int(name[:8]) + 1)
    return found


@pytest.mark.exhaustive
def test_a_table_from_bulk_insert_by_the_row_writer_is_expanded_and_written_on(spark: SparkSession, base: Path) -> None:
    options = tables.writer_options(base, table_type="COPY_ON_WRITE")
    bulk = {**options, "hoodie.datasource.write.operation": "bulk_insert"}
    tables.upsert(tables.rows(spark, 0, 600), base, bulk)
    # The file ids lack the `-0` that all others have.
    assert all(path.name[36] == "_" for path in base.glob("*/*.parquet"))
    before = tables.snapshot(spark, base)

    run_job(spark, base, "bucket_expansion", {"num_buckets": 8})

    assert tables.in_order(spark, base, 8) == before
    tables.upsert(tables.rows(spark, 0, 700, ts=1), base, options)
    assert run_job(spark, base, "audit").details["clean"]
    assert len(tables.snapshot(spark, base)) == 700
