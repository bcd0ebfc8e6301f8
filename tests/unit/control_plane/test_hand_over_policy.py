"""Tests which jobs wait until the writers are stopped."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobs.contract import BucketIndex, JobKind, WriterEngine
from service.access.secret_cipher import SecretCipher
from service.catalog.registration import Registration, Writers
from service.lake.engine_sighting import Sighting
from service.model.flink_restart import FlinkRestart
from service.model.hand_over import FlinkStop, HandOver, HandOverState
from service.queue.hand_over.policy import begun, is_safe, loses_batches, must_wait
from service.queue.job import Job, JobState

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)
FLINK = {WriterEngine.FLINK: Sighting(NOW, NOW, "001", "it shows")}
STOPPED = HandOver(HandOverState.STOPPED, NOW, NOW, by="me", savepoint="s3://sp")


def a_table(*, has_index: bool = True, **writers: Any) -> Registration:
    index = BucketIndex(4, ("id",)) if has_index else None
    return Registration("t", "/t", "t", NOW, NOW, index=index, writers=Writers(**writers))


def a_job(kind: JobKind = JobKind.BUCKET_EXPANSION, **changes: Any) -> Job:
    return Job("job_1", "t", kind, NOW, NOW, **changes)


@pytest.mark.parametrize(
    ("kind", "has_index", "waits"),
    [
        (JobKind.BUCKET_EXPANSION, True, True),
        (JobKind.BUCKET_EXPANSION, False, True),
        (JobKind.BUCKET_CONTRACTION, True, True),
        (JobKind.BUCKET_RESIZE, False, False),  # The worker refuses it.
        (JobKind.CLUSTERING, True, True),
        (JobKind.CLUSTERING, False, True),
        (JobKind.PARTITION_TTL, False, True),
        (JobKind.REPAIR, True, True),
        (JobKind.FINISH_EXPANSION, True, True),
        (JobKind.RESTORE, False, True),
        (JobKind.ROLLBACK, True, True),
        (JobKind.SAVEPOINT, True, False),
        (JobKind.ARCHIVAL, True, False),
        (JobKind.COMPACTION, True, False),
        (JobKind.CLEANING, True, False),
        (JobKind.AUDIT, True, False),
    ],
)
def test_only_jobs_that_replace_file_groups_by_plans_of_their_own_wait(
    kind: JobKind, has_index: bool, waits: bool
) -> None:
    table = a_table(has_index=has_index)
    job = a_job(kind, params={"sort_by": ["city"]} if kind is JobKind.CLUSTERING else {})
    assert must_wait(job, table, FLINK, is_committed=False) is waits
    assert not must_wait(a_job(kind, dry_run=True), table, FLINK, is_committed=False)


def test_a_clustering_that_the_worker_will_refuse_stops_no_writer() -> None:
    for has_index, params in ((True, {}), (True, {"plans": ["20260101120000000"]}), (False, {"expansion_factor": 2})):
        job = a_job(JobKind.CLUSTERING, params=params)
        assert not must_wait(job, a_table(has_index=has_index), FLINK, is_committed=False)


@pytest.mark.parametrize("params", [{}, {"sort_by": ["city"]}, {"plans": ["20260101120000000"]}])
def test_a_clustering_without_buckets_waits_since_flinks_state_may_know_file_groups(params: dict[str, Any]) -> None:
    job = a_job(JobKind.CLUSTERING, params=params)
    assert must_wait(job, a_table(has_index=False), FLINK, is_committed=False)
    assert not must_wait(job, a_table(has_index=False, engines=(WriterEngine.SPARK,)), {}, is_committed=False)


@pytest.mark.parametrize(
    ("has_index", "layout", "restart"),
    [
        (True, "none", FlinkRestart.FROM_SAVEPOINT),
        (False, "simple", FlinkRestart.FROM_SAVEPOINT),
        (False, "consistent_hashing", FlinkRestart.FROM_SAVEPOINT),
        (False, "none", FlinkRestart.WITHOUT_STATE),
        (False, "unknown", FlinkRestart.WITHOUT_STATE),
    ],
)
def test_flink_may_restore_its_state_only_if_each_file_group_is_a_bucket(
    has_index: bool, layout: str, restart: FlinkRestart
) -> None:
    table = a_table(has_index=has_index).evolve(profile={"bucket_layout": {"kind": layout}})
    assert begun(a_job(), table, FLINK, NOW).restart is restart
    assert is_safe(FlinkRestart.WITHOUT_STATE, table)
    assert is_safe(FlinkRestart.FROM_SAVEPOINT, table) is (restart is FlinkRestart.FROM_SAVEPOINT)


def test_a_job_waits_for_a_declared_or_detected_flink_writer_and_for_no_other_writer() -> None:
    job = a_job()
    assert not must_wait(job, a_table(), {}, is_committed=False)
    assert not must_wait(job, a_table(engines=(WriterEngine.SPARK,)), {}, is_committed=False)
    assert must_wait(job, a_table(engines=(WriterEngine.FLINK,)), {}, is_committed=False)
    assert must_wait(job, a_table(engines=(WriterEngine.SPARK,)), FLINK, is_committed=False)


def test_writers_that_are_declared_stopped_are_not_waited_for_unless_they_are_seen_again() -> None:
    assert not must_wait(a_job(), a_table(stopped=True, declared_at=LATER), FLINK, is_committed=False)
    again = {WriterEngine.FLINK: Sighting(NOW, LATER, "002", "it shows")}
    assert must_wait(a_job(), a_table(stopped=True, declared_at=NOW), again, is_committed=False)


def test_a_job_that_was_released_waits_again_if_flink_came_back_before_the_commit() -> None:
    released = a_job(hand_over=STOPPED, instants=("005",), attempt=1)
    again = {WriterEngine.FLINK: Sighting(NOW, LATER, "002", "it shows")}
    assert not must_wait(released, a_table(), FLINK, is_committed=False)
    assert must_wait(released, a_table(), again, is_committed=False)
    assert not must_wait(released, a_table(), again, is_committed=True)
    waits = begun(released, a_table(), again, LATER)
    # Flink has continued since the savepoint.
    assert (waits.state, waits.savepoint) == (HandOverState.DRAINING, None)
    assert "again at 2026-01-01 00:01:00" in waits.detail


def test_the_deadline_is_that_of_the_parameters() -> None:
    assert begun(a_job(params={"hand_over_seconds": 60}), a_table(), FLINK, NOW).deadline == LATER
    assert begun(a_job(), a_table(), FLINK, NOW).deadline == NOW + timedelta(hours=1)


def test_fencing_is_refused_only_where_it_would_lose_a_flink_jobs_batch() -> None:
    fence, wait = {"on_active_writers": "fence"}, {"on_active_writers": "wait"}
    assert loses_batches(JobKind.BUCKET_EXPANSION, fence, a_table(), FLINK)
    assert not loses_batches(JobKind.BUCKET_EXPANSION, wait, a_table(), FLINK)
    assert not loses_batches(JobKind.BUCKET_EXPANSION, fence, a_table(), {})
    assert loses_batches(JobKind.CLUSTERING, fence, a_table(has_index=False), FLINK)


def test_a_plan_says_that_the_writers_were_stopped_only_when_they_were() -> None:
    contract = a_table().to_contract(FLINK, SecretCipher([]))
    assert a_job(hand_over=STOPPED).work_order(contract, 60).writers_stopped
    for state in (HandOverState.DRAINING, HandOverState.STOPPING, HandOverState.EXPIRED):
        assert not a_job(hand_over=STOPPED.evolve(state=state)).work_order(contract, 60).writers_stopped
    assert not a_job().work_order(contract, 60).writers_stopped


def test_a_stored_hand_over_is_read_back_with_all_members() -> None:
    stop = FlinkStop("abc", "def", NOW, ended_at=LATER, savepoint="s3://sp")
    hand_over = STOPPED.evolve(flink=stop, claimed_until=LATER, detail="it stands so")
    assert HandOver.from_json(hand_over.to_json()) == hand_over


@pytest.mark.parametrize(
    ("state", "is_over", "expected"),
    [
        (HandOverState.DRAINING, False, "POST /v1/jobs/job_1/writers-stopped"),
        (HandOverState.STOPPED, False, "Leave the writers stopped"),
        (HandOverState.STOPPED, True, "again, from the savepoint s3://sp, with the options that GET /v1/tables/t/"),
        (HandOverState.EXPIRED, True, "There is nothing to do: the job was given up"),
        (HandOverState.STOPPING, True, "Check that the Flink job is running"),
    ],
)
def test_a_hand_over_says_what_to_do_next(state: HandOverState, is_over: bool, expected: str) -> None:
    assert expected in STOPPED.evolve(state=state).what_to_do("job_1", "t", is_over=is_over)


def test_if_flinks_state_holds_file_groups_the_text_warns_of_the_savepoint() -> None:
    hand_over = STOPPED.evolve(restart=FlinkRestart.WITHOUT_STATE)
    text = hand_over.what_to_do("job_1", "t", is_over=True)
    assert "without its old state. Do not start it from its savepoint (s3://sp)" in text
    assert "index.bootstrap.enabled=true" in text
    assert "offsets" in text
    before = hand_over.evolve(state=HandOverState.DRAINING).what_to_do("job_1", "t", is_over=False)
    assert '/v1/jobs/job_1/writers-stopped {"restart": "without-state"}' in before
    assert hand_over.public_json()["restart"] == "without-state"


def test_a_job_that_waits_for_writers_says_so() -> None:
    from service.queue.queue_status import waits_for

    job = a_job(waits_for_writers=True, hand_over=begun(a_job(), a_table(), FLINK, NOW), state=JobState.QUEUED)
    assert waits_for(job, [], [], NOW) == "the writers to stop, until 2026-01-01 01:00 UTC"
