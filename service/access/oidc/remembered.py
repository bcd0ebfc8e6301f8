"""Keeps a document of the provider, and fetches it again when it is old."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from service.access.errors import ProviderUnavailableError

_T = TypeVar("_T")

FRESH_SECONDS = 3600.0
PAUSE_SECONDS = 3.0
"""The shortest time between two attempts to fetch, whatever callers send."""

MOST_WAITING = 4
"""At most this many threads may wait for the provider at once, so that other threads stay free for calls that do not
need the provider."""


class Remembered(Generic[_T]):
    """A document that is kept. Thread-safe: one thread at a time fetches. While the provider does not answer, the old
    document is used."""

    def __init__(self, fetch: Callable[[], _T]) -> None:
        self._fetch = fetch
        self._turn, self._places = threading.Lock(), threading.BoundedSemaphore(MOST_WAITING)
        self._value: _T | None = None
        self._error: ProviderUnavailableError | None = None
        self._fetched_at = self._tried_at = float("-inf")

    def get(self, lacks: Callable[[_T], bool] = lambda _: False) -> _T:
        """Returns the document. If the document is old, or `lacks` returns True for it, this method first tries to
        fetch it again. Raises ProviderUnavailableError if there is no document."""
        value = self._value
        if value is not None and time.monotonic() - self._fetched_at < FRESH_SECONDS and not lacks(value):
            return value
        if not self._places.acquire(blocking=False):
            if value is None:
                raise ProviderUnavailableError("Too many calls wait for the provider already.")
            return value
        try:
            with self._turn:
                return self._fetched()
        finally:
            self._places.release()

    def _fetched(self) -> _T:
        if time.monotonic() - self._tried_at >= PAUSE_SECONDS:
            self._error = None
            try:
                self._value = self._fetch()
                self._fetched_at = time.monotonic()
            except ProviderUnavailableError as error:
                self._error = error
            # The pause begins at the end of the attempt, because a provider may take seconds to fail.
            self._tried_at = time.monotonic()
        if self._value is None:
            raise ProviderUnavailableError(self._error.detail if self._error else "")
        return self._value
