"""Frees S3 connections that Hudi leaks, so that a worker can run for long. Hudi 1.2.0 never closes the log files of the
metadata table in which it looks up keys (`InLineFsDataInputStream` closes a wrapper that does not close the file). On a
local disk the garbage collector closes them; on S3 each one blocks a connection of S3A's pool, some dozens with each
job, until none is left and every call hangs. Closing the file system frees all connections, but only while no job uses
it. So it is closed between jobs, and when too many jobs have run since the last close, no new job starts until then."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SCHEME = "s3a://"
# Reopening takes some time, so the file system is not closed after each job.
JOBS_BEFORE_CLOSE = 5
MAX_JOBS_BEFORE_CLOSE = 20


class Connections:
    """Counts jobs and closes file systems between them.

    `close` is called with a path of each bucket that was used, while no job runs; it must not raise.
    """

    def __init__(self, close: Callable[[str], None]) -> None:
        self._close = close
        self._guard = threading.Lock()
        self._running = 0
        self._jobs = 0
        self._used: dict[str, str] = {}

    def has_room(self) -> bool:
        """Returns whether another job may begin. If not, the running jobs must end first."""
        with self._guard:
            return self._jobs < MAX_JOBS_BEFORE_CLOSE or not self._running

    @contextmanager
    def used_by(self, base_path: str) -> Iterator[None]:
        """A context manager for a job on this table."""
        with self._guard:
            self._running += 1
        try:
            yield
        finally:
            with self._guard:
                self._running -= 1
                if base_path.startswith(SCHEME):
                    self._jobs += 1
                    self._used[base_path.removeprefix(SCHEME).partition("/")[0]] = base_path
                if not self._running and self._jobs >= JOBS_BEFORE_CLOSE:
                    for path in self._used.values():
                        self._close(path)
                    self._used.clear()
                    self._jobs = 0
