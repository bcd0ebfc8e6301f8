"""Tests GET /v1/overview: its tables on each kind of database, and the whole call."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient

from jobs.contract import BucketIndex, JobKind, WorkerInfo
from service.access.token import Role
from service.api import overview
from service.api.app import create_app
from service.catalog import table_store
from service.catalog.registration import Registration
from service.db import schema
from service.db.engine import reading, writing
from service.events.notifier import Notifier
from service.health import overview_store, problem_rounds, result_cache
from service.health.cached_problems import ProblemCache
from service.health.result_cache import MOST_AGE, MOST_AGE_AT_ONCE, UP_TO_DATE
from service.queue import job_store, worker_store
from service.queue.job import Job
from tests.integration.control_plane.test_problems_of_many import ill
from tests.support.contexts import changed, context_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from service.api.dependencies import AppContext
    from tests.integration.control_plane.conftest import FakeClock, FakeExamine


pytestmark = pytest.mark.mostly_sqlite


@pytest.fixture
def api(engine: sa.Engine, clock: FakeClock, examine: FakeExamine) -> Iterator[TestClient]:
    """A client of the API on each kind of database."""
    app = create_app(context_of(engine, examine=examine, clock=clock))
    with TestClient(app, base_url="http://127.0.0.1/v1") as client:
        yield client


def get(api: TestClient, **query: Any) -> Any:
    answer = api.get("/overview", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def names(api: TestClient, **query: Any) -> list[str]:
    return [row["name"] for row in get(api, **query)["tables"]["items"]]


def add(engine: sa.Engine, clock: FakeClock, name: str, **more: Any) -> None:
    with writing(engine) as connection:
        table_store.register(connection, Registration(f"tbl_{name}", f"/lake/{name}", name, clock(), clock(), **more))


def selects(engine: sa.Engine, call: Callable[[], object]) -> int:
    """Returns the number of queries of a call, without that of the caller's token, which is kept for a moment."""
    statements: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        statements.append(statement)

    sa.event.listen(engine, "before_cursor_execute", note)
    call()
    sa.event.remove(engine, "before_cursor_execute", note)
    return len([each for each in statements if each.lstrip().startswith("SELECT") and "FROM tokens" not in each])


def test_one_call_shows_all_and_takes_the_same_queries_for_few_tables_as_for_many(
    api: TestClient, engine: sa.Engine, clock: FakeClock
) -> None:
    ill(engine, clock, range(2))
    with writing(engine) as connection:
        worker_store.announce(connection, "w", WorkerInfo(slots=2), clock())
    get(api)
    few = selects(engine, lambda: get(api))
    ill(engine, clock, range(2, 30))
    clock.advance(MOST_AGE.total_seconds() + 1)
    shown = get(api)
    assert selects(engine, lambda: get(api)) == few <= 13
    assert shown["at"] == shown["problems"]["as_of"]
    assert shown["problems"]["counts"]["critical"] == 30
    assert len(shown["problems"]["items"]) == 20
    told = {"default": "30 queued, about 15 min of work, no worker is ready; a guess"}
    assert shown["jobs"] | {"items": []} == {"queued": 30, "leased": 0, "running": 0, "forecast": told, "items": []}
    assert [job["table_name"] for job in shown["jobs"]["items"]] == [
        row["table_name"] for row in shown["jobs"]["items"]
    ]
    assert shown["incidents"] == {"open": 30, "suspected": 0}
    assert shown["workers"] == {"alive": 0, "ready": 0, "slots": 0, "busy": 0}
    assert shown["pause"]["paused"] is False
    row = next(each for each in shown["tables"]["items"] if each["name"] == "t7")
    assert (row["health"], row["state"]) == ("critical", "unpolled")
    assert row["problems"][0]["kind"] == "incident-standing"
    assert row["backlog"] == {"log_bytes": 30 << 30, "base_bytes": 30 << 20, "commits": 40, "metadata_commits": None}
    assert row["last_commit_at"] is not None
    assert {(job["kind"], job["state"]) for job in row["jobs"]} == {("audit", "failed"), ("cleaning", "queued")}
    assert row["incidents"] == {"open": 1, "suspected": 0}


