"""One poll of one table: reads what is new on its timeline, and updates the snapshot."""

from __future__ import annotations

import dataclasses
import logging
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

from service.catalog import commit_store, decision_times, snapshot_store, table_store, watch_store
from service.catalog.snapshot_store import Stored
from service.db.engine import reading, writing
from service.delivery import outbox
from service.incidents import store as incidents_of
from service.incidents import tracker
from service.incidents.finding import Judged
from service.incidents.incident import IncidentKind, astray
from service.lake.commit import CLEAN, CLUSTERING, COMPACTION, Commit
from service.lake.engine_marks import marks_of_table
from service.lake.engine_sighting import with_marks
from service.lake.pending import read_pending, with_heartbeats
from service.lake.snapshot import Pending, Since, TableSnapshot
from service.lake.storage import open_storage
from service.lake.table_config import read_table_config
from service.lake.timeline import timeline_of
from service.observation import late_files, poll_events
from service.observation.snapshot_refresh import Files, refresh
from service.observation.stale_commits import judge
from service.observation.timeline_diff import (
    commits_of,
    in_order_of_completion,
    known_state,
    missed_instants,
    read_instant,
)
from service.queue.settlement import settle
from service.queue.withdrawal import withdraw_beside_incidents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import Connection, Engine

    from jobs.contract import BucketIndex
    from service.catalog.watch import Watch
    from service.incidents.incident import Incident
    from service.lake.storage import Storage
    from service.lake.table import TableType
    from service.model.clock import Clock

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PollResult:
    """`commits` are those that this poll recorded, in the order of their completion; `changed`: the timeline differs
    from that of the last poll."""

    table_id: str
    changed: bool = False
    commits: tuple[Commit, ...] = ()


@dataclass(frozen=True)
class _Polled:
    """Everything that one poll has read, before any of it is recorded. `watch` is the result for the next poll.

    `judged` are the new commits whose rows are astray; `over` maps the ids of incidents that are over to the reasons.
    """

    watch: Watch
    index: BucketIndex | None
    table_type: TableType
    commits: Sequence[Commit]
    pending: tuple[Pending, ...]
    files: Files
    judged: Judged
    over: Mapping[str, str]


def poll_table(
    engine: Engine, clock: Clock, watch: Watch, *, storage_options: Mapping[str, str], small_file_bytes: int
) -> PollResult:
    """Polls a table. Costs one listing while nothing has happened. Raises TableNotFoundError and the errors of
    `service.lake`."""
    began = clock()
    storage = open_storage(watch.base_path, storage_options)
    if watch.fingerprint and watch.timeline_path:
        names = storage.names(watch.timeline_path)
        if fingerprint(names) == watch.fingerprint:
            _record_unchanged(engine, storage, watch, began)
            return PollResult(watch.table_id)
    polled = _read(engine, clock, storage, watch.table_id, small_file_bytes)
    return _record(engine, polled, small_file_bytes)


