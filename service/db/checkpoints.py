"""Copies the pages of SQLite's write-ahead log into the database. Without these copies, the log would grow until a
transaction has to copy it."""

from __future__ import annotations

import math
import time
from functools import partial

from sqlalchemy import Engine

from service.db.commit_watch import CommitWatch
from service.db.engine import checkpoint, version

# If the log had more pages than this at the last copy, the next copy comes as soon as possible; a short log can wait.
_LONG_PAGES = 500
_SHORT_SECONDS = 6.0


class Checkpoints:
    """The copies for one database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._watch = CommitWatch(partial(version, engine))
        self._is_new = False
        self._pages, self._at = 0, -math.inf

    def is_due(self) -> bool:
        self._is_new |= self._watch.are_new()
        is_short = self._pages <= _LONG_PAGES and time.monotonic() < self._at + _SHORT_SECONDS
        return self._is_new and not is_short

    def run_once(self) -> str:
        """Copies the pages. Raises DatabaseUnavailableError."""
        self._is_new = False
        self._watch.are_new()  # This resets the watch, because everything that was committed until now is copied.
        self._pages = checkpoint(self._engine)
        self._at = time.monotonic()
        return f"{self._pages} pages"
