"""The growth of the largest bucket of a table: when the table needs more buckets, and how many it needs in 90 days."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import combinations
from statistics import median
from typing import Annotated
from zoneinfo import ZoneInfo

from jobs.spec import Documented, Spec
from service.catalog.sample import Sample
from service.model.formatting import size
from service.policies import windows
from service.policies.policy import Policy

AHEAD = timedelta(days=90)

MAX_FACTOR = 8
"""Largest factor of one job (see `BucketExpansionParams`); a table that needs more is expanded again later."""

_LEAST_DAYS = 3.0
_MOST_POINTS = 60
_DAY = 86_400.0
_HOUR = timedelta(hours=1)
_FEW = 1.1
"""An hour is quiet if it has at most this many times the commits of the quietest hour."""


@dataclass(frozen=True)
class BucketGrowth(Documented):
    """The growth of the largest bucket, by the samples of the last 60 days."""

    largest_bytes: Annotated[int, Spec("Size of the largest bucket", examples=(2 << 30,))]
    bytes_per_day: Annotated[int, Spec("Bytes by which that bucket grows in a day", examples=(64 << 20,))]
    num_buckets: Annotated[int, Spec("Number of buckets", examples=(8,))]
    needed: Annotated[int, Spec("The next number of buckets that the table needs", examples=(16,))]
    needed_at: Annotated[
        datetime | None, Spec("When the largest bucket reaches its limit; null if that will take years")
    ]
    in_90_days: Annotated[int, Spec("Number of buckets that is needed in 90 days", examples=(32,))]
    factor: Annotated[
        int, Spec("Factor of an expansion that lasts for 90 days; 1 if no expansion is needed", examples=(4,))
    ]
    quiet_at: Annotated[
        datetime | None,
        Spec(
            "The best time for an expansion: the present or next maintenance window or quiet hour; null if no expansion"
            " is needed"
        ),
    ]
    text: Annotated[str, Spec("The same in words", examples=("needs 16 buckets by 3 March; 32 in 90 days",))]
    time_zone: Annotated[str, Spec("The policy's time zone, in which the text gives times", examples=("UTC",))]

    def grown(self, size: float) -> float:
        """Returns how many bytes a bucket of this size has in 90 days."""
        return size * (1 + self.bytes_per_day * AHEAD.days / max(1, self.largest_bytes))


@dataclass(frozen=True)
class Largest:
    """The largest bucket, the number of buckets, and the size that is allowed."""

    bytes: int
    num_buckets: int
    most: int


def rate_of(samples: Sequence[Sample]) -> float | None:
    """Returns by which share of its size the table grows in a day; None while too little is known. The rate is the
    median of the slopes between all pairs of samples, because single jumps and losses hardly change this median."""
    points = [(each.at.timestamp() / _DAY, each.base_bytes + each.log_bytes) for each in samples]
    points = points[:: max(1, len(points) // _MOST_POINTS)]
    if not points or points[-1][0] - points[0][0] < _LEAST_DAYS or not points[-1][1]:
        return None
    slopes = [(after[1] - before[1]) / (after[0] - before[0]) for before, after in combinations(points, 2)]
    return max(0.0, median(slopes) / points[-1][1])


def foreseen(
    rate_of_table: float | None, largest: Largest, now: datetime, quiet: datetime, time_zone: str = "UTC"
) -> BucketGrowth | None:
    """Returns the forecast by the table's rate (`rate_of`); None if the rate is not known. Times in the text are in
    this time zone."""
    if rate_of_table is None:
        return None
    # New keys are spread evenly over the buckets, so the largest bucket grows by the same rate as the table.
    rate = rate_of_table * largest.bytes
    later = largest.bytes + rate * (AHEAD.total_seconds() / _DAY)
    factor = 1
    while later > largest.most * factor and factor < MAX_FACTOR:
        factor *= 2
    left = largest.most - largest.bytes
    days = 0.0 if left <= 0 else left / rate if rate > 0 else None
    needed_at = now + timedelta(days=days) if days is not None and days < 10 * 365 else None
    needed, lasting = 2 * largest.num_buckets, factor * largest.num_buckets
    if needed_at is None:
        text = f"{largest.num_buckets} buckets are enough for years"
    else:
        when = "now" if days == 0 else f"by {needed_at.day} {needed_at:%B %Y}"
        text = f"needs {needed} buckets {when}: the largest has {size(largest.bytes)}, {size(largest.most)} are allowed"
        if factor > 1:
            when = "now" if quiet <= now else f"at {local(quiet, time_zone)}"
            text += f"; {lasting} last for {AHEAD.days} days, best {when}"
    return BucketGrowth(
        *(largest.bytes, int(rate), largest.num_buckets, needed, needed_at, lasting, factor),
        quiet if factor > 1 else None,
        text,
        time_zone,
    )


def local(moment: datetime, time_zone: str) -> str:
    """Returns a text such as "2026-01-02 04:00 Europe/Berlin"."""
    return f"{moment.astimezone(ZoneInfo(time_zone)):%Y-%m-%d %H:%M} {time_zone}"


def hour_of(now: datetime, time_zone: str) -> datetime:
    """Returns when the present hour of the zone's clocks began, in UTC."""
    return now.astimezone(ZoneInfo(time_zone)).replace(minute=0, second=0, microsecond=0).astimezone(UTC)


