"""Compares the success that a worker reports with the table's timeline."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from jobs.contract import Outcome, Problem
from service.catalog import table_store
from service.db.engine import reading
from service.lake.storage import open_storage
from service.lake.table_config import read_table_config
from service.lake.timeline import read_timeline
from service.model.errors import GroundskeeperError
from service.queue import job_store

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Engine

    from jobs.contract import Result

log = logging.getLogger(__name__)


def contradiction(engine: Engine, job_id: str, result: Result, *, storage_options: Mapping[str, str]) -> Problem | None:
    """Returns the difference between a reported success and the timeline; None if they agree.

    They agree if each reported instant has completed, or is older than the active timeline. A table that cannot be read
    contradicts nothing: the worker has read its timeline itself.
    """
    if result.outcome is not Outcome.SUCCEEDED or not result.instants:
        return None
    try:
        with reading(engine) as connection:
            job = job_store.get(connection, job_id)
            base_path = table_store.get(connection, job.table_id).base_path
        if job.dry_run:
            return None
        storage = open_storage(base_path, storage_options)
        timeline = read_timeline(storage, read_table_config(storage))
    except GroundskeeperError as error:
        log.warning("The timeline of the table of job %s could not be read: %s", job_id, error)
        return None
    first_active = timeline.instants[0].requested_time if timeline.instants else ""
    missing = [each for each in result.instants if each >= first_active and not timeline.completed(each)]
    if not missing:
        return None
    return Problem(
        type="instant-not-completed",
        title="The worker reported success, but the table's timeline does not show it",
        detail=f"Not completed: {', '.join(missing)}.",
        hint="Compare the table's timeline with the worker's log: the commit may have been rolled back or restored.",
    )
