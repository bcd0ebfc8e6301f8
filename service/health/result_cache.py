"""A cache for results that take long to compute. Each process computes a result once for all callers, who get the
previous one meanwhile."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from sqlalchemy import Engine

from service.model import priority
from service.model.clock import Clock

_log = logging.getLogger(__name__)

_FRESH_SECONDS = 2.0
# If the last computation took no longer than this, the caller waits for a new result.
_AT_ONCE_SECONDS = 0.03
# A longer computation starts after this delay, so that it does not slow down the calls that are being answered.
_AFTER_SECONDS = 1.0
# The first computation of a process takes longest, so it starts after the other work of a start.
_AFTER_START_SECONDS = 2.0
_SHARE = 0.05
MOST_AGE = timedelta(minutes=1)
"""An older result is not returned, so that even a call after a long pause gets recent problems."""
MOST_AGE_AT_ONCE = timedelta(minutes=10)
"""The largest age for callers that would rather get an old result than wait. Rounds of problems come more often, so
results are rarely that old."""


@dataclass(frozen=True)
class MostAge:
    """The largest ages of values that a caller accepts: of a value that covers `few` tables, and of one that covers
    `many`. While a first value for many tables is computed, a caller that does not wait gets another value."""

    few: timedelta
    many: timedelta
    waits: bool = True


NEW = MostAge(timedelta(), timedelta())
UP_TO_DATE = MostAge(timedelta(), MOST_AGE)
NOT_OLD = MostAge(timedelta(), MOST_AGE_AT_ONCE)
AT_ONCE = MostAge(MOST_AGE, MOST_AGE_AT_ONCE, waits=False)

FEW = 500
"""Computing a value for at most this many tables takes much less than a second."""

_Value = TypeVar("_Value")


@dataclass(eq=False)
class ResultCache(Generic[_Value]):
    """A cached value, safe to use from several threads.

    `what` names the value in threads and in the log. `tables` returns the number of tables that a value covers;
    `number` returns the number of tables that a new value would cover. If there are many tables, calls get the last
    value of an earlier process (`stored`) until the first computation has ended. If there is no such value, calls that
    do not wait get the result of `meanwhile`. `share` is the largest share of the time to spend on computing, as long
    as results do not become too old."""

    what: str
    compute: Callable[[Engine, datetime], _Value]
    _: KW_ONLY
    tables: Callable[[_Value], int]
    number: Callable[[Engine], int] = lambda _: 0
    stored: Callable[[Engine], _Value | None] = lambda _: None
    meanwhile: Callable[[Engine, Clock], _Value | None] = lambda *_: None
    share: float = _SHARE

    def __post_init__(self) -> None:
        self._before: _Value | None = None
        self._reading_before = threading.Lock()
        self._has_read_before = False
        self._last: tuple[_Value, datetime] | None = None
        self._computing = threading.Lock()
        self._began_at = self._ended_at = self._took = 0.0

    @property
    def last(self) -> _Value | None:
        """The last value that this process has computed."""
        return self._last[0] if self._last else None

    def get(self, engine: Engine, clock: Clock, accepted: MostAge = UP_TO_DATE) -> _Value:
        """Returns the last value if it is not too old, and computes a new one for the next call. If computing is fast,
        this call returns the new value. If there is no value that is recent enough, the call computes one; concurrent
        calls share this computation. Raises DatabaseUnavailableError."""
        asked, last = time.monotonic(), self._last
        if last is None and accepted.many:
            value = self._first(engine, clock, accepted)
            if value is not None:
                return value
        most_age = accepted.few if last is not None and self.tables(last[0]) <= FEW else accepted.many
        if last is None or not most_age or not timedelta(0) <= clock() - last[1] <= most_age:
            with self._computing:
                # A caller that accepts no age needs a computation that began after its call.
                if self._last is last if most_age else self._began_at <= asked:
                    self._compute(engine, clock)
            assert self._last is not None
            return self._last[0]
        if self._is_due():
            if self._took >= _AT_ONCE_SECONDS:
                self._renew_later(engine, clock, _AFTER_SECONDS)
            elif self._computing.acquire(blocking=False):
                self._renew(engine, clock)
                return (self._last or last)[0]
        return last[0]

    def _first(self, engine: Engine, clock: Clock, accepted: MostAge) -> _Value | None:
        """Returns what calls get until the first value has been computed; None if they have to wait for it."""
        if not self.is_of_many(engine):
            return None
        if not accepted.waits:
            self._renew_later(engine, clock, _AFTER_START_SECONDS)
        # Reading what an earlier process has stored takes seconds, too.
        before = None if not accepted.waits and self._reading_before.locked() else self.of_before(engine)
        if before is not None:
            self._renew_later(engine, clock, _AFTER_START_SECONDS)
        elif not accepted.waits and self.last is None:
            return self.meanwhile(engine, clock)
        # Another caller may have computed the value meanwhile.
        return self.last or before

    def _is_due(self) -> bool:
        # All callers would wait for a new value once the last one is too old, so it must be there before that.
        latest = MOST_AGE.total_seconds() - 3 * self._took
        return time.monotonic() - self._ended_at > max(_FRESH_SECONDS, min(self._took / self.share, latest))

    def is_of_many(self, engine: Engine) -> bool:
        """Returns whether a first value would cover many tables. Raises DatabaseUnavailableError."""
        return self.number(engine) > FEW

    def of_before(self, engine: Engine) -> _Value | None:
        """Returns the last value of an earlier process, or None if this process has computed one."""
        with self._reading_before:
            if not self._has_read_before:
                self._before = self.stored(engine) if self.is_of_many(engine) else None
                self._has_read_before = True
            return self._before

    def _renew_later(self, engine: Engine, clock: Clock, seconds: float) -> None:
        if not self._computing.acquire(blocking=False):
            return
        thread = threading.Timer(seconds, self._renew_behind_calls, (engine, clock))
        thread.name, thread.daemon = self.what, True
        try:
            thread.start()
        except RuntimeError:
            # No more threads can be started. The next call tries again.
            self._computing.release()

    def _renew_behind_calls(self, engine: Engine, clock: Clock) -> None:
        if self._last is not None:  # Calls wait for the first value.
            priority.give_way()
        self._renew(engine, clock)

    def _renew(self, engine: Engine, clock: Clock) -> None:
        try:
            self._compute(engine, clock)
        except Exception:
            # A later call computes again. Once the last result is too old, that call gets the error.
            _log.exception("The %s could not be computed", self.what)
        finally:
            self._computing.release()

    def _compute(self, engine: Engine, clock: Clock) -> _Value:
        began, now = time.monotonic(), clock()
        try:
            value = self.compute(engine, now)
            self._last, self._began_at, self._before = (value, now), began, None
            return value
        finally:
            self._ended_at = time.monotonic()
            self._took = self._ended_at - began
