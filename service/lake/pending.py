"""Instants that are requested or inflight, and the heartbeats of their writers."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from jobs.format.instants import moment
from service.lake.instant import InstantState
from service.lake.instant_metadata import decode
from service.lake.snapshot import Pending
from service.lake.table_config import META_FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from service.lake.instant import Instant
    from service.lake.storage import Storage
    from service.lake.table_config import TableConfig
    from service.lake.timeline import Timeline

_HEARTBEATS = f"{META_FOLDER}/.heartbeat"  # `HoodieTableMetaClient.HEARTBEAT_FOLDER_NAME`
_PLANS = frozenset({"compaction", "logcompaction", "clustering"})


def read_pending(storage: Storage, config: TableConfig, timeline: Timeline) -> tuple[Pending, ...]:
    """In the order of their requested times. One more listing if there are any, none otherwise."""
    instants = timeline.pending()
    heartbeats = _heartbeats(storage) if instants else {}
    return tuple(
        Pending(
            requested_time=instant.requested_time,
            action=instant.action,
            state=instant.state.value,
            requested_at=moment(instant.requested_time, config.properties),
            heartbeat_at=heartbeats.get(instant.requested_time),
            is_plan=instant.action in _PLANS or _is_clustering_plan(storage, config, instant),
        )
        for instant in instants
    )


def with_heartbeats(storage: Storage, pending: Iterable[Pending]) -> tuple[Pending, ...]:
    """The same instants with the heartbeats of now: they go on while the timeline stands still."""
    heartbeats = _heartbeats(storage)
    return tuple(dataclasses.replace(each, heartbeat_at=heartbeats.get(each.requested_time)) for each in pending)


def _heartbeats(storage: Storage) -> Mapping[str, datetime | None]:
    """When each writer last touched its file (Hudi 1.2 `HoodieHeartbeatClient`)."""
    return {entry.name: entry.modified_at for entry in storage.list(_HEARTBEATS) if not entry.is_folder}


def _is_clustering_plan(storage: Storage, config: TableConfig, instant: Instant) -> bool:
    """Before table version 8 a clustering that is scheduled is a pending `replacecommit` with a plan in it."""
    if instant.action != "replacecommit":
        return False
    path = f"{config.timeline_path}/{instant.requested_time}.replacecommit.{InstantState.REQUESTED}"
    if storage.modified_at(path) is None:
        return False
    return decode(storage.read(path), f"{storage.base_path}/{path}").get("clusteringPlan") is not None
