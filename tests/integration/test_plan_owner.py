"""A plan has one runner at a time: a job executes the plan of a dead client of Hudi or of a dead attempt, but never
that of a living one."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import BucketIndex
from jobs.errors import (
    CancelledError,
    CommitLostError,
    CommitUndoneError,
    HudiError,
    LeaseLostError,
    PlanTakenError,
    RefusedError,
)
from jobs.hudi.client import WriteClient
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.hudi.records import CLUSTERING, REPLACE
from jobs.job_context import JobContext
from jobs.protocol.plan_owner import PlanOwner, plan_instants, take_back
from tests.acceptance.storage import left_behind, listing
from tests.integration import tables
from tests.integration.dying_job import DyingJob
from tests.integration.plans import OtherRunner
from tests.integration.run import hudi_table, proved, run_job, work_order
from tests.integration.tables import INDEX
from tests.integration.writers import At, HeldWriter, let_heartbeat_expire

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

BUCKETS = BucketIndex(4, ("id",))


def _begun_by_another(spark: SparkSession, base: Path, **shape: Any) -> tuple[OtherRunner, str]:
    options = tables.write_table(spark, base, count=200, partitioned=False, updates=1, **shape)
    runner = OtherRunner(spark, base, options)
    plan = runner.plan()
    runner.begin(plan)
    return runner, plan


def _of_plan(base: Path, plan: str) -> dict[str, tuple[int, int]]:
    """Returns every file of the plan, including heartbeat and inflight, with size and time."""
    return {name: seen for name, seen in listing(base).items() if plan in name and "/metadata/" not in name}


def _last_written(base: Path, plan: str, hours: float) -> None:
    """Sets the age of the plan's files, and makes all earlier files of the timeline older."""
    moment = time.time() - hours * 3600
    for path in (base / ".hoodie").rglob("[0-9]*"):  # Version 6 has its timeline right there.
        os.utime(path, (moment - 60, moment - 60))
    for name in _of_plan(base, plan):
        os.utime(base / name, (moment, moment))


@pytest.mark.parametrize("version", [9, pytest.param(6, marks=pytest.mark.exhaustive)])
def test_the_plan_of_a_live_runner_is_left_to_it_at_every_attempt(
    spark: SparkSession, base: Path, version: int
) -> None:
    runner, plan = _begun_by_another(spark, base, version=version)
    before, seen = tables.snapshot(spark, base), _of_plan(base, plan)
    stored: list[str] = []
    for params in ({}, {"plans": [plan]}, {"limit_bytes": 10**9}, {"plans": [plan], "take_over": True}):
        context = JobContext()
        with pytest.raises(PlanTakenError, match=rf"{plan} .*sent a heartbeat \d+ s ago"):
            run_job(spark, base, "compaction", params, context=context, job_id="job_1", earlier_instants=tuple(stored))
        stored += context.instants
    assert (stored, _of_plan(base, plan)) == ([], seen)
    runner.commit(plan)
    assert proved(spark, base, 4) == before


@pytest.mark.exhaustive
def test_a_plan_that_another_runner_has_begun_to_roll_back_is_not_committed(spark: SparkSession, base: Path) -> None:
    options = tables.write_table(spark, base, count=200, partitioned=False, updates=1, metadata=False)
    runner = OtherRunner(spark, base, options)
    rollback: list[Callable[[], None]] = []
    before = tables.snapshot(spark, base)

    context = At("comparing", lambda: rollback.append(runner.begin_rollback(context.instants[0])))
    with pytest.raises(CommitLostError, match="about to roll it back"):
        run_job(spark, base, "compaction", context=context)

    rollback[0]()
    assert tables.snapshot(spark, base) == before
    assert run_job(spark, base, "compaction").instants == tuple(context.instants)
    assert proved(spark, base, 4) == before


@pytest.mark.exhaustive
def test_the_plan_of_a_dead_runner_is_executed(spark: SparkSession, base: Path) -> None:
    runner, plan = _begun_by_another(spark, base)
    before = tables.snapshot(spark, base)
    runner.die()
    let_heartbeat_expire(base, plan)
    assert run_job(spark, base, "compaction").instants == (plan,)
    assert proved(spark, base, 4) == before
    assert left_behind(spark, base) == []


