"""Tests the expected cost of jobs on both databases: learned from reports of workers, shown before the next job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from jobs.contract import Outcome, Result
from service.db import schema
from service.db.engine import reading
from service.queue import outlook_store
from service.queue.circumstances import Circumstances
from service.queue.cost_store import Lessons
from tests.integration.control_plane.command_line import serving_command_line
from tests.integration.control_plane.protocol_worker import Worker
from tests.integration.control_plane.test_report import api as api
from tests.integration.control_plane.test_report import register, run

if TYPE_CHECKING:
    from pathlib import Path

    from fastapi.testclient import TestClient

    from tests.integration.control_plane.conftest import FakeClock

GIB = 2**30


def _plan(gib: float, files: int = 8) -> dict[str, Any]:
    size = int(gib * GIB)
    return {"bytes": size, "files": files, "file_groups": 4, "nothing_to_do": False, "refusals": []}


def _merged(gib: float, files: int = 8) -> dict[str, Any]:
    size = int(gib * GIB)
    written = {"bytes_written": int(0.8 * size), "cpu_seconds": 30 * gib}
    return {"bytes": size, "files": files, "file_groups": 4, "log_files": 4, **written}


def test_a_dry_run_says_what_its_job_would_cost(api: TestClient, clock: FakeClock) -> None:
    orders, clicks = register(api, "orders"), register(api, "clicks")
    # A GiB takes 50 s.
    for gib, beats in ((1, 2), (2, 4), (3, 6), (4, 8)):
        run(api, clock, orders, "compaction", _merged(gib), beats=beats)
    run(api, clock, clicks, "compaction", _plan(10), beats=1, dry_run=True)
    [planned] = api.get("/v1/jobs", params={"table_id": clicks}).json()["items"]
    cost = planned["cost"]
    assert cost["seconds"] == pytest.approx(500, rel=0.05)
    assert (cost["learned_from"], cost["is_guess"]) == ("kind", True)
    # A slot has a half of 4 GiB.
    assert cost["gb_hours"] == pytest.approx(2 * 500 / 3600, rel=0.05)
    assert cost["low_seconds"] <= cost["seconds"] <= cost["high_seconds"]
    assert cost["low_gb_hours"] <= cost["gb_hours"] <= cost["high_gb_hours"]
    assert cost["text"].startswith("about 8 min (")
    assert "5 min of CPU, reads 10.0 GiB, writes 8.0 GiB" in cost["text"]
    assert {each["of"]: each["expected"] for each in cost["amounts"]} == {
        "cpu_seconds": pytest.approx(300, rel=0.05),
        "bytes_read": pytest.approx(10 * GIB, rel=0.05),
        "bytes_written": pytest.approx(8 * GIB, rel=0.05),
    }
    assert all(each["low"] <= each["expected"] <= each["high"] for each in cost["amounts"])
    # The cost of the next job on the same table is not a guess any more, and is twice as high.
    run(api, clock, clicks, "compaction", _merged(1), beats=4)
    run(api, clock, clicks, "compaction", _plan(2), beats=1, dry_run=True)
    latest = api.get("/v1/jobs", params={"table_id": clicks, "limit": 1}).json()["items"][0]["cost"]
    assert latest["seconds"] == pytest.approx(200, rel=0.05)
    assert latest["is_guess"] is False


def test_a_plan_that_is_refused_or_empty_has_no_cost(api: TestClient, clock: FakeClock) -> None:
    orders = register(api, "orders")
    run(api, clock, orders, "compaction", {**_plan(1), "nothing_to_do": True}, beats=1, dry_run=True)
    refusal = {"type": "table-locked", "title": "No", "detail": "", "hint": "", "retriable": False}
    run(api, clock, orders, "compaction", {**_plan(1), "refusals": [refusal]}, beats=1, dry_run=True)
    run(api, clock, orders, "compaction", _merged(1), beats=1)
    assert [each["cost"] for each in api.get("/v1/jobs").json()["items"]] == [None] * 3


@pytest.mark.mostly_sqlite
def test_the_model_shows_its_error_by_kind(api: TestClient, clock: FakeClock, engine: sa.Engine) -> None:
    tables = [register(api, f"t{number}") for number in range(4)]
    for number in range(12):
        gib = 1 + number % 3
        run(api, clock, tables[number % 4], "compaction", _merged(gib), beats=2 * gib)
        run(api, clock, tables[number % 4], "cleaning", {"files": 10, "files_deleted": 10}, beats=1)
    run(api, clock, tables[0], "compaction", {**_plan(1), "cpu_seconds": 0.2}, beats=1, dry_run=True)
    run(api, clock, tables[0], "audit", {})
    found = {(each["kind"], each["dry_run"]): each for each in api.get("/v1/models/cost").json()["items"]}
    assert set(found) == {("compaction", False), ("cleaning", False), ("compaction", True)}
    amounts = {each["of"]: each for each in found["compaction", False]["amounts"]}
    assert set(amounts) == {"seconds", "cpu_seconds", "bytes_read", "bytes_written"}
    for each in amounts.values():
        assert (each["jobs"], each["tables"]) == (12, 4)
        assert each["error_on_other_tables"] < 0.05
        assert each["error_on_known_tables"] < 0.05
    assert amounts["seconds"]["per_gib"] == pytest.approx(50, rel=0.05)
    assert amounts["cpu_seconds"]["per_gib"] == pytest.approx(30, rel=0.05)
    assert amounts["bytes_read"]["per_gib"] == pytest.approx(GIB, rel=0.05)
    assert amounts["bytes_written"]["per_gib"] == pytest.approx(0.8 * GIB, rel=0.05)
    # A cleaning moves no bytes, and a dry run only plans to.
    assert [each["of"] for each in found["cleaning", False]["amounts"]] == ["seconds"]
    assert [each["of"] for each in found["compaction", True]["amounts"]] == ["seconds", "cpu_seconds"]
    # A model that is read from the database gives the same figures.
    lessons = Lessons()
    with reading(engine) as connection:
        lessons.go_on(connection)
    [again] = [each for each in lessons.model.learned() if (each.kind, each.dry_run) == ("compaction", False)]
    for part, (fit, _) in again.parts.items():
        assert fit.per_gib == pytest.approx(amounts[part.value]["per_gib"], abs=0.001)


def test_each_attempt_has_the_circumstances_under_which_it_ran(
    api: TestClient, clock: FakeClock, engine: sa.Engine
) -> None:
    worker = Worker(api)
    for number in range(4):
        submitted = api.post(f"/v1/tables/{register(api, f't{number}')}/jobs", json={"kind": "audit"})
        assert submitted.status_code == 202
    first, second = worker.must_lease(), worker.must_lease()
    held = outlook_store.leased
    with reading(engine) as connection:
        assert [each.circumstances for each in held(connection)] == [Circumstances(0, 0.0), Circumstances(1, 1.0)]
    for order in (first, second):
        clock.advance(5)
        assert worker.report(order, Result(Outcome.SUCCEEDED, details={"clean": True})).status_code == 200
    third = worker.must_lease()
    worker.report(third, Result(Outcome.SUCCEEDED, details={"clean": True}))
    # A worker that has started again has another id, and is cold.
    other = Worker(api, "w2")
    order = other.must_lease()
    other.report(order, Result(Outcome.SUCCEEDED, details={"clean": True}))
    costs = schema.attempt_costs.c
    with reading(engine) as connection:
        rows = connection.execute(sa.select(costs.jobs_before, costs.jobs_beside).order_by(costs.id)).all()
    # The first attempt had no other one beside it at its beginning, and one at its end.
    assert [tuple(row) for row in rows] == [(0, 0.5), (1, 0.5), (2, 0.0), (0, 0.0)]


def test_the_command_line_prints_what_is_learned(tmp_path: Path) -> None:
    with serving_command_line(tmp_path) as cli:
        assert "No job has ended yet." in cli.run("jobs", "costs").stderr
        assert cli.json("jobs", "costs") == {"items": []}
