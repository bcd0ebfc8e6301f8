"""The demand of each worker group: its queued jobs and its workers, as numbers for an external scaler."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from jobs.spec import Documented, Spec
from service.queue.worker import Worker


@dataclass(frozen=True)
class Queued:
    jobs: int = 0
    startable: int = 0  # Jobs that a free slot would take at once. Only one writing job of each table counts.
    bytes: int = 0  # Total size of the tables that have startable jobs. Tables that were never listed count as 0.
    oldest: datetime | None = None  # When the oldest startable job became due.


@dataclass(frozen=True)
class Demand(Documented):
    """The queued jobs and the workers of a group."""

    queued: Annotated[int, Spec("Queued jobs, including those that cannot start yet")] = 0
    startable: Annotated[int, Spec("Queued jobs that a free slot would take at once")] = 0
    bytes: Annotated[int, Spec("Size of the tables of startable jobs; each table counts once")] = 0
    oldest_seconds: Annotated[float, Spec("How long the oldest startable job has been due")] = 0.0
    running: Annotated[int, Spec("Jobs that workers hold")] = 0
    workers: Annotated[int, Spec("Ready workers that were seen within a minute")] = 0
    waiting_workers: Annotated[int, Spec("Workers that start Spark, or wait for a first executor")] = 0
    slots: Annotated[int, Spec("Slots of the ready workers")] = 0


def demand(
    queued: Mapping[str, Queued],
    running: Mapping[str, int],
    workers: Iterable[Worker],
    *,
    groups: Collection[str],
    now: datetime,
) -> dict[str, Demand]:
    """Returns the demand by name of the group: of `groups`, and of all other groups that have jobs or living
    workers."""
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
