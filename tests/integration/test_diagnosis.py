"""A diagnosis finds and names each damage of tables that users have reported."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import BucketIndex
from jobs.errors import RefusedError
from jobs.format.bucket_rules import BucketRules
from jobs.hudi import hashing_config
from jobs.hudi.client import WriteClient
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.services.compaction import DUE
from tests.integration import tables
from tests.integration.plans import schedule_clustering
from tests.integration.run import hudi_table, proved, run_job

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    Damage = Callable[[Any, Path, dict[str, str]], None]

INDEX = BucketIndex(4, ("id",))
OLD = "20200101000000000"


def found(spark: SparkSession, base: Path, **more: Any) -> dict[str, dict[str, Any]]:
    """Returns the findings by type, after it has asserted that all checks were made."""
    details = run_job(spark, base, "diagnosis", **more).details
    assert details["unchecked"] == []
    assert details["healthy"] == (not details["findings"])
    return {finding["type"]: finding for finding in details["findings"]}


def timeline(base: Path, pattern: str) -> Path:
    return max((base / ".hoodie" / "timeline").glob(pattern))


def without_checksum(path: Path) -> Path:
    """Removes the file in which Hadoop's local file system keeps a checksum."""
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    return path


def wrong_number_larger(spark: SparkSession, base: Path, options: dict[str, str]) -> None:
    tables.upsert(tables.rows(spark, 0, 60, ts=9), base, {**options, "hoodie.bucket.index.num.buckets": "8"})


def wrong_number_smaller(spark: SparkSession, base: Path, options: dict[str, str]) -> None:
    tables.upsert(tables.rows(spark, 0, 60, ts=9), base, {**options, "hoodie.bucket.index.num.buckets": "2"})


def second_file_group(spark: SparkSession, base: Path, options: dict[str, str]) -> None:
    """Adds a second file group of the bucket, as two writers without a lock do."""
    first = min(base.glob("00000001-*.parquet"))
    tail = first.name[8:].replace(first.name[9:13], "beef", 1)
    shutil.copy(first, base / f"00000001{tail}")


def copied_file(spark: SparkSession, base: Path, options: dict[str, str]) -> None:
    """Adds the file of a second attempt of a task: the same file group and instant, another write token."""
    first = min(base.glob("00000001-*.parquet"))
    token = first.name.split("_")[1]
    shutil.copy(first, base / first.name.replace(f"_{token}_", f"_{token.replace('-', '-9', 1)}_"))


def second_file_group_of_logs(spark: SparkSession, base: Path, options: dict[str, str]) -> None:
    """Adds a second file group of logs, as Flink does after a failover before its first commit (#19907)."""
    log = min(base.glob(".00000001-*.log.*"))
    tail = log.name[9:].replace(log.name[10:14], "beef", 1)
    shutil.copy(log, base / f".00000001{tail}")


def random_file_id(spark: SparkSession, base: Path, options: dict[str, str]) -> None:
    without = {key: value for key, value in options.items() if "index" not in key}
    bulk = {"hoodie.datasource.write.operation": "bulk_insert", "hoodie.index.type": "SIMPLE"}
    tables.upsert(tables.rows(spark, 900, 920, ts=9), base, {**without, **bulk})


def dangling_config(spark: SparkSession, base: Path, options: dict[str, str]) -> None:
    """Adds the hashing config of a dead expansion. Hudi uses the config as soon as the active timeline begins after
    it."""
    table = hudi_table(spark, base, INDEX)
    rules = table.bucket_rules()
    assert rules
    hashing_config.write(table, rules, BucketRules.uniform(8), OLD)


def compaction_without_files(spark: SparkSession, base: Path, options: dict[str, str]) -> None:
    with WriteClient(hudi_table(spark, base, INDEX), UNDER_OUR_LOCK, DUE) as client:
        assert client.schedule_compaction()
    min(base.glob(".00000000-*.log.*")).unlink()


def unreadable_plan(spark: SparkSession, base: Path, options: dict[str, str]) -> None:
    with WriteClient(hudi_table(spark, base, INDEX), UNDER_OUR_LOCK, DUE) as client:
        assert client.schedule_compaction()
    without_checksum(timeline(base, "*.compaction.requested")).write_bytes(b"not a plan")