def test_tables_are_found_by_a_part_of_the_name_or_path_and_by_what_is_wrong(
    api: TestClient, engine: sa.Engine, clock: FakeClock
) -> None:
    ill(engine, clock, range(1))
    add(engine, clock, "Bücher", profile={"table_type": "COPY_ON_WRITE", "table_version": 9})
    add(engine, clock, "orders", index=BucketIndex(4, ("id",)), profile={"table_type": "MERGE_ON_READ"})
    assert names(api, q="BÜCH") == ["Bücher"]
    assert names(api, q="/LAKE/ord") == ["orders"]
    assert names(api, health="critical") == ["t0"]
    assert sorted(names(api, health=["healthy", "critical"])) == ["Bücher", "orders", "t0"]
    assert names(api, kind="compaction-behind") == ["t0"]
    assert names(api, kind="small-files") == []
    assert names(api, table_type="COPY_ON_WRITE") == ["Bücher"]
    assert names(api, state="unreadable") == []
    with writing(engine) as connection:
        connection.execute(sa.text("UPDATE watches SET looked_at = next_poll_at"))
        connection.execute(
            sa.text("UPDATE watches SET failures = 1, error = :error WHERE table_id = 'tbl_orders'"),
            {"error": '{"type": "path-not-found", "title": "gone"}'},
        )
        connection.execute(sa.text("UPDATE jobs SET state = 'running' WHERE id = 'job_0'"))
    assert names(api, state="unreadable") == ["orders"]
    assert names(api, state="busy") == ["t0"]
    assert names(api, state=["idle", "busy"], sort="name") == ["Bücher", "t0"]
    for wrong in ({"health": "ill"}, {"sort": "size"}, {"limit": 0}, {"limit": 201}, {"q": "\0"}, {"cursor": "x"}):
        assert api.get("/overview", params=wrong).status_code == 422, wrong


def test_pages_go_on_where_they_were_in_every_order(api: TestClient, engine: sa.Engine, clock: FakeClock) -> None:
    for number in range(5):
        ill(engine, clock, range(number, number + 1), partitions=number + 1)
    for name in ("b", "A", "c"):
        clock.advance(1)
        add(engine, clock, name)
    whole = {
        order: names(api, sort=order) for order in ("problems", "name", "backlog", "commit", "silent", "registered")
    }
    assert whole["name"] == ["A", "b", "c", "t0", "t1", "t2", "t3", "t4"]
    assert whole["problems"][-3:] == ["A", "b", "c"]
    assert whole["backlog"] == ["t4", "t3", "t2", "t1", "t0", "A", "b", "c"]
    assert whole["registered"][:3] == ["c", "A", "b"]
    for order, expected in whole.items():
        seen, cursor = [], None
        while True:
            page = get(api, sort=order, limit=3, **({"cursor": cursor} if cursor else {}))["tables"]
            assert (page["before"], page["matching"], page["total"]) == (len(seen), 8, 8)
            seen += [row["name"] for row in page["items"]]
            cursor = page["next_cursor"]
            if not cursor:
                break
            assert (
                api.get(
                    "/overview", params={"sort": "name" if order != "name" else "backlog", "cursor": cursor}
                ).status_code
                == 422
            )
        assert seen == expected, order


def test_the_last_twenty_jobs_of_each_table_are_shown_newest_first(
    api: TestClient, engine: sa.Engine, clock: FakeClock
) -> None:
    add(engine, clock, "busy")
    add(engine, clock, "quiet")
    with writing(engine) as connection:
        for number in range(25):
            job = Job(f"job_{number:02}", "tbl_busy", JobKind.AUDIT, clock() + timedelta(seconds=number), clock())
            job_store.submit(connection, job)
            connection.execute(
                sa.text("UPDATE jobs SET state = 'failed', finished_at = created_at, error = :error WHERE id = :id"),
                {"id": job.id, "error": '{"type": "x", "title": "It broke"}'},
            )
        job_store.submit(connection, Job("job_q", "tbl_quiet", JobKind.CLEANING, clock(), clock()))
    jobs = {row["name"]: row["jobs"] for row in get(api)["tables"]["items"]}
    assert [job["id"] for job in jobs["busy"]] == [f"job_{number:02}" for number in reversed(range(5, 25))]
    assert {job["error"] for job in jobs["busy"]} == {"It broke"}
    assert [job["id"] for job in jobs["quiet"]] == ["job_q"]


def test_the_first_jobs_of_a_long_queue_are_found_by_an_index_alone(sqlite: sa.Engine) -> None:
    plans: list[str] = []

    def explain(connection: sa.Connection, cursor: Any, statement: str, parameters: Any, *_: object) -> None:
        plans.extend(row[3] for row in cursor.execute(f"EXPLAIN QUERY PLAN {statement}", parameters).fetchall())

    with reading(sqlite) as connection:
        sa.event.listen(sqlite, "before_cursor_execute", explain)
        assert overview_store.active_jobs(connection, 20) == []
    assert any("COVERING INDEX ix_jobs_state_created_at" in each for each in plans)
    # Only the rows of the jobs that were found are read from the table itself.
    assert [each for each in plans if "jobs" in each and "COVERING" not in each and "autoindex_jobs" not in each] == []


