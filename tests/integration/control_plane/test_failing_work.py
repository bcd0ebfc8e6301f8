"""Tests the order of leases when jobs fail, on both databases."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import JobKind, Outcome, Problem, Result
from jobs.local_process import ids_of_process
from service.db.engine import reading, writing
from service.events.database import Database
from service.health import held_back, table_store
from service.health.problem import ProblemKind
from service.model.backoff import BackOff
from service.policies import store as policy_store
from service.policies.policy import TableLevel
from service.queue import breaker_store, job_store, lease_store, leases, recovery, waiting
from service.queue.job import Job, JobState
from service.queue.leases import LeaseConfig
from service.scheduling import pausing
from tests.integration.control_plane.planning import Service, submit_job

if TYPE_CHECKING:
    import sqlalchemy as sa

    from tests.integration.control_plane.conftest import FakeClock

HELD_UP = Problem("hudi-error", "It failed", retriable=True)
CONFIG = LeaseConfig(timedelta(seconds=30), 60.0, BackOff(first=2, most=2))


@pytest.fixture
def service(engine: sa.Engine, clock: FakeClock) -> Service:
    service = Service(engine, clock)
    for name in ("a", "b", "c"):
        service.register(name)
    return service


def add(service: Service, table_id: str, kind: JobKind = JobKind.COMPACTION, **more: Any) -> Job:
    """Queues a job as a policy does."""
    service.clock.advance(0.001)
    now = service.clock()
    job = Job(f"job_{now.timestamp():.3f}", table_id, kind, now, now, max_attempts=9, reason="5 commits")
    with writing(service.engine) as connection:
        return job_store.submit(connection, job.evolve(**more))


def fail(service: Service, job: Job, seconds: float, error: Problem = HELD_UP) -> Job:
    service.clock.advance(seconds)
    return leases.report(
        Database(service.engine, service.clock, service.notifier),
        Random(1),
        CONFIG,
        job_id=job.id,
        attempt=job.attempt,
        result=Result(Outcome.FAILED, error=error),
    )


def lease_job(service: Service) -> Job:
    job = service.lease()
    assert job is not None
    return job


def waits_for(service: Service, job: Job) -> str | None:
    with reading(service.engine) as connection:
        return waiting.waiting_of(connection, [job_store.get(connection, job.id)], service.clock()).waits[job.id].what


def test_a_failed_attempt_waits_until_others_had_nine_times_its_slot_seconds(service: Service) -> None:
    sick = add(service, "a")
    add(service, "b")
    assert lease_job(service).id == sick.id
    put_back = fail(service, service.job(sick.id), 5)
    assert put_back.state is JobState.QUEUED
    assert put_back.not_before == service.clock() + timedelta(seconds=45)
    assert waits_for(service, sick) == (
        "its next attempt, in 45 s: 1 attempt of compaction failed in a row and took 5 s of a slot, next try in 45 s"
    )
    assert lease_job(service).table_id == "b"
    service.clock.advance(44.9)
    assert service.lease() is None
    service.clock.advance(0.1)
    assert lease_job(service).id == sick.id
    service.end(service.job(sick.id))
    with reading(service.engine) as connection:
        assert breaker_store.find(connection, "a", JobKind.COMPACTION, service.clock()) is None


@pytest.mark.parametrize(("seconds", "kinds"), [(1, []), (5, [ProblemKind.JOB_HELD_BACK])])
def test_a_failure_with_a_long_pause_behind_it_is_a_problem_at_once(
    service: Service, seconds: float, kinds: list[ProblemKind]
) -> None:
    add(service, "a")
    add(service, "b")
    fail(service, lease_job(service), seconds)
    now = service.clock()
    with reading(service.engine) as connection:
        (facts,) = table_store.facts(connection, now, ["a"])
    assert [each.kind for each in held_back.held_back(facts, now)] == kinds


def test_a_long_failure_is_tried_again_within_a_minute_if_nobody_else_waits(service: Service) -> None:
    sick = add(service, "a")
    lease_job(service)
    assert fail(service, service.job(sick.id), 600).not_before == service.clock() + timedelta(minutes=1)


def test_a_long_failure_waits_if_others_use_all_slots_although_none_of_them_waits_now(service: Service) -> None:
    sick = add(service, "a")
    lease_job(service)
    service.clock.advance(20)
    add(service, "b", JobKind.CLEANING)
    service.end(lease_job(service))
    assert fail(service, service.job(sick.id), 1).not_before == service.clock() + timedelta(minutes=1)
    service.clock.advance(60)
    add(service, "b", JobKind.CLEANING, priority=1)
    other = lease_job(service)
    service.clock.advance(1)
    service.end(other)
    # The second attempt would start now if no other job had needed a slot recently.
    assert service.lease() is None
    service.clock.advance(61)
    assert lease_job(service).id == sick.id


def test_after_a_failure_the_next_job_of_a_policy_waits_and_a_submitted_job_does_not(service: Service) -> None:
    add(service, "b", not_before=service.clock())
    sick = add(service, "a", max_attempts=1, priority=1)
    lease_job(service)
    fail(service, service.job(sick.id), 20)
    service.poll("a", commits=9)
    service.clock.advance(70)
    with reading(service.engine) as connection:
        breaker = breaker_store.find(connection, "a", JobKind.COMPACTION, service.clock())
    assert breaker is not None
    assert breaker.next_try_at > service.clock()
    asked = submit_job(service, JobKind.COMPACTION, "a")
    assert lease_job(service).id == asked.id


def test_tables_that_failed_with_one_error_are_tried_again_when_one_of_them_succeeds(service: Service) -> None:
    first, second, other = add(service, "a"), add(service, "b"), add(service, "b", JobKind.CLEANING)
    add(service, "c", priority=-1)
    for job, error in (
        (first, HELD_UP),
        (second, HELD_UP),
        (other, Problem("timed-out", "It took long", retriable=True)),
    ):
        assert lease_job(service).id == job.id
        fail(service, service.job(job.id), 30, error)
    service.clock.advance(270)
    service.end(lease_job(service))
    service.clock.advance(60)
    assert lease_job(service).id == first.id  # No other table waits any more.
    assert service.job(second.id).not_before > service.clock()
    service.end(service.job(first.id))
    assert service.job(second.id).not_before == service.clock()
    assert service.job(other.id).not_before > service.clock()


def test_a_failing_table_waits_longer_if_other_tables_begin_to_fail(service: Service) -> None:
    sick, other = add(service, "a"), add(service, "b")
    add(service, "c", JobKind.CLEANING, priority=-1)
    lease_job(service)
    fail(service, service.job(sick.id), 10)  # It waits 90 s, because no other table has failed.
    lease_job(service)
    fail(service, service.job(other.id), 10, Problem("timed-out", "It took long", retriable=True))
    service.clock.advance(80)
    job, until = lease_job(service), service.clock() + timedelta(minutes=1)
    assert job.table_id == "c"
    service.end(job)
    add(service, "c", priority=-1)
    assert lease_job(service).table_id == "c"
    assert service.job(sick.id).not_before == until
    assert str(waits_for(service, sick)).startswith("its next attempt, in 59 s: 1 attempt of compaction failed")
    # A submitted job is tried at once, even if many others fail.
    with writing(service.engine) as connection:
        breaker_store.half_open(connection, "a", service.clock(), kind=JobKind.COMPACTION)
    service.clock.advance(60)
    assert lease_job(service).id == sick.id


def test_a_worker_that_is_lost_twice_with_a_table_holds_it_back(service: Service) -> None:
    sick = add(service, "a")
    add(service, "b", not_before=service.clock() + timedelta(seconds=62))
    for pause in (0.0, 2 * 9 * 31.0):  # Another table waits at the end of the second attempt.
        assert lease_job(service).id == sick.id
        service.clock.advance(31)
        recovery.run_once(service.engine, service.notifier, service.clock)
        assert service.job(sick.id).not_before == service.clock() + timedelta(seconds=pause)


def test_jobs_of_a_worker_that_is_known_to_be_gone_are_taken_back_before_their_leases_run_out(service: Service) -> None:
    jobs = [add(service, name) for name in ("a", "b", "c")]
    ids = [f"{ids_of_process(4711)}1f0c2a", f"{ids_of_process(47)}1f0c2a", f"{ids_of_process(4711)}73ba55"]
    with writing(service.engine) as connection:
        for job, worker_id, token in zip(jobs, ids, ("its", "its", "another"), strict=True):
            now = service.clock()
            lease = {"worker_id": worker_id, "token_id": token, "group": "default", "now": now}
            taken = lease_store.take(connection, **lease, deadline=now + timedelta(seconds=30))  # type: ignore[arg-type]
            assert taken is not None
            assert taken.id == job.id
    recovery.take_back(service.database, ids_of_process(4711), "its")
    states = [service.job(job.id).state for job in jobs]
    assert states == [JobState.QUEUED, JobState.LEASED, JobState.LEASED]


def test_submitted_jobs_go_before_jobs_of_policies(service: Service) -> None:
    of_policy = [add(service, name) for name in ("a", "b")]
    asked = submit_job(service, JobKind.CLEANING, "c")
    assert [lease_job(service).id for _ in range(3)] == [asked.id, of_policy[0].id, of_policy[1].id]


def test_a_setting_gives_submitted_jobs_and_jobs_of_policies_the_same_rank(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    service._lease_config = replace(service._lease_config, requested_first=False)
    of_policy = add(service, "a")
    service.clock.advance(1)
    asked = submit_job(service, JobKind.CLEANING, "c")
    assert [lease_job(service).id for _ in range(2)] == [of_policy.id, asked.id]


def test_tables_take_turns_by_slot_seconds_instead_of_the_number_of_jobs(service: Service) -> None:
    """One long job of a table counts as much as many short ones of another table."""
    for _ in range(4):
        add(service, "a", JobKind.AUDIT, dry_run=True)
        add(service, "b", JobKind.AUDIT, dry_run=True)
    order, lasts = [], {"a": 10.0, "b": 2.0}
    for _ in range(6):
        job = lease_job(service)
        order.append(job.table_id)
        service.clock.advance(lasts[job.table_id])
        service.end(job)
    assert order == ["a", "b", "b", "b", "b", "a"]


def job_after_one_failure(service: Service) -> Job:
    job = add(service, "a")
    lease_job(service)
    return fail(service, service.job(job.id), 1)


def test_a_pause_holds_further_attempts_back_until_it_ends(service: Service) -> None:
    job = job_after_one_failure(service)
    pausing.pause(service.engine, service.notifier, service.clock, by="bob", reason="look")
    service.clock.advance(60)
    for _ in range(5):
        assert service.lease() is None
        service.clock.advance(20)
    assert service.lease() is None
    assert waits_for(service, job) == "the end of the pause of all upkeep, since 2026-01-01 00:00 UTC by bob"
    pausing.resume(service.engine, service.notifier, service.clock)
    assert lease_job(service).id == job.id
    assert service.job(job.id).held_back is None


def test_a_pause_does_not_hold_back_submitted_jobs(service: Service) -> None:
    job = add(service, "a", reason=None)
    lease_job(service)
    fail(service, service.job(job.id), 1)
    pausing.pause(service.engine, service.notifier, service.clock, by="bob", reason="look")
    service.clock.advance(60)
    assert lease_job(service).id == job.id


@pytest.mark.parametrize("settings", [{"paused": True}, {"windows": [{"start": "03:00", "end": "04:00"}]}])
def test_the_policy_of_a_table_holds_further_attempts_back(service: Service, settings: dict[str, Any]) -> None:
    job = job_after_one_failure(service)
    with writing(service.engine) as connection:
        policy_store.put_table(connection, "a", TableLevel(settings, service.clock()))
    service.clock.advance(60)
    assert service.lease() is None
    said = waits_for(service, job)
    if "windows" in settings:
        assert said == "the next maintenance window, at 2026-01-01 03:00 UTC"
        service.clock.advance(3 * 3600)
    else:
        assert said == "the end of the pause of this table's upkeep, by its policy"
        with writing(service.engine) as connection:
            policy_store.put_table(connection, "a", TableLevel({}, service.clock()))
        service.clock.advance(15)
    assert lease_job(service).id == job.id


def test_a_pause_withdraws_jobs_that_have_not_begun(service: Service) -> None:
    add(service, "a")
    pausing.pause(service.engine, service.notifier, service.clock, by="bob", reason="look")
    assert service.lease() is None
