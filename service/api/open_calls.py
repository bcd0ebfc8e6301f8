"""Calls that a process holds open: streams of events, and calls that wait for the end of a job. A call that waits uses
neither a thread nor a connection to the database."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar, TypeVar

import anyio.to_thread
from anyio import CapacityLimiter
from fastapi import Request

from service.api.dependencies import Caller
from service.api.errors import TooManyWaitsError
from service.db.engine import reading
from service.events.database import Database
from service.model.errors import GroundskeeperError
from service.queue import job_store
from service.queue.job import ENDED

_Found = TypeVar("_Found")

MOST_SECONDS = 60
# The database is also polled, because a notification of another replica may be lost, and without a relay none arrives.
_POLL_SECONDS = 1.0
# An event of any table wakes all open calls, so each pauses for a moment before it reads the database.
_PAUSE_SECONDS = 0.1


class OpenCalls:
    """The open calls of one kind, counted by token. They share a few threads for reading the database (`readers`), so
    that other calls need not wait."""

    most: ClassVar[int]
    most_of_token: ClassVar[int]
    readers: ClassVar[int]
    words: ClassVar[tuple[str, str]]
    error: ClassVar[type[GroundskeeperError]]

    def __init__(self) -> None:
        self._open: Counter[str | None] = Counter()
        self._limiter: CapacityLimiter | None = None

    def check(self, caller: Caller) -> None:
        """Raises the `error` of this kind if the caller may not hold another call open."""
        (calls, do), every, own = self.words, self._open.total(), self._open[caller.token_id]
        if every >= self.most:
            raise self.error(f"{every} {calls} {do}.")
        if caller.token and own >= self.most_of_token:
            raise self.error(f"{own} {calls} of this token {do}.")

    @contextmanager
    def opened(self, caller: Caller) -> Iterator[None]:
        self._open[caller.token_id] += 1
        try:
            yield
        finally:
            self._open[caller.token_id] -= 1

    async def read(self, function: Callable[..., _Found], *arguments: object) -> _Found:
        """Returns what the function returns, in one of the threads."""
        if self._limiter is None:  # A limiter belongs to the event loop in which it is created.
            self._limiter = CapacityLimiter(self.readers)
        return await anyio.to_thread.run_sync(function, *arguments, limiter=self._limiter)


class JobWaits(OpenCalls):
    most, most_of_token, readers = 500, 100, 2
    words, error = ("calls", "wait for jobs"), TooManyWaitsError

    async def until_end(
        self, job_id: str, seconds: float, *, request: Request, database: Database, caller: Caller
    ) -> None:
        """Returns when the job has ended, after `seconds`, or when the caller has gone or the service stops.

        Raises JobNotFoundError and TooManyWaitsError.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        self.check(caller)
        with self.opened(caller), database.notifier.listener() as listener:
            while not database.notifier.is_closed:
                listener.forget()
                if await self.read(_has_ended, database, job_id) or await request.is_disconnected():
                    return
                left = end - loop.time()
                if left <= 0:
                    return
                await listener.wait(min(left, _POLL_SECONDS))
                await asyncio.sleep(min(max(end - loop.time(), 0), _PAUSE_SECONDS))
        # The service is stopping. Without this pause a caller would repeat its request in a tight loop.
        await asyncio.sleep(min(0.2, seconds))


def _has_ended(database: Database, job_id: str) -> bool:
    with reading(database.engine) as connection:
        return job_store.state_of(connection, job_id) in ENDED
