"""Deciding about tables on real databases: what is started, what is written down, and what two planners do at once."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta
from random import Random
from threading import Barrier
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from jobs.contract import JobKind, Outcome, Problem, Result
from service.flows import lease, plan, policies, register, registry, submit
from service.flows.bell import Bell
from service.flows.lease import LeaseTerms
from service.flows.plan import Planned, Terms
from service.model.decision import Decision, Verdict
from service.model.errors import JobConflictError
from service.model.job import Job, JobState
from service.model.registration import Registration
from service.model.snapshot import PartitionState, Since, TableSnapshot
from service.model.table import TableType
from service.policy.backoff import BackOff
from service.policy.planner import Limits
from service.store import decisions, jobs, planning, tables
from service.store import policies as store_policies
from service.store.engine import reading, writing

if TYPE_CHECKING:
    import sqlalchemy as sa

COMPACTION, CLEANING = JobKind.COMPACTION, JobKind.CLEANING
REFUSAL = Problem("column-unknown", "There is no such column")


class Clock(Protocol):
    def __call__(self) -> datetime: ...
    def advance(self, seconds: float) -> None: ...


class Service:
    """What `serve` does between the lake and the workers, step by step. `looks` are the tables as they were seen."""

    def __init__(self, engine: sa.Engine, clock: Clock, **limits: Any) -> None:
        self.engine = engine
        self.clock = clock
        self.bell = Bell()
        self.looks: dict[str, TableSnapshot] = {}
        self.terms = Terms(Limits(**limits))
        self._lease_terms = LeaseTerms(timedelta(seconds=30), 60.0, BackOff())

    def register(self, table_id: str = "tbl_1", **changes: Any) -> None:
        table = Registration(table_id, f"/lake/{table_id}", table_id, self.clock(), self.clock())
        with writing(self.engine) as connection:
            tables.register(connection, table.evolve(**changes))

    def look(self, table_id: str = "tbl_1", *, commits: int = 0, freed: int = 0, since_cleaning: int = 0) -> None:
        """The table was written to and looked at just now."""
        state = PartitionState("", base_bytes=1000, log_bytes=100 * commits, freed_files=freed, freed_bytes=freed)
        self.looks[table_id] = TableSnapshot(
            table_id,
            taken_at=self.clock(),
            table_type=TableType.MERGE_ON_READ,
            partitions=(state,),
            last_commit_at=self.clock(),
            since_compaction=Since(commits),
            since_cleaning=Since(since_cleaning),
        )
        with writing(self.engine) as connection:
            planning.wake(connection, table_id, self.clock())

    def plan(self) -> Planned:
        return plan.run_once(
            self.engine,
            self.bell,
            self.clock,
            snapshot_of=lambda _, table_id: self.looks.get(table_id),
            terms=self.terms,
        )

    def lease(self) -> Job | None:
        leased = lease.lease(self.engine, self.clock, self._lease_terms, "w1")
        return self.job(leased.job_id) if leased else None

    def end(self, job: Job, outcome: Outcome = Outcome.SUCCEEDED) -> None:
        error = None if outcome is Outcome.SUCCEEDED else REFUSAL
        result = Result(outcome, error=error)
        lease.report(self.engine, self.bell, self.clock, Random(1), self._lease_terms, job.id, job.attempt, result)

    def run(self, outcome: Outcome = Outcome.SUCCEEDED) -> Job:
        """A worker takes the next job and ends it."""
        job = self.lease()
        assert job is not None
        self.end(job, outcome)
        return job

    def job(self, job_id: str) -> Job:
        with reading(self.engine) as connection:
            return jobs.get(connection, job_id)

    def decision(self, kind: JobKind = COMPACTION, table_id: str = "tbl_1") -> Decision:
        with reading(self.engine) as connection:
            return decisions.latest(connection, table_id)[kind]

    def history(self, kind: JobKind = COMPACTION) -> list[Decision]:
        with reading(self.engine) as connection:
            return list(decisions.page(connection, "tbl_1", limit=100, kind=kind).items)


@pytest.fixture
def service(engine: sa.Engine, clock: Clock) -> Service:
    service = Service(engine, clock)
    service.register()
    return service


def test_a_job_starts_when_it_is_due_and_says_why(service: Service, clock: Clock) -> None:
    policies.put_table(service.engine, clock, "tbl_1", {"priority": 7})
    service.look(commits=5)
    planned = service.plan()
    [job_id] = planned.jobs
    job = service.job(job_id)
    assert (job.kind, job.state, dict(job.params), job.priority) == (COMPACTION, JobState.QUEUED, {}, 7)
    assert (job.requested_by, job.reason) == ("policy", "5 commits and no compaction yet, 5 asked for")
    decision = service.decision()
    assert (decision.verdict, decision.job_id, decision.because) == (Verdict.RUN, job_id, job.reason)
    assert service.decision(JobKind.CLUSTERING).code == "off"
    assert service.plan() == Planned()


def test_a_table_that_was_never_looked_at_is_left_alone(service: Service, clock: Clock) -> None:
    assert service.plan() == Planned()
    with writing(service.engine) as connection:
        planning.wake(connection, "tbl_1", clock())
    assert service.plan() == Planned(tables=1)
    assert service.plan() == Planned()


def test_the_same_decision_again_and_again_is_one_row_with_the_latest_figures(service: Service, clock: Clock) -> None:
    begin = clock()
    for commits in range(1, 5):
        service.look(commits=commits)
        service.plan()
        clock.advance(60)
    [decision] = service.history()
    assert (decision.verdict, decision.code, decision.count) == (Verdict.SKIP, "not-yet", 4)
    assert decision.because == "4 commits and no compaction yet, 5 asked for"
    assert (decision.first_at, decision.last_at) == (begin, clock() - timedelta(seconds=60))


def test_cleaning_waits_for_compaction(service: Service, clock: Clock) -> None:
    service.look(commits=5, freed=3, since_cleaning=10)
    service.plan()
    assert service.decision(CLEANING).code == "not-its-turn"
    clock.advance(10)
    job = service.run()
    [cleaning] = service.plan().jobs
    assert service.job(cleaning).kind is CLEANING
    assert job.kind is COMPACTION
    assert service.decision(CLEANING).wanted_since is None


def test_it_is_known_since_when_a_job_has_been_due_whatever_it_had_to_wait_for(service: Service, clock: Clock) -> None:
    begin = clock()
    service.look(commits=5, freed=3, since_cleaning=10)
    service.plan()
    clock.advance(60)
    service.look(commits=6, freed=3, since_cleaning=11)
    service.plan()
    waits = [each for each in service.history(CLEANING) if each.verdict is Verdict.WAIT]
    assert [(each.code, each.wanted_since) for each in waits] == [("table-busy", begin), ("not-its-turn", begin)]


def test_a_compaction_is_not_repeated_before_its_effect_is_seen(service: Service, clock: Clock) -> None:
    policies.put_table(service.engine, clock, "tbl_1", {"compaction": {"min_interval_seconds": 0}})
    service.look(commits=5)
    service.plan()
    job = service.lease()
    assert job is not None
    clock.advance(10)
    # A writer commits meanwhile, so there is something new.
    service.look(commits=6)
    clock.advance(10)
    service.end(job)
    assert service.plan().jobs == ()
    assert service.decision().code == "not-looked-at"
    clock.advance(10)
    service.look(commits=0)
    service.plan()
    assert service.decision().code == "no-logs"


def test_a_job_that_failed_for_good_is_not_asked_for_again_at_once(service: Service, clock: Clock) -> None:
    service.look(commits=5)
    service.plan()
    service.run(Outcome.FAILED)
    for _ in range(3):
        clock.advance(60)
        service.look(commits=6)
        assert service.plan().jobs == ()
    decision = service.decision()
    assert decision.verdict is Verdict.WAIT
    assert "the last compaction failed 3 min ago: column-unknown; next try at 2026-01-01 00:10 UTC" in decision.because
    # Time alone brings it back,
    clock.advance(420)
    assert len(service.plan().jobs) == 1
    service.run(Outcome.FAILED)
    clock.advance(60)
    service.look(commits=7)
    assert service.plan().jobs == ()
    # and so does whoever changes what is asked for.
    policies.put_table(service.engine, clock, "tbl_1", {"compaction": {"commits": 4}})
    assert len(service.plan().jobs) == 1


def test_who_cancels_a_job_that_was_started_by_itself_does_not_get_it_back_at_once(
    service: Service, clock: Clock
) -> None:
    service.look(commits=5)
    [job_id] = service.plan().jobs
    submit.cancel(service.engine, service.bell, clock, job_id)
    assert service.plan() == Planned(tables=1)
    assert service.decision().code == "failed-before"


def test_a_pause_takes_back_what_waits_and_lets_go_on_what_has_begun(service: Service, clock: Clock) -> None:
    service.register("tbl_2")
    for table_id in ("tbl_1", "tbl_2"):
        service.look(table_id, commits=5)
        clock.advance(1)
    service.plan()
    begun = service.lease()
    assert begun is not None
    policies.pause(service.engine, service.bell, clock, by="anna", reason="the storage is being moved")
    assert service.lease() is None
    assert service.job(begun.id).state is JobState.LEASED
    service.look("tbl_2", commits=6)
    assert service.plan().jobs == ()
    because = "6 commits and no compaction yet, 5 asked for; but anna paused all upkeep on 2026-01-01 00:00 UTC"
    assert service.decision(table_id="tbl_2").because == f"{because} (the storage is being moved)"
    policies.resume(service.engine, service.bell, clock)
    assert len(service.plan().jobs) == 1


def test_a_table_can_be_paused_alone(service: Service, clock: Clock) -> None:
    service.register("tbl_2")
    for table_id in ("tbl_1", "tbl_2"):
        service.look(table_id, commits=5)
    assert len(service.plan().jobs) == 2
    policies.put_table(service.engine, clock, "tbl_1", {"paused": True})
    service.plan()
    assert service.decision().code == "paused"
    with reading(service.engine) as connection:
        assert jobs.active(connection, "tbl_1") == []
        assert len(jobs.active(connection, "tbl_2")) == 1
    policies.delete_table(service.engine, clock, "tbl_1")
    assert len(service.plan().jobs) == 1


def test_outside_the_window_nothing_starts_and_what_nobody_took_is_taken_back(service: Service, clock: Clock) -> None:
    clock.advance(3600)
    window = {"start": "02:00", "end": "02:30"}
    policies.put_table(service.engine, clock, "tbl_1", {"windows": [window]})
    service.look(commits=5)
    assert service.plan().jobs == ()
    assert service.decision().code == "outside-window"
    clock.advance(3600)
    # Time alone opens it, and closes it.
    [job_id] = service.plan().jobs
    clock.advance(1800)
    assert service.plan() == Planned(tables=1)
    job = service.job(job_id)
    assert (job.state, job.error and job.error.type) == (JobState.CANCELLED, "withdrawn")
    assert service.decision().code == "outside-window"
    clock.advance(23.5 * 3600)
    assert len(service.plan().jobs) == 1


def test_a_calendar_starts_a_job_once_each_time_however_late(service: Service, clock: Clock) -> None:
    policies.put_table(service.engine, clock, "tbl_1", {"compaction": {"cron": "0 2 * * *"}})
    service.look(commits=99)
    service.plan()
    assert service.decision().because == "its next time by the calendar is 2026-01-01 02:00 UTC"
    # The service was down at two, and the night after.
    clock.advance(30 * 3600)
    service.look(commits=100)
    assert len(service.plan().jobs) == 1
    service.run()
    clock.advance(3600)
    service.look(commits=101)
    assert service.plan().jobs == ()
    assert service.decision().because == "its next time by the calendar is 2026-01-03 02:00 UTC"
    clock.advance(19 * 3600)
    assert len(service.plan().jobs) == 1


def test_a_time_of_the_calendar_is_not_lost_while_the_table_is_busy(service: Service, clock: Clock) -> None:
    policies.put_table(service.engine, clock, "tbl_1", {"compaction": {"cron": "0 2 * * *"}})
    service.look(commits=1)
    service.plan()
    ask(service, JobKind.CLEANING)
    cleaning = service.lease()
    assert cleaning is not None
    clock.advance(2 * 3600)
    assert service.plan().jobs == ()
    assert service.decision().code == "table-busy"
    clock.advance(600)
    service.end(cleaning)
    clock.advance(1)
    service.look(commits=1)
    assert len(service.plan().jobs) == 1


def test_a_calendar_with_nothing_to_do_waits_for_its_next_time(service: Service, clock: Clock) -> None:
    policies.put_table(service.engine, clock, "tbl_1", {"compaction": {"cron": "0 2 * * *"}})
    service.look(commits=0)
    service.plan()
    clock.advance(2 * 3600)
    service.plan()
    assert service.decision().code == "no-logs"
    clock.advance(60)
    service.look(commits=9)
    assert service.plan().jobs == ()
    assert service.decision().code == "not-yet"


def test_a_table_that_cannot_be_decided_about_does_not_keep_the_others(
    service: Service, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    service.register("tbl_2")
    for table_id in ("tbl_1", "tbl_2"):
        service.look(table_id, commits=5)
        clock.advance(1)
    policies.put_table(
        service.engine, clock, "tbl_1", {"time_zone": "Mars/Olympus", "compaction": {"cron": "* * * * *"}}
    )
    planned = service.plan()
    assert planned.tables == 2
    assert service.job(planned.jobs[0]).table_id == "tbl_2"
    assert "Table tbl_1 cannot be decided about" in caplog.text
    # It is not tried again all the time.
    assert service.plan() == Planned()
    policies.delete_table(service.engine, clock, "tbl_1")
    assert len(service.plan().jobs) == 1


def test_with_a_table_everything_that_was_decided_about_it_goes(service: Service, clock: Clock) -> None:
    policies.put_table(service.engine, clock, "tbl_1", {"priority": 1})
    service.look(commits=1)
    service.plan()
    with writing(service.engine) as connection:
        tables.unregister(connection, "tbl_1")
        assert decisions.latest(connection, "tbl_1") == {}
    assert service.plan() == Planned()


def test_a_table_that_gets_another_name_gets_other_policies(service: Service, clock: Clock) -> None:
    policies.put_pattern(service.engine, clock, "new*", precedence=0, settings={"compaction": {"commits": 2}})
    service.look(commits=3)
    assert service.plan().jobs == ()
    registry.change(
        service.engine,
        "tbl_1",
        {"name": "new"},
        examine=register.examine,
        allowed_roots=None,
        storage_options={},
        clock=clock,
    )
    assert len(service.plan().jobs) == 1


def test_evaluating_writes_nothing(service: Service, clock: Clock) -> None:
    service.look(commits=5)
    found = plan.evaluate(
        service.engine, clock, "tbl_1", snapshot_of=lambda _, table_id: service.looks[table_id], terms=service.terms
    )
    assert [each.verdict for each in found.decisions] == [Verdict.RUN, Verdict.SKIP, Verdict.SKIP, Verdict.SKIP]
    assert found.looked_at == clock()
    assert service.history() == []
    with reading(service.engine) as connection:
        assert jobs.active(connection, "tbl_1") == []


def ask(service: Service, kind: JobKind, table_id: str = "tbl_1") -> Job:
    return submit.submit(
        service.engine,
        service.bell,
        service.clock,
        table_id=table_id,
        kind=kind,
        params={},
        dry_run=False,
        max_attempts=1,
        idempotency_key=None,
    ).job


def test_who_posts_a_job_first_is_told_of_in_the_decision(service: Service) -> None:
    asked = ask(service, COMPACTION)
    service.look(commits=5)
    assert service.plan().jobs == ()
    assert service.decision().because.endswith(f"but compaction {asked.id} is queued")


@pytest.mark.parametrize("planners", [2, 4])
def test_planners_that_decide_at_once_start_no_job_twice(engine: sa.Engine, clock: Clock, planners: int) -> None:
    service = Service(engine, clock, active=9, at_once=100)
    names = [f"tbl_{number}" for number in range(12)]
    for name in names:
        service.register(name)
        service.look(name, commits=5, freed=1, since_cleaning=10)
    together = Barrier(planners)

    def run(_: int) -> Planned:
        together.wait()
        return service.plan()

    with ThreadPoolExecutor(planners) as pool:
        done = list(pool.map(run, range(planners)))
    started = [job_id for planned in done for job_id in planned.jobs]
    assert sum(planned.tables for planned in done) == len(names)
    # Each table is decided about by one of them, and the limit of the service holds over all of them.
    assert len(started) == len(set(started)) == 9
    assert max(Counter(service.job(job_id).table_id for job_id in started).values()) == 1


def test_a_planner_and_a_caller_at_once_start_no_job_twice(engine: sa.Engine, clock: Clock) -> None:
    service = Service(engine, clock)
    names = [f"tbl_{number}" for number in range(10)]
    for name in names:
        service.register(name)
        service.look(name, commits=5)
    together = Barrier(2)

    def post() -> None:
        together.wait()
        for name in reversed(names):
            with suppress(JobConflictError):
                ask(service, COMPACTION, name)

    def decide() -> None:
        together.wait()
        service.plan()

    with ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(post), pool.submit(decide)]:
            future.result()
    with reading(engine) as connection:
        assert [len(jobs.active(connection, name)) for name in names] == [1] * len(names)


def test_after_a_downtime_jobs_start_a_few_at_a_time_and_every_table_is_served(engine: sa.Engine, clock: Clock) -> None:
    """Forty tables are due at once, one of which is due again at every moment."""
    service = Service(engine, clock, active=6, at_once=4)
    names = [f"tbl_{number}" for number in range(40)]
    for name in names:
        service.register(name)
        policies.put_table(engine, clock, name, {"compaction": {"min_interval_seconds": 0}})
        service.look(name, commits=5)
    served: Counter[str] = Counter()
    rounds = 0
    while len(served) < len(names):
        rounds += 1
        assert rounds < 40, f"not served: {sorted(set(names) - set(served))}"
        started = service.plan().jobs
        assert len(started) <= 4
        with reading(engine) as connection:
            assert sum(jobs.active_by_kind(connection).values()) <= 6
        clock.advance(1)
        for _ in range(2):
            job = service.run()
            served[job.table_id] += 1
            clock.advance(1)
            service.look(job.table_id, commits=5 if job.table_id == "tbl_0" else 0)
    assert served["tbl_0"] <= 4


def test_tables_are_decided_about_in_the_order_in_which_they_became_due(engine: sa.Engine, clock: Clock) -> None:
    """Three at a time, of which two are due again at every moment."""
    service = Service(engine, clock)
    service.terms = Terms(tables_at_once=3)
    for name in ("a_hot", "z_hot"):
        service.register(name)
        service.look(name)
    names = [f"t{number}" for number in range(9)]
    for name in names:
        service.register(name)
        clock.advance(1)
        service.look(name)
    for _ in range(4):
        assert service.plan().tables == 3
        clock.advance(1)
        for name in ("a_hot", "z_hot"):
            service.look(name)
    with reading(engine) as connection:
        assert all(decisions.latest(connection, name) for name in names)


def test_who_waits_for_room_keeps_its_place(engine: sa.Engine, clock: Clock) -> None:
    service = Service(engine, clock, active=1)
    for name in ("first", "second", "third"):
        service.register(name)
        service.look(name, commits=5)
        clock.advance(1)
    order = []
    for number in range(3):
        [job_id] = service.plan().jobs
        order.append(service.job(job_id).table_id)
        clock.advance(1)
        # Those that come later do not go before it, nor does it matter that it is looked at again.
        service.look("third", commits=6)
        service.plan()
        service.run()
        clock.advance(1)
        service.register(f"late_{number}")
        service.look(f"late_{number}", commits=5)
    assert order == ["first", "second", "third"]


def test_who_waits_for_a_kind_does_not_keep_those_that_wait_for_any(engine: sa.Engine, clock: Clock) -> None:
    """Two may be active, one of them a cleaning. The cleanings came first."""
    service = Service(engine, clock, active=2, per_kind={CLEANING: 1})
    for name, look in [
        ("clean_1", {"freed": 1, "since_cleaning": 10}),
        ("clean_2", {"freed": 1, "since_cleaning": 10}),
        ("compact_1", {"commits": 5}),
        ("compact_2", {"commits": 5}),
    ]:
        service.register(name)
        service.look(name, **look)
        clock.advance(1)

    def started() -> list[str]:
        return [service.job(job_id).table_id for job_id in service.plan().jobs]

    assert started() == ["clean_1", "compact_1"]
    leased = {job.kind: job for job in (service.lease(), service.lease()) if job}
    clock.advance(1)
    service.end(leased[COMPACTION])
    assert started() == ["compact_2"]
    clock.advance(1)
    service.end(leased[CLEANING])
    assert started() == ["clean_2"]


def test_two_that_set_the_same_new_policy_at_once_follow_each_other(engine: sa.Engine, clock: Clock) -> None:
    together = Barrier(4)

    def put(priority: int) -> None:
        together.wait()
        for pattern in ("a*", "b*", "c*"):
            policies.put_pattern(engine, clock, pattern, precedence=0, settings={"priority": priority})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(put, range(4)))
    with reading(engine) as connection:
        assert [each.pattern for each in store_policies.every(connection)] == ["a*", "b*", "c*"]
