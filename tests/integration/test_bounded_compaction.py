"""Tests compactions of a part of a table, bounded by bytes and by partitions, until no logs are left."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import HeartbeatAnswer, JobKind, Outcome, Table, WorkOrder
from jobs.errors import RefusedError
from jobs.storage.permissions import Permissions
from jobs.worker.attempt import Attempt
from tests.integration import tables
from tests.integration.run import hudi_table, proved, run_job
from tests.integration.tables import INDEX

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

PARTITIONS = ("2026-01-01", "2026-01-02", "2026-01-03")


def _due(spark: SparkSession, base: Path) -> dict[str, list[int]]:
    """Returns the bytes of each file group with logs by partition, those with the most bytes of logs first."""
    slices = [item for item in hudi_table(spark, base, INDEX).file_slices() if item.log_files]
    ordered = sorted(slices, key=lambda item: item.log_bytes, reverse=True)
    return {
        partition: [item.bytes for item in ordered if item.partition == partition]
        for partition in PARTITIONS
        if any(item.partition == partition for item in ordered)
    }


def test_bounded_compactions_in_a_row_reach_a_compacted_table(spark: SparkSession, base: Path) -> None:
    tables.write_table(spark, base, count=300, updates=1)
    before = tables.snapshot(spark, base)
    due = _due(spark, base)
    newest = due["2026-01-03"]

    # Two of the four file groups of the newest partition fit; one more byte would be too much.
    params: dict[str, Any] = {"limit_bytes": newest[0] + newest[1]}
    planned = run_job(spark, base, "compaction", params, dry_run=True).details
    first = run_job(spark, base, "compaction", params)
    assert first.outcome is Outcome.SUCCEEDED
    assert first.details["bytes"] == params["limit_bytes"]
    assert first.details["left"] == {
        "file_groups": 10,
        "bytes": sum(map(sum, due.values())) - newest[0] - newest[1],
        "plans": [],
    }
    foreseen = first.details.keys() - {"withheld_plans", "rows", "key_digest", "proof", "engines", "bytes_written"}
    assert {name: planned[name] for name in foreseen} == {name: first.details[name] for name in foreseen}
    assert _due(spark, base) == {**due, "2026-01-03": newest[2:]}

    # The plan has the rest of that partition, and the other partitions completely.
    last = run_job(spark, base, "compaction", {"limit_bytes": 10**9})
    assert last.details["left"] == {"file_groups": 0, "bytes": 0, "plans": []}
    assert _due(spark, base) == {}
    assert tables.snapshot(spark, base) == before


@pytest.mark.exhaustive
def test_a_number_of_file_groups_bounds_each_job(spark: SparkSession, base: Path) -> None:
    tables.write_table(spark, base, count=300, updates=1)
    before = tables.snapshot(spark, base)
    due = _due(spark, base)
    params = {"limit_file_groups": 6}

    planned = run_job(spark, base, "compaction", params, dry_run=True).details
    first = run_job(spark, base, "compaction", params).details

    # The plan has the newest partition completely, and nothing of the next one, which does not fit completely.
    assert first["file_groups"] == planned["file_groups"] == 4
    assert first["left"] == planned["left"]
    assert list(_due(spark, base)) == ["2026-01-01", "2026-01-02"]
    second = run_job(spark, base, "compaction", {"limit_file_groups": 3}).details
    assert (second["file_groups"], second["left"]["file_groups"]) == (3, 5)
    assert _due(spark, base) == {"2026-01-01": due["2026-01-01"], "2026-01-02": due["2026-01-02"][3:]}
    assert tables.snapshot(spark, base) == before


@pytest.mark.exhaustive
@pytest.mark.parametrize(("version", "partitioned"), [(9, False), (6, False), (6, True)])
def test_a_limit_of_one_byte_compacts_one_file_group_in_each_job(
    spark: SparkSession, base: Path, version: int, partitioned: bool
) -> None:
    tables.write_table(spark, base, count=300, updates=2, version=version, partitioned=partitioned)
    before = tables.snapshot(spark, base)
    for left in reversed(range(12 if partitioned else 4)):
        result = run_job(spark, base, "compaction", {"limit_bytes": 1})
        assert (len(result.instants), result.details["file_groups"]) == (1, 1)
        assert result.details["left"]["file_groups"] == left
        slices = hudi_table(spark, base, INDEX).file_slices()
        assert sum(bool(item.log_files) for item in slices) == left
    assert tables.snapshot(spark, base) == before
    assert proved(spark, base, 4) == before


@pytest.mark.exhaustive
def test_some_partitions_are_compacted_and_the_others_by_the_next_job(spark: SparkSession, base: Path) -> None:
    tables.write_table(spark, base, count=300, updates=1)
    before = tables.snapshot(spark, base)
    due = _due(spark, base)

    with pytest.raises(RefusedError, match="2026-01-09"):
        run_job(spark, base, "compaction", {"partitions": ["2026-01-09"]})
    refused = run_job(spark, base, "compaction", {"partitions": ["2026-01-09"]}, dry_run=True)
    assert [each["type"] for each in refused.details["refusals"]] == ["partition-unknown"]

    result = run_job(spark, base, "compaction", {"partitions": ["2026-01-02", {"prefix": "2026-01-01"}]})
    assert result.details["bytes"] == sum(due["2026-01-01"]) + sum(due["2026-01-02"])
    assert list(_due(spark, base)) == ["2026-01-03"]
    # The rest is found even though nothing was written since.
    assert len(run_job(spark, base, "compaction").instants) == 1
    assert _due(spark, base) == {}
    assert tables.snapshot(spark, base) == before


@pytest.mark.exhaustive
def test_a_pending_plan_counts_against_the_limit_and_goes_first(spark: SparkSession, base: Path) -> None:
    options = tables.write_table(spark, base, count=300, updates=1)
    planning = {**options, "hoodie.compact.schedule.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    some = tables.rows(spark, 0, 300, ts=5).where("dt = '2026-01-01'")
    tables.upsert(some, base, planning)
    [plan] = [path.name.split(".")[0] for path in (base / ".hoodie" / "timeline").glob("*.compaction.requested")]
    tables.upsert(tables.rows(spark, 0, 300, ts=6), base, options)
    before = tables.snapshot(spark, base)

    first = run_job(spark, base, "compaction", {"limit_bytes": 1})
    assert first.instants == (plan,)
    assert first.details["pending_plans"] == [plan]
    assert first.details["left"]["file_groups"] == 12
    assert tables.snapshot(spark, base) == before
    while run_job(spark, base, "compaction", {"limit_bytes": 2_500_000}).details["left"]["file_groups"]:
        assert tables.snapshot(spark, base) == before
    assert _due(spark, base) == {}
    assert tables.snapshot(spark, base) == before


@pytest.mark.exhaustive
def test_a_plan_that_cannot_be_executed_uses_up_no_limit(spark: SparkSession, base: Path) -> None:
    options = tables.write_table(spark, base, count=300, updates=1)
    planning = {**options, "hoodie.compact.schedule.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    tables.upsert(tables.rows(spark, 0, 300, ts=5).where("dt = '2026-01-01'"), base, planning)
    [plan] = [path.name.split(".")[0] for path in (base / ".hoodie" / "timeline").glob("*.compaction.requested")]
    tables.upsert(tables.rows(spark, 0, 300, ts=6), base, options)
    before = tables.snapshot(spark, base)
    gone = min((base / "2026-01-01").glob(".00000000-*.log.*"))
    content = gone.read_bytes()
    gone.unlink()

    # The plan has all file groups; their logs since then are in no other plan.
    result = run_job(spark, base, "compaction", {"limit_bytes": 1})
    assert [(each["instant"], each["type"]) for each in result.details["withheld_plans"]] == [(plan, "plan-files-gone")]
    assert (result.instants, result.details["left"]) == ((), {"file_groups": 0, "bytes": 0, "plans": []})
    gone.write_bytes(content)
    assert run_job(spark, base, "compaction", {"limit_bytes": 1}).instants == (plan,)
    assert tables.snapshot(spark, base) == before


@pytest.mark.exhaustive
def test_work_of_attempts_that_timed_out_is_continued_until_one_has_enough_time(
    spark: SparkSession, base: Path
) -> None:
    tables.write_table(spark, base, count=3000, updates=2)
    before = tables.snapshot(spark, base)
    table = Table(str(base), "test", INDEX, writers_hudi_version="1.2.0")
    instants: tuple[str, ...] = ()
    for number in range(1, 40):
        order = WorkOrder(
            "job_1", number, JobKind.COMPACTION, table, {"limit_bytes": 10**9}, earlier_instants=instants,
            timeout_seconds=number / 2,
        )  # fmt: skip
        result = Attempt(spark, order, 60.0, lambda _: HeartbeatAnswer.CONTINUE, permissions=Permissions()).run()
        instants = tuple(dict.fromkeys((*instants, *result.instants)))
        if result.outcome is Outcome.SUCCEEDED:
            break
        assert result.error
        assert (result.outcome, result.error.type, result.error.retriable) == (Outcome.FAILED, "timed-out", True)
    assert result.outcome is Outcome.SUCCEEDED
    assert number > 1
    assert _due(spark, base) == {}
    assert hudi_table(spark, base, INDEX).pending() == []
    assert proved(spark, base, 4) == before


@pytest.mark.exhaustive
def test_bounded_compactions_beside_a_live_writer_keep_every_row(spark: SparkSession, base: Path) -> None:
    options = tables.write_table(spark, base, count=300, updates=1)
    stopped = threading.Event()
    written: list[int] = []

    def write() -> None:
        while not stopped.is_set():
            number = len(written) + 10
            tables.upsert(tables.rows(spark, 0, 300 + number, ts=number), base, options)
            written.append(number)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        results = [run_job(spark, base, "compaction", {"limit_bytes": 2_000_000}) for _ in range(4)]
    finally:
        stopped.set()
        writer.join()
    assert all(len(result.instants) == 1 for result in results)
    assert len(written) >= 2
    found = proved(spark, base, 4)
    assert len(found) == 300 + written[-1]
    values = {row.id: row.ts for row in spark.read.format("hudi").load(str(base)).select("id", "ts").collect()}
    assert set(values.values()) == {written[-1]}
    while run_job(spark, base, "compaction", {"limit_bytes": 2_000_000}).details["left"]["file_groups"]:
        pass
    assert _due(spark, base) == {}
    assert tables.snapshot(spark, base) == found
