"""Heartbeats of writers: a file for each instant, which its writer writes again and again (`HoodieHeartbeatClient`).

The storage stamps the file. Hudi compares that time with this machine's clock, and so takes live writers for dead
beside a storage whose clock is behind; here it is compared with the storage's clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.hudi.file_times import modified

if TYPE_CHECKING:
    from jobs.hudi.table import HudiTable

# Hudi's own defaults (`HoodieWriteConfig`).
_BEAT_MILLISECONDS, _MISSES = 60_000, 2


def last_beat(table: HudiTable, instant: str) -> int | None:
    """Returns the storage's time of the last heartbeat, in milliseconds since 1970; None without one."""
    return modified(table, f".hoodie/.heartbeat/{instant}")


def expiry_seconds(table: HudiTable) -> float:
    """Returns how old a heartbeat of a live writer is at most."""
    options = table.declared.hudi_options
    interval = int(options.get("hoodie.client.heartbeat.interval_in_ms", _BEAT_MILLISECONDS))
    return interval * int(options.get("hoodie.client.heartbeat.tolerable.misses", _MISSES)) / 1000


def has_expired(table: HudiTable, instant: str) -> bool:
    """Returns False for an instant without a heartbeat."""
    last = last_beat(table, instant)
    return last is not None and table.clock.storage_ms() - last > expiry_seconds(table) * 1000
