"""The demand of each worker group: what is queued for it and what it has, in numbers for an external scaler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from datetime import datetime

    from service.queue.worker import Worker


@dataclass(frozen=True)
class Queued:
    """The queued jobs of one group; `startable` are those that a free slot would take at once.

    Only one of the jobs that write a table runs at a time. `bytes` is the size of the tables of the startable jobs,
    of each once; tables that were never listed count as 0. `oldest` is since when the oldest startable job is due.
    """

    jobs: int = 0
    startable: int = 0
    bytes: int = 0
    oldest: datetime | None = None


@dataclass(frozen=True)
class Demand:
    """`slots` are those of the `workers` that are ready; `waiting_workers` wait for Spark or its executors."""

    queued: int = 0
    startable: int = 0
    bytes: int = 0
    oldest_seconds: float = 0.0
    running: int = 0
    workers: int = 0
    waiting_workers: int = 0
    slots: int = 0


def demand(
    queued: Mapping[str, Queued],
    running: Mapping[str, int],
    workers: Iterable[Worker],
    *,
    groups: Collection[str],
    now: datetime,
) -> dict[str, Demand]:
    """Returns the demand of `groups` and of all others that have jobs or living workers, by name."""
    alive = [worker for worker in workers if worker.is_alive(now)]
    every = {*groups, *queued, *running, *(worker.info.group for worker in alive)}
    found = {}
    for group in sorted(every):
        jobs = queued.get(group, Queued())
        ready = [worker for worker in alive if worker.info.group == group and worker.is_ready]
        found[group] = Demand(
            queued=jobs.jobs,
            startable=jobs.startable,
            bytes=jobs.bytes,
            oldest_seconds=max(0.0, (now - jobs.oldest).total_seconds()) if jobs.oldest else 0.0,
            running=running.get(group, 0),
            workers=len(ready),
            waiting_workers=sum(worker.info.group == group and not worker.is_ready for worker in alive),
            slots=sum(worker.info.slots or 1 for worker in ready),
        )
    return found
