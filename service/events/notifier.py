"""Wakes those who wait for something the moment it is there, so that nobody has to ask often: workers for a job, the
dispatcher and the event streams for events.

It reaches this process only. What another replica wrote is found by the waiting ones' own look once in a while.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Listener:
    """One waiting call, in its event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._notified = asyncio.Event()

    def forget(self) -> None:
        """Call this *before* looking: what is written after the look then still wakes the wait."""
        self._notified.clear()

    async def wait(self, seconds: float) -> None:
        """Returns when the bell rings, has rung since `forget`, or the time is over."""
        try:
            async with asyncio.timeout(seconds):
                await self._notified.wait()
        except TimeoutError:
            pass

    def wake(self) -> None:
        self._loop.call_soon_threadsafe(self._notified.set)


class Notifier:
    """May be rung from any thread, after the transaction that queued a job or published an event."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._listeners: set[Listener] = set()
        self._is_closed = False

    @property
    def is_closed(self) -> bool:
        """The service is about to stop: hand out no more work, and let nobody wait."""
        return self._is_closed

    @contextmanager
    def listener(self) -> Iterator[Listener]:
        listener = Listener()
        with self._guard:
            self._listeners.add(listener)
        try:
            yield listener
        finally:
            with self._guard:
                self._listeners.discard(listener)

    def notify(self) -> None:
        with self._guard:
            for listener in self._listeners:
                listener.wake()

    def close(self) -> None:
        # A plain flag, so that this may be called where a lock must not be taken; the waiting ones see it when woken.
        self._is_closed = True
        self.notify()
