"""Tests the states of a delivery and of its webhook after an answer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.delivery.attempt_policy import (
    DeliveryConfig,
    Done,
    GiveUp,
    TryAgain,
    after_answer,
    reason_to_disable,
    retry_after,
)
from service.delivery.webhook import SendResult, Webhook

NOW = datetime(2026, 1, 1, tzinfo=UTC)
EXACT = DeliveryConfig(jitter=0.0)


def state_after(
    answer: SendResult, tries: int = 1, first: datetime = NOW, config: DeliveryConfig = EXACT
) -> Done | TryAgain | GiveUp:
    return after_answer(answer, tries=tries, first_tried_at=first, now=NOW, wall=NOW, config=config, rng=Random(1))


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_an_accepted_delivery_is_done(status: int) -> None:
    assert state_after(SendResult(0.1, status)) == Done()


@pytest.mark.parametrize("status", [None, 100, 301, 302, 308, 400, 404, 410, 429, 500, 503])
def test_any_other_answer_is_retried(status: int | None) -> None:
    assert state_after(SendResult(0.1, status)) == TryAgain(NOW + timedelta(seconds=5))


def test_the_pauses_are_those_of_the_schedule_and_then_it_is_given_up() -> None:
    outcomes = [state_after(SendResult(0.1, 500), tries) for tries in range(1, 9)]
    pauses = [(each.at - NOW).total_seconds() for each in outcomes if isinstance(each, TryAgain)]
    assert pauses == [5, 300, 1800, 7200, 18_000, 36_000, 36_000]
    assert outcomes[-1] == GiveUp()


@given(st.integers(1, 7), st.integers(0, 10_000))
def test_jitter_makes_a_pause_longer_and_never_shorter(tries: int, seed: int) -> None:
    config = DeliveryConfig(jitter=0.1)
    outcome = after_answer(
        SendResult(0.1), tries=tries, first_tried_at=NOW, now=NOW, wall=NOW, config=config, rng=Random(seed)
    )
    assert isinstance(outcome, TryAgain)
    pause = config.schedule[tries - 1]
    assert pause <= (outcome.at - NOW).total_seconds() <= 1.1 * pause


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("120", 120),
        ("0", 5),  # The pause is never shorter than in the schedule.
        ("nonsense", 5),
        ("-3", 5),
        (format_datetime(NOW + timedelta(seconds=90), usegmt=True), 90),
        (format_datetime(NOW - timedelta(days=1), usegmt=True), 5),
        ("9" * 50, 12 * 3600),  # The pause is never longer than the limit.
        ("Fri, 31 Dec 9999 23:59:59 GMT", 12 * 3600),
    ],
)
def test_the_receiver_may_ask_for_a_longer_pause(header: str, seconds: int) -> None:
    assert state_after(SendResult(0.1, 429, retry_after=header)) == TryAgain(NOW + timedelta(seconds=seconds))


@pytest.mark.slow
@given(st.text(max_size=60))
def test_no_value_of_retry_after_raises_an_error(text: str) -> None:
    assert retry_after(text, NOW) >= timedelta(0)


def test_a_delivery_delays_others_no_longer_than_the_settings_allow() -> None:
    config = DeliveryConfig(jitter=0.0, most_hold=timedelta(hours=1))
    assert state_after(SendResult(0.1), 2, NOW - timedelta(minutes=55), config) == TryAgain(NOW + timedelta(minutes=5))
    assert state_after(SendResult(0.1), 2, NOW - timedelta(minutes=56), config) == GiveUp()


def a_webhook(failing_since: datetime | None = None) -> Webhook:
    return Webhook("wh_1", "https://a.example", NOW, NOW, "", "", failing_since=failing_since)


def test_a_webhook_is_disabled_when_it_is_gone_or_fails_for_days() -> None:
    def reason(webhook: Webhook, status: int | None) -> str | None:
        return reason_to_disable(webhook, SendResult(0.1, status, None if status else "timeout"), now=NOW, config=EXACT)

    assert reason(a_webhook(), 410) == "The receiver answered 410 Gone."
    assert reason(a_webhook(), 500) is None
    assert reason(a_webhook(NOW - timedelta(days=4.9)), 500) is None
    assert reason(a_webhook(NOW - timedelta(days=5)), None) == (
        "Every attempt failed for more than 5 days; the last one: timeout."
    )
    assert reason(a_webhook(NOW - timedelta(days=9)), 200) is None


def test_a_success_resets_the_failures_of_delivery_and_webhook() -> None:
    later = NOW + timedelta(hours=1)
    failing = a_webhook().after_attempt(NOW, is_accepted=False).after_attempt(later, is_accepted=False)
    assert failing.failing_since == NOW
    well = failing.after_attempt(later, is_accepted=True)
    assert (well.failing_since, well.last_success_at) == (None, later)
