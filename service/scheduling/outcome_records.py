"""Records what decisions find out about the outcome: what jobs have gained, whether the objective is kept, and which
tables wait because their reads are among the few that may cost more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.catalog import decision_times
from service.db.engine import writing
from service.outcome import objective_store, read_share_store
from service.outcome.objective import check
from service.queue import gain_store

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection, Engine

    from service.scheduling.decision_inputs import DecisionInputs


def record(connection: Connection, table_id: str, inputs: DecisionInputs) -> None:
    now, objective, snapshot = inputs.situation.now, inputs.objective, inputs.snapshot
    if inputs.has_gains:
        overhead = objective.cost_of_reads(snapshot).of_logs
        gain_store.record_overhead(connection, table_id, overhead, snapshot.taken_at)
    if not objective.settings.is_set:
        return
    found, share = check(objective, snapshot, now, merges_files=inputs.policy.clustering.enabled), objective.share
    level, reads = (share.level, objective.reads.per_day) if share else (None, None)
    objective_store.record(connection, table_id, found, now, level=level, reads_per_day=reads)
    if share:
        share.may_wait = 1 - (objective.settings.of_reads or 1.0)
        share.note(table_id, found.waiting)


def wake_displaced(engine: Engine, now: datetime) -> None:
    """Makes decisions due about tables that can no longer wait, because the last decisions let tables wait that need
    more work per read."""
    if found := read_share_store.displaced(engine):
        with writing(engine) as connection:
            decision_times.wake_each(connection, dict.fromkeys(sorted(found), now))
