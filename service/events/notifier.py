"""Notifications wake workers that wait for a job, and the dispatcher and event streams that wait for events. Thus none
of them has to poll often. A notification reaches this process, and through `relay` the other replicas. A notification
may be lost, so listeners also poll.

A listener may have a function that says whether the listener may find something. Most notifications report a commit,
which concerns neither workers nor webhooks. Waking a thread takes ten times as long as a short query to SQLite.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

MayFind = Callable[[], bool]
"""Returns whether a listener may find something. Any thread may call the function; it must return at once, and not
raise."""


def _anything() -> bool:
    return True


class Listener:
    """One caller that waits in its event loop."""

    def __init__(self, may_find: MayFind = _anything) -> None:
        self.may_find = may_find
        self._loop = asyncio.get_running_loop()
        self._notified = asyncio.Event()

    def forget(self) -> None:
        """Clears the notification. Must be called *before* a query, so that a change after the query still ends the
        wait."""
        self._notified.clear()

    async def wait(self, seconds: float) -> None:
        """Returns at the next notification, or after `seconds`. Returns at once if a notification came since
        `forget`."""
        try:
            async with asyncio.timeout(seconds):
                await self._notified.wait()
        except TimeoutError:
            pass

    def wake(self) -> None:
        self._loop.call_soon_threadsafe(self._notified.set)


class Notifier:
    """Wakes all listeners. Any thread may call `notify`, but only after the commit of the transaction that queued a job
    or published an event."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._listeners: set[Listener] = set()
        self._events: list[tuple[threading.Event, MayFind]] = []
        self._is_closed = False
        # The function passes notifications to other replicas, and must return at once.
        self.relay: Callable[[], None] | None = None

    @property
    def is_closed(self) -> bool:
        """Whether the service is about to stop. If so, callers must lease no more jobs and must not wait."""
        return self._is_closed

    @contextmanager
    def listener(self, may_find: MayFind = _anything) -> Iterator[Listener]:
        listener = Listener(may_find)
        with self._guard:
            self._listeners.add(listener)
        try:
            yield listener
        finally:
            with self._guard:
                self._listeners.discard(listener)

    def event(self, may_find: MayFind = _anything) -> threading.Event:
        """Returns a new event for a thread, which each notification sets."""
        event = threading.Event()
        with self._guard:
            self._events.append((event, may_find))
        return event

    def notify(self) -> None:
        self.notify_here()
        if self.relay is not None:
            self.relay()

    def notify_here(self) -> None:
        """Wakes the listeners of this process only."""
        with self._guard:
            for listener in self._listeners:
                if self._is_closed or listener.may_find():
                    listener.wake()
            for event, may_find in self._events:
                if self._is_closed or may_find():
                    event.set()

    def close(self) -> None:
        # A plain flag is enough, so `is_closed` needs no lock. Listeners read the flag when they wake.
        self._is_closed = True
        self.notify()
