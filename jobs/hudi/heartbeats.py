"""Heartbeats of writers: a file for each instant, which its writer touches periodically (`HoodieHeartbeatClient`). The
file's modification time is by the storage's clock. Hudi compares it with this machine's clock, so live writers look
dead to it if the storage's clock is behind. This module compares it with the storage's clock."""

from __future__ import annotations

from jobs.hudi.file_times import modified
from jobs.hudi.table import HudiTable

# Hudi's own defaults (`HoodieWriteConfig`).
_BEAT_MILLISECONDS, _MISSES = 60_000, 2


def last_beat(table: HudiTable, instant: str) -> int | None:
    """Returns the storage's time of the last heartbeat, in milliseconds since 1970; None if there is none."""
    return modified(table, f".hoodie/.heartbeat/{instant}")


def expiry_seconds(table: HudiTable) -> float:
    """Returns the maximum age of a live writer's heartbeat."""
    options = table.declared.hudi_options
    interval = int(options.get("hoodie.client.heartbeat.interval_in_ms", _BEAT_MILLISECONDS))
    return interval * int(options.get("hoodie.client.heartbeat.tolerable.misses", _MISSES)) / 1000


def has_expired(table: HudiTable, instant: str) -> bool:
    """Returns whether the instant's writer is dead; False for an instant without a heartbeat."""
    last = last_beat(table, instant)
    return last is not None and table.clock.storage_ms() - last > expiry_seconds(table) * 1000
