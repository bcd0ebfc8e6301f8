"""Tests POST /v1/tables/bulk: one call, an outcome of each table."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from fastapi.testclient import TestClient

from service.api.app import create_app
from service.db.engine import reading, writing
from service.health import acknowledgement_store
from tests.integration.control_plane.test_problems_of_many import ill
from tests.support.contexts import context_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import sqlalchemy as sa

    from tests.integration.control_plane.conftest import FakeClock, FakeExamine

pytestmark = pytest.mark.mostly_sqlite
TABLES = ["tbl_0", "tbl_1"]


@pytest.fixture
def api(engine: sa.Engine, clock: FakeClock, examine: FakeExamine) -> Iterator[TestClient]:
    """A client of the API of a service with two tables."""
    ill(engine, clock, range(2))
    with TestClient(
        create_app(context_of(engine, examine=examine, clock=clock)), base_url="http://localhost"
    ) as client:
        yield client


def change(api: TestClient, action: str, tables: list[str] = TABLES, **more: Any) -> Any:
    answer = api.post("/v1/tables/bulk", json={"action": action, "tables": tables, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def outcomes(answer: Any) -> list[str]:
    return [each["outcome"] for each in answer["items"]]


def test_tables_are_paused_and_resumed_even_if_a_pattern_pauses_them(api: TestClient) -> None:
    api.put("/v1/policies/t1", json={"paused": True}).raise_for_status()
    api.put("/v1/tables/tbl_0/policy", json={"compaction": {"commits": 9}}).raise_for_status()
    assert outcomes(change(api, "pause")) == ["done", "unchanged"]
    assert outcomes(change(api, "resume", [*TABLES, "tbl_0"])) == ["done", "done"]
    policies = [api.get(f"/v1/tables/{each}/policy").json()["policy"] for each in TABLES]
    assert [each["paused"] for each in policies] == [False, False]
    assert policies[0]["compaction"]["commits"] == 9
    assert outcomes(change(api, "resume")) == ["unchanged", "unchanged"]


def test_if_one_table_is_refused_the_others_still_get_their_jobs(api: TestClient) -> None:
    answer = change(api, "run", ["tbl_0", "none", "tbl_1"], job={"kind": "compaction"})
    assert (answer["done"], answer["unchanged"], answer["refused"]) == (2, 0, 1)
    first, none, second = answer["items"]
    assert (none["outcome"], none["table_name"], none["problem"]["type"]) == (
        "refused",
        None,
        "/problems/table-not-found",
    )
    for item, name in ((first, "t0"), (second, "t1")):
        job = api.get(f"/v1/jobs/{item['job_id']}").json()
        assert (job["kind"], job["table_id"], job["table_name"]) == ("compaction", item["table_id"], name)
    again = change(api, "run", job={"kind": "compaction"})
    assert [each["problem"]["type"] for each in again["items"]] == ["/problems/job-conflict"] * 2


def test_acknowledged_problems_come_last_until_the_acknowledgement_ends(
    api: TestClient, engine: sa.Engine, clock: FakeClock
) -> None:
    assert outcomes(change(api, "acknowledge", ["tbl_0"])) == ["done"]
    groups = api.get("/v1/overview").json()["problems"]["groups"]
    assert {(each["acknowledged"], each["problems"]) for each in groups if each["objects"] == 2} == {(1, 2)}
    assert outcomes(change(api, "acknowledge")) == ["unchanged", "done"]
    [known, *_] = api.get("/v1/problems", params={"table_id": "tbl_0"}).json()["items"]
    assert known["acknowledged"]["by"] == "anybody"
    overview = api.get("/v1/overview").json()
    groups = overview["problems"]["groups"]
    assert groups[-1]["acknowledged"] == groups[-1]["problems"] > 0
    assert all(each["is_acknowledged"] for row in overview["tables"]["items"] for each in row["problems"])
    assert outcomes(change(api, "unacknowledge", ["tbl_1"])) == ["done"]
    with reading(engine) as connection:
        assert acknowledgement_store.every(connection, clock())
    clock.advance(timedelta(hours=1).total_seconds())
    with writing(engine) as connection:
        # The call works although no round has stored these problems.
        acknowledgement_store.forget_ended(connection, clock())
        assert acknowledgement_store.every(connection, clock()) == {}


def test_settings_are_set_and_unset_in_the_policy_of_each_table(api: TestClient) -> None:
    api.put("/v1/tables/tbl_0/policy", json={"compaction": {"seconds": 60}, "priority": 3}).raise_for_status()
    wanted = {"compaction": {"commits": 9}, "windows": [{"start": "22:00", "end": "04:30"}]}
    answer = change(api, "policy", ["tbl_0", "none", "tbl_1"], policy=wanted, unset=["priority"])
    assert outcomes(answer) == ["done", "refused", "done"]
    first, second = (api.get(f"/v1/tables/{each}/policy").json() for each in TABLES)
    own = {name for name, source in first["sources"].items() if source == "table"}
    assert own == {"compaction.commits", "compaction.seconds", "windows"}
    assert (first["policy"]["compaction"]["seconds"], second["policy"]["compaction"]["commits"]) == (60, 9)
    assert outcomes(change(api, "policy", policy=wanted)) == ["unchanged", "unchanged"]
    assert outcomes(change(api, "policy", unset=["compaction", "windows"])) == ["done", "done"]
    assert set(api.get("/v1/tables/tbl_0/policy").json()["sources"].values()) == {"default"}
    entries = api.get("/v1/audit", params={"operation": "changeTables"}).json()["items"]
    of_tables = [each for each in entries if each["object_type"] == "table-policy"]
    assert {each["object_id"] for each in of_tables} == set(TABLES)
    assert (of_tables[0]["before"], of_tables[0]["after"]) == (wanted, None)


def test_owner_and_tags_are_declared_of_each_table(api: TestClient) -> None:
    answer = change(api, "label", owner="shop", tags={"team": "shop", "tier": "gold"})
    assert outcomes(answer) == ["done", "done"]
    assert outcomes(change(api, "label", tags={"tier": "iron"}, remove_tags=["team"])) == ["done", "done"]
    tables = [api.get(f"/v1/tables/{each}").json() for each in TABLES]
    assert [(each["owner"], each["tags"]) for each in tables] == [("shop", {"tier": "iron"})] * 2
    assert outcomes(change(api, "label", owner="shop", remove_tags=["team"])) == ["unchanged", "unchanged"]
    assert outcomes(change(api, "label", ["tbl_1"], owner=None)) == ["done"]
    assert api.get("/v1/tables/tbl_1").json()["owner"] is None
    [refused] = change(api, "label", ["tbl_1"], tags={f"t{number}": "" for number in range(32)})["items"]
    assert refused["problem"]["type"] == "/problems/params-invalid"


def test_one_problem_is_acknowledged_for_a_time_with_a_reason(api: TestClient, clock: FakeClock) -> None:
    [first, second, *_] = api.get("/v1/problems", params={"table_id": "tbl_0"}).json()["items"]
    path = f"/v1/problems/{first['id']}/acknowledgement"
    until = (clock() + timedelta(hours=8)).isoformat()
    answer = api.put(path, json={"until": until, "reason": "the storage is being moved"})
    assert answer.status_code == 200, answer.text

    def known() -> dict[str, Any]:
        found = api.get("/v1/problems", params={"table_id": "tbl_0"}).json()["items"]
        return {each["id"]: each["acknowledged"] for each in found if each["acknowledged"]}

    assert known() == {first["id"]: answer.json()}
    assert (answer.json()["by"], answer.json()["reason"]) == ("anybody", "the storage is being moved")
    # An acknowledgement of the whole table leaves that of the first problem as it is.
    assert outcomes(change(api, "acknowledge", ["tbl_0"], reason="all of it")) == ["done"]
    assert known()[first["id"]] == answer.json()
    assert known()[second["id"]]["reason"] == "all of it"
    clock.advance(timedelta(hours=8).total_seconds())
    assert first["id"] not in known()
    assert outcomes(change(api, "acknowledge", ["tbl_0"])) == ["done"]
    for _ in range(2):
        assert api.delete(path, headers={"content-type": "application/json"}).status_code == 204
    assert first["id"] not in known()
    gone = api.put("/v1/problems/prb_none/acknowledgement", json={})
    assert (gone.status_code, gone.json()["type"]) == (404, "/problems/problem-not-standing")


@pytest.mark.parametrize(
    "body",
    [
        {"action": "pause", "tables": []},
        {"action": "pause", "tables": ["t"] * 501},
        {"action": "drop", "tables": TABLES},
        {"action": "run", "tables": TABLES},
        {"action": "policy", "tables": TABLES},
        {"action": "policy", "tables": TABLES, "policy": {"compaction": {"commits": 0}}},
        {"action": "label", "tables": TABLES},
        {"action": "label", "tables": TABLES, "tags": {"a b": ""}},
        {"action": "run", "tables": TABLES, "job": {"kind": "compaction", "params": {"nope": 1}}},
    ],
)
def test_an_invalid_call_is_refused_as_a_whole(api: TestClient, body: Any) -> None:
    answer = api.post("/v1/tables/bulk", json=body)
    assert (answer.status_code, answer.json()["type"]) == (422, "/problems/params-invalid")


def test_related_problems_form_one_group_and_each_row_names_the_next_step(api: TestClient) -> None:
    overview = api.get("/v1/overview").json()
    groups = {each["kinds"][0]: each for each in overview["problems"]["groups"]}
    assert (groups["compaction-behind"]["objects"], sorted(groups["compaction-behind"]["names"])) == (2, ["t0", "t1"])
    assert sum(each["problems"] for each in groups.values()) == sum(overview["problems"]["counts"].values())
    for row in overview["tables"]["items"]:
        assert (row["next_job"]["kind"], row["next_job"]["state"]) == ("cleaning", "queued")
        assert row["log_ratio"] > 0