def _read(engine: Engine, clock: Clock, storage: Storage, table_id: str, small_file_bytes: int) -> _Polled:
    """Reads the timeline and its new instants, and lists the partitions they touched. Writes nothing."""
    began = clock()
    config = read_table_config(storage)
    listed = {entry.name: entry for entry in storage.list(config.timeline_path) if not entry.is_folder}
    timeline = timeline_of(listed)
    with reading(engine) as connection:
        before = known_state(connection, table_id, timeline)
    new = [
        read_instant(storage, config, instant, listed)
        for instant in timeline.instants
        if instant.is_completed and (instant.requested_time, instant.action) not in before.known
    ]
    archived, has_gap = missed_instants(storage, config, timeline, before, new)
    if has_gap:
        log.warning(
            "Instants of table %s were archived before a poll saw them, in a format that cannot be read", table_id
        )
    new_instants = in_order_of_completion([*archived, *new])
    schemas = [seen.metadata.schema for seen in new_instants if seen.metadata.schema]
    pending = read_pending(storage, config, timeline)
    marks = [*marks_of_table(storage), *(seen.mark for seen in new_instants if seen.mark)]
    watch = dataclasses.replace(
        before.watch,
        timeline_path=config.timeline_path,
        fingerprint=fingerprint(listed),
        looked_at=began,
        active_from=timeline.instants[0].requested_time if timeline.instants else None,
        schema_digest=schemas[-1] if schemas else before.watch.schema_digest,
        has_pending=bool(pending),
        gap_at=began if has_gap else before.watch.gap_at,
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
    found = commits_of(new_instants, before, config, clock())
    judged = judge(new_instants, found, files, config)
    over: dict[str, str] = {}
    if before.watch.has_late_files:
        completed = {each.requested_time for each in timeline.instants if each.is_completed}
        over = late_files.resolved(storage, _late(engine, table_id), completed, clock())
    return _Polled(watch, before.table.index, config.table_type, found, pending, files, judged, over)


def _record(engine: Engine, polled: _Polled, small_file_bytes: int) -> PollResult:
    watch, files = polled.watch, polled.files
    assert watch.looked_at is not None
    with writing(engine) as connection:
        if _is_overtaken(connection, polled):
            return PollResult(watch.table_id)
        added = commit_store.record(connection, polled.commits)
        stored = snapshot_store.find(connection, watch.table_id)
        snapshot = TableSnapshot(
            table_id=watch.table_id,
            taken_at=watch.looked_at,
            table_type=polled.table_type,
            pending=polled.pending,
            num_buckets=files.layout.num_buckets,
            small_file_bytes=small_file_bytes,
        )
        snapshot = _with_commits(connection, snapshot, stored, added)
        snapshot_store.save(connection, Stored(snapshot, files.layout.to_json()))
        snapshot_store.save_partitions(connection, watch.table_id, files.listed, files.partitions)
        watch_store.record_poll(connection, watch)
        change = tracker.of_poll(connection, watch.table_id, polled.judged, polled.over, watch.looked_at)
        decision_times.wake(connection, watch.table_id, watch.looked_at)
        events = poll_events.of_poll(connection, watch, added, change.still_open, watch.looked_at)
        events += settle(connection, watch.table_id, watch.looked_at, watch.looked_at)
        if astray(change.opened):
            events += withdraw_beside_incidents(connection, watch.table_id, watch.looked_at)
        outbox.publish(connection, [*events, *change.events], now=watch.looked_at)
    return PollResult(watch.table_id, changed=True, commits=tuple(added))


def fingerprint(names: Iterable[str]) -> str:
    """Returns a digest that is equal while the timeline is the same. All files of a timeline begin with a digit."""
    relevant = sorted(name for name in names if name[:1].isdigit())
    return blake2b("\n".join(relevant).encode(), digest_size=16).hexdigest()


def _record_unchanged(engine: Engine, storage: Storage, watch: Watch, now: datetime) -> None:
    if watch.has_pending:
        with reading(engine) as connection:
            stored = snapshot_store.find(connection, watch.table_id)
        if stored is not None:
            pending = with_heartbeats(storage, stored.snapshot.pending)
            if pending != stored.snapshot.pending:
                _save_pending(engine, watch, pending, now)
    over = late_files.resolved(storage, _late(engine, watch.table_id), (), now) if watch.has_late_files else {}
    if watch.failures or over:
        with writing(engine) as connection:
            if watch.failures:
                watch_store.record_recovery(connection, watch.table_id)
            change = tracker.of_poll(connection, watch.table_id, Judged(), over, now)
            if over:
                decision_times.wake(connection, watch.table_id, now)
            events = poll_events.of_poll(connection, watch, (), change.still_open, now)
            outbox.publish(connection, [*events, *change.events], now=now)


def _late(engine: Engine, table_id: str) -> list[Incident]:
    with reading(engine) as connection:
        standing = incidents_of.standing(connection, table_id)
    return [each for each in standing if each.kind is IncidentKind.LATE_FILES]


def _save_pending(engine: Engine, watch: Watch, pending: tuple[Pending, ...], now: datetime) -> None:
    with writing(engine) as connection:
        if watch_store.get(connection, watch.table_id, for_update=True).fingerprint != watch.fingerprint:
            return  # A newer poll was recorded meanwhile.
        stored = snapshot_store.find(connection, watch.table_id)
        if stored is not None:
            snapshot = dataclasses.replace(stored.snapshot, pending=pending, taken_at=now)
            snapshot_store.save(connection, dataclasses.replace(stored, snapshot=snapshot))


def _is_overtaken(connection: Connection, polled: _Polled) -> bool:
    """Returns whether a later poll has been recorded, or the table was changed or its snapshot deleted meanwhile.

    Locks the table's watch, so that none of that happens until the end of the transaction.
    """
    standing = watch_store.get(connection, polled.watch.table_id, for_update=True)
    if standing.looked_at and polled.watch.looked_at and standing.looked_at > polled.watch.looked_at:
        return True
    if table_store.get(connection, polled.watch.table_id).index != polled.index:
        return True
    return polled.files.listed is not None and snapshot_store.find(connection, polled.watch.table_id) is None


def _with_commits(
    connection: Connection, snapshot: TableSnapshot, stored: Stored | None, added: Sequence[Commit]
) -> TableSnapshot:
    """Adds the counts of commits. Counts anew only where a table service ran; otherwise adds the new commits to the old
    counts."""

    def since(run: str, old: Since | None, is_run: Callable[[Commit], bool]) -> Since:
        if old is None or any(is_run(commit) for commit in added):
            return commit_store.since_run(connection, snapshot.table_id, run)
        ingested = [commit for commit in added if commit.ingests]
        return dataclasses.replace(
            old,
            commits=old.commits + len(ingested),
            bytes_written=old.bytes_written + sum(commit.bytes_written or 0 for commit in ingested),
        )

    old = stored.snapshot if stored else None
    first, last = commit_store.first_and_last(connection, snapshot.table_id)
    return dataclasses.replace(
        snapshot,
        last_commit=last.requested_time if last else None,
        last_commit_at=last.completed_at if last else None,
        first_commit_at=(old.first_commit_at if old else None) or (first.completed_at if first else None),
        since_compaction=since(COMPACTION, old.since_compaction if old else None, lambda c: c.operation == COMPACTION),
        since_cleaning=since(CLEAN, old.since_cleaning if old else None, lambda c: c.action == CLEAN),
        since_clustering=since(CLUSTERING, old.since_clustering if old else None, lambda c: c.operation == CLUSTERING),
    )
