"""What becomes of a delivery after an attempt: done, tried again, given up; and of its webhook."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

    from service.delivery.webhook import SendResult, Webhook

_GONE = 410


@dataclass(frozen=True)
class DeliveryConfig:
    """`schedule` are the pauses after the first, second ... failure, in seconds; after the last one there is no more.

    `jitter` is the part of a pause that is added at most. A receiver's `Retry-After` can make a pause longer, up to
    `most_retry_after`. No delivery holds up the later ones of its table for longer than `most_hold`, counted from its
    first attempt. A webhook that fails for `disable_after` without one success between is disabled.
    """

    schedule: tuple[float, ...] = (5, 300, 1800, 7200, 18_000, 36_000, 36_000)
    jitter: float = 0.1
    most_retry_after: timedelta = timedelta(hours=12)
    most_hold: timedelta = timedelta(hours=36)
    disable_after: timedelta = timedelta(days=5)


@dataclass(frozen=True)
class Done:
    """The receiver took it."""


@dataclass(frozen=True)
class TryAgain:
    at: datetime


@dataclass(frozen=True)
class GiveUp:
    """It becomes a dead letter, and what comes after it goes on."""


def after_answer(
    answer: SendResult, *, tries: int, first_tried_at: datetime, now: datetime, config: DeliveryConfig, rng: Random
) -> Done | TryAgain | GiveUp:
    """`tries` counts this attempt."""
    if answer.is_accepted:
        return Done()
    if tries > len(config.schedule):
        return GiveUp()
    pause = timedelta(seconds=config.schedule[tries - 1])
    wished = min(retry_after(answer.retry_after, now), config.most_retry_after)
    # Never sooner than asked for, and never hastier than the schedule: a receiver that says 0 would use it up at once.
    at = now + max(pause, wished) * (1 + config.jitter * rng.random())
    return TryAgain(at) if at - first_tried_at <= config.most_hold else GiveUp()


def reason_to_disable(webhook: Webhook, answer: SendResult, *, now: datetime, config: DeliveryConfig) -> str | None:
    """`webhook` is as it was before this answer."""
    if answer.is_accepted:
        return None
    if answer.status == _GONE:
        return "The receiver answered 410 Gone."
    if webhook.failing_since is not None and now - webhook.failing_since >= config.disable_after:
        days = config.disable_after / timedelta(days=1)
        return f"Every attempt failed for more than {days:g} days; the last one: {said(answer)}."
    return None


def said(answer: SendResult) -> str:
    """An answer in a few words."""
    return f"HTTP {answer.status}" if answer.status is not None else answer.error or "no answer"


def retry_after(value: str | None, now: datetime) -> timedelta:
    """The pause that the header of RFC 9110 (section 10.2.3) asks for: seconds, or an HTTP date. 0 for nonsense."""
    text = (value or "").strip()
    if text.isascii() and text.isdigit():
        return timedelta(seconds=min(int(text[:12]), 10**9))
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError):
        return timedelta(0)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(moment - now, timedelta(0))
