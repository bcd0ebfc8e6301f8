"""Reads what is known about the reads of simulated tables."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from service.catalog import table_store
from service.outcome import read_store
from service.outcome.aim import Aim
from service.outcome.reads import reads_of
from service.queue import worker_store

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from sqlalchemy import Connection

    from service.simulation.table_past import TablePast


def add(connection: Connection, pasts: dict[str, TablePast], aimed: Collection[str], now: datetime) -> None:
    """Adds the measured costs of reads, and how often the `aimed` tables are read: only objectives depend on that."""
    rates = worker_store.read_rates(connection)
    known = table_store.get_all(connection, [each for each in aimed if each in pasts])
    for table_id, past in pasts.items():
        aim = Aim(rates=rates)
        if table := known.get(table_id):
            aim = replace(aim, reads=reads_of(table.readers.reads_per_day, read_store.seen(connection, table_id, now)))
        pasts[table_id] = replace(past, aim=aim)
