"""Policies are set, and read as they count for a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.flows import telling
from service.model.announcement import job_ended
from service.model.policy import PatternPolicy, Pause, TableLevel
from service.policy.levels import Effective, effective
from service.policy.past import WITHDRAWN_BY_PAUSE
from service.store import automation, jobs, outbox, planning, policies, tables
from service.store.engine import reading, writing

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from sqlalchemy import Connection, Engine

    from service.flows.bell import Bell
    from service.model.clock import Clock
    from service.model.registration import Registration


def effective_of(connection: Connection, table: Registration) -> Effective:
    return effective(policies.every(connection), table.name, policies.of_table(connection, table.id))


def of_table(engine: Engine, table_id: str) -> Effective:
    """Raises TableNotFoundError."""
    with reading(engine) as connection:
        return effective_of(connection, tables.get(connection, table_id))


def put_pattern(
    engine: Engine, clock: Clock, pattern: str, *, precedence: int, settings: Mapping[str, Any]
) -> tuple[PatternPolicy, bool]:
    """Sets or replaces a pattern's policy, and answers it and whether it is new. All tables are decided about anew."""
    now = clock()
    with writing(engine) as connection:
        policy = PatternPolicy(pattern, settings, now, now, precedence)
        is_new = policies.put(connection, policy)
        planning.wake_all(connection, now)
        return policies.get(connection, pattern), is_new


def delete_pattern(engine: Engine, clock: Clock, pattern: str) -> None:
    """Raises PolicyNotFoundError."""
    with writing(engine) as connection:
        policies.delete(connection, pattern)
        planning.wake_all(connection, clock())


def put_table(engine: Engine, clock: Clock, table_id: str, settings: Mapping[str, Any]) -> Effective:
    """Sets or replaces what differs for one table, which is decided about anew. Raises TableNotFoundError."""
    now = clock()
    with writing(engine) as connection:
        table = tables.get(connection, table_id, for_update=True)
        policies.put_table(connection, table_id, TableLevel(settings, now))
        planning.wake(connection, table_id, now)
        return effective_of(connection, table)


def delete_table(engine: Engine, clock: Clock, table_id: str) -> None:
    """Raises TableNotFoundError, or PolicyNotFoundError when the table has no policy of its own."""
    with writing(engine) as connection:
        tables.get(connection, table_id, for_update=True)
        policies.delete_table(connection, table_id)
        planning.wake(connection, table_id, clock())


def pause(engine: Engine, bell: Bell, clock: Clock, *, by: str, reason: str) -> Pause:
    """From now on nothing starts by itself; what has begun goes on. Pausing twice keeps the first pause."""
    now = clock()
    with writing(engine) as connection:
        if standing := automation.pause_of(connection, for_update=True):
            return standing
        begun = Pause(now, by, reason)
        automation.pause(connection, begun)
        withdrawn = jobs.withdraw(connection, error=WITHDRAWN_BY_PAUSE, now=now)
        events = [telling.of_job(connection, job_id, now, job_ended) for job_id in withdrawn]
        outbox.publish(connection, events, now=now)
    bell.ring()
    return begun


def resume(engine: Engine, bell: Bell, clock: Clock) -> None:
    """All tables are decided about anew. Resuming twice is no error."""
    with writing(engine) as connection:
        # Before the pause is touched: whoever decides about a table locks them in this order too.
        planning.wake_all(connection, clock())
        automation.resume(connection)
    bell.ring()
