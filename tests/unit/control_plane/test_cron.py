"""Tests cron expressions in local time."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from service.scheduling.cron import next_after


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("expression", "zone", "after", "expected"),
    [
        ("0 2 * * *", "UTC", "2026-01-01 01:59:59", "2026-01-01 02:00"),
        ("0 2 * * *", "UTC", "2026-01-01 02:00", "2026-01-02 02:00"),
        ("0 2 * * *", "Europe/Berlin", "2026-01-01 00:30", "2026-01-01 01:00"),
        ("0 3 * * 0", "UTC", "2026-01-01 00:00", "2026-01-04 03:00"),  # Sunday
        ("0 3 * * 6", "UTC", "2026-01-01 00:00", "2026-01-03 03:00"),  # Saturday
        ("0 3 * * 1-5", "UTC", "2026-01-02 12:00", "2026-01-05 03:00"),
        ("0 3 13 * 5", "UTC", "2026-01-01 00:00", "2026-01-02 03:00"),  # the 13th, or a Friday
        ("30 2 * * *", "Europe/Berlin", "2026-03-28 12:00", "2026-03-29 01:00"),  # 2:30 is skipped
        ("30 2 * * *", "Europe/Berlin", "2026-10-25 00:30", "2026-10-26 01:30"),  # 2:30 comes twice, counts once
        ("0 0 29 2 *", "UTC", "2026-01-01 00:00", "2028-02-29 00:00"),
    ],
)
def test_the_next_time_of_a_cron_expression_is_found(expression: str, zone: str, after: str, expected: str) -> None:
    assert next_after(expression, zone, utc(after)) == utc(expected)


@pytest.mark.parametrize(
    ("expression", "wrong"),
    [
        ("", "the five fields of cron"),
        ("* * * *", "minute, hour, day of month, month, day of week"),
        ("61 * * * *", "has a wrong minute: it takes 0 to 59"),
        ("0 0 30 2 *", "has a wrong day of month: it takes 1 to 31, as many as the month has"),
        ("whenever", "the five fields of cron"),
        ("0 3 * * someday", "has a wrong day of week: it takes 0 to 7"),
    ],
)
def test_an_invalid_cron_expression_is_refused(expression: str, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        next_after(expression, "UTC", utc("2026-01-01"))
