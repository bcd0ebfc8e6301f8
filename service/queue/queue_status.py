"""Describes the reason that a queued job has not been leased yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.model.formatting import count, duration
from service.queue.job import mutates
from service.queue.worker import ALIVE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from service.queue.job import Job
    from service.queue.worker import Worker


def waits_for(job: Job, of_table: Sequence[Job], workers: Sequence[Worker], now: datetime) -> str:
    """Returns the first reason that keeps a queued job from being leased, in the order of the checks in `lease_store`.

    `of_table` are the held jobs of its table, `workers` all known workers.
    """
    if job.waits_for_writers:
        until = f", until {job.hand_over.deadline:%Y-%m-%d %H:%M} UTC" if job.hand_over else ""
        return f"the writers to stop{until}"
    if job.not_before > now:
        return f"its next attempt, in {duration(job.not_before - now)}"
    writes = mutates(job.kind, dry_run=job.dry_run)
    if busy := [other for other in of_table if writes and mutates(other.kind, dry_run=other.dry_run)]:
        return f"job {busy[0].id} ({busy[0].kind.value}), which is running on this table"
    alive = [worker for worker in workers if worker.info.group == job.worker_group and worker.is_alive(now)]
    if not alive:
        return (
            f"a worker of the group {job.worker_group} (none has called for {duration(ALIVE)};"
            f" `groundskeeper worker --group {job.worker_group}` starts one)"
        )
    ready = [worker for worker in alive if worker.is_ready]
    if not ready:
        return f"executors: {count(len(alive), 'worker')} of the group {job.worker_group}, none of them ready"
    if all(len(worker.job_ids) >= (worker.info.slots or 1) for worker in ready):
        return f"a free slot: {count(len(ready), 'worker')} of the group {job.worker_group}, all busy"
    return "its turn"
