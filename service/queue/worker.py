"""The service's record of a worker."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from jobs.contract import WorkerInfo, WorkerState

ALIVE = timedelta(minutes=1)
"""A worker counts as alive for this time after its last call. An idle worker calls three times within this time
(`jobs.worker`), a busy worker more often."""


@dataclass(frozen=True)
class Worker:
    """A worker. `job_ids` are the jobs that it holds. `last_seen` is accurate to a few seconds."""

    id: str
    info: WorkerInfo
    first_seen: datetime
    last_seen: datetime
    job_ids: tuple[str, ...] = ()

    def is_alive(self, now: datetime) -> bool:
        return self.last_seen > now - ALIVE and not self.has_failed

    @property
    def has_failed(self) -> bool:
        """Whether it has ended, because Spark did not start."""
        return self.info.state is WorkerState.FAILED

    @property
    def is_ready(self) -> bool:
        """Whether it takes jobs. A worker of an older version, which does not report its state, counts as ready."""
        return self.info.state in (None, WorkerState.READY)
