"""A worker as the service knows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from jobs.contract import WorkerInfo


@dataclass(frozen=True)
class Worker:
    """`job_ids` are the jobs in its hands. `last_seen` is exact to a few seconds."""

    id: str
    info: WorkerInfo
    first_seen: datetime
    last_seen: datetime
    job_ids: tuple[str, ...] = ()
