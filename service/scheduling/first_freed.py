"""The first files of a table that went out of use, and what keeps a cleaning from deleting them.

If a cleaning keeps the first ones, it also keeps all others, which went out of use at later instants.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from jobs.job_params import CleaningPolicy
from service.catalog import commit_store, consumer_store
from service.catalog.consumer import Consumer, awaited
from service.lake.commit import BATCH_ACTIONS
from service.lake.snapshot import Pending, TableSnapshot
from service.model.formatting import count, duration
from service.policies.policy import Policy
from service.policies.settings import CleaningSettings

if TYPE_CHECKING:
    from sqlalchemy import Connection

# The earliest instant that Hudi (1.2) retains is at most the first pending one of these actions
# (`CleanerUtils.getEarliestCommitToRetain`).
_COMMITS = frozenset({"commit", "deltacommit", "replacecommit", "clustering"})


@dataclass(frozen=True)
class FirstFreed:
    """The first instant that took files out of use. `commits` is the result of `commit_store.since_freed`, and `at` is
    when the instant completed. `kept_for` is a clause about who needs these files, whatever the policy retains; None if
    nobody needs them."""

    commits: int | None = None
    at: datetime | None = None
    kept_for: str | None = None

    def kept(self, settings: CleaningSettings, now: datetime) -> tuple[str, datetime | None] | None:
        """Returns a clause about why a cleaning would delete no file, and when the passing of time alone changes this;
        None if a cleaning may delete a file."""
        if self.kept_for:
            return self.kept_for, None
        retain = settings.retain
        match settings.policy:
            # Hudi (1.2, `CleanPlanner`) deletes a version only if its successor is older than all retained commits.
            case CleaningPolicy.KEEP_LATEST_COMMITS if self.commits is not None and self.commits < retain:
                return (
                    f"the first went out of use {count(self.commits, 'commit')} ago, and the policy retains {retain}",
                    None,
                )
            case CleaningPolicy.KEEP_LATEST_BY_HOURS if self.at and now < (until := self.at + timedelta(hours=retain)):
                ago = duration(max(now - self.at, timedelta(0)))
                return f"the first went out of use {ago} ago, and the policy retains {count(retain, 'hour')}", until
            case _:
                return None


@dataclass(frozen=True)
class Counted:
    """The facts about the writers of a table that matter for cleanings. `has_sessions` says whether sessions of Spark
    SQL write the table."""

    has_sessions: bool
    has_flink: bool
    retries_conflicts: bool


def read(
    connection: Connection,
    snapshot: TableSnapshot,
    policy: Policy,
    consumers: Collection[Consumer],
    now: datetime,
    *,
    writers: Counted,
) -> FirstFreed | None:
    """Returns the first files out of use; None if there are none, if they are not known, or if no decision needs
    them."""
    first = min((each.freed_since for each in snapshot.partitions if each.freed_files), default="")
    if not policy.cleaning.enabled or not first:
        return None
    table_id, settings = snapshot.table_id, policy.cleaning
    commits = pending = None
    if settings.policy is CleaningPolicy.KEEP_LATEST_COMMITS:
        commits = commit_store.since_freed(connection, table_id, first, has_sessions=writers.has_sessions)
        pending = _first_lasting(snapshot, now - timedelta(seconds=policy.rollback.after_seconds), writers)
    behind = (
        each
        for each in awaited(consumers, settings.consumer_hours, now)
        if commit_store.first_needed(connection, table_id, each.instant) <= first
    )
    kept_for = None
    if consumer := next(behind, None):
        kept_for = f"consumer '{consumer.name}' needs them, because it has read only up to {consumer.instant}"
    elif pending and not commit_store.is_any_between(connection, table_id, first, pending):
        kept_for = f"the pending {pending} may need them"
    return FirstFreed(commits, commit_store.completed_at(connection, table_id, first), kept_for)


def behind_of(
    connection: Connection, policies: Mapping[str, Policy], now: datetime, with_sessions: Collection[str]
) -> dict[str, int]:
    """Returns for each table with consumers the number of the last commits whose replaced files they need."""
    found = {}
    for table_id, consumers in consumer_store.of_tables(connection, policies).items():
        if last := next(iter(awaited(consumers, policies[table_id].cleaning.consumer_hours, now)), None):
            first = commit_store.first_needed(connection, table_id, last.instant)
            later = commit_store.since_freed(connection, table_id, first, has_sessions=table_id in with_sessions)
            found[table_id] = later + 1
    return found


def _first_lasting(snapshot: TableSnapshot, alive_since: datetime, writers: Counted) -> str | None:
    """Returns the first pending instant that no cleaning job rolls back (`jobs.protocol.writers.dead_writes`)."""

    def lasts(each: Pending) -> bool:
        if each.is_plan or writers.has_flink:
            return True
        if each.heartbeat_at is None:
            return each.action in BATCH_ACTIONS and not writers.retries_conflicts
        return each.heartbeat_at > alive_since

    found = (each.requested_time for each in snapshot.pending if each.action in _COMMITS and lasts(each))
    return min(found, default=None)