@pytest.mark.exhaustive
def test_a_runner_without_heartbeats_is_alive_until_its_files_are_old(spark: SparkSession, base: Path) -> None:
    runner, plan = _begun_by_another(spark, base)
    runner.die()
    (base / ".hoodie" / ".heartbeat" / plan).unlink()
    _last_written(base, plan, 0.9)
    with pytest.raises(PlanTakenError, match=r"no heartbeats, and .* was written 54 min ago") as taken:
        run_job(spark, base, "compaction")
    command = f"groundskeeper jobs run compaction test --param 'plans=[\"{plan}\"]' --param take_over=true"
    assert f"If you know that the runner is dead, execute the plan: `{command}`" in taken.value.problem().hint
    _last_written(base, plan, 1.1)
    newest = min(base.glob(f"*_{plan}.parquet"))
    os.utime(newest)
    with pytest.raises(PlanTakenError, match="a base file was written"):
        run_job(spark, base, "compaction")
    _last_written(base, plan, 1.1)
    before = tables.snapshot(spark, base)
    assert run_job(spark, base, "compaction").instants == (plan,)
    assert proved(spark, base, 4) == before


@pytest.mark.exhaustive
def test_the_operators_word_stands_for_the_death_of_a_runner_without_heartbeats(
    spark: SparkSession, base: Path
) -> None:
    runner, plan = _begun_by_another(spark, base)
    runner.die()
    (base / ".hoodie" / ".heartbeat" / plan).unlink()
    before = tables.snapshot(spark, base)
    assert run_job(spark, base, "compaction", {"plans": [plan], "take_over": True}).instants == (plan,)
    assert proved(spark, base, 4) == before


def _lose_lease() -> None:
    raise LeaseLostError


