"""Gives connections to S3 back that Hudi keeps, so that a worker can live for long.

Hudi 1.2.0 never closes a file of the metadata table's log that it looks keys up in (`InLineFsDataInputStream` closes
a wrapper that does not pass it on). On a disk the garbage collector does; of S3A's pool a connection is gone for good,
some dozen with each job, until nothing is left and every call hangs. Closing the file system returns all of them, but
it must not be in use: so that is done between jobs, and no job is begun when too many have been since.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SCHEME = "s3a://"
# Opening it again takes a moment, so not after each job.
JOBS_IN_PEACE = 5
JOBS_AT_MOST = 20


class Connections:
    """`close` is called with a path of each bucket that was used, while no job runs; it must not raise."""

    def __init__(self, close: Callable[[str], None]) -> None:
        self._close = close
        self._guard = threading.Lock()
        self._running = 0
        self._jobs = 0
        self._used: dict[str, str] = {}

    def has_room(self) -> bool:
        """Whether another job may begin. If not, those that run have to end first."""
        with self._guard:
            return self._jobs < JOBS_AT_MOST or not self._running

    @contextmanager
    def used_by(self, base_path: str) -> Iterator[None]:
        """Around a job on this table."""
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
                if not self._running and self._jobs >= JOBS_IN_PEACE:
                    for path in self._used.values():
                        self._close(path)
                    self._used.clear()
                    self._jobs = 0
