"""The background tasks of a process: which of them fail, and which have not run in time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

# A run may take this time in addition to its interval. A run that waits for a database without an answer ends earlier,
# because of its own time limits.
_RUN_SECONDS = 60.0


@dataclass
class _Task:
    """A task. At most `limit` seconds may pass between the ends of two runs. `ended` is on the monotonic clock."""

    limit: float
    ended: float
    fails: bool = False


class TaskHealth:
    """Records when each task last ended a run, and whether it failed. Thread-safe."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._guard = threading.Lock()
        self._tasks: dict[str, _Task] = {}

    def expect(self, name: str, seconds: float, *, first_after: float = 0.0) -> None:
        """Expects from now on, or from `first_after` seconds on, that the task runs at the interval `seconds`. The task
        is late if no run ends within twice this interval and a minute."""
        with self._guard:
            self._tasks[name] = _Task(2 * seconds + _RUN_SECONDS, self._now() + first_after)

    def ended(self, name: str, *, fails: bool | None = None) -> None:
        """Records that a run has ended. `fails` is None if the outcome is unknown, because the database was
        unavailable."""
        with self._guard:
            task = self._tasks.get(name)
            if task is not None:
                task.ended = self._now()
                task.fails = task.fails if fails is None else fails

    def failing(self) -> list[str]:
        """Returns the names of the tasks whose last run failed."""
        with self._guard:
            return sorted(name for name, task in self._tasks.items() if task.fails)

    def late(self) -> list[str]:
        """Returns the tasks that have not ended a run in time, each with the seconds since the last one."""
        with self._guard:
            since = {name: (self._now() - task.ended, task.limit) for name, task in self._tasks.items()}
        return [f"{name} (for {passed:.0f} s)" for name, (passed, limit) in sorted(since.items()) if passed > limit]
