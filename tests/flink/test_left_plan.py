"""A Flink job leaves a compaction plan: an expansion is refused, and the command that the refusal names removes the
obstacle."""

from __future__ import annotations

import json
import re
import shlex
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from jobs.errors import PlanTakenError
from tests.flink import timeline
from tests.flink.test_goes_on import goes_on, job_for
from tests.integration.run import run_job
from tests.integration.tables import INDEX

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.flink.cluster import FlinkCluster
    from tests.flink.job import FlinkJob

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(600)]
# A Flink job with PLANS only plans compactions; a job with COMPACTS executes them as well. Between a plan and the stop
# of the job there may be two commits, which are too few for another plan.
PLANS = {"compaction.schedule.enabled": "true", "compaction.delta_commits": "3"}
COMPACTS = {**PLANS, "compaction.async.enabled": "true"}
# After each commit, including the last one before a stop, a Flink job plans in another thread.
STILL_SECONDS = 2.0
EXPANSION = {"num_buckets": 8}


def plan_left_by(flink: FlinkCluster, job: FlinkJob) -> tuple[str, str]:
    """Runs the job until it has planned a compaction, stops it, and returns the plan and the savepoint."""
    base: Any = job.base
    running = flink.start(replace(job, options={**job.options, **PLANS}))
    while not requested(base):
        time.sleep(0.05)
    saved = flink.stop_with_savepoint(running)
    [plan] = left_on(base)
    return plan, saved


def requested(base: Path) -> list[str]:
    found = (base / ".hoodie" / "timeline").glob("*.compaction.requested")
    return sorted(path.name.partition(".")[0] for path in found)


def left_on(base: Path) -> list[str]:
    """Waits until a stopped job has committed and plans nothing more, and returns the compaction plans that are still
    pending."""
    deadline = time.monotonic() + timeline.PATIENCE_SECONDS
    pending, since = timeline.pending(base), time.monotonic()
    while set(pending) - set(requested(base)) or time.monotonic() < since + STILL_SECONDS:
        assert time.monotonic() < deadline, pending
        time.sleep(0.05)
        if (found := timeline.pending(base)) != pending:
            pending, since = found, time.monotonic()
    return pending


def begin(base: Path, plan: str) -> None:
    """Does to the timeline what a Flink job does before it executes the plan."""
    (base / ".hoodie" / "timeline" / f"{plan}.compaction.inflight").touch()


def refusal(spark: SparkSession, base: Path) -> dict[str, Any]:
    planned = run_job(spark, base, "bucket_expansion", EXPANSION, writers_stopped=True, dry_run=True).details
    [found] = planned["refusals"]
    assert found["type"] == "pending-plan"
    return dict(found)


def told(hint: str) -> tuple[str, dict[str, Any]]:
    """Returns the kind and the parameters of the job whose command is in the text."""
    [command] = re.findall("`(groundskeeper [^`]*)`", hint)
    _, _, _, kind, table, *words = shlex.split(command)
    assert (table, words[::2]) == ("test", ["--param"] * (len(words) // 2))
    return kind, {name: json.loads(value) for name, _, value in (word.partition("=") for word in words[1::2])}


@pytest.mark.parametrize("has_begun", [False, True])
def test_a_plan_that_a_stopped_job_left_is_executed_by_the_command_that_the_refusal_names(
    flink: FlinkCluster, spark: SparkSession, tmp_path: Path, has_begun: bool
) -> None:
    base = tmp_path / "numbers"
    job = job_for(base)
    plan, saved = plan_left_by(flink, job)
    if has_begun:
        begin(base, plan)
    state = "inflight" if has_begun else "requested"
    found = refusal(spark, base)
    assert re.fullmatch(rf"{plan} \(compaction, {state}, \d+ s old, probably made by a Flink job\)", found["detail"]), (
        found
    )
    kind, params = told(found["hint"])
    if has_begun:
        # While nobody knows that the job is dead, its plan is not touched.
        with pytest.raises(PlanTakenError):
            run_job(spark, base, kind)

    assert run_job(spark, base, kind, params).instants == (plan,)

    run_job(spark, base, "bucket_expansion", EXPANSION, writers_stopped=True)
    goes_on(flink, spark, job, saved, replace(INDEX, num_buckets=8))


def test_a_job_that_is_started_again_executes_the_plan_that_it_had_begun(
    flink: FlinkCluster, spark: SparkSession, tmp_path: Path
) -> None:
    base = tmp_path / "numbers"
    job = job_for(base)
    plan, saved = plan_left_by(flink, job)
    begin(base, plan)
    assert "start that job again with `compaction.async.enabled=true`" in refusal(spark, base)["hint"]

    running = flink.start(replace(job, options={**job.options, **COMPACTS}), savepoint=saved)
    deadline = time.monotonic() + timeline.PATIENCE_SECONDS
    while not list((base / ".hoodie" / "timeline").glob(f"{plan}_*.commit")):
        assert time.monotonic() < deadline, timeline.pending(base)
        time.sleep(0.1)
    saved = flink.stop_with_savepoint(running)
    if again := left_on(base):
        run_job(spark, base, "compaction", {"plans": again, "take_over": True})
    goes_on(flink, spark, job, saved)
