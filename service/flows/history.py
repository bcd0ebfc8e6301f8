"""Forgets what is old, so that nothing grows without bound."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from service.store import decisions, jobs, workers
from service.store.engine import writing

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from service.model.clock import Clock

_AT_ONCE = 500
"""Rows of one transaction: few enough that others need not wait long."""

_WORKERS = timedelta(days=1)
"""Each worker process has an id of its own, so most of those that were ever seen are gone for good."""


@dataclass(frozen=True)
class Pruned:
    """How many rows went of each."""

    jobs: int = 0
    decisions: int = 0
    workers: int = 0


def run_once(engine: Engine, clock: Clock, keep: timedelta) -> Pruned:
    """Jobs that ended and decisions that were last repeated longer ago than `keep` go, active jobs never.

    An idempotency key is forgotten with its job.
    """
    before = clock() - keep
    with writing(engine) as connection:
        gone = workers.prune(connection, clock() - _WORKERS)
    old_jobs = old_decisions = 0
    is_more = True
    while is_more:
        with writing(engine) as connection:
            some_jobs = jobs.prune(connection, before, _AT_ONCE)
            some_decisions = decisions.prune(connection, before, _AT_ONCE)
        old_jobs += some_jobs
        old_decisions += some_decisions
        is_more = _AT_ONCE in (some_jobs, some_decisions)
    return Pruned(old_jobs, old_decisions, gone)