def test_an_attempt_that_died_before_its_note_left_a_plan_of_nobody(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables.write_table(spark, base, count=200, partitioned=False, updates=1)
    before = tables.snapshot(spark, base)
    begin = WriteClient.begin_compaction

    def and_dies(client: WriteClient, instant: str) -> Any:
        begin(client, instant)
        _lose_lease()

    context = JobContext()
    monkeypatch.setattr(WriteClient, "begin_compaction", and_dies)
    with pytest.raises(LeaseLostError):
        run_job(spark, base, "compaction", context=context, job_id="job_1")
    monkeypatch.undo()
    assert context.instants == []
    [plan] = [item.requested for item in hudi_table(spark, base, INDEX).pending()]
    with pytest.raises(PlanTakenError):
        run_job(spark, base, "compaction", job_id="job_1")
    let_heartbeat_expire(base, plan)
    assert run_job(spark, base, "compaction", job_id="job_1").instants == (plan,)
    assert proved(spark, base, 4) == before


@pytest.mark.exhaustive
def test_a_plan_that_another_runner_took_after_our_death_is_its_own(spark: SparkSession, base: Path) -> None:
    options = tables.write_table(spark, base, count=200, partitioned=False, updates=1)
    before = tables.snapshot(spark, base)
    job = DyingJob(spark, work_order(base, "compaction"))
    job.die_at({"at": "step", "name": "comparing"})
    [plan] = job.instants
    let_heartbeat_expire(base, plan)
    runner = OtherRunner(spark, base, options)
    runner.begin(plan)
    seen = _of_plan(base, plan)
    for _ in range(2):
        with pytest.raises(PlanTakenError):
            job.finish()
    assert _of_plan(base, plan) == seen
    runner.commit(plan)
    assert proved(spark, base, 4) == before


def test_an_attempt_that_stood_still_while_another_runner_took_its_plan_commits_nothing(
    spark: SparkSession, base: Path
) -> None:
    options = tables.write_table(spark, base, count=200, partitioned=False, updates=1)
    before = tables.snapshot(spark, base)
    context = JobContext()
    runner = OtherRunner(spark, base, options)

    def stand_still() -> None:
        let_heartbeat_expire(base, context.instants[0])
        runner.begin(context.instants[0])

    context = At("comparing", stand_still)
    with pytest.raises(CommitLostError, match="Another runner"):
        run_job(spark, base, "compaction", context=context, job_id="job_1")
    runner.commit(context.instants[0])
    assert proved(spark, base, 4) == before
    assert left_behind(spark, base) == []


def _raise_error() -> None:
    raise HudiError("a disk is full")


def _is_cancelled() -> None:
    raise CancelledError


@pytest.mark.parametrize(
    ("end", "params"),
    [
        (_raise_error, {}),
        pytest.param(_is_cancelled, {"limit_bytes": 10**9}, marks=pytest.mark.exhaustive),
        pytest.param(_is_cancelled, {}, marks=pytest.mark.exhaustive),
    ],
)
def test_a_job_that_fails_takes_back_the_plan_that_it_has_made(
    spark: SparkSession, base: Path, end: Callable[[], None], params: dict[str, Any]
) -> None:
    options = tables.write_table(spark, base, count=200, partitioned=False, updates=1)
    before = tables.snapshot(spark, base)

    def fail() -> None:
        # The rollback of a plan does not lose the logs that were written while the plan was pending.
        tables.upsert(tables.rows(spark, 0, 50, ts=9), base, options)
        end()

    with pytest.raises((HudiError, CancelledError)):
        run_job(spark, base, "compaction", params, context=At("comparing", fail))
    after = proved(spark, base, 4)
    assert (len(after), after == before) == (len(before), False)
    assert left_behind(spark, base) == []
    assert len(run_job(spark, base, "compaction").instants) == 1
    assert proved(spark, base, 4) == after


@pytest.mark.parametrize(
    ("step", "version"),
    [
        ("comparing", 9),
        *(pytest.param(*each, marks=pytest.mark.exhaustive) for each in [("compacting", 9), ("comparing", 6)]),
    ],
)
def test_a_compaction_does_not_bring_back_a_commit_that_was_rolled_back_meanwhile(
    spark: SparkSession, tmp_path: Path, step: str, version: int
) -> None:
    base = tmp_path / "trips"
    options = tables.write_table(spark, base, count=60, partitioned=False, updates=2, version=version, metadata=False)
    last = hudi_table(spark, base, INDEX).completed_writes()[-1][0]
    # Hudi's procedure `rollback_to_instant` calls this client, too, but does not read the timeline of version 6.
    user = OtherRunner(spark, base, options)
    after: list[str] = []

    def roll_back() -> None:
        assert user.client.rollback(last)
        after.extend(tables.snapshot(spark, base))

    with pytest.raises(CommitUndoneError if step == "comparing" else RefusedError):
        run_job(spark, base, "compaction", context=At(step, roll_back))
    assert {row["ts"] for row in tables.collected(spark, base).rows} == {0, 1}
    assert run_job(spark, base, "compaction").instants
    assert proved(spark, base, 4) == after


def test_a_plan_that_a_writer_in_flight_may_read_is_left_requested(spark: SparkSession, base: Path) -> None:
    options = tables.write_table(spark, base, count=200, partitioned=False, updates=1, metadata=False)
    writer = HeldWriter(tables.rows(spark, 0, 50, ts=9), base, options)

    def fail() -> None:
        writer.start()
        _raise_error()

    with pytest.raises(HudiError):
        run_job(spark, base, "compaction", context=(context := At("comparing", fail)))
    [plan] = context.instants
    assert [plan in each for each in context.left_behind] == [True]
    writer.finish()
    before = tables.in_order(spark, base, 4)
    assert run_job(spark, base, "compaction").instants[0] == plan
    assert proved(spark, base, 4) == before


@pytest.mark.exhaustive
@pytest.mark.parametrize(("version", "is_own"), [(9, False), (6, True)])
def test_a_plan_that_cannot_be_taken_back_is_left_requested_for_any_runner(
    spark: SparkSession, base: Path, version: int, is_own: bool
) -> None:
    options = tables.write_table(spark, base, count=200, partitioned=False, updates=1, version=version)
    if not is_own:
        OtherRunner(spark, base, options).plan()

    def fail() -> None:
        tables.upsert(tables.rows(spark, 0, 50, ts=9), base, options)
        _raise_error()

    context = At("comparing", fail)
    with pytest.raises(HudiError):
        run_job(spark, base, "compaction", context=context)
    [left] = hudi_table(spark, base, INDEX).pending()
    assert (left.requested, left.state) == (context.instants[0], "REQUESTED")
    assert [left.requested in each for each in context.left_behind] == [True] * is_own
    before = tables.snapshot(spark, base)
    assert run_job(spark, base, "compaction").instants[0] == left.requested
    assert proved(spark, base, 4) == before


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", [9, 6])
def test_a_clustering_plan_has_one_runner_too_and_is_taken_back_whole(
    spark: SparkSession, base: Path, version: int
) -> None:
    shape: dict[str, Any] = {"num_buckets": None, "table_type": "COPY_ON_WRITE", "version": version}
    options = tables.write_table(spark, base, count=200, partitioned=False, updates=1, **shape)
    runner = OtherRunner(spark, base, {**options, "hoodie.clustering.plan.strategy.sort.columns": "city"})
    plan = runner.plan_clustering()
    table = hudi_table(spark, base, None)
    owner = PlanOwner(table, "job_1")
    owner.check(plan)
    runner.begin_clustering(plan)
    assert [item.requested for item in plan_instants(table, {CLUSTERING, REPLACE})] == [plan]
    with pytest.raises(PlanTakenError, match="sends no heartbeats"):
        owner.check(plan)
    PlanOwner(table, "job_1", take_over=True).check(plan)
    _last_written(base, plan, 1.1)
    owner.check(plan)
    before = tables.snapshot(spark, base)
    with WriteClient(table, UNDER_OUR_LOCK) as client:
        assert take_back(table, client, plan) is None
    assert left_behind(spark, base) == []
    assert tables.snapshot(spark, base) == before
    tables.upsert(tables.rows(spark, 0, 200, ts=9), base, options)


@pytest.mark.parametrize("version", [9, pytest.param(6, marks=pytest.mark.exhaustive)])
def test_a_clustering_plan_does_not_bring_back_a_commit_that_was_rolled_back_meanwhile(
    spark: SparkSession, tmp_path: Path, version: int
) -> None:
    base = tmp_path / "trips"
    shape: dict[str, Any] = {"num_buckets": None, "table_type": "COPY_ON_WRITE", "version": version, "metadata": False}
    options = tables.write_table(spark, base, count=60, partitioned=False, updates=2, **shape)
    last = hudi_table(spark, base, None).completed_writes()[-1][0]
    user = OtherRunner(spark, base, {**options, "hoodie.clustering.plan.strategy.sort.columns": "city"})
    plan = user.plan_clustering()
    context = At("waiting for a moment", lambda: user.client.rollback(last))
    with pytest.raises(CommitUndoneError, match=last):
        run_job(spark, base, "clustering", {"plans": [plan]}, index=None, context=context)
    assert {row["ts"] for row in tables.collected(spark, base).rows} == {0, 1}
    assert run_job(spark, base, "audit", index=None).details["clean"]


@pytest.mark.parametrize(
    ("table_type", "version", "step"),
    [
        ("COPY_ON_WRITE", 9, "waiting for a moment"),
        pytest.param("MERGE_ON_READ", 9, "waiting for a moment", marks=pytest.mark.exhaustive),
        pytest.param("MERGE_ON_READ", 9, "clustering", marks=pytest.mark.exhaustive),
        pytest.param("COPY_ON_WRITE", 6, "waiting for a moment", marks=pytest.mark.exhaustive),
    ],
)
def test_a_clustering_plan_loses_no_rows_that_are_written_to_its_file_groups_meanwhile(
    spark: SparkSession, tmp_path: Path, table_type: str, version: int, step: str
) -> None:
    """A writer in single-writer mode that may update such file groups looks for no conflict."""
    base = tmp_path / "trips"
    shape: dict[str, Any] = {"num_buckets": None, "table_type": table_type, "version": version, "metadata": False}
    options = tables.write_table(spark, base, count=60, partitioned=False, updates=1, **shape)
    strategy = "org.apache.hudi.client.clustering.update.strategy.SparkAllowUpdateStrategy"
    alone = {"hoodie.write.concurrency.mode": "single_writer", "hoodie.clustering.updates.strategy": strategy}
    runner = OtherRunner(spark, base, {**options, "hoodie.clustering.plan.strategy.sort.columns": "city"})
    plan = runner.plan_clustering()
    newer = tables.rows(spark, 0, 30, ts=7)
    context = At(step, lambda: tables.upsert(newer, base, {**options, **alone}))
    with pytest.raises(RefusedError, match=plan) as refused:
        run_job(spark, base, "clustering", {"plans": [plan]}, index=None, context=context)
    assert [reason.type for reason in refused.value.reasons] == ["plan-overtaken"]
    assert sorted(row["ts"] for row in tables.collected(spark, base).rows) == [0] * 30 + [7] * 30
    assert run_job(spark, base, "audit", index=None).details["clean"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", [9, 6])
def test_a_clustering_plan_does_not_bring_back_rows_that_are_overwritten_meanwhile(
    spark: SparkSession, tmp_path: Path, version: int
) -> None:
    base = tmp_path / "trips"
    shape: dict[str, Any] = {"num_buckets": None, "table_type": "COPY_ON_WRITE", "version": version, "metadata": False}
    options = tables.write_table(spark, base, count=60, partitioned=False, updates=1, **shape)
    # Hudi 1.2 compares the replaced file groups, too, but only a writer with concurrency control does that.
    alone = {"hoodie.write.concurrency.mode": "single_writer"}
    overwrite = {**options, **alone, "hoodie.datasource.write.operation": "insert_overwrite_table"}
    writer = HeldWriter(tables.rows(spark, 300, 330, ts=7), base, overwrite).start()
    runner = OtherRunner(spark, base, {**options, "hoodie.clustering.plan.strategy.sort.columns": "city"})
    plan = runner.plan_clustering()
    context = At("waiting for a moment", writer.finish)
    with pytest.raises(RefusedError, match=plan) as refused:
        run_job(spark, base, "clustering", {"plans": [plan]}, index=None, context=context)
    assert [reason.type for reason in refused.value.reasons] == ["plan-overtaken"]
    assert len(tables.snapshot(spark, base)) == 30
    assert left_behind(spark, base) == []
    assert run_job(spark, base, "audit", index=None).details["clean"]
    tables.upsert(tables.rows(spark, 300, 340, ts=9), base, options)
    assert {row["ts"] for row in tables.collected(spark, base).rows} == {9}
