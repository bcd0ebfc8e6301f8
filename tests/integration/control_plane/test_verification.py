"""The service accepts a reported success unless the table's timeline contradicts it."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import BucketIndex, Outcome, Result
from service.api import worker as worker_api
from service.catalog import table_store
from service.catalog.registration import Registration
from service.db.engine import reading, writing
from service.delivery import outbox
from tests.integration.control_plane.protocol_worker import Worker
from tests.integration.control_plane.watching import A, Watched
from tests.support.small_table import SmallTable, base_file, log_file

if TYPE_CHECKING:
    from pathlib import Path

    import sqlalchemy as sa
    from fastapi.testclient import TestClient

    from tests.integration.control_plane.conftest import FakeClock


class Reported:
    """A compaction of a real table whose worker reports success."""

    def __init__(self, client: TestClient, engine: sa.Engine, table: SmallTable, **job: Any) -> None:
        self._client = client
        self._engine = engine
        self.table = table
        answer = client.post("/v1/tables/tbl_trips/jobs", json={"kind": "compaction", **job})
        assert answer.status_code == 202, answer.text
        self.id = answer.json()["id"]
        self._worker = Worker(client)
        self._order = self._worker.must_lease()

    def report(self, *instants: str) -> str:
        answer = self._worker.report(self._order, Result(Outcome.SUCCEEDED, instants))
        assert answer.status_code == 200
        return str(answer.json()["state"])

    @property
    def job(self) -> dict[str, Any]:
        job: dict[str, Any] = self._client.get(f"/v1/jobs/{self.id}").json()
        return job

    @property
    def ended(self) -> list[str]:
        with reading(self._engine) as connection:
            events = [published.event.type for published in outbox.after(connection, 0, 1000)]
        return [each for each in events if each in ("job.succeeded", "job.failed")]


@pytest.fixture
def trips(sqlite: sa.Engine, clock: FakeClock, tmp_path: Path) -> SmallTable:
    """A table with one instant, the upsert 005."""
    table = SmallTable(tmp_path / "trips")
    table.commit("005", {"p": {log_file(A, "005"): 10}})
    now = clock()
    found = Registration("tbl_trips", str(table.base), "trips", now, now, index=BucketIndex(4, ("id",)))
    with writing(sqlite) as connection:
        table_store.register(connection, found)
    return table


@pytest.fixture
def reported(client: TestClient, sqlite: sa.Engine, trips: SmallTable) -> Reported:
    return Reported(client, sqlite, trips)


def compact(table: SmallTable, instant: str) -> None:
    table.commit(instant, {"p": {base_file(A, instant): 10}}, action="commit", operation="COMPACT")


def test_a_job_succeeds_if_all_its_instants_have_completed_or_are_archived(reported: Reported) -> None:
    compact(reported.table, "007")
    assert reported.report("003", "007") == "succeeded"


@pytest.mark.parametrize("state", ["absent", "requested", "inflight"])
def test_a_job_whose_instant_has_not_completed_is_unknown_and_then_failed(
    reported: Reported, sqlite: sa.Engine, clock: FakeClock, state: str
) -> None:
    watched = Watched(sqlite, clock)
    watched.poll()
    compact(reported.table, "007")
    if state == "requested":
        reported.table.schedule("009", "compaction")
    elif state == "inflight":
        reported.table.begin("009", "compaction")
    assert reported.report("007", "009") == "unknown"
    assert reported.ended == []

    watched.poll(1)

    job = reported.job
    assert (job["state"], job["error"]["type"]) == ("failed", "/problems/instant-not-completed")
    assert "009" in job["error"]["detail"]
    assert reported.ended == ["job.failed"]


def test_a_job_whose_instant_completes_before_the_next_poll_has_succeeded(
    reported: Reported, sqlite: sa.Engine, clock: FakeClock
) -> None:
    assert reported.report("007") == "unknown"
    compact(reported.table, "007")
    Watched(sqlite, clock).poll(1)
    assert (reported.job["state"], reported.job["error"]) == ("succeeded", None)
    assert reported.ended == ["job.succeeded"]


def test_a_table_that_cannot_be_read_contradicts_nothing(reported: Reported) -> None:
    shutil.rmtree(reported.table.base)
    assert reported.report("007") == "succeeded"


def test_a_storage_that_hangs_keeps_the_worker_waiting_for_a_moment_only(
    reported: Reported, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_api, "_VERIFICATION_SECONDS", 0.2)
    properties = reported.table.base / ".hoodie" / "hoodie.properties"
    properties.unlink()
    # Reading a pipe without a writer hangs, as a dead file server does.
    os.mkfifo(properties)
    try:
        assert reported.report("007") == "succeeded"
    finally:
        os.close(os.open(properties, os.O_RDWR))


def test_a_job_without_instants_and_a_dry_run_have_nothing_to_show(
    client: TestClient, sqlite: sa.Engine, trips: SmallTable
) -> None:
    assert Reported(client, sqlite, trips).report() == "succeeded"
    assert Reported(client, sqlite, trips, dry_run=True).report("007") == "succeeded"


@pytest.mark.parametrize(("archived", "state"), [("003", "succeeded"), ("005", "failed")])
def test_an_archival_succeeds_if_what_it_archived_has_left_the_timeline(
    client: TestClient, sqlite: sa.Engine, clock: FakeClock, trips: SmallTable, archived: str, state: str
) -> None:
    answer = client.post("/v1/tables/tbl_trips/jobs", json={"kind": "archival"})
    worker = Worker(client)
    result = Result(Outcome.SUCCEEDED, details={"last_archived": archived})
    assert worker.report(worker.must_lease(), result).json()["state"] == state
    Watched(sqlite, clock).poll()
    job = client.get(f"/v1/jobs/{answer.json()['id']}").json()
    assert job["state"] == state
    assert (job["error"] or {}).get("type") == (None if state == "succeeded" else "/problems/instant-not-archived")
