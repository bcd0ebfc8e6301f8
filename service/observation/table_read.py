"""Reads a table for a poll: what is new on its timeline, and the files of the partitions that were touched.

Nothing here writes to the database, so a process of the reader pool can run it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache, partial
from typing import Any

from sqlalchemy import Engine

from jobs.contract import BucketIndex
from jobs.format.appearance import appearances, inversions
from jobs.format.table_version import UPGRADE_NOTE
from jobs.storage.permissions import Permissions
from service.catalog import snapshot_store, table_store
from service.catalog.watch import Watch
from service.db.engine import open_engine, reading
from service.incidents import store
from service.incidents.finding import Judged
from service.incidents.incident import Incident, IncidentKind
from service.lake.commit import WRITING_ACTIONS, Commit
from service.lake.engine_marks import marks_of_table
from service.lake.engine_sighting import with_marks
from service.lake.metadata_table import MetadataTableState, metadata_table_of
from service.lake.pending import read_pending, with_heartbeats
from service.lake.polled_profile import polled_profile
from service.lake.snapshot import Pending
from service.lake.storage import Entry, Storage, open_storage
from service.lake.table import TableType
from service.lake.table_config import TableConfig, read_table_config
from service.lake.table_lock import PolledLock, polled_lock
from service.lake.timeline import Timeline, fingerprint, parse_instant, timeline_files, timeline_of
from service.model.errors import GroundskeeperError
from service.observation import late_files
from service.observation.snapshot_refresh import Files, refresh
from service.observation.stale_commits import judge, replacing
from service.observation.timeline_diff import (
    KnownState,
    commits_of,
    in_order_of_completion,
    known_state,
    missed_instants,
    read_instant,
    read_replacing,
)
from service.observation.vanished import vanished_commits

log = logging.getLogger(__name__)

_WRITTEN_WITHIN = timedelta(minutes=1)
# A call ends after this time, so that several readers share the tables of a slow storage.
_QUIET_SECONDS = 0.5
_FIRST_SECONDS = 2.0


@dataclass(frozen=True)
class ChangedTable:
    """A table whose timeline differs from that of the last poll."""

    watch: Watch  # The state for the next poll.
    index: BucketIndex | None
    table_type: TableType
    commits: Sequence[Commit]
    pending: tuple[Pending, ...]
    files: Files
    small_file_bytes: int  # Smaller base files counted as small.
    judged: Judged  # The new commits whose rows are misplaced.
    over: Mapping[str, str]  # The incidents that have ended: their ids, and why.
    timeline_commits: int = 0  # Completed commits on the active timeline.
    lock: PolledLock | None = None  # The table's lock, if it is held.
    vanished: tuple[str, ...] = ()  # Known commits that are not on the timeline (`vanished_commits`).
    undone: tuple[str, ...] = ()  # Known commits that were undone (`vanished_commits`).
    clock: Mapping[str, Any] = field(default_factory=dict)  # The writers' clock (`ClockFrame.to_json`).
    profile: Mapping[str, Any] = field(default_factory=dict)  # Members of the table's profile, as JSON.
    metadata_table: MetadataTableState | None = None


@dataclass(frozen=True)
class UnchangedTable:
    """A table with the timeline of the last poll. `over` and `lock` are as in `ChangedTable`."""

    pending: tuple[Pending, ...] | None  # None unless the heartbeats of pending instants differ.
    over: Mapping[str, str]
    lock: PolledLock | None = None


@dataclass(frozen=True)
class TableReader:
    engine: Engine
    storage_options: Mapping[str, str] = field(repr=False)
    small_file_bytes: int  # Smaller base files count as small.
    allowed_roots: tuple[str, ...] | None = None  # Tables outside of these roots are not read; None allows all.
    lock_roots: tuple[str, ...] = ()  # A lock that is neither below these roots nor in its table is not read.

    def __call__(self, watch: Watch, now: datetime) -> ChangedTable | UnchangedTable:
        """Reads a table. While nothing has happened, that costs one listing and one check of the lock's file. Raises
        TableNotFoundError and the errors of `service.lake`."""
        storage = open_storage(watch.base_path, self.storage_options, self.allowed_roots)
        found: ChangedTable | UnchangedTable | None = self._unchanged(storage, watch, now)
        if found is None:
            known = partial(self._known, watch.table_id)
            found = self._changed(storage, watch, known, now) or UnchangedTable(None, {})
        return dataclasses.replace(found, lock=self._lock(storage, watch, now))

    def first(self, watches: Sequence[Watch], now: datetime) -> list[ChangedTable | None]:
        """Reads tables that were never polled. The result has None for a table that cannot be read. The last tables are
        left out if the tables before them have taken `_FIRST_SECONDS`."""
        with reading(self.engine) as connection:
            tables = table_store.get_all(connection, [watch.table_id for watch in watches])
        found: list[ChangedTable | None] = []
        for watch in _in_time(watches, _FIRST_SECONDS):
            read = None
            with contextlib.suppress(GroundskeeperError):
                if (table := tables.get(watch.table_id)) is not None:
                    storage = open_storage(watch.base_path, self.storage_options, self.allowed_roots)
                    read = self._changed(storage, watch, partial(_as_known, KnownState(table, watch)), now)
                    read = read and dataclasses.replace(read, lock=self._lock(storage, watch, now))
            found.append(read)
        return found

    def quiet(self, watches: Sequence[Watch], now: datetime) -> list[bool]:
        """Returns for each table whether it can be read and a poll would have nothing to record. The last tables are
        left out if the tables before them have taken `_QUIET_SECONDS`."""
        found = []
        for watch in _in_time(watches, _QUIET_SECONDS):
            is_quiet = False
            with contextlib.suppress(GroundskeeperError):
                is_quiet = self._is_quiet(watch, now)
            found.append(is_quiet)
        return found

    def _known(self, table_id: str, timeline: Timeline) -> KnownState:
        with reading(self.engine) as connection:
            return known_state(connection, table_id, timeline)

    def _changed(
        self, storage: Storage, watch: Watch, known: Callable[[Timeline], KnownState], now: datetime
    ) -> ChangedTable | None:
        """Returns None if instants are missing because a job is changing the table version. Such a job moves instants
        from one folder to another, so files may be gone when they are read."""
        try:
            found = _changed(self.engine, storage, known, self.small_file_bytes, now)
        except GroundskeeperError:
            if storage.exists(UPGRADE_NOTE):
                return None
            raise
        is_whole = not found.vanished and found.watch.active_from == watch.active_from
        return found if is_whole or not storage.exists(UPGRADE_NOTE) else None

    def _is_quiet(self, watch: Watch, now: datetime) -> bool:
        storage = open_storage(watch.base_path, self.storage_options, self.allowed_roots)
        found = self._unchanged(storage, watch, now)
        is_quiet = found is not None and found.pending is None and not found.over
        return is_quiet and self._lock(storage, watch, now) == watch.polled_lock

    def _lock(self, storage: Storage, watch: Watch, now: datetime) -> PolledLock | None:
        permissions = Permissions(self.allowed_roots, self.lock_roots)
        return polled_lock(storage, watch.lock, self.storage_options, permissions, now, before=watch.polled_lock)

    def _unchanged(self, storage: Storage, watch: Watch, now: datetime) -> UnchangedTable | None:
        """Returns None if the timeline has changed."""
        if not watch.timeline_path or fingerprint(storage.names(watch.timeline_path)) != watch.fingerprint:
            return None
        return _unchanged(self.engine, storage, watch, now)


@dataclass(frozen=True)
class IsolatedTableReader:
    """Reads tables like `TableReader`, in another process, which opens a connection to the database at this URL."""

    database: str = field(repr=False)
    storage_options: Mapping[str, str] = field(repr=False)
    small_file_bytes: int
    allowed_roots: tuple[str, ...] | None = None
    lock_roots: tuple[str, ...] = ()

    def __call__(self, watch: Watch, now: datetime) -> ChangedTable | UnchangedTable:
        return self._reader()(watch, now)

    def first(self, watches: Sequence[Watch], now: datetime) -> list[ChangedTable | None]:
        return self._reader().first(watches, now)

    def quiet(self, watches: Sequence[Watch], now: datetime) -> list[bool]:
        return self._reader().quiet(watches, now)

    def _reader(self) -> TableReader:
        roots = (self.allowed_roots, self.lock_roots)
        return TableReader(_engine(self.database), self.storage_options, self.small_file_bytes, *roots)


_engine = cache(partial(open_engine, connections=1))


def _unchanged(engine: Engine, storage: Storage, watch: Watch, now: datetime) -> UnchangedTable:
    pending = None
    if watch.has_pending:
        with reading(engine) as connection:
            stored = snapshot_store.find(connection, watch.table_id)
        if stored is not None:
            found = with_heartbeats(storage, stored.snapshot.pending)
            pending = found if found != stored.snapshot.pending else None
    over = late_files.resolved(storage, _late(engine, watch.table_id), (), now) if watch.has_late_files else {}
    return UnchangedTable(pending, over)


def _as_known(known: KnownState, _: Timeline) -> KnownState:
    return known


def _in_time(watches: Iterable[Watch], seconds: float) -> Iterator[Watch]:
    """Yields the watches until `seconds` have passed."""
    until = time.monotonic() + seconds
    for watch in watches:
        if time.monotonic() > until:
            return
        yield watch


def _changed(
    engine: Engine, storage: Storage, known: Callable[[Timeline], KnownState], small_file_bytes: int, now: datetime
) -> ChangedTable:
    """Reads the timeline and its new instants, and lists the partitions that these have touched. `known` returns the
    state before this poll."""
    config = read_table_config(storage)
    listed = {entry.name: entry for entry in timeline_files(storage, config) if not _is_unfinished(entry, now)}
    config = config.in_frame_of(listed.values())
    timeline = timeline_of(listed)
    before = known(timeline)
    table_id, stored = before.table.id, before.stored
    new = [
        read_instant(storage, config, instant, listed)
        for instant in timeline.instants
        if instant.is_completed and (instant.requested_time, instant.action) not in before.known
    ]
    archived, has_gap = missed_instants(storage, config, timeline, before, new)
    if has_gap:
        log.warning(
            "Instants of table %s were archived before a poll saw them, and its history is damaged or gone", table_id
        )
    new_instants = in_order_of_completion([*archived, *new], config, listed)
    schemas = [seen.metadata.schema for seen in new_instants if seen.metadata.schema]
    pending = read_pending(storage, config, timeline)
    marks = [*marks_of_table(storage), *(seen.mark for seen in new_instants if seen.mark)]
    watch = dataclasses.replace(
        before.watch,
        timeline_path=config.timeline_path,
        fingerprint=fingerprint(listed),
        looked_at=now,
        active_from=timeline.instants[0].requested_time if timeline.instants else None,
        schema_digest=schemas[-1] if schemas else before.watch.schema_digest,
        has_pending=bool(pending),
        gap_at=now if has_gap else before.watch.gap_at,
        engines=with_marks(before.watch.engines, marks),
    )
    files = refresh(
        engine,
        storage,
        config,
        timeline,
        before,
        new_instants=new_instants,
        listed=listed,
        small_file_bytes=small_file_bytes,
        has_gap=has_gap,
    )
    found = commits_of(new_instants, before, config, now)
    hit = replacing(new_instants, files)
    replaced_by = read_replacing(storage, config, timeline, listed, hit)
    misdated = partial(_misdated, config, timeline, listed)
    judged = judge(new_instants, found, files, config, replaced_by=replaced_by, misdated=misdated)
    over: dict[str, str] = {}
    if before.watch.has_late_files:
        completed = {each.requested_time for each in timeline.instants if each.is_completed}
        over = late_files.resolved(storage, _late(engine, table_id), completed, now)
    vanished, undone = vanished_commits(storage, config, timeline, before, new_instants)
    return ChangedTable(
        watch,
        before.table.index,
        config.table_type,
        found,
        pending,
        files,
        small_file_bytes,
        judged,
        over,
        len(timeline.writes),
        vanished=vanished,
        undone=undone,
        clock=config.frame.to_json(),
        profile=polled_profile(storage, config, len(pending), before.table.profile),
        # The first poll leaves this out, because many tables may be polled for the first time at once.
        metadata_table=metadata_table_of(storage, config, timeline, stored.snapshot.metadata_table, now)
        if stored
        else None,
    )


def _misdated(config: TableConfig, timeline: Timeline, listed: Mapping[str, Entry]) -> set[str]:
    """Returns the instants whose times cannot be compared with those of others, because clocks disagree."""
    if config.frame.disagreement is not None:
        return {each.requested_time for each in timeline.instants}
    times = {name: each.modified_us // 1000 for name, each in listed.items() if each.modified_us is not None}
    return {instant for each in inversions(appearances(times)) for instant in (each.instant, each.after)}


def _is_unfinished(entry: Entry, now: datetime) -> bool:
    """Returns whether the file of a completed commit was just created and is not written yet.

    On storages like Azure's, Hudi 1.2 creates this file under its final name before it writes it
    (`HoodieStorage.needCreateTempFile`). Such a file is left out of the fingerprint, so that the next poll reads the
    timeline again. If the file stays empty, it is read as it is.
    """
    instant = None if entry.size or entry.modified_at is None else parse_instant(entry.name)
    if instant is None or not instant.is_completed or instant.action not in WRITING_ACTIONS:
        return False
    return bool(entry.modified_at and abs(now - entry.modified_at) < _WRITTEN_WITHIN)


def _late(engine: Engine, table_id: str) -> list[Incident]:
    with reading(engine) as connection:
        unresolved = store.unresolved(connection, table_id)
    return [each for each in unresolved if each.kind is IncidentKind.LATE_FILES]
