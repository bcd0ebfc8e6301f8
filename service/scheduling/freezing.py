"""Sets and deletes freezes."""

from __future__ import annotations

from dataclasses import replace

from service.catalog import decision_times
from service.db.engine import writing
from service.events.database import Database
from service.policies import freeze_store, pause_store
from service.policies.errors import TooManyFreezesError
from service.policies.freeze import MOST, Freeze
from service.queue import held_back_store


def put(database: Database, freeze: Freeze) -> tuple[Freeze, bool]:
    """Sets or replaces a freeze. Returns the freeze, and whether it is new. Raises TooManyFreezesError.

    Every table gets a new decision, which withdraws the jobs that no worker has taken.
    """
    now = database.clock()
    with writing(database.engine) as connection:
        decision_times.wake_all(connection, now)
        # The lock keeps other replicas from starting jobs meanwhile.
        pause_store.pause_of(connection, for_update=True)
        is_new = freeze_store.put(connection, replace(freeze, created_at=now, updated_at=now))
        if is_new and (number := freeze_store.number(connection)) > MOST:
            raise TooManyFreezesError(f"There are {number - 1} freezes.")
        held_back_store.release(connection, now)
        stored = freeze_store.get(connection, freeze.name)
    database.notifier.notify()
    return stored, is_new


def delete(database: Database, name: str) -> None:
    """Deletes a freeze. The tables that it had frozen get new decisions. Raises FreezeNotFoundError."""
    now = database.clock()
    with writing(database.engine) as connection:
        freeze_store.delete(connection, name)
        decision_times.wake_all(connection, now)
        held_back_store.release(connection, now)
    database.notifier.notify()
