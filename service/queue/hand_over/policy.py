"""Rules that decide whether a job has to wait until the writers have stopped, and the messages about it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from jobs.clustering_refusals import refusal
from jobs.contract import JobKind, Problem, WriterEngine
from jobs.job_params import OnActiveWriters
from jobs.kinds.registry import KINDS
from jobs.kinds.words import HAND_OVER_SECONDS
from jobs.problems.rescales import WRITERS_NOT_STOPPED
from service.catalog.registration import Registration
from service.lake.engine_sighting import Sightings
from service.model.flink_restart import FlinkRestart
from service.model.hand_over import HandOver, HandOverState
from service.queue.job import Job


def replaces_file_groups(kind: JobKind) -> bool:
    """Returns whether jobs of this kind replace or drop file groups, or remove commits."""
    return KINDS[kind].stops_flink


def has_flink(table: Registration, sightings: Sightings) -> bool:
    return WriterEngine.FLINK in table.writers.known_engines(sightings)


def must_wait(job: Job, table: Registration, sightings: Sightings, *, is_committed: bool) -> bool:
    """Returns whether this job must not start before the writers of its table have been stopped for it.

    `is_committed` says that an earlier attempt has committed. The next attempt then only has to detect this commit. It
    replaces nothing, and the writers may already be running again.
    """
    if not replaces_file_groups(job.kind) or not has_flink(table, sightings):
        return False
    if KINDS[job.kind].refuses_flink:
        return False
    is_clustering = job.kind is JobKind.CLUSTERING
    if is_clustering and refusal(KINDS[job.kind].read(job.params), has_index=table.index is not None):
        return False  # The worker will refuse this job, so writers need not be stopped for it.
    if job.dry_run or is_committed:
        return False
    if job.hand_over is not None and job.hand_over.state is HandOverState.STOPPED:
        return returned_at(job.hand_over, sightings) is not None
    return not table.writers.are_stopped(sightings)


def returned_at(hand_over: HandOver, sightings: Sightings) -> datetime | None:
    """Returns when Flink wrote the table again after it had been reported as stopped; None if it did not."""
    flink = sightings.get(WriterEngine.FLINK)
    return flink.last_seen if flink is not None and flink.last_seen > hand_over.since else None


def begun(job: Job, table: Registration, sightings: Sightings, now: datetime) -> HandOver:
    """Returns the initial hand-over of a job. If the job was released before, its savepoint is dropped, because Flink
    has written since."""
    deadline = now + timedelta(seconds=float(job.params.get("hand_over_seconds", HAND_OVER_SECONDS)))
    before, flink = job.hand_over, table.writers.flink
    back = returned_at(before, sightings) if before else None
    if back:
        why = f"Flink wrote the table again at {back:%Y-%m-%d %H:%M:%S} UTC, after it had been reported as stopped."
    elif flink is None:
        why = "Flink writes this table, and somebody has to stop it."
    elif is_safe(flink.restart, table):
        why = f"The service is about to stop the Flink job {flink.job}."
    else:
        why = (
            f"Somebody has to stop the Flink job {flink.job}. The service does not: the table has no declared bucket"
            " index, and `writers.flink` does not say that the job is started without its state afterwards."
        )
    return HandOver(HandOverState.DRAINING, now, deadline, detail=why, restart=table.flink_restart)


def is_safe(restart: FlinkRestart, table: Registration) -> bool:
    """Returns whether a Flink job that is started in this way writes to the current file groups."""
    return restart in {table.flink_restart, FlinkRestart.WITHOUT_STATE}


def loses_batches(kind: JobKind, params: Mapping[str, Any], table: Registration, sightings: Sightings) -> bool:
    """Returns whether the parameters request fencing that could lose a batch of a Flink job. Flink commits after its
    checkpoint, so it does not write a batch again that fencing has rolled back."""
    wants_fence = params.get("on_active_writers") == OnActiveWriters.FENCE.value
    return wants_fence and replaces_file_groups(kind) and has_flink(table, sightings)


def expired(hand_over: HandOver) -> Problem:
    return WRITERS_NOT_STOPPED.because(
        f"The job waited until {hand_over.deadline:%Y-%m-%d %H:%M:%S} UTC. {hand_over.detail}".strip(),
        hint="Nothing was changed. Submit the job again, if necessary with a longer `hand_over_seconds`, and stop the"
        " Flink job with a savepoint while it waits; or register `writers.flink`, and the service stops it.",
    )
