"""Finds the new instants on a table's timeline.

The timeline is the source of truth. An instant is new if it is completed on the active timeline and has no row in
`commits`. So the order in which instants complete does not matter. Nobody looks for instants that were archived before
the first poll. The history is read only if instants may have completed and been archived between two polls
(`missed_instants`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from sqlalchemy import Connection

from jobs.format.completion_order import CompletionOrder
from jobs.format.stale_writes import CompletedWrite
from jobs.format.table_version import WITH_COMPLETION_TIMES
from service.catalog import commit_store, snapshot_store, table_store, watch_store
from service.catalog.registration import Registration
from service.catalog.snapshot_store import Stored
from service.catalog.watch import Watch
from service.db.documents import AtOnce
from service.lake.archived import Archived
from service.lake.commit import Commit
from service.lake.engine_marks import mark_of_commit
from service.lake.engine_sighting import Mark
from service.lake.history import archived_since
from service.lake.instant import Instant
from service.lake.instant_metadata import InstantMetadata, read_metadata
from service.lake.storage import Entry, Storage
from service.lake.table_config import TableConfig
from service.lake.timeline import Timeline, file_name_of, inflight_names_of

_KNOWN = AtOnce(
    *(watch_store.OF_TABLE, table_store.OF_ID, snapshot_store.OF_TABLE),
    *(commit_store.KNOWN, commit_store.NEWEST),
)


@dataclass(frozen=True)
class KnownState:
    """What was known before this poll. The defaults are the state of a table that was never polled."""

    table: Registration
    watch: Watch
    stored: Stored | None = None
    known: Collection[tuple[str, str]] = frozenset()
    newest: str | None = None


def known_state(connection: Connection, table_id: str, timeline: Timeline) -> KnownState:
    since = timeline.instants[0].requested_time if timeline.instants else ""
    found, table, stored, known, newest = _KNOWN.read(connection, {"of_table": table_id, "since": since})
    watch = table_store.existing(found, table_id)
    if watch.looked_at is None:
        return KnownState(table_store.existing(table, table_id), watch)
    before = min((each.requested_time for each in stored.snapshot.pending), default=since) if stored else since
    if before < since:
        known = commit_store.known(connection, table_id, before)
    return KnownState(table_store.existing(table, table_id), watch, stored=stored, known=known, newest=newest)


@dataclass(frozen=True)
class ObservedInstant:
    """A completed instant, the time when its file was written, its metadata, and the mark of the engine that made it.
    `is_ordered` is False if only the instant itself shows when it completed (`CompletionOrder`). `is_archived` says
    that the instant has left the active timeline."""

    instant: Instant
    written_at: datetime | None
    metadata: InstantMetadata
    mark: Mark | None = None
    is_ordered: bool = True
    is_archived: bool = False

    @cached_property
    def write(self) -> CompletedWrite:
        metadata = self.metadata
        return CompletedWrite(
            self.instant.requested_time,
            metadata.operation,
            written=frozenset((path, file_id) for path, ids in metadata.written.items() for file_id in ids),
            replaced=frozenset((path, file_id) for path, ids in metadata.replaced.items() for file_id in ids),
            repaired=metadata.repaired,
            known=metadata.known,
            completed=self.instant.completion_time or "",
            is_ordered=self.is_ordered,
            is_archived=self.is_archived,
        )


def read_instant(
    storage: Storage, config: TableConfig, instant: Instant, files: Mapping[str, Entry]
) -> ObservedInstant:
    """Reads a completed instant. `files` are those of the timeline, by name."""
    metadata = read_metadata(storage, config, instant)
    written_at = files[file_name_of(instant)].modified_at
    has_empty_inflight = any(files[each].size == 0 for each in inflight_names_of(instant) if each in files)
    mark = mark_of_commit(instant, metadata, written_at, has_empty_inflight=has_empty_inflight)
    return ObservedInstant(instant, written_at, metadata, mark)


def missed_instants(
    storage: Storage, config: TableConfig, timeline: Timeline, before: KnownState, new: Sequence[ObservedInstant]
) -> tuple[list[ObservedInstant], bool]:
    """Returns the instants that completed and were archived since the last poll, and whether some may have been missed
    because their history is damaged or gone.

    Hudi archives the oldest instants first. So such instants can exist only if a pending instant is gone without a
    rollback, or if no instant of the active timeline is as old as the newest known commit.
    """
    if before.watch.looked_at is None:
        return [], False
    newest = before.newest or ""
    present = {instant.requested_time for instant in timeline.instants}
    undone = {requested for seen in new for requested in seen.metadata.rolled_back}
    was_pending = before.stored.snapshot.pending if before.stored else ()
    gone = {each.requested_time for each in was_pending} - present - undone
    starts_at = timeline.starts_at
    if starts_at is not None and starts_at > newest:
        gone.add(newest)
    # Instants missing from the middle of the timeline were removed, not archived.
    gone = {requested for requested in gone if starts_at is not None and requested < starts_at}
    if not gone:
        return [], False
    found, is_whole = archived_since(storage, config, min(gone))
    if newest and newest in gone:
        is_whole &= any(each.instant.requested_time == newest for each in found)
    return [
        _observed(each, config)
        for each in found
        if (each.instant.requested_time, each.instant.action) not in before.known
        and (each.instant.requested_time in gone or each.instant.requested_time > newest)
    ], not is_whole


def _observed(archived: Archived, config: TableConfig) -> ObservedInstant:
    """Returns an archived instant, whose inflight file is gone."""
    instant, metadata = archived.instant, archived.metadata
    at = config.moment(instant.completion_time or instant.requested_time)
    mark = mark_of_commit(instant, metadata, at, has_empty_inflight=False)
    return ObservedInstant(instant, None, metadata, mark, is_archived=True)


def read_replacing(
    storage: Storage, config: TableConfig, timeline: Timeline, files: Mapping[str, Entry], wanted: Collection[str]
) -> list[ObservedInstant]:
    """Returns the completed instants with these requested times, from the timeline or else from the history. `files`
    are those of the timeline, by name."""
    found = [each for each in timeline.instants if each.is_completed and each.requested_time in wanted]
    # Earlier versions of the service stored an empty text for an instant that they did not know.
    gone = {*filter(None, wanted)} - {each.requested_time for each in found}
    archived = archived_since(storage, config, min(gone))[0] if gone else ()
    older = [each for each in archived if each.instant.requested_time in gone]
    return [read_instant(storage, config, each, files) for each in found] + [_observed(each, config) for each in older]


def in_order_of_completion(
    seen: Iterable[ObservedInstant], config: TableConfig, files: Mapping[str, Entry]
) -> list[ObservedInstant]:
    """Sorts instants by completion, as far as this is known. `files` are those of the timeline, by name."""
    if config.version >= WITH_COMPLETION_TIMES:
        return sorted(seen, key=lambda each: (each.instant.completion_time or "", each.instant.requested_time))
    order = CompletionOrder.of(
        {name: file.modified_us // 1000 for name, file in files.items() if file.modified_us is not None}
    )
    ordered = [replace(each, is_ordered=order.is_known(each.instant.requested_time)) for each in seen]
    return sorted(ordered, key=lambda each: order.key(each.instant.requested_time))


def commits_of(
    new_instants: Iterable[ObservedInstant], before: KnownState, config: TableConfig, now: datetime
) -> list[Commit]:
    found = []
    schema = before.watch.schema_digest
    for each in new_instants:
        instant, metadata = each.instant, each.metadata
        written_at = each.written_at if each.is_ordered else None  # The file of an unordered one may be a copy.
        completed_at = config.moment(instant.completion_time) if instant.completion_time else written_at
        found.append(
            Commit(
                table_id=before.table.id,
                requested_time=instant.requested_time,
                action=instant.action,
                completion_time=instant.completion_time,
                completed_at=completed_at or config.moment(instant.requested_time) or now,
                seen_at=now,
                operation=metadata.operation,
                rows_written=metadata.rows_written,
                rows_deleted=metadata.rows_deleted,
                bytes_written=metadata.bytes_written,
                partitions=metadata.partitions or (),
                file_groups=metadata.file_groups,
                schema_changed=bool(schema and metadata.schema and metadata.schema != schema),
                is_news=_is_news(each, before),
            )
        )
        schema = metadata.schema or schema
    return found


def _is_news(seen: ObservedInstant, before: KnownState) -> bool:
    """Returns whether an instant is news for receivers of events. At the first poll, only instants that completed after
    the registration are news. The modification time of the file decides, because it does not depend on a time zone."""
    if before.watch.looked_at is not None:
        return True
    return seen.written_at is not None and seen.written_at >= before.table.created_at
