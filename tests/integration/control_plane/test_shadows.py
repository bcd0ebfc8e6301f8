"""Tests shadows of policies, which decide beside the real ones and start nothing."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

from service.catalog import commit_store
from service.db.engine import reading, writing
from service.lake.commit import Commit
from service.lake.snapshot import PartitionState, TableSnapshot
from service.lake.table import TableType
from service.model.clock import utc_now
from service.policies import policy_registry
from tests.integration.control_plane.command_line import serving_command_line
from tests.integration.control_plane.planning import save_poll

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    import sqlalchemy as sa
    from fastapi.testclient import TestClient

    from tests.integration.control_plane.conftest import FakeClock

MIB = 1024**2


def commits(connection: sa.Connection, table_id: str, since: datetime, number: int) -> None:
    """Records a commit every five minutes, and a poll."""
    found = []
    for each in range(1, number + 1):
        at = since + timedelta(minutes=5 * each)
        found.append(
            Commit(table_id, f"{at:%Y%m%d%H%M%S}000", "deltacommit", None, at, at, "UPSERT", 9, 0, MIB, file_groups=4)
        )
    commit_store.record(connection, found, since)
    files = PartitionState("", base_files=8, base_bytes=99 * MIB, log_bytes=MIB)
    save_poll(connection, TableSnapshot(table_id, since, TableType.MERGE_ON_READ, (files,), last_commit_at=since))


def test_a_shadow_decides_since_its_start_and_changes_nothing(
    client: TestClient, table_id: str, sqlite: sa.Engine, clock: FakeClock
) -> None:
    with reading(sqlite) as connection:
        before = policy_registry.effective_of_all(connection, [])[table_id]
    answer = client.put("/v1/policy-shadows/*", json={"compaction": {"commits": 20}, "precedence": 3})
    assert answer.status_code == 201, answer.text
    with writing(sqlite) as connection:
        commits(connection, table_id, clock() - timedelta(hours=5), 59)
        commits(connection, table_id, clock(), 100)
    clock.advance(100 * 300 + 60)
    found = client.get("/v1/policy-shadows/*")
    assert found.status_code == 200, found.text
    answer = found.json()
    assert not answer["is_enough"]
    assert answer["shadow"]["settings"] == {"compaction": {"commits": 20}}
    compared = answer["comparison"]
    # The commits before the start of the shadow do not count.
    assert compared["commits"] == 100
    jobs = {
        side: next(each["jobs"] for each in compared[side]["kinds"] if each["kind"] == "compaction")
        for side in ("now", "new")
    }
    assert jobs["now"] > 3 * jobs["new"] > 0
    assert compared["now"]["kept"] is None
    with reading(sqlite) as connection:
        assert policy_registry.effective_of_all(connection, [])[table_id] == before
    assert client.get("/v1/policies").json()["items"] == []
    # A later change of the shadow starts it anew, and only if it is what the caller has seen.
    stale = client.put("/v1/policy-shadows/*", json={"paused": True}, headers={"If-Match": '"0"'})
    assert stale.status_code == 412
    seen = {"If-Match": found.headers["ETag"]}
    assert client.put("/v1/policy-shadows/*", json={"paused": True}, headers=seen).status_code == 200
    assert client.get("/v1/policy-shadows/*").json()["comparison"]["commits"] == 0
    assert [each["pattern"] for each in client.get("/v1/policy-shadows").json()["items"]] == ["*"]
    assert client.delete("/v1/policy-shadows/*").status_code == 204
    missing = client.get("/v1/policy-shadows/*")
    assert (missing.status_code, missing.json()["type"]) == (404, "/problems/shadow-not-found")


def test_shadows_are_bounded_and_survive_a_clock_that_steps_back(client: TestClient, clock: FakeClock) -> None:
    for number in range(100):
        assert client.put(f"/v1/policy-shadows/t{number}", json={"paused": True}).status_code == 201
    refused = client.put("/v1/policy-shadows/more", json={"paused": True})
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/too-many-shadows")
    assert client.put("/v1/policy-shadows/t0", json={"nope": True}).status_code == 422
    clock.advance(-86_400)
    assert client.get("/v1/policy-shadows/t0").json()["comparison"]["tables"] == 0


def test_the_command_line_starts_compares_and_adopts_a_shadow(tmp_path: Path) -> None:
    with serving_command_line(tmp_path) as cli:
        table_id = cli.polled_table("orders")
        assert "No policy has a shadow" in cli.run("policy", "shadow").stderr
        assert "starts nothing" in cli.run("policy", "shadow", "orders*", "compaction.commits=20").stdout
        assert "compaction.commits 20" in cli.run("policy", "shadow").stdout
        with writing(cli.serving.engine) as connection:
            commits(connection, table_id, utc_now(), 1)
        shown = cli.run("policy", "shadow", "orders*")
        assert "has had a shadow since" in shown.stdout
        assert "A week tells more" in shown.stderr + shown.stdout
        assert "either settings" in cli.run("policy", "shadow", "orders*", "paused=true", "--stop", code=2).stderr
        cli.run("policy", "shadow", "orders*", "--adopt")
        assert json.loads(cli.run("policy", "show", "orders*", "--pattern", "--json").stdout)["settings"] == {
            "compaction": {"commits": 20}
        }
        assert cli.json("policy", "shadow")["items"] == []
        cli.run("policy", "shadow", "orders*", "paused=true")
        assert "has ended" in cli.run("policy", "shadow", "orders*", "--stop").stdout
