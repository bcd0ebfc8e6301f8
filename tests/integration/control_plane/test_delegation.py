"""Tests plans that writers delegate: the stored requests, their callers and the jobs."""

from __future__ import annotations

import base64
import dataclasses
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from fastapi.testclient import TestClient

from jobs.contract import JobKind, Outcome
from service.access.token import Role
from service.api.app import create_app
from service.catalog import commit_store, snapshot_store, table_store
from service.catalog.snapshot_store import Stored
from service.db.engine import open_engine, reading, writing
from service.db.page import PageRequest
from service.delegation import inbox, plan_store
from service.delegation.plan import DelegatedService, ExecutionHints, PlanRequest, PlanState
from service.delivery import outbox
from service.lake.commit import Commit
from service.lake.snapshot import Pending
from service.policies import policy_registry
from service.queue.job import JobState
from service.scheduling.decision import Verdict
from tests.integration.control_plane.planning import Service
from tests.integration.serving import Serving
from tests.support.contexts import changed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import sqlalchemy as sa

    from service.api.dependencies import AppContext
    from service.delegation.inbox import Received
    from service.delegation.plan import DelegatedPlan
    from tests.integration.control_plane.conftest import FakeClock

PATH = "/v1/hoodie/service/compact"
FIRST, SECOND = "20260101115900000", "20260101115930000"


def query(*instants: str, **more: str) -> dict[str, str]:
    """Returns the query that `HoodieTableServiceManagerClient` of Hudi 1.2.0 sends."""
    return {
        "action": "REQUEST",
        "db_name": "",
        "table_name": "orders",
        "basepath": "file:/lake/orders",
        "instant": ",".join(instants),
        "username": "default",
        "queue": "default",
        "resource": "spark:4g,4g",
        "parallelism": "100",
        "extra_params": "",
        "execution_engine": "spark",
        **more,
    }


def plans(client: TestClient, **wanted: Any) -> list[dict[str, Any]]:
    answer = client.get("/v1/delegated-plans", params=wanted)
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def basic(password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"writer:{password}".encode()).decode()}


def test_a_plan_is_stored_once_however_often_it_is_delegated(client: TestClient, table_id: str) -> None:
    first = client.get(PATH, params=query(FIRST))
    assert (first.status_code, first.json()) == (200, {"table_id": table_id, "stored": [FIRST]})
    for _ in range(20):
        again = client.get(PATH, params=query(SECOND, FIRST))
    assert (again.status_code, again.json()["stored"]) == (200, [])
    found = plans(client, table_id=table_id)
    assert sorted(each["instant"] for each in found) == [FIRST, SECOND]
    assert {each["state"] for each in found} == {"waiting"}
    assert (found[0]["resource"], found[0]["parallelism"], found[0]["queue"]) == ("spark:4g,4g", 100, None)


def test_a_request_without_pending_plans_stores_nothing(client: TestClient, table_id: str) -> None:
    assert client.get(PATH, params=query()).json() == {"table_id": table_id, "stored": []}
    assert plans(client) == []


@pytest.mark.parametrize(
    ("path", "changes"),
    [
        (PATH, {"action": "CANCEL"}),
        (PATH, {"instant": "../../etc/passwd"}),
        (PATH, {"instant": ",".join(str(20260101000000000 + number) for number in range(1001))}),
        (PATH, {"basepath": ""}),
        (PATH, {"basepath": "x" * 5000}),
        (PATH, {"basepath": "/lake/\x00"}),
        ("/v1/hoodie/service/drop", {}),
    ],
)
def test_an_invalid_delegation_request_is_refused(client: TestClient, path: str, changes: dict[str, str]) -> None:
    assert client.get(path, params=query(FIRST, **changes)).status_code == 422
    assert plans(client) == []


def test_an_unregistered_table_is_suggested_once_and_gets_its_plans_at_its_registration(
    client: TestClient, app_context: AppContext
) -> None:
    for instants in ((FIRST,), (FIRST, SECOND)):
        assert client.get(PATH, params=query(*instants, basepath="/lake/new/")).json()["table_id"] is None
    found = plans(client, state="unregistered")
    assert sorted((each["base_path"], each["instant"]) for each in found) == [
        ("/lake/new", FIRST),
        ("/lake/new", SECOND),
    ]
    assert "Register the table" in found[0]["hint"]
    with reading(app_context.database.engine) as connection:
        events = [each.event for each in outbox.after(connection, 0, 100)]
    assert [event.type for event in events] == ["table.suggested"]
    assert events[0].data["suggestion"]["base_path"] == "/lake/new"
    registered = client.post("/v1/tables", json={"base_path": "/lake/new"}).json()["id"]
    assert {each["state"] for each in plans(client, table_id=registered)} == {"waiting"}
    assert plans(client, state="unregistered") == []


