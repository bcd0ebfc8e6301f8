"""Tests a running service whose clock is changed by an hour, or by years."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.db import migrate
from service.db.engine import open_engine
from service.db.timekeeping import Timekeeping
from service.model.clock import ClockReading, SteadyClock, utc_now
from tests.integration.receiver import Received, Receiver, Reply
from tests.integration.serving import Serving, eventually
from tests.support.small_table import SmallTable
from tests.support.wall_clock import LIBRARY, NOT_INSTALLED, Wall

if TYPE_CHECKING:
    from pathlib import Path

    import sqlalchemy as sa

    from tests.integration.control_plane.posting import Post
    from tests.support.postgresql import Server

HOUR = 3600.0
YEAR = 8766 * HOUR


class Machine:
    """A machine's adjustable clock, and the elapsed time, which cannot be changed."""

    def __init__(self) -> None:
        self.wall = datetime(2026, 1, 1, tzinfo=UTC)
        self.seconds = 0.0

    def run(self, seconds: float) -> None:
        self.wall += timedelta(seconds=seconds)
        self.seconds += seconds

    def steady(self, last: ClockReading | None = None) -> SteadyClock:
        return SteadyClock(lambda: self.wall, lambda: self.seconds, last=last)


@given(st.lists(st.tuples(st.floats(0, 1e5), st.floats(-1e9, 1e9)), max_size=20))
def test_the_time_of_the_service_passes_steadily_whatever_is_set(moves: list[tuple[float, float]]) -> None:
    machine = Machine()
    clock = machine.steady()
    before = clock()
    for passed, step in moves:
        machine.run(passed)
        machine.wall += timedelta(seconds=step)
        now = clock()
        assert 0.9 * passed - 1e-5 <= (now - before).total_seconds() <= 1.1 * passed + 1e-5
        before = now


@pytest.mark.parametrize(
    ("step", "passed"),
    [
        (0, 60),
        (-HOUR, 0),
        (HOUR, HOUR + 60),  # The service cannot distinguish this from an hour that has passed.
    ],
)
def test_the_time_of_the_service_goes_on_after_a_restart(step: float, passed: float) -> None:
    machine = Machine()
    before = machine.steady().read()
    machine.run(60)
    machine.wall += timedelta(seconds=step)
    after = machine.steady(before).read()
    assert after.at == before.at + timedelta(seconds=passed)


def test_a_time_that_differs_still_does_so_after_a_restart() -> None:
    machine = Machine()
    clock = machine.steady()
    machine.wall += timedelta(seconds=HOUR)
    machine.run(60)
    before = clock.read()
    machine.run(60)
    after = machine.steady(before).read()
    assert after.at == before.at + timedelta(seconds=66)


def test_replicas_agree_on_the_time(engine: sa.Engine) -> None:
    first = Timekeeping(engine)
    behind = ClockReading(utc_now() - timedelta(seconds=HOUR), utc_now())
    first.clock = SteadyClock(last=behind)
    first.run_once()
    assert abs(Timekeeping(engine).clock() - first.clock()) < timedelta(seconds=5)


@pytest.mark.parametrize("step", [-HOUR, HOUR])
def test_the_time_of_the_service_agrees_again_after_ten_times_the_step(step: float) -> None:
    machine = Machine()
    clock = machine.steady()
    machine.wall += timedelta(seconds=step)
    for _ in range(600):
        assert clock() != machine.wall
        machine.run(60)
    assert clock() == machine.wall


def test_receivers_see_the_wall_clock(post: Post) -> None:
    wall = post.clock() + timedelta(hours=1)
    asked = format_datetime(wall + timedelta(seconds=90), usegmt=True)
    with Receiver(Reply(429, {"Retry-After": asked})) as receiver:
        webhook = post.webhook(receiver.url).webhook
        post.publish()
        post.deliver(post.dispatcher(wall=lambda: wall))
        assert receiver.received[0].headers["webhook-timestamp"] == str(int(wall.timestamp()))
        [attempt] = post.attempts(post.deliveries(webhook.id)[0].id)
        assert attempt.retry_at == post.clock() + timedelta(seconds=90)


@pytest.fixture
def wall(tmp_path: Path) -> Wall:
    if LIBRARY is None:
        pytest.skip(NOT_INSTALLED)
    return Wall(tmp_path)


