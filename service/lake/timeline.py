"""The active timeline, read from the names of its files by one listing, without a JVM."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b

from service.lake.commit import WRITING_ACTIONS
from service.lake.instant import Instant, InstantState
from service.lake.storage import Entry, Storage
from service.lake.table_config import TableConfig
from service.model.storage_errors import StorageError

COMPACTION_ACTIONS = frozenset({"compaction", "logcompaction"})

# Hudi's `HoodieTimeline.VALID_ACTIONS_IN_TIMELINE`: other files in the folder do not belong to the timeline.
_ACTIONS = frozenset(
    {
        *("commit", "deltacommit", "replacecommit", "compaction", "logcompaction", "clustering", "indexing"),
        *("clean", "rollback", "restore", "savepoint", "schemacommit"),
    }
)
_COMPLETES_AS = {"compaction": "commit", "logcompaction": "deltacommit", "clustering": "replacecommit"}
_FILE_NAME = re.compile(
    r"(?P<requested>\d+)(_(?P<completion>\d+))?\.(?P<action>\w+)(\.(?P<state>requested|inflight))?", re.ASCII
)
_MAX_DIGITS = 32
_REMEMBERED = 4096
MAX_FILES = 100_000
"""The largest number of files in the folder of the timeline. Hudi usually keeps some dozens of instants there."""
_STATES = {state.value: state for state in InstantState}
_PROGRESS = {InstantState.REQUESTED: 0, InstantState.INFLIGHT: 1, InstantState.COMPLETED: 2}


@dataclass(frozen=True)
class Timeline:
    """The instants of the active timeline in the order of their requested times. Each has the last state that it has
    reached."""

    instants: tuple[Instant, ...]

    @cached_property
    def writes(self) -> Mapping[str, str | None]:
        """The completion times of the completed instants that add or replace rows, by their requested times."""
        return {
            each.requested_time: each.completion_time
            for each in self.instants
            if each.is_completed and each.action in WRITING_ACTIONS
        }

    @cached_property
    def starts_at(self) -> str | None:
        """The requested time of the first of `writes`; None if there are none. Earlier ones have been archived.
        Instants that only a savepoint keeps on the timeline count only if there are no others."""
        saved = {each.requested_time for each in self.instants if each.is_completed and each.action == "savepoint"}
        return min(self.writes.keys() - saved, default=min(self.writes, default=None))

    def completed(self, requested_time: str) -> bool:
        return any(i.is_completed and i.requested_time == requested_time for i in self.instants)

    def pending(self) -> tuple[Instant, ...]:
        return tuple(i for i in self.instants if not i.is_completed)


def read_timeline(storage: Storage, config: TableConfig) -> Timeline:
    """Reads the timeline, in either layout: `InstantGeneratorV1` (table version 6) or `InstantGeneratorV2` (from
    version 8 on) of Hudi 1.2.0."""
    return timeline_of(entry.name for entry in timeline_files(storage, config))


def timeline_files(storage: Storage, config: TableConfig) -> list[Entry]:
    return [entry for entry in storage.list(config.timeline_path, most=MAX_FILES) if not entry.is_folder]


def fingerprint(names: Iterable[str]) -> str:
    """Returns a digest of the timeline's file names. Names that do not begin with a digit are ignored."""
    relevant = sorted(name for name in names if name[:1].isdigit())
    return blake2b("\n".join(relevant).encode(errors="surrogateescape"), digest_size=16).hexdigest()


def timeline_of(file_names: Iterable[str]) -> Timeline:
    """Returns the timeline that consists of these files."""
    found: dict[tuple[str, str], Instant] = {}
    for name in file_names:
        instant = parse_instant(name)
        if instant is None:
            continue
        key = (instant.requested_time, _COMPLETES_AS.get(instant.action, instant.action))
        known = found.get(key)
        if known is None or _PROGRESS[instant.state] > _PROGRESS[known.state]:
            found[key] = instant
    return Timeline(tuple(sorted(found.values())))


@lru_cache(_REMEMBERED)
def parse_instant(file_name: str) -> Instant | None:
    """Returns the instant of a timeline file, None for any other file.

    The inflight file of a commit has no action in its name: `<instant>.inflight`. Raises StorageError for times that
    Hudi does not write.
    """
    match = _FILE_NAME.fullmatch(file_name)
    if match is None:
        return None
    if max(len(match["requested"]), len(match["completion"] or "")) > _MAX_DIGITS:
        raise StorageError(f"The timeline has a file {file_name}, whose name has no valid time")
    action, state = match["action"], match["state"]
    if action == "inflight" and state is None:
        return Instant(match["requested"], "commit", InstantState.INFLIGHT)
    if action not in _ACTIONS:
        return None
    if state is not None:
        return Instant(match["requested"], action, _STATES[state])
    return Instant(match["requested"], action, InstantState.COMPLETED, match["completion"])


def inflight_names_of(instant: Instant) -> tuple[str, ...]:
    """Returns the possible names of the inflight file of a writer's completed commit. Hudi keeps this file beside the
    completed file. In table version 6 the name for a `commit` has no action."""
    name = f"{instant.requested_time}.{instant.action}.{InstantState.INFLIGHT}"
    return (name, f"{instant.requested_time}.{InstantState.INFLIGHT}") if instant.action == "commit" else (name,)


def file_name_of(instant: Instant) -> str:
    """Returns the name of the timeline file of a completed instant."""
    times = [instant.requested_time, *([instant.completion_time] if instant.completion_time else [])]
    return f"{'_'.join(times)}.{instant.action}"