def test_plans_of_the_metadata_table_are_kept_with_their_table(client: TestClient, table_id: str) -> None:
    sent = query(FIRST, basepath="/lake/orders/.hoodie/metadata", table_name="orders_metadata")
    assert client.get(PATH, params=sent).json()["table_id"] == table_id
    [plan] = plans(client)
    assert (plan["base_path"], plan["is_metadata"]) == ("/lake/orders", True)


def test_the_key_travels_as_the_password_of_the_uri(app_context: AppContext, table_id: str) -> None:
    keyed = create_app(changed(app_context, callback_key="geh eim"))
    with TestClient(keyed, base_url="http://127.0.0.1") as client:
        asked = client.get(PATH, params=query(FIRST))
        # Without this challenge Hudi's HTTP client does not send the user info.
        assert (asked.status_code, asked.headers["www-authenticate"].split()[0]) == (401, "Basic")
        wrong = [basic("geheim"), {"Authorization": "Basic !"}, {"Authorization": "Bearer geh eim"}, basic("")]
        assert [client.get(PATH, params=query(FIRST), headers=each).status_code for each in wrong] == [401] * 4
        assert client.get(PATH, params=query(FIRST), headers=basic("geh eim")).status_code == 200
        # The token allows no other call.
        assert client.get("/v1/tables/nope", headers=basic("geh eim")).status_code in (401, 404)


def test_a_writer_does_not_fail_because_the_database_is_away(app_context: AppContext) -> None:
    nowhere = open_engine("postgresql://127.0.0.1:9/none")
    context = changed(app_context, callback_key="geheim", engine=nowhere)
    with TestClient(create_app(context), base_url="http://127.0.0.1") as client:
        answer = client.get(PATH, params=query(FIRST), headers=basic("geheim"))
    assert (answer.status_code, answer.json()["stored"]) == (202, [])
    nowhere.dispose()


def test_without_a_key_any_token_will_do(
    client: TestClient, table_id: str, make_token: Callable[[Role], dict[str, str]]
) -> None:
    reader = make_token(Role.READER)
    assert client.get(PATH, params=query(FIRST)).status_code == 401
    assert client.get(PATH, params=query(FIRST), headers=basic("gk_wrong")).status_code == 401
    token = reader["Authorization"].removeprefix("Bearer ")
    assert client.get(PATH, params=query(FIRST), headers=basic(token)).status_code == 200
    assert client.get(PATH, params=query(FIRST), headers=reader).status_code == 200
    # Only this protocol accepts Basic authentication.
    assert client.get("/v1/delegated-plans", headers=basic(token)).status_code == 401
    shown = client.get(f"/v1/tables/{table_id}/writer-options", params={"services": "delegated"}, headers=reader)
    uris = shown.json()["options"]["hoodie.table.service.manager.uris"]
    assert uris == "http://writer:<a token of this service>@127.0.0.1"


def test_a_page_of_another_site_cannot_delegate(client: TestClient, table_id: str) -> None:
    foreign = client.get(PATH, params=query(FIRST), headers={"Sec-Fetch-Site": "cross-site"})
    assert foreign.status_code == 403
    assert client.get(PATH, params=query(FIRST), headers={"Sec-Fetch-Site": "none"}).status_code == 200


def request(*instants: str, base_path: str = "/lake/tbl_1", service: str = "compact", **hints: Any) -> PlanRequest:
    return PlanRequest(DelegatedService(service), base_path, False, "orders", instants, ExecutionHints(**hints))


def delegate(service: Service, wanted: PlanRequest) -> Received:
    return inbox.receive(service.engine, service.notifier, service.clock, wanted, caller="a writer")


def stored(service: Service) -> list[DelegatedPlan]:
    with reading(service.engine) as connection:
        return list(plan_store.page(connection, PageRequest(100)).items)


def on_timeline(service: Service, *pending: Pending, done: tuple[str, ...] = ()) -> None:
    """Records a poll with these pending plans and completed instants."""
    service.clock.advance(5)  # type: ignore[attr-defined]
    now = service.clock()
    service.poll(commits=1)
    with writing(service.engine) as connection:
        found = snapshot_store.find(connection, "tbl_1")
        assert found is not None
        snapshot = dataclasses.replace(found.snapshot, pending=pending)
        snapshot_store.save(connection, Stored(snapshot))
        commits = [Commit("tbl_1", at, "commit", at, now, now, "COMPACT") for at in done]
        commit_store.record(connection, commits, now)


