"""Reads how the largest bucket of a table grows, and when the table is quiet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, Engine

from service.catalog import commit_store, sample_store
from service.lake.snapshot import TableSnapshot
from service.policies.policy import Policy
from service.policies.settings import Mode
from service.scheduling.bucket_growth import (
    BucketGrowth,
    Largest,
    by_hour,
    foreseen,
    hour_of,
    midnight_of,
    quiet_at,
    rate_of,
)

_PAST = timedelta(days=60)
_WEEK = timedelta(days=7)
_MOST_COMMITS = 20_000
_MOST_SAMPLES = 4000
_MOST_KEPT = 10_000
# The largest bucket grows like the table only if most of the table is in its partition.
_MOST_OF_TABLE = 0.8
# Decisions need no forecast of buckets that are smaller than this share of the limit.
_NEAR = 0.5


@dataclass(frozen=True)
class _Trend:
    """The figures that were read at one time. All decisions of the following hour use them."""

    hour: datetime
    time_zone: str
    rate: float | None
    commits: Mapping[int, float]


_read: WeakKeyDictionary[Engine, dict[str, _Trend]] = WeakKeyDictionary()


def near_limit(connection: Connection, snapshot: TableSnapshot, policy: Policy, now: datetime) -> BucketGrowth | None:
    """Returns the growth for a decision, or None if no decision depends on it. Most calls read nothing: a trend is read
    once an hour, and only if a bucket of the table is nearly too large, or if the table may get fewer buckets."""
    large, limit = snapshot.large, policy.bucket_expansion.max_bucket_bytes
    if large is None or policy.bucket_expansion.mode is Mode.OFF:
        return None
    is_small = large.average_bucket_bytes < policy.bucket_contraction.min_bucket_bytes
    may_contract = is_small and policy.bucket_contraction.mode is not Mode.OFF
    if large.largest_bucket_bytes < _NEAR * limit and not may_contract:
        return None
    return growth(connection, snapshot, policy, now)


def growth(connection: Connection, snapshot: TableSnapshot, policy: Policy, now: datetime) -> BucketGrowth | None:
    """Returns how the largest bucket grows; None without a bucket index, or while that is not known."""
    large, totals = snapshot.large, snapshot.totals
    if not snapshot.num_buckets or not large or policy.bucket_expansion.mode is Mode.OFF:
        return None
    if large.base_bytes + large.log_bytes < _MOST_OF_TABLE * (totals.base_bytes + totals.log_bytes):
        return None
    largest = Largest(
        large.largest_bucket_bytes, large.num_buckets or snapshot.num_buckets, policy.bucket_expansion.max_bucket_bytes
    )
    zone = policy.time_zone
    trend = _trend(connection, snapshot.table_id, now, zone)
    return foreseen(trend.rate, largest, now, quiet_at(policy, trend.commits, now), zone)


def _trend(connection: Connection, table_id: str, now: datetime, time_zone: str) -> _Trend:
    kept, hour = _read.setdefault(connection.engine, {}), hour_of(now, time_zone)
    found = kept.get(table_id)
    if found is None or (found.hour, found.time_zone) != (hour, time_zone):
        samples = sample_store.of_table(connection, table_id, now, since=now - _PAST, limit=_MOST_SAMPLES)
        midnight = midnight_of(now, time_zone)
        commits = commit_store.completed_between(connection, table_id, midnight - _WEEK, midnight, _MOST_COMMITS)
        if len(kept) >= _MOST_KEPT:
            kept.clear()
        kept[table_id] = found = _Trend(hour, time_zone, rate_of(samples), by_hour(commits, midnight, time_zone))
    return found
