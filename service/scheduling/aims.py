"""Reads what a decision by objective depends on, beside the state of the table."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from service.catalog import commit_store
from service.outcome import read_store
from service.outcome.aim import Aim
from service.outcome.reads import reads_of
from service.queue import attempt_figures, worker_store

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

    from service.catalog.registration import Registration
    from service.policies.policy import Policy

_DAY = timedelta(days=1)


def aim_of(connection: Connection, table: Registration, policy: Policy, now: datetime) -> Aim:
    objective = policy.objective
    spent, first_at = 0.0, None
    if objective.max_gb_hours_per_day is not None:
        spent, first_at = attempt_figures.gb_hours_since(connection, table.id, now - _DAY)
    return Aim(
        objective=objective,
        rates=worker_store.read_rates(connection),
        reads=reads_of(table.readers.reads_per_day, read_store.seen(connection, table.id, now)),
        oldest_log_at=commit_store.oldest_log_at(connection, table.id) if objective.concerns_reads else None,
        gb_hours=spent,
        spent_until=first_at + _DAY if first_at else None,
    )
