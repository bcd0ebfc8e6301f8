"""On S3 (moto's server, Hadoop's s3a), too, the next attempt succeeds wherever the worker is killed.

A file cannot be watched there, so a kill inside of a step comes some moments after the step's call has begun.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import BucketIndex, TableLock
from jobs.table_errors import MetadataTableBusyError
from tests.integration import indexed, tables
from tests.integration.doomed import Spares, Surroundings
from tests.integration.dying_job import DyingJob
from tests.integration.independent import rows_by_hudi_rs, rows_by_spark
from tests.integration.run import hudi_table, run_job, work_order
from tests.integration.stored_table import INDEX, PARTITIONS, rows
from tests.integration.test_bucket_resize import MERGE, SPLIT
from tests.integration.test_consistent_hashing import ENGINE
from tests.integration.test_index_builds import order
from tests.integration.test_s3 import Lake, lake, lock, on_s3
from tests.integration.test_upgrade import DECLARED
from tests.support.session_jars import jars_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

__all__ = ["lake", "lock", "on_s3"]

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(1200)]

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
COUNT, LAST = 120, 150
# The notes that unfinished jobs leave for their next attempt.
NOTES = tuple(f".hoodie/.aux/groundskeeper.{each}" for each in ("upgrade", "indexes", "indexing", "markers"))
STOPPED = {"writers_stopped": True}
# The metadata table's compaction has a heartbeat, which its next runner waits for.
SOON = {"hudi_options": {"hoodie.client.heartbeat.interval_in_ms": "1000"}}
RECORDS = {
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.metadata.record.index.enable": "true",
    **indexed.STATISTICS,
    **indexed.FEW_FILES,
}


def before(call: str, **more: Any) -> dict[str, Any]:
    return {"at": "before", "name": call, **more}


def after(call: str, **more: Any) -> dict[str, Any]:
    return {"at": "after", "name": call, **more}


def step(name: str, **more: Any) -> dict[str, Any]:
    return {"at": "step", "name": name, **more}


@dataclass(frozen=True)
class Case:
    """A job with the points at which one attempt after the other dies, and its table: `shape` are arguments of
    `tables.writer_options`, `index` is the declared bucket index before and after the job."""

    kind: str
    params: dict[str, Any]
    points: tuple[dict[str, Any], ...]
    shape: dict[str, Any]
    index: tuple[BucketIndex | None, BucketIndex | None] = (None, None)
    declared: dict[str, Any] = field(default_factory=dict)
    first: tuple[str, dict[str, Any]] | None = None  # A job that runs before the killed one.


_PLAIN: dict[str, Any] = {"num_buckets": None, "table_type": COW, "hoodie.parquet.small.file.limit": "0"}
_BUCKETS: dict[str, Any] = {"num_buckets": 2, "table_type": MOR}
_REPLACED = (before("the commit"), after("the rollback"))
_BUILDING = (before("the index", delay=1.0), before("the dropping"), after("the index"))
_UPGRADING = (
    after("the backup"),
    after("the upgrade"),
    before("the taking back", delay=0.1),
    before("the upgrade", delay=0.2),
    after("the taking back"),
    before("the end"),
)
THREE = BucketIndex(3, ("id",))
CASES = {
    "upgrade": Case("upgrade", {"to_version": 9}, _UPGRADING, {**_BUCKETS, "version": 8}, (INDEX, INDEX), DECLARED),
    "downgrade": Case("upgrade", {"to_version": 8}, _UPGRADING[1:3], {**_PLAIN, **RECORDS}, declared=DECLARED),
    "metadata table compacted": Case(
        "metadata_table",
        {"action": "compact"},
        (before("the metadata compaction", delay=0.5), after("the metadata compaction")),
        {**_PLAIN, **RECORDS},
        declared=SOON,
    ),
    "metadata table rebuilt": Case(
        "metadata_table",
        {"action": "rebuild"},
        (before("the building", delay=1.0), after("the building")),
        {**_PLAIN, **RECORDS},
        declared=STOPPED,
    ),
    "record index built": Case("index", order("build", "record"), _BUILDING, _PLAIN),
    "statistics built": Case(
        "index", order("build", "column_stats"), (_BUILDING[0], _BUILDING[2]), {**_PLAIN, "table_type": MOR}
    ),
    "record index dropped": Case(
        "index",
        order("drop", "record"),
        (before("the dropping", delay=0.3), after("the dropping")),
        _PLAIN,
        first=("index", order("build", "record")),
    ),
    "bucket count": Case(
        "bucket_count",
        {"num_buckets": 3},
        (after("the hashing config"), *_REPLACED),
        _BUCKETS,
        (INDEX, THREE),
    ),
    "hash ranges split": Case(
        "bucket_resize",
        SPLIT,
        (after("the hashing metadata"), after("the rollback"), before("the commit")),
        {**_BUCKETS, **ENGINE},
    ),
    "hash ranges merged": Case(
        "bucket_resize", MERGE, (before("the hashing metadata"), after("the commit")), {**_BUCKETS, **ENGINE}
    ),
    "files joined": Case("clustering", {}, (step("rewriting", delay=0.3), *_REPLACED), _PLAIN),
    "cleaned in parts": Case(
        "cleaning",
        {"retain": 1, "files_per_clean": 2},
        (after("the clean"), before("the clean", delay=0.2)),
        {**_BUCKETS, "table_type": COW},
        (INDEX, INDEX),
    ),
    "archived": Case(
        "archival",
        {"retain": 2},
        (before("the archival", delay=0.3), after("the archival")),
        {**_BUCKETS, "table_type": COW, "metadata": False},
        (INDEX, INDEX),
    ),
}


@pytest.fixture
def spares(on_s3: SparkSession, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Spares]:
    monkeypatch.setenv("GROUNDSKEEPER_LOCK_ROOTS", str(tmp_path))
    found = Spares(jars_of(on_s3), tmp_path, Surroundings(storage=lake.options))
    yield found
    found.end()


@pytest.mark.parametrize("name", CASES)
def test_wherever_the_worker_is_killed_the_next_attempt_succeeds(
    on_s3: SparkSession, lake: Lake, lock: TableLock, spares: Spares, name: str
) -> None:
    spark, case, base = on_s3, CASES[name], f"s3a://lake/{name.replace(' ', '_')}/trips"
    options = tables.writer_options(base, **{**case.shape, **lock.options})
    tables.upsert(rows(spark, 0, COUNT - 20), base, options)
    tables.upsert(rows(spark, COUNT - 20, COUNT), base, options)
    for ts in (1, 2):
        tables.upsert(rows(spark, 0, COUNT // 2, ts), base, options)
    had, has = case.index
    if case.first:
        done = run_job(spark, base, *case.first, index=had, lock=lock).details
        options |= {each["name"]: each["value"] for each in done["writer_options"]}
    expected, files = tables.snapshot(spark, base), data_files(lake, base)
    declared = case.declared
    job = DyingJob(spark, work_order(base, case.kind, case.params, index=had, lock=lock, declared=declared), spares)
    for point, death in zip(case.points, job.deaths(case.points), strict=True):
        assert death.result is None or "delay" in point, death
        assert tables.snapshot(spark, base) == expected, point

    done = finished(job)

    assert tables.snapshot(spark, base) == tables.snapshot(spark, base, metadata=False) == expected
    assert rows_by_hudi_rs(base, lake.for_hudi_rs) == rows_by_spark(spark, base)
    assert_done(spark, lake, base, name, done, files)
    assert [each for each in lake.names(base) if each.startswith(NOTES)] == []
    if case.kind != "archival":  # `left_behind` looks for the instants of all files on the timeline
        assert lake.left_behind(base) == []
    if case.kind == "index":
        printed = {each["name"]: each["value"] for each in done.get("writer_options", ())}
        options = (
            options | printed
            if case.params["action"] == "build"
            else tables.writer_options(base, **{**case.shape, **lock.options})
        )
    tables.upsert(rows(spark, COUNT // 2, LAST, 9), base, options)
    found = tables.snapshot(spark, base)
    assert (len(found), tables.duplicates(spark, base)) == (LAST, 0)
    assert found == tables.snapshot(spark, base, metadata=False)
    audit = run_job(spark, base, "audit", index=has, lock=lock).details
    assert (audit["clean"], audit["pending_instants"]) == (True, []), audit


def data_files(lake: Lake, base: str) -> set[str]:
    return {each for each in lake.names(base) if each.endswith(".parquet") and not each.startswith(".hoodie")}


def finished(job: DyingJob) -> Any:
    while True:
        try:
            return job.finish().details
        except MetadataTableBusyError:
            # The heartbeat of a killed runner has not expired.
            continue


def assert_done(spark: SparkSession, lake: Lake, base: str, name: str, done: Any, files: set[str]) -> None:
    """Asserts that the job has done what was asked for."""
    table, left = hudi_table(spark, base, None), data_files(lake, base)
    slices = table.file_slices()
    match name:
        case "upgrade":
            assert (table.version, done["undone"]) == (9, True)
        case "downgrade":
            assert table.version == 8
        case "metadata table compacted":
            files_now = run_job(spark, base, "metadata_table", {"action": "compact"}, index=None, dry_run=True).details
            assert (files_now["before"]["log_files"], files_now["pending"]) == (0, 0)
        case "metadata table rebuilt":
            assert {"files", "record_index", "column_stats"} <= table.metadata_partitions
        case "record index built" | "statistics built" | "record index dropped":
            verified = run_job(spark, base, "index", {}, index=None).details
            assert verified["differences"] == []
            built = {"record index built": {"record_index"}, "statistics built": {"column_stats", "partition_stats"}}
            assert set(verified["compared"]) == built.get(name, set())
        case "bucket count":
            assert len(slices) == 3 * len(PARTITIONS)
            assert len(tables.in_order(spark, base, 3)) == COUNT
        case "hash ranges split" | "hash ranges merged":
            assert len(slices) == {"split": 4, "merged": 1}[name.split()[-1]] * len(PARTITIONS)
        case "files joined":
            assert len(slices) == len(PARTITIONS)
        case "cleaned in parts":
            newest = sorted({each.rpartition("_")[2] for each in files})[-2:]
            assert left == {each for each in files if each.rpartition("_")[2] in newest} < files
        case "archived":
            assert len(table.commits()) == 2
