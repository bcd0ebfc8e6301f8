"""Tests policies, pauses and decisions over REST."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from service.access.token import Role
from service.db.engine import writing
from service.events.database import Database
from service.lake.snapshot import PartitionState, Since, TableSnapshot
from service.lake.table import TableType
from service.policies.policy import Policy
from service.scheduling import scheduler
from tests.integration.control_plane.planning import save_poll
from tests.support.pages import pages

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastapi.testclient import TestClient

    from service.api.dependencies import AppContext
    from tests.integration.control_plane.conftest import FakeClock


pytestmark = pytest.mark.mostly_sqlite


def refused(client: TestClient, path: str, body: object) -> list[dict[str, str]]:
    answer = client.put(path, json=body)
    assert answer.status_code == 422, answer.text
    assert answer.json()["type"] == "/problems/params-invalid"
    errors: list[dict[str, str]] = answer.json()["errors"]
    return errors


def test_the_policy_of_a_pattern_is_set_shown_replaced_and_deleted(client: TestClient, clock: FakeClock) -> None:
    body = {"precedence": 2, "priority": 5, "compaction": {"commits": 9, "log_ratio": None}}
    answer = client.put("/v1/policies/orders_*", json=body)
    assert answer.status_code == 201
    created = answer.json()
    assert (created["pattern"], created["precedence"]) == ("orders_*", 2)
    assert created["settings"] == {"priority": 5, "compaction": {"commits": 9, "log_ratio": None}}
    assert client.get("/v1/policies/orders_*").json() == created
    clock.advance(60)
    answer = client.put("/v1/policies/orders_*", json={"paused": True})
    assert answer.status_code == 200
    replaced = answer.json()
    assert (replaced["settings"], replaced["precedence"]) == ({"paused": True}, 0)
    assert replaced["created_at"] == created["created_at"] < replaced["updated_at"]
    assert client.get("/v1/policies").json() == {"items": [{**replaced, "tables": 0, "table_names": []}]}
    assert client.delete("/v1/policies/orders_*").status_code == 204
    assert client.get("/v1/policies").json() == {"items": []}


def test_a_pattern_may_have_slashes_and_question_marks(client: TestClient) -> None:
    assert client.put("/v1/policies/eu/orders_%3F", json={}).status_code == 201
    assert [each["pattern"] for each in client.get("/v1/policies").json()["items"]] == ["eu/orders_?"]


def test_partitions_are_stored_as_they_were_sent(client: TestClient, table_id: str) -> None:
    sent = {"enabled": True, "days_retain": 90, "partitions": ["dt=1", {"prefix": "dt=2"}]}
    found = client.put(f"/v1/tables/{table_id}/policy", json={"partition_ttl": sent}).json()
    assert {name: found["policy"]["partition_ttl"][name] for name in sent} == sent
    assert found["policy"]["partition_ttl"]["strategy"] == "KEEP_BY_TIME"
    assert client.get(f"/v1/tables/{table_id}/policy").json() == found


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_policy_that_is_not_there_is_a_problem(client: TestClient, table_id: str, method: str) -> None:
    answer = client.request(method, "/v1/policies/none")
    assert (answer.status_code, answer.json()["type"]) == (404, "/problems/policy-not-found")
    answer = client.delete(f"/v1/tables/{table_id}/policy")
    assert (answer.status_code, answer.json()["type"]) == (404, "/problems/policy-not-found")
    answer = client.get("/v1/tables/tbl_none/policy")
    assert (answer.status_code, answer.json()["type"]) == (404, "/problems/table-not-found")
    assert client.put("/v1/tables/tbl_none/policy", json={}).status_code == 404


def test_the_policy_that_counts_for_a_table_says_where_each_value_comes_from(client: TestClient, table_id: str) -> None:
    client.put("/v1/policies/ord*", json={"compaction": {"commits": 9, "seconds": 60}})
    answer = client.put(f"/v1/tables/{table_id}/policy", json={"compaction": {"commits": 2}, "windows": []})
    found = answer.json()
    assert found == client.get(f"/v1/tables/{table_id}/policy").json()
    assert (found["policy"]["compaction"]["commits"], found["sources"]["compaction.commits"]) == (2, "table")
    assert (found["policy"]["compaction"]["seconds"], found["sources"]["compaction.seconds"]) == (60, "pattern ord*")
    assert (found["policy"]["cleaning"]["retain"], found["sources"]["cleaning.retain"]) == (10, "default")
    assert client.delete(f"/v1/tables/{table_id}/policy").status_code == 204
    found = client.get(f"/v1/tables/{table_id}/policy").json()
    assert (found["policy"]["compaction"]["commits"], found["sources"]["compaction.commits"]) == (9, "pattern ord*")


def test_a_policy_applies_to_the_tables_with_a_tag_as_soon_as_they_have_it(client: TestClient, table_id: str) -> None:
    client.put("/v1/policies/tag:team=shop", json={"compaction": {"commits": 9}})

    def source() -> Any:
        return client.get(f"/v1/tables/{table_id}/policy").json()["sources"]["compaction.commits"]

    assert source() == "default"
    client.patch(f"/v1/tables/{table_id}", json={"tags": {"team": "shop"}})
    assert source() == "pattern tag:team=shop"
    client.put("/v1/policies/owner:ada", json={"compaction": {"commits": 9}, "precedence": 1})
    client.patch(f"/v1/tables/{table_id}", json={"owner": "ada"})
    assert source() == "pattern owner:ada"


def test_every_setting_can_be_set_and_is_shown(client: TestClient, table_id: str) -> None:
    everything = Policy().to_json()
    everything["windows"] = [{"start": "22:00", "end": "04:30", "days": ["sat", "sun"]}]
    everything["clustering"].update(enabled=True, sort_by=["city"], cron="0 3 * * 6")
    everything["bucket_expansion"].update(mode="auto", codec="zstd")
    answer = client.put(f"/v1/tables/{table_id}/policy", json=everything)
    assert answer.status_code == 200, answer.text
    assert answer.json()["policy"] == everything
    assert set(answer.json()["sources"].values()) == {"table"}


@pytest.mark.parametrize(
    ("body", "field", "message"),
    [
        ({"compaction": {"commits": 0}}, "compaction.commits", "greater than or equal to 1"),
        ({"compaction": {"commits": None}}, "compaction.commits", "must be a whole number"),
        ({"compaction": {"moons": 1}}, "compaction.moons", "not known"),
        ({"compactions": {}}, "compactions", "not known"),
        ({"compaction": {"cron": "0 0 30 2 *"}}, "compaction.cron", "wrong day of month"),
        ({"cleaning": {"cron": "often"}}, "cleaning.cron", "must have the five fields of cron"),
        ({"cleaning": {"policy": "KEEP_ALL"}}, "cleaning.policy", "KEEP_LATEST_COMMITS"),
        ({"clustering": {"sort_by": []}}, "clustering.sort_by", "at least 1"),
        ({"clustering": {"sort_by": ["a", "a"]}}, "clustering.sort_by", "twice"),
        ({"clustering": {"small_file_share": 2}}, "clustering.small_file_share", "less than or equal to 1"),
        ({"bucket_expansion": {"mode": "always"}}, "bucket_expansion.mode", "'auto'"),
        ({"time_zone": "Mars/Olympus"}, "time_zone", "IANA"),
        ({"time_zone": "../../etc/passwd"}, "time_zone", "IANA"),
        ({"windows": [{"start": "22:00"}]}, "windows[0].end", "is missing"),
        ({"windows": [{"start": "24:00", "end": "4:00"}]}, "windows[0].start", "must be a time of day"),
        ({"windows": [{"start": "22:00", "end": "04:00", "days": ["today"]}]}, "windows[0].days[0]", "'mon'"),
        ({"priority": 101}, "priority", "less than or equal to 100"),
        ({"timeout_seconds": 0}, "timeout_seconds", "greater than or equal to 1"),
        ({"compaction": {"limit_bytes": 0}}, "compaction.limit_bytes", "greater than or equal to 1"),
        ({"partition_ttl": {"days_retain": 0}}, "partition_ttl.days_retain", "greater than or equal to 1"),
        ({"partition_ttl": {"partitions": [{"prefix": ""}]}}, "partition_ttl.partitions[0].prefix", "at least 1"),
        ({"precedence": 1}, "precedence", "not known"),
        ([], "", "must be an object"),
    ],
)
def test_an_invalid_value_is_refused_with_its_field(
    client: TestClient, table_id: str, body: object, field: str, message: str
) -> None:
    first = refused(client, f"/v1/tables/{table_id}/policy", body)[0]
    assert first["field"] == field
    assert message in first["message"]


def test_all_upkeep_is_paused_and_resumed(client: TestClient, clock: FakeClock) -> None:
    assert client.get("/v1/pause").json()["paused"] is False
    first = client.put("/v1/pause", json={"reason": "the storage is being moved"}).json()
    assert first == {
        "paused": True,
        "since": "2026-01-01T00:00:00Z",
        "by": "anybody",
        "reason": "the storage is being moved",
    }
    clock.advance(60)
    assert client.put("/v1/pause").json() == first
    assert client.get("/v1/pause").json() == first
    for _ in range(2):
        assert client.delete("/v1/pause").status_code == 204
    assert client.get("/v1/pause").json()["paused"] is False


@pytest.mark.parametrize(
    ("method", "path", "needed"),
    [
        ("GET", "/v1/policies", Role.READER),
        ("GET", "/v1/policies/none", Role.READER),
        ("PUT", "/v1/policies/none", Role.OPERATOR),
        ("DELETE", "/v1/policies/none", Role.OPERATOR),
        ("GET", "/v1/tables/tbl_1/policy", Role.READER),
        ("PUT", "/v1/tables/tbl_1/policy", Role.OPERATOR),
        ("DELETE", "/v1/tables/tbl_1/policy", Role.OPERATOR),
        ("GET", "/v1/tables/tbl_1/decisions", Role.READER),
        ("POST", "/v1/tables/tbl_1/evaluate", Role.READER),
        ("GET", "/v1/pause", Role.READER),
        ("PUT", "/v1/pause", Role.OPERATOR),
        ("DELETE", "/v1/pause", Role.OPERATOR),
        ("GET", "/v1/workers", Role.READER),
    ],
)
def test_each_call_needs_its_role(
    client: TestClient, make_token: Callable[[Role], dict[str, str]], method: str, path: str, needed: Role
) -> None:
    for role in Role:
        status = client.request(method, path, headers=make_token(role), json={}).status_code
        assert (status == 403) is not role.covers(needed), role
    assert client.request(method, path).status_code == 401


@pytest.fixture
def look(app_context: AppContext, table_id: str, clock: FakeClock) -> Callable[[int], None]:
    """Records a poll after this number of commits, and decides about the table."""

    def decide(commits: int) -> None:
        state = PartitionState("", base_bytes=1000, log_bytes=100)
        seen = TableSnapshot(table_id, clock(), TableType.MERGE_ON_READ, (state,), since_compaction=Since(commits))
        with writing(app_context.database.engine) as connection:
            save_poll(connection, seen)
        scheduler.run_once(
            Database(
                app_context.database.engine, clock, app_context.database.notifier, cipher=app_context.database.cipher
            ),
            app_context.queue.planning,
        )

    return decide


def test_nothing_is_decided_before_the_first_poll(client: TestClient, table_id: str) -> None:
    answer = client.post(f"/v1/tables/{table_id}/evaluate")
    assert answer.json() == {"looked_at": None, "decisions": []}
    assert client.get(f"/v1/tables/{table_id}/decisions").json() == {"items": [], "next_cursor": None}
    assert client.post("/v1/tables/tbl_none/evaluate").status_code == 404
    assert client.get("/v1/tables/tbl_none/decisions").status_code == 404


def test_a_preview_shows_what_an_edit_would_change_and_start_and_stores_nothing(
    client: TestClient, table_id: str, look: Callable[[int], None]
) -> None:
    look(3)
    client.put("/v1/policies/ord*", json={"compaction": {"commits": 9}, "priority": 1})
    client.put("/v1/policies/clicks", json={"priority": 2})
    listed = client.get("/v1/policies").json()["items"]
    assert [(each["pattern"], each["tables"], each["table_names"]) for each in listed] == [
        ("clicks", 0, []),
        ("ord*", 1, ["orders"]),
    ]
    edit = {"pattern": "ord*", "policy": {"compaction": {"commits": 2}, "priority": 1}}
    answer = client.post("/v1/policy-preview", json=edit)
    assert answer.status_code == 200, answer.text
    (table,) = answer.json()["items"]
    assert (answer.json()["tables"], table["id"], table["name"]) == (1, table_id, "orders")
    assert table["settings"] == [{"setting": "compaction.commits", "before": 9, "after": 2, "source": "pattern ord*"}]
    assert [each["kind"] for each in table["starts"]] == ["compaction"]
    assert client.get("/v1/policies/ord*").json()["settings"]["compaction"] == {"commits": 9}
    assert client.post("/v1/policy-preview", json={**edit, "pattern": "clicks*"}).json() == {"tables": 0, "items": []}
    (table,) = client.post("/v1/policy-preview", json={"pattern": "ord*", "policy": None}).json()["items"]
    assert {each["setting"]: each["source"] for each in table["settings"]} == {
        "compaction.commits": "default",
        "priority": "default",
    }
    answer = client.post("/v1/policy-preview", json={"pattern": "none", "policy": None})
    assert answer.json()["type"] == "/problems/policy-not-found"


def test_decisions_are_listed_with_their_job_and_collapsed(
    client: TestClient, table_id: str, look: Callable[[int], None], clock: FakeClock
) -> None:
    for commits in (1, 2, 5):
        look(commits)
        clock.advance(60)
    path = f"/v1/tables/{table_id}/decisions"
    started, skipped = client.get(path, params={"kind": "compaction"}).json()["items"]
    assert (started["verdict"], started["code"], started["count"]) == ("run", "due", 1)
    assert (skipped["verdict"], skipped["because"]) == ("skip", "2 commits and no compaction yet, threshold 5")
    assert (skipped["count"], skipped["first_at"], skipped["last_at"]) == (
        2,
        "2026-01-01T00:00:00Z",
        "2026-01-01T00:01:00Z",
    )
    job = client.get(f"/v1/jobs/{started['job_id']}").json()
    assert (job["reason"], job["requested_by"], job["priority"]) == (started["because"], "policy", 0)
    current = client.get(path, params={"current": True}).json()["items"]
    assert [each["kind"] for each in current] == [
        "repair",
        "rollback",
        "compaction",
        "bucket_expansion",
        "bucket_resize",
        "bucket_contraction",
        "clustering",
        "partition_ttl",
        "cleaning",
        "archival",
        "metadata_table",
        "sync",
        "diagnosis",
        "audit",
    ]
    assert current[2] == started
    # The pages together have each row once.
    seen = [each for page in pages(client, path, limit=2) for each in page["items"]]
    assert seen == client.get(path).json()["items"]
    assert len(seen) == len(current) + 1


def test_an_evaluation_shows_what_another_policy_would_do(
    client: TestClient, table_id: str, look: Callable[[int], None], clock: FakeClock
) -> None:
    look(2)
    path = f"/v1/tables/{table_id}/evaluate"
    assert client.post(path).json()["decisions"][2]["verdict"] == "skip"
    client.put(f"/v1/tables/{table_id}/policy", json={"compaction": {"commits": 2}})
    first = client.post(path).json()
    assert first["looked_at"] == "2026-01-01T00:00:00Z"
    assert (first["decisions"][2]["verdict"], first["decisions"][2]["job_id"]) == ("run", None)
    assert client.get("/v1/jobs").json()["items"] == []


@pytest.mark.parametrize("cursor", ["nonsense", "WyIyMDI2LTAxLTAxVDAwOjAwOjAwKzAwOjAwIiwiam9iXzEiXQ"])
def test_a_cursor_of_something_else_is_refused(client: TestClient, table_id: str, cursor: str) -> None:
    answer = client.get(f"/v1/tables/{table_id}/decisions", params={"cursor": cursor})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "cursor")


def test_a_job_that_somebody_asked_for_says_who(
    client: TestClient, table_id: str, make_token: Callable[[Role], dict[str, str]]
) -> None:
    headers = make_token(Role.OPERATOR)
    body: dict[str, Any] = {"kind": "audit", "priority": 9}
    job = client.post(f"/v1/tables/{table_id}/jobs", json=body, headers=headers).json()
    assert (job["reason"], job["priority"]) == (None, 9)
    assert job["requested_by"].startswith("a operator (")
