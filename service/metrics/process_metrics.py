"""The metrics that a process measures itself: requests, and attempts to deliver webhooks. The counters are 0 when the
process starts."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version

from prometheus_client import (
    CollectorRegistry,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from service.delivery.queue_store import AttemptRecord
from service.model.task_health import TaskHealth

# The creation time of each series is left out: it would double the number of series, and few queries need it.
disable_created_metrics()  # type: ignore[no-untyped-call]

_HTTP_SECONDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0)
_SEND_SECONDS = (0.05, 0.25, 1.0, 2.5, 5.0, 15.0, 60.0)
_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}


class ProcessMetrics:
    """Metrics of one process, in a registry of its own. Thread-safe."""

    def __init__(self, tasks: TaskHealth | None = None) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.registry.register(_BackgroundTasks(tasks or TaskHealth()))
        info = Gauge(
            "groundskeeper_build_info", "Always 1; the label has the version", ["version"], registry=self.registry
        )
        info.labels(version("groundskeeper")).set(1)
        self._requests = Histogram(
            "groundskeeper_http_request_duration_seconds",
            "Time from a request to the head of this process's answer, including waits for jobs and events",
            ["route", "method", "status"],
            buckets=_HTTP_SECONDS,
            registry=self.registry,
        )
        self._sent = Histogram(
            "groundskeeper_webhook_attempt_duration_seconds",
            "Duration of this process's attempts to deliver an event; the outcome is `delivered`, `retry` (another"
            " attempt follows) or `dead` (given up)",
            ["outcome"],
            buckets=_SEND_SECONDS,
            registry=self.registry,
        )
        for outcome in ("delivered", "retry", "dead"):
            self._sent.labels(outcome)

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        """Counts a request. `route` is a template such as `/v1/jobs/{job_id}`, never a path."""
        method = method if method in _METHODS else "other"
        self._requests.labels(route, method, f"{status // 100}xx").observe(seconds)

    def sent(self, record: AttemptRecord) -> None:
        """Counts an attempt to deliver an event."""
        outcome = "retry" if record.attempt.retry_at is not None else record.delivery.state.value
        self._sent.labels(outcome).observe(record.attempt.answer.seconds)


class _BackgroundTasks(Collector):
    def __init__(self, tasks: TaskHealth) -> None:
        self._tasks = tasks

    def collect(self) -> Iterator[GaugeMetricFamily]:
        for name, what, tasks in (
            ("failing", "whose last run failed", self._tasks.failing()),
            ("late", "that have not run in time", self._tasks.late()),
        ):
            yield GaugeMetricFamily(
                f"groundskeeper_background_tasks_{name}", f"Background tasks of this process {what}", value=len(tasks)
            )
