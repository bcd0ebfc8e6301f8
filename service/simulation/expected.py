"""The costs that a simulation expects of jobs."""

from __future__ import annotations

from typing import Protocol

from jobs.kinds.results import Work
from service.queue.cost import Cost


class Expected(Protocol):
    """Returns the expected cost of a job."""

    def __call__(self, table_id: str, kind: str, work: Work, *, dry_run: bool) -> Cost: ...
