"""Tests that a simulation foresees half an hour of a running fleet, whose jobs share one slot, before it happens."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import JobKind
from service.catalog import commit_store, sample_store
from service.catalog.sample import Sample
from service.db.engine import reading, writing
from service.lake.commit import COMPACTION, Commit
from service.policies import policy_registry
from service.simulation import simulator
from service.simulation.edit import Edit
from service.simulation.fleet import Fleet
from service.simulation.simulated_table import SimulatedTable
from service.simulation.what_if import Period, what_if
from tests.integration.control_plane.planning import Service, save_poll, snapshot_of

if TYPE_CHECKING:
    import sqlalchemy as sa

    from service.queue.job import Job
    from tests.integration.control_plane.conftest import FakeClock

MIB = 1024**2
TICK = 10
# Cleanings are due long before ten commits have followed the first compaction.
RETAIN = 10
OLD = {"cleaning": {"retain": RETAIN, "commits": 4, "min_interval_seconds": 60}}
NEW = {**OLD, "compaction": {"commits": 8}}
KINDS = (JobKind.COMPACTION, JobKind.CLEANING)


@dataclass
class Written:
    """A merge-on-read table to which a writer commits `size` bytes every `every` seconds. A compaction rewrites all of
    its four base files."""

    id: str
    every: int
    size: int
    base_bytes: int
    seconds: int  # The duration of each of its jobs.
    log_bytes: int = 0
    commits: int = 0
    last: dict[JobKind, tuple[int, datetime]] = field(default_factory=dict)
    instants: list[str] = field(default_factory=list)  # The instants of commits and compactions.
    # For each old version the instant that replaced it, and its bytes.
    versions: list[tuple[str, int]] = field(default_factory=list)

    @property
    def freed(self) -> int:
        return sum(size for _, size in self.versions)

    @property
    def kept(self) -> list[tuple[str, int]]:
        """Returns the versions that a cleaning keeps: those that one of the last commits has replaced."""
        return [each for each in self.versions if sum(later > each[0] for later in self.instants) < RETAIN]


class World:
    """The writers, the polls once a minute, the scheduler, and a worker with one slot."""

    def __init__(self, service: Service, clock: FakeClock, tables: list[Written]) -> None:
        self.service, self.clock = service, clock
        self.tables = {each.id: each for each in tables}
        self.running: tuple[Job, datetime] | None = None
        self.done: list[Job] = []
        self.peak = self.rewritten = 0
        self.freed: list[float] = []  # The number of versions that each cleaning has deleted.
        self.codes: Counter[str] = Counter()  # The codes of the decisions about cleanings.

    def run(self, minutes: int) -> None:
        end = self.clock() + timedelta(minutes=minutes)
        while self.clock() < end:
            second = int(self.clock().timestamp())
            for each in self.tables.values():
                if second % each.every == 0:
                    each.commits, each.log_bytes = each.commits + 1, each.log_bytes + each.size
                    self.record(each, "deltacommit", "UPSERT", each.size, self.clock())
            self.peak = max(self.peak, sum(each.log_bytes for each in self.tables.values()))
            if second % 60 == 0:
                for each in self.tables.values():
                    self.poll(each)
            self.work()
            self.service.plan()
            if second % 60 == 0:
                self.codes.update(self.service.decision(JobKind.CLEANING, each).code for each in self.tables)
            self.clock.advance(TICK)

    def work(self) -> None:
        if self.running and self.running[1] <= self.clock():
            self.end(self.running[0])
            self.running = None
        if self.running is None and (job := self.service.lease()):
            self.running = job, self.clock() + timedelta(seconds=self.tables[job.table_id].seconds)

    def end(self, job: Job) -> None:
        table = self.tables[job.table_id]
        began = job.leased_at or self.clock()
        if job.kind is JobKind.COMPACTION:
            # Logs that were committed meanwhile stay.
            meanwhile = sum(1 for at in range(int(began.timestamp()) + 1, int(self.clock().timestamp()) + 1)
                            if at % table.every == 0)  # fmt: skip
            left = meanwhile * table.size
            instant = self.record(table, "commit", COMPACTION, table.base_bytes, began)
            table.versions.append((instant, table.base_bytes + table.log_bytes - left))
            table.log_bytes = left
            table.last[job.kind] = (table.commits - meanwhile, self.clock())
            self.rewritten += table.base_bytes
        elif job.kind is JobKind.CLEANING:
            kept = table.kept
            self.freed.append(len(table.versions) - len(kept))
            table.versions = kept
            if self.freed[-1]:
                table.last[job.kind] = (table.commits, self.clock())
                self.record(table, "clean", None, 0, began)
        self.service.end(job)
        self.done.append(job)
        self.poll(table)

    def record(self, table: Written, action: str, operation: str | None, size: int, began: datetime) -> str:
        now = self.clock()
        instant = f"{began:%Y%m%d%H%M%S}{len(self.done) % 1000:03}"
        if operation:
            table.instants.append(instant)
        found = Commit(table.id, instant, action, None, now, now, operation, 9, 0, size, file_groups=4)
        with writing(self.service.engine) as connection:
            commit_store.record(connection, [found], now)
        return instant

    def poll(self, table: Written) -> None:
        since = min((instant for instant, _ in table.versions), default="")
        snapshot = snapshot_of(table.id, table, self.clock(), since)
        with writing(self.service.engine) as connection:
            save_poll(connection, snapshot)
            sample_store.record(connection, {table.id: Sample.of(snapshot)})


def fleet() -> list[Written]:
    """Returns tables whose jobs need about two thirds of the slot."""
    return [
        Written("t0", 30, 3 * MIB, 500 * MIB, 30),
        Written("t1", 60, 2 * MIB, 300 * MIB, 20),
        Written("t2", 60, 8 * MIB, 900 * MIB, 40),
        Written("t3", 120, 20 * MIB, 400 * MIB, 25),
        Written("t4", 240, MIB, 100 * MIB, 10),
    ]


@pytest.mark.exhaustive
@pytest.mark.mostly_sqlite
def test_half_an_hour_of_a_fleet_is_foreseen(
    engine: sa.Engine, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreseen: Counter[tuple[str, JobKind]] = Counter()
    freed: list[float] = []

    class Counted(SimulatedTable):
        def end(self, job: Job, *given: Any) -> None:
            if job.kind is JobKind.CLEANING:
                freed.append(self.taken[job.id].files)
            super().end(job, *given)
            if self.policy.compaction.commits == NEW["compaction"]["commits"] and job.kind in KINDS:
                foreseen[self.past.id, job.kind] += 1

    monkeypatch.setattr(simulator, "SimulatedTable", Counted)
    service = Service(engine, clock)
    world = World(service, clock, fleet())
    for each in world.tables:
        service.register(each)
        policy_registry.put_table(engine, clock, each, OLD)
    world.run(60)
    now = clock()
    with reading(engine) as connection:
        edit = Edit(NEW, table_ids=tuple(world.tables))
        found = what_if(connection, edit, Period(now, now + timedelta(minutes=30), now), Fleet())
    # The new policy is then made, and the same writes come again.
    for each in world.tables:
        policy_registry.put_table(engine, clock, each, NEW)
    world.done, world.peak, world.rewritten, world.freed = [], 0, 0, []
    world.codes.clear()
    world.run(30)

    really = Counter((job.table_id, job.kind) for job in world.done if job.kind in KINDS)
    both = really.keys() | foreseen.keys()
    assert {key: (foreseen[key], really[key]) for key in both if abs(really[key] - foreseen[key]) > 1} == {}
    # Cleanings wait while all old versions are kept, in the service and in the simulation.
    assert world.codes["all-kept"] > 30
    assert min(world.freed + freed) > 0
    assert found.new.rewritten_bytes == pytest.approx(world.rewritten, rel=0.1)
    assert max(each.log_bytes for each in found.new.points) == pytest.approx(world.peak, rel=0.15)
    assert found.new.jobs < found.now.jobs
