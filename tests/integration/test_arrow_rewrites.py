"""Expansion, contraction and clustering write the same files whether Arrow merges slices with logs or Hudi does."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812

from jobs.contract import BucketIndex
from jobs.errors import EngineRefusedError, RefusedError
from tests.integration import tables
from tests.integration.both_engines import newest_files, require_same_newest_files
from tests.integration.independent import rows_by_hudi_rs, rows_by_spark
from tests.integration.run import proved, run_job
from tests.integration.tables import INDEX
from tests.integration.test_arrow_compaction import DELETE, written
from tests.integration.writers import At, HeldWriter, hold_lock

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

_PARTIAL_UPDATES = "org.apache.hudi.common.model.PartialUpdateAvroPayload"
EXPANSION = ("bucket_expansion", {"factor": 2}, 8)
CONTRACTION = ("bucket_contraction", {"factor": 2}, 2)
SORTED = ("clustering", {"sort_by": ["region", "city"]}, 4)
PREPARED = ("clustering", {"expansion_factor": 2}, 4)


def _shape(job: tuple[str, dict[str, Any], int], **shape: Any) -> Any:
    kind, params, buckets = job
    return pytest.param(kind, params, buckets, shape, id=f"{kind} {params} {shape}")


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("kind", "params", "buckets", "shape"),
    [
        *(_shape(job) for job in (EXPANSION, CONTRACTION, SORTED, PREPARED)),
        *(_shape(job, version=6) for job in (EXPANSION, CONTRACTION, SORTED)),
        _shape(EXPANSION, version=8),
        _shape(EXPANSION, partitioned=False),
        _shape(EXPANSION, metadata=False),
        _shape(EXPANSION, **{"hoodie.logfile.data.block.format": "parquet"}),
        _shape(EXPANSION, **{"hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"}),
        _shape(CONTRACTION, **{"hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"}),
    ],
)
def test_files_are_those_of_rows_that_hudi_merges(
    spark: SparkSession, tmp_path: Path, kind: str, params: dict[str, Any], buckets: int, shape: dict[str, Any]
) -> None:
    base = tmp_path / "orders"
    options = written(spark, base, **shape)
    before = tables.snapshot(spark, base)
    by_engine = {}
    for engine in ("hudi", "arrow"):
        copy = shutil.copytree(base, tmp_path / engine / base.name)
        details = run_job(spark, copy, kind, {**params, "engine": engine}).details
        merged = details["merged"]
        other = "hudi" if engine == "arrow" else "arrow"
        assert (merged[engine] > 0, merged[other], merged["reasons"]) == (True, 0, [])
        assert details["rows"] == len(before)
        by_engine[engine] = (copy, details["key_digest"])
    (theirs, digest), (ours, our_digest) = by_engine.values()
    assert digest == our_digest
    require_same_newest_files(theirs, ours)

    # The test also covers readers of the new files, and a writer with the old options.
    assert proved(spark, ours, buckets) == before
    assert rows_by_hudi_rs(ours) == rows_by_spark(spark, ours)
    tables.upsert(tables.rows(spark, 0, 420, ts=9).where("city % 3 = 0"), ours, options)
    after = proved(spark, ours, buckets)
    assert (len(after) > len(before), after == before) == (True, False)
    assert tables.left_behind(ours) == []


@pytest.mark.exhaustive
@pytest.mark.parametrize(("kind", "params", "buckets"), [EXPANSION, CONTRACTION])
def test_a_slice_that_only_hudi_can_merge_is_left_to_its_readers(
    spark: SparkSession, base: Path, kind: str, params: dict[str, Any], buckets: int
) -> None:
    tables.write_table(spark, base, count=120, updates=1)
    # The end of a log is missing: the remains of an append that has failed, which Hudi leaves out.
    log = min((base / "2026-01-02").glob(".0*.log.*[0-9]"))
    log.with_name(f".{log.name}.crc").unlink(missing_ok=True)
    log.write_bytes(log.read_bytes()[:-40])
    before = tables.snapshot(spark, base)
    with pytest.raises(EngineRefusedError, match="partition '2026-01-02', file group 0000"):
        run_job(spark, base, kind, {**params, "engine": "arrow"})
    assert tables.snapshot(spark, base) == before
    assert tables.left_behind(base) == []

    merged = run_job(spark, base, kind, params).details["merged"]
    assert (merged["arrow"] > 0, merged["hudi"]) == (True, 1)
    assert {each["type"] for each in merged["reasons"]} == {"merge-not-proved"}
    assert proved(spark, base, buckets) == before
    assert tables.left_behind(base) == []


@pytest.mark.exhaustive
@pytest.mark.parametrize(("kind", "params", "buckets"), [EXPANSION, CONTRACTION, SORTED])
def test_a_table_whose_merge_is_not_proved_is_read_by_hudi_or_refused(
    spark: SparkSession, base: Path, kind: str, params: dict[str, Any], buckets: int
) -> None:
    payload = {"hoodie.datasource.write.payload.class": _PARTIAL_UPDATES}
    options = tables.write_table(spark, base, count=60, **payload)
    # Columns that the newer row lacks keep their values.
    tables.upsert(tables.rows(spark, 0, 30, ts=2).withColumn("region", F.lit(None).cast("string")), base, options)
    before = tables.snapshot(spark, base)
    with pytest.raises(RefusedError) as refused:
        run_job(spark, base, kind, {**params, "engine": "arrow"})
    assert {each.type for each in refused.value.reasons} & {"payload-not-covered", "merge-properties-not-covered"}
    assert tables.left_behind(base) == []
    merged = run_job(spark, base, kind, params).details["merged"]
    assert (merged["arrow"], merged["hudi"] > 0, bool(merged["reasons"])) == (0, True, True)
    assert proved(spark, base, buckets) == before


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", [6, 9])
def test_slices_of_logs_alone_and_slices_without_any_row_left_are_expanded(
    spark: SparkSession, base: Path, version: int
) -> None:
    options = tables.write_table(spark, base, count=60, version=version, metadata=False, updates=1)
    tables.upsert(tables.rows(spark, 0, 60, ts=5).where("dt = '2026-01-02'"), base, options | DELETE)
    for path in (base / "2026-01-01").glob("0*.parquet"):
        path.unlink()
    before = tables.snapshot(spark, base)
    details = run_job(spark, base, "bucket_expansion", {"factor": 2, "engine": "arrow"}, index=INDEX).details
    assert (details["merged"]["hudi"], details["rows"]) == (0, len(before))
    assert tables.in_order(spark, base, 8) == before
    # All child buckets have files, also those without rows.
    assert len(newest_files(base)) == details["files_written"]
    tables.upsert(tables.rows(spark, 0, 70, ts=9), base, options)
    assert len(tables.in_order(spark, base, 8)) == 70


@pytest.mark.exhaustive
def test_composite_keys_with_logs_are_split_by_their_hash_fields(spark: SparkSession, base: Path) -> None:
    index = BucketIndex(2, ("id",))
    keys = {"record_key": "id,city", "hash_fields": "id"}
    options = tables.write_table(spark, base, count=80, num_buckets=2, updates=1, **keys)
    before = tables.snapshot(spark, base)
    run_job(spark, base, "bucket_expansion", {"factor": 3, "engine": "arrow"}, index=index)
    assert tables.in_order(spark, base, 6) == before
    tables.upsert(tables.rows(spark, 0, 80, ts=9), base, options)
    assert len(tables.in_order(spark, base, 6)) == 80


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", [6])
def test_logs_whose_write_completes_during_the_rewrite_are_merged_in_the_next_round(
    spark: SparkSession, tmp_path: Path, version: int
) -> None:
    """Before version 8 the logs of the write already belong to their slices when the job lists the files."""
    base = tmp_path / "orders"
    shape: dict[str, Any] = {"version": version, "metadata": False, "partitioned": False}
    options = tables.write_table(spark, base, count=60, copied=False, **shape)
    slow = {**options, "hoodie.write.lock.client.wait_time_ms_between_retry": "8000"}
    writer = HeldWriter(tables.rows(spark, 0, 60, ts=5), base, slow).start()
    lock = hold_lock(base)
    writer.let_go()
    seen: list[tuple[int, bool]] = []

    def logs() -> int:
        return len(list(base.rglob(".0*.log.*[0-9]")))

    def wait_for_logs() -> None:
        # All rows are written, and the writer waits for the lock.
        deadline = time.monotonic() + 60
        while logs() < 4:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        time.sleep(2)

    def rewrites() -> None:
        seen.append((logs(), bool(writer.pending())))

    wait_for_logs()
    context = At("planning", lock.unlink, ("rewriting", rewrites))
    details = run_job(spark, base, "bucket_expansion", {"factor": 2, "engine": "arrow"}, context=context).details
    writer.finish()
    assert seen == [(4, True)], "the logs were there, and their write had not completed"
    assert details["rewritten_again"] > 0
    found = proved(spark, base, 8)
    assert len(found) == 60
    assert spark.read.format("hudi").load(str(base)).where("ts = 5").count() == 60