def test_a_brief_overview_leaves_out_what_the_dashboard_does_not_show(
    api: TestClient, engine: sa.Engine, clock: FakeClock
) -> None:
    ill(engine, clock, range(21))
    with writing(engine) as connection:
        for number in range(4):
            job_store.submit(connection, Job(f"job_new_{number}", "tbl_0", JobKind.AUDIT, clock(), clock()))
            connection.execute(sa.text("UPDATE jobs SET state = 'succeeded' WHERE id LIKE 'job_new%'"))
    whole, brief = get(api), get(api, brief=True)
    assert (whole["problems"]["items"] != [], brief["problems"].pop("items")) == (True, [])
    del whole["problems"]["items"]
    assert brief["jobs"]["items"] == whole["jobs"]["items"][:20]
    whole["jobs"]["items"] = brief["jobs"]["items"]
    # The next job of `tbl_0` is older than its four last jobs.
    assert next(each["next_job"]["job_id"] for each in brief["tables"]["items"] if each["id"] == "tbl_0") == "job_0"
    for row in whole["tables"]["items"]:
        row["problems"], row["jobs"] = row["problems"][:1], row["jobs"][:4]
    assert brief == whole


@pytest.mark.parametrize(
    ("state", "result"),
    [
        ("succeeded", {"refusals": []}),
        ("succeeded", {"refusals": [{"type": "no-bucket-index", "title": "It has no bucket index"}]}),
        ("succeeded", {"refusals": [], "nothing_to_do": True}),
        ("succeeded", {"nothing_to_do": False}),
        ("failed", {"refusals": [{"type": "no-bucket-index", "title": "It has no bucket index"}]}),
        ("failed", {"nothing_to_do": True}),
        ("succeeded", None),
        ("running", {"nothing_to_do": True}),
    ],
)
@pytest.mark.parametrize("dry_run", [True, False])
def test_a_past_job_has_the_verdict_that_its_own_page_has(
    api: TestClient, engine: sa.Engine, clock: FakeClock, state: str, result: object, dry_run: bool
) -> None:
    add(engine, clock, "orders")
    with writing(engine) as connection:
        job = Job("job_1", "tbl_orders", JobKind.BUCKET_EXPANSION, clock(), clock(), dry_run=dry_run)
        job_store.submit(connection, job)
        connection.execute(sa.update(schema.jobs).values(state=state, result=result))
    shown = get(api)["tables"]["items"][0]["jobs"][0]
    assert shown["verdict"] == api.get("/jobs/job_1").json()["verdict"]
    if result == {"refusals": []}:
        assert shown["verdict"] == ("ready" if dry_run else None)


def test_a_cached_answer_is_returned_at_once_while_a_new_one_is_computed(engine: sa.Engine, clock: FakeClock) -> None:
    ill(engine, clock, range(1))
    cache = ProblemCache()
    first = cache.known(engine, clock)
    ill(engine, clock, range(1, 2))
    clock.advance(3)
    assert cache.known(engine, clock) is first
    cache._problems._ended_at -= 60
    cache._problems._took = 1.0  # The search takes as long as with thousands of tables.
    assert cache.known(engine, clock) is first
    for _ in range(200):
        if cache.known(engine, clock) is not first:
            break
        time.sleep(0.05)
    second = cache.known(engine, clock)
    assert (second.as_of - first.as_of).total_seconds() == 3
    assert {"tbl_0", "tbl_1"} <= set(second.of_tables)
    clock.advance(MOST_AGE.total_seconds() + 1)
    assert cache.known(engine, clock).as_of == clock()


def test_an_answer_that_is_computed_quickly_is_never_older_than_two_seconds(
    engine: sa.Engine, clock: FakeClock
) -> None:
    cache = ProblemCache()
    cache.known(engine, clock)
    ill(engine, clock, range(1))
    clock.advance(3)
    cache._problems._ended_at -= 3
    cache._problems._took = 0.01
    assert cache.known(engine, clock).as_of == clock()
    assert "tbl_0" in cache.known(engine, clock).of_tables


def test_with_very_many_tables_the_last_list_of_problems_is_returned(engine: sa.Engine, clock: FakeClock) -> None:
    cache = ProblemCache()
    cache.known(engine, clock, UP_TO_DATE)
    ill(engine, clock, range(1))
    few = cache.known(engine, clock, UP_TO_DATE)
    assert set(few.of_tables) == {"tbl_0"}
    cache._problems.tables = lambda _: 501
    ill(engine, clock, range(1, 2))
    assert cache.known(engine, clock, UP_TO_DATE) is few
    clock.advance(MOST_AGE.total_seconds() + 1)
    assert set(cache.known(engine, clock, UP_TO_DATE).of_tables) == {"tbl_0", "tbl_1"}


