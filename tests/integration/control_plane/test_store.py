"""Tests the job store on SQLite and PostgreSQL: its rules, its fences, and races of two connections."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

import pytest
import sqlalchemy as sa

from jobs.contract import DEFAULT_GROUP, TABLE_LOCKED, Heartbeat, JobKind, Outcome, Problem, Progress
from service.catalog import commit_store, table_store
from service.catalog.registration import Registration, Writers
from service.db import bulk, schema
from service.db.engine import reading, writing
from service.db.page import PageRequest
from service.lake.commit import Commit
from service.model.job_errors import JobConflictError, JobNotFoundError, LeaseLostError
from service.model.table_errors import TableAlreadyRegisteredError, TableNotFoundError
from service.queue import held_back_store, job_store, lease_store
from service.queue.job import AttemptOutcome, Job, JobState

if TYPE_CHECKING:
    from collections.abc import Callable


class Clock(Protocol):
    def __call__(self) -> datetime: ...
    def advance(self, seconds: float) -> None: ...


@pytest.fixture
def new_job(clock: Clock) -> Callable[..., Job]:
    made = 0

    def make(kind: JobKind = JobKind.COMPACTION, **changes: Any) -> Job:
        nonlocal made
        made += 1
        clock.advance(0.001)
        return Job(f"job_{made}", "tbl_1", kind, created_at=clock(), not_before=clock()).evolve(**changes)

    return make


def submit(engine: sa.Engine, job: Job) -> Job:
    with writing(engine) as connection:
        return job_store.submit(connection, job)


def take(engine: sa.Engine, now: datetime, worker: str = "w1") -> Job | None:
    with writing(engine) as connection:
        return lease_store.take(
            connection, worker_id=worker, group=DEFAULT_GROUP, now=now, deadline=now + timedelta(seconds=30)
        )


def must_take(engine: sa.Engine, now: datetime) -> Job:
    job = take(engine, now)
    assert job is not None
    return job


def finish(engine: sa.Engine, job: Job, now: datetime, state: JobState = JobState.SUCCEEDED) -> None:
    with writing(engine) as connection:
        lease_store.end(
            connection,
            lease_store.job_of_lease(connection, job.id, job.attempt),
            state=state,
            outcome=AttemptOutcome.SUCCEEDED,
            error=None,
            result={"rows": 1},
            instants=job.instants,
            now=now,
        )


def read(engine: sa.Engine, job_id: str) -> Job:
    with reading(engine) as connection:
        return job_store.get(connection, job_id)


def test_a_registered_table_is_read_back_as_it_was_written(
    engine: sa.Engine, a_table: Registration, clock: Clock
) -> None:
    with writing(engine) as connection:
        assert table_store.get(connection, a_table.id) == a_table
        changed = a_table.evolve(index=None, writers=Writers(stopped=True), hudi_options={"ü": "😀"}, profile={"v": 9})
        table_store.change(connection, changed)
        assert table_store.get(connection, a_table.id) == changed


def test_documents_with_any_name_and_number_are_read_back(sqlite: sa.Engine, a_table: Registration) -> None:
    profile = {"not UTF-8": "\udcff", "very large": 2**70, "none": float("inf"), "😀": [1, 1.0, None, {"a": {}}]}
    with writing(sqlite) as connection:
        table_store.register(connection, a_table.evolve(id="tbl_2", base_path="/lake/other", profile=profile))
        assert table_store.get(connection, "tbl_2").profile == profile


def test_many_rows_are_written_in_their_order_and_replaced_by_key(
    engine: sa.Engine, a_table: Registration, clock: Clock
) -> None:
    paths = ["a/b=1", "ü 😀", 'it\'s "one" \\', "%s :x {}"]
    now = clock()
    commits = [
        Commit(a_table.id, f"2026{9 - at}", "commit", None, now, now + timedelta(microseconds=at), partitions=each)
        for at, each in enumerate([tuple(paths), tuple(paths[1:]), (), (paths[3],)])
    ]
    rows = [{"table_id": a_table.id, "path": path, "state": {}, "buckets": [[0, 2**53, None]]} for path in paths]
    with writing(engine) as connection:
        commit_store.add(connection, commits, now)
        for counted in (1, 2):
            changed = [{**row, "base_rows": dict.fromkeys(paths, counted), "replaced": {}} for row in rows]
            bulk.write(connection, schema.partitions, changed, key=("table_id", "path"))
        stored = connection.execute(sa.select(schema.commits).order_by(schema.commits.c.id)).all()
        kept = connection.execute(sa.select(schema.partitions)).mappings().all()
    read_back = [(row.requested_time, row.completed_at, row.rows_written, row.partitions) for row in stored]
    assert read_back == [(each.requested_time, each.completed_at, None, list(each.partitions)) for each in commits]
    assert sorted(map(dict, kept), key=str) == sorted(changed, key=str)


def test_a_base_path_is_registered_once(engine: sa.Engine, a_table: Registration) -> None:
    with writing(engine) as connection:
        with pytest.raises(TableAlreadyRegisteredError) as caught:
            table_store.register(connection, a_table.evolve(id="tbl_2"))
        assert caught.value.extensions == {"table_id": "tbl_1"}
        # The transaction can still be used.
        table_store.register(connection, a_table.evolve(id="tbl_3", base_path="/lake/other"))


def test_a_job_is_read_back_as_it_was_submitted(
    engine: sa.Engine, a_table: Registration, new_job: Callable[..., Job]
) -> None:
    job = submit(engine, new_job(JobKind.CLEANING, params={"retain": 3}, idempotency_key="k"))
    assert read(engine, job.id) == job


def test_a_job_of_an_unknown_table_is_refused(engine: sa.Engine, new_job: Callable[..., Job]) -> None:
    with pytest.raises(TableNotFoundError):
        submit(engine, new_job(table_id="tbl_none"))


def test_reading_an_unknown_job_is_an_error(engine: sa.Engine) -> None:
    with pytest.raises(JobNotFoundError):
        read(engine, "job_none")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (JobKind.CLEANING, JobKind.CLEANING),
        (JobKind.AUDIT, JobKind.AUDIT),
        (JobKind.COMPACTION, JobKind.CLUSTERING),
        (JobKind.CLUSTERING, JobKind.BUCKET_EXPANSION),
        (JobKind.BUCKET_EXPANSION, JobKind.COMPACTION),
    ],
)
def test_jobs_that_exclude_each_other_are_not_queued_together(
    engine: sa.Engine,
    a_table: Registration,
    new_job: Callable[..., Job],
    clock: Clock,
    first: JobKind,
    second: JobKind,
) -> None:
    standing = submit(engine, new_job(first))
    with pytest.raises(JobConflictError) as caught:
        submit(engine, new_job(second))
    assert caught.value.extensions == {"job_id": standing.id}
    taken = must_take(engine, clock())
    with pytest.raises(JobConflictError):
        submit(engine, new_job(second))
    finish(engine, taken, clock())
    submit(engine, new_job(second))


def test_cleaning_audit_and_dry_runs_may_wait_beside_a_rewrite(
    engine: sa.Engine, a_table: Registration, new_job: Callable[..., Job]
) -> None:
    submit(engine, new_job(JobKind.COMPACTION))
    submit(engine, new_job(JobKind.CLEANING))
    submit(engine, new_job(JobKind.AUDIT))
    for _ in range(2):
        submit(engine, new_job(JobKind.COMPACTION, dry_run=True))
        submit(engine, new_job(JobKind.BUCKET_EXPANSION, dry_run=True))


def test_the_same_idempotency_key_answers_the_same_job(
    engine: sa.Engine, a_table: Registration, new_job: Callable[..., Job], clock: Clock
) -> None:
    first = submit(engine, new_job(idempotency_key="k"))
    assert submit(engine, new_job(idempotency_key="k")).id == first.id
    taken = must_take(engine, clock())
    finish(engine, taken, clock())
    # The rule also holds after the job's end: a late repetition must not start the work again.
    assert submit(engine, new_job(idempotency_key="k")).id == first.id


def test_jobs_are_leased_in_the_order_they_came_when_they_are_due(
    engine: sa.Engine, a_table: Registration, new_job: Callable[..., Job], clock: Clock
) -> None:
    late = submit(engine, new_job(JobKind.AUDIT, not_before=clock() + timedelta(seconds=60)))
    first = submit(engine, new_job(JobKind.COMPACTION, dry_run=True))
    second = submit(engine, new_job(JobKind.CLEANING, dry_run=True))
    order = [take(engine, clock()) for _ in range(3)]
    assert [job and job.id for job in order] == [first.id, second.id, None]
    clock.advance(60)
    last = must_take(engine, clock())
    assert last.id == late.id


def test_two_jobs_that_write_are_never_held_at_once_on_one_table(
    engine: sa.Engine, a_table: Registration, new_job: Callable[..., Job], clock: Clock
) -> None:
    compaction = submit(engine, new_job(JobKind.COMPACTION))
    cleaning = submit(engine, new_job(JobKind.CLEANING))
    audit = submit(engine, new_job(JobKind.AUDIT))
    taken = must_take(engine, clock())
    assert taken.id == compaction.id
    beside = must_take(engine, clock())
    assert beside.id == audit.id
    assert take(engine, clock()) is None
    finish(engine, taken, clock())
    after = must_take(engine, clock())
    assert after.id == cleaning.id


def test_a_lease_counts_the_attempt_and_writes_it_down(
    engine: sa.Engine, a_table: Registration, new_job: Callable[..., Job], clock: Clock
) -> None:
    job = submit(engine, new_job())
    taken = must_take(engine, clock())
    assert (taken.attempt, taken.state, taken.worker_id) == (1, JobState.LEASED, "w1")
    assert read(engine, job.id) == taken
    with reading(engine) as connection:
        [attempt] = job_store.attempts(connection, job.id)
    assert (attempt.attempt, attempt.worker_id, attempt.ended_at) == (1, "w1", None)


def test_a_heartbeat_makes_the_job_running_and_gathers_instants(
    engine: sa.Engine, a_table: Registration, new_job: Callable[..., Job], clock: Clock
) -> None:
    submit(engine, new_job())
    taken = must_take(engine, clock())
    for instants in (("001",), ("001", "002")):
        clock.advance(5)
        with writing(engine) as connection:
            held = lease_store.job_of_lease(connection, taken.id, 1)
            beat = Heartbeat(1, Progress("execute", 1, 2), instants)
            lease_store.beat(connection, held, beat, now=clock(), deadline=clock() + timedelta(seconds=30))
    job = read(engine, taken.id)
    assert job.state is JobState.RUNNING
    assert job.instants == ("001", "002")
    assert job.progress == Progress("execute", 1, 2)
    assert job.started_at == clock() - timedelta(seconds=5)
    assert job.lease_deadline == clock() + timedelta(seconds=30)


def test_an_attempt_that_lost_its_lease_can_write_nothing(
    engine: sa.Engine, a_table: Registration, new_job: Callable[..., Job], clock: Clock
) -> None:
    submit(engine, new_job())
    old = must_take(engine, clock())
    with writing(engine) as connection:
        lease_store.put_back(
            connection,
            old,
            not_before=clock(),
            outcome=AttemptOutcome.LOST,
            error=Problem("worker-lost", ""),
            instants=(),
            now=clock(),
        )
    for _ in range(2):  # In the first round the job is queued, in the second one the next attempt holds it.
        before = read(engine, old.id)
        with pytest.raises(LeaseLostError):
            finish(engine, old, clock())
        with pytest.raises(LeaseLostError), writing(engine) as connection:
            # The job was read while the lease was valid; the heartbeat is refused nevertheless.
            lease_store.beat(connection, old, Heartbeat(1), now=clock(), deadline=clock())
        assert read(engine, old.id) == before
        take(engine, clock(), "w2")
    assert read(engine, old.id).worker_id == "w2"


def test_only_leases_that_ran_out_are_found(
    engine: sa.Engine, a_table: Registration, new_job: Callable[..., Job], clock: Clock
) -> None:
    submit(engine, new_job(JobKind.COMPACTION))
    taken = must_take(engine, clock())
    clock.advance(30)
    with writing(engine) as connection:
        assert lease_store.expired(connection, clock(), 10) == []
        clock.advance(0.001)
        assert [job.id for job in lease_store.expired(connection, clock(), 10)] == [taken.id]


def test_pages_neither_repeat_nor_leave_out_a_job(
    engine: sa.Engine, a_table: Registration, new_job: Callable[..., Job]
) -> None:
    made = [submit(engine, new_job(JobKind.AUDIT, dry_run=True)).id for _ in range(7)]
    seen: list[str] = []
    cursor: str | None = None
    for _ in range(10):
        with reading(engine) as connection:
            page = job_store.page(connection, PageRequest(2, cursor))
        seen += [job.id for job in page.items]
        # Jobs that are added meanwhile are newer, so they are on no later page.
        submit(engine, new_job(JobKind.AUDIT, dry_run=True))
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == made[::-1]


def test_pages_can_be_filtered(
    engine: sa.Engine, a_table: Registration, new_job: Callable[..., Job], clock: Clock
) -> None:
    audit = submit(engine, new_job(JobKind.AUDIT))
    compaction = submit(engine, new_job(JobKind.COMPACTION))
    take(engine, clock())
    with reading(engine) as connection:
        assert [job.id for job in job_store.page(connection, PageRequest(9), kinds=[JobKind.AUDIT]).items] == [audit.id]
        assert [job.id for job in job_store.page(connection, PageRequest(9), states=[JobState.QUEUED]).items] == [
            compaction.id
        ]
        assert job_store.page(connection, PageRequest(9), table_id="tbl_none").items == []


def race(count: int, act: Callable[[int], object]) -> list[object]:
    """Starts `count` threads together, and returns their results; an error is a result, too."""
    start = threading.Barrier(count)

    def run(number: int) -> object:
        start.wait()
        try:
            return act(number)
        except Exception as error:
            return error

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def test_only_one_of_many_concurrent_workers_gets_a_job(
    engine: sa.Engine, a_table: Registration, new_job: Callable[..., Job], clock: Clock
) -> None:
    submit(engine, new_job())
    got = race(8, lambda number: take(engine, clock(), f"w{number}"))
    winners = [job for job in got if isinstance(job, Job)]
    assert len(winners) == 1
    assert got.count(None) == 7
    assert read(engine, "job_1").worker_id == winners[0].worker_id


def test_many_workers_share_many_jobs_and_none_is_given_twice(
    engine: sa.Engine, a_table: Registration, new_job: Callable[..., Job], clock: Clock
) -> None:
    made = {submit(engine, new_job(JobKind.AUDIT, dry_run=True)).id for _ in range(24)}

    def work(number: int) -> list[str]:
        taken = []
        while job := take(engine, clock(), f"w{number}"):
            taken.append(job.id)
        return taken

    got = [job_id for taken in race(6, work) for job_id in taken]  # type: ignore[attr-defined]
    assert sorted(got) == sorted(made)


def test_only_one_of_two_writing_jobs_of_a_table_is_leased_at_once(
    engine: sa.Engine, a_table: Registration, new_job: Callable[..., Job], clock: Clock
) -> None:
    for _ in range(5):
        submit(engine, new_job(JobKind.COMPACTION))
        submit(engine, new_job(JobKind.CLEANING))
        held = [job for job in race(4, lambda n: take(engine, clock(), f"w{n}")) if isinstance(job, Job)]
        assert len(held) == 1
        finish(engine, held[0], clock())
        other = must_take(engine, clock())
        finish(engine, other, clock())


def test_only_one_of_many_concurrent_conflicting_submissions_succeeds(
    engine: sa.Engine, a_table: Registration, new_job: Callable[..., Job]
) -> None:
    kinds = [JobKind.COMPACTION, JobKind.CLUSTERING, JobKind.BUCKET_EXPANSION] * 2
    wanted = [new_job(kind) for kind in kinds]
    got = race(6, lambda number: submit(engine, wanted[number]))
    [winner] = [job for job in got if isinstance(job, Job)]
    losers = [error for error in got if isinstance(error, JobConflictError)]
    assert len(losers) == 5
    assert {error.extensions["job_id"] for error in losers} == {winner.id}


def test_many_concurrent_submissions_with_one_key_get_one_job(
    engine: sa.Engine, a_table: Registration, new_job: Callable[..., Job]
) -> None:
    wanted = [new_job(idempotency_key="k") for _ in range(6)]
    got = race(6, lambda number: submit(engine, wanted[number]))
    assert len({job.id for job in got if isinstance(job, Job)}) == 1
    assert all(isinstance(job, Job) for job in got)


def test_only_one_of_two_concurrent_ends_of_an_attempt_is_stored(
    engine: sa.Engine, a_table: Registration, new_job: Callable[..., Job], clock: Clock
) -> None:
    submit(engine, new_job())
    taken = must_take(engine, clock())
    got = race(4, lambda _: finish(engine, taken, clock()))
    assert got.count(None) == 1
    assert sum(isinstance(error, LeaseLostError) for error in got) == 3


def test_a_table_is_not_unregistered_under_a_job_that_is_submitted_that_moment(
    engine: sa.Engine, a_table: Registration, new_job: Callable[..., Job], clock: Clock
) -> None:
    from service.registration import registry

    job = new_job(JobKind.AUDIT)

    def act(number: int) -> object:
        return registry.unregister(engine, a_table.id) if number else submit(engine, job)

    got = race(2, act)
    with reading(engine) as connection:
        left = job_store.page(connection, PageRequest(9), table_id=a_table.id).items
    if isinstance(got[0], Job):  # If the job came first, the table is still there.
        assert isinstance(got[1], Exception)
        assert [each.id for each in left] == [job.id]
    else:
        assert isinstance(got[0], TableNotFoundError)
        assert left == []


def test_every_outcome_of_a_worker_is_known_to_the_history() -> None:
    assert {outcome.value for outcome in Outcome} < {outcome.value for outcome in AttemptOutcome}


def test_only_jobs_that_found_the_lock_held_are_due_at_once_when_it_is_broken(
    engine: sa.Engine, a_table: Registration, new_job: Callable[..., Job], clock: Clock
) -> None:
    later = clock() + timedelta(hours=1)
    for kind, problem in ((JobKind.CLEANING, TABLE_LOCKED), (JobKind.ARCHIVAL, "hudi-error")):
        submit(engine, new_job(kind))
        job = must_take(engine, clock())
        with writing(engine) as connection:
            lease_store.put_back(
                connection,
                job,
                not_before=later,
                outcome=AttemptOutcome.FAILED,
                error=Problem(problem, "It failed"),
                instants=(),
                now=clock(),
            )
    submit(engine, new_job(JobKind.SAVEPOINT, not_before=later))
    assert take(engine, clock()) is None
    with writing(engine) as connection:
        held_back_store.make_locked_out_due(connection, "tbl_other", clock())
        held_back_store.make_locked_out_due(connection, a_table.id, clock())
    due = must_take(engine, clock())
    assert due.kind is JobKind.CLEANING
    assert take(engine, clock()) is None
