"""Reads the state of all tables, jobs, workers and webhooks from the database. The few queries do not take longer when
the history grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from sqlalchemy import Engine

from service.catalog import table_statistics
from service.catalog.table_statistics import TableStatistics
from service.db.engine import reading
from service.delivery import delivery_statistics
from service.delivery.delivery_statistics import DeliveryStatistics
from service.events import tally
from service.events.tally import Tallies
from service.health import problem_store
from service.health.problem import ProblemKind, Severity
from service.health.result_cache import NOT_OLD, ResultCache
from service.incidents import store as incident_store
from service.incidents.incident import IncidentKind, IncidentState
from service.metrics import table_series
from service.metrics.table_series import Chosen, Series
from service.model.clock import Clock
from service.policies import pause_store
from service.queue import queue_statistics, worker_store
from service.queue.forecaster import Forecaster
from service.queue.outlook import Outlook
from service.queue.queue_statistics import QueueStatistics
from service.queue.worker import Worker

NONE_CHOSEN = Chosen()
# Prometheus requests the metrics every 15 seconds or less often. If others requested them more often, each with a new
# reading, all calls would become slower.
_SHARE = 0.01


@dataclass(frozen=True)
class Reading:
    """The state at `at`, by the service's clock."""

    at: datetime
    tallies: Tallies
    queue: QueueStatistics
    tables: TableStatistics
    incidents: Mapping[tuple[IncidentKind, IncidentState], int]
    deliveries: DeliveryStatistics
    workers: Sequence[Worker]
    is_paused: bool
    problems: Mapping[tuple[ProblemKind, Severity], int]
    outlook: Outlook
    series: Series = field(default_factory=Series)


class Reader:
    """Reads the state again and again. Some figures need a row of each table. If there are thousands of tables, these
    figures may be up to ten minutes old."""

    def __init__(self, engine: Engine, clock: Clock, forecaster: Forecaster, chosen: Chosen = NONE_CHOSEN) -> None:
        self._engine, self._clock, self._forecaster = engine, clock, forecaster
        self._sums = ResultCache("sums over tables", _sums, tables=lambda each: each.tables.tables, share=_SHARE)
        self._series = ResultCache(
            "metrics of tables", partial(_of_series, chosen), tables=lambda each: each.registered, share=_SHARE
        )
        self._has_series = bool(chosen.patterns)

    def read(self) -> Reading:
        """Raises DatabaseUnavailableError."""
        sums = self._sums.get(self._engine, self._clock, NOT_OLD)
        found = _read(self._engine, self._clock(), sums, self._forecaster.outlook(self._engine, self._clock))
        return (
            replace(found, series=self._series.get(self._engine, self._clock, NOT_OLD)) if self._has_series else found
        )


@dataclass(frozen=True)
class _Sums:
    """Figures that need a row of each table."""

    tables: TableStatistics
    problems: Mapping[tuple[ProblemKind, Severity], int]


def _sums(engine: Engine, _now: datetime) -> _Sums:
    with reading(engine) as connection:
        return _Sums(table_statistics.statistics(connection), problem_store.counts(connection))


def _of_series(chosen: Chosen, engine: Engine, now: datetime) -> Series:
    with reading(engine) as connection:
        return table_series.read(connection, chosen, now)


def _read(engine: Engine, now: datetime, sums: _Sums, outlook: Outlook) -> Reading:
    with reading(engine) as connection:
        return Reading(
            at=now,
            tallies=tally.every(connection),
            queue=queue_statistics.statistics(connection, now),
            tables=sums.tables,
            incidents=incident_store.count_unresolved(connection),
            deliveries=delivery_statistics.statistics(connection),
            workers=worker_store.every(connection),
            is_paused=pause_store.pause_of(connection) is not None,
            problems=sums.problems,
            outlook=outlook,
        )
