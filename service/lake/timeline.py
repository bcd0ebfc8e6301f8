"""The active timeline, read from the names of its files. No JVM, one listing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from service.model.timeline import Instant, InstantState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from service.lake.storage import Storage
    from service.lake.table_config import TableConfig

COMPACTION_ACTIONS = frozenset({"compaction", "logcompaction"})

# Hudi's `HoodieTimeline.VALID_ACTIONS_IN_TIMELINE`: other files in the folder are none of the timeline's.
_ACTIONS = frozenset(
    {
        *("commit", "deltacommit", "replacecommit", "compaction", "logcompaction", "clustering", "indexing"),
        *("clean", "rollback", "restore", "savepoint", "schemacommit"),
    }
)
_COMPLETES_AS = {"compaction": "commit", "logcompaction": "deltacommit", "clustering": "replacecommit"}
_FILE_NAME = re.compile(r"(?P<requested>\d+)(_(?P<completion>\d+))?\.(?P<action>\w+)(\.(?P<state>requested|inflight))?")
_PROGRESS = {InstantState.REQUESTED: 0, InstantState.INFLIGHT: 1, InstantState.COMPLETED: 2}
_HISTORY_FILE = re.compile(r"(?P<first>\d+)_(?P<last>\d+)_\d+\.parquet")


@dataclass(frozen=True)
class Timeline:
    """The instants of the active timeline in the order of their requested times, each in its furthest state."""

    instants: tuple[Instant, ...]

    def completed(self, requested_time: str) -> bool:
        return any(i.is_completed and i.requested_time == requested_time for i in self.instants)

    def pending(self) -> tuple[Instant, ...]:
        return tuple(i for i in self.instants if not i.is_completed)


def read_timeline(storage: Storage, config: TableConfig) -> Timeline:
    """Reads both layouts: `InstantGeneratorV1` (table version 6) and `V2` (from 8 on) of Hudi 1.2.0."""
    found: dict[tuple[str, str], Instant] = {}
    for entry in storage.list(config.timeline_path):
        instant = None if entry.is_folder else parse_instant(entry.name)
        if instant is None:
            continue
        key = (instant.requested_time, _COMPLETES_AS.get(instant.action, instant.action))
        known = found.get(key)
        if known is None or _PROGRESS[instant.state] > _PROGRESS[known.state]:
            found[key] = instant
    return Timeline(tuple(sorted(found.values())))


def parse_instant(file_name: str) -> Instant | None:
    """The instant of a timeline file, or None if the file belongs to something else.

    The inflight file of a commit has no action in its name: `<instant>.inflight`.
    """
    match = _FILE_NAME.fullmatch(file_name)
    if match is None:
        return None
    action, state = match["action"], match["state"]
    if action == "inflight" and state is None:
        return Instant(match["requested"], "commit", InstantState.INFLIGHT)
    if action not in _ACTIONS:
        return None
    if state is not None:
        return Instant(match["requested"], action, InstantState(state))
    return Instant(match["requested"], action, InstantState.COMPLETED, match["completion"])


def is_archived(storage: Storage, config: TableConfig, timeline: Timeline, requested_time: str) -> bool:
    """Whether an instant was completed and has left the active timeline.

    From table version 8 on the history is Parquet (Hudi 1.2.0 `LSMTimeline`): files whose name covers the instant are
    read. Before, it is a log of Avro blocks, which is not read here: what is older than the active timeline counts as
    archived.
    """
    if config.timeline_layout < 2:
        return bool(timeline.instants) and requested_time < timeline.instants[0].requested_time
    return any(requested_time in times for times in _archived_times(storage, config, requested_time))


def _archived_times(storage: Storage, config: TableConfig, requested_time: str) -> Iterator[set[str]]:
    for entry in storage.list(config.history_path):
        match = _HISTORY_FILE.fullmatch(entry.name)
        if match and match["first"] <= requested_time <= match["last"]:
            with storage.open(entry.path) as file:
                yield set(pq.read_table(file, columns=["instantTime"]).column(0).to_pylist())
