"""Decisions about cleanings and the cleanings themselves find the same files that consumers and writes in flight
need."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import JobKind
from jobs.protocol.consumers import first_needed
from service.catalog import commit_store, consumer_store
from service.catalog.consumer import Consumer
from service.catalog.registration import Writers
from service.db.engine import reading, writing
from service.lake.commit import Commit
from service.lake.snapshot import PartitionState, Pending, Since, TableSnapshot
from service.lake.table import TableType
from service.policies import policy_registry
from service.scheduling.decision_inputs import inputs_of
from tests.integration.control_plane.planning import Service, save_poll

if TYPE_CHECKING:
    import sqlalchemy as sa

    from tests.integration.control_plane.conftest import FakeClock

CLEANING = JobKind.CLEANING


def record(engine: sa.Engine, now: datetime, commits: list[tuple[str, str]]) -> None:
    """Records commits with requested and completion times."""
    found = [Commit("tbl_1", requested, "deltacommit", at, now, now, "UPSERT") for requested, at in commits]
    with writing(engine) as connection:
        commit_store.record(connection, found, now)


@pytest.mark.parametrize("seed", range(5))
def test_a_consumer_needs_what_the_job_keeps_for_it(engine: sa.Engine, clock: FakeClock, seed: int) -> None:
    Service(engine, clock).register()
    rng = Random(seed)
    requested = sorted(rng.sample(range(100, 1000), 20))
    commits = sorted((at + rng.randint(1, 200), at) for at in requested)
    record(engine, clock(), [(f"{at:05}", f"{completed:05}") for completed, at in commits])
    known: list[Any] = [SimpleNamespace(write=SimpleNamespace(instant=f"{at:05}")) for _, at in commits]
    for seen in [*requested, *rng.sample(range(1200), 30)]:
        place = first_needed(known, [Consumer("tbl_1", "copy", f"{seen:05}", clock(), clock())])  # type: ignore[list-item]
        needed = [each.write.instant for each in known[place:]]
        with reading(engine) as connection:
            found = commit_store.first_needed(connection, "tbl_1", f"{seen:05}")
        # Before the first known commit nothing is known, so an earlier instant means the same.
        assert max(found, f"{requested[0]:05}") == min(needed), seen


@pytest.mark.mostly_sqlite
@pytest.mark.parametrize("retries", [False, True])
def test_the_decision_says_who_needs_the_files_out_of_use(engine: sa.Engine, clock: FakeClock, retries: bool) -> None:
    service = Service(engine, clock)
    service.register(writers=Writers(retry_conflicts=retries))
    policy_registry.put_table(engine, clock, "tbl_1", {"cleaning": {"commits": 1, "retain": 1}})
    record(engine, clock(), [("003", "004"), ("005", "006"), ("007", "008")])

    def decision_beside(*pending: Pending) -> str:
        old = PartitionState("", 4, 4, 4096, freed_files=4, freed_bytes=4096, freed_since="005")
        with writing(engine) as connection:
            rest = {"last_commit_at": clock(), "since_cleaning": Since(3)}
            save_poll(connection, TableSnapshot("tbl_1", clock(), TableType.COPY_ON_WRITE, (old,), pending, **rest))
        with reading(engine) as connection:
            inputs = inputs_of(connection, "tbl_1", clock())
        assert inputs is not None
        return inputs.proposals[CLEANING].because

    def consumer(instant: str) -> None:
        with writing(engine) as connection:
            consumer_store.put(connection, Consumer("tbl_1", "copy", instant, clock(), clock()))

    def write(instant: str, silent: int | None = 0, action: str = "commit") -> Pending:
        beat = None if silent is None else clock() - timedelta(seconds=silent)
        return Pending(instant, action, "INFLIGHT", clock(), beat, is_plan=action == "clustering")

    kept = "but all 4 files out of use are kept: "
    assert kept not in decision_beside()
    consumer("003")
    assert decision_beside().endswith(f"{kept}consumer 'copy' needs them, because it has read only up to 003")
    consumer("007")
    assert kept not in decision_beside()
    assert decision_beside(write("006")).endswith(f"{kept}the pending 006 may need them")
    assert kept in decision_beside(write("006", action="clustering"))
    # The commit 007 follows the one that took files out of use, and precedes the write.
    assert kept not in decision_beside(write("0071"))
    # Plans of compactions do not count, and a cleaning rolls back a write whose writer is dead.
    assert kept not in decision_beside(write("006", action="compaction"))
    assert kept not in decision_beside(write("006", silent=601))
    # A writer that retries conflicts has a heartbeat, or has abandoned the write.
    assert (kept in decision_beside(write("006", silent=None))) == (not retries)
