"""Tests that frequent calls execute few SQL statements. Each statement makes its thread wait for the database and then
for the interpreter; in a busy service these waits take longer than most queries."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Never

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient

from jobs.contract import Outcome, Result
from service.api.app import create_app
from service.model.errors import FleetUnavailableError
from service.observation.poll import poll_table
from service.observation.table_read import TableReader
from service.policies import policy_registry
from service.scheduling import scheduler
from tests.integration.control_plane.planning import Service
from tests.integration.control_plane.watching import A
from tests.support.contexts import changed
from tests.support.small_table import SmallTable, base_file, log_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from service.api.dependencies import AppContext
    from service.catalog.registration import Registration
    from tests.integration.control_plane.watching import Watched

pytestmark = pytest.mark.usefixtures("a_table")

LEASE = {"worker_id": "w", "worker": {"slots": 4, "state": "ready"}}


class NoForecasts:
    """Stands for the process of all tables while it is unavailable: it would compute forecasts with statements of its
    own."""

    def run(self, *_: Any, **__: Any) -> Never:
        raise FleetUnavailableError


@pytest.fixture
def calls(app_context: AppContext, engine: sa.Engine) -> Iterator[TestClient]:
    app = create_app(changed(app_context, engine=engine, fleet=NoForecasts()))
    headers = {"Content-Type": "application/json"}
    with TestClient(app, base_url="http://127.0.0.1/v1", headers=headers) as client:
        yield client


@contextmanager
def executed(engine: sa.Engine) -> Iterator[list[str]]:
    """Yields the statements, without those about the caller's token, which is kept for a moment."""
    statements: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        if "FROM tokens" not in statement:
            statements.append(statement)

    sa.event.listen(engine, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        sa.event.remove(engine, "before_cursor_execute", note)


@pytest.mark.parametrize(
    ("path", "most"),
    [
        ("/tables", 2),
        ("/tables/tbl_1", 2),
        ("/tables/tbl_1/policy", 1),
        ("/jobs", 2),
        ("/jobs?state=queued", 2),
        ("/workers", 1),
    ],
)
def test_a_call_that_reads_executes_few_statements(calls: TestClient, engine: sa.Engine, path: str, most: int) -> None:
    calls.post("/tables/tbl_1/jobs", json={"kind": "audit"}).raise_for_status()
    with executed(engine) as statements:
        calls.get(path).raise_for_status()
    assert len(statements) <= most, statements


def test_a_submission_executes_few_statements(calls: TestClient, engine: sa.Engine) -> None:
    with executed(engine) as statements:
        answer = calls.post("/tables/tbl_1/jobs", json={"kind": "compaction", "dry_run": True})
    assert (answer.status_code, answer.json()["table_name"]) == (202, "orders")
    assert len(statements) <= 8, statements


def test_a_callback_executes_one_statement(calls: TestClient, engine: sa.Engine, a_table: Registration) -> None:
    message = {"commitTime": "20260101000000000", "tableName": "orders", "basePath": a_table.base_path}
    with executed(engine) as statements:
        calls.post("/callbacks/hudi", json={**message, "hoodieWriteStat": []}).raise_for_status()
    assert len(statements) == 1, statements


@pytest.mark.parametrize(
    ("objective", "more"),
    # The objective's state is read and written with its hour; tables that wait are read once a minute.
    [({"least_worth": 3.0}, 0), ({"read_overhead": 1.2, "of_reads": 0.95}, 4)],
    ids=["worth", "reads"],
)
def test_a_commit_and_the_decision_about_its_table_execute_few_statements(
    watched: Watched, tmp_path: Path, objective: dict[str, float], more: int
) -> None:
    table = SmallTable(tmp_path / "t")
    table.commit("001", {"p": {base_file(A, "001"): 10}})
    table_id, engine, clock = watched.register(table), watched.engine, watched.clock
    service = Service(engine, clock)
    policy_registry.put_pattern(engine, clock, "*", precedence=0, settings={"objective": objective})
    read = TableReader(engine, {}, 100)
    for number in range(2, 5):
        clock.advance(61)
        instant = f"{number:03d}"
        table.commit(instant, {"p": {log_file(A, instant): 5}}, modified=clock().timestamp())
        with executed(engine) as of_poll:
            found = poll_table(engine, clock, watched.watch(table_id), read)
        with executed(engine) as of_decision:
            decided = scheduler.run_once(service.database, service.config)
        assert (len(found.commits), decided.tables) == (1 if number > 2 else 2, 1)
    # The first statement is one of the test, and the next three are those of the reader.
    assert len(of_poll) <= 16, of_poll
    assert len(of_decision) <= (7 if engine.dialect.name == "sqlite" else 9) + more, of_decision


def test_the_calls_of_a_worker_execute_few_statements(calls: TestClient, engine: sa.Engine) -> None:
    for kind in ("audit", "cleaning"):
        calls.post("/tables/tbl_1/jobs", json={"kind": kind}).raise_for_status()
    for _ in range(2):
        calls.post("/worker/announcements", json=LEASE).raise_for_status()
        with executed(engine) as statements:
            order = calls.post("/worker/leases", json=LEASE).json()["plan"]
        assert len(statements) <= 16, statements
        path = f"/worker/leases/{order['job_id']}"
        calls.post(f"{path}/heartbeat", json={"attempt": 1}).raise_for_status()
        with executed(engine) as statements:
            calls.post(f"{path}/heartbeat", json={"attempt": 1}).raise_for_status()
        assert len(statements) <= 3, statements
        report = {"attempt": 1, "result": Result(Outcome.SUCCEEDED).to_json()}
        calls.post(f"{path}/result", json=report).raise_for_status()
