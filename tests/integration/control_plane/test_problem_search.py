"""Tests that an incremental search for problems finds the same as a full one, whatever happens in between."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from jobs.contract import JobKind, Problem
from service.catalog import table_store, watch_store
from service.catalog.registration import Registration
from service.db import schema
from service.db.engine import writing
from service.health import table_store as facts_store
from service.health.problem_search import ProblemSearch
from service.incidents import store as incident_store
from service.incidents.incident import Incident, IncidentKind, IncidentState
from service.lake.snapshot import NotWritable, PartitionState, Pending, Since
from service.lake.table_lock import PolledLock
from service.policies import pause_store
from service.policies import store as policy_store
from service.policies.policy import PatternPolicy, Pause, TableLevel
from service.queue import breaker_store, job_store, lock_sighting_store
from service.queue.breaker import Breaker
from service.queue.job import Job
from service.scheduling import decision_store
from service.scheduling.decision import Decision, Verdict
from tests.integration.control_plane.planning import save_poll
from tests.integration.control_plane.test_problems_of_many import ill
from tests.unit.control_plane.snapshots import a_snapshot
from tests.unit.control_plane.test_validity import without_seconds

if TYPE_CHECKING:
    from service.health.problem_search import Search
    from tests.integration.control_plane.conftest import FakeClock

SPANS = (1, 7, 30, 61, 400, 1000, 4000, 12_000, 50_000, 100_000)
ERROR = Problem("storage-unavailable", "The storage cannot be reached", "It is away.", "Start it.")


@dataclass
class Life:
    """Lets random events happen to tables."""

    engine: sa.Engine
    clock: FakeClock
    chance: random.Random
    number: int = 0

    def step(self) -> None:
        with writing(self.engine) as connection:
            tables = list(connection.execute(sa.select(schema.tables.c.id).order_by(schema.tables.c.id)).scalars())
            events = [self.register, self.patterns, self.pause] if len(tables) < 12 else [self.patterns, self.pause]
            of_table = [
                *(self.poll, self.fail, self.claim, self.decide, self.job, self.end, self.breaker, self.lock),
                *(self.incident, self.level, self.rename, self.unregister, self.poll, self.decide, self.end),
            ]
            if tables and self.chance.random() < 0.8:
                self.chance.choice(of_table)(connection, self.chance.choice(tables))
            else:
                self.chance.choice(events)(connection)

    def ago(self) -> Any:
        return self.clock() - timedelta(seconds=self.chance.choice(SPANS))

    def maybe(self, value: Any) -> Any:
        return value if self.chance.random() < 0.4 else None

    def register(self, connection: sa.Connection) -> None:
        self.number += 1
        name, now = f"t{self.number}", self.clock()
        tags = {"tier": self.chance.choice(["gold", "lead"])}
        table = Registration(f"tbl_{self.number}", f"/lake/{name}", name, now, now, tags=tags)
        table_store.register(connection, table)

    def unregister(self, connection: sa.Connection, table_id: str) -> None:
        if self.chance.random() < 0.3:
            table_store.unregister(connection, table_id)

    def rename(self, connection: sa.Connection, table_id: str) -> None:
        table = table_store.get(connection, table_id)
        tags = {"tier": self.chance.choice(["gold", "lead"])}
        table_store.change(connection, replace(table, tags=tags, owner=self.maybe("ada")))

    def patterns(self, connection: sa.Connection) -> None:
        pattern = self.chance.choice(["*", "t1*", "tag:tier=gold", "owner:ada"])
        known = {each.pattern for each in policy_store.every(connection)}
        if pattern in known and self.chance.random() < 0.5:
            policy_store.delete(connection, pattern)
            return
        settings = {"compaction": {"commits": self.chance.choice([2, 5, 50]), "enabled": self.chance.random() < 0.5}}
        now = self.clock()
        policy_store.put(connection, PatternPolicy(pattern, settings, now, now))

    def level(self, connection: sa.Connection, table_id: str) -> None:
        settings = {"cleaning": {"commits": self.chance.choice([2, 9]), "enabled": self.chance.random() < 0.5}}
        policy_store.put_table(connection, table_id, TableLevel(settings, self.clock()))

    def pause(self, connection: sa.Connection) -> None:
        if self.chance.random() < 0.5:
            pause_store.pause(connection, Pause(self.ago(), "ada", "holidays"))
        else:
            pause_store.resume(connection)

    def poll(self, connection: sa.Connection, table_id: str) -> None:
        chance, now = self.chance, self.clock()
        state = PartitionState(
            "p",
            file_groups=8,
            base_files=chance.choice([8, 800]),
            base_bytes=2**30,
            log_bytes=chance.choice([0, 2**20, 9 * 2**30]),
            small_files=chance.choice([0, 700]),
            freed_files=chance.choice([0, 9]),
            freed_bytes=60 * 2**30,
        )
        refused = NotWritable("storage-read-only", "It is read-only", "", "Mount it.", self.ago(), "job_9")
        snapshot = a_snapshot(
            state,
            table_id=table_id,
            taken_at=now,
            last_commit_at=now,
            first_commit_at=self.ago(),
            since_compaction=Since(chance.choice([0, 5, 40]), 0, self.maybe(self.ago())),
            since_cleaning=Since(chance.choice([0, 5, 40])),
            timeline_commits=chance.choice([30, 400]),
            pending=(
                Pending("003", "compaction", "requested", self.ago(), is_plan=True),
                Pending("005", "deltacommit", "inflight", self.ago(), self.maybe(self.ago())),
            ),
            lock=self.maybe(PolledLock(self.ago(), "writer-7")),
            not_writable=self.maybe(refused),
            vanished=("001",),
            vanished_since=self.maybe(self.ago()),
        )
        save_poll(connection, snapshot)
        watch = watch_store.get(connection, table_id)
        polled = replace(watch, looked_at=now, gap_at=self.maybe(self.ago()))
        watch_store.record_polls(connection, [polled])

    def claim(self, connection: sa.Connection, table_id: str) -> None:
        later = self.clock() + timedelta(minutes=1)
        connection.execute(
            schema.watches.update().where(schema.watches.c.table_id == table_id).values(next_poll_at=later)
        )

    def fail(self, connection: sa.Connection, table_id: str) -> None:
        now = self.clock()
        watch_store.record_failure(connection, table_id, error=ERROR, now=now, next_poll_at=now + timedelta(minutes=5))

    def decide(self, connection: sa.Connection, table_id: str) -> None:
        chance, now = self.chance, self.clock()
        kind = chance.choice([JobKind.COMPACTION, JobKind.CLEANING, JobKind.ARCHIVAL])
        verdict = chance.choice([Verdict.WAIT, Verdict.SKIP, Verdict.SUGGEST])
        code = chance.choice(["paused", "off", "plan-unusable"])
        decision = Decision(
            kind,
            verdict,
            code,
            f"it is so at {now}",
            now,
            now,
            wanted_since=self.ago(),
            warning=self.maybe("It harms."),
        )
        decision_store.record(connection, table_id, [decision], decision_store.latest(connection, table_id))

    def job(self, connection: sa.Connection, table_id: str) -> None:
        self.number += 1
        kind = self.chance.choice([JobKind.AUDIT, JobKind.DIAGNOSIS, JobKind.CLEANING])
        active = sa.select(schema.jobs.c.id).where(
            schema.jobs.c.table_id == table_id, schema.jobs.c.kind == kind.value, job_store.is_active()
        )
        if connection.execute(active).first() is None:
            now = self.clock()
            job_store.submit(connection, Job(f"job_{self.number}", table_id, kind, now, now))

    def end(self, connection: sa.Connection, table_id: str) -> None:
        jobs, now = schema.jobs, self.clock()
        mine = connection.execute(
            sa.select(jobs.c.id).where(jobs.c.table_id == table_id, job_store.is_active())
        ).first()
        if mine:
            state = self.chance.choice(["failed", "succeeded", "unknown"])
            error = ERROR.to_json() if state == "failed" else None
            values = {"state": state, "finished_at": now, "error": error}
            connection.execute(jobs.update().where(jobs.c.id == mine.id).values(values))

    def breaker(self, connection: sa.Connection, table_id: str) -> None:
        now = self.clock()
        again = now + timedelta(seconds=self.chance.choice(SPANS))
        failures = self.chance.choice([1, 2])
        found = Breaker(table_id, JobKind.CLEANING, "default", failures, 9.0, self.ago(), now, again, ERROR)
        breaker_store.record(connection, found)

    def lock(self, connection: sa.Connection, table_id: str) -> None:
        lock_sighting_store.watch(connection, [table_id], self.clock())
        looks = schema.lock_looks
        values = {"holds_back": True, "state": "held", "looked_at": self.clock(), "holder": "x", "since": self.ago()}
        connection.execute(looks.update().where(looks.c.table_id == table_id).values(values))

    def incident(self, connection: sa.Connection, table_id: str) -> None:
        standing = incident_store.unresolved(connection, table_id)
        if standing and self.chance.random() < 0.5:
            closed = replace(standing[0], state=IncidentState.REPAIRED, closed_at=self.clock(), because="it is well")
            incident_store.close(connection, closed)
            return
        self.number += 1
        kind = self.chance.choice([IncidentKind.STALE_WRITE, IncidentKind.LATE_FILES])
        found = Incident(f"inc_{self.number}", table_id, kind, str(self.number), IncidentState.OPEN, self.clock())
        incident_store.add(connection, [found])


def require_same(one: Search, other: Search) -> None:
    found, all_ = ([without_seconds(each) for each in each.found.problems] for each in (one, other))
    assert found == all_
    assert one.found.not_computed == other.found.not_computed
    assert {key: each.backlog for key, each in one.tables.items()} == {
        key: each.backlog for key, each in other.tables.items()
    }


@pytest.mark.parametrize("seed", [0, *(pytest.param(each, marks=pytest.mark.exhaustive) for each in range(1, 9))])
def test_an_incremental_search_finds_the_same_as_a_full_one_whatever_happens(
    engine: sa.Engine, clock: FakeClock, seed: int
) -> None:
    life = Life(engine, clock, random.Random(seed))
    ongoing, kinds = ProblemSearch(), set()
    for _ in range(40):
        for _ in range(life.chance.randrange(6)):
            life.step()
        clock.advance(life.chance.choice([0.5, *SPANS[:7]]))
        found = ongoing.run(engine, clock())
        require_same(found, ProblemSearch().run(engine, clock()))
        kinds |= {each.kind for each in found.found.problems}
    assert len(kinds) > 8


def test_a_changed_policy_is_in_the_problems_of_the_tables_that_it_selects(engine: sa.Engine, clock: FakeClock) -> None:
    ill(engine, clock, range(3))
    search, now = ProblemSearch(), clock()
    search.run(engine, clock())
    settings = {"compaction": {"commits": 7}}
    with writing(engine) as connection:
        policy_store.put(connection, PatternPolicy("t1", settings, now, now))
    found = search.run(engine, clock())
    require_same(found, ProblemSearch().run(engine, clock()))
    thresholds = {each.evidence["threshold"] for each in found.found.problems if each.kind == "compaction-behind"}
    assert thresholds == {5, 7}
    with writing(engine) as connection:
        policy_store.delete(connection, "t1")
    require_same(search.run(engine, clock()), ProblemSearch().run(engine, clock()))


def test_problems_of_unchanged_tables_are_not_computed_again(
    engine: sa.Engine, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    ill(engine, clock, range(6))
    clock.advance(10)
    read: list[str] = []
    original = facts_store.facts

    def read_and_record(connection: Any, now: Any, table_ids: Any, *rest: Any) -> Any:
        read.extend(table_ids)
        return original(connection, now, table_ids, *rest)

    monkeypatch.setattr(facts_store, "facts", read_and_record)
    search = ProblemSearch()
    search.run(engine, clock())
    assert sorted(read) == [f"tbl_{number}" for number in range(6)]
    clock.advance(0.01)
    read.clear()
    search.run(engine, clock())
    assert read == []
    with writing(engine) as connection:
        watch = watch_store.get(connection, "tbl_3")
        watch_store.record_polls(connection, [replace(watch, looked_at=clock())])
    search.run(engine, clock())
    assert read == ["tbl_3"]
