"""The limits of a worker."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.worker.attempt import EXECUTOR_SECONDS


@dataclass(frozen=True)
class Lifetime:
    """The limits after which a worker ends by itself to be restarted, or gives up waiting.

    One session for thousands of tables grows (Hudi #1481), so a worker ends after `jobs` jobs or `hours` hours and
    waits for its running jobs. A worker that is stopped gives them `drain_seconds`. A job whose tasks find no executor
    for `executor_seconds` goes back to the queue.
    """

    jobs: int = 200
    hours: float = 24.0
    drain_seconds: float = 10.0
    executor_seconds: float = EXECUTOR_SECONDS
