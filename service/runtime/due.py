"""Finds out whether a run of a tick may find something to do. This check costs a twentieth of a run, and saves an idle
service nearly all runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Engine

from service.catalog import decision_times, watch_store
from service.db.engine import commit_watch, may_find
from service.locks.lock_watch import LockWatch
from service.model.clock import Clock
from service.notifications import store as notification_store
from service.observation.poll_requests import PollRequests
from service.queue import lease_store, lock_sighting_store
from service.queue.hand_over import store as hand_over_store
from service.runtime.ticks import Tick


def when_due(ticks: Sequence[Tick], engine: Engine, clock: Clock, polls: PollRequests, locks: LockWatch) -> list[Tick]:
    """Returns the ticks with conditions (`Tick.is_due`), so that runs which would find nothing are left out."""

    def found_by(statement: sa.Select[Any]) -> Callable[[], bool]:
        return lambda: may_find(engine, statement, now=clock())

    is_poll_due, is_lock_wanted = found_by(watch_store.ANY_DUE), found_by(lock_sighting_store.ANY_TO_WATCH)
    conditions: dict[str, Callable[[], bool]] = {
        "recover": found_by(lease_store.ANY_EXPIRED),
        "observe": lambda: polls.notified.is_set() or bool(polls.wanted()) or is_poll_due(),
        "locks": lambda: locks.remembers_any or is_lock_wanted(),
        "hand-over": found_by(hand_over_store.ANY_WAITING),
        "notifications": found_by(notification_store.ANY),
        "commits": commit_watch(engine).are_new,
        "plan": found_by(decision_times.ANY_DUE),
    }
    return [replace(each, is_due=conditions.get(each.name, each.is_due)) for each in ticks]
