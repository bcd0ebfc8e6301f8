"""The service stops a Flink job with a savepoint, and a restarted service continues the stop from any step."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import event

from jobs.contract import BucketIndex, JobKind, WriterEngine
from jobs.storage.permissions import Permissions
from service.access.secret_cipher import SecretCipher
from service.catalog import table_store, watch_store
from service.catalog.registration import FlinkWriter, Registration, Writers
from service.db.engine import reading, writing
from service.delivery import outbox
from service.events.database import Database
from service.events.notifier import Notifier
from service.lake.engine_sighting import Mark
from service.lake.reader_pool import InProcess
from service.model.backoff import BackOff
from service.model.flink_restart import FlinkRestart
from service.model.hand_over import HandOverState
from service.queue import job_store, lease_store, leases, submission
from service.queue.hand_over import coordinator
from service.queue.hand_over.coordinator import HandOverConfig, HandOvers
from service.queue.hand_over.flink_rest import FlinkRest
from service.queue.job import JobState
from service.queue.leases import LeaseConfig
from service.queue.submission import JobRequest
from tests.integration.flink_rest import FlinkCluster
from tests.support.small_table import SmallTable, instant_at

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import sqlalchemy as sa

    from service.model.hand_over import HandOver
    from service.queue.job import Job
    from tests.integration.control_plane.conftest import FakeClock

pytestmark = pytest.mark.mostly_sqlite

FOLDER = "s3://lake/sp"
INDEX = BucketIndex(4, ("id",))


@pytest.fixture
def cluster() -> Iterator[FlinkCluster]:
    with FlinkCluster() as cluster:
        cluster.run("a" * 32)
        yield cluster


class Service:
    """One replica, with a table that has a registered Flink job."""

    def __init__(self, engine: sa.Engine, clock: FakeClock, lake: Path, **config: Any) -> None:
        self.engine, self.clock, self.lake, self.notifier = engine, clock, lake, Notifier()
        self.hurried: list[str] = []
        self.config = {"hosts": ("127.0.0.1",), **config}
        self.restart()

    def restart(self) -> None:
        """Replaces the replica by a new one on the same database, as after a kill."""
        config = HandOverConfig(**self.config)
        self.hand_overs = HandOvers(
            self.engine,
            self.notifier,
            self.clock,
            config,
            InProcess(),
            rest=lambda url: FlinkRest(url, connect_seconds=1, read_seconds=1),
            poll_requests=self.hurried.append,
        )

    def register(
        self,
        cluster: FlinkCluster,
        table_id: str = "tbl_1",
        job: str = "ingest",
        *,
        index: BucketIndex | None = INDEX,
        restart: FlinkRestart = FlinkRestart.FROM_SAVEPOINT,
    ) -> SmallTable:
        table, now = SmallTable(self.lake / table_id), self.clock()
        flink = FlinkWriter(cluster.url, job, FOLDER, restart)
        writers = Writers("1.2.0", engines=(WriterEngine.FLINK,), flink=flink)
        found = Registration(table_id, str(table.base), table_id, now, now, index=index, writers=writers)
        with writing(self.engine) as connection:
            table_store.register(connection, found)
        return table

    def submit(self, table_id: str = "tbl_1", seconds: int = 3600, *, kind: JobKind = JobKind.BUCKET_EXPANSION) -> str:
        params = {"hand_over_seconds": seconds, **({"num_buckets": 8} if kind is JobKind.BUCKET_EXPANSION else {})}
        return submission.submit(
            Database(self.engine, self.clock, self.notifier, cipher=SecretCipher([])),
            Permissions(),
            JobRequest(table_id=table_id, kind=kind, params=params, max_attempts=3),
        ).job.id

    def tick(self, seconds: float = 1) -> None:
        self.clock.advance(seconds)
        self.hand_overs.run_once()
        assert self.hand_overs.pool.wait(30)

    def job(self, job_id: str) -> Job:
        with reading(self.engine) as connection:
            return job_store.get(connection, job_id)

    def standing(self, job_id: str) -> HandOver:
        found = self.job(job_id).hand_over
        assert found is not None
        return found

    def can_lease(self) -> bool:
        with reading(self.engine) as connection:
            return lease_store.is_any_due(connection, self.clock(), "default")


@pytest.fixture
def service(engine: sa.Engine, clock: FakeClock, tmp_path: Path) -> Service:
    return Service(engine, clock, tmp_path)


def test_a_flink_job_is_stopped_with_a_savepoint_and_the_job_goes_on(service: Service, cluster: FlinkCluster) -> None:
    service.register(cluster)
    job_id = service.submit()
    assert "about to stop the Flink job ingest" in service.standing(job_id).detail
    states = []
    for _ in range(6):
        service.tick()
        states.append(service.standing(job_id).state)
    found = service.standing(job_id)
    assert states[0] is HandOverState.STOPPING
    assert (found.state, found.by, found.savepoint) == (
        HandOverState.STOPPED,
        "groundskeeper",
        f"{FOLDER}/savepoint-{'a' * 32}",
    )
    [asked] = cluster.stops
    assert (asked["targetDirectory"], asked["drain"], len(asked["triggerId"])) == (FOLDER, False, 32)
    assert service.hurried == ["tbl_1"]
    assert service.can_lease()


@pytest.mark.parametrize("restart", FlinkRestart)
def test_a_job_whose_state_may_hold_file_groups_is_stopped_only_if_it_is_started_without_that_state(
    service: Service, cluster: FlinkCluster, restart: FlinkRestart
) -> None:
    service.register(cluster, index=None, restart=restart)
    job_id = service.submit(kind=JobKind.CLUSTERING)
    for _ in range(6):
        service.tick()
    found = service.standing(job_id)
    assert found.restart is FlinkRestart.WITHOUT_STATE
    if restart is FlinkRestart.WITHOUT_STATE:
        assert (found.state, found.by, len(cluster.stops)) == (HandOverState.STOPPED, "groundskeeper", 1)
        return
    assert (found.state, cluster.stops, service.can_lease()) == (HandOverState.DRAINING, [], False)
    assert "does not say that the job is started without its state" in found.detail


def test_the_job_does_not_go_on_before_what_flink_had_in_flight_is_complete(
    service: Service, cluster: FlinkCluster, clock: FakeClock
) -> None:
    """Instants that began after the stop belong to another writer."""
    table = service.register(cluster)
    in_flight = instant_at(clock())
    table.begin(in_flight, flink=True)
    cluster.slow = 0
    job_id = service.submit()
    service.tick()
    service.tick()
    table.begin(instant_at(clock() + timedelta(hours=1)))
    service.tick()
    found = service.standing(job_id)
    assert (found.state, service.can_lease()) == (HandOverState.STOPPING, False)
    assert f"{in_flight} is still in flight" in found.detail
    table.commit(in_flight)
    service.tick()
    assert (service.standing(job_id).state, service.can_lease()) == (HandOverState.STOPPED, True)


def test_the_job_starts_after_a_while_although_flink_left_an_instant_pending(
    service: Service, cluster: FlinkCluster, clock: FakeClock
) -> None:
    in_flight = instant_at(clock())
    service.register(cluster).begin(in_flight, flink=True)
    cluster.slow = 0
    job_id = service.submit()
    for _ in range(3):
        service.tick()
    assert not service.can_lease()
    service.tick(151)
    assert service.can_lease()
    assert f"left {in_flight} behind" in service.standing(job_id).detail


@pytest.mark.parametrize("killed_after", range(1, 9))
def test_a_service_that_is_killed_at_any_step_stops_the_job_once(
    service: Service, cluster: FlinkCluster, killed_after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service is killed after this number of stored states and calls of the cluster; another one continues when the
    claim has ended."""
    service.register(cluster)
    job_id = service.submit()
    left = killed_after

    class Killed(BaseException):
        pass

    def dies_at_last(call: Any) -> Any:
        def wrapper(*given: Any, **more: Any) -> Any:
            nonlocal left
            result = call(*given, **more)
            left -= 1
            if left == 0:
                raise Killed
            return result

        return wrapper

    monkeypatch.setattr(HandOvers, "_record", dies_at_last(HandOvers._record))
    monkeypatch.setattr(FlinkRest, "_call", dies_at_last(FlinkRest._call))
    for _ in range(8):
        service.clock.advance(1)
        try:
            service.hand_overs._step(service.job(job_id))
        except Killed:
            break
    assert left == 0
    monkeypatch.undo()
    service.restart()
    for _ in range(8):
        service.tick(130)
    assert service.standing(job_id).state is HandOverState.STOPPED
    assert service.standing(job_id).savepoint == f"{FOLDER}/savepoint-{'a' * 32}"
    assert len({asked["triggerId"] for asked in cluster.stops}) == 1
    assert service.can_lease()


