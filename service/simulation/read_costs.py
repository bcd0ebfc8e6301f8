"""Reads the cost and the frequency of reads of simulated tables."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection

from service.catalog import table_store
from service.outcome.table_objective import TableObjective
from service.outcome.typical_reads import reads_of_table
from service.queue import worker_store
from service.simulation.table_past import TablePast


def add(connection: Connection, pasts: dict[str, TablePast], now: datetime) -> None:
    """Adds the present cost and frequency of reads of each table, on which objectives and the order of jobs depend."""
    rates = worker_store.read_rates(connection)
    for table_id, table in table_store.get_all(connection, list(pasts)).items():
        pasts[table_id] = replace(
            pasts[table_id], objective=TableObjective(rates=rates, reads=reads_of_table(connection, table, now))
        )
