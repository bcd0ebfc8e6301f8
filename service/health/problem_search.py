"""Reads the facts from the database and finds the problems in them."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from service.db.engine import reading
from service.health import fleet_store, problems, table_store
from service.health.problem import ProblemKind
from service.health.problem_facts import Facts
from service.model.errors import DatabaseUnavailableError
from service.policies import pause_store
from service.queue import worker_store

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from datetime import datetime

    from sqlalchemy import Connection, Engine

    from service.catalog.snapshot_store import KnownSnapshots
    from service.health.problem_facts import TableFacts
    from service.health.problems import Found

log = logging.getLogger(__name__)

_Part = TypeVar("_Part")


def look(
    engine: Engine, now: datetime, table_id: str | None = None, *, snapshots: KnownSnapshots | None = None
) -> tuple[Found, Sequence[TableFacts]]:
    """Returns the problems of the whole installation or of one table, and the tables that could be read. If something
    cannot be read or computed, only its own problems are missing. `snapshots` are those of the last search, and are
    updated. Raises DatabaseUnavailableError."""
    failed: set[ProblemKind] = set()

    def part(read: Callable[[Connection], _Part], kinds: Iterable[ProblemKind]) -> _Part | None:
        try:
            with reading(engine) as connection:
                return read(connection)
        except DatabaseUnavailableError:
            raise
        except Exception:
            log.exception("What is needed for problems cannot be read: %s", ", ".join(kinds))
            failed.update(kinds)
            return None

    def of_workers(connection: Connection) -> Facts:
        workers = worker_store.every(connection)
        lost = fleet_store.lost(connection, workers, now)
        return Facts(backlogs=fleet_store.backlogs(connection, now), workers=workers, lost=lost)

    tables, unread = _tables(engine, now, table_id, snapshots)
    if table_id is not None:
        return _found(Facts(tables), now, unread, ()), tables
    facts = part(of_workers, (ProblemKind.GROUP_WITHOUT_WORKER, ProblemKind.WORKER_LOST)) or Facts()
    of_webhooks = (ProblemKind.WEBHOOK_FAILING, ProblemKind.WEBHOOK_DISABLED, ProblemKind.DELIVERIES_GIVEN_UP)
    webhooks = part(fleet_store.webhooks, of_webhooks) or ()
    pause = part(pause_store.pause_of, (ProblemKind.JOBS_PAUSED,))
    facts = replace(facts, tables=tables, webhooks=webhooks, pause=pause)
    return _found(facts, now, unread, failed), tables


def _found(facts: Facts, now: datetime, unread: Collection[str], failed: Collection[ProblemKind]) -> Found:
    found = problems.found_in(facts, now)
    kinds = {*found.not_computed.kinds, *failed}
    return replace(found, not_computed=replace(found.not_computed, tables=unread, kinds=kinds))


def _tables(
    engine: Engine, now: datetime, table_id: str | None, snapshots: KnownSnapshots | None
) -> tuple[list[TableFacts], set[str]]:
    """Returns the facts of all tables or of one, and the ids of the tables that could not be read. If a single query
    for all fails, each table is read alone."""
    try:
        with reading(engine) as connection:
            return table_store.facts(connection, now, table_id, snapshots=snapshots), set()
    except DatabaseUnavailableError:
        raise
    except Exception:
        log.exception("The tables cannot be looked at together, so they are one by one")
    with reading(engine) as connection:
        ids = table_store.ids(connection) if table_id is None else [table_id]
    found: list[TableFacts] = []
    unread = set()
    for each in ids:
        try:
            with reading(engine) as connection:
                found += table_store.facts(connection, now, each)
        except DatabaseUnavailableError:
            raise
        except Exception:
            unread.add(each)
    if unread:
        log.error("The problems of %d tables cannot be computed: %s", len(unread), ", ".join(sorted(unread)[:20]))
    return found, unread