def dead_writer(spark: SparkSession, base: Path, options: dict[str, str]) -> None:
    """Adds the instant and the heartbeat of a writer, both ten minutes old."""
    now = hudi_table(spark, base, INDEX).now()
    instant = f"{now:%Y%m%d%H%M%S}000"
    (base / ".hoodie" / "timeline" / f"{instant}.deltacommit.requested").touch()
    (base / ".hoodie" / "timeline" / f"{instant}.deltacommit.inflight").touch()
    heartbeat = base / ".hoodie" / ".heartbeat" / instant
    heartbeat.parent.mkdir(exist_ok=True)
    heartbeat.touch()
    os.utime(heartbeat, (time.time() - 600, time.time() - 600))


def old_markers(spark: SparkSession, base: Path, options: dict[str, str]) -> None:
    folder = base / ".hoodie" / ".temp" / OLD
    folder.mkdir(parents=True)
    (folder / "MARKERS.type").write_text("DIRECT")
    # Folders that are not instants cause no failure, and are not changed.
    for name in ("00000000000000000", "123", "x"):
        (folder.parent / name).mkdir()


def empty_commit(spark: SparkSession, base: Path, options: dict[str, str]) -> None:
    without_checksum(timeline(base, "*_*.deltacommit")).write_bytes(b"")


def garbage_commit(spark: SparkSession, base: Path, options: dict[str, str]) -> None:
    path = without_checksum(timeline(base, "*_*.deltacommit"))
    path.write_bytes(path.read_bytes()[:40])


def missing_request(spark: SparkSession, base: Path, options: dict[str, str]) -> None:
    timeline(base, "*.deltacommit.requested").unlink()


def missing_commit(spark: SparkSession, base: Path, options: dict[str, str]) -> None:
    """Removes all timeline files of the last but one commit."""
    tables.upsert(tables.rows(spark, 0, 60, ts=9), base, options)
    last = sorted((base / ".hoodie" / "timeline").glob("*_*.deltacommit"))[-2].name.split("_")[0]
    for path in (base / ".hoodie" / "timeline").glob(f"*{last}*"):
        path.unlink()


def clustering_of_buckets(spark: SparkSession, base: Path, options: dict[str, str]) -> None:
    assert not spark.sql(f"CALL run_clustering(path => '{base}', op => 'schedule', order => 'city')").collect()


def files_gone(spark: SparkSession, base: Path, options: dict[str, str]) -> None:
    max(base.glob(".00000002-*.log.*")).unlink()


def old_metadata_table(spark: SparkSession, base: Path, options: dict[str, str]) -> None:
    """Restores the folder of the metadata table from a backup that is older than the table."""
    shutil.copytree(base / ".hoodie" / "metadata", base.parent / "backup")
    tables.upsert(tables.rows(spark, 0, 60, ts=9), base, options)
    shutil.rmtree(base / ".hoodie" / "metadata")
    shutil.copytree(base.parent / "backup", base / ".hoodie" / "metadata")


def abandoned_lock(spark: SparkSession, base: Path, options: dict[str, str]) -> None:
    lock = base / ".hoodie" / "lock"
    lock.write_text(json.dumps({"owner": "spark"}))
    os.utime(lock, (time.time() - 7200, time.time() - 7200))


def late_log(spark: SparkSession, base: Path, options: dict[str, str]) -> None:
    """Adds a writer's log after the rollback of its instant."""
    tables.upsert(tables.rows(spark, 0, 60, ts=9), base, options)
    instant = sorted(item.name.split("_")[0] for item in (base / ".hoodie" / "timeline").glob("*_*.deltacommit"))[-1]
    kept = base.parent / "kept"
    kept.mkdir()
    logs = list(base.glob(f".*_{instant}.log.*"))
    assert logs
    for log in logs:
        shutil.copy(log, kept / log.name)
    run_job(spark, base, "rollback", {"instant": instant, "table_name": "test"}, writers_stopped=True)
    for log in kept.iterdir():
        shutil.copy(log, base / log.name)


