"""Tests the process that answers what covers all tables of a large installation."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from multiprocessing import forkserver
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient

from jobs.contract import JobKind
from service.api import health_problems, overview
from service.api.app import create_app
from service.api.overview_rows import WHOLE
from service.api.structs import answered, as_json
from service.catalog import decision_times
from service.catalog.ownership import TableSelection
from service.db import schema
from service.db.engine import reading, writing
from service.events.database import Database
from service.health import problem_store
from service.health.overview import Filter, Order
from service.health.problems import Wanted
from service.lake import reader_pool
from service.metrics.installation import InProcess, Installation
from service.model.errors import DatabaseUnavailableError, FleetUnavailableError, GroundskeeperError
from service.policies import pause_store
from service.policies.policy import Pause
from service.queue import job_store
from service.queue.job import Job
from service.runtime import fleet_process
from service.runtime.fleet_process import FleetProcess
from service.scheduling import decision_store
from service.scheduling.decision import DECIDED
from service.scheduling.scheduler import SchedulerConfig
from tests.integration.control_plane.test_problems_of_many import ill
from tests.integration.serving import eventually
from tests.support.contexts import changed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from service.api.dependencies import AppContext
    from service.metrics.installation import FleetWork
    from tests.integration.control_plane.conftest import FakeClock

TABLES = 4


@pytest.fixture(scope="module", autouse=True)
def _forked_from_an_import() -> None:
    """Lets the processes be forked from a server process that has imported the service, as a service does, because each
    import takes three CPU seconds. The server process of earlier tests has not imported the service. The fixture
    forgets that server without ending it, because its end would wait for its children, such as those of
    `driver_processes`."""
    forkserver._forkserver.__init__()  # type: ignore[attr-defined]
    reader_pool.preload(fleet_process.__name__, __name__)


@pytest.fixture
def here(engine: sa.Engine, clock: FakeClock) -> Installation:
    ill(engine, clock, range(TABLES))
    return Installation(Database(engine, clock))


@pytest.fixture
def fleet(here: Installation) -> Iterator[FleetProcess]:
    made = FleetProcess(here, few=TABLES - 1)
    made.prepare()
    yield made
    made.close()


def process_of(_installation: Installation) -> int:
    return os.getpid()


def time_of(installation: Installation) -> float:
    return installation.database.clock().timestamp()


def end_at_once(_installation: Installation) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def sleep(_installation: Installation, seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


def niceness(_installation: Installation) -> tuple[int, set[int]]:
    """Returns the scheduling priority of the calling thread, and those of all threads of the process."""
    own = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    return own, {os.getpriority(os.PRIO_PROCESS, int(each.name)) for each in Path("/proc/self/task").iterdir()}


def fail(_installation: Installation) -> None:
    raise ValueError("a secret of the implementation")


def lose_database(_installation: Installation) -> None:
    raise DatabaseUnavailableError("the server is away")


def count_up(installation: Installation, times: int) -> None:
    owner = schema.tables.c.owner
    for _ in range(times):
        with writing(installation.database.engine) as connection:
            before = int(connection.execute(sa.select(owner).limit(1)).scalar_one() or 0)
            connection.execute(schema.tables.update().values(owner=str(before + 1)))


def of_fleet(fleet: FleetWork) -> dict[str, Any]:
    """Returns an overview without the times of its computation."""
    found = json.loads(as_json(answered(fleet, overview.overview_of, Filter(), Order.PROBLEMS, WHOLE)))
    del found["at"], found["problems"]["as_of"]
    return dict(found)


@pytest.mark.mostly_sqlite
def test_work_for_which_nobody_waits_leaves_the_processors_to_calls(fleet: FleetProcess) -> None:
    usual = os.getpriority(os.PRIO_PROCESS, 0)
    fleet.find_problems(timedelta(seconds=30))
    # Calls wait for the first round.
    assert fleet.run(niceness) == (usual, {usual})
    fleet.find_problems(timedelta(seconds=30))
    own, every = fleet.run(niceness)
    assert own == usual < max(every)


def test_a_small_installation_has_no_such_process(here: Installation) -> None:
    fleet = FleetProcess(here, few=TABLES)
    fleet.prepare()
    assert fleet.run(process_of) == os.getpid()
    fleet.close()


def test_the_process_answers_as_the_service_itself_would(fleet: FleetProcess, here: Installation) -> None:
    assert fleet.run(process_of) != os.getpid()
    listed = [
        as_json(answered(work, health_problems.page_of, Wanted(), TableSelection(), limit=50, cursor=None))
        for work in (InProcess(here), fleet)
    ]
    assert listed[0].count(b'"about"') > TABLES
    assert listed[0] == listed[1]
    assert of_fleet(InProcess(here)) == of_fleet(fleet)


@pytest.mark.mostly_sqlite
def test_the_process_of_the_fleet_has_the_clock_of_the_service(fleet: FleetProcess, clock: FakeClock) -> None:
    for seconds in (0, 100_000, -50_000):
        clock.advance(seconds)
        assert abs(fleet.run(time_of) - clock().timestamp()) < 10


@pytest.mark.mostly_sqlite
def test_a_slow_call_does_not_delay_others(fleet: FleetProcess) -> None:
    process = fleet.run(process_of)
    with ThreadPoolExecutor() as threads:
        slow = threads.submit(fleet.run, sleep, 3.0)
        assert fleet.run(process_of) == process
        assert not slow.done()
        assert slow.result() == process


def test_a_round_of_problems_runs_in_the_process_and_wakes_the_listeners(
    fleet: FleetProcess, here: Installation, engine: sa.Engine
) -> None:
    notified: list[None] = []
    here.database.notifier.relay = lambda: notified.append(None)
    fleet.find_problems(timedelta(seconds=30))
    with reading(engine) as connection:
        assert len(problem_store.every(connection)) >= TABLES
    assert notified


def test_decisions_are_made_in_the_process(fleet: FleetProcess, here: Installation, engine: sa.Engine) -> None:
    notified: list[None] = []
    here.database.notifier.relay = lambda: notified.append(None)
    ids = [f"tbl_{number}" for number in range(TABLES)]
    with writing(engine) as connection:
        for table_id in ids:
            decision_times.wake(connection, table_id, here.database.clock())
    fleet.plan(SchedulerConfig())
    with reading(engine) as connection:
        decided = decision_store.current(connection, here.database.clock() - timedelta(hours=1), ids)
    assert {table_id: set(decisions) for table_id, decisions in decided.items()} == {key: set(DECIDED) for key in ids}
    assert not notified, "nobody waits for decisions"
    now = here.database.clock()
    with writing(engine) as connection:
        job_store.submit(connection, Job("job_due", ids[0], JobKind.SYNC, now, now, reason="it is due"))
        pause_store.pause(connection, Pause(now, "ada"))
        decision_times.wake(connection, ids[0], now)
    fleet.plan(SchedulerConfig())
    assert notified, "the job was withdrawn"


def test_writers_of_two_processes_take_turns(sqlite: sa.Engine, clock: FakeClock) -> None:
    ill(sqlite, clock, range(TABLES))
    fleet = FleetProcess(Installation(Database(sqlite, clock)), few=0)
    with ThreadPoolExecutor() as threads:
        theirs = threads.submit(fleet.run, count_up, 200)
        count_up(Installation(Database(sqlite, clock)), 200)
        theirs.result()
    with reading(sqlite) as connection:
        assert connection.execute(sa.select(schema.tables.c.owner)).scalars().all() == ["400"] * TABLES
    fleet.close()


@pytest.mark.mostly_sqlite
def test_errors_keep_their_type_and_others_tell_no_secrets(fleet: FleetProcess) -> None:
    with pytest.raises(DatabaseUnavailableError, match="away"):
        fleet.run(lose_database)
    with pytest.raises(GroundskeeperError) as caught:
        fleet.run(fail)
    assert "secret" not in str(caught.value.problem())


@pytest.mark.mostly_sqlite
def test_a_killed_process_is_replaced_and_the_call_repeated(
    fleet: FleetProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_process, "_RESTART_SECONDS", 0)
    first = fleet.run(process_of)
    with ThreadPoolExecutor() as threads:
        slow = threads.submit(fleet.run, sleep, 1.0)
        time.sleep(0.3)
        os.kill(first, signal.SIGKILL)
        assert slow.result() == fleet.run(process_of) != first


@pytest.mark.mostly_sqlite
def test_a_process_that_ends_again_and_again_is_reported(fleet: FleetProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_process, "_RESTART_SECONDS", 600)
    fleet.run(process_of)
    with pytest.raises(FleetUnavailableError, match="just ended"):
        fleet.run(end_at_once)


@pytest.mark.mostly_sqlite
def test_a_call_that_ends_the_process_twice_is_refused(fleet: FleetProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_process, "_RESTART_SECONDS", 0)
    with pytest.raises(FleetUnavailableError, match="twice"):
        fleet.run(end_at_once)
    assert fleet.run(process_of)


@pytest.mark.mostly_sqlite
def test_the_calls_of_the_api_use_the_process(app_context: AppContext, fleet: FleetProcess) -> None:
    with TestClient(
        create_app(changed(app_context, fleet=fleet, open_metrics=True)), base_url="http://127.0.0.1"
    ) as api:
        overview_now: dict[str, Any] = api.get("/v1/overview").raise_for_status().json()
        assert overview_now["tables"]["total"] == TABLES
        listed = api.get("/v1/problems").raise_for_status().json()["items"]
        url = f"/v1/problems/{listed[0]['id']}/acknowledgement"
        assert api.put(url, json={"reason": "known"}).status_code == 200
        assert api.put("/v1/problems/prb_0000000000000000/acknowledgement", json={}).status_code == 404
        assert api.get("/v1/overview", params={"cursor": "no"}).json()["type"].endswith("params-invalid")
        assert f"groundskeeper_tables {TABLES}.0" in api.get("/metrics").text
        fleet.close()
        refused = api.get("/v1/overview")
        assert (refused.status_code, refused.json()["type"].rpartition("/")[2]) == (503, "fleet-unavailable")
        # A recent text is shown for a while.
        assert eventually(lambda: "groundskeeper_database_up 0.0" in api.get("/metrics").text, 10)


@pytest.mark.mostly_sqlite
def test_jobs_and_decisions_are_the_same_with_the_process(
    app_context: AppContext, engine: sa.Engine, fleet: FleetProcess
) -> None:
    paths = ["/v1/jobs", "/v1/jobs?state=queued&limit=1", "/v1/workers/demand?group=etl", "/v1/models/cost"]
    paths += ["/v1/tables/tbl_0/decisions", "/v1/tables/tbl_0/decisions?current=true"]
    context, headers = changed(app_context, engine=engine), {"Content-Type": "application/json"}
    preview = {"pattern": "*", "policy": {"compaction": {"commits": 2}}}

    def answers(context: AppContext, job: str) -> list[Any]:
        with TestClient(create_app(context), base_url="http://127.0.0.1", headers=headers) as api:
            found = [api.get(path).raise_for_status().json() for path in (*paths, f"/v1/jobs/{job}")]
            found.append(api.post("/v1/tables/tbl_0/evaluate").raise_for_status().json())
            found.append(api.post("/v1/policy-preview", json=preview).raise_for_status().json())
            refused = [api.get("/v1/tables/none/decisions"), api.get("/v1/jobs?cursor=no")]
            return [*found, *([each.status_code, each.json()["type"]] for each in refused)]

    with TestClient(create_app(changed(context, fleet=fleet)), base_url="http://127.0.0.1") as api:
        job = api.post("/v1/tables/tbl_0/jobs", json={"kind": "audit"}).raise_for_status().json()
        api.post("/v1/tables/tbl_1/jobs", json={"kind": "cleaning", "dry_run": True}).raise_for_status()
    assert job["forecast"]
    by_process = answers(changed(context, fleet=fleet), job["id"])
    assert [len(by_process[0]["items"]) > 2, len(by_process[1]["items"])] == [True, 1]
    assert untimed(by_process) == untimed(answers(context, job["id"]))


def untimed(answer: Any) -> str:
    """Returns the answer without its times, which differ by milliseconds."""
    return re.sub(r'"[\d-]+T[\d:.]+Z"|"oldest_seconds": [\d.e-]+', "", json.dumps(answer))


def test_a_job_is_submitted_and_shown_without_the_process(
    app_context: AppContext, engine: sa.Engine, fleet: FleetProcess
) -> None:
    fleet.close()
    with TestClient(create_app(changed(app_context, engine=engine, fleet=fleet)), base_url="http://127.0.0.1") as api:
        job = api.post("/v1/tables/tbl_0/jobs", json={"kind": "audit"}).raise_for_status().json()
        assert job["forecast"] is None
        assert api.get(f"/v1/jobs/{job['id']}").raise_for_status().json()["state"] == "queued"
        assert job["id"] in [each["id"] for each in api.get("/v1/jobs").raise_for_status().json()["items"]]
