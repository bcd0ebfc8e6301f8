"""Tests simulations of policies on both databases, and that they foresee what the scheduler then does."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from fastapi.testclient import TestClient

from jobs.contract import JobKind
from service.access.token import Role
from service.api.app import create_app
from service.catalog import commit_store, sample_store
from service.catalog.registration import Readers
from service.catalog.sample import Sample
from service.db.engine import reading, writing
from service.lake.commit import COMPACTION, Commit
from service.lake.snapshot import PartitionState, TableSnapshot
from service.lake.table import TableType
from service.model.clock import utc_now
from service.model.storage_errors import ReadTimedOutError
from service.policies import policy_registry, store
from service.policies.policy import Policy, TableLevel
from service.policies.precedence import Subject
from service.queue import attempt_figures
from service.queue.attempt_figures import Figures
from service.scheduling import pausing
from service.simulation import past_store
from service.simulation.edit import Edit
from service.simulation.fleet import Fleet
from service.simulation.what_if import Period, what_if
from tests.integration.control_plane.command_line import serving_command_line
from tests.integration.control_plane.planning import Service, save_poll, snapshot_of
from tests.support.contexts import changed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import sqlalchemy as sa

    from service.api.dependencies import AppContext
    from service.queue.job import Job
    from service.simulation.what_if import WhatIf
    from tests.integration.control_plane.conftest import FakeClock

MIB = 1024**2
TABLE = "tbl_1"


@dataclass
class Lake:
    """A merge-on-read table whose writer commits 2 MiB every two minutes, polled each minute, with the service's
    scheduler and a worker whose jobs take 10 s."""

    service: Service
    clock: FakeClock
    log_bytes: int = 0
    base_bytes: int = 400 * MIB
    freed: int = 0
    commits: int = 0
    last: dict[JobKind, tuple[int, Any]] = field(default_factory=dict)
    done: list[Job] = field(default_factory=list)
    peak: int = 0

    def run(self, minutes: int) -> None:
        for minute in range(minutes):
            if minute % 2 == 0:
                self.commit()
            self.poll()
            self.service.plan()
            while job := self.service.lease():
                self.clock.advance(10)
                self.end(job)
                self.poll()
                self.service.plan()
            seconds = self.clock().timestamp() % 60
            self.clock.advance(60 - seconds)

    def commit(self) -> None:
        self.commits += 1
        self.log_bytes += 2 * MIB
        self.peak = max(self.peak, self.log_bytes)
        self.record("deltacommit", "UPSERT", 2 * MIB)

    def record(self, action: str, operation: str | None, size: int) -> None:
        now = self.clock()
        found = Commit(
            TABLE, f"{now:%Y%m%d%H%M%S}{len(self.done) % 1000:03}", action, None, now, now, operation, 9, 0, size
        )
        with writing(self.service.engine) as connection:
            commit_store.record(connection, [changed_groups(found)], now)

    def end(self, job: Job) -> None:
        if job.kind is JobKind.COMPACTION:
            self.freed += self.base_bytes // 2 + self.log_bytes
            self.log_bytes = 0
            self.last[job.kind] = (self.commits, self.clock())
            self.record("commit", COMPACTION, 200 * MIB)
        elif job.kind is JobKind.CLEANING:
            self.freed = 0
            self.last[job.kind] = (self.commits, self.clock())
            self.record("clean", None, 0)
        self.service.end(job)
        self.done.append(job)

    def poll(self) -> None:
        snapshot = snapshot_of(TABLE, self, self.clock())
        with writing(self.service.engine) as connection:
            save_poll(connection, snapshot)
            sample_store.record(connection, {TABLE: Sample.of(snapshot)})


def changed_groups(found: Commit) -> Commit:
    return Commit(**{**vars(found), "file_groups": 4})


@pytest.fixture
def lake(engine: sa.Engine, clock: FakeClock) -> Iterator[Lake]:
    service = Service(engine, clock)
    service.register(TABLE)
    return Lake(service, clock)


def simulate(lake: Lake, settings: dict[str, Any], begin: Any) -> WhatIf:
    with reading(lake.service.engine) as connection:
        now = lake.clock()
        return what_if(connection, Edit(settings, table_ids=(TABLE,)), Period(begin, now, now), Fleet())


@pytest.mark.mostly_sqlite
def test_an_edit_of_a_pattern_shares_the_reads_of_its_tables(lake: Lake) -> None:
    lake.service.register("tbl_2", readers=Readers(reads_per_day=960.0))
    lake.service.poll("tbl_2")
    begin = lake.clock()
    lake.run(20)

    def compactions(of_reads: float) -> int:
        edit = Edit({"objective": {"read_overhead": 1.05, "of_reads": of_reads}}, pattern="*")
        with reading(lake.service.engine) as connection:
            now = lake.clock()
            found = what_if(connection, edit, Period(begin, now, now), Fleet())
        return sum(each.jobs for each in found.new.kinds if each.kind is JobKind.COMPACTION)

    # The table has 2.4 % of all reads, since 24 a day are assumed.
    assert (compactions(0.95), compactions(0.99) > 0) == (0, True)


def done(lake: Lake, kind: JobKind, since: Any) -> int:
    return sum(each.kind is kind and each.created_at >= since for each in lake.done)


@pytest.mark.mostly_sqlite
def test_a_simulation_foresees_what_the_scheduler_then_does(lake: Lake) -> None:
    begin = lake.clock()
    lake.run(80)
    found = simulate(lake, {"compaction": {"commits": 10}}, begin)
    assert (found.commits, found.names) == (40, {TABLE: TABLE})
    # The simulation of the present policy equals what really happened.
    really = {each.kind: each.jobs for each in found.actual.kinds}
    assert really[JobKind.COMPACTION] == done(lake, JobKind.COMPACTION, begin) >= 7
    for each in found.now.kinds:
        assert abs(each.jobs - really[each.kind]) <= 1
    assert found.now.rewritten_bytes == pytest.approx(found.actual.rewritten_bytes, rel=0.1)
    # Samples of five minutes miss the peaks.
    assert found.now.read_overhead == pytest.approx(found.actual.read_overhead, rel=0.2)
    # The new policy is then made, and the same writes come again.
    with writing(lake.service.engine) as connection:
        store.put_table(connection, TABLE, TableLevel({"compaction": {"commits": 10}}, lake.clock()))
    changed_at = lake.clock()
    lake.run(80)
    foreseen = {each.kind: each.jobs for each in found.new.kinds}
    for kind in (JobKind.COMPACTION, JobKind.CLEANING):
        assert abs(foreseen[kind] - done(lake, kind, changed_at)) <= 1
    assert max(each.log_bytes for each in found.new.points) == pytest.approx(lake.peak, rel=0.15)
    assert found.text.startswith(f"{found.new.jobs} jobs instead of {found.now.jobs} (-")


@pytest.mark.mostly_sqlite
def test_a_forecast_knows_what_the_jobs_of_the_last_day_have_cost(lake: Lake) -> None:
    policy_registry.put_table(lake.service.engine, lake.clock, TABLE, {"objective": {"max_gb_hours_per_day": 10}})
    with writing(lake.service.engine) as connection:
        for gib_hours in (7, 4):
            # The first of these attempts no longer counts in the middle of the forecast.
            attempt_figures.add(
                connection, TABLE, JobKind.COMPACTION, Figures(1, 60.0, 1, gib_hours * 3600.0), lake.clock()
            )
            lake.clock.advance(600)
    lake.clock.advance(86_400 - 75 * 60)
    lake.run(40)
    assert not [job for job in lake.done if job.kind is JobKind.COMPACTION]
    with reading(lake.service.engine) as connection:
        now = lake.clock()
        # A forecast repeats the commits of as long before.
        found = what_if(
            connection, Edit({}, table_ids=(TABLE,)), Period(now, now + timedelta(minutes=30), now), Fleet()
        )
        early = what_if(
            connection, Edit({}, table_ids=(TABLE,)), Period(now, now + timedelta(minutes=12), now), Fleet()
        )
    assert found.caution is None
    assert not [each for each in early.now.kinds if each.kind is JobKind.COMPACTION]
    lake.run(30)
    foreseen = {each.kind: each.jobs for each in found.now.kinds}
    assert abs(foreseen[JobKind.COMPACTION] - done(lake, JobKind.COMPACTION, now)) <= 1
    assert done(lake, JobKind.COMPACTION, now) > 0


@pytest.mark.mostly_sqlite
def test_a_forecast_knows_the_budget_of_a_pattern_and_what_is_left_of_it(lake: Lake) -> None:
    # Each job takes 10 s.
    budget = {"worker_hours_per_day": 70 / 3600, "carry_over_days": 0}
    policy_registry.put_pattern(lake.service.engine, lake.clock, "tbl_*", precedence=0, settings={"budget": budget})
    midnight = lake.clock().replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    lake.clock.advance((midnight - lake.clock()).total_seconds() - 60 * 60)
    lake.run(30)
    before = len(lake.done)
    assert 0 < before < 7
    now = lake.clock()
    with reading(lake.service.engine) as connection:
        period = Period(now, now + timedelta(minutes=29), now)
        found = what_if(connection, Edit({"budget": {"worker_hours_per_day": 10}}, table_ids=(TABLE,)), period, Fleet())
    assert found.caution is None
    lake.run(29)
    assert len(lake.done) - before == found.now.jobs == 7 - before
    # The table's own budget would have been another one.
    assert found.new.jobs > found.now.jobs


@pytest.mark.mostly_sqlite
def test_a_simulation_knows_the_budgets_of_worker_groups(lake: Lake) -> None:
    lake.run(30)
    before, begin = len(lake.done), lake.clock()
    lake.run(30)
    period = Period(begin, lake.clock(), lake.clock())
    # Each job takes 10 s. The hours of today and those that the day before has left are enough for three more jobs.
    fleet = Fleet(worker_hours_by_group={"day": (before + 3) * 10 / 2 / 3600})

    def jobs_in(group: str) -> tuple[int, str | None]:
        with reading(lake.service.engine) as connection:
            found = what_if(connection, Edit({"worker_group": group}, table_ids=(TABLE,)), period, fleet)
        return found.new.jobs, found.caution

    unbounded, caution = jobs_in("night")
    assert (jobs_in("day"), caution) == ((3, None), None)
    assert unbounded > 3
    lake.service.register("tbl_2")
    policy_registry.put_pattern(
        lake.service.engine, lake.clock, "tbl_2", precedence=0, settings={"worker_group": "day"}
    )
    left_out = (
        "the budget of the tables of worker group 'day' is not simulated: 1 of them are not part of this simulation"
    )
    assert jobs_in("day") == (unbounded, left_out)


@pytest.mark.mostly_sqlite
def test_a_simulation_says_what_it_leaves_out(lake: Lake) -> None:
    lake.run(30)
    pausing.pause(lake.service.engine, lake.service.notifier, lake.clock, by="ada", reason="")
    now = lake.clock()
    lake.service.register("tbl_2")
    settings = {"budget": {"worker_hours_per_day": 1}}
    policy_registry.put_pattern(lake.service.engine, lake.clock, "tbl_*", precedence=0, settings=settings)
    edit = Edit({}, table_ids=(TABLE,))
    with reading(lake.service.engine) as connection:
        ahead = what_if(connection, edit, Period(now, now + timedelta(minutes=30), now), Fleet())
        past = what_if(connection, edit, Period(now - timedelta(minutes=30), now, now), Fleet())
    not_simulated = (
        "the budget of the tables of pattern tbl_* is not simulated: 1 of them are not part of this simulation"
    )
    assert ahead.caution == f"{not_simulated}; all upkeep is paused, but the simulation starts jobs"
    assert (past.caution or "").startswith(not_simulated)
    assert "paused" not in (past.caution or "")


@pytest.mark.mostly_sqlite
def test_commits_during_a_compaction_are_left_to_the_next_one(lake: Lake) -> None:
    lake.poll()
    now = lake.clock()
    commits = [
        Commit(
            TABLE,
            f"{now - timedelta(seconds=begun):%Y%m%d%H%M%S}000",
            "commit" if operation == COMPACTION else "deltacommit",
            f"{now - timedelta(seconds=done):%Y%m%d%H%M%S}000",
            *([now - timedelta(seconds=done)] * 2),
            *(operation, 9, 0, MIB),
            file_groups=1,
        )
        for begun, done, operation in (
            (900, 890, "UPSERT"),
            (800, 400, COMPACTION),
            (700, 690, "UPSERT"),
            (200, 190, "UPSERT"),
        )
    ]
    with writing(lake.service.engine) as connection:
        commit_store.record(connection, sorted(commits, key=lambda each: each.completed_at), now)
    with reading(lake.service.engine) as connection:
        tables = {TABLE: (Subject(TABLE), Policy())}
        past = past_store.read(connection, tables, now - timedelta(seconds=100), now, now)
    assert past.pasts[TABLE].ran[JobKind.COMPACTION].commits == 2


@pytest.mark.mostly_sqlite
def test_a_pattern_is_simulated_for_the_tables_whose_policy_would_change(lake: Lake) -> None:
    lake.run(30)
    begin = lake.clock() - timedelta(minutes=30)
    with reading(lake.service.engine) as connection:
        period = Period(begin, lake.clock(), lake.clock())
        paused = what_if(connection, Edit({"paused": True}, "tbl_*"), period, Fleet())
        other = what_if(connection, Edit({"paused": True}, "other_*"), period, Fleet())
        same = what_if(connection, Edit({"paused": False}, "tbl_*"), period, Fleet())
    assert (paused.new.jobs, list(paused.names)) == (0, [TABLE])
    assert paused.now.jobs > 0
    assert (other.names, same.names) == ({}, {})
    assert other.text == "No table would have another policy."


def test_a_simulation_is_answered_over_rest(client: TestClient, table_id: str, clock: FakeClock) -> None:
    answer = client.post(
        "/v1/policies/simulate", json={"policy": {"compaction": {"commits": 12}}, "tables": [table_id]}
    )
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert (found["tables"], found["commits"], found["known_since"]) == (1, 0, None)
    assert found["text"] == "No commits of 1 table are known in this period."
    assert found["from"] == "2025-12-18T00:00:00Z"
    ahead = {"policy": {}, "tables": [table_id], "to": "2026-01-02T00:00:00Z"}
    found = client.post("/v1/policies/simulate", json=ahead).json()
    assert (found["from"], found["to"]) == ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z")
    assert client.post("/v1/policies/simulate", json={"policy": {}, "tag": "team=shop"}).json()["tables"] == 0
    answer = client.post("/v1/policies/simulate", json={"policy": {}, "tables": ["tbl_none"]})
    assert (answer.status_code, answer.json()["type"]) == (404, "/problems/table-not-found")
    answer = client.post("/v1/policies/simulate", json={"policy": None, "pattern": "x"})
    assert (answer.status_code, answer.json()["type"]) == (404, "/problems/policy-not-found")


@pytest.mark.parametrize(
    "body",
    [
        {"policy": {}},
        {"policy": {}, "tag": "a", "pattern": "b"},
        {"policy": None, "tables": ["tbl_1"]},
        {"policy": {"compaction": {"commits": 0}}, "pattern": "*"},
        {"policy": {}, "pattern": "*", "from": "2026-01-02T00:00:00Z"},
        {"policy": {}, "pattern": "*", "from": "2025-12-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"},
        {"policy": {}, "pattern": "*", "tabels": []},
    ],
)
def test_a_simulation_of_something_impossible_is_refused(client: TestClient, body: dict[str, Any]) -> None:
    answer = client.post("/v1/policies/simulate", json=body)
    assert (answer.status_code, answer.json()["type"]) == (422, "/problems/params-invalid")


@pytest.mark.mostly_sqlite
def test_simulations_are_bounded(
    client: TestClient, app_context: AppContext, table_id: str, monkeypatch: pytest.MonkeyPatch, lake: Lake
) -> None:
    body = {"policy": {}, "tables": [table_id], "from": "2025-01-01T00:00:00Z"}
    answer = client.post("/v1/policies/simulate", json=body)
    assert (answer.status_code, answer.json()["type"]) == (422, "/problems/simulation-too-large")
    assert answer.json()["detail"] == "The period has 365 days; 90 are allowed."
    begin = lake.clock()
    lake.run(10)
    monkeypatch.setattr(past_store, "MOST_COMMITS", 3)
    with pytest.raises(Exception, match="more than 3 commits"):
        simulate(lake, {}, begin)


def test_a_simulation_that_takes_too_long_is_ended(app_context: AppContext, table_id: str) -> None:
    def raise_timeout(*_: object) -> WhatIf:
        raise ReadTimedOutError("Reading the table took longer than 120 seconds.")

    with TestClient(create_app(changed(app_context, simulator=raise_timeout)), base_url="http://127.0.0.1") as client:
        answer = client.post("/v1/policies/simulate", json={"policy": {}, "tables": [table_id]})
    assert (answer.status_code, answer.json()["type"]) == (422, "/problems/simulation-too-large")


def test_a_reader_may_simulate(client: TestClient, table_id: str, make_token: Callable[..., dict[str, str]]) -> None:
    body = {"policy": {}, "tables": [table_id]}
    headers = make_token(Role.READER)
    assert client.post("/v1/policies/simulate", json=body, headers=headers).status_code == 200
    assert client.post("/v1/policies/simulate", json=body).status_code == 401


def test_the_command_line_draws_both_policies(tmp_path: Path) -> None:
    with serving_command_line(tmp_path) as cli:
        table_id = cli.polled_table("orders")
        now = utc_now()
        commits = [
            Commit(table_id, f"{at:%Y%m%d%H%M%S}000", "deltacommit", None, at, at, "UPSERT", 9, 0, MIB)
            for at in (now - timedelta(minutes=5 * number) for number in range(100, 0, -1))
        ]
        with writing(cli.serving.engine) as connection:
            commit_store.record(connection, map(changed_groups, commits), now)
            save_poll(
                connection,
                TableSnapshot(table_id, now, TableType.MERGE_ON_READ, (PartitionState("", base_bytes=99 * MIB),)),
            )
        policy = tmp_path / "new.yaml"
        policy.write_text("compaction:\n  commits: 20\n")
        shown = cli.run("policy", "simulate", "orders", "-f", str(policy), "--last", "1d").stdout
        assert " jobs instead of " in shown
        assert "compaction" in shown
        assert "█" in shown
        found = cli.json("policy", "simulate", "compaction.commits=20", "--last", "1d")
        assert (found["tables"], found["commits"]) == (1, 100)
        # No job really ran, and only the last hours of the day are known.
        assert found["error"] is None
        jobs = {each["kind"]: each["jobs"] for each in found["new"]["kinds"]}
        # The service polls once an hour, at a minute that follows from the table's id: a job is due every two hours.
        assert jobs["compaction"] in (3, 4)
        assert "Nothing to simulate" in cli.run("policy", "simulate", "orders", code=2).stderr
        policy.write_text("- 1\n")
        assert "is not an object of settings" in cli.run("policy", "simulate", "-f", str(policy), code=2).stderr
