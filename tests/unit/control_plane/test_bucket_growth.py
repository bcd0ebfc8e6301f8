"""Tests the forecast of the largest bucket of a table."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from service.catalog.sample import Sample
from service.policies.policy import Policy, Window
from service.scheduling.bucket_growth import Largest, by_hour, foreseen, midnight_of, quiet_at, rate_of

GIB = 1024**3
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)


def samples(days: int, per_day: int, *, begin: int = 8 * GIB) -> list[Sample]:
    return [
        Sample(NOW - timedelta(days=days - each), 0, begin + per_day * each, 0, 8, 8, 0, 0, 0)
        for each in range(days + 1)
    ]


def test_the_forecast_names_the_day_on_which_a_growing_table_needs_more_buckets() -> None:
    # 8 GiB in 8 buckets became 16 GiB in 16 days: each bucket grows by an eighth of a GiB a day.
    found = foreseen(rate_of(samples(16, GIB // 2)), Largest(2 * GIB, 8, 3 * GIB), NOW, NOW + timedelta(hours=15))
    assert found is not None
    assert found.bytes_per_day == pytest.approx(GIB / 16, rel=0.01)
    assert found.needed_at is not None
    assert (found.needed, found.needed_at.date().isoformat()) == (16, "2026-01-17")
    # 2 GiB and 90 days make 7.6 GiB.
    assert (found.in_90_days, found.factor) == (32, 4)
    assert found.text == (
        "needs 16 buckets by 17 January 2026: the largest has 2.0 GiB, 3.0 GiB are allowed;"
        " 32 last for 90 days, best at 2026-01-02 03:00 UTC"
    )


def test_a_table_that_does_not_grow_needs_no_buckets_and_few_samples_give_no_forecast() -> None:
    still = foreseen(rate_of(samples(20, 0)), Largest(GIB, 8, 3 * GIB), NOW, NOW)
    assert still is not None
    assert (still.needed_at, still.factor, still.quiet_at) == (None, 1, None)
    assert still.text == "8 buckets are enough for years"
    assert foreseen(rate_of(samples(2, GIB)), Largest(GIB, 8, 3 * GIB), NOW, NOW) is None
    assert foreseen(rate_of([]), Largest(GIB, 8, 3 * GIB), NOW, NOW) is None
    full = foreseen(rate_of(samples(20, 0)), Largest(4 * GIB, 8, 3 * GIB), NOW, NOW)
    assert full is not None
    assert full.text.startswith("needs 16 buckets now: ")


def test_one_jump_and_one_loss_move_the_forecast_little() -> None:
    usual = samples(30, GIB // 8)
    odd = [
        *usual[:10],
        Sample(usual[10].at, 0, 500 * GIB, 0, 8, 8, 0, 0, 0),
        *usual[11:20],
        Sample(usual[20].at, 0, 1, 0, 8, 8, 0, 0, 0),
        *usual[21:],
    ]
    rates = [foreseen(rate_of(each), Largest(GIB, 8, 3 * GIB), NOW, NOW) for each in (usual, odd)]
    assert rates[0] is not None
    assert rates[1] is not None
    assert rates[1].bytes_per_day == pytest.approx(rates[0].bytes_per_day, rel=0.1)


def test_the_quiet_hour_is_in_the_window_or_has_the_fewest_commits() -> None:
    commits = [NOW - timedelta(hours=each) for each in range(24 * 8) if (NOW - timedelta(hours=each)).hour != 4]
    hours = by_hour(commits, MIDNIGHT, "UTC")
    assert quiet_at(Policy(), hours, NOW) == datetime(2026, 1, 2, 4, tzinfo=UTC)
    running = datetime(2026, 1, 2, 4, 20, tzinfo=UTC)
    assert quiet_at(Policy(), hours, running) == running
    assert quiet_at(Policy(), hours, running + timedelta(hours=1)) == datetime(2026, 1, 3, 4, tzinfo=UTC)
    night = Policy(windows=(Window(time(22), time(23)),))
    assert quiet_at(night, hours, NOW) == datetime(2026, 1, 1, 22, tzinfo=UTC)
    assert quiet_at(Policy(), by_hour([], MIDNIGHT, "UTC"), NOW) == NOW


def test_commits_of_the_present_day_do_not_end_its_quiet() -> None:
    commits = [NOW - timedelta(hours=each) for each in range(24 * 8) if (NOW - timedelta(hours=each)).hour != 4]
    hour = datetime(2026, 1, 2, 4, tzinfo=UTC)
    running = hour + timedelta(minutes=30)
    burst = [hour + timedelta(minutes=each) for each in reversed(range(30))]
    assert quiet_at(Policy(), by_hour([*burst, *commits], midnight_of(running, "UTC"), "UTC"), running) == running


def test_hours_before_the_oldest_known_commit_do_not_look_quiet() -> None:
    # The latest commits cover a day and a half: each hour has ten, but the hour after 3 o'clock has nine.
    known = [MIDNIGHT - timedelta(minutes=6 * each + 1) for each in range(360)]
    commits = [each for each in known if each.hour != 3 or each.minute >= 6]
    assert quiet_at(Policy(), by_hour(commits, MIDNIGHT, "UTC"), NOW) == datetime(2026, 1, 2, 3, tzinfo=UTC)
    assert sum(by_hour(commits[:50], MIDNIGHT, "UTC").values()) == 50


@pytest.mark.parametrize(
    ("a_day", "shift"), [(0.99, 0.2), *(pytest.param(*each, marks=pytest.mark.slow) for each in [(0.99, 0), (1.01, 0)])]
)
def test_the_quiet_hour_comes_within_a_day_while_commits_become_fewer_or_more(a_day: float, shift: float) -> None:
    """The table has about 60 commits an hour, and `shift` fewer in the hours of the night."""
    begin = NOW - timedelta(days=12)
    commits: list[datetime] = []
    for hours in range(12 * 24):
        at = begin + timedelta(hours=hours)
        number = round(60 * a_day ** (hours / 24) * (1 - shift * (at.hour < 5)))
        commits += [at + timedelta(hours=each / number) for each in range(number)]
    newest = list(reversed(commits))
    moments = [NOW - timedelta(days=2) + timedelta(hours=each, minutes=30) for each in range(48)]
    is_quiet = []
    for now in moments:
        midnight = midnight_of(now, "UTC")
        known = [each for each in newest if midnight - timedelta(days=7) <= each < now]
        is_quiet.append(quiet_at(Policy(), by_hour(known, midnight, "UTC"), now) == now)
    assert any(is_quiet[:24])
    assert any(is_quiet[24:])
    if shift:
        assert not any(quiet for now, quiet in zip(moments, is_quiet, strict=True) if now.hour >= 5)


@pytest.mark.parametrize(
    ("time_zone", "now"),
    [
        # The clocks go forward on 2026-03-29 and back on 2026-10-25.
        ("Europe/Berlin", datetime(2026, 4, 1, 9, 30, tzinfo=UTC)),
        ("Europe/Berlin", datetime(2026, 10, 28, 9, 30, tzinfo=UTC)),
        ("Asia/Kolkata", datetime(2026, 4, 1, 9, 10, tzinfo=UTC)),
        ("Australia/Lord_Howe", datetime(2026, 4, 8, 9, 10, tzinfo=UTC)),
        ("Africa/Cairo", datetime(2026, 4, 27, 9, 10, tzinfo=UTC)),
        ("UTC", datetime(2026, 4, 1, 9, 30, tzinfo=UTC)),
    ],
)
def test_the_quiet_hour_follows_the_clocks_of_the_policys_time_zone(time_zone: str, now: datetime) -> None:
    # A commit each minute, but none from 5 to 6 o'clock there, in winter and in summer.
    zone = ZoneInfo(time_zone)
    minutes = (now - timedelta(minutes=each) for each in range(60 * 24 * 9))
    commits = [each for each in minutes if each.astimezone(zone).hour != 5]
    policy = Policy(time_zone=time_zone)
    known = by_hour(commits, midnight_of(now, time_zone), time_zone)
    found = quiet_at(policy, known, now).astimezone(zone)
    assert (found.hour, found.minute) == (5, 0)
    assert timedelta(0) < found - now <= timedelta(hours=25)
    in_it = found.astimezone(UTC) + timedelta(minutes=30)
    assert quiet_at(policy, by_hour(commits, midnight_of(in_it, time_zone), time_zone), in_it) == in_it


@pytest.mark.parametrize("now", [datetime(2026, 4, 1, 9, tzinfo=UTC), datetime(2026, 10, 28, 9, tzinfo=UTC)])
def test_an_hour_that_a_clock_change_skips_or_repeats_counts_like_others(now: datetime) -> None:
    commits = [now - timedelta(minutes=each) for each in range(60 * 24 * 9)]
    known = by_hour(commits, midnight_of(now, "Europe/Berlin"), "Europe/Berlin")
    assert set(known.values()) == {60.0}
    assert quiet_at(Policy(time_zone="Europe/Berlin"), known, now) == now


def test_the_forecast_tells_the_quiet_hour_by_the_clocks_of_the_zone() -> None:
    quiet = datetime(2026, 7, 2, 2, tzinfo=UTC)
    found = foreseen(0.05, Largest(2 * GIB, 8, 3 * GIB), NOW, quiet, "Europe/Berlin")
    assert found is not None
    assert found.text.endswith("best at 2026-07-02 04:00 Europe/Berlin")
    assert found.quiet_at == quiet