def test_after_a_start_the_first_answer_is_what_the_last_round_has_stored(
    engine: sa.Engine, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    ill(engine, clock, range(3))
    clock.advance(180)
    before = ProblemCache()
    problem_rounds.run_once(engine, Notifier(), clock, every=timedelta(seconds=30), cache=before)
    then, found = clock(), before.known(engine, clock)
    ill(engine, clock, range(3, 4))
    clock.advance(600)
    monkeypatch.setattr(result_cache, "FEW", 1)
    cache = ProblemCache()
    first = cache.known(engine, clock)
    assert first.as_of == then
    assert [(each.id, each.words) for each in first.problems] == [(each.id, each.words) for each in found.problems]
    assert first.counts == found.counts
    assert {key: first.backlogs[key] for key in found.backlogs} == found.backlogs
    assert [each.id for each in first.of_tables["tbl_1"]] == [each.id for each in found.of_tables["tbl_1"]]
    for _ in range(200):
        if "tbl_3" in cache.known(engine, clock).of_tables:
            break
        time.sleep(0.05)
    assert cache.known(engine, clock).as_of == clock()


def test_many_tables_are_shown_before_their_problems_are_counted(
    api: TestClient, engine: sa.Engine, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    ill(engine, clock, range(3))
    monkeypatch.setattr(result_cache, "FEW", 1)
    monkeypatch.setattr(result_cache, "_AFTER_START_SECONDS", 0.5)
    first = get(api, sort="backlog")
    assert first["problems"] == {"as_of": None, "counts": counts_by_severity(0, 0, 0), "groups": [], "items": []}
    rows = first["tables"]["items"]
    assert [(row["name"], row["health"], row["problem_count"]) for row in rows] == [
        ("t0", None, 0),
        ("t1", None, 0),
        ("t2", None, 0),
    ]
    assert all(row["backlog"]["log_bytes"] > 0 for row in rows)
    assert names(api, health="critical") == ["t0", "t1", "t2"]
    assert get(api)["problems"]["counts"]["critical"] == 3


def counts_by_severity(critical: int, warning: int, notice: int) -> dict[str, int]:
    return {"critical": critical, "warning": warning, "notice": notice}


def test_an_old_answer_about_many_tables_is_returned_while_a_new_one_is_computed(
    engine: sa.Engine, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    ill(engine, clock, range(2))
    cache = ProblemCache()
    first = cache.known(engine, clock, UP_TO_DATE)
    cache._problems._took = 1.0  # The search takes as long as with thousands of tables.
    monkeypatch.setattr(result_cache, "FEW", 1)
    clock.advance(MOST_AGE_AT_ONCE.total_seconds() - 1)
    assert cache.known(engine, clock) is first
    clock.advance(2)
    assert cache.known(engine, clock).as_of == clock()


def test_the_answer_about_many_tables_is_prepared_at_a_start(
    engine: sa.Engine, clock: FakeClock, examine: FakeExamine, monkeypatch: pytest.MonkeyPatch
) -> None:
    ill(engine, clock, range(3))
    problem_rounds.run_once(engine, Notifier(), clock, every=timedelta(seconds=30), cache=ProblemCache())
    monkeypatch.setattr(result_cache, "FEW", 1)
    context = context_of(engine, examine=examine, clock=clock)
    overview.prepare(context.fleet_work.installation)
    with writing(engine) as connection:
        connection.execute(schema.standing_problems.delete())
    with TestClient(create_app(context), base_url="http://127.0.0.1/v1") as client:
        rows = get(client)["tables"]["items"]
    assert {row["id"]: row["problem_count"] > 0 for row in rows} == {f"tbl_{number}": True for number in range(3)}
    # The metrics are prepared as well: the first scrape need not read a row of each table.
    statements: list[str] = []
    sa.event.listen(engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    clock.advance(MOST_AGE_AT_ONCE.total_seconds() - 1)
    assert context.fleet_work.installation.state.read().tables.tables == 3
    assert statements
    assert not [each for each in statements if "AS timeline_commits" in each]


def test_a_reader_may_see_it_and_a_worker_may_not(
    app_context: AppContext, make_token: Callable[[Role], dict[str, str]]
) -> None:
    with TestClient(create_app(changed(app_context)), base_url="http://127.0.0.1/v1") as client:
        reader, worker = make_token(Role.READER), make_token(Role.WORKER)
        assert client.get("/overview", headers=reader).status_code == 200
        assert client.get("/overview", headers=worker).status_code == 403
        assert client.get("/overview").status_code == 401
