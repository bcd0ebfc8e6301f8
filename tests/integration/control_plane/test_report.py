"""Tests reports over what workers have really reported, on both databases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient

from jobs.contract import JobKind, Outcome, Problem, Result, WorkerInfo
from service.api.app import create_app
from service.db import migrate, schema
from service.db.engine import open_engine, reading, writing
from service.events.notifier import Notifier
from service.model.clock import utc_now
from service.queue import attempt_figures, recovery, worker_store
from service.queue.attempt_figures import NAMES, Figures, gib_of_slot
from service.reports import fleet_samples
from tests.integration.control_plane.command_line import CommandLine, serving_command_line
from tests.integration.control_plane.protocol_worker import Worker
from tests.support.contexts import context_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.control_plane.conftest import FakeClock, FakeExamine

ONE = Figures(*[1] * len(NAMES))
CLEANED = {"files": 12, "bytes": 5_000, "files_deleted": 12}
MERGED = {"log_files": 30, "log_bytes": 900, "bytes": 7_000, "files": 4}
SORTED = {"files_read": 50, "files_written": 5, "locked_seconds": 2.5, "bytes": 9}


@pytest.fixture
def api(engine: sa.Engine, clock: FakeClock, examine: FakeExamine) -> Iterator[TestClient]:
    """A client of the API on each kind of database, with a worker of two slots that has 4 GiB."""
    with writing(engine) as connection:
        worker_store.announce(connection, "w1", WorkerInfo(slots=2, driver_memory="4g"), clock())
    app = create_app(context_of(engine, examine=examine, clock=clock, price_per_gb_hour=0.5))
    headers = {"Content-Type": "application/json"}
    with TestClient(app, base_url="http://127.0.0.1", headers=headers) as client:
        yield client


def register(api: TestClient, name: str, **more: Any) -> str:
    answer = api.post("/v1/tables", json={"base_path": f"/lake/{name}", "name": name, **more})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def run(
    api: TestClient, clock: FakeClock, table_id: str, kind: str, details: dict[str, Any], beats: int = 10, **job: Any
) -> None:
    """Runs a job for 25 seconds a heartbeat, and reports these details; without any, it fails."""
    body = {"kind": kind, "params": {}, **job}
    answer = api.post(f"/v1/tables/{table_id}/jobs", json=body)
    assert answer.status_code == 202, answer.text
    worker = Worker(api)
    order = worker.must_lease()
    worker.beat(order)
    for _ in range(beats):
        clock.advance(25)
        worker.beat(order)
    failed = Result(Outcome.FAILED, error=Problem("job-failed", "It failed", "It failed."))
    answer = worker.report(order, Result(Outcome.SUCCEEDED, details=details) if details else failed)
    assert answer.status_code == 200, answer.text


def get(api: TestClient, **query: Any) -> Any:
    answer = api.get("/v1/report", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_report_sums_what_attempts_did_by_table_owner_tag_and_kind(api: TestClient, clock: FakeClock) -> None:
    orders = register(api, "orders", owner="shop", tags={"team": "shop", "pii": ""})
    clicks = register(api, "clicks", owner="web", tags={"team": "web"})
    plain = register(api, "plain")
    run(api, clock, orders, "cleaning", CLEANED, beats=40)
    run(api, clock, orders, "cleaning", CLEANED, beats=4, dry_run=True)
    run(api, clock, clicks, "compaction", MERGED, beats=20)
    run(api, clock, plain, "audit", {"clean": True}, beats=10)
    run(api, clock, clicks, "audit", {}, beats=4)
    clock.advance(1)

    found = get(api)
    total = found["total"]
    assert (total["freed_bytes"], total["files_deleted"]) == (5_000, 12)
    assert (total["log_files"], total["log_bytes"]) == (30, 900)
    assert (total["succeeded"], total["failed"]) == (4, 1)
    assert total["seconds"] == 78 * 25
    # A slot has a half of 4 GiB.
    assert total["gb_seconds"] == pytest.approx(2 * total["seconds"])
    assert total["cost"] == pytest.approx(78 * 25 / 3600 * 2 * 0.5)
    assert found["tables"] == 3
    assert [(each["key"], each["name"]) for each in found["groups"]] == [
        (orders, "orders"),
        (clicks, "clicks"),
        (plain, "plain"),
    ]

    def groups(by: str, figure: str = "succeeded", **query: Any) -> dict[str | None, float]:
        return {each["key"]: each["figures"][figure] for each in get(api, by=by, **query)["groups"]}

    assert groups("owner") == {"shop": 2, "web": 1, None: 1}
    assert groups("tag") == {"team=shop": 2, "pii": 2, "team=web": 1, None: 1}
    assert groups("kind", "failed") == {"cleaning": 0, "compaction": 0, "audit": 1}
    assert groups("owner", owner="web") == {"web": 1}
    assert groups("kind", tag="team=shop") == {"cleaning": 2}
    assert get(api, by="kind", limit=1)["left_out"] == 2
    assert "Freed 4.9 KiB in 12 files; merged 30 log files (900 B)" in found["text"]
    assert "- orders: 0.3 h, cost 0.31, freed 4.9 KiB" in found["text"]

    # The figures outlive the table; later and earlier periods have none of them.
    assert api.delete(f"/v1/tables/{orders}").status_code == 204
    assert get(api)["groups"][0] | {"figures": None} == {"key": orders, "name": None, "tables": 1, "figures": None}
    assert get(api)["total"] == total
    assert get(api, since=clock().isoformat(), until=(clock() + timedelta(days=1)).isoformat())["groups"] == []
    assert get(api, until="2025-12-31T00:00:00Z")["total"]["succeeded"] == 0


def test_rewritten_files_and_lost_workers_are_counted_and_old_figures_deleted(
    api: TestClient, engine: sa.Engine, clock: FakeClock
) -> None:
    table = register(api, "orders", index={"num_buckets": 4, "hash_fields": ["id"]})
    run(api, clock, table, "clustering", SORTED, params={"sort_by": ["a"]})
    clock.advance(1)
    total = get(api)["total"]
    assert (total["files_before"], total["files_after"], total["locked_seconds"]) == (50, 5, 2.5)
    assert total["freed_bytes"] == 0
    assert api.post(f"/v1/tables/{table}/jobs", json={"kind": "audit"}).status_code == 202
    Worker(api).must_lease()
    clock.advance(60)
    assert recovery.run_once(engine, Notifier(), clock).queued
    clock.advance(1)
    lost = get(api, by="kind")["groups"]
    assert {each["key"]: (each["figures"]["failed"], each["figures"]["seconds"]) for each in lost} == {
        "clustering": (0, 250),
        "audit": (1, 60),
    }
    with writing(engine) as connection:
        assert attempt_figures.prune(connection, clock() + timedelta(days=1), 10) == 2
    with reading(engine) as connection:
        assert attempt_figures.sums(connection, clock() - timedelta(days=9), clock(), by_kind=True) == []


def test_old_figures_are_deleted_without_a_change_of_later_sums(engine: sa.Engine, clock: FakeClock) -> None:
    def add(table: str, days: float) -> None:
        attempt_figures.add(connection, table, JobKind.AUDIT, ONE, clock() - timedelta(days=days))

    with writing(engine) as connection:
        for days in (9, 8, 7, 3, 1):
            add("tbl_1", days)
        for days in (9, 8):
            add("tbl_2", days)
        # A clock that is behind does not spoil the order.
        add("tbl_1", 2)
    for _ in range(2):
        with writing(engine) as connection:
            attempt_figures.prune(connection, clock() - timedelta(days=5), 3)
    with reading(engine) as connection:
        for days, number in ((30, 3), (5, 3), (2, 2)):
            [found] = attempt_figures.sums(connection, clock() - timedelta(days=days), clock(), by_kind=True)
            assert (found.table_id, found.kind, set(found.amounts)) == ("tbl_1", "audit", {number})
        assert connection.execute(sa.select(schema.figure_totals.c.table_id)).scalars().all() == ["tbl_1"]


def test_figures_of_single_attempts_become_totals(empty_database: str) -> None:
    engine = open_engine(empty_database)
    migrate.upgrade(engine, "0032")
    at = datetime(2026, 1, 1, tzinfo=UTC)
    names = ("table_id", "kind", *NAMES)
    old = sa.table("attempt_figures", sa.column("ended_at", schema.UtcDateTime), *map(sa.column, names))
    with writing(engine) as connection:
        for number in range(6):
            row = {"ended_at": at + timedelta(hours=number), "table_id": f"tbl_{number % 2}", "kind": "audit"}
            connection.execute(old.insert().values({**row, **dict.fromkeys(NAMES, number)}))
    migrate.upgrade(engine)
    with writing(engine) as connection:
        attempt_figures.add(connection, "tbl_0", JobKind.AUDIT, ONE, at + timedelta(hours=7))
        found = attempt_figures.sums(connection, at + timedelta(hours=1), at + timedelta(days=1), by_kind=False)
    assert {each.table_id: set(each.amounts) for each in found} == {"tbl_0": {2 + 4 + 1}, "tbl_1": {1 + 3 + 5}}
    engine.dispose()


@pytest.mark.mostly_sqlite
def test_a_report_has_the_largest_groups_and_says_how_many_it_leaves_out(
    api: TestClient, engine: sa.Engine, clock: FakeClock
) -> None:
    kinds = (JobKind.COMPACTION, JobKind.CLEANING)
    with writing(engine) as connection:
        for number in range(1000):
            at = clock() - timedelta(seconds=1000 - number)
            attempt_figures.add(connection, f"tbl_{number % 300}", kinds[number % 2], ONE, at)
    found = get(api, until=(clock() + timedelta(seconds=1)).isoformat())
    assert (found["total"]["succeeded"], len(found["groups"]), found["left_out"]) == (1000, 100, 200)


def test_the_trend_has_the_state_of_each_step_and_what_happened_in_it(
    api: TestClient, engine: sa.Engine, clock: FakeClock
) -> None:
    orders = register(api, "orders")

    def sample() -> None:
        fleet_samples.run_once(engine, clock)
        # Another replica takes no sample in the same five minutes.
        assert fleet_samples.run_once(engine, clock) == "0 samples"

    sample()
    run(api, clock, orders, "cleaning", CLEANED, beats=30)
    run(api, clock, orders, "audit", {}, beats=1)
    assert api.post(f"/v1/tables/{orders}/jobs", json={"kind": "audit"}).status_code == 202
    clock.now = datetime(2026, 1, 1, 1, tzinfo=UTC)
    sample()
    clock.advance(600)
    sample()
    clock.advance(1)
    answer = api.get("/v1/report/trend", params={"since": "2025-12-31T00:00:00Z"})
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert found["step_seconds"] == 900
    first, last = found["items"]
    assert (first["succeeded"], first["freed_bytes"], first["at"]) == (0, 0, "2026-01-01T00:00:00Z")
    assert (last["succeeded"], last["failed"], last["freed_bytes"]) == (1, 1, 5_000)
    assert (last["queued"], last["tables"], last["running"], last["slots"]) == (1, 1, 0, 0)
    assert sum(each["freed_bytes"] for each in found["items"]) == 5_000
    earlier = {"since": "2025-12-30T00:00:00Z", "until": "2025-12-31T00:00:00Z"}
    assert api.get("/v1/report/trend", params=earlier).json()["items"] == []
    # The sums stay the same when samples are thinned out.
    clock.advance(10 * 86_400)
    with writing(engine) as connection:
        assert fleet_samples.prune(connection, clock() - timedelta(days=365), 100, now=clock()) == 1
    found = api.get("/v1/report/trend", params={"since": "2025-12-31T00:00:00Z"}).json()
    assert found["step_seconds"] == 21_600
    assert [each["freed_bytes"] for each in found["items"]] == [5_000]


@pytest.mark.parametrize(
    "query",
    [
        {"by": "moon"},
        {"since": "2026-01-02T00:00:00Z", "until": "2026-01-01T00:00:00Z"},
        {"since": "2024-01-01T00:00:00Z", "until": "2026-01-01T00:00:00Z"},
        {"from": "2026-01-01T00:00:00Z"},
        {"tag": "a b"},
    ],
)
def test_a_report_with_an_invalid_period_or_selection_is_refused(client: TestClient, query: dict[str, str]) -> None:
    answer = client.get("/v1/report", params=query)
    assert (answer.status_code, answer.json()["type"]) == (422, "/problems/params-invalid")


@pytest.mark.parametrize(
    ("worker", "gib"),
    [
        (("2g", 1, None, {}), 2),
        (("512m", 2, None, {}), 0.25),
        (("2G", 2, 3, {"spark.executor.memory": "4g"}), 7),
        (("1t", None, None, {}), 1024),
        ((None, 2, 3, {}), 0),
        (("2048", 1, None, {}), 0),
        (("lots", 0, 1, {"spark.executor.memory": "1gb"}), 1),
    ],
)
def test_the_memory_of_a_slot_is_its_part_of_the_drivers_and_the_executors(worker: Any, gib: float) -> None:
    assert gib_of_slot(*worker) == gib


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    with serving_command_line(tmp_path_factory.mktemp("report")) as cli:
        yield cli


def test_the_command_line_prints_a_report(cli: CommandLine) -> None:
    assert "Nothing ran in this period." in cli.run("report", "--week").stderr
    table = cli.table("orders", "--owner", "shop")
    with writing(cli.serving.engine) as connection:
        attempt_figures.add(connection, table, JobKind.CLEANING, ONE, utc_now())
    assert "orders" in cli.run("report").stdout
    found = cli.json("report", "--week", "--by", "owner", "--tag", "none")
    assert found["groups"] == []
    assert [each["key"] for each in cli.json("report", "--by", "owner")["groups"]] == ["shop"]
    assert cli.run("report", "--text", "--by", "kind").stdout.startswith("Groundskeeper from ")
    assert "--week" in cli.refused("report", "--week", "--since", "1d", code=2)
