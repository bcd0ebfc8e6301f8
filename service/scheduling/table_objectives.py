"""Reads the inputs that a decision by objective needs besides the state of the table."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection

from service.catalog import commit_store
from service.lake.snapshot import Since
from service.outcome import read_share_store, read_store
from service.outcome.table_objective import TableObjective
from service.outcome.typical_reads import known_or_assumed
from service.policies.precedence import PATTERN, Effective
from service.queue import attempt_figures
from service.scheduling import budgets as budgets_now
from service.scheduling.budgets import Budgets
from service.scheduling.decision_facts import DecisionFacts

_DAY = timedelta(days=1)


def table_objective(
    connection: Connection, facts: DecisionFacts, effective: Effective, now: datetime, budgets: Budgets | None = None
) -> TableObjective:
    """Returns the objective of a table that exists. `budgets` are the spent budgets; they are read if this is None."""
    settings, table = effective.policy.objective, facts.table
    assert table is not None
    spends = budgets or budgets_now.read(connection, now, [table.id])
    overspent = spends.over(effective, table.id)
    spent, first_at, level = 0.0, None, level_of(effective)
    if settings.max_gb_hours_per_day is not None:
        spent, first_at = attempt_figures.gb_hours_since(connection, table.id, now - _DAY)
    return TableObjective(
        settings=settings,
        rates=facts.rates,
        reads=known_or_assumed(connection, table, read_store.by_age(facts.reads, now), now),
        oldest_log_at=_oldest_log_at(connection, facts, table.id) if settings.concerns_reads else None,
        gb_hours=spent,
        spent_until=spends.ends_at if overspent else first_at + _DAY if first_at else None,
        overspent=overspent,
        share=read_share_store.of_level(connection, level, now) if level else None,
    )


def _oldest_log_at(connection: Connection, facts: DecisionFacts, table_id: str) -> datetime | None:
    since = facts.stored.snapshot.since_compaction if facts.stored else Since()
    if since.oldest_at or not since.commits:
        return since.oldest_at
    # An earlier version of the service has counted these commits, without their times.
    return commit_store.oldest_log_at(connection, table_id)


def level_of(effective: Effective) -> str | None:
    """Returns the pattern whose tables share the reads that may cost more; None if every read of the table has to be
    cheap. A table that sets `of_reads` itself shares its reads with no other table."""
    level = effective.sources.get("objective.of_reads", "")
    objective = effective.policy.objective
    is_set = objective.of_reads is not None and objective.limits_reads
    return level if is_set and level.startswith(PATTERN) else None