def midnight_of(now: datetime, time_zone: str) -> datetime:
    """Returns the last midnight of the zone, in UTC."""
    here = now.astimezone(ZoneInfo(time_zone)).replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    return here.astimezone(UTC)


def by_hour(commits: Sequence[datetime], midnight: datetime, time_zone: str) -> Mapping[int, float]:
    """Returns the average number of commits in each hour of the day, in the whole days before `midnight`. `commits` are
    the times of the last commits, the latest first.

    Hours are those of the zone's clocks, so that nightly work stays in its hour when the clocks change. On the day of
    such a change an hour comes twice or not at all, so the number is an average over the times that the hour has come.

    The present day does not count. Its remaining hours have their last commits on an earlier day. So if a table gets
    fewer commits from day to day, these hours would look busier than those that have passed. Only days that `commits`
    cover entirely count, because an hour that fewer days cover would look quiet. If they cover no whole day, all of
    them count.
    """
    zone = ZoneInfo(time_zone)
    past = [each for each in commits if each < midnight]
    oldest = midnight
    while past and (earlier := midnight_of(oldest - timedelta(seconds=1), time_zone)) >= past[-1]:
        oldest = earlier
    is_whole = oldest < midnight
    found = Counter(each.astimezone(zone).hour for each in past if not is_whole or each >= oldest)
    hours = range(int((midnight - oldest) / _HOUR))
    times = Counter((oldest + number * _HOUR).astimezone(zone).hour for number in hours)
    return {hour: number / max(1, times[hour]) for hour, number in found.items()}


def quiet_at(policy: Policy, commits: Mapping[int, float], now: datetime) -> datetime:
    """Returns the next quiet time: `now` if it is quiet, else when the next quiet time begins. A policy with
    maintenance windows is quiet in these; else an hour of the day is quiet that has at most a tenth more commits than
    the quietest hour. `commits` has the commits of each hour (`by_hour`). Windows and hours are in the policy's time
    zone."""
    if policy.windows and windows.closes_at(policy.windows, policy.time_zone, now) is None:
        return windows.opens_at(policy.windows, policy.time_zone, now) or now
    if policy.windows:
        return now
    zone = ZoneInfo(policy.time_zone)
    hours = [hour_of(now + ahead * _HOUR, policy.time_zone) for ahead in range(25)]
    few = [commits.get(at.astimezone(zone).hour, 0) for at in hours]
    return max(now, next(at for at, number in zip(hours, few, strict=True) if number <= _FEW * min(few)))
