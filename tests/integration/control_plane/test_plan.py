"""Tests the decisions about a table on real databases: the started jobs, and the stored decisions."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from jobs.contract import BucketIndex, JobKind, Outcome, TableLock, WriterEngine
from service.access.secret_cipher import SecretCipher
from service.catalog import decision_times, snapshot_store, table_store
from service.catalog.registration import Writers
from service.db.engine import reading, writing
from service.lake.snapshot import PartitionState, Pending, Since, TableSnapshot
from service.lake.table import TableType
from service.observation.lake_access import LakeAccess
from service.policies import policy_registry
from service.queue import job_store, submission
from service.queue.job import JobState
from service.registration import detection, registry
from service.scheduling import decision_store, pausing, scheduler
from service.scheduling.decision import DECIDED, Verdict
from service.scheduling.scheduler import SchedulerResult
from tests.integration.control_plane.planning import CLEANING, COMPACTION, Service, save_poll, submit_job

if TYPE_CHECKING:
    from tests.integration.control_plane.conftest import FakeClock


pytestmark = pytest.mark.mostly_sqlite


@pytest.fixture
def service(engine: sa.Engine, clock: FakeClock) -> Service:
    service = Service(engine, clock)
    service.register()
    return service


def _change(service: Service, changes: dict[str, Any]) -> None:
    registry.change(service.database, LakeAccess(detection.examine), "tbl_1", changes, allowed_roots=None)


def test_a_job_starts_when_it_is_due_and_says_why(service: Service, clock: FakeClock) -> None:
    policy_registry.put_table(service.engine, clock, "tbl_1", {"priority": 7})
    service.poll(commits=5)
    planned = service.plan()
    [job_id] = planned.jobs
    job = service.job(job_id)
    assert (job.kind, job.state, dict(job.params), job.priority) == (COMPACTION, JobState.QUEUED, {}, 7)
    assert (job.requested_by, job.reason) == ("policy", "5 commits and no compaction yet, threshold 5")
    decision = service.decision()
    assert (decision.verdict, decision.job_id, decision.because) == (Verdict.RUN, job_id, job.reason)
    assert service.decision(JobKind.CLUSTERING).code == "off"
    assert service.plan() == SchedulerResult()


def test_no_job_starts_on_a_table_that_was_never_polled(service: Service, clock: FakeClock) -> None:
    assert service.plan() == SchedulerResult()
    with writing(service.engine) as connection:
        decision_times.wake(connection, "tbl_1", clock())
    assert service.plan() == SchedulerResult(tables=1)
    assert service.plan() == SchedulerResult()


def test_the_same_decision_again_and_again_is_one_row_with_the_latest_figures(
    service: Service, clock: FakeClock
) -> None:
    begin = clock()
    for commits in range(1, 5):
        service.poll(commits=commits)
        service.plan()
        clock.advance(60)
    [decision] = service.history()
    assert (decision.verdict, decision.code, decision.count) == (Verdict.SKIP, "not-yet", 4)
    assert decision.because == "4 commits and no compaction yet, threshold 5"
    assert (decision.first_at, decision.last_at) == (begin, clock() - timedelta(seconds=60))


def test_a_decision_does_not_ask_the_database_for_each_kind_of_job(service: Service, clock: FakeClock) -> None:
    """A decision is about twelve kinds, and a service with very many tables makes several decisions a second."""
    service.poll(commits=1)
    service.plan()
    clock.advance(5)
    service.poll(commits=2)
    executed: list[str] = []

    @sa.event.listens_for(service.engine, "before_cursor_execute")
    def note(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        executed.append(statement)

    assert service.plan().tables == 1
    of_decisions = [each for each in executed if "decisions" in each]
    assert len(of_decisions) == 2, of_decisions
    assert len(executed) < 25, executed


def test_cleaning_waits_for_compaction(service: Service, clock: FakeClock) -> None:
    service.poll(commits=5, freed=3, since_cleaning=10)
    service.plan()
    assert service.decision(CLEANING).code == "not-its-turn"
    clock.advance(10)
    job = service.run()
    [cleaning] = service.plan().jobs
    assert service.job(cleaning).kind is CLEANING
    assert job.kind is COMPACTION
    assert service.decision(CLEANING).wanted_since is None


def test_a_decision_says_since_when_a_job_has_been_due_whatever_delays_it(service: Service, clock: FakeClock) -> None:
    begin = clock()
    service.poll(commits=5, freed=3, since_cleaning=10)
    service.plan()
    clock.advance(60)
    service.poll(commits=6, freed=3, since_cleaning=11)
    service.plan()
    waits = [each for each in service.history(CLEANING) if each.verdict is Verdict.WAIT]
    assert [(each.code, each.wanted_since) for each in waits] == [("table-busy", begin), ("not-its-turn", begin)]


def test_a_compaction_is_not_repeated_before_its_effect_is_seen(service: Service, clock: FakeClock) -> None:
    policy_registry.put_table(service.engine, clock, "tbl_1", {"compaction": {"min_interval_seconds": 0}})
    service.poll(commits=5)
    service.plan()
    job = service.lease()
    assert job is not None
    clock.advance(10)
    # A writer commits meanwhile, so there is new work.
    service.poll(commits=6)
    clock.advance(10)
    service.end(job)
    assert service.plan().jobs == ()
    assert service.decision().code == "not-looked-at"
    clock.advance(10)
    service.poll(commits=0)
    service.plan()
    assert service.decision().code == "no-logs"


def test_a_policy_does_not_at_once_repeat_a_job_that_failed_for_good(service: Service, clock: FakeClock) -> None:
    service.poll(commits=5)
    service.plan()
    service.run(Outcome.FAILED)
    for _ in range(3):
        clock.advance(60)
        service.poll(commits=6)
        assert service.plan().jobs == ()
    decision = service.decision()
    assert decision.verdict is Verdict.WAIT
    assert "the last compaction failed 3 min ago: column-unknown; next try at 2026-01-01 00:10 UTC" in decision.because
    # The policy tries again when the time has come.
    clock.advance(420)
    assert len(service.plan().jobs) == 1
    service.run(Outcome.FAILED)
    clock.advance(60)
    service.poll(commits=7)
    assert service.plan().jobs == ()
    # A change of the policy also lets the policy try again.
    policy_registry.put_table(service.engine, clock, "tbl_1", {"compaction": {"commits": 4}})
    assert len(service.plan().jobs) == 1


def test_a_policy_does_not_at_once_repeat_a_job_that_a_person_cancelled(service: Service, clock: FakeClock) -> None:
    service.poll(commits=5)
    [job_id] = service.plan().jobs
    submission.cancel(service.database, job_id)
    assert service.plan() == SchedulerResult(tables=1)
    assert service.decision().code == "failed-before"


def test_a_pause_withdraws_waiting_jobs_but_not_those_that_have_begun(service: Service, clock: FakeClock) -> None:
    service.register("tbl_2")
    for table_id in ("tbl_1", "tbl_2"):
        service.poll(table_id, commits=5)
        clock.advance(1)
    service.plan()
    begun = service.lease()
    assert begun is not None
    pausing.pause(service.engine, service.notifier, clock, by="anna", reason="the storage is being moved")
    assert service.lease() is None
    assert service.job(begun.id).state is JobState.LEASED
    service.poll("tbl_2", commits=6)
    assert service.plan().jobs == ()
    because = "6 commits and no compaction yet, threshold 5; but anna paused all upkeep on 2026-01-01 00:00 UTC"
    assert service.decision(table_id="tbl_2").because == f"{because} (the storage is being moved)"
    pausing.resume(service.engine, service.notifier, clock)
    assert len(service.plan().jobs) == 1


def test_a_table_can_be_paused_alone(service: Service, clock: FakeClock) -> None:
    service.register("tbl_2")
    for table_id in ("tbl_1", "tbl_2"):
        service.poll(table_id, commits=5)
    assert len(service.plan().jobs) == 2
    policy_registry.put_table(service.engine, clock, "tbl_1", {"paused": True})
    service.plan()
    assert service.decision().code == "paused"
    with reading(service.engine) as connection:
        assert job_store.active(connection, "tbl_1") == []
        assert len(job_store.active(connection, "tbl_2")) == 1
    policy_registry.delete_table(service.engine, clock, "tbl_1")
    assert len(service.plan().jobs) == 1


def test_outside_the_window_no_job_starts_and_jobs_without_a_worker_are_withdrawn(
    service: Service, clock: FakeClock
) -> None:
    clock.advance(3600)
    window = {"start": "02:00", "end": "02:30"}
    policy_registry.put_table(service.engine, clock, "tbl_1", {"windows": [window]})
    service.poll(commits=5)
    assert service.plan().jobs == ()
    assert service.decision().code == "outside-window"
    clock.advance(3600)
    # The window opens and closes without any other change.
    [job_id] = service.plan().jobs
    clock.advance(1800)
    assert service.plan() == SchedulerResult(tables=1, has_events=True)
    job = service.job(job_id)
    assert (job.state, job.error and job.error.type) == (JobState.CANCELLED, "withdrawn")
    assert service.decision().code == "outside-window"
    clock.advance(23.5 * 3600)
    assert len(service.plan().jobs) == 1


def test_a_calendar_starts_a_job_once_each_time_however_late(service: Service, clock: FakeClock) -> None:
    policy_registry.put_table(service.engine, clock, "tbl_1", {"compaction": {"cron": "0 2 * * *"}})
    service.poll(commits=99)
    service.plan()
    assert service.decision().because == "its next scheduled time is 2026-01-01 02:00 UTC"
    # The service was down at two o'clock, and in the next night.
    clock.advance(30 * 3600)
    service.poll(commits=100)
    assert len(service.plan().jobs) == 1
    service.run()
    clock.advance(3600)
    service.poll(commits=101)
    assert service.plan().jobs == ()
    assert service.decision().because == "its next scheduled time is 2026-01-03 02:00 UTC"
    clock.advance(19 * 3600)
    assert len(service.plan().jobs) == 1


def test_a_time_of_the_calendar_is_not_lost_while_the_table_is_busy(service: Service, clock: FakeClock) -> None:
    policy_registry.put_table(service.engine, clock, "tbl_1", {"compaction": {"cron": "0 2 * * *"}})
    service.poll(commits=1)
    service.plan()
    submit_job(service, JobKind.CLEANING)
    cleaning = service.lease()
    assert cleaning is not None
    clock.advance(2 * 3600)
    assert service.plan().jobs == ()
    assert service.decision().code == "table-busy"
    clock.advance(600)
    service.end(cleaning)
    clock.advance(1)
    service.poll(commits=1)
    assert len(service.plan().jobs) == 1


def test_a_time_of_the_calendar_is_not_lost_when_its_job_is_withdrawn(service: Service, clock: FakeClock) -> None:
    nightly = {"windows": [{"start": "02:00", "end": "02:30"}], "compaction": {"cron": "0 2 * * thu"}}
    policy_registry.put_table(service.engine, clock, "tbl_1", nightly)
    service.poll(commits=1)
    service.plan()
    clock.advance(2 * 3600)
    assert len(service.plan().jobs) == 1
    # No worker is free until the window closes, on a Thursday.
    clock.advance(1800)
    service.plan()
    assert service.decision().code == "outside-window"
    clock.advance(23.5 * 3600)
    assert len(service.plan().jobs) == 1
    pausing.pause(service.engine, service.notifier, clock, by="ada", reason="")
    clock.advance(60)
    pausing.resume(service.engine, service.notifier, clock)
    assert len(service.plan().jobs) == 1
    service.run()
    clock.advance(60)
    service.poll(commits=2)
    assert service.plan().jobs == ()
    assert service.decision().because == "its next scheduled time is 2026-01-08 02:00 UTC"


def test_a_calendar_with_nothing_to_do_waits_for_its_next_time(service: Service, clock: FakeClock) -> None:
    policy_registry.put_table(service.engine, clock, "tbl_1", {"compaction": {"cron": "0 2 * * *"}})
    service.poll(commits=0)
    service.plan()
    clock.advance(2 * 3600)
    service.plan()
    assert service.decision().code == "no-logs"
    clock.advance(60)
    service.poll(commits=9)
    assert service.plan().jobs == ()
    assert service.decision().code == "not-yet"


def test_a_table_that_cannot_be_decided_about_does_not_keep_the_others(
    service: Service, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    service.register("tbl_2")
    for table_id in ("tbl_1", "tbl_2"):
        service.poll(table_id, commits=5)
        clock.advance(1)
    policy_registry.put_table(
        service.engine, clock, "tbl_1", {"time_zone": "Mars/Olympus", "compaction": {"cron": "* * * * *"}}
    )
    planned = service.plan()
    assert planned.tables == 2
    assert service.job(planned.jobs[0]).table_id == "tbl_2"
    assert "The decision about table tbl_1 failed" in caplog.text
    # The job is not tried again all the time.
    assert service.plan() == SchedulerResult()
    policy_registry.delete_table(service.engine, clock, "tbl_1")
    assert len(service.plan().jobs) == 1


def test_the_decisions_about_a_table_are_deleted_with_it(service: Service, clock: FakeClock) -> None:
    policy_registry.put_table(service.engine, clock, "tbl_1", {"priority": 1})
    service.poll(commits=1)
    service.plan()
    with writing(service.engine) as connection:
        table_store.unregister(connection, "tbl_1")
        assert decision_store.latest(connection, "tbl_1") == {}
    assert service.plan() == SchedulerResult()


def test_a_table_that_gets_another_name_gets_other_policies(service: Service, clock: FakeClock) -> None:
    policy_registry.put_pattern(service.engine, clock, "new*", precedence=0, settings={"compaction": {"commits": 2}})
    service.poll(commits=3)
    assert service.plan().jobs == ()
    _change(service, {"name": "new"})
    assert len(service.plan().jobs) == 1


def test_evaluating_writes_nothing(service: Service, clock: FakeClock) -> None:
    service.poll(commits=5)
    found = scheduler.evaluate(service.database, "tbl_1", service.config)
    assert {each.kind for each in found.decisions if each.verdict is Verdict.RUN} == {COMPACTION}
    assert {each.kind for each in found.decisions if each.verdict is Verdict.SKIP} == {*DECIDED} - {COMPACTION}
    assert found.polled_at == clock()
    assert service.history() == []
    with reading(service.engine) as connection:
        assert job_store.active(connection, "tbl_1") == []


def test_a_decision_names_the_person_who_submitted_the_job_first(service: Service) -> None:
    asked = submit_job(service, COMPACTION)
    service.poll(commits=5)
    assert service.plan().jobs == ()
    assert service.decision().because.endswith(f"but compaction {asked.id} is queued")


FLINK = {"index": BucketIndex(4, ("id",)), "writers": Writers("1.2.0", engines=(WriterEngine.FLINK,))}
SORTED = {"enabled": True, "sort_by": ["city"], "unsorted_bytes": 1}


def test_a_job_of_a_policy_waits_for_flink_too_and_is_not_taken_back_then(service: Service, clock: FakeClock) -> None:
    service.register("tbl_2", **FLINK)
    policy_registry.put_table(service.engine, clock, "tbl_2", {"clustering": {**SORTED, "hand_over_seconds": 60}})
    service.poll("tbl_2")
    with writing(service.engine) as connection:
        found = snapshot_store.find(connection, "tbl_2")
        assert found is not None
        unsorted = replace(found.snapshot, since_clustering=Since(bytes_written=10))
        snapshot_store.save(connection, replace(found, snapshot=unsorted))
    [job_id] = service.plan().jobs
    job = service.job(job_id)
    assert job.kind is JobKind.CLUSTERING
    assert job.waits_for_writers
    assert job.hand_over is not None
    assert job.hand_over.deadline == clock() + timedelta(seconds=60)
    assert service.lease() is None
    # Somebody may be stopping the writers for this job at the moment.
    pausing.pause(service.engine, service.notifier, clock, by="me", reason="")
    service.plan()
    assert service.job(job_id).state is JobState.QUEUED


def test_a_policy_that_fences_starts_nothing_beside_flink_and_says_why(service: Service, clock: FakeClock) -> None:
    service.register("tbl_2", **FLINK)
    settings = {"clustering": {**SORTED, "on_active_writers": "fence"}}
    policy_registry.put_table(service.engine, clock, "tbl_2", settings)
    service.poll("tbl_2")
    with writing(service.engine) as connection:
        found = snapshot_store.find(connection, "tbl_2")
        assert found is not None
        unsorted = replace(found.snapshot, since_clustering=Since(bytes_written=10))
        snapshot_store.save(connection, replace(found, snapshot=unsorted))
    assert service.plan().jobs == ()
    with reading(service.engine) as connection:
        decision = decision_store.latest(connection, "tbl_2")[JobKind.CLUSTERING]
    assert (decision.verdict, decision.code) == (Verdict.WAIT, "fence-loses-flink-batches")
    assert "lose the batch of a Flink job" in decision.because


def test_a_table_whose_secrets_cannot_be_decrypted_waits_until_they_are_sent_again(
    service: Service, clock: FakeClock
) -> None:
    """The test runs on both databases, and includes secrets that an earlier version stored."""
    with writing(service.engine) as connection:
        table = table_store.get(connection, "tbl_1").evolve(
            hudi_options={"hoodie.table.ordering.fields": "https://u:hush@host"}
        )
        table_store.change(connection, table)
    registry.seal_stored(service.engine, SecretCipher.fresh())
    service.poll(commits=9)
    assert service.plan().jobs == ()
    decision = service.decision()
    assert (decision.verdict, decision.code) == (Verdict.WAIT, "secret-unreadable")
    _change(service, {"hudi_options": {"hoodie.table.ordering.fields": "https://u:again@host"}})
    assert len(service.plan().jobs) == 1
    assert service.lease() is not None


def test_the_write_of_a_dead_writer_is_rolled_back_without_a_cleaning_that_is_due(
    service: Service, clock: FakeClock
) -> None:
    service.register("tbl_flink", writers=Writers(engines=(WriterEngine.FLINK,)))
    dead, alive = "20260101100000000", "20260101110000000"

    def look(table_id: str) -> None:
        now = clock()
        pending = (
            Pending(dead, "deltacommit", "inflight", now - timedelta(hours=1), now - timedelta(minutes=20)),
            Pending(alive, "deltacommit", "inflight", now - timedelta(hours=1), now - timedelta(seconds=30)),
        )
        with writing(service.engine) as connection:
            save_poll(connection, TableSnapshot(table_id, now, TableType.MERGE_ON_READ, pending=pending))

    look("tbl_1")
    look("tbl_flink")
    [job_id] = service.plan().jobs
    job = service.lease()
    assert job is not None
    assert (job.id, job.table_id, job.kind, job.params) == (job_id, "tbl_1", JobKind.ROLLBACK, {"instant": dead})
    assert job.reason == f"the writer of {dead} has been silent for 20 min"
    decision = service.decision(JobKind.ROLLBACK, "tbl_flink")
    assert (decision.verdict, decision.code) == (Verdict.SKIP, "not-provable")
    # The job checks with the table's lock held, and may find that the writer is alive; then it is started again later.
    service.end(job, Outcome.FAILED)
    clock.advance(60)
    look("tbl_1")
    assert service.plan().jobs == ()
    assert service.decision(JobKind.ROLLBACK).code == "failed-before"
    clock.advance(600)
    look("tbl_1")
    assert len(service.plan().jobs) == 1


def test_dead_writers_are_rolled_back_while_a_cleaning_waits_since_all_old_versions_are_kept(
    service: Service, clock: FakeClock
) -> None:
    service.register("tbl_flink", writers=Writers(engines=(WriterEngine.FLINK,)))
    service.register("tbl_unproved", lock=TableLock("org.example.OwnLockProvider"))
    service.register("tbl_off")
    policy_registry.put_table(service.engine, clock, "tbl_off", {"rollback": {"enabled": False}})
    tables = ["tbl_1", "tbl_flink", "tbl_unproved", "tbl_off"]
    replaced, dead = "20260101095900000", "20260101100000000"
    old = PartitionState("", 4, 4, 4096, freed_files=4, freed_bytes=4096, freed_since=replaced)
    begin = clock()
    pending = Pending(dead, "deltacommit", "inflight", begin, begin)

    def started() -> dict[str, JobKind]:
        """Returns the jobs that start after a poll of each table."""
        for each in tables:
            found = TableSnapshot(
                *(each, clock(), TableType.MERGE_ON_READ, (old,), (pending,)),
                last_commit_at=clock(),
                since_cleaning=Since(12),
            )
            with writing(service.engine) as connection:
                save_poll(connection, found)
        return {job.table_id: job.kind for job in map(service.job, service.plan().jobs)}

    clock.advance(60)
    assert started() == {}
    assert {service.decision(CLEANING, each).code for each in tables} == {"all-kept"}
    clock.advance(600)
    # A cleaning takes no write of Flink for dead.
    assert started() == {"tbl_1": JobKind.ROLLBACK, "tbl_unproved": CLEANING, "tbl_off": CLEANING}
    assert {service.decision(CLEANING, each).code for each in ("tbl_1", "tbl_flink")} == {"all-kept"}
