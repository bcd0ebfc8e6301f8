"""Tests the filters of lists by name, path, kinds, states and time, on both databases."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import JobKind, WorkerInfo
from service.access import audit_store
from service.access.audit_entry import AuditEntry
from service.catalog import commit_store, table_store
from service.catalog.registration import Registration
from service.db.engine import writing
from service.delivery import outbox
from service.events.event import Event
from service.incidents import store as incident_store
from service.incidents.incident import Incident, IncidentKind, IncidentState
from service.lake.commit import Commit
from service.queue import worker_store
from service.scheduling import decision_store
from service.scheduling.decision import Decision, Verdict
from tests.support.pages import members

if TYPE_CHECKING:
    import sqlalchemy as sa
    from fastapi.testclient import TestClient

    from tests.integration.control_plane.conftest import FakeClock

Q = dict[str, Any]


@pytest.fixture
def times(engine: sa.Engine, clock: FakeClock) -> list[str]:
    """Returns times at intervals of an hour. A table is registered at each time, and all other rows belong to the first
    table."""
    found = []
    for number, (name, path) in enumerate(
        [
            ("Orders_EU", "/lake/shop/orders"),
            ("orders_us", "/lake/shop"),
            ("100%", "/lake/shopping"),
            ("x", "/Lake/shop/x"),
        ]
    ):
        with writing(engine) as connection:
            table_store.register(connection, Registration(f"tbl_{number}", path, name, clock(), clock()))
        found.append(clock().isoformat())
        clock.advance(3600)
    return found


def listed(api: TestClient, path: str, member: str = "id", /, **query: Any) -> list[Any]:
    """Returns the items of all pages, with one item on a page."""
    found = members(api, path, member, **query, limit=1)
    assert found == [each[member] for each in api.get(path, params=query).json()["items"]]
    return found


def test_tables_are_filtered_by_name_path_and_time(api: TestClient, times: list[str]) -> None:
    assert listed(api, "/v1/tables", "name", name="orders*") == ["Orders_EU", "orders_us"]
    assert listed(api, "/v1/tables", "name", name="orders?us") == ["orders_us"]
    assert listed(api, "/v1/tables", "name", name="*%") == ["100%"]
    assert listed(api, "/v1/tables", "name", name="o_*") == []
    assert listed(api, "/v1/tables", "base_path", path="/lake/shop/") == ["/lake/shop/orders", "/lake/shop"]
    assert listed(api, "/v1/tables", "base_path", path="file:///lake/shop/orders") == ["/lake/shop/orders"]
    assert listed(api, "/v1/tables", since=times[1], until=times[3]) == ["tbl_1", "tbl_2"]
    assert api.get("/v1/tables", params={"name": "*a*a*a*a*a"}).status_code == 422


def test_jobs_are_filtered_by_kind_state_and_time(api: TestClient, times: list[str], clock: FakeClock) -> None:
    ids = {}
    for kind in ("audit", "compaction", "cleaning"):
        ids[kind] = api.post("/v1/tables/tbl_0/jobs", json={"kind": kind}).json()["id"]
        clock.advance(3600)
    api.post(f"/v1/jobs/{ids['audit']}/cancel")
    assert listed(api, "/v1/jobs", kind=["audit", "cleaning"]) == [ids["cleaning"], ids["audit"]]
    assert listed(api, "/v1/jobs", state=["queued", "cancelled"]) == [ids["cleaning"], ids["compaction"], ids["audit"]]
    assert listed(api, "/v1/jobs", state=["queued", "failed"], kind=["audit", "compaction"]) == [ids["compaction"]]
    created = api.get(f"/v1/jobs/{ids['compaction']}").json()["created_at"]
    assert listed(api, "/v1/jobs", since=created) == [ids["cleaning"], ids["compaction"]]
    assert listed(api, "/v1/jobs", until=created, table_id="tbl_0") == [ids["audit"]]
    assert listed(api, "/v1/jobs", until=created, table_id="tbl_1") == []


def test_commits_are_filtered_by_action_and_time(
    api: TestClient, engine: sa.Engine, times: list[str], clock: FakeClock
) -> None:
    made = [
        Commit(
            table_id=table,
            requested_time=f"2026010{number}120000000",
            action=action,
            completion_time=None,
            completed_at=clock() - timedelta(days=9 - number),
            seen_at=clock(),
            operation=None,
            rows_written=None,
            rows_deleted=None,
            bytes_written=None,
            partitions=(),
            file_groups=1,
            schema_changed=False,
            is_news=True,
        )
        for number, (table, action) in enumerate(
            [("tbl_0", "deltacommit"), ("tbl_0", "clean"), ("tbl_1", "commit"), ("tbl_1", "deltacommit")]
        )
    ]
    with writing(engine) as connection:
        # The tables are polled one after the other, so that the order of the rows differs from the order of completion.
        commit_store.record(connection, [*made[2:], *made[:2]], clock())
    moments = [each.completed_at.isoformat() for each in made]
    assert listed(api, "/v1/commits", "completed_at") == [each.replace("+00:00", "Z") for each in moments[::-1]]
    assert listed(api, "/v1/commits", "action", action=["clean", "commit"]) == ["commit", "clean"]
    assert listed(api, "/v1/commits", "action", since=moments[1], until=moments[3]) == ["commit", "clean"]
    assert listed(api, "/v1/commits", "action", until=moments[1]) == ["deltacommit"]
    assert listed(api, "/v1/commits", "action", table_id="tbl_1", until=moments[3]) == ["commit"]


def test_incidents_and_decisions_are_filtered(
    api: TestClient, engine: sa.Engine, times: list[str], clock: FakeClock
) -> None:
    kinds = [IncidentKind.STALE_WRITE, IncidentKind.LATE_FILES, IncidentKind.DAMAGE]
    start = clock()
    with writing(engine) as connection:
        for number, kind in enumerate(kinds):
            opened = start + timedelta(hours=number)
            incident_store.add(
                connection, [Incident(f"inc_{number}", "tbl_0", kind, f"{number}", IncidentState.OPEN, opened)]
            )
            decision = Decision(
                JobKind.CLEANING, list(Verdict)[number], "code", "because", first_at=opened, last_at=opened
            )
            decision_store.record(connection, "tbl_0", [decision], {})
    hour = (start + timedelta(hours=1)).isoformat()
    for path in ("/v1/incidents", "/v1/tables/tbl_0/incidents"):
        assert listed(api, path, kind=["stale-write", "damage"]) == ["inc_2", "inc_0"]
        assert listed(api, path, since=hour) == ["inc_2", "inc_1"]
        assert listed(api, path, until=hour) == ["inc_0"]
    verdicts = [each.value for each in Verdict][:3]
    path = "/v1/tables/tbl_0/decisions"
    assert listed(api, path, "verdict", verdict=[verdicts[0], verdicts[2]]) == [verdicts[2], verdicts[0]]
    assert listed(api, path, "verdict", kind=["cleaning", "audit"], until=hour) == [verdicts[0]]
    assert listed(api, path, "verdict", kind=["audit"]) == []
    now = api.get(path, params={"current": True, "verdict": verdicts[2]}).json()["items"]
    assert [each["verdict"] for each in now] == [verdicts[2]]
    assert api.get(path, params={"current": True, "until": hour}).json()["items"] == []


def test_webhooks_deliveries_and_events_are_filtered(
    api: TestClient, engine: sa.Engine, times: list[str], clock: FakeClock
) -> None:
    hooks = [
        api.post("/v1/webhooks", json={"url": "http://localhost:9/", "description": text}).json()["id"]
        for text in ("cache of EU", "audit")
    ]
    assert api.post(f"/v1/webhooks/{hooks[1]}/disable").status_code == 200
    assert listed(api, "/v1/webhooks", description="CACHE*") == hooks[:1]
    assert listed(api, "/v1/webhooks", enabled=False) == hooks[1:]
    assert listed(api, "/v1/webhooks", enabled=True, failing=False) == hooks[:1]
    assert listed(api, "/v1/webhooks", failing=True) == []
    assert listed(api, "/v1/webhooks", until=times[0]) == []
    moments = []
    for number in range(3):
        clock.advance(7200)
        moments.append(clock().isoformat())
        with writing(engine) as connection:
            event = Event(f"evt_{number}", "table.unhealthy", clock(), "tbl_0", {"table": {"name": "orders"}})
            outbox.publish(connection, [event], now=clock())
    path = f"/v1/webhooks/{hooks[0]}/deliveries"
    assert listed(api, path, "event_id", since=moments[1]) == ["evt_2", "evt_1"]
    assert listed(api, path, "event_id", until=moments[1], state=["pending", "dead"])[0] == "evt_0"
    assert listed(api, path, "event_id", state=["delivered", "dead"]) == []
    wanted: Q = {"types": "table.*", "since": moments[1]}
    events = api.get("/v1/events", params=wanted, headers={"Accept": "application/json"}).json()["items"]
    assert [each["id"] for each in events] == ["evt_1", "evt_2"]
    events = api.get(
        "/v1/events", params={"until": moments[1], "table_id": "tbl_0"}, headers={"Accept": "application/json"}
    ).json()["items"]
    assert [each["id"] for each in events] == ["evt_0"]
    assert api.get("/v1/events", params={"until": moments[1]}).json()["errors"][0]["field"] == "until"


def test_delegated_plans_are_filtered(api: TestClient, times: list[str], clock: FakeClock) -> None:
    moments, instants = [], []
    for number, path in enumerate(["/lake/shop", "/lake/unknown", "/lake/shop"]):
        clock.advance(3600)
        moments.append(clock().isoformat())
        instants.append(f"2026010{number + 1}120000000")
        # A known row is only updated.
        query = {"action": "REQUEST", "basepath": path, "instant": ",".join(instants)}
        assert api.get("/v1/hoodie/service/compact", params=query).status_code == 200
    path = "/v1/delegated-plans"
    everything = api.get(path).json()["items"]
    assert len({each["requested_at"] for each in everything}) == 3
    for bound in (*moments, clock().isoformat()):
        since = [each["id"] for each in everything if each["requested_at"] >= bound.replace("+00:00", "Z")]
        assert listed(api, path, since=bound) == since
        assert listed(api, path, until=bound) == [each["id"] for each in everything if each["id"] not in since]
    middle = listed(api, path, "base_path", since=moments[1], until=moments[2], state=["unregistered", "gone"])
    assert set(middle) == {"/lake/unknown"}
    assert listed(api, path, since=moments[1], until=moments[2], table_id="tbl_1") == []
    assert api.get(path, params={"since": "yesterday"}).status_code == 422


def test_the_audit_trail_is_filtered(api: TestClient, engine: sa.Engine, clock: FakeClock) -> None:
    made = [
        ("changeTable", "table", 200),
        ("changeTable", "table", 409),
        ("submitJob", "job", 202),
        ("putPolicy", "policy", 503),
        ("createToken", "token", None),
    ]
    for operation, kind, status in made:
        entry = AuditEntry(clock(), "ada", "PATCH", "/v1", operation, object_type=kind, object_id="1", status=status)
        with writing(engine) as connection:
            audit_store.add(connection, entry)
        clock.advance(60)

    def named(**query: Any) -> list[str]:
        return listed(api, "/v1/audit", "operation", **query)

    assert named(operation=["submitJob", "createToken"]) == ["createToken", "submitJob"]
    assert named(operation="changeTable") == ["changeTable", "changeTable"]
    assert named(object_type=["job", "policy", "none"]) == ["putPolicy", "submitJob"]
    assert named(outcome=["refused", "failed"]) == ["putPolicy", "changeTable"]
    assert named(outcome="done") == ["createToken", "submitJob", "changeTable"]
    assert named(outcome=["done", "refused", "failed"]) == [each[0] for each in made][::-1]
    assert named(outcome=["done", "failed"], object_type=["table", "policy"], who="ada") == ["putPolicy", "changeTable"]
    assert named(operation=["submitJob"], object_type=["table"]) == []
    for refused in ({"outcome": ["done", "bad"]}, {"operation": ["submitJob", ""]}, {"object_type": "a\0"}):
        assert api.get("/v1/audit", params=refused).status_code == 422, refused


def test_workers_are_filtered(api: TestClient, engine: sa.Engine, clock: FakeClock) -> None:
    start = clock().isoformat()
    for name, group in (("w1", "default"), ("w2", "etl"), ("w3", "big")):
        with writing(engine) as connection:
            worker_store.announce(connection, name, WorkerInfo(group=group), clock())
        clock.advance(60)
    later = clock().isoformat()

    def named(**query: Any) -> set[str]:
        return {each["id"] for each in api.get("/v1/workers", params=query).json()["items"]}

    assert named(group=["etl", "big"]) == {"w2", "w3"}
    assert named(state="ready") == set()
    assert named(since=start, until=later) == {"w1", "w2", "w3"}
    assert named(since=later) == set()
