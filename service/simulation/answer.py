"""The answer of a simulated table that is asked for its next job."""

from __future__ import annotations

from dataclasses import dataclass

from service.scheduling.decision import Run


@dataclass(frozen=True)
class Answer:
    """The job that starts, or when that may change by time alone. `is_limited`: a job waits for other tables' jobs."""

    run: Run | None
    until: float | None
    is_limited: bool = False