def test_no_transaction_is_open_while_the_cluster_is_called(
    service: Service, cluster: FlinkCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.register(cluster)
    service.submit()
    open_now = 0

    def count_begin(_connection: Any) -> None:
        nonlocal open_now
        open_now += 1

    def count_end(_connection: Any) -> None:
        nonlocal open_now
        open_now -= 1

    event.listen(service.engine, "begin", count_begin)
    event.listen(service.engine, "commit", count_end)
    event.listen(service.engine, "rollback", count_end)
    seen: list[int] = []
    call = FlinkRest._call
    monkeypatch.setattr(FlinkRest, "_call", lambda *given, **more: (seen.append(open_now), call(*given, **more))[1])
    for _ in range(4):
        service.tick()
    assert len(seen) > 3
    assert set(seen) == {0}


def test_a_failed_stop_is_reported_and_requested_again(service: Service, cluster: FlinkCluster) -> None:
    service.register(cluster)
    cluster.slow, cluster.fails = 0, ["Checkpoint declined"]
    job_id = service.submit()
    service.tick()
    service.tick()
    found = service.standing(job_id)
    assert (found.state, "Checkpoint declined" in found.detail) == (HandOverState.DRAINING, True)
    service.tick()
    assert len(cluster.stops) == 1  # No second stop is requested at once.
    for _ in range(4):
        service.tick(16)
    assert service.standing(job_id).state is HandOverState.STOPPED
    assert len({asked["triggerId"] for asked in cluster.stops}) == 2


@pytest.mark.parametrize(
    ("others", "told"),
    [
        ([], "knows no job other"),
        ([("b" * 32, "other", "RESTARTING")], "is RESTARTING"),
        ([("b" * 32, "other", "RUNNING"), ("c" * 32, "other", "RUNNING")], "Several Flink jobs are named other"),
    ],
)
def test_a_flink_job_that_cannot_be_stopped_is_reported_and_left_alone(
    service: Service, cluster: FlinkCluster, others: list[tuple[str, str, str]], told: str
) -> None:
    for job_id, name, state in others:
        cluster.run(job_id, name, state)
    service.register(cluster, job="other")
    job_id = service.submit()
    service.tick()
    found = service.standing(job_id)
    assert (found.state, told in found.detail) == (HandOverState.DRAINING, True), found.detail
    assert cluster.stops == []
    assert not service.can_lease()


def test_a_job_that_has_ended_already_needs_no_stop(service: Service, cluster: FlinkCluster, clock: FakeClock) -> None:
    cluster.run("a" * 32, state="FINISHED", ended=clock().timestamp())
    service.register(cluster)
    job_id = service.submit()
    service.tick()
    assert service.standing(job_id).state is HandOverState.STOPPED
    assert cluster.stops == []


def test_a_flink_job_that_ended_before_the_last_commit_of_flink_is_not_its_writer(
    service: Service, cluster: FlinkCluster, clock: FakeClock
) -> None:
    cluster.run("a" * 32, state="CANCELED", ended=clock().timestamp() - 60)
    service.register(cluster)
    with writing(service.engine) as connection:
        watch_store.mark(connection, "tbl_1", [Mark(WriterEngine.FLINK, clock(), "001", "it shows")])
    job_id = service.submit()
    service.tick()
    assert not service.can_lease()
    assert "another Flink job writes it" in service.standing(job_id).detail


def test_the_savepoint_is_known_even_if_the_cluster_ends_with_its_job(service: Service, cluster: FlinkCluster) -> None:
    service.register(cluster)
    cluster.slow, cluster.forgets_jobs = 0, False
    job_id = service.submit()
    service.tick()
    cluster.forgets_jobs = True
    service.tick()
    service.tick()
    assert service.standing(job_id).state is HandOverState.STOPPED
    assert service.standing(job_id).savepoint


def test_a_cluster_that_has_lost_the_job_proves_nothing(service: Service, cluster: FlinkCluster) -> None:
    service.register(cluster)
    cluster.slow = 5
    job_id = service.submit()
    service.tick()
    cluster.forgets_jobs = True
    service.tick()
    assert not service.can_lease()
    assert "not known to its cluster any more" in service.standing(job_id).detail
    coordinator.confirm(service.engine, service.notifier, service.clock, job_id, by="me", savepoint="s3://by-hand")
    assert service.can_lease()
    assert service.standing(job_id).savepoint == "s3://by-hand"


@pytest.mark.parametrize("fault", ["hangs", "broken", "gone", "not allowed"])
def test_one_bad_cluster_does_not_keep_the_others_waiting(service: Service, cluster: FlinkCluster, fault: str) -> None:
    with FlinkCluster(hangs=fault == "hangs", broken=fault == "broken") as bad:
        service.register(bad, "tbl_bad")
        if fault == "gone":
            bad._server.close()
        if fault == "not allowed":
            service.config = {"hosts": (cluster.url.removeprefix("http://"),)}
            service.restart()
        service.register(cluster, "tbl_good")
        stuck, good = service.submit("tbl_bad"), service.submit("tbl_good")
        for _ in range(6):
            service.tick()
        assert service.standing(good).state is HandOverState.STOPPED
        found = service.standing(stuck)
        assert found.state is HandOverState.DRAINING
        assert "Flink cluster" in found.detail
        assert bad.stops == []
        service.tick(3601)
        assert service.job(stuck).state is JobState.FAILED


def test_a_flink_job_that_comes_back_before_the_job_has_begun_is_stopped_again(
    service: Service, cluster: FlinkCluster, clock: FakeClock
) -> None:
    service.register(cluster)
    job_id = service.submit()
    for _ in range(6):
        service.tick()
    assert service.can_lease()
    cluster.run("b" * 32)
    clock.advance(5)
    with writing(service.engine) as connection:
        watch_store.mark(connection, "tbl_1", [Mark(WriterEngine.FLINK, clock(), "001", "it shows")])
    config = LeaseConfig(timedelta(seconds=30), 60.0, BackOff())

    def lease() -> object:
        return leases.lease(
            Database(service.engine, clock, service.notifier, cipher=SecretCipher([])),
            config,
            worker_id="w",
            group="default",
            permissions=Permissions(),
        )

    assert lease() is None
    for _ in range(6):
        service.tick()
    found = service.standing(job_id)
    assert (found.state, found.savepoint) == (HandOverState.STOPPED, f"{FOLDER}/savepoint-{'b' * 32}")
    assert lease() is not None


def test_a_requested_stop_may_end_after_the_deadline(service: Service, cluster: FlinkCluster) -> None:
    """The writer stops in any case, so the job continues."""
    service.register(cluster)
    cluster.slow = 3
    job_id = service.submit(seconds=10)
    service.tick()
    assert service.standing(job_id).state is HandOverState.STOPPING
    for _ in range(5):
        service.tick(5)
    assert service.standing(job_id).state is HandOverState.STOPPED


def test_a_stop_that_never_ends_is_given_up_and_the_error_names_the_request(
    service: Service, cluster: FlinkCluster
) -> None:
    service.register(cluster)
    cluster.slow = 1000
    job_id = service.submit(seconds=10)
    service.tick()
    service.tick(11)
    assert service.job(job_id).state is JobState.QUEUED
    service.tick(600)
    job = service.job(job_id)
    assert (job.state, job.error.type if job.error else "") == (JobState.FAILED, "writers-not-stopped")
    assert "is making its savepoint" in (job.error.detail if job.error else "")


def test_two_replicas_stop_a_job_once(service: Service, cluster: FlinkCluster, tmp_path: Path) -> None:
    service.register(cluster)
    job_id = service.submit()
    other = Service(service.engine, service.clock, tmp_path)
    for _ in range(6):
        service.clock.advance(1)
        service.hand_overs.run_once()
        other.hand_overs.run_once()
        assert service.hand_overs.pool.wait(30)
        assert other.hand_overs.pool.wait(30)
    assert service.standing(job_id).state is HandOverState.STOPPED
    assert len({asked["triggerId"] for asked in cluster.stops}) == 1


def test_the_stop_does_not_continue_after_its_job_was_cancelled(service: Service, cluster: FlinkCluster) -> None:
    service.register(cluster)
    cluster.slow = 3
    job_id = service.submit()
    service.tick()
    submission.cancel(Database(service.engine, service.clock, service.notifier), job_id)
    asked = len(cluster.asked)
    service.tick()
    assert len(cluster.asked) == asked
    assert service.job(job_id).state is JobState.CANCELLED
    with reading(service.engine) as connection:
        last = outbox.after(connection, 0, 100)[-1].event
    assert "Check that the Flink job is running" in last.data["job"]["hand_over"]["what_to_do"]
