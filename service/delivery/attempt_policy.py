"""Rules after an attempt: whether the delivery is done, retried or given up, and whether its webhook is disabled."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from random import Random

from service.delivery.webhook import SendResult, Webhook

_GONE = 410


@dataclass(frozen=True)
class DeliveryConfig:
    """The settings of retries."""

    # The pauses in seconds after the first failure, the second one, and so on. The last pause precedes the last try.
    schedule: tuple[float, ...] = (5, 300, 1800, 7200, 18_000, 36_000, 36_000)
    jitter: float = 0.1  # The largest share of a pause that is added to it.
    most_retry_after: timedelta = timedelta(hours=12)  # A receiver's `Retry-After` extends a pause to this at most.
    most_hold: timedelta = timedelta(hours=36)  # A delivery blocks later ones for this time after its first attempt.
    disable_after: timedelta = timedelta(days=5)  # A webhook that fails for this time without a success is disabled.


@dataclass(frozen=True)
class Done:
    """The receiver accepted the delivery."""


@dataclass(frozen=True)
class TryAgain:
    at: datetime


@dataclass(frozen=True)
class GiveUp:
    """The delivery becomes a dead letter, and the next one in its queue follows."""


def after_answer(
    answer: SendResult,
    *,
    tries: int,
    first_tried_at: datetime,
    now: datetime,
    wall: datetime,
    config: DeliveryConfig,
    rng: Random,
) -> Done | TryAgain | GiveUp:
    """Decides about the delivery. `tries` includes this attempt. `now` is the time of the service. `wall` is the time
    of the machine's clock; a date in the receiver's answer is compared with this time."""
    if answer.is_accepted:
        return Done()
    if tries > len(config.schedule):
        return GiveUp()
    pause = timedelta(seconds=config.schedule[tries - 1])
    requested = min(retry_after(answer.retry_after, wall), config.most_retry_after)
    # The next try comes neither before the requested time nor before the scheduled one, because otherwise
    # `Retry-After: 0` would use up all tries at once.
    at = now + max(pause, requested) * (1 + config.jitter * rng.random())
    return TryAgain(at) if at - first_tried_at <= config.most_hold else GiveUp()


def reason_to_disable(webhook: Webhook, answer: SendResult, *, now: datetime, config: DeliveryConfig) -> str | None:
    """Returns why the webhook has to be disabled, or None. `webhook` is as it was before this answer."""
    if answer.is_accepted:
        return None
    if answer.status == _GONE:
        return "The receiver answered 410 Gone."
    if webhook.failing_since is not None and now - webhook.failing_since >= config.disable_after:
        days = config.disable_after / timedelta(days=1)
        return f"Every attempt failed for more than {days:g} days; the last one: {summary(answer)}."
    return None


def summary(answer: SendResult) -> str:
    """Returns the answer in a few words."""
    return f"HTTP {answer.status}" if answer.status is not None else answer.error or "no answer"


def retry_after(value: str | None, now: datetime) -> timedelta:
    """Parses the header of RFC 9110 (section 10.2.3): seconds, or an HTTP date. Returns 0 for an invalid value."""
    text = (value or "").strip()
    if text.isascii() and text.isdigit():
        return timedelta(seconds=min(int(text[:12]), 10**9))
    try:
        moment = parsedate_to_datetime(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max(moment - now, timedelta(0))
    except (ValueError, TypeError, OverflowError):  # OverflowError is raised at the ends of the calendar.
        return timedelta(0)
