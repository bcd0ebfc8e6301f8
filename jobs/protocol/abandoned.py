"""Replacecommits that were requested, and whose writers have gone before they wrote anything."""

from __future__ import annotations

from collections.abc import Iterable

from jobs.format.table_version import WITH_COMPLETION_TIMES
from jobs.hudi.file_times import modified
from jobs.hudi.heartbeats import last_beat
from jobs.hudi.records import REPLACE, Instant
from jobs.hudi.table import HudiTable
from jobs.kinds.words import ABANDONED_AFTER_SECONDS
from jobs.problems.undoing import NOT_BEGUN


def seconds_since_request(table: HudiTable, item: Instant) -> float | None:
    """Returns the seconds since a pending instant was requested, by the clock of the storage; None if it is gone."""
    folder = table.timeline_path.removeprefix(table.path).strip("/")
    made_at = modified(table, f"{folder}/{item.requested}.{item.action}.requested")
    return None if made_at is None else (table.clock.storage_ms() - made_at) / 1000


def awaits_writer(table: HudiTable, item: Instant) -> bool:
    """Returns whether this is a requested write that replaces file groups, for example an overwrite, and no plan."""
    is_requested = item.action == REPLACE and item.state == "REQUESTED"
    return is_requested and (table.version >= WITH_COMPLETION_TIMES or not table.is_plan(item))


def hint_about(table: HudiTable, pending: Iterable[Instant]) -> str | None:
    """Returns what to do about a request among these instants; None if there is none, or if Flink may write."""
    if table.may_have_flink:
        return None
    return NOT_BEGUN if any(awaits_writer(table, item) for item in pending) else None


def is_request(table: HudiTable, item: Instant) -> bool:
    """Returns whether this is a pending replacecommit that has been requested for an hour without a heartbeat.

    Hudi's `run_ttl` (1.2.0) leaves such a request if no partition has expired: it requests the instant, and fails when
    it completes the instant. A writer in single-writer mode leaves one if it fails before it writes. If the writer of
    such a request is alive after all, it has written no file yet, and its next step fails, because the requested
    instant is gone (`ActiveTimelineV2.transitionPendingState`). Hudi's writers with the policy LAZY take back a request
    without a heartbeat at once. Instants of Flink do not count: see `jobs.protocol.writers.dead_writes`.
    """
    if table.may_have_flink or not awaits_writer(table, item) or last_beat(table, item.requested) is not None:
        return False
    age = seconds_since_request(table, item)
    return age is not None and age > ABANDONED_AFTER_SECONDS


def requests(table: HudiTable) -> list[str]:
    """Returns the pending instants that are such requests."""
    return [item.requested for item in table.pending() if is_request(table, item)]
