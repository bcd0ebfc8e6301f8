"""Requested and inflight instants, and the heartbeats of their writers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from datetime import datetime

from service.lake.instant import Instant, InstantState
from service.lake.instant_metadata import ReplaceRequest, decode
from service.lake.snapshot import Pending
from service.lake.storage import Storage
from service.lake.table_config import META_FOLDER, TableConfig
from service.lake.timeline import Timeline

_HEARTBEATS = f"{META_FOLDER}/.heartbeat"  # `HoodieTableMetaClient.HEARTBEAT_FOLDER_NAME`
_PLANS = frozenset({"compaction", "logcompaction", "clustering"})


def read_pending(storage: Storage, config: TableConfig, timeline: Timeline) -> tuple[Pending, ...]:
    """Returns the pending instants in the order of their requested times. Costs one more listing if there are any."""
    instants = timeline.pending()
    beats = heartbeats(storage) if instants else {}
    return tuple(
        Pending(
            requested_time=instant.requested_time,
            action=instant.action,
            state=instant.state.value,
            requested_at=config.moment(instant.requested_time),
            heartbeat_at=beats.get(instant.requested_time),
            is_plan=instant.action in _PLANS or _is_clustering_plan(storage, config, instant),
        )
        for instant in instants
    )


def with_heartbeats(storage: Storage, pending: Iterable[Pending]) -> tuple[Pending, ...]:
    """Returns the same instants with the current heartbeats. Heartbeats change even if the timeline does not."""
    beats = heartbeats(storage)
    return tuple(dataclasses.replace(each, heartbeat_at=beats.get(each.requested_time)) for each in pending)


def heartbeats(storage: Storage) -> Mapping[str, datetime | None]:
    """Returns when each writer last touched its heartbeat file (Hudi 1.2 `HoodieHeartbeatClient`)."""
    return {entry.name: entry.modified_at for entry in storage.list(_HEARTBEATS) if not entry.is_folder}


def _is_clustering_plan(storage: Storage, config: TableConfig, instant: Instant) -> bool:
    """Returns whether a pending instant is a scheduled clustering. Before table version 8 this is a `replacecommit`
    that contains a plan."""
    if instant.action != "replacecommit":
        return False
    path = f"{config.timeline_path}/{instant.requested_time}.replacecommit.{InstantState.REQUESTED}"
    if storage.modified_at(path) is None:
        return False
    request = decode(storage.read(path), ReplaceRequest, f"{storage.base_path}/{path}")
    return request.clustering_plan is not None
