"""A job that replaces file groups of a table with a Flink writer waits until somebody reports that Flink was
stopped."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from jobs.contract import Heartbeat, Outcome, Problem, Progress, Result, WorkOrder, WriterEngine
from service.access.token import Role
from service.api.event_catalogue import CATALOGUE
from service.catalog import watch_store
from service.db.engine import reading, writing
from service.delivery import outbox
from service.events.event import EventType
from service.lake.engine_sighting import Mark
from service.lake.reader_pool import InProcess
from service.queue.hand_over.coordinator import HandOverConfig, HandOvers

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastapi.testclient import TestClient

    from service.api.dependencies import AppContext
    from service.events.event import Event
    from tests.integration.control_plane.conftest import FakeClock

INDEX = {"num_buckets": 4, "hash_fields": ["id"]}
EXPANSION = {"kind": "bucket_expansion", "params": {"num_buckets": 8}}


class FlinkTable:
    """A service with one table that Flink writes, and the calls of its operators."""

    def __init__(self, client: TestClient, app_context: AppContext, clock: FakeClock) -> None:
        self.client, self.app_context, self.clock = client, app_context, clock
        self.table_id = self.register("/lake/orders", {"hudi_version": "1.2.0", "engines": ["flink"]})
        self.hand_overs = HandOvers(
            app_context.database.engine, app_context.database.notifier, clock, HandOverConfig(), InProcess()
        )

    def register(self, base_path: str, writers: Any, index: Any = INDEX) -> str:
        answer = self.client.post("/v1/tables", json={"base_path": base_path, "index": index, "writers": writers})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def submit(self, body: Any = EXPANSION, table_id: str | None = None) -> dict[str, Any]:
        answer = self.client.post(f"/v1/tables/{table_id or self.table_id}/jobs", json=body)
        assert answer.status_code == 202, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def job(self, job_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.client.get(f"/v1/jobs/{job_id}").json()
        return found

    def lease(self) -> WorkOrder | None:
        answer = self.client.post("/v1/worker/leases", json={"worker_id": "w"})
        return WorkOrder.from_json(answer.json()["plan"]) if answer.status_code == 200 else None

    def beat(self, plan: WorkOrder, step: str, *instants: str) -> None:
        beat = Heartbeat(plan.attempt, Progress(step, 0, 1, 0, 0), instants).to_json()
        assert self.client.post(f"/v1/worker/leases/{plan.job_id}/heartbeat", json=beat).status_code == 200

    def report(self, plan: WorkOrder, result: Result) -> None:
        body = {"attempt": plan.attempt, "result": result.to_json()}
        assert self.client.post(f"/v1/worker/leases/{plan.job_id}/result", json=body).status_code == 200

    def report_stopped(self, job_id: str, body: Any = None, **more: Any) -> Any:
        return self.client.post(f"/v1/jobs/{job_id}/writers-stopped", json=body, **more)

    def see(self, engine: WriterEngine = WriterEngine.FLINK, table_id: str | None = None) -> None:
        """Records a poll that has found a current sign of the engine."""
        with writing(self.app_context.database.engine) as connection:
            watch_store.mark(connection, table_id or self.table_id, [Mark(engine, self.clock(), "009", "it shows")])

    def events(self) -> list[Event]:
        with reading(self.app_context.database.engine) as connection:
            return [published.event for published in outbox.after(connection, 0, 1000)]


@pytest.fixture
def flink(client: TestClient, app_context: AppContext, clock: FakeClock) -> FlinkTable:
    return FlinkTable(client, app_context, clock)


def test_an_expansion_waits_until_somebody_says_that_the_writers_were_stopped(
    flink: FlinkTable, clock: FakeClock
) -> None:
    job = flink.submit()
    assert (job["state"], job["hand_over"]["state"]) == ("queued", "draining")
    assert job["hand_over"]["deadline"] == "2026-01-01T01:00:00Z"
    assert flink.lease() is None
    shown = flink.job(job["id"])
    assert shown["waits_for"].startswith("the writers to stop")
    assert flink.client.get("/v1/jobs").json()["items"][0]["hand_over"] == shown["hand_over"]
    queued, draining = flink.events()[1:]
    assert (queued.type, draining.type) == ("job.queued", "expansion.draining")
    assert queued.data["job"]["hand_over"]["state"] == "draining"
    told = draining.data["expansion"]
    assert (told["instant"], told["hand_over"]["state"]) == (None, "draining")
    assert f"/v1/jobs/{job['id']}/writers-stopped" in told["hand_over"]["what_to_do"]

    clock.advance(60)
    answer = flink.report_stopped(job["id"], {"savepoint": "s3://sp/1"})
    assert answer.status_code == 200, answer.text
    hand_over = answer.json()["hand_over"]
    assert (hand_over["state"], hand_over["savepoint"], hand_over["by"]) == ("stopped", "s3://sp/1", "anybody")
    clock.advance(60)
    assert flink.report_stopped(job["id"], {"savepoint": "s3://sp/2"}).json()["hand_over"] == hand_over
    plan = flink.lease()
    assert plan is not None
    assert (plan.writers_stopped, plan.attempt, plan.table.writers_engines) == (True, 1, ("flink",))
    assert not plan.table.writers_stopped


def test_an_event_after_the_commit_says_how_to_start_flink_again(flink: FlinkTable) -> None:
    job_id = flink.submit()["id"]
    flink.report_stopped(job_id, {"savepoint": "s3://sp/1"})
    plan = flink.lease()
    assert plan is not None
    flink.beat(plan, "draining writers", "005")
    flink.beat(plan, "watching writers", "005")
    flink.report(plan, Result(Outcome.SUCCEEDED, ("005",)))
    events = {event.type: event.data for event in flink.events()}
    to_do = events["expansion.committed"]["expansion"]["hand_over"]
    assert to_do["savepoint"] == "s3://sp/1"
    assert "from the savepoint s3://sp/1" in to_do["what_to_do"]
    assert f"/v1/tables/{flink.table_id}/writer-options?engine=flink" in to_do["what_to_do"]
    assert events["job.succeeded"]["job"]["hand_over"]["savepoint"] == "s3://sp/1"
    for event in flink.events():
        schema = CATALOGUE[EventType(event.type)].schema
        jsonschema.validate(json.loads(json.dumps(dict(event.data))), schema)


def test_a_second_attempt_of_a_released_job_does_not_wait_again(flink: FlinkTable, clock: FakeClock) -> None:
    job_id = flink.submit()["id"]
    flink.report_stopped(job_id)
    plan = flink.lease()
    assert plan is not None
    flink.report(plan, Result(Outcome.FAILED, ("005",), error=Problem("x", "x", retriable=True)))
    clock.advance(60)
    again = flink.lease()
    assert again is not None
    assert (again.attempt, again.writers_stopped) == (2, True)


def test_after_the_deadline_the_job_fails_and_nothing_has_changed(flink: FlinkTable, clock: FakeClock) -> None:
    job_id = flink.submit({**EXPANSION, "params": {"factor": 2, "hand_over_seconds": 600}})["id"]
    clock.advance(599)
    assert flink.hand_overs.run_once().given_up == ()
    clock.advance(2)
    assert flink.hand_overs.run_once().given_up == (job_id,)
    job = flink.job(job_id)
    assert (job["state"], job["error"]["type"]) == ("failed", "/problems/writers-not-stopped")
    assert (job["hand_over"]["state"], job["attempt"]) == ("expired", 0)
    assert "Nothing was changed" in job["error"]["hint"]
    last = flink.events()[-1]
    assert (last.type, last.data["job"]["error"]["type"]) == ("job.failed", "writers-not-stopped")
    assert flink.lease() is None
    assert flink.hand_overs.run_once().waiting == ()
    answer = flink.report_stopped(job_id)
    assert (answer.status_code, answer.json()["type"]) == (409, "/problems/job-not-waiting")


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "clustering", "params": {"sort_by": ["city"]}},
        {"kind": "repair"},
        {"kind": "finish_expansion"},
    ],
)
def test_other_jobs_that_replace_file_groups_wait_too_and_say_so_when_they_are_queued(
    flink: FlinkTable, body: Any
) -> None:
    job = flink.submit(body)
    assert job["hand_over"]["state"] == "draining"
    assert flink.lease() is None
    [queued] = flink.events()[1:]
    assert queued.type == "job.queued"
    assert "writers-stopped" in queued.data["job"]["hand_over"]["what_to_do"]


def test_without_a_bucket_index_it_must_be_confirmed_that_flinks_state_does_not_come_back(flink: FlinkTable) -> None:
    table_id = flink.register("/lake/other", {"hudi_version": "1.2.0", "engines": ["flink"]}, index=None)
    job = flink.submit({"kind": "clustering", "params": {}}, table_id=table_id)
    assert (job["hand_over"]["state"], job["hand_over"]["restart"]) == ("draining", "without-state")
    for body in (None, {"savepoint": "s3://sp/1"}, {"restart": "from-savepoint"}):
        answer = flink.report_stopped(job["id"], body)
        assert (answer.status_code, answer.json()["type"]) == (409, "/problems/flink-state-returns")
        assert flink.lease() is None
    told = {"savepoint": "s3://sp/1", "restart": "without-state"}
    assert flink.report_stopped(job["id"], told).json()["hand_over"]["restart"] == "without-state"
    plan = flink.lease()
    assert plan is not None
    assert plan.writers_stopped
    flink.report(plan, Result(Outcome.SUCCEEDED, ("005",)))
    to_do = flink.events()[-1].data["job"]["hand_over"]["what_to_do"]
    assert "Do not start it from its savepoint (s3://sp/1)" in to_do


@pytest.mark.parametrize("body", [{"kind": "compaction"}, {"kind": "cleaning"}, {**EXPANSION, "dry_run": True}])
def test_jobs_that_can_run_beside_flink_do_not_wait(flink: FlinkTable, body: Any) -> None:
    job = flink.submit(body)
    assert job["hand_over"] is None
    assert flink.lease() is not None
    assert flink.report_stopped(job["id"]).status_code == 409


@pytest.mark.parametrize("writers", [None, {"hudi_version": "1.2.0"}, {"hudi_version": "1.2.0", "engines": ["spark"]}])
def test_jobs_do_not_wait_without_a_known_flink_writer(flink: FlinkTable, writers: Any) -> None:
    table_id = flink.register("/lake/other", writers)
    assert flink.submit(table_id=table_id)["hand_over"] is None
    plan = flink.lease()
    assert plan is not None
    assert not plan.writers_stopped


def test_a_flink_job_that_is_seen_after_the_job_was_queued_is_waited_for_as_well(flink: FlinkTable) -> None:
    table_id = flink.register("/lake/other", {"hudi_version": "1.2.0", "engines": ["spark"]})
    job = flink.submit(table_id=table_id)
    flink.see(table_id=table_id)
    assert flink.lease() is None
    shown = flink.job(job["id"])
    assert (shown["state"], shown["attempt"], shown["hand_over"]["state"]) == ("queued", 0, "draining")
    assert flink.lease() is None
    assert [event.type for event in flink.events()][-2:] == ["job.queued", "expansion.draining"]
    flink.report_stopped(job["id"])
    assert flink.lease() is not None


def test_a_job_that_is_held_back_at_the_lease_does_not_block_the_next_one(flink: FlinkTable) -> None:
    table_id = flink.register("/lake/other", None)
    flink.submit({"kind": "clustering", "params": {"sort_by": ["city"]}}, table_id=table_id)
    flink.see(table_id=table_id)
    # The two jobs have the same time by the fixed clock, so only the priority determines the order.
    other = flink.submit({"kind": "audit", "priority": -1}, table_id=table_id)
    plan = flink.lease()
    assert plan is not None
    assert plan.job_id == other["id"]
    types = [event.type for event in flink.events()]
    # No other event reports a waiting clustering.
    assert types.count("job.queued") == 3


def test_writers_that_are_declared_stopped_are_not_waited_for(flink: FlinkTable) -> None:
    flink.client.patch(f"/v1/tables/{flink.table_id}", json={"writers": {"stopped": True}})
    assert flink.submit()["hand_over"] is None
    plan = flink.lease()
    assert plan is not None
    assert plan.table.writers_stopped


def test_a_flink_job_that_comes_back_before_the_job_has_begun_is_waited_for_again(
    flink: FlinkTable, clock: FakeClock
) -> None:
    job_id = flink.submit()["id"]
    flink.report_stopped(job_id, {"savepoint": "s3://sp/1"})
    clock.advance(1)
    flink.see()
    assert flink.lease() is None
    hand_over = flink.job(job_id)["hand_over"]
    assert (hand_over["state"], hand_over["savepoint"]) == ("draining", None)
    assert "after it had been reported as stopped" in hand_over["detail"]
    clock.advance(1)
    flink.report_stopped(job_id, {"savepoint": "s3://sp/2"})
    assert flink.job(job_id)["hand_over"]["savepoint"] == "s3://sp/2"
    assert flink.lease() is not None


@pytest.mark.parametrize("said", [{"stopped": True}, {"engines": ["spark"]}])
def test_a_job_goes_on_when_the_owner_declares_that_flink_does_not_write_the_table(
    flink: FlinkTable, clock: FakeClock, said: Any
) -> None:
    flink.see()
    job_id = flink.submit()["id"]
    assert flink.hand_overs.run_once().waiting == (job_id,)
    assert flink.lease() is None
    clock.advance(1)
    flink.client.patch(f"/v1/tables/{flink.table_id}", json={"writers": said})
    flink.hand_overs.run_once()
    plan = flink.lease()
    assert plan is not None
    # Other writers may continue, because nobody reported to this job that all were stopped.
    assert (plan.writers_stopped, plan.table.writers_stopped) == (False, "stopped" in said)
    assert flink.job(job_id)["hand_over"] is None


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_flink_job_is_never_fenced(flink: FlinkTable, dry_run: bool) -> None:
    body = {**EXPANSION, "params": {"num_buckets": 8, "on_active_writers": "fence"}, "dry_run": dry_run}
    answer = flink.client.post(f"/v1/tables/{flink.table_id}/jobs", json=body)
    assert (answer.status_code, answer.json()["type"]) == (409, "/problems/fence-loses-flink-batches")
    assert flink.client.get("/v1/jobs").json()["items"] == []


def test_a_fence_that_was_asked_for_before_flink_was_seen_becomes_a_wait(flink: FlinkTable) -> None:
    table_id = flink.register("/lake/other", None)
    params = {"num_buckets": 8, "on_active_writers": "fence"}
    job = flink.submit({**EXPANSION, "params": params}, table_id=table_id)
    flink.see(table_id=table_id)
    assert flink.lease() is None
    flink.report_stopped(job["id"])
    plan = flink.lease()
    assert plan is not None
    assert plan.params["on_active_writers"] == "wait"


def test_a_job_that_waits_can_be_cancelled(flink: FlinkTable) -> None:
    job_id = flink.submit()["id"]
    assert flink.client.post(f"/v1/jobs/{job_id}/cancel").json()["state"] == "cancelled"
    assert flink.hand_overs.run_once().waiting == ()
    assert flink.report_stopped(job_id).status_code == 409
    assert flink.submit()["id"] != job_id


def test_a_running_job_cannot_be_released_but_a_queued_one_can_be_in_advance(flink: FlinkTable) -> None:
    table_id = flink.register("/lake/other", None)
    job = flink.submit(table_id=table_id)
    assert flink.report_stopped(job["id"], {"savepoint": "s3://sp"}).json()["hand_over"]["state"] == "stopped"
    flink.client.post(f"/v1/jobs/{job['id']}/cancel")
    other = flink.submit(table_id=table_id)
    assert flink.lease() is not None
    assert flink.report_stopped(other["id"]).json()["type"] == "/problems/job-not-waiting"
    assert flink.report_stopped("job_none").status_code == 404


def test_only_operators_may_report_stopped_writers(
    flink: FlinkTable, make_token: Callable[[Role], dict[str, str]]
) -> None:
    job_id = flink.submit()["id"]
    reader, operator = make_token(Role.READER), make_token(Role.OPERATOR)
    assert flink.report_stopped(job_id, headers=reader).status_code == 403
    answer = flink.report_stopped(job_id, headers=operator)
    assert answer.json()["hand_over"]["by"].startswith("a operator")
    assert flink.report_stopped(job_id, {"savepoint": 3}, headers=operator).status_code == 422
