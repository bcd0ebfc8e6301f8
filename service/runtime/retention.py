"""Deletes old rows, so that no table of the database grows without limit."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Connection, Engine

from service.access import audit_store, session_store
from service.catalog import commit_store, sample_store
from service.db.engine import writing
from service.delegation import plan_store
from service.delivery import outbox
from service.incidents import store
from service.model.clock import Clock
from service.outcome import objective_store, read_store
from service.queue import attempt_figures, cost_store, job_store, worker_store
from service.reports import fleet_samples
from service.runtime.settings import Settings
from service.scheduling import decision_store

log = logging.getLogger(__name__)

# One transaction deletes at most this many rows, so that others do not wait long.
_BATCH_ROWS = 500
# Rows of workers are deleted after this time. A worker that starts again has another id.
_WORKERS = timedelta(days=1)
_OBJECTIVE_HOURS = timedelta(days=30)
# At most this many rows of refused calls are kept, the newest ones. There are more only after very many refused calls.
_MOST_REFUSED_CALLS = 10_000


@dataclass(frozen=True)
class Keep:
    """Retention times. `history` applies to ended jobs, decisions, closed incidents and delegated plans."""

    history: timedelta
    commits: timedelta
    events: timedelta
    audit: timedelta = timedelta(days=365)
    samples: timedelta = timedelta(days=365)

    @classmethod
    def of(cls, chosen: Settings) -> Keep:
        days = (chosen.history_days, chosen.commit_days, chosen.events_days, chosen.audit_days, chosen.sample_days)
        return cls(*(timedelta(days=each) for each in days))


@dataclass(frozen=True)
class Pruned:
    """Number of deleted rows of each kind."""

    jobs: int = 0
    decisions: int = 0
    incidents: int = 0
    delegated_plans: int = 0
    workers: int = 0
    commits: int = 0
    events: int = 0
    audit_entries: int = 0
    sessions: int = 0
    samples: int = 0
    figures: int = 0
    costs: int = 0
    fleet_samples: int = 0
    reads: int = 0
    objective_hours: int = 0

    def __str__(self) -> str:
        return ", ".join(f"{count} {name}" for name, count in dataclasses.asdict(self).items() if count) or "nothing"


def run_once(engine: Engine, clock: Clock, keep: Keep) -> Pruned:
    """Deletes old rows. Every replica may do this at any time. Active jobs, the newest commit of a table and
    undelivered events stay. An idempotency key is deleted with its job."""
    now = clock()

    def in_batches(delete: Callable[[Connection], int]) -> int:
        total = 0
        while True:
            with writing(engine) as connection:
                count = delete(connection)
            total += count
            if count < _BATCH_ROWS:
                return total

    pruned = Pruned(
        jobs=in_batches(lambda connection: job_store.prune(connection, now - keep.history, _BATCH_ROWS)),
        decisions=in_batches(lambda connection: decision_store.prune(connection, now - keep.history, _BATCH_ROWS)),
        incidents=in_batches(lambda connection: store.prune(connection, now - keep.history, _BATCH_ROWS)),
        delegated_plans=in_batches(lambda connection: plan_store.prune(connection, now - keep.history, _BATCH_ROWS)),
        workers=in_batches(lambda connection: worker_store.prune(connection, now - _WORKERS)),
        commits=in_batches(
            lambda connection: commit_store.prune(connection, before=now - keep.commits, limit=_BATCH_ROWS)
        ),
        events=in_batches(lambda connection: outbox.prune(connection, now - keep.events, _BATCH_ROWS)),
        audit_entries=in_batches(lambda connection: audit_store.prune(connection, now - keep.audit, _BATCH_ROWS))
        + in_batches(lambda connection: audit_store.prune_refused(connection, _MOST_REFUSED_CALLS, _BATCH_ROWS)),
        sessions=in_batches(lambda connection: session_store.prune(connection, now, _BATCH_ROWS)),
        samples=in_batches(lambda connection: sample_store.prune(connection, now, now - keep.samples, _BATCH_ROWS)),
        figures=in_batches(lambda connection: attempt_figures.prune(connection, now - keep.samples, _BATCH_ROWS)),
        costs=in_batches(lambda connection: cost_store.prune(connection, now - keep.samples, _BATCH_ROWS)),
        fleet_samples=in_batches(
            lambda connection: fleet_samples.prune(connection, now, now - keep.samples, _BATCH_ROWS)
        ),
        reads=in_batches(lambda connection: read_store.prune(connection, now, _BATCH_ROWS)),
        objective_hours=in_batches(
            lambda connection: objective_store.prune(connection, now - _OBJECTIVE_HOURS, _BATCH_ROWS)
        ),
    )
    if pruned != Pruned():
        log.info("Deleted old rows: %s", pruned)
    return pruned
