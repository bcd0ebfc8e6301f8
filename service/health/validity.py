"""A current time for computations, which notes until when the result of a computation stays the same.

A search for problems compares and subtracts times. `TrackedTime` notes when each comparison will have another outcome,
and when each formatted duration will have another text. So the functions that find problems need not say when a problem
must be computed again.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Self

from service.model.formatting import steady_for

NEVER = datetime.max.replace(tzinfo=UTC)
_LEAST = timedelta(microseconds=1)


class _Validity:
    __slots__ = ("now", "until")

    def __init__(self, now: datetime) -> None:
        self.now, self.until = now, NEVER

    def end_in(self, span: timedelta) -> None:
        """Notes that the result changes after this span of time. A change in the past does not count."""
        if span < timedelta():
            return
        try:
            at = self.now + max(span, _LEAST)
        except OverflowError:
            return
        self.until = min(self.until, at)


class TrackedTime(datetime):
    """The current time. A computation with this time begins at `start`, and its result stays the same until
    `valid_until`. Only comparisons and subtractions are noted."""

    _plain: datetime
    _validity: _Validity

    @classmethod
    def of(cls, now: datetime) -> Self:
        return cls._made(now, _Validity(now))

    @classmethod
    def _made(cls, now: datetime, validity: _Validity) -> Self:
        present = cls.combine(now.date(), now.timetz())
        present._plain, present._validity = now, validity
        return present

    def start(self) -> None:
        """Begins a new computation for the same present time."""
        self._validity.until = NEVER

    def ends_at(self, at: datetime) -> None:
        """Notes a time at which the result may change."""
        self._validity.end_in(at - self._validity.now)

    @property
    def valid_until(self) -> datetime:
        return self._validity.until

    def __sub__(self, other: Any) -> Any:
        difference = self._plain - other
        if isinstance(difference, datetime):
            return self._made(difference, self._validity)
        return _Elapsed.since(difference, self._validity)

    def __rsub__(self, other: datetime) -> timedelta:
        # Times that remain until a later moment are rare, and their text changes all the time. So the result is valid
        # only for this moment.
        self._validity.end_in(timedelta())
        return other - self._plain

    def __lt__(self, other: Any) -> bool:
        self._validity.end_in(other - self._plain)
        return bool(self._plain < other)

    def __le__(self, other: Any) -> bool:
        self._validity.end_in(other - self._plain)
        return bool(self._plain <= other)

    def __gt__(self, other: Any) -> bool:
        self._validity.end_in(other - self._plain)
        return bool(self._plain > other)

    def __ge__(self, other: Any) -> bool:
        self._validity.end_in(other - self._plain)
        return bool(self._plain >= other)


class _Elapsed(timedelta):
    """The time since a moment. This time grows."""

    _validity: _Validity

    @classmethod
    def since(cls, span: timedelta, validity: _Validity) -> Self:
        elapsed = cls(span.days, span.seconds, span.microseconds)
        elapsed._validity = validity
        return elapsed

    def total_seconds(self) -> float:
        seconds = super().total_seconds()
        self._validity.end_in(timedelta(seconds=steady_for(seconds)))
        return seconds

    def __lt__(self, other: timedelta) -> bool:
        self._validity.end_in(other - self)
        return super().__lt__(other)

    def __le__(self, other: timedelta) -> bool:
        self._validity.end_in(other - self)
        return super().__le__(other)

    def __gt__(self, other: timedelta) -> bool:
        self._validity.end_in(other - self)
        return super().__gt__(other)

    def __ge__(self, other: timedelta) -> bool:
        self._validity.end_in(other - self)
        return super().__ge__(other)
