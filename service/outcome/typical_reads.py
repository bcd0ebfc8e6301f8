"""The reads a day of a typical table, which stand for those of tables about whose reads nothing is known."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from statistics import median
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, Engine

from service.catalog import table_store
from service.catalog.registration import Registration
from service.outcome import read_store
from service.outcome.reads import DEFAULT_PER_DAY, Reads, ReadSource, reads_of

LEAST_TABLES = 3
"""The median of fewer tables says little."""

_KEPT_FOR = timedelta(minutes=10)
# The median of each database. Every decision about a table with unknown reads needs it; it changes slowly.
_known: WeakKeyDictionary[Engine, tuple[datetime, Reads]] = WeakKeyDictionary()


def reads_of_table(connection: Connection, table: Registration, now: datetime) -> Reads:
    """Returns the known reads of a table, or else those that are assumed."""
    return known_or_assumed(connection, table, read_store.seen(connection, table.id, now), now)


def known_or_assumed(
    connection: Connection, table: Registration, seen: Mapping[ReadSource, Mapping[int, int]], now: datetime
) -> Reads:
    """Returns what `reads_of_table` returns; `seen` are the reads that `read_store` has of the table."""
    found = reads_of(table.readers.reads_per_day, seen)
    return found if found.is_known else assumed(connection, now)


def assumed(connection: Connection, now: datetime) -> Reads:
    """Returns the reads that a table with unknown reads is assumed to have: the median of the tables that are known to
    be read, or a constant if there are too few of them."""
    at, found = _known.get(connection.engine, (None, Reads()))
    if at is None or abs(now - at) > _KEPT_FOR:
        found = _computed(connection, now)
        _known[connection.engine] = now, found
    return found


def _computed(connection: Connection, now: datetime) -> Reads:
    declared = table_store.reads_declared(connection)
    seen = read_store.seen_by_days(connection, now)
    every = [reads_of(declared.get(each), seen.get(each, {})) for each in {*declared, *seen}]
    # Tables that nobody reads any more would lower the median for tables that may well be read.
    rates = [each.per_day for each in every if not each.have_stopped]
    if len(rates) < LEAST_TABLES:
        return Reads(DEFAULT_PER_DAY)
    return Reads(median(rates), of_tables=len(rates))
