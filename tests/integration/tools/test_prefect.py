"""Tests the Prefect integration with a real server and runner of Prefect, and a real service."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from groundskeeper_client import models
from jobs.contract import Outcome, Problem, Result, WorkOrder
from service.access.token import Role
from tests.integration.serving import eventually
from tests.integration.tools.tool_environment import ToolEnvironment
from tests.integration.tools.tool_service import COMPACTION, ToolService, Work, an_outage_after_a_submission
from tests.support.guides import GUIDE_OF_TOOLS, python_block

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(1800)]

RUN = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
PREFECT = ("prefect==3.9.1", "msgspec==0.22.0")
REPEATED = """
from prefect import flow

from groundskeeper_client.prefect import GroundskeeperCredentials, run_job


@flow(retries=1)
def upkeep():
    GroundskeeperCredentials(url=SERVICE, token=TOKEN).save("lake", overwrite=True)
    service = GroundskeeperCredentials.load("lake")
    audits = [run_job.submit(service, "orders", "audit").result().id for _ in range(2)]
    return [*audits, run_job(service, "orders", "compaction").id]
"""
IMPATIENT = "from groundskeeper_client import patience; patience.PATIENCE_SECONDS = 0"
WHY = Problem("table-unreadable", "The table cannot be read", "no such file", "Look", retriable=False)


class Prefect:
    """A server with its own database, and an environment for flows."""

    def __init__(self, folder: Path) -> None:
        self._environment = ToolEnvironment.of(*PREFECT, folder=folder)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self._variables = {
            "PREFECT_HOME": str(folder / "home"),
            "PREFECT_API_URL": f"http://127.0.0.1:{port}/api",
            "PREFECT_RUNNER_POLL_FREQUENCY": "1",
            "DO_NOT_TRACK": "1",
        }
        log = (folder / "server.log").open("w")
        self._server = self.start("server", "start", "--port", port, log=log)
        is_up = lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0  # noqa: E731
        assert eventually(is_up, 200), (folder / "server.log").read_text()[-6000:]

    def flow(self, service: ToolService, url: str | None = None, code: str | None = None) -> Path:
        """Returns a file with a flow, by default that of the guide."""
        file = self._environment.folder / "example.py"
        of_test = f"SERVICE, TOKEN = {url or service.serving.url!r}, {service.token(Role.OPERATOR)!r}\n"
        code = code or python_block(GUIDE_OF_TOOLS, "groundskeeper_client.prefect")
        file.write_text(f'{of_test}{code}\n\nif __name__ == "__main__":\n    print("\\nreturned", upkeep())\n')
        return file

    def run(self, flow: Path) -> tuple[int, str]:
        """Returns the exit code and the output of a run."""
        process = self._environment.start(flow, **self._variables)
        out, _ = process.communicate(timeout=600)
        return process.returncode, out

    def start(self, *command: object, **options: Any) -> subprocess.Popen[str]:
        """Starts a command of Prefect."""
        return self._environment.start("-m", "prefect", *command, **options, **self._variables)

    def ask(self, *command: object) -> str:
        return self._environment.run("-m", "prefect", *command, **self._variables)

    def close(self) -> None:
        end(self._server)


def end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.communicate(timeout=120)


@pytest.fixture(scope="module")
def prefect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prefect]:
    prefect = Prefect(tmp_path_factory.mktemp("prefect"))
    yield prefect
    prefect.close()


def kinds(work: Work) -> list[str]:
    return [order.kind.value for order in work.orders]


def test_the_flow_of_the_guide_runs_its_jobs(prefect: Prefect, service: ToolService, work: Work) -> None:
    work.result = lambda _order: Result(Outcome.SUCCEEDED, (COMPACTION,))
    code, out = prefect.run(prefect.flow(service))
    assert (code, kinds(work)) == (0, ["compaction", "audit"]), out[-6000:]
    assert dict(work.orders[0].params)["limit_bytes"] == 53687091200
    assert f"returned {work.orders[1].job_id}" in out


def test_a_retry_of_a_failed_flow_submits_only_the_job_that_failed(
    prefect: Prefect, service: ToolService, work: Work
) -> None:
    def answer(order: WorkOrder) -> Result:
        fails = order.kind.value == "compaction" and len(work.orders) == 3
        return Result(Outcome.FAILED, error=WHY) if fails else Result(Outcome.SUCCEEDED)

    work.result = answer
    flow = prefect.flow(service, code=REPEATED)
    code, out = prefect.run(flow)
    assert (code, kinds(work)) == (0, ["audit", "audit", "compaction", "compaction"]), out[-6000:]
    jobs = [order.job_id for order in work.orders]
    assert f"returned {[*jobs[:2], jobs[3]]}" in out
    assert "The table cannot be read: no such file Look" in out

    code, out = prefect.run(flow)
    assert (code, kinds(work)[4:]) == (0, ["audit", "audit", "compaction"]), out[-6000:]


@pytest.mark.parametrize("is_patient", [True, False])
def test_an_outage_only_delays_a_task_and_a_retry_waits_for_the_job_of_the_earlier_try(
    prefect: Prefect, service: ToolService, work: Work, *, is_patient: bool
) -> None:
    guide = python_block(GUIDE_OF_TOOLS, "groundskeeper_client.prefect")
    with an_outage_after_a_submission(service, work) as url:
        code, out = prefect.run(prefect.flow(service, url, guide if is_patient else f"{IMPATIENT}\n{guide}"))
    assert (code, kinds(work)) == (0, ["compaction", "audit"]), out[-6000:]
    assert ("Retry 1/3" in out) is not is_patient, out[-6000:]


def test_a_killed_flow_run_finds_its_job_when_it_is_retried_and_cancels_it_when_it_is_cancelled(
    prefect: Prefect, service: ToolService, work: Work, tmp_path: Path
) -> None:
    work.result = lambda _order: None
    path = tmp_path / "runner.log"
    submitted = lambda: re.findall("Submitted compaction of orders as (.*)", path.read_text())  # noqa: E731
    with path.open("w") as log:
        runner = prefect.start("flow", "serve", f"{prefect.flow(service)}:upkeep", "--name", "guide", log=log)
        try:
            assert eventually(lambda: "guide" in prefect.ask("deployment", "ls"), 200)
            [run] = set(re.findall(RUN, prefect.ask("deployment", "run", "upkeep/guide")))
            assert eventually(lambda: len(submitted()) == 1, 200)
            children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(runner.pid)], capture_output=True, check=True)
            os.kill(int(children.stdout), signal.SIGKILL)
            assert eventually(lambda: "Crashed" in prefect.ask("flow-run", "inspect", run), 60)

            prefect.ask("flow-run", "retry", run)
            assert eventually(lambda: len(submitted()) == 2, 200)
            prefect.ask("flow-run", "cancel", run)
            assert eventually(lambda: "Cancelled" in prefect.ask("flow-run", "inspect", run), 60)
        finally:
            end(runner)
    [job] = set(submitted())
    ended = service.client.wait_for(job, seconds=60, check=False)
    assert (ended.state, kinds(work)) == (models.JobState.CANCELLED, ["compaction"])
