"""Tests the Airflow provider in a real Airflow with its own database, with a real service."""

from __future__ import annotations

import json
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from groundskeeper_client import calls, models, published
from jobs.contract import Outcome, Problem, Result
from service.access.token import Role
from service.model.clock import utc_now
from tests.integration.serving import eventually
from tests.integration.tools.tool_environment import ToolEnvironment
from tests.integration.tools.tool_service import COMPACTION, ToolService, Work, an_outage_after_a_submission
from tests.support.guides import GUIDE_OF_TOOLS, ROOT, python_block
from tests.support.tcp_gate import TcpGate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jobs.contract import WorkOrder

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(1800)]

VERSIONS = ("3.3.2", "2.10.5", "2.11.2", "3.0.6")
# Airflow 3.0.6 sends itself requests that a later FastAPI, which pip would choose, refuses.
PINNED = {"3.0.6": ("fastapi==0.116.1",)}
RUNS = ROOT / "tests" / "integration" / "tools" / "airflow_runs.py"
IN_WORKER = """
from datetime import datetime
from airflow.sdk import DAG
from groundskeeper_client.airflow.operator import GroundskeeperJobOperator
from groundskeeper_client.airflow.sensors import CommitSeenSensor, TableHealthySensor

in_worker = dict(kind="audit", deferrable=False, poll_seconds=0.2)
with DAG("in_worker", start_date=datetime(2026, 1, 1), schedule=None) as dag:
    of_services = dict(table="orders", of_services=True, deferrable=False, poke_interval=1, timeout=60)
    seen = CommitSeenSensor(task_id="seen", instant="20260101120000000", **of_services)
    # After a failed audit the table has a warning, and this sensor would wait.
    strict = TableHealthySensor(task_id="strict", table="orders", deferrable=False, strict=True)
    audit = GroundskeeperJobOperator(task_id="audit", table="{{ dag_run.conf['table'] }}", **in_worker)
    seen >> strict >> audit

with DAG("killed", start_date=datetime(2026, 1, 1), schedule=None):
    GroundskeeperJobOperator(task_id="audit", table="orders", **in_worker)
"""


RETRIED = """
from datetime import UTC, datetime, timedelta
from airflow.sdk import DAG, Asset
from groundskeeper_client.airflow.assets import CommitAssetOperator
from groundskeeper_client.airflow.operator import GroundskeeperJobOperator

with DAG("retried", start_date=datetime(2026, 1, 1), schedule=None) as dag:
    again = dict(retries=5, retry_delay=timedelta(seconds=1), conn_id="far")
    GroundskeeperJobOperator(task_id="audit", table="orders", kind="audit", **again)

for where in ("triggerer", "worker"):
    with DAG(f"in_{where}_far_away", start_date=datetime(2026, 1, 1), schedule=None):
        once = dict(retries=0, deferrable=where == "triggerer", conn_id="far")
        GroundskeeperJobOperator(task_id="audit", table="orders", kind="audit", **once)

FAR = Asset("s3://lake/far")
with DAG("commits_far_away", start_date=datetime(2026, 1, 1), schedule=None):
    CommitAssetOperator(task_id="announce", table="orders", asset=FAR, since=datetime.now(UTC), conn_id="far")
"""
OF_AIRFLOW_2 = {
    "from airflow.sdk import DAG, Asset": "from airflow import DAG\nfrom airflow.datasets import Dataset as Asset",
    "airflow.sdk": "airflow",
}


