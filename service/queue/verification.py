"""Compares the success that a worker reports with the table's timeline."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from sqlalchemy import Engine

from jobs.contract import Outcome, Problem, Result
from jobs.kinds.archival import ArchivalResult
from service.catalog import table_store
from service.db.engine import reading
from service.lake.active_timeline import read_completed
from service.lake.reader_pool import Readers
from service.model.errors import GroundskeeperError
from service.queue import job_store
from service.queue.problem_types import INSTANT_NOT_ARCHIVED, INSTANT_NOT_COMPLETED

log = logging.getLogger(__name__)


def contradiction(
    engine: Engine,
    readers: Readers,
    job_id: str,
    result: Result,
    *,
    storage_options: Mapping[str, str],
    allowed_roots: Sequence[str] | None = None,
) -> Problem | None:
    """Returns the difference between a reported success and the timeline; None if they agree.

    The two agree if each reported instant has completed or is older than the active timeline, and if archived instants
    are no longer on it. If the table cannot be read, the report is believed, because the worker has read the timeline
    itself.
    """
    details = result.details
    archived = ArchivalResult.parse(details).last_archived if "last_archived" in details else None
    if result.outcome is not Outcome.SUCCEEDED or not (result.instants or archived):
        return None
    try:
        with reading(engine) as connection:
            job = job_store.get(connection, job_id)
            base_path = table_store.get(connection, job.table_id).base_path
        if job.dry_run:
            return None
        timeline = readers.run(read_completed, base_path, storage_options, allowed_roots)
    except GroundskeeperError as error:
        log.warning("The timeline of the table of job %s could not be read: %s", job_id, error)
        return None
    if archived in timeline.instants:
        return INSTANT_NOT_ARCHIVED.because(f"Still on the timeline: {archived}.")
    missing = [each for each in result.instants if each >= timeline.starts_at and each not in timeline.instants]
    if not missing:
        return None
    return INSTANT_NOT_COMPLETED.because(f"Not completed: {', '.join(missing)}.")
