"""The growth of the largest bucket of a table: when the table needs more buckets, and how many in 90 days."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import combinations
from statistics import median
from typing import TYPE_CHECKING, Annotated

from jobs.spec import Documented, Spec
from service.catalog import commit_store, sample_store, snapshot_store
from service.model.formatting import size
from service.policies import policy_registry, windows
from service.policies.settings import Mode
from service.scheduling.bucket_expansion import MAX_FACTOR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

    from service.catalog.registration import Registration
    from service.catalog.sample import Sample
    from service.policies.policy import Policy

AHEAD = timedelta(days=90)

_PAST = timedelta(days=60)
_LEAST_DAYS = 3.0
_MOST_POINTS = 60
_MOST_COMMITS = 20_000
_DAY = 86_400.0
# The largest bucket grows like the table only if most of the table is in its partition.
_MOST_OF_TABLE = 0.8


@dataclass(frozen=True)
class BucketGrowth(Documented):
    """The growth of the largest bucket, by the samples of the last 60 days."""

    largest_bytes: Annotated[int, Spec("Size of the largest bucket", examples=(2 << 30,))]
    bytes_per_day: Annotated[int, Spec("By how much it grows in a day", examples=(64 << 20,))]
    num_buckets: Annotated[int, Spec("Number of buckets", examples=(8,))]
    needed: Annotated[int, Spec("Number of buckets that is needed next", examples=(16,))]
    needed_at: Annotated[
        datetime | None, Spec("When the largest bucket reaches its limit; null if that is years ahead")
    ]
    in_90_days: Annotated[int, Spec("Number of buckets that is needed in 90 days", examples=(32,))]
    factor: Annotated[int, Spec("Factor of an expansion that lasts for 90 days; 1 if none is needed", examples=(4,))]
    quiet_at: Annotated[
        datetime | None, Spec("The next hour with the fewest commits, or the next window; null if none is needed")
    ]
    text: Annotated[str, Spec("The same in words", examples=("needs 16 buckets by 3 March; 32 in 90 days",))]


@dataclass(frozen=True)
class Largest:
    """The largest bucket, the number of buckets, and the size that is allowed."""

    bytes: int
    num_buckets: int
    most: int


def of_table(connection: Connection, table: Registration, now: datetime) -> BucketGrowth | None:
    """Returns how the largest bucket grows; None without a bucket index, or while that is not known."""
    stored = snapshot_store.find(connection, table.id)
    if stored is None or not stored.snapshot.num_buckets:
        return None
    snapshot = stored.snapshot
    policy, large, totals = policy_registry.effective_of(connection, table).policy, snapshot.large, snapshot.totals
    whole = totals.base_bytes + totals.log_bytes
    if not large or policy.bucket_expansion.mode is Mode.OFF:
        return None
    if large.base_bytes + large.log_bytes < _MOST_OF_TABLE * whole:
        return None
    samples = sample_store.of_table(connection, table.id, now, since=now - _PAST, limit=4000)
    largest = Largest(
        large.largest_bucket_bytes, large.num_buckets or snapshot.num_buckets, policy.bucket_expansion.max_bucket_bytes
    )
    commits = commit_store.completed_since(connection, table.id, now - timedelta(days=7), _MOST_COMMITS)
    if len(commits) == _MOST_COMMITS:
        commits = of_whole_days(commits, now)
    return foreseen(samples, largest, now, quiet_at(policy, commits, now))


def foreseen(samples: Sequence[Sample], largest: Largest, now: datetime, quiet: datetime) -> BucketGrowth | None:
    """Returns the forecast by the median of the slopes between samples, which jumps and single losses do not move."""
    points = [(each.at.timestamp() / _DAY, each.base_bytes + each.log_bytes) for each in samples]
    points = points[:: max(1, len(points) // _MOST_POINTS)]
    if not points or points[-1][0] - points[0][0] < _LEAST_DAYS or not points[-1][1]:
        return None
    slopes = [(after[1] - before[1]) / (after[0] - before[0]) for before, after in combinations(points, 2)]
    # Every bucket has the same share of what comes, so the largest one grows like the table.
    rate = max(0.0, median(slopes) * largest.bytes / points[-1][1])
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
            text += f"; {lasting} last for {AHEAD.days} days, best at {quiet:%Y-%m-%d %H:%M} UTC"
    return BucketGrowth(
        *(largest.bytes, int(rate), largest.num_buckets, needed, needed_at, lasting, factor),
        quiet if factor > 1 else None,
        text,
    )


def of_whole_days(commits: list[datetime], now: datetime) -> list[datetime]:
    """Returns the commits, the latest first, of as many whole days as they cover: an hour that fewer days cover than
    others would look quiet. Returns all if they cover less than a day."""
    days = (now - commits[-1]) // timedelta(days=1)
    return [each for each in commits if each > now - timedelta(days=days)] if days else commits


def quiet_at(policy: Policy, commits: Sequence[datetime], now: datetime) -> datetime:
    """Returns the next opening of a maintenance window, or else the next hour of the day with the fewest commits."""
    if policy.windows and windows.closes_at(policy.windows, policy.time_zone, now) is None:
        return windows.opens_at(policy.windows, policy.time_zone, now) or now
    if policy.windows:
        return now
    by_hour = Counter(each.astimezone(UTC).hour for each in commits)
    hours = [(now + timedelta(hours=ahead)).replace(minute=0, second=0, microsecond=0) for ahead in range(1, 25)]
    return min(hours, key=lambda at: (by_hour[at.hour], at))
