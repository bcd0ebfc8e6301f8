"""Calls that wait for the end of a job. None of them holds a thread or a connection to the database meanwhile."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import anyio.to_thread
from anyio import CapacityLimiter
from fastapi import Request

from service.api.dependencies import Caller
from service.api.errors import TooManyWaitsError
from service.db.engine import reading
from service.events.database import Database
from service.queue import job_store
from service.queue.job import ENDED

MOST_SECONDS = 60
_MOST = 500
_MOST_OF_TOKEN = 100
# Waiting calls share few threads for reading the database, so that other calls do not wait for them.
_MOST_READERS = 2
# A notification of another replica may be lost, and without a relay none arrives.
_POLL_SECONDS = 1.0
# Every event of any table wakes all of them.
_PAUSE_SECONDS = 0.1


class JobWaits:
    """The waiting calls of one process, by the token that made them."""

    def __init__(self) -> None:
        self._open: Counter[str | None] = Counter()
        self._limiter: CapacityLimiter | None = None

    async def until_end(
        self, job_id: str, seconds: float, *, request: Request, database: Database, caller: Caller
    ) -> None:
        """Returns when the job has ended, after `seconds`, or when the caller has gone or the service stops.

        Raises JobNotFoundError and TooManyWaitsError.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        with self._opened(caller), database.notifier.listener() as listener:
            while not database.notifier.is_closed:
                listener.forget()
                if await self._has_ended(database, job_id) or await request.is_disconnected():
                    return
                left = end - loop.time()
                if left <= 0:
                    return
                await listener.wait(min(left, _POLL_SECONDS))
                await asyncio.sleep(min(max(end - loop.time(), 0), _PAUSE_SECONDS))
        # The service is stopping. Without this pause a caller would repeat its request in a tight loop.
        await asyncio.sleep(min(0.2, seconds))

    @contextmanager
    def _opened(self, caller: Caller) -> Iterator[None]:
        if self._open.total() >= _MOST:
            raise TooManyWaitsError(f"{self._open.total()} calls wait for jobs.")
        if caller.token and self._open[caller.token_id] >= _MOST_OF_TOKEN:
            raise TooManyWaitsError(f"{self._open[caller.token_id]} calls of this token wait for jobs.")
        self._open[caller.token_id] += 1
        try:
            yield
        finally:
            self._open[caller.token_id] -= 1

    async def _has_ended(self, database: Database, job_id: str) -> bool:
        if self._limiter is None:  # It belongs to the event loop that creates it.
            self._limiter = CapacityLimiter(_MOST_READERS)
        return await anyio.to_thread.run_sync(_has_ended, database, job_id, limiter=self._limiter)


def _has_ended(database: Database, job_id: str) -> bool:
    with reading(database.engine) as connection:
        return job_store.state_of(connection, job_id) in ENDED
