"""Forgets old events, with what was delivered of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.store import outbox
from service.store.engine import writing

if TYPE_CHECKING:
    from datetime import timedelta

    from sqlalchemy import Engine

    from service.model.clock import Clock

_AT_ONCE = 1000


def run_once(engine: Engine, clock: Clock, keep: timedelta) -> int:
    """Answers how many events were removed. What a webhook has yet to get stays, and so do dead letters.

    In small transactions, so that nobody who publishes meanwhile waits for long.
    """
    before = clock() - keep
    removed = 0
    while True:
        with writing(engine) as connection:
            count = outbox.prune(connection, before, _AT_ONCE)
        removed += count
        if count < _AT_ONCE:
            return removed
