"""Decides whether to send a call again."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus

_NOT_DONE = {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}


@dataclass(frozen=True)
class Retries:
    """Limits the repetitions of a call to `times`. The pauses are random: their mean is `first` seconds at first, and
    then doubles up to `most`. If the service's `Retry-After` is longer, it is used instead. If it is even longer than
    `longest`, the call fails at once."""

    times: int = 4
    first: float = 0.3
    most: float = 10.0
    longest: float = 120.0

    def pause(self, tries: int, *, retry_after: str | None = None) -> float | None:
        """Returns the seconds until the next try after `tries` tries; None if there is no further try."""
        if tries > self.times:
            return None
        own = min(self.first * 2.0 ** (tries - 1), self.most) * random.uniform(0.8, 1.2)  # noqa: S311 - no secret
        asked = _seconds(retry_after)
        if asked is None:
            return own
        return max(own, asked) if asked <= self.longest else None


def is_passing(status: int) -> bool:
    """Returns whether the status calls for another try: the service has not executed the call (429), or was not able to
    execute it (503)."""
    return status in _NOT_DONE


def may_repeat(status: int, *, is_repeatable: bool) -> bool:
    """Returns whether to repeat the call. A 503 may arrive after the call has had its effect, so only a repeatable call
    is repeated after a 503."""
    return status == HTTPStatus.TOO_MANY_REQUESTS or (is_passing(status) and is_repeatable)


def _seconds(retry_after: str | None) -> float | None:
    """Parses `Retry-After` (RFC 9110, 10.2.3): seconds or a date. Returns None for any other text."""
    text = (retry_after or "").strip()
    if text.isascii() and text.isdigit() and len(text) < 10:
        return float(text)
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, (at.replace(tzinfo=at.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
