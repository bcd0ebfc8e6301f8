"""Forgets what is old, so that nothing grows without bound."""

from __future__ import annotations

import dataclasses
import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from service.catalog import commit_store
from service.db.engine import writing
from service.delivery import outbox
from service.incidents import store
from service.queue import job_store, worker_store
from service.scheduling import decision_store

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection, Engine

    from service.model.clock import Clock

log = logging.getLogger(__name__)

# Rows of one transaction: few enough that others need not wait long.
_AT_ONCE = 500
# Each worker process has an id of its own, so most of those that were ever seen are gone for good.
_WORKERS = timedelta(days=1)


@dataclass(frozen=True)
class Keep:
    """How long things are remembered: `history` is of ended jobs, decisions and closed incidents."""

    history: timedelta
    commits: timedelta
    events: timedelta


@dataclass(frozen=True)
class Pruned:
    """How many rows went of each."""

    jobs: int = 0
    decisions: int = 0
    incidents: int = 0
    workers: int = 0
    commits: int = 0
    events: int = 0

    def __str__(self) -> str:
        return ", ".join(f"{count} {name}" for name, count in dataclasses.asdict(self).items() if count) or "nothing"


def run_once(engine: Engine, clock: Clock, keep: Keep) -> Pruned:
    """Every replica may do this any time. Active jobs stay, the newest commit of a table, and what a webhook has yet to
    get. An idempotency key is forgotten with its job."""
    now = clock()

    def all_of(some: Callable[[Connection], int]) -> int:
        total = 0
        while True:
            with writing(engine) as connection:
                count = some(connection)
            total += count
            if count < _AT_ONCE:
                return total

    pruned = Pruned(
        jobs=all_of(lambda connection: job_store.prune(connection, now - keep.history, _AT_ONCE)),
        decisions=all_of(lambda connection: decision_store.prune(connection, now - keep.history, _AT_ONCE)),
        incidents=all_of(lambda connection: store.prune(connection, now - keep.history, _AT_ONCE)),
        workers=all_of(lambda connection: worker_store.prune(connection, now - _WORKERS)),
        commits=all_of(lambda connection: commit_store.prune(connection, before=now - keep.commits, limit=_AT_ONCE)),
        events=all_of(lambda connection: outbox.prune(connection, now - keep.events, _AT_ONCE)),
    )
    if pruned != Pruned():
        log.info("Forgotten: %s", pruned)
    return pruned
