"""Deletes old rows, so that no table of the database grows without limit."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

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


def run_once(engine: Engine, clock: Clock, keep: Keep) -> Counter[str]:
    """Deletes old rows, and returns the number of deleted rows of each kind. Every replica may do this at any time.
    Active jobs, the newest commit of a table and undelivered events stay. An idempotency key is deleted with its
    job."""
    pruned: Counter[str] = Counter()
    for name, prune, before in _steps(clock(), keep):
        count = _BATCH_ROWS
        while count >= _BATCH_ROWS:
            with writing(engine) as connection:
                count = prune(connection, before, _BATCH_ROWS)
            pruned[name] += count
    pruned = +pruned
    if pruned:
        log.info("Deleted old rows: %s", ", ".join(f"{count} {name}" for name, count in pruned.items()))
    return pruned


def _steps(now: datetime, keep: Keep) -> Iterator[tuple[str, Callable[[Connection, datetime, int], int], datetime]]:
    """Yields for each kind of rows: the name, the function that deletes at most a given number of such rows, and the
    time before which such rows are old."""
    yield "jobs", job_store.prune, now - keep.history
    yield "decisions", decision_store.prune, now - keep.history
    yield "incidents", store.prune, now - keep.history
    yield "delegated_plans", plan_store.prune, now - keep.history
    yield "workers", worker_store.prune, now - _WORKERS
    yield "commits", commit_store.prune, now - keep.commits
    yield "events", outbox.prune, now - keep.events
    yield "audit_entries", audit_store.prune, now - keep.audit
    yield "audit_entries", lambda *given: audit_store.prune_refused(given[0], _MOST_REFUSED_CALLS, given[2]), now
    yield "sessions", session_store.prune, now
    yield "samples", partial(sample_store.prune, now=now), now - keep.samples
    yield "figures", attempt_figures.prune, now - keep.samples
    yield "costs", cost_store.prune, now - keep.samples
    yield "fleet_samples", partial(fleet_samples.prune, now=now), now - keep.samples
    yield "reads", read_store.prune, now
    yield "objective_hours", objective_store.prune, now - _OBJECTIVE_HOURS
