"""Tests deferred tasks in a real Airflow 3, whose scheduler, triggerer and API server are processes that are killed."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from groundskeeper_client import models
from jobs.contract import Outcome, Result
from tests.integration.serving import eventually
from tests.integration.tools.test_airflow import PINNED, Airflow
from tests.integration.tools.tool_environment import ToolEnvironment
from tests.support.spark_cluster import children, free_port
from tests.support.tcp_gate import TcpGate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jobs.contract import WorkOrder
    from tests.integration.tools.tool_service import ToolService, Work

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(1800)]

PARTS = ("api-server", "scheduler", "dag-processor", "triggerer")
SECONDS = 600.0
DAGS = """
from datetime import datetime, timedelta
from airflow.sdk import DAG
from groundskeeper_client.airflow.operator import GroundskeeperJobOperator

with DAG("scheduled", start_date=datetime(2026, 1, 1), schedule=None):
    again = dict(retries=3, retry_delay=timedelta(seconds=1), conn_id="far", poll_seconds=0.2)
    GroundskeeperJobOperator(task_id="audit", table="orders", kind="audit", **again)
"""


class Deployment:
    """The parts of an Airflow as processes, and its API."""

    def __init__(self, airflow: Airflow) -> None:
        self._airflow = airflow
        port = free_port()
        airflow.variables |= {
            "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
            "AIRFLOW__CORE__PARALLELISM": "2",
            "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "false",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "true",
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(port),
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__API__ENABLE_XCOM_DESERIALIZE_SUPPORT": "true",
            "AIRFLOW__API_AUTH__JWT_SECRET": "of tests, which all parts have to know " * 2,
            "AIRFLOW__API_AUTH__JWT_ISSUER": "tests",
            # A dead part is noticed after these seconds instead of minutes.
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "30",
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "2",
            "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "15",
        }
        airflow.environment.folder.joinpath("dags", "scheduled.py").write_text(DAGS)
        self._http = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60)
        self._parts: dict[str, Any] = {}
        for part in PARTS:
            self.start(part)
        assert eventually(self._is_up, SECONDS), self._log("api-server")
        assert eventually(lambda: self._answer("GET", "/api/v2/dags/scheduled") is not None, SECONDS), self._log(
            "dag-processor"
        )

    def start(self, part: str) -> None:
        self._parts[part] = self._airflow.environment.start("-m", "airflow", part, **self._airflow.variables)

    def kill(self, part: str) -> None:
        """Kills a part with all of its processes, as after a loss of its machine."""
        known = {self._parts[part].pid}
        while more := {*known, *children(known)} - known:
            known |= more
        for pid in known:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._parts[part].wait()

    def end(self) -> None:
        for part in self._parts:
            self.kill(part)
        self._http.close()

    def trigger(self) -> str:
        """Begins a run and returns its id."""
        begun = self._answer("POST", "/api/v2/dags/scheduled/dagRuns", json={"logical_date": None})
        assert begun is not None, self._log("api-server")
        return str(begun["dag_run_id"])

    def task(self, run: str) -> dict[str, Any]:
        return self._answer("GET", f"/api/v2/dags/scheduled/dagRuns/{run}/taskInstances/audit") or {}

    def wait(self, run: str, *states: str) -> dict[str, Any]:
        assert eventually(lambda: self.task(run).get("state") in states, SECONDS), (
            self.task(run),
            *map(self._log, PARTS),
        )
        return self.task(run)

    def returned(self, run: str) -> Any:
        path = f"/api/v2/dags/scheduled/dagRuns/{run}/taskInstances/audit/xcomEntries/return_value?deserialize=true"
        return (self._answer("GET", path) or {})["value"]

    def mark(self, run: str, state: str) -> None:
        """Does what a click on the state of a task does."""
        path = f"/api/v2/dags/scheduled/dagRuns/{run}/taskInstances/audit"
        assert self._answer("PATCH", path, json={"new_state": state}) is not None, self._log("api-server")

    def clear(self, run: str) -> None:
        """Does what a click on *Clear* does."""
        what = {"dry_run": False, "dag_run_id": run, "task_ids": ["audit"], "only_failed": False}
        cleared = self._answer("POST", "/api/v2/dags/scheduled/clearTaskInstances", json=what)
        assert cleared is not None, self._log("api-server")

    def _is_up(self) -> bool:
        with suppress(httpx.HTTPError):
            answer = self._http.get("/auth/token")
            if answer.is_success:
                self._http.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"
                return True
        return False

    def _answer(self, method: str, path: str, **more: Any) -> dict[str, Any] | None:
        with suppress(httpx.HTTPError):
            answer = self._http.request(method, path, **more)
            found: dict[str, Any] | None = answer.json() if answer.is_success else None
            return found
        return None

    def _log(self, part: str) -> str:
        return f"{part}: {self._parts[part].so_far()[-4000:]}"


@pytest.fixture(scope="module", params=["3.3.2", "3.0.6"])
def airflow(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, service: ToolService) -> Airflow:
    requirements = (f"apache-airflow=={request.param}", "msgspec==0.22.0", *PINNED.get(request.param, ()))
    environment = ToolEnvironment.of(*requirements, folder=tmp_path_factory.mktemp("airflow"))
    return Airflow(environment, request.param, service)


@pytest.fixture(scope="module")
def gate(airflow: Airflow, service: ToolService) -> Iterator[TcpGate]:
    gate = TcpGate(httpx.URL(service.serving.url).port or 0)
    airflow.connect("far", f"http://127.0.0.1:{gate.port}")
    yield gate
    gate.end()


@pytest.fixture(scope="module")
def deployment(airflow: Airflow, gate: TcpGate) -> Iterator[Deployment]:
    deployment = Deployment(airflow)
    yield deployment
    deployment.end()


def deferred(deployment: Deployment, work: Work) -> str:
    """Returns a run whose task has submitted its job and waits in the triggerer, which asks for the job."""
    run = deployment.trigger()
    deployment.wait(run, "deferred")
    assert eventually(lambda: bool(work.orders), 60)
    assert eventually(lambda: deployment.task(run).get("triggerer_job") is not None, 120), deployment.task(run)
    time.sleep(3)
    return run


def held(work: Work) -> list[bool]:
    """Lets jobs run until the list has a member."""
    ends: list[bool] = []

    def answer(_order: WorkOrder) -> Result:
        assert eventually(lambda: bool(ends), 600)
        return Result(Outcome.SUCCEEDED)

    work.result = answer
    return ends


def test_a_job_whose_triggerer_is_killed_is_neither_lost_nor_submitted_again(
    deployment: Deployment, work: Work
) -> None:
    ends = held(work)
    run = deferred(deployment, work)
    deployment.kill("triggerer")
    ends.append(True)
    deployment.start("triggerer")
    ended = deployment.wait(run, "success", "failed")
    assert (ended["state"], len(work.orders)) == ("success", 1)
    assert deployment.returned(run)["job_id"] == work.orders[0].job_id


def test_a_job_whose_worker_is_killed_between_its_event_and_the_success_is_not_submitted_again(
    deployment: Deployment, gate: TcpGate, work: Work
) -> None:
    """The worker of the local executor is a part of the scheduler. It waits in an outage of the service."""
    ends = held(work)
    run = deferred(deployment, work)
    ends.append(True)
    assert eventually(lambda: deployment.task(run).get("state") != "deferred", SECONDS)
    with gate.shut():
        deployment.wait(run, "running")
        time.sleep(3)
        assert deployment.task(run)["state"] == "running"
        deployment.kill("scheduler")
    deployment.start("scheduler")
    ended = deployment.wait(run, "success", "failed")
    assert (ended["state"], len(work.orders)) == ("success", 1)
    assert ended["try_number"] > 1
    assert deployment.returned(run)["job_id"] == work.orders[0].job_id


@pytest.mark.parametrize("click", ["failed", "success", "clear"])
def test_a_click_that_ends_or_clears_a_deferred_task_cancels_its_job(
    deployment: Deployment, service: ToolService, work: Work, click: str
) -> None:
    work.result = lambda _order: None
    run = deferred(deployment, work)
    if click == "clear":
        deployment.clear(run)
    else:
        deployment.mark(run, click)
    ended = service.client.wait_for(work.orders[0].job_id, seconds=120, poll_seconds=0.2, check=False)
    assert ended.state is models.JobState.CANCELLED
    if click == "clear":
        assert eventually(lambda: len(work.orders) == 2, SECONDS)
        deployment.wait(run, "deferred")
        deployment.mark(run, "failed")
