"""Tests the decision table for the reason why a queued job waits."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobs.contract import TABLE_LOCKED, WAITS_FOR, JobKind, Problem, Progress, WorkerInfo, WorkerState
from service.queue.job import Job, JobState
from service.queue.queue_status import waits_for
from service.queue.worker import Worker

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def a_job(job_id: str = "job_1", kind: JobKind = JobKind.COMPACTION, **changes: Any) -> Job:
    return Job(job_id, "tbl_1", kind, created_at=NOW, not_before=NOW).evolve(**changes)


def worker(*job_ids: str, slots: int | None = 1, seen_seconds_ago: float = 1, **info: Any) -> Worker:
    seen = NOW - timedelta(seconds=seen_seconds_ago)
    return Worker("w1", WorkerInfo(slots=slots, **info), NOW, seen, job_ids)


CLUSTERING = a_job("job_2", JobKind.CLUSTERING, state=JobState.RUNNING)
PLANNING = CLUSTERING.evolve(dry_run=True)
NOBODY = (
    "a worker of the group default (none has called for 1 min; `groundskeeper worker --group default --service <URL>`"
    " starts one)"
)


@pytest.mark.parametrize(
    ("job", "of_table", "workers", "found"),
    [
        pytest.param(
            a_job(not_before=NOW + timedelta(seconds=90)), [CLUSTERING], [], "its next attempt, in 90 s", id="back-off"
        ),
        pytest.param(
            a_job(), [CLUSTERING], [], "job job_2 (clustering), which is running on this table", id="another job"
        ),
        pytest.param(a_job(), [PLANNING], [worker()], "its turn", id="a dry run is in nobody's way"),
        pytest.param(a_job(dry_run=True), [CLUSTERING], [worker()], "its turn", id="nobody is in a dry run's way"),
        pytest.param(a_job(kind=JobKind.AUDIT), [CLUSTERING], [worker()], "its turn", id="nobody is in an audit's way"),
        pytest.param(a_job(), [], [], NOBODY, id="no worker"),
        pytest.param(a_job(), [], [worker(group="large")], NOBODY, id="only workers of another group"),
        pytest.param(a_job(), [], [worker(seen_seconds_ago=61)], NOBODY, id="a worker that is gone"),
        pytest.param(
            a_job(),
            [],
            [worker("job_3"), worker("job_4", "job_5", slots=2)],
            "a free slot: 2 workers of the group default, all busy",
            id="all busy",
        ),
        pytest.param(a_job(), [], [worker("job_3"), worker("job_4", slots=2)], "its turn", id="a slot is free"),
        pytest.param(
            a_job(),
            [],
            [worker(state=WorkerState.STARTING), worker(state=WorkerState.WAITS_FOR_EXECUTORS)],
            "executors: 2 workers of the group default, none of them ready",
            id="none is ready",
        ),
        pytest.param(
            a_job(),
            [],
            [worker(state=WorkerState.WAITS_FOR_EXECUTORS), worker("job_3", state=WorkerState.READY)],
            "a free slot: 1 worker of the group default, all busy",
            id="the ready one is busy",
        ),
        pytest.param(a_job(state=JobState.SUCCEEDED), [], [], None, id="an ended job waits for nothing"),
        pytest.param(
            a_job(state=JobState.RUNNING, progress=Progress("executing")),
            [],
            [],
            None,
            id="a running job waits for nothing",
        ),
        pytest.param(
            a_job(state=JobState.RUNNING, progress=Progress(f"planning{WAITS_FOR}the table's lock")),
            [],
            [],
            "the table's lock",
            id="a running job whose step waits",
        ),
        pytest.param(
            a_job(
                not_before=NOW + timedelta(seconds=90), error=Problem(TABLE_LOCKED, "held", "held for 3 h; waited 9 s")
            ),
            [],
            [],
            "the table's lock, held for 3 h; its next attempt is in 90 s",
            id="a job that left its worker to others",
        ),
        pytest.param(a_job(), [], [worker(slots=None)], "its turn", id="a worker that does not tell its slots"),
    ],
)
def test_a_queued_job_says_what_it_is_waiting_for(
    job: Job, of_table: list[Job], workers: list[Worker], found: str | None
) -> None:
    assert waits_for(job, of_table, workers, NOW) == found
