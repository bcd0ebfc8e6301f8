"""The table's timeline determines the outcome of a job whose last worker disappeared."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from jobs.contract import Heartbeat, JobKind, Progress
from jobs.storage.permissions import Permissions
from service.access.secret_cipher import SecretCipher
from service.catalog import decision_times, watch_store
from service.db.engine import reading, writing
from service.events.database import Database
from service.events.notifier import Notifier
from service.model.backoff import BackOff
from service.observation.poll import poll_table
from service.observation.table_read import TableReader
from service.queue import job_store, leases, recovery, submission
from service.queue.job import JobState
from service.queue.leases import LeaseConfig
from service.queue.submission import JobRequest
from tests.integration.control_plane.databases import new_postgresql, opened
from tests.integration.control_plane.watching import A, Watched
from tests.support.small_table import SmallTable, base_file, instant_at, log_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from service.queue.job import Job
    from tests.integration.control_plane.conftest import FakeClock
    from tests.support.postgresql import Server

CONFIG = LeaseConfig(timedelta(seconds=30), 60.0, BackOff())


class Lost:
    """A job, such as a compaction, whose only worker reported the instant of a compaction and then disappeared."""

    def __init__(
        self,
        watched: Watched,
        folder: Path,
        kind: JobKind = JobKind.COMPACTION,
        params: Mapping[str, Any] | None = None,
    ) -> None:
        self.watched = watched
        self.table = SmallTable(folder / "t")
        written = instant_at(watched.clock() - timedelta(seconds=60))
        self.table.commit(written, {"p": {log_file(A, written): 10}}, completed=written)
        self.table_id = watched.register(self.table)
        watched.poll()
        cipher = SecretCipher.fresh()
        self.job_id = submission.submit(
            Database(watched.engine, watched.clock, cipher=cipher),
            Permissions(),
            JobRequest(table_id=self.table_id, kind=kind, params=params or {}, max_attempts=1),
        ).job.id
        order = leases.lease(
            Database(watched.engine, watched.clock, cipher=cipher),
            CONFIG,
            worker_id="w",
            group="default",
            permissions=Permissions(),
        )
        assert order
        self.instant = instant_at(watched.clock())
        beat = Heartbeat(1, Progress("executing", 0, 1, 0, 0), (self.instant,))
        leases.heartbeat(Database(watched.engine, watched.clock), CONFIG, job_id=self.job_id, beat=beat)

    def lose(self) -> None:
        self.watched.clock.advance(31)
        recovered = recovery.run_once(self.watched.engine, Notifier(), self.watched.clock)
        assert recovered.undecided == (self.job_id,)
        assert self.job.state is JobState.UNKNOWN

    def complete(self) -> None:
        self.table.begin(self.instant, "compaction")
        files = {"p": {base_file(A, self.instant): 10}}
        completed = instant_at(self.watched.clock())
        self.table.commit(self.instant, files, action="commit", operation="COMPACT", completed=completed)

    @property
    def job(self) -> Job:
        with reading(self.watched.engine) as connection:
            return job_store.get(connection, self.job_id)

    @property
    def events(self) -> list[str]:
        return [event.type for event in self.watched.events() if event.type.startswith("job.")]


@pytest.fixture
def lost(watched: Watched, tmp_path: Path) -> Lost:
    return Lost(watched, tmp_path)


def test_an_unknown_job_has_succeeded_if_its_instant_has_completed(lost: Lost) -> None:
    lost.complete()
    lost.lose()
    assert lost.events == ["job.queued", "job.started"]
    lost.watched.poll(1)
    assert (lost.job.state, lost.job.error) == (JobState.SUCCEEDED, None)
    assert lost.events[2:] == ["job.succeeded"]


def test_an_unknown_job_has_failed_if_nothing_of_it_was_committed(lost: Lost) -> None:
    lost.lose()
    lost.watched.poll(1)
    assert lost.job.state is JobState.FAILED
    assert lost.job.error
    assert lost.job.error.type == "worker-lost"
    assert lost.instant in lost.job.error.detail
    assert lost.events[2:] == ["job.failed"]
    lost.watched.poll(1)
    assert lost.events[2:] == ["job.failed"]


@pytest.mark.parametrize(
    ("kind", "params"),
    [(JobKind.UPGRADE, {"to_version": 9}), (JobKind.BUCKET_INDEX, {"action": "drop"}), (JobKind.REPAIR, {})],
)
def test_a_job_that_goes_on_after_its_last_instant_has_failed_although_that_has_completed(
    watched: Watched, tmp_path: Path, kind: JobKind, params: dict[str, Any]
) -> None:
    """An upgrade compacts all logs and then changes the version, which leaves no instant."""
    lost = Lost(watched, tmp_path, kind, params)
    lost.complete()
    lost.lose()
    watched.poll(1)
    assert lost.job.state is JobState.FAILED
    assert lost.job.error
    assert lost.job.error.detail.endswith(
        f"{lost.instant} has completed, but more may be left to do. Start the job again to do the rest."
    )
    assert lost.events[2:] == ["job.failed"]


def test_a_job_stays_unknown_as_long_as_its_table_cannot_be_read(lost: Lost) -> None:
    lost.complete()
    lost.lose()
    properties = lost.table.base / ".hoodie" / "hoodie.properties"
    hidden = properties.rename(properties.with_suffix(".away"))
    lost.watched.poll(1)
    assert lost.job.state is JobState.UNKNOWN
    hidden.rename(properties)
    lost.watched.poll(3600)
    assert lost.job.state is JobState.SUCCEEDED


def test_a_poll_that_began_before_the_end_of_the_job_proves_nothing(lost: Lost) -> None:
    watched = lost.watched
    lost.lose()
    before = watched.clock() - timedelta(seconds=5)
    watch = watched.watch(lost.table_id)
    poll_table(watched.engine, lambda: before, watch, TableReader(watched.engine, {}, 1))
    assert lost.job.state is JobState.UNKNOWN
    lost.complete()
    watched.poll(1)
    assert lost.job.state is JobState.SUCCEEDED


def test_jobs_of_other_tables_are_left_alone(lost: Lost, tmp_path: Path) -> None:
    other = lost.watched.register(SmallTable(tmp_path / "other"))
    lost.lose()
    with writing(lost.watched.engine) as connection:
        assert job_store.unknown(connection, other) == []


def test_a_poll_and_the_end_of_a_job_lock_the_rows_of_a_table_in_the_same_order(
    postgresql: Server, clock: FakeClock, tmp_path: Path
) -> None:
    """If the orders differed, the poll and the end of the job would wait for each other until PostgreSQL ends one of
    them."""
    engine = opened(new_postgresql(postgresql))
    lost = Lost(Watched(engine, clock), tmp_path)
    waiting = sa.text("SELECT count(*) FROM pg_locks WHERE NOT granted")
    with ThreadPoolExecutor(1) as threads:
        with writing(engine) as connection:
            watch_store.get(connection, lost.table_id, for_update=True)
            ending = threads.submit(lost.lose)
            while not connection.execute(waiting).scalar_one():
                assert not ending.done()
            decision_times.wake(connection, lost.table_id, clock())
        ending.result(20)
    engine.dispose()
