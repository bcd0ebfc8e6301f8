"""Which jobs have to wait until the writers were stopped, and what to tell those who can stop them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from jobs.contract import JobKind, OnActiveWriters, Problem, WriterEngine
from service.queue.hand_over import HandOver, HandOverState

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from service.catalog.registration import Registration
    from service.lake.engine_sighting import Sightings
    from service.queue.job import Job

DEFAULT_SECONDS = 3600

_ALWAYS = frozenset({JobKind.BUCKET_EXPANSION, JobKind.FINISH_EXPANSION, JobKind.REPAIR})

WRITERS_NOT_STOPPED = "writers-not-stopped"


def replaces_file_groups(kind: JobKind, table: Registration) -> bool:
    """Whether such a job replaces file groups that a bucket index leads to. Without one a Flink writer looks up where
    rows are, and Hudi's own clustering is one that it knows."""
    return kind in _ALWAYS or (kind is JobKind.CLUSTERING and table.index is not None)


def has_flink(table: Registration, sightings: Sightings) -> bool:
    return WriterEngine.FLINK in table.writers.known_engines(sightings)


def must_wait(job: Job, table: Registration, sightings: Sightings, *, is_committed: bool) -> bool:
    """Whether this job must not start before the writers of its table were stopped for it.

    `is_committed`: an earlier attempt has committed, and the next one has only to find that. Nothing is replaced then,
    and the writers may be back.
    """
    if job.dry_run or is_committed or not replaces_file_groups(job.kind, table) or not has_flink(table, sightings):
        return False
    if job.hand_over is not None and job.hand_over.state is HandOverState.STOPPED:
        return returned_at(job.hand_over, sightings) is not None
    return not table.writers.are_stopped(sightings)


def returned_at(hand_over: HandOver, sightings: Sightings) -> datetime | None:
    """When Flink wrote the table again although it was said to have been stopped."""
    flink = sightings.get(WriterEngine.FLINK)
    return flink.last_seen if flink is not None and flink.last_seen > hand_over.since else None


def begun(job: Job, table: Registration, sightings: Sightings, now: datetime) -> HandOver:
    """How a job begins to wait. One that was released before loses its savepoint: Flink has gone on from there."""
    deadline = now + timedelta(seconds=float(job.params.get("hand_over_seconds", DEFAULT_SECONDS)))
    before = job.hand_over
    back = returned_at(before, sightings) if before else None
    if back:
        why = f"Flink wrote the table again at {back:%Y-%m-%d %H:%M:%S} UTC, after it was said to have been stopped."
    elif table.writers.flink:
        why = f"The service is about to stop the Flink job {table.writers.flink.job}."
    else:
        why = "Flink writes this table, and somebody has to stop it."
    return HandOver(HandOverState.DRAINING, now, deadline, detail=why)


def loses_batches(kind: JobKind, params: Mapping[str, Any], table: Registration, sightings: Sightings) -> bool:
    """Whether fencing is asked for where it loses a Flink job's batch: Flink commits after its checkpoint, and what was
    rolled back then is not written again."""
    wants_fence = params.get("on_active_writers") == OnActiveWriters.FENCE.value
    return wants_fence and replaces_file_groups(kind, table) and has_flink(table, sightings)


def expired(hand_over: HandOver) -> Problem:
    return Problem(
        WRITERS_NOT_STOPPED,
        "The writers were not stopped in time",
        f"The job waited until {hand_over.deadline:%Y-%m-%d %H:%M:%S} UTC. {hand_over.detail}".strip(),
        "Nothing was changed. Ask for the job again, with a longer `hand_over_seconds` if need be, and stop the Flink"
        " job with a savepoint when it waits; or register `writers.flink`, then the service does that.",
    )
