"""Tests the Dagster integration in a real Dagster, with a real service."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from groundskeeper_client import calls, models
from jobs.contract import Outcome, Problem, Result
from service.access.token import Role
from tests.integration.serving import eventually
from tests.integration.tools.tool_environment import ToolEnvironment
from tests.integration.tools.tool_service import COMPACTION, ToolService, Work, an_outage_after_a_submission
from tests.support.guides import GUIDE_OF_TOOLS, ROOT, python_block

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(1800)]

DAGSTER = ("dagster==1.13.29", "httpx==0.28.1", "msgspec==0.22.0")
RUNS = ROOT / "tests" / "integration" / "tools" / "dagster_runs.py"
IMPATIENT = "from groundskeeper_client import patience; patience.PATIENCE_SECONDS = 0"
RETRIED = """
from dagster import Definitions, RetryPolicy, define_asset_job
from groundskeeper_client.dagster import GroundskeeperResource, table_service_asset

audited = table_service_asset("orders", "audit")
upkeep = define_asset_job("upkeep", [audited], op_retry_policy=RetryPolicy(max_retries=5, delay=1))
resource = GroundskeeperResource(url=SERVICE, token=TOKEN)
defs = Definitions(assets=[audited], jobs=[upkeep], resources={"groundskeeper": resource})
"""


class Dagster:
    """A process with definitions, by default those of the guide, and an instance with its own database."""

    def __init__(
        self, environment: ToolEnvironment, service: ToolService, url: str | None = None, code: str | None = None
    ) -> None:
        example = environment.folder / ("example.py" if code is None else "other.py")
        example.write_text(code or python_block(GUIDE_OF_TOOLS, "Definitions("))
        self._log = (environment.folder / "dagster.log").open("w+")
        token = service.token(Role.OPERATOR)
        self.process = environment.start(
            RUNS, example, url or service.serving.url, token, log=self._log, DAGSTER_DISABLE_TELEMETRY="1"
        )

    def ask(self, *call: Any) -> Any:
        self.tell(*call)
        return self.answer()

    def tell(self, *call: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(call) + "\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        self._log.seek(0)
        raise AssertionError(self._log.read()[-6000:])

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=30)
        self._log.close()


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> ToolEnvironment:
    return ToolEnvironment.of(*DAGSTER, folder=tmp_path_factory.mktemp("dagster"))


@pytest.fixture(scope="module")
def dagster(environment: ToolEnvironment, service: ToolService) -> Iterator[Dagster]:
    dagster = Dagster(environment, service)
    yield dagster
    dagster.close()


def test_the_assets_of_the_guide_are_materialized_by_jobs(dagster: Dagster, work: Work) -> None:
    work.result = lambda order: Result(
        Outcome.SUCCEEDED, (COMPACTION,) if order.kind.value == "compaction" else (), {"rows": 7}
    )
    ended = dagster.ask("run")
    assert ended["success"], ended
    assert [(order.kind.value, dict(order.params)) for order in work.orders] == [
        ("compaction", {"limit_bytes": 53687091200}),
        ("audit", {"rows": True}),
    ]
    compacted = ended["materialized"]["orders_compaction"]
    assert (compacted["job_id"], compacted["instants"]) == (work.orders[0].job_id, [COMPACTION])
    assert ended["materialized"]["orders_audit"]["result"] == {"rows": 7}


def test_a_job_that_fails_fails_its_step_with_the_reason(dagster: Dagster, work: Work) -> None:
    why = Problem("table-unreadable", "The table cannot be read", "no such file", "Look", retriable=False)
    work.result = lambda _order: Result(Outcome.FAILED, error=why)
    ended = dagster.ask("run")
    assert (ended["success"], ended["materialized"]) == (False, {})
    assert "The table cannot be read: no such file Look" in str(ended["failures"])


def test_each_commit_of_a_writer_asks_for_one_run(dagster: Dagster, service: ToolService) -> None:
    first = dagster.ask("tick", "commits_of_orders", None)
    assert first["requests"] == []
    instant = _committed(service)
    second = dagster.ask("tick", "commits_of_orders", first["cursor"])
    [request] = second["requests"]
    assert request["tags"]["groundskeeper/instant"] == instant
    assert request["tags"]["groundskeeper/table"] == service.table.id
    third = dagster.ask("tick", "commits_of_orders", second["cursor"])
    assert third == {"cursor": second["cursor"], "requests": [], "events": []}
    # The id of a commit was the cursor of an earlier version.
    assert dagster.ask("tick", "commits_of_orders", "1") == third


def test_each_commit_of_a_writer_is_one_materialization(dagster: Dagster, service: ToolService) -> None:
    first = dagster.ask("tick", "updates_of_orders", None)
    assert first["events"] == []
    instants = [_committed(service), _committed(service)]
    second = dagster.ask("tick", "updates_of_orders", first["cursor"])
    assert [(each["asset"], each["instant"]) for each in second["events"]] == [("orders", each) for each in instants]
    assert len({each["tags"]["groundskeeper/event"] for each in second["events"]}) == 2
    assert dagster.ask("tick", "updates_of_orders", first["cursor"]) == second
    assert dagster.ask("tick", "updates_of_orders", second["cursor"])["events"] == []


def test_a_run_that_is_interrupted_cancels_its_job(dagster: Dagster, service: ToolService, work: Work) -> None:
    work.result = lambda _order: None
    dagster.tell("run")
    assert eventually(lambda: bool(work.orders), 60)
    dagster.process.send_signal(2)
    ended = service.client.wait_for(work.orders[0].job_id, seconds=30, poll_seconds=0.2, check=False)
    assert ended.state is models.JobState.CANCELLED


@pytest.mark.parametrize("is_patient", [True, False])
def test_an_outage_only_delays_a_step_whose_retry_waits_for_its_job_and_another_run_submits_another(
    environment: ToolEnvironment, service: ToolService, work: Work, *, is_patient: bool
) -> None:
    with an_outage_after_a_submission(service, work) as url:
        dagster = Dagster(environment, service, url, RETRIED if is_patient else f"{IMPATIENT}\n{RETRIED}")
        first, second = dagster.ask("run"), dagster.ask("run")
        dagster.close()
    jobs = [order.job_id for order in work.orders]
    assert [run["materialized"]["orders_audit"]["job_id"] for run in (first, second)] == jobs
    assert (first["retries"] > 0, second["retries"]) == (not is_patient, 0)
    assert len(set(jobs)) == 2


def _committed(service: ToolService) -> str:
    time.sleep(1.1)  # the instants of the table have whole seconds
    instant = service.commit()
    seen = lambda: any(each.requested_time == instant for each in service.client.items(calls.list_commits()))  # noqa: E731
    assert eventually(seen, 60)
    return instant