def stuck_archival(spark: SparkSession, base: Path, options: dict[str, str]) -> None:
    """Adds a plan that nobody executes, which keeps all later commits on the timeline (#9478)."""
    with WriteClient(hudi_table(spark, base, INDEX), UNDER_OUR_LOCK, DUE) as client:
        assert client.schedule_compaction()
    for ts in range(62):
        tables.upsert(tables.rows(spark, 0, 4, ts=9 + ts), base, options)


DAMAGES: dict[Damage, str] = {
    wrong_number_larger: "bucket-beyond-number",
    wrong_number_smaller: "rows-in-wrong-bucket",
    copied_file: "files-without-commit",
    second_file_group: "several-file-groups-in-bucket",
    second_file_group_of_logs: "several-file-groups-in-bucket",
    random_file_id: "file-ids-without-bucket",
    dangling_config: "hashing-config-dangling",
    compaction_without_files: "plan-files-gone",
    unreadable_plan: "plan-unreadable",
    clustering_of_buckets: "plan-unusable",
    dead_writer: "dead-write",
    old_markers: "markers-left",
    empty_commit: "timeline-file-broken",
    garbage_commit: "timeline-file-broken",
    missing_request: "timeline-file-missing",
    missing_commit: "commit-missing",
    files_gone: "metadata-table-out-of-step",
    old_metadata_table: "metadata-table-out-of-step",
    abandoned_lock: "lock-left",
    late_log: "files-of-rolled-back-write",
    stuck_archival: "archival-stuck",
}


@pytest.mark.exhaustive
def test_a_table_that_was_registered_without_its_bucket_index_is_examined_by_the_one_that_is_given(
    spark: SparkSession, base: Path
) -> None:
    options = tables.write_table(spark, base, count=200, partitioned=False, updates=1)
    wrong_number_smaller(spark, base, options)
    claimed = {"index": {"type": "bucket", "num_buckets": 4, "hash_fields": ["id"]}}
    details = run_job(spark, base, "diagnosis", claimed, index=None).details
    assert "rows-in-wrong-bucket" in {finding["type"] for finding in details["findings"]}


@pytest.mark.exhaustive
def test_a_metadata_table_that_lists_files_that_are_gone_is_not_built_anew(spark: SparkSession, base: Path) -> None:
    files_gone(spark, base, tables.write_table(spark, base, count=200, partitioned=False, updates=1))
    with pytest.raises(RefusedError) as caught:
        run_job(spark, base, "metadata_table", {"action": "rebuild"}, writers_stopped=True)
    assert [reason.type for reason in caught.value.reasons] == ["files-gone"]
    assert "metadata-table-out-of-step" in {
        finding["type"] for finding in run_job(spark, base, "metadata_table").details["findings"]
    }


@pytest.mark.exhaustive
def test_a_diagnosis_beside_a_live_writer_finds_nothing(spark: SparkSession, base: Path) -> None:
    options = tables.write_table(spark, base, count=200, updates=1)
    stopped = threading.Event()
    written: list[int] = []

    def write() -> None:
        while not stopped.is_set():
            tables.upsert(tables.rows(spark, 0, 200, ts=len(written) + 10), base, options)
            written.append(len(written) + 10)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        results = [found(spark, base) for _ in range(6)]
    finally:
        stopped.set()
        writer.join()
    assert results == [{}] * 6
    assert len(written) >= 3


CURED = [dangling_config, dead_writer, old_markers, late_log, old_metadata_table, clustering_of_buckets]


@pytest.mark.exhaustive
@pytest.mark.parametrize("damage", [each for each in DAMAGES if each not in CURED], ids=lambda damage: damage.__name__)
def test_each_damage_is_found(spark: SparkSession, base: Path, damage: Damage) -> None:
    options = tables.write_table(spark, base, count=200, partitioned=False, updates=1)
    assert found(spark, base) == {}
    damage(spark, base, options)

    details = run_job(spark, base, "diagnosis").details

    assert DAMAGES[damage] in {finding["type"] for finding in details["findings"]}, details
    assert not details["healthy"]


