"""The text that Prometheus scrapes. The text is made at most once a second."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from concurrent.futures import Future

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from service.metrics import database_metrics
from service.metrics.database_state import Reading
from service.metrics.installation import FleetWork, Installation
from service.metrics.process_metrics import ProcessMetrics
from service.model.errors import GroundskeeperError
from service.model.paced import Paced

log = logging.getLogger(__name__)

_OLDER_SECONDS = 4.0
"""While the next text is made, a caller may get the last text, which is then at most this much older than a second.
Making a text takes half a second for very many tables. Prometheus requests the text less often than this, and so gets a
new one."""


class Scrapes:
    """Makes the text once for concurrent scrapes. Thread-safe."""

    def __init__(self, process: ProcessMetrics, fleet: FleetWork) -> None:
        self._process = process
        self._fleet = fleet
        self._text = Paced(self._make, "metrics", beyond=_OLDER_SECONDS)

    def latest(self) -> Future[bytes]:
        """Returns the text of the last five seconds, or a new one. If the database is unavailable, the text has only
        the metrics of the process, and `groundskeeper_database_up` is 0."""
        return self._text.latest()

    def _make(self) -> bytes:
        return generate_latest(self._process.registry) + self._of_database()

    def _of_database(self) -> bytes:
        started = time.monotonic()
        try:
            return self._fleet.run(_text)
        except GroundskeeperError as error:
            log.warning("The metrics of the database cannot be read: %s", error)
        except Exception:
            log.exception("The metrics of the database cannot be read")
        return _written(None, time.monotonic() - started)


def _text(installation: Installation) -> bytes:
    started = time.monotonic()
    return _written(installation.state.read(), time.monotonic() - started)


def _written(reading: Reading | None, seconds: float) -> bytes:
    registry = CollectorRegistry()
    registry.register(_Found(reading, seconds))
    return generate_latest(registry)


class _Found(Collector):
    def __init__(self, reading: Reading | None, seconds: float) -> None:
        self._reading = reading
        self._seconds = seconds

    def collect(self) -> Iterator[Metric]:
        is_up = GaugeMetricFamily("groundskeeper_database_up", "1 if the metrics of the database could be read")
        is_up.add_metric([], float(self._reading is not None))
        yield is_up
        took = GaugeMetricFamily("groundskeeper_scrape_duration_seconds", "Time that the queries for this text took")
        took.add_metric([], self._seconds)
        yield took
        if self._reading is not None:
            yield from database_metrics.families(self._reading)
