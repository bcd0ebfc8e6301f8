"""The problems and backlogs of the whole installation, as they were a few seconds ago.

To compute them takes half a second for a thousand tables, and a page asks for them after each event. So one process
computes them once for all that ask, and answers meanwhile with what it computed last, or with what the last round of
`problem_rounds` has found: a first visitor does not wait either.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from service.standing.look import look

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import Engine

    from service.model.clock import Clock
    from service.standing.facts import TableFacts
    from service.standing.problem import Severity, StandingProblem
    from service.standing.problems import Found

_log = logging.getLogger(__name__)

_FRESH_SECONDS = 2.0
# What took no longer is computed before the answer.
_AT_ONCE_SECONDS = 0.1
# What takes longer begins after the answers of now, which it would slow down.
_AFTER_SECONDS = 0.3
# Of the time that passes, computing takes this part at most.
_SHARE = 0.1
MOST_AGE = timedelta(minutes=1)
"""An answer never tells of an earlier time, so that a caller who comes once sees what is wrong now."""


@dataclass(frozen=True)
class TableBacklog:
    """What a table's services have not done yet. `commits` are those since the last compaction."""

    log_bytes: int
    base_bytes: int
    commits: int
    last_commit_at: datetime | None


@dataclass(frozen=True)
class Known:
    """The state `as_of` a time: the problems, the most serious first, and the backlogs of the tables that have been
    polled, by table id."""

    as_of: datetime
    problems: Sequence[StandingProblem] = ()
    backlogs: Mapping[str, TableBacklog] = field(default_factory=dict)
    counts: Mapping[Severity, int] = field(default_factory=Counter)
    of_tables: Mapping[str, Sequence[StandingProblem]] = field(default_factory=dict)


def _known(found: Found, tables: Sequence[TableFacts], now: datetime) -> Known:
    of_tables = defaultdict(list)
    for each in found.problems:
        if each.table_id is not None:
            of_tables[each.table_id].append(each)
    return Known(
        as_of=now,
        problems=found.problems,
        backlogs={table.id: backlog for table in tables if (backlog := _backlog(table))},
        counts=Counter(each.severity for each in found.problems),
        of_tables=of_tables,
    )


class Board:
    """What one process computed last. Safe to use from several threads."""

    def __init__(self) -> None:
        self._last: Known | None = None
        self._computing = threading.Lock()
        self._ended_at = 0.0
        self._took = 0.0

    def known(self, engine: Engine, clock: Clock) -> Known:
        """Returns what is known, unless that is older than MOST_AGE, and then computes it anew for the next call; where
        computing takes moments, for this one. Raises DatabaseUnavailableError."""
        last = self._last
        if last is None or not timedelta(0) <= clock() - last.as_of <= MOST_AGE:
            with self._computing:
                if self._last is last:
                    self._compute(engine, clock)
            assert self._last is not None
            return self._last
        if self._is_due() and self._computing.acquire(blocking=False):
            if self._took < _AT_ONCE_SECONDS:
                self._renew(engine, clock)
                return self._last or last
            thread = threading.Timer(_AFTER_SECONDS, self._renew, (engine, clock))
            thread.name, thread.daemon = "problems", True
            try:
                thread.start()
            except RuntimeError:
                # No more threads can be started. The next call tries again.
                self._computing.release()
        return last

    def look(self, engine: Engine, clock: Clock) -> tuple[Found, Sequence[TableFacts]]:
        """Looks at the whole installation now, and remembers what is found. Raises DatabaseUnavailableError."""
        with self._computing:
            return self._compute(engine, clock)

    def _is_due(self) -> bool:
        return time.monotonic() - self._ended_at > max(_FRESH_SECONDS, self._took / _SHARE)

    def _renew(self, engine: Engine, clock: Clock) -> None:
        try:
            self._compute(engine, clock)
        except Exception:
            # A later call computes again, and gets the error when the last result has become too old.
            _log.exception("the problems could not be computed")
        finally:
            self._computing.release()

    def _compute(self, engine: Engine, clock: Clock) -> tuple[Found, Sequence[TableFacts]]:
        began, now = time.monotonic(), clock()
        try:
            found, tables = look(engine, now)
            self._last = _known(found, tables, now)
            return found, tables
        finally:
            self._ended_at = time.monotonic()
            self._took = self._ended_at - began


def _backlog(table: TableFacts) -> TableBacklog | None:
    if table.snapshot is None:
        return None
    totals = table.snapshot.totals
    return TableBacklog(
        log_bytes=totals.log_bytes,
        base_bytes=totals.base_bytes,
        commits=table.snapshot.since_compaction.commits,
        last_commit_at=table.snapshot.last_commit_at,
    )
