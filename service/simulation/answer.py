"""The answer of a simulated table to the question which job it needs next."""

from __future__ import annotations

from dataclasses import dataclass

from service.scheduling.decision import Run


@dataclass(frozen=True)
class Answer:
    """The job that starts; or, if none starts, when the passing of time alone may change this. `is_limited` says that a
    job waits for other tables' jobs."""

    run: Run | None
    until: float | None
    is_limited: bool = False
