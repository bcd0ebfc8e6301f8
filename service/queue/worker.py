"""The service's record of a worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from jobs.contract import WorkerInfo


@dataclass(frozen=True)
class Worker:
    """A worker. `job_ids` are the jobs that it holds. `last_seen` is accurate to a few seconds."""

    id: str
    info: WorkerInfo
    first_seen: datetime
    last_seen: datetime
    job_ids: tuple[str, ...] = ()
