"""Forgets what is old, so that nothing grows without bound."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.store import commits
from service.store.engine import writing

if TYPE_CHECKING:
    from datetime import timedelta

    from sqlalchemy import Engine

    from service.model.clock import Clock

log = logging.getLogger(__name__)

# Of one transaction: it must not keep others that write waiting for long.
_AT_ONCE = 1000


@dataclass(frozen=True)
class Pruned:
    commits: int = 0

    def __str__(self) -> str:
        return f"{self.commits} commits forgotten"


def run_once(engine: Engine, clock: Clock, *, keep_commits: timedelta) -> Pruned:
    """Every replica may do this at any time."""
    before = clock() - keep_commits
    forgotten = 0
    while True:
        with writing(engine) as connection:
            some = commits.prune(connection, before=before, limit=_AT_ONCE)
        forgotten += some
        if some < _AT_ONCE:
            break
    pruned = Pruned(commits=forgotten)
    if forgotten:
        log.info("%s", pruned)
    return pruned
