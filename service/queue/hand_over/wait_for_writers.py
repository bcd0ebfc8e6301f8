"""Holds back jobs that must not start before the writers of their table have stopped.

The check is made when a job is submitted, and again just before a worker gets it, because a Flink job may have been
detected in between.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection

from jobs.kinds.registry import RESCALES
from service.catalog import commit_store
from service.catalog.registration import Registration
from service.events.event import Event
from service.lake.engine_sighting import Sightings
from service.queue import job_events
from service.queue.hand_over import policy, store
from service.queue.job import Job


def made_to_wait(connection: Connection, job: Job, table: Registration, sightings: Sightings, now: datetime) -> Job:
    """Returns `job` changed to wait for the writers if it must wait, else unchanged. Does not store the change."""
    is_committed = any(commit_store.is_known(connection, table.id, instant) for instant in job.instants)
    if not policy.must_wait(job, table, sightings, is_committed=is_committed):
        return job
    return job.evolve(waits_for_writers=True, hand_over=policy.begun(job, table, sightings, now))


def draining_events(job: Job, table: Registration, now: datetime) -> list[Event]:
    """Returns the events about a job that has just been queued, other than `job.queued`."""
    is_draining = job.waits_for_writers and job.kind in RESCALES
    return [job_events.expansion_held_back(job, table, now)] if is_draining else []


def hold_back(
    connection: Connection, job: Job, table: Registration, sightings: Sightings, now: datetime
) -> list[Event]:
    """Makes a queued job wait if it must, and returns the events about that; none if the job may start."""
    waiting = made_to_wait(connection, job, table, sightings, now)
    if not waiting.waits_for_writers or waiting.hand_over is None:
        return []
    store.begin(connection, job, waiting.hand_over)
    return draining_events(waiting, table, now) or [job_events.job_held_back(waiting, table, now)]