class Client:
    """Calls of users, and of workers that lease jobs and send a heartbeat each second for the job of `held`."""

    def __init__(self, service: Serving) -> None:
        self._http = httpx.Client(base_url=service.url, timeout=20)
        self.answers: set[str] = set()
        self._ended = threading.Event()

    def get(self, path: str) -> Any:
        return self._http.get(path).raise_for_status().json()

    def post(self, path: str, **body: Any) -> Any:
        answer = self._http.post(path, json=body).raise_for_status()
        return answer.json() if answer.content else None

    def lease(self) -> Any:
        """Waits for a job, for the time of a back-off or a lease on a busy machine."""
        leased = self.post("/v1/worker/leases", worker_id="w", wait_seconds=12)
        assert leased is not None, "no job is due"
        return leased["plan"]

    def hold(self, plan: Any) -> None:
        def beat() -> None:
            while not self._ended.wait(1.0):
                path = f"/v1/worker/leases/{plan['job_id']}/heartbeat"
                self.answers.add(self.post(path, attempt=plan["attempt"], instants=[])["answer"])

        self._keeper = threading.Thread(target=beat)
        self._keeper.start()

    def close(self) -> None:
        self._ended.set()
        self._keeper.join()


@pytest.mark.exhaustive
def test_a_clock_that_is_set_by_an_hour_back_and_forth_stalls_nothing(tmp_path: Path, wall: Wall) -> None:
    steps = [HOUR, 0, -HOUR, 50 * YEAR, 0]
    tables = {name: SmallTable(tmp_path / name) for name in ("held", "failing", "silent", "watched")}
    ids: dict[str, str] = {}
    tries: Counter[str] = Counter()

    def refuse_twice(got: Received) -> Reply:
        tries[got.id] += 1
        return Reply(503 if tries[got.id] <= 2 else 200)

    def require_progress(client: Client, number: int, seconds: float = 60) -> None:
        # Polls and deliveries.
        tables["watched"].commit(f"2026010112{number:07d}")
        path = f"/v1/commits?table_id={ids['watched']}"
        assert eventually(lambda: len(client.get(path)["items"]) == number + 1, seconds)
        assert eventually(lambda: list(tries.values()) == [3] * (number + 1), seconds)
        # The back-off after a failed attempt.
        job = client.post(f"/v1/tables/{ids['failing']}/jobs", kind="audit")["id"]
        for attempt in (1, 2):
            assert client.lease()["attempt"] == attempt
            client.post(f"/v1/worker/leases/{job}/result", attempt=attempt, result={"outcome": "unknown"})
        client.post(f"/v1/jobs/{job}/cancel")
        # A lease that expires.
        job = client.post(f"/v1/tables/{ids['silent']}/jobs", kind="audit")["id"]
        assert client.lease()["attempt"] == 1
        assert client.lease()["attempt"] == 2
        client.post(f"/v1/jobs/{job}/cancel")
        client.post(f"/v1/worker/leases/{job}/result", attempt=2, result={"outcome": "cancelled"})

    with (
        Receiver(refuse_twice) as receiver,
        Serving(
            tmp_path,
            environment=wall.environment,
            POLL_SECONDS="1",
            LEASE_SECONDS="6",
            RECOVER_SECONDS="0.5",
            MAX_ATTEMPTS="100",
            WEBHOOK_SCHEDULE_SECONDS="1,1,1,1",
            RETRY_MOST_SECONDS="2",
        ) as service,
    ):
        client = Client(service)
        ids.update({name: client.post("/v1/tables", base_path=str(table.base))["id"] for name, table in tables.items()})
        client.post(f"/v1/tables/{ids['held']}/jobs", kind="audit")
        client.hold(plan := client.lease())
        client.post("/v1/webhooks", url=receiver.url, types=["commit.published"])
        try:
            for number, seconds in enumerate(steps):
                wall.set(seconds)
                require_progress(client, number)
        finally:
            client.close()
        assert client.answers == {"continue"}
        client.post(
            f"/v1/worker/leases/{plan['job_id']}/result", attempt=plan["attempt"], result={"outcome": "succeeded"}
        )
        service.kill()
        wall.set(-HOUR)
        service.start()
        # The service recorded the time at most ten seconds ago.
        require_progress(Client(service), len(steps), 20)
        assert service.stop() == 0


def test_replicas_follow_the_clock_of_their_database(postgresql: Server, wall: Wall) -> None:
    url = postgresql.new_database()
    engine = open_engine(url)
    migrate.upgrade(engine)
    engine.dispose()
    wall.set(HOUR)
    code = (
        "import sys; from service.db.engine import open_engine; from service.db.timekeeping import Timekeeping;"
        "kept = Timekeeping(open_engine(sys.argv[1])); kept.run_once(); print(kept.clock().isoformat())"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, url], env={**os.environ, **wall.environment}, capture_output=True, check=True
    )
    assert abs(datetime.fromisoformat(ended.stdout.decode().strip()) - utc_now()) < timedelta(seconds=60)
