"""Tests maintenance windows across midnight, on some days, and at changes of daylight saving time."""

from __future__ import annotations

from datetime import UTC, datetime, time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.policies.policy import DAYS, Window
from service.policies.windows import closes_at, opens_at, spans

BERLIN = "Europe/Berlin"


def window(span: str, *days: str) -> Window:
    start, end = span.split("-")
    return Window(time.fromisoformat(start), time.fromisoformat(end), days)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


NIGHT = window("22:00-04:30")

# The 1st of January 2026 is a Thursday; Berlin is an hour ahead of UTC in winter and two in summer.
OPEN = [
    ("in the evening", [NIGHT], "UTC", "2026-01-01 22:00", "2026-01-02 04:30"),
    ("after midnight", [NIGHT], "UTC", "2026-01-02 04:29:59", "2026-01-02 04:30"),
    ("by the zone's clock", [NIGHT], BERLIN, "2026-01-01 21:00", "2026-01-02 03:30"),
    ("opened on Thursday", [window("22:00-04:30", "thu")], "UTC", "2026-01-02 01:00", "2026-01-02 04:30"),
    ("the last of two to close", [NIGHT, window("23:00-06:00")], "UTC", "2026-01-01 23:30", "2026-01-02 06:00"),
    ("all day", [window("00:00-00:00", "thu")], "UTC", "2026-01-01 13:00", "2026-01-02 00:00"),
    ("the short night of spring", [window("01:00-04:00")], BERLIN, "2026-03-29 00:30", "2026-03-29 02:00"),
    ("the long night of autumn", [window("01:00-04:00")], BERLIN, "2026-10-24 23:30", "2026-10-25 03:00"),
    ("its end is skipped", [window("01:00-02:30")], BERLIN, "2026-03-29 01:15", "2026-03-29 01:30"),
    ("within the skipped hour", [window("02:10-02:50")], BERLIN, "2026-03-29 01:15", "2026-03-29 01:50"),
    ("its end comes twice: the first", [window("01:00-02:30")], BERLIN, "2026-10-25 00:15", "2026-10-25 00:30"),
    ("its start comes twice: the first", [window("02:30-04:00")], BERLIN, "2026-10-25 00:30", "2026-10-25 03:00"),
]  # fmt: skip


@pytest.mark.parametrize(("windows", "zone", "now", "closes"), [pytest.param(*c, id=i) for i, *c in OPEN])
def test_the_end_of_the_open_window_is_computed(windows: list[Window], zone: str, now: str, closes: str) -> None:
    assert closes_at(windows, zone, utc(now)) == utc(closes)


CLOSED = [
    ("before", [NIGHT], "UTC", "2026-01-01 21:59:59", "2026-01-01 22:00"),
    ("at its end", [NIGHT], "UTC", "2026-01-02 04:30", "2026-01-02 22:00"),
    ("by the zone's clock", [NIGHT], BERLIN, "2026-01-01 20:59", "2026-01-01 21:00"),
    ("on another day", [window("22:00-04:30", "fri")], "UTC", "2026-01-02 01:00", "2026-01-02 22:00"),
    ("a week on", [window("22:00-23:00", "thu")], "UTC", "2026-01-01 23:00", "2026-01-08 22:00"),
    ("the first of two to open", [NIGHT, window("12:00-13:00")], "UTC", "2026-01-01 10:00", "2026-01-01 12:00"),
    ("its start is skipped", [window("02:30-05:00")], BERLIN, "2026-03-29 01:00", "2026-03-29 01:30"),
    ("within the skipped hour: an hour later", [window("02:10-02:50")], BERLIN, "2026-03-29 01:00",
     "2026-03-29 01:10"),
    ("wholly skipped: a day later", [window("02:00-03:00")], BERLIN, "2026-03-28 23:00", "2026-03-30 00:00"),
    ("wholly skipped: a week later", [window("02:00-03:00", "sun")], BERLIN, "2026-03-28 23:00",
     "2026-04-05 00:00"),
    ("the second time in autumn", [window("02:00-02:45")], BERLIN, "2026-10-25 01:15", "2026-10-26 01:00"),
]  # fmt: skip


@pytest.mark.parametrize(("windows", "zone", "now", "opens"), [pytest.param(*c, id=i) for i, *c in CLOSED])
def test_the_next_opening_of_the_window_is_computed(windows: list[Window], zone: str, now: str, opens: str) -> None:
    assert closes_at(windows, zone, utc(now)) is None
    assert opens_at(windows, zone, utc(now)) == utc(opens)


def test_without_windows_there_is_nothing_to_wait_for() -> None:
    assert closes_at([], "UTC", utc("2026-01-01 12:00")) is None
    assert opens_at([], "UTC", utc("2026-01-01 12:00")) is None


TIMES = st.times(max_value=time(23, 59)).map(lambda at: at.replace(second=0, microsecond=0))
WINDOWS = st.lists(
    st.builds(Window, TIMES, TIMES, st.lists(st.sampled_from(DAYS), unique=True).map(tuple)), min_size=1, max_size=3
)


@given(
    windows=WINDOWS,
    zone=st.sampled_from(["UTC", BERLIN, "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe"]),
    now=st.datetimes(datetime(2025, 1, 1), datetime(2027, 1, 1)).map(lambda at: at.replace(tzinfo=UTC)),
)
def test_a_window_always_opens_again_and_is_open_then(windows: list[Window], zone: str, now: datetime) -> None:
    opens = opens_at(windows, zone, now)
    assert opens is not None
    closes = closes_at(windows, zone, opens)
    assert now < opens < (closes or opens)


def test_the_spans_of_a_period_do_not_overlap_and_follow_the_clock_changes() -> None:
    # Clocks in Berlin go forward on the 29th of March.
    found = spans([NIGHT, window("01:00-06:00", "sun")], BERLIN, utc("2026-03-28 00:00"), utc("2026-03-30 12:00"))
    assert found == [
        (utc("2026-03-27 21:00"), utc("2026-03-28 03:30")),
        (utc("2026-03-28 21:00"), utc("2026-03-29 04:00")),
        (utc("2026-03-29 20:00"), utc("2026-03-30 02:30")),
    ]
