"""Markers and heartbeat of an instant that has completed or was rolled back; nobody needs them any more."""

from __future__ import annotations

from jobs.hudi.jvm import translated
from jobs.hudi.table import HudiTable


def tidy_up(table: HudiTable, instant: str) -> None:
    with translated("removing markers"):
        folder = table.jvm.hudi.storage.StoragePath(table.meta.getMarkerFolderPath(instant))
        if table.storage.exists(folder):
            table.storage.deleteDirectory(folder)
    forget_heartbeat(table, instant)


def has_heartbeat(table: HudiTable, instant: str) -> bool:
    with translated("checking for a heartbeat"):
        heartbeats = table.jvm.hudi.client.heartbeat.HoodieHeartbeatClient
        return bool(heartbeats.heartbeatExists(table.storage, table.path, instant))


def forget_heartbeat(table: HudiTable, instant: str) -> None:
    with translated("removing a heartbeat"):
        if has_heartbeat(table, instant):
            table.jvm.hudi.client.heartbeat.HeartbeatUtils.deleteHeartbeatFile(table.storage, table.path, instant)
