"""The parts of a process's state that calls show: its tasks, its metrics, the problems, and the forecast of the
queue."""

from __future__ import annotations

from dataclasses import dataclass, field

from service.health.cached_problems import ProblemCache
from service.metrics.process_metrics import ProcessMetrics
from service.model.task_health import TaskHealth
from service.queue.forecaster import Forecaster


@dataclass(frozen=True)
class Monitoring:
    """`metrics` are measured by the process itself. `problems` are the last computed problems of the installation."""

    tasks: TaskHealth = field(default_factory=TaskHealth)
    metrics: ProcessMetrics = field(default_factory=ProcessMetrics)
    problems: ProblemCache = field(default_factory=ProblemCache)
    forecaster: Forecaster = field(default_factory=Forecaster)