class Airflow:
    """Airflow of a version with one connection to a service."""

    def __init__(self, environment: ToolEnvironment, version: str, service: ToolService) -> None:
        self.environment = environment
        self._token = service.token(Role.OPERATOR)
        self.started: list[Any] = []
        self.variables = {
            "AIRFLOW_HOME": str(environment.folder / "home"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
            "AIRFLOW__CORE__DAGS_FOLDER": str(environment.folder / "dags"),
        }
        self.connect("groundskeeper_default", service.serving.url)
        dags = environment.folder / "dags"
        dags.mkdir()
        for name, text in (
            ("orders_upkeep", python_block(GUIDE_OF_TOOLS, "TableHealthySensor(")),
            ("orders_commits", python_block(GUIDE_OF_TOOLS, "CommitAssetOperator(")),
            ("in_worker", IN_WORKER),
            ("retried", RETRIED),
        ):
            for of_three, of_two in OF_AIRFLOW_2.items() if version.startswith("2.") else ():
                text = text.replace(of_three, of_two)
            (dags / f"{name}.py").write_text(text)
        environment.run("-m", "airflow", "db", "migrate", **self.variables)

    def connect(self, conn_id: str, url: str) -> None:
        connection = {"conn_type": "groundskeeper", "host": url, "password": self._token}
        self.variables[f"AIRFLOW_CONN_{conn_id.upper()}"] = json.dumps(connection)

    def start(self, *arguments: str) -> Any:
        self.started.append(self.environment.start(RUNS, *arguments, **self.variables))
        return self.started[-1]

    def end(self) -> None:
        """Kills what a failed test has left, which would otherwise work on in the next one."""
        while self.started:
            self.started.pop().kill()

    def run(self, *arguments: str) -> Any:
        return json.loads(self.environment.run(RUNS, *arguments, **self.variables).splitlines()[-1])


@pytest.fixture(scope="module", params=VERSIONS)
def airflow(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, service: ToolService) -> Airflow:
    requirements = (f"apache-airflow=={request.param}", "msgspec==0.22.0", *PINNED.get(request.param, ()))
    environment = ToolEnvironment.of(*requirements, folder=tmp_path_factory.mktemp("airflow"))
    return Airflow(environment, request.param, service)


@pytest.fixture
def work(work: Work, airflow: Airflow) -> Iterator[Work]:
    yield work
    airflow.end()


def test_airflow_finds_the_provider_and_its_connection_works(airflow: Airflow) -> None:
    found = airflow.run("provider")
    assert found["hook"] == ["Groundskeeper", "groundskeeper"]
    assert found["connection"] == [True, "The service accepts the token."]


def test_the_dag_of_the_guide_runs_with_everything_deferred(airflow: Airflow, service: ToolService, work: Work) -> None:
    work.result = lambda order: Result(
        Outcome.SUCCEEDED, () if order.dry_run else (COMPACTION,), {"dry_run": order.dry_run}
    )
    since = utc_now().isoformat()
    process = airflow.start("run", "orders_upkeep", json.dumps({"loaded_since": since, "limit_bytes": 5}))
    time.sleep(15)
    assert work.orders == []
    assert process.poll() is None
    instant = service.commit()
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0, out[-6000:]
    ended = json.loads(out.splitlines()[-1])
    assert set(ended["tasks"].values()) == {"success"}, ended
    assert ended["returned"]["loaded"]["instant"] == instant
    assert ended["returned"]["healthy"] == {"table_id": service.table.id, "table": "orders"}
    assert ended["returned"]["compact"]["instants"] == [COMPACTION]
    assert [(order.kind.value, order.dry_run) for order in work.orders] == [("compaction", True), ("compaction", False)]
    # Airflow 2 says in another way that it has left the task for its trigger.
    assert "deferred" in out.lower() or "running trigger in line" in out.lower()


def test_tasks_run_in_the_worker_too_and_a_failed_job_fails_its_task(
    airflow: Airflow, service: ToolService, work: Work
) -> None:
    why = Problem("table-unreadable", "The table cannot be read", "no such file", "Look", retriable=False)
    work.result = lambda _order: Result(Outcome.FAILED, error=why)
    out = airflow.start("run", "in_worker", json.dumps({"table": service.table.id})).communicate(timeout=300)[0]
    ended = json.loads(out.splitlines()[-1])
    assert ended["tasks"] == {"seen": "success", "audit": "failed", "strict": "success"}, out[-5000:]
    assert "The table cannot be read: no such file Look" in out


def test_a_task_that_is_killed_cancels_its_job(airflow: Airflow, service: ToolService, work: Work) -> None:
    work.result = lambda _order: None
    process = airflow.start("run", "killed", "{}")
    if not eventually(lambda: bool(work.orders), 120):
        process.kill()
        raise AssertionError(process.communicate()[0][-6000:])
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    ended = service.client.wait_for(work.orders[0].job_id, seconds=30, poll_seconds=0.2, check=False)
    assert ended.state is models.JobState.CANCELLED

    deferred = service.client.send(calls.submit_job(service.table.id, models.AuditIn()))
    airflow.run("kill_deferred", deferred.id)
    ended = service.client.wait_for(deferred, seconds=30, poll_seconds=0.2, check=False)
    assert ended.state is models.JobState.CANCELLED
    # The job may also have ended meanwhile.
    airflow.run("kill_deferred", deferred.id)


def test_a_deferred_task_that_is_killed_in_an_outage_cancels_its_job_afterwards(
    airflow: Airflow, service: ToolService, work: Work
) -> None:
    work.result = lambda _order: None
    job = service.client.send(calls.submit_job(service.table.id, models.AuditIn()))
    assert eventually(lambda: bool(work.orders), 30)
    gate = TcpGate(httpx.URL(service.serving.url).port or 0)
    airflow.connect("far", f"http://127.0.0.1:{gate.port}")
    killed = airflow.environment.folder / "killed"
    with gate.shut():
        process = airflow.start("kill_deferred_in_outage", job.id)
        assert eventually(killed.exists, 200)
        assert service.client.send(calls.get_job(job.id)).state is models.JobState.RUNNING
    out, _ = process.communicate(timeout=120)
    ended = service.client.send(calls.get_job(job.id))
    assert process.returncode == 0, out[-6000:]
    assert ended.cancel_requested or ended.state is models.JobState.CANCELLED, out[-6000:]
    gate.end()


def test_a_retry_after_an_outage_waits_for_the_job_and_a_cleared_task_submits_another(
    airflow: Airflow, service: ToolService, work: Work
) -> None:
    with an_outage_after_a_submission(service, work) as url:
        airflow.connect("far", url)
        out, _ = airflow.start("run_twice", "retried", "0").communicate(timeout=300)
    first, cleared = json.loads(out.splitlines()[-1])
    jobs = [order.job_id for order in work.orders]
    assert [each["returned"]["audit"]["job_id"] for each in (first, cleared)] == jobs, out[-6000:]
    assert first["tries"]["audit"] > 1
    assert cleared["tries"]["audit"] == first["tries"]["audit"] + 1
    assert len(set(jobs)) == 2


# A call waits up to 20 s for the end of a job. Outages count as one if no call is answered between them.
@pytest.mark.parametrize(("where", "pauses"), [("triggerer", (0, 12, 26)), ("worker", (0, 12))])
def test_outages_shorter_than_the_patience_only_delay_a_task(
    airflow: Airflow, service: ToolService, work: Work, where: str, pauses: tuple[int, ...]
) -> None:
    """The first outage comes at the submission, whose answer is lost, the others while the task waits. Each lasts
    longer than a client repeats a call, and all together last longer than the patience."""
    gate = TcpGate(httpx.URL(service.serving.url).port or 0)
    gate.lose_answer(b"POST /v1/tables/")
    airflow.connect("far", f"http://127.0.0.1:{gate.port}")
    outages = threading.Event()

    def answer(_order: WorkOrder) -> Result:
        assert outages.wait(120)
        return Result(Outcome.SUCCEEDED)

    work.result = answer
    process = airflow.start("run", f"in_{where}_far_away", "{}", "9")
    assert eventually(lambda: bool(work.orders), 200)
    for pause in pauses:
        time.sleep(pause)
        with gate.shut():
            time.sleep(7)
    time.sleep(6)
    outages.set()
    out, _ = process.communicate(timeout=120)
    ended = json.loads(out.splitlines()[-1])
    assert ended["tasks"] == {"audit": "success"}, out[-6000:]
    assert out.count("Trying again") == len(pauses), out[-6000:]
    assert ended["tries"] == {"audit": 1}
    assert {order.job_id for order in work.orders} == {ended["returned"]["audit"]["job_id"]}
    gate.end()


def test_outages_while_a_table_is_quiet_do_not_add_up(airflow: Airflow, service: ToolService) -> None:
    gate = TcpGate(httpx.URL(service.serving.url).port or 0)
    airflow.connect("far", f"http://127.0.0.1:{gate.port}")
    waits = airflow.start("run", "commits_far_away", "{}", "9")
    assert eventually(lambda: gate.is_used, 200)
    time.sleep(10)
    for _ in range(3):
        assert gate.is_used
        with gate.shut():
            time.sleep(7)
        assert eventually(lambda: gate.is_used, 30)
        time.sleep(1)
    instant = _committed(service)
    out, _ = waits.communicate(timeout=120)
    ended = json.loads(out.splitlines()[-1])
    assert ended["tasks"] == {"announce": "success"}, out[-6000:]
    assert [commit["instant"] for commit in ended["returned"]["announce"]] == [instant]
    gate.end()


def test_an_asset_is_updated_by_each_commit_once_although_runs_are_killed(
    airflow: Airflow, service: ToolService
) -> None:
    """A killed run must neither announce nor lose a commit; a run that finds none waits for the next one."""
    announced = _published(service)
    announced.append(_committed(service))
    airflow.run("run", "orders_commits", "{}")
    assert _instants(airflow) == announced

    waits = airflow.start("run", "orders_commits", "{}")
    time.sleep(15)
    assert waits.poll() is None
    waits.kill()
    waits.communicate(timeout=60)
    assert _instants(airflow) == announced

    announced += [_committed(service), _committed(service)]
    airflow.run("run", "orders_commits", "{}")
    assert _instants(airflow) == announced
    waits = airflow.start("run", "orders_commits", "{}")
    time.sleep(15)
    assert waits.poll() is None
    announced.append(_committed(service))
    out, _ = waits.communicate(timeout=300)
    assert waits.returncode == 0, out[-6000:]
    assert _instants(airflow) == announced


def _committed(service: ToolService) -> str:
    time.sleep(1.1)  # the instants of the table have whole seconds
    instant = service.commit()
    assert eventually(lambda: instant in _published(service), 60)
    return instant


def _published(service: ToolService) -> list[str]:
    return [each.instant for each in published.commits_after(service.client, service.table.id, 0)[0]]


def _instants(airflow: Airflow) -> list[str]:
    return [instant for extra in airflow.run("events") for instant in extra["instants"]]