@pytest.mark.parametrize(
    "damage",
    [pytest.param(each, id=each.__name__, marks=[pytest.mark.exhaustive][each is old_markers :]) for each in CURED],
)
def test_each_damage_that_can_be_cured_is_found_and_cured(spark: SparkSession, base: Path, damage: Damage) -> None:
    options = tables.write_table(spark, base, count=200, partitioned=False, updates=1)
    damage(spark, base, options)
    before = tables.snapshot(spark, base, metadata=False)

    finding = found(spark, base, writers_retry_conflicts=True)[DAMAGES[damage]]
    kind, params = finding["cure"]["kind"], finding["cure"]["params"]
    planned = run_job(
        spark, base, kind, params, dry_run=True, writers_retry_conflicts=True, writers_stopped=kind == "metadata_table"
    ).details
    assert planned["refusals"] == []
    assert DAMAGES[damage] in found(spark, base, writers_retry_conflicts=True)
    run_job(spark, base, kind, params, writers_retry_conflicts=True, writers_stopped=kind == "metadata_table")

    assert found(spark, base, writers_retry_conflicts=True) == {}
    assert proved(spark, base, 4) == before
    tables.upsert(tables.rows(spark, 0, 250, ts=99), base, options)
    assert len(proved(spark, base, 4)) == 250


@pytest.mark.exhaustive
def test_a_clustering_plan_whose_files_are_gone_is_found_and_rolled_back(spark: SparkSession, base: Path) -> None:
    """Hudi #7035."""
    shape: dict[str, Any] = {"num_buckets": None, "partitioned": False, "table_type": "COPY_ON_WRITE"}
    options = tables.write_table(spark, base, count=200, updates=1, **shape)
    inline = {"hoodie.clustering.async.max.commits": "1", "hoodie.clustering.plan.strategy.sort.columns": "city"}
    with WriteClient(hudi_table(spark, base, None), UNDER_OUR_LOCK, inline) as client:
        instant = schedule_clustering(client)
    assert instant
    overwrite = {"hoodie.datasource.write.operation": "insert_overwrite_table"}
    plan = timeline(base, f"{instant}.clustering.requested")
    kept = plan.read_bytes()
    plan.unlink()
    tables.upsert(tables.rows(spark, 0, 50, ts=9), base, {**options, **overwrite})
    plan.write_bytes(kept)
    before = tables.snapshot(spark, base)

    [finding] = found(spark, base, index=None).values()
    assert finding["type"] == "plan-overtaken"
    assert finding["cure"] == {"kind": "rollback", "params": {"instant": instant}}
    run_job(spark, base, "rollback", {"instant": instant}, index=None)

    assert found(spark, base, index=None) == {}
    assert tables.snapshot(spark, base) == before


@pytest.mark.exhaustive
def test_a_hashing_config_that_a_writer_has_used_is_removed_by_a_repair_of_its_rows(
    spark: SparkSession, base: Path
) -> None:
    options = tables.write_table(spark, base, count=200, partitioned=False, updates=1)
    dangling_config(spark, base, options)
    tables.upsert(tables.rows(spark, 0, 60, ts=9), base, options)
    with pytest.raises(RefusedError) as caught:
        run_job(spark, base, "repair", {"leftovers": True})
    assert caught.value.reasons[0].type == "written-by-dangling-config"
    audited = {each["type"]: each for each in run_job(spark, base, "audit").details["findings"]}
    assert "hashing-config-dangling" in audited
    # The other rows are misplaced by the config alone.
    written = hudi_table(spark, base, INDEX).commits()[-1].write.instant
    cure = audited["rows-in-wrong-bucket"]["cure"]
    assert cure == {"kind": "repair", "params": {"instants": [written]}}

    run_job(spark, base, cure["kind"], cure["params"])

    newest = spark.read.format("hudi").load(str(base)).where("ts = 9").count()
    assert (len(proved(spark, base, 4)), newest) == (200, 60)
    tables.upsert(tables.rows(spark, 0, 210, ts=10), base, options)
    assert len(proved(spark, base, 4)) == 210
