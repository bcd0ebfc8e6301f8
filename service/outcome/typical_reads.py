"""The reads a day of a typical table. A table whose reads are unknown is assumed to have this number of reads."""

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
"""The reads of at least this many tables must be known, because the median of fewer tables says little."""

_KEPT_FOR = timedelta(minutes=10)
# The median of each database is kept, because every decision about a table with unknown reads needs it, and it changes
# slowly.
_known: WeakKeyDictionary[Engine, tuple[datetime, Reads]] = WeakKeyDictionary()


def reads_of_table(connection: Connection, table: Registration, now: datetime) -> Reads:
    """Returns the known reads of a table, or else those that are assumed."""
    return known_or_assumed(connection, table, read_store.seen(connection, table.id, now), now)


def known_or_assumed(
    connection: Connection, table: Registration, seen: Mapping[ReadSource, Mapping[int, int]], now: datetime
) -> Reads:
    """Returns the same as `reads_of_table`. `seen` are the reads of the table that `read_store` has returned."""
    found = reads_of(table.readers.reads_per_day, seen)
    return found if found.is_known else assumed(connection, now)


def assumed(connection: Connection, now: datetime) -> Reads:
    """Returns the reads that a table is assumed to have if its reads are unknown: the median over the tables that are
    known to be read, or a constant if there are too few of these."""
    at, found = _known.get(connection.engine, (None, Reads()))
    if at is None or abs(now - at) > _KEPT_FOR:
        found = _computed(connection, now)
        _known[connection.engine] = now, found
    return found


def _computed(connection: Connection, now: datetime) -> Reads:
    declared = table_store.reads_declared(connection)
    seen = read_store.seen_by_days(connection, now)
    every = [reads_of(declared.get(each), seen.get(each, {})) for each in {*declared, *seen}]
    # Tables that nobody reads any more do not count, because they would lower the median for tables that may be read.
    rates = [each.per_day for each in every if not each.have_stopped]
    if len(rates) < LEAST_TABLES:
        return Reads(DEFAULT_PER_DAY)
    return Reads(median(rates), of_tables=len(rates))
