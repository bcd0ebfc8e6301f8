"""A change of a table's version either succeeds or leaves rows, instants and files unchanged, whatever happens in
between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hudi import HudiTable as HudiRsTable

from jobs.contract import BucketIndex, Json, TableLock
from jobs.errors import HudiError, JobError, RefusedError
from jobs.hudi.upgrader import Upgrader
from jobs.services import upgrade
from tests.acceptance.storage import listing
from tests.integration import tables
from tests.integration.run import hudi_table, run_job
from tests.integration.tables import INDEX
from tests.integration.writers import At, HeldWriter, hold_lock

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

DECLARED = {"writers_stopped": True, "writers_hudi_version": "1.2.0", "readers_hudi_version": "1.2.0"}
ROWS = 80
ONE_BUCKET = BucketIndex(1, ("id",))
OF_INDEX: dict[str, dict[str, Any]] = {
    "bucket": {"num_buckets": 1, "hoodie.metadata.index.column.stats.enable": "true"},
    "one bucket": {"num_buckets": 1, "partitioned": False, "hoodie.metadata.index.column.stats.enable": "true"},
    "simple": {"num_buckets": None, "hoodie.index.type": "SIMPLE"},
    "statistics": {"num_buckets": None, "partitioned": False, "hoodie.metadata.index.column.stats.enable": "true"},
    "record": {
        "num_buckets": None,
        "hoodie.index.type": "RECORD_INDEX",
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.metadata.global.record.level.index.enable": "true",
        "hoodie.metadata.index.column.stats.enable": "true",
        "hoodie.metadata.index.bloom.filter.enable": "true",
    },
}
# Partitions would triple the files of each commit. Rows that would be merged differently are on the way back to 6.
_SHORT = ((6, 9), "MERGE_ON_READ", "one bucket", True)
_MATRIX = [
    (path, table_type, index, metadata)
    for path in [(6, 9, 6), (6, 8, 9), (8, 9, 8), (9, 6, 8, 6)]
    for table_type in ("MERGE_ON_READ", "COPY_ON_WRITE")
    for index in ("bucket", "simple", "statistics", "record")
    for metadata in (True, False)
    if metadata or index in ("bucket", "simple")
]
_MATRIX += [((9, 8), "COPY_ON_WRITE", "statistics", True), ((6, 9, 6), *_SHORT[1:])]
COW_6: dict[str, Any] = {"version": 6, "table_type": "COPY_ON_WRITE", "partitioned": False}


def change(spark: SparkSession, base: Path, to: int, index: BucketIndex | None = INDEX, **plan: Any) -> Json:
    declared = {**DECLARED, **plan.pop("declared", {})}
    return run_job(spark, base, "upgrade", {"to_version": to}, index=index, declared=declared, **plan).details


@pytest.mark.parametrize(
    ("path", "table_type", "index", "metadata"),
    [_SHORT, *(pytest.param(*each, marks=pytest.mark.exhaustive) for each in _MATRIX)],
)
def test_rows_instants_and_writers_go_on_in_each_version(
    spark: SparkSession, base: Path, path: tuple[int, ...], table_type: str, index: str, metadata: bool
) -> None:
    declared = ONE_BUCKET if "bucket" in index else None
    shape = {"version": path[0], "table_type": table_type, "metadata": metadata, **OF_INDEX[index]}
    options = tables.write_table(spark, base, count=ROWS, updates=1, **shape)
    for number, to in enumerate(path[1:], 2):
        rows, instants = tables.snapshot(spark, base), _completed(spark, base)
        planned = change(spark, base, to, declared, dry_run=True)
        assert planned["refusals"] == []
        properties = _properties(base)
        done = change(spark, base, to, declared)
        assert hudi_table(spark, base, declared).version == to
        assert (done["rows"], done["indexes_dropped"]) == (ROWS, planned["indexes_dropped"])
        foreseen = {each["name"]: (each["before"], each["after"]) for each in planned["properties"]}
        assert foreseen == _changes(properties, _properties(base))
        _require_same_rows(spark, base, rows)
        assert instants <= (now := _completed(spark, base))
        assert len(now - instants) == (1 if planned["file_groups_with_logs"] else 0)
        # A writer whose options still have the first version keeps the version that the table has.
        tables.upsert(tables.rows(spark, 0, ROWS // 2, ts=number), base, options)
        assert hudi_table(spark, base, declared).version == to
        audit = run_job(spark, base, "audit", index=declared).details
        assert (audit["clean"], audit["rows"], audit["duplicates"]) == (True, ROWS, 0), audit
        assert spark.read.format("hudi").load(str(base)).where(f"ts = {number}").count() == ROWS // 2


@pytest.mark.parametrize("problem", ["upgrade-differs", pytest.param("hudi-error", marks=pytest.mark.exhaustive)])
def test_a_change_that_fails_or_has_differences_is_undone_to_the_byte(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch, problem: str
) -> None:
    tables.write_table(spark, base, count=ROWS, updates=1, **COW_6)
    before, rows = _files(base), tables.snapshot(spark, base)
    run = Upgrader.run

    def dies(self: Upgrader, to: int) -> None:
        run(self, to)
        raise HudiError("the disk is full")

    def loses(self: Upgrader, to: int) -> None:
        run(self, to)
        max((base / ".hoodie" / "timeline").glob("*_*.commit")).unlink()

    monkeypatch.setattr(Upgrader, "run", loses if problem == "upgrade-differs" else dies)
    with pytest.raises(JobError) as ended:
        change(spark, base, 9)
    assert ended.value.type == problem, ended.value.detail
    assert _files(base) == before
    monkeypatch.undo()
    assert tables.snapshot(spark, base) == rows


@pytest.mark.exhaustive
@pytest.mark.parametrize("to", [8, 6])
def test_indexes_that_a_change_drops_come_back_if_it_fails(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch, to: int
) -> None:
    shape = {"table_type": "COPY_ON_WRITE", "partitioned": False, **OF_INDEX["record"]}
    options = tables.write_table(spark, base, count=ROWS, updates=1, **shape)
    before, rows = _files(base), tables.snapshot(spark, base)
    run = Upgrader.run

    def dies(self: Upgrader, to: int) -> None:
        run(self, to)
        assert not (base / ".hoodie" / "metadata" / "column_stats").exists()
        raise HudiError("the disk is full")

    monkeypatch.setattr(Upgrader, "run", dies)
    with pytest.raises(JobError, match="the disk is full"):
        change(spark, base, to, None)
    assert _files(base) == before
    monkeypatch.undo()
    assert tables.snapshot(spark, base) == tables.snapshot(spark, base, metadata=False) == rows
    tables.upsert(tables.rows(spark, 0, ROWS, ts=5), base, options)
    assert "column_stats" in change(spark, base, to, None)["indexes_dropped"]
    assert run_job(spark, base, "audit", index=None).details["clean"]


def test_writes_during_an_interrupted_change_are_not_undone(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = tables.write_table(spark, base, count=ROWS, **COW_6)
    # The worker dies right after Hudi's upgrader, before it can restore the backup.
    monkeypatch.setattr(upgrade, "_take_back", lambda *_: None)
    with pytest.raises(ZeroDivisionError):
        change(spark, base, 9, context=At("comparing", lambda: 1 // 0))
    monkeypatch.undo()
    for kind in ("audit", "cleaning", "diagnosis"):
        with pytest.raises(RefusedError) as refused:
            run_job(spark, base, kind, {"retain": 1} if kind == "cleaning" else None)
        assert [each.type for each in refused.value.reasons] == ["upgrade-unfinished"]
    assert _types(change(spark, base, 9, dry_run=True)) == ["upgrade-unfinished"]

    tables.upsert(tables.rows(spark, 0, 10, ts=7), base, options)
    with pytest.raises(RefusedError) as refused:
        change(spark, base, 9)
    assert [each.type for each in refused.value.reasons] == ["written-since-upgrade"]
    assert spark.read.format("hudi").load(str(base)).where("ts = 7").count() == 10


def test_each_reason_against_a_change_is_reported(spark: SparkSession, base: Path) -> None:
    options = tables.write_table(spark, base, count=ROWS, **COW_6)
    before = _files(base)

    def refusals(to: int = 9, **plan: Any) -> list[str]:
        assert _files(base) == before
        return _types(change(spark, base, to, dry_run=True, **plan))

    assert refusals(declared={"writers_stopped": False}) == ["writers-not-stopped"]
    assert refusals(declared={"writers_hudi_version": "1.0.2"}) == ["hudi-too-old-for-version"]
    assert refusals(8, declared={"writers_hudi_version": "1.0.2"}) == []
    assert refusals(declared={"readers_hudi_version": None}) == ["versions-not-declared"]
    assert refusals(7) == ["version-not-offered"]
    assert change(spark, base, 6, dry_run=True)["nothing_to_do"]

    held = HeldWriter(tables.rows(spark, 0, 5, ts=3), base, options).start()
    assert _types(change(spark, base, 9, dry_run=True)) == ["writers-active"]
    with pytest.raises(RefusedError):
        change(spark, base, 9)
    held.finish()
    run_job(spark, base, "savepoint")
    assert _types(change(spark, base, 9, dry_run=True)) == ["upgrade-not-proved"]


def test_a_table_whose_rows_would_be_merged_differently_is_refused(spark: SparkSession, base: Path) -> None:
    merging = {"hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"}
    tables.write_table(spark, base, count=ROWS, version=9, partitioned=False, **merging)
    rows = tables.snapshot(spark, base)
    assert change(spark, base, 6)["rows"] == ROWS
    _require_same_rows(spark, base, rows)
    refused = change(spark, base, 9, dry_run=True)["refusals"]
    assert [each["type"] for each in refused] == ["upgrade-not-proved"]
    assert "EVENT_TIME_ORDERING" in refused[0]["detail"]


def test_the_change_waits_for_the_lock_and_holds_it(spark: SparkSession, base: Path) -> None:
    tables.write_table(spark, base, count=ROWS, **COW_6 | {"version": 8, "metadata": False})
    lock = hold_lock(base)
    context = At("planning", lambda: None, ("backing up", lambda: pytest.fail("the lock is another's")))
    with pytest.raises(JobError) as ended:
        change(spark, base, 9, context=context, declared={"lock": TableLock(wait_seconds=1)})
    assert ended.value.type == "table-locked"
    lock.unlink()
    held: list[bool] = []
    steps = [(step, lambda: held.append(lock.exists())) for step in ("changing", "comparing", "removing")]
    change(spark, base, 9, context=At("backing up", lambda: held.append(lock.exists()), *steps))
    assert held == [True] * 4
    assert not lock.exists()


def _types(planned: Json) -> list[str]:
    return [each["type"] for each in planned["refusals"]]


def _files(base: Path) -> dict[str, tuple[int, int]]:
    """Returns size and time in milliseconds of each file, without the checksums of Hadoop."""
    return {name: (size, time // 10**6) for name, (size, time) in listing(base).items() if ".crc" not in name}


def _completed(spark: SparkSession, base: Path) -> set[tuple[str, str]]:
    instants = hudi_table(spark, base, INDEX).instants()
    return {(each.requested, each.action) for each in instants if each.state == "COMPLETED"}


def _require_same_rows(spark: SparkSession, base: Path, rows: list[str]) -> None:
    assert tables.snapshot(spark, base) == rows
    assert tables.snapshot(spark, base, metadata=False) == rows
    # A reader that shares no code with Hudi's.
    found = pa.Table.from_batches(HudiRsTable(str(base)).read()).select(["id", "ts", "fare"]).to_pylist()
    expected = tables.collected(spark, base).rows
    assert sorted(tuple(each.values()) for each in found) == sorted((row.id, row.ts, row.fare) for row in expected)
    assert not (base / ".hoodie" / ".aux" / "groundskeeper.upgrade").exists()


def _properties(base: Path) -> dict[str, str]:
    lines = (base / ".hoodie" / "hoodie.properties").read_text().splitlines()
    found = dict(line.split("=", 1) for line in lines if "=" in line)
    return {name: value.replace("\\", "") for name, value in found.items() if "checksum" not in name}


def _changes(before: dict[str, str], after: dict[str, str]) -> dict[str, tuple[str | None, str | None]]:
    names = (before.keys() | after.keys()) - {"hoodie.table.metadata.partitions"}
    both = {name: (before.get(name), after.get(name)) for name in names}
    return {name: values for name, values in both.items() if values[0] != values[1]}