def a_plan(instant: str = FIRST, action: str = "compaction", state: str = "requested") -> Pending:
    return Pending(instant, action, state, None, is_plan=action != "clean")


@pytest.fixture
def service(engine: sa.Engine, clock: FakeClock) -> Service:
    service = Service(engine, clock)
    service.register()
    return service


def test_a_delegated_plan_is_executed_by_a_job_of_its_own_and_then_counts_as_done(
    service: Service, clock: FakeClock
) -> None:
    # The plan is executed even if the table's policy compacts nothing.
    policy_registry.put_table(service.engine, clock, "tbl_1", {"compaction": {"enabled": False}})
    delegate(service, request(FIRST))
    service.plan()
    on_timeline(service, a_plan())
    [job_id] = service.plan().jobs
    job = service.job(job_id)
    assert (job.kind, dict(job.params), job.state) == (JobKind.COMPACTION, {"plans": [FIRST]}, JobState.QUEUED)
    [plan] = stored(service)
    assert (plan.state, plan.job_id) == (PlanState.SUBMITTED, job_id)
    for _ in range(5):
        assert delegate(service, request(FIRST)).new == ()
        assert service.plan().jobs == ()
    service.run()
    on_timeline(service, done=(FIRST,))
    assert service.plan().jobs == ()
    [plan] = stored(service)
    assert (plan.state, plan.ended_at is not None) == (PlanState.DONE, True)
    # A late request changes nothing.
    assert delegate(service, request(FIRST)).new == ()
    service.plan()
    assert stored(service) == [plan]


def test_a_plan_that_failed_is_tried_again_and_one_that_was_rolled_back_is_not(
    service: Service, clock: FakeClock
) -> None:
    delegate(service, request(FIRST))
    on_timeline(service, a_plan())
    service.plan()
    service.run(Outcome.FAILED)
    on_timeline(service, a_plan())
    service.plan()
    [plan] = stored(service)
    assert (plan.state, "failed" in (plan.because or "")) == (PlanState.WAITING, True)
    clock.advance(3600)
    on_timeline(service)
    assert service.plan().jobs == ()
    [plan] = stored(service)
    assert (plan.state, plan.because) == (PlanState.GONE, "The plan is not on the table's timeline.")


def test_a_plan_that_would_break_the_table_is_withheld(service: Service) -> None:
    delegate(service, request(FIRST, service="cluster"))
    on_timeline(service, a_plan(action="clustering"))
    with writing(service.engine) as connection:
        found = snapshot_store.find(connection, "tbl_1")
        assert found is not None
        snapshot_store.save(connection, Stored(dataclasses.replace(found.snapshot, num_buckets=4)))
    assert service.plan().jobs == ()
    [plan] = stored(service)
    assert (plan.state, "would break the bucket index" in (plan.because or "")) == (PlanState.WITHHELD, True)
    decision = service.decision(JobKind.CLUSTERING)
    assert (decision.verdict, decision.code) == (Verdict.SKIP, "plan-unusable")


def test_the_number_of_stored_plans_is_bounded(
    service: Service, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_store, "MOST_SUGGESTIONS", 3)
    monkeypatch.setattr(plan_store, "MOST_PER_TABLE", 4)
    for number in range(6):
        clock.advance(1)
        delegate(service, request(FIRST, base_path=f"/lake/other{number}"))
    assert sorted(plan.base_path for plan in stored(service)) == ["/lake/other3", "/lake/other4", "/lake/other5"]
    many = [str(20260101000000000 + number) for number in range(6)]
    assert len(delegate(service, request(*many)).new) == 4
    assert len(delegate(service, request(*many)).new) == 0
    with writing(service.engine) as connection:
        for plan in plan_store.open_plans(connection, "tbl_1")[:3]:
            plan_store.record(connection, plan, PlanState.DONE, None, clock())
    assert len(delegate(service, request("20260102000000000", "20260102000000001")).new) == 2
    with writing(service.engine) as connection:
        assert plan_store.prune(connection, clock(), 100) >= 1
        table_store.unregister(connection, "tbl_1")
    assert {plan.table_id for plan in stored(service)} <= {None}


def test_an_answered_request_survives_kill_minus_nine(tmp_path: Path) -> None:
    with Serving(tmp_path) as serving:
        names = [str(20260101000000000 + number) for number in range(6)]
        for number in range(len(names)):
            sent = names[: number + 1]
            assert httpx.get(f"{serving.url}{PATH}", params=query(*sent)).status_code == 200
            if number == 2:
                serving.kill()
                serving.start()
        found = httpx.get(f"{serving.url}/v1/delegated-plans").json()["items"]
        assert sorted(each["instant"] for each in found) == names
