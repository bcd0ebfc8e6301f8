"""Tests what jobs gain, in which order they start when slots are short, and how well objectives are kept."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import JobKind
from service.catalog import commit_store
from service.db.engine import reading, writing
from service.health import objectives, table_store
from service.lake.commit import Commit
from service.outcome import objective_store, read_store
from service.outcome.objective import Kept, ObjectiveCheck
from service.outcome.reads import ReadSource
from service.policies import policy_registry
from service.queue import attempt_figures, gain_store, job_store, lease_store
from service.queue.attempt_figures import Figures
from service.queue.cost import Ended
from service.queue.forecaster import Forecaster
from service.queue.job import Job
from service.scheduling import scheduler
from service.scheduling.decision import Verdict
from tests.integration.control_plane.planning import Service

if TYPE_CHECKING:
    import sqlalchemy as sa
    from fastapi.testclient import TestClient

    from tests.integration.control_plane.conftest import FakeClock

COMPACTION, AUDIT, CLEANING = JobKind.COMPACTION, JobKind.AUDIT, JobKind.CLEANING


@pytest.fixture
def service(engine: sa.Engine, clock: FakeClock) -> Service:
    return Service(engine, clock)


def objective(service: Service, table_id: str = "tbl_1", **members: Any) -> None:
    policy_registry.put_table(service.engine, service.clock, table_id, {"objective": members})


def read_often(service: Service, table_id: str, number: int) -> None:
    with writing(service.engine) as connection:
        read_store.count(connection, {table_id: number}, ReadSource.LINEAGE, service.clock())


def queued(engine: sa.Engine, clock: FakeClock, name: str, **changes: Any) -> str:
    with writing(engine) as connection:
        job = Job(name, changes.pop("table_id", name), COMPACTION, clock(), clock(), reason="logs")
        job_store.submit(connection, job.evolve(**changes))
    return name


def order(engine: sa.Engine, clock: FakeClock) -> list[str]:
    """Takes all jobs."""
    found = []
    while True:
        with writing(engine) as connection:
            deadline = clock() + timedelta(hours=1)
            job = lease_store.take(connection, worker_id="w", group="default", now=clock(), deadline=deadline)
        if job is None:
            return found
        found.append(job.id)


@pytest.mark.mostly_sqlite
def test_jobs_that_save_most_start_first_within_their_priority(service: Service, clock: FakeClock) -> None:
    for name in "abcdef":
        service.register(name)
    queued(service.engine, clock, "a", worth=1.0)
    queued(service.engine, clock, "b", worth=50.0)
    queued(service.engine, clock, "c", kind=AUDIT)
    queued(service.engine, clock, "d", worth=0.0, priority=1)
    queued(service.engine, clock, "e", worth=9.0)
    queued(service.engine, clock, "f", worth=0.1, reason=None)
    # Jobs start by priority, then submitted jobs, then jobs without a known gain, and then those with the largest gain.
    assert order(service.engine, clock) == ["d", "f", "c", "b", "e", "a"]


def test_a_job_that_saves_little_starts_when_it_has_waited_long_enough(service: Service, clock: FakeClock) -> None:
    for name in "abc":
        service.register(name)
    queued(service.engine, clock, "a", worth=0.0, starts_by=clock() + timedelta(hours=24))
    queued(service.engine, clock, "b", worth=0.0, starts_by=clock() + timedelta(hours=1))
    clock.advance(86_401)
    queued(service.engine, clock, "c", worth=1000.0, starts_by=clock() + timedelta(hours=24))
    assert order(service.engine, clock) == ["b", "a", "c"]


@pytest.mark.mostly_sqlite
def test_nothing_starves_while_better_jobs_keep_coming(service: Service, clock: FakeClock) -> None:
    rng = Random(7)
    tables = [f"t{number:02}" for number in range(8)]
    for name in tables:
        service.register(name)
    waiting: dict[str, float] = {}
    longest, number = 0.0, 0
    # One slot gets twice the work that it can do. Jobs of the first table gain nothing, those of all others gain much.
    for step in range(100):
        for name in tables:
            if name not in waiting and rng.random() < 0.25:
                number += 1
                worth = 0.0 if name == tables[0] else rng.expovariate(0.1)
                job_id = f"{name}_{number}"
                starts_by = clock() + timedelta(hours=1)
                queued(service.engine, clock, job_id, table_id=name, worth=worth, starts_by=starts_by)
                waiting[name] = step
        with writing(service.engine) as connection:
            deadline = clock() + timedelta(hours=1)
            job = lease_store.take(connection, worker_id="w", group="default", now=clock(), deadline=deadline)
        if job is not None:
            longest = max(longest, step - waiting.pop(job.table_id))
            service.end(job)
        clock.advance(300)
    # A job is overdue after an hour, which is 12 steps, and then waits for at most one job of each other table.
    assert longest <= 12 + len(tables)


def test_a_decision_has_the_savings_of_the_job_and_its_place_in_the_queue(service: Service, clock: FakeClock) -> None:
    forecaster = Forecaster()
    for number in range(5):
        ended = Ended(f"x{number}", "compaction", dry_run=False, seconds=8.0)
        forecaster._lessons.model.learn(ended)
    for name in ("tbl_1", "tbl_2", "tbl_3"):
        service.register(name)
        service.poll(name, commits=5)
        read_often(service, name, 100 * int(name[-1]))
    result = scheduler.run_once(service.database, service.config, forecaster)
    assert len(result.jobs) == 3
    by_table = {job.table_id: job for job in map(service.job, result.jobs)}
    worths = [by_table[f"tbl_{number}"].worth or 0.0 for number in (1, 2, 3)]
    assert worths == sorted(worths)
    assert worths[2] == pytest.approx(3 * worths[0])
    reasons = {table_id: job.reason or "" for table_id, job in by_table.items()}
    first = reasons[service.job(result.jobs[0]).table_id]
    last = reasons[service.job(result.jobs[-1]).table_id]
    assert first.startswith("5 commits and no compaction yet, threshold 5; saves ")
    assert first.endswith(" reader-minutes an hour for 8 s of work")
    assert last.rpartition("; ")[2] in ("1st of 3 waiting jobs", "2nd of 3 waiting jobs", "3rd of 3 waiting jobs")
    decision = service.decision(COMPACTION, "tbl_3")
    assert (decision.verdict, decision.because) == (Verdict.RUN, reasons["tbl_3"])
    assert by_table["tbl_1"].starts_by == clock() + timedelta(days=1)
    assert order(service.engine, clock) == [by_table[f"tbl_{number}"].id for number in (3, 2, 1)]


def test_expected_and_real_savings_of_a_job_are_shown_together(service: Service, clock: FakeClock) -> None:
    service.register()
    service.poll(commits=5)
    service.plan()
    job = service.lease()
    assert job is not None
    clock.advance(60)
    service.end(job, log_files=5, log_bytes=500)
    with reading(service.engine) as connection:
        (gain,) = gain_store.of_table(connection, "tbl_1", 10)
    assert (gain.job_id, gain.kind) == (job.id, COMPACTION)
    assert gain.saved_seconds == pytest.approx(5 * 0.02, rel=0.01)
    assert gain.overhead_after is None
    clock.advance(60)
    service.poll(commits=0)
    service.plan()
    with reading(service.engine) as connection:
        (gain,) = gain_store.of_table(connection, "tbl_1", 10)
    assert gain.overhead_before > 1
    assert gain.overhead_after == 1.0


def test_a_kind_of_job_that_gains_nothing_runs_less_often(service: Service, clock: FakeClock) -> None:
    service.register()
    waits = []
    for _ in range(6):
        service.poll(freed=9, since_cleaning=10)
        while not (result := service.plan()).jobs:
            decision = service.decision(CLEANING)
            assert decision.verdict is Verdict.WAIT
            clock.advance(300)
            waits.append(decision.code)
            service.poll(freed=9, since_cleaning=10)
        job = service.lease()
        assert job is not None
        assert [job.id] == list(result.jobs)
        service.end(job, files_deleted=0)
        clock.advance(601)
    # The policy waits for 20 minutes after the fourth job, for 40 after the fifth; polls are five minutes apart.
    assert waits.count("gained-nothing") == 2 + 6
    service.poll(freed=9, since_cleaning=10)
    service.plan()
    assert service.decision(CLEANING).code == "gained-nothing"
    assert "gained nothing; the next may start at" in service.decision(CLEANING).because
    # After a change of the policy the earlier jobs do not count any more.
    policy_registry.put_table(service.engine, clock, "tbl_1", {"cleaning": {"commits": 5}})
    assert service.plan().jobs


def test_an_objective_that_is_missed_for_a_while_is_a_problem(service: Service, clock: FakeClock) -> None:
    service.register()
    objective(service, read_overhead=1.2)
    service.poll(commits=20)
    assert len(service.plan().jobs) == 1
    assert "right after a compaction, 1.2 allowed" in service.decision().because

    def missed_since() -> str | None:
        with reading(service.engine) as connection:
            (facts,) = table_store.facts(connection, clock(), ["tbl_1"])
        problem = objectives.missed(facts, clock())
        return problem.detail if problem else None

    assert missed_since() is None
    for _ in range(4):
        clock.advance(600)
        service.poll(commits=20)
        service.plan()
    detail = missed_since()
    assert detail is not None
    assert detail.startswith("For 40 min a read costs ")
    assert "kept 0.0 % of the last week" in detail
    with reading(service.engine) as connection:
        assert objective_store.kept(connection, "tbl_1", clock() - timedelta(hours=2)).missed_seconds == 2400
    service.run()
    clock.advance(600)
    service.poll(commits=0)
    service.plan()
    assert missed_since() is None


def test_time_without_checks_and_steps_of_the_clock_do_not_count(engine: sa.Engine, service: Service) -> None:
    service.register()
    clock = service.clock
    with writing(engine) as connection:
        for step, look in (
            (0, ObjectiveCheck(2.0, "much")),
            (600, ObjectiveCheck(1.0)),
            (-7200, ObjectiveCheck(2.0, "much")),
            (86_400, ObjectiveCheck(1.0)),
        ):
            clock.advance(step)
            objective_store.record(connection, "tbl_1", look, clock())
        assert objective_store.kept(connection, "tbl_1", clock() - timedelta(days=7)) == Kept(600.0, 600.0)
        assert objective_store.prune(connection, clock() + timedelta(days=40), 10) == 1


def test_reads_that_stop_make_no_job_urgent_and_none_is_forgotten(service: Service, clock: FakeClock) -> None:
    service.register()
    objective(service, read_overhead=1.2)
    read_often(service, "tbl_1", 1)
    clock.advance(6 * 86_400)
    with writing(service.engine) as connection:
        commit = Commit("tbl_1", "20260107000000000", "deltacommit", None, clock(), clock(), "UPSERT", file_groups=1)
        commit_store.record(connection, [commit], clock())
    started = []
    for _ in range(30):
        service.poll(commits=20)
        started += service.plan().jobs
        for job_id in started[-1:]:
            if service.job(job_id).state.is_active and (job := service.lease()):
                service.end(job, log_files=20, log_bytes=2000)
        clock.advance(3600)
    # The oldest log becomes a day old only once.
    assert len(started) in (1, 2)


def test_the_outcome_of_a_table_is_shown(
    client: TestClient, table_id: str, sqlite: sa.Engine, clock: FakeClock
) -> None:
    shown = client.get(f"/v1/tables/{table_id}/outcome").json()
    assert (shown["is_set"], shown["cost"], shown["kept"], shown["gains"]) == (False, None, None, [])
    assert shown["reads"] == {"per_day": 24.0, "source": "assumed", "text": "reads unknown: 24 a day assumed"}
    put = client.put(
        f"/v1/tables/{table_id}/policy", json={"objective": {"read_overhead": 1.2, "log_age_seconds": 900}}
    )
    assert put.json()["policy"]["objective"]["read_overhead"] == 1.2
    service = Service(sqlite, clock)
    service.poll(table_id, commits=5)
    service.plan()
    clock.advance(300)
    shown = client.get(f"/v1/tables/{table_id}/outcome").json()
    assert shown["cost"]["basis"] == "default"
    assert shown["cost"]["overhead"] > 1
    assert shown["kept"]["missed"] is None or shown["kept"]["missed"]
    assert len(shown["gains"]) == 1
    for wrong in ({"read_overhead": 1}, {"log_age_seconds": 1}, {"max_gb_hours_per_day": 0}, {"reads": 3}):
        assert client.put(f"/v1/tables/{table_id}/policy", json={"objective": wrong}).status_code == 422


def test_a_budget_is_shared_by_the_tables_of_a_tag_and_carried_over(service: Service, clock: FakeClock) -> None:
    for name in ("tbl_1", "tbl_2", "tbl_3"):
        service.register(name, tags={} if name == "tbl_3" else {"team": "shop"})
    settings = {"budget": {"worker_hours_per_day": 1.0, "carry_over_days": 1}}
    policy_registry.put_pattern(service.engine, clock, "tag:team=shop", precedence=0, settings=settings)

    def spend_hours(hours: float) -> None:
        with writing(service.engine) as connection:
            figures = Figures(succeeded=1, seconds=3600 * hours)
            attempt_figures.add(connection, "tbl_1", COMPACTION, figures, clock())

    def start_order() -> list[str]:
        for name in ("tbl_2", "tbl_3"):
            service.poll(name, commits=5)
        found = [service.job(each).table_id for each in service.plan().jobs]
        for _ in found:
            job = service.lease()
            assert job is not None
            service.end(job, log_files=1, log_bytes=1)
        clock.advance(61)
        return sorted(found)

    assert start_order() == ["tbl_2", "tbl_3"]
    # The budget is one worker-hour of today and another one that was left of yesterday.
    spend_hours(1.5)
    assert start_order() == ["tbl_2", "tbl_3"]
    spend_hours(0.5)
    assert start_order() == ["tbl_3"]
    because = service.decision(COMPACTION, "tbl_2").because
    assert "but the tables of pattern tag:team=shop have taken 2" in because
    assert because.endswith(" worker-hours today, 2 allowed")
    # The jobs have spent two worker-hours, so nothing is carried over, and the next day has one worker-hour.
    clock.advance(86_400)
    assert start_order() == ["tbl_2", "tbl_3"]
    spend_hours(1.0)
    assert start_order() == ["tbl_3"]
    # The table's own budget takes precedence over the budget of the pattern.
    policy_registry.put_table(service.engine, clock, "tbl_2", {"budget": {"worker_hours_per_day": 5.0}})
    assert start_order() == ["tbl_2", "tbl_3"]


def test_a_worker_group_has_a_budget_that_its_tables_share(service: Service, clock: FakeClock) -> None:
    for name in ("tbl_1", "tbl_2", "tbl_3"):
        service.register(name)
    for name in ("tbl_1", "tbl_2"):
        policy_registry.put_table(service.engine, clock, name, {"worker_group": "night"})
    service.config = replace(service.config, worker_hours_by_group={"night": 1.0, "other": 1.0})
    with writing(service.engine) as connection:
        attempt_figures.add(connection, "tbl_1", COMPACTION, Figures(succeeded=1, seconds=3600 * 1.9), clock())
    # An hour of yesterday is left.
    service.poll("tbl_2", commits=5)
    assert [service.job(each).table_id for each in service.plan().jobs] == ["tbl_2"]
    job = service.lease("night")
    assert job is not None
    service.end(job, log_files=1, log_bytes=1)
    with writing(service.engine) as connection:
        attempt_figures.add(connection, "tbl_1", COMPACTION, Figures(succeeded=1, seconds=3600 * 0.1), clock())
    clock.advance(61)
    for name in ("tbl_2", "tbl_3"):
        service.poll(name, commits=5)
    assert [service.job(each).table_id for each in service.plan().jobs] == ["tbl_3"]
    because = service.decision(COMPACTION, "tbl_2").because
    assert because.endswith("the tables of worker group 'night' have taken 2 worker-hours today, 2 allowed")
    # A decision that is only shown is the same.
    found = scheduler.evaluate(service.database, "tbl_2", service.config).decisions
    assert [each.because for each in found if each.kind is COMPACTION] == [because]


def test_the_worth_of_a_job_that_waits_follows_its_table(service: Service, clock: FakeClock) -> None:
    forecaster = Forecaster()
    forecaster._lessons.model.learn(Ended("x", "compaction", dry_run=False, seconds=8.0))
    for name in ("tbl_1", "tbl_2"):
        service.register(name)
        service.poll(name, commits=5)
        read_often(service, name, 10 if name == "tbl_1" else 20)
    started = scheduler.run_once(service.database, service.config, forecaster).jobs
    before = {job.table_id: job for job in map(service.job, started)}
    assert (before["tbl_1"].worth or 0) < (before["tbl_2"].worth or 0)
    # The first table gets many commits and reads, the second one has no logs and is not read any more.
    clock.advance(60)
    service.poll("tbl_1", commits=500)
    service.poll("tbl_2", commits=0)
    scheduler.run_once(service.database, service.config, forecaster)
    after = {job.table_id: job for job in map(service.job, started)}
    assert (after["tbl_1"].worth or 0) > 5 * (before["tbl_1"].worth or 0)
    assert after["tbl_2"].worth == 0.0
    assert after["tbl_1"].starts_by == before["tbl_1"].starts_by
    assert order(service.engine, clock) == [after["tbl_1"].id, after["tbl_2"].id]
