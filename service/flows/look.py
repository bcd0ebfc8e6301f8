"""One look at one table: what its timeline says that was not known, and how the table stands now."""

from __future__ import annotations

import dataclasses
import logging
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

from service.flows.news import (
    Before,
    Seen,
    commits_of,
    in_order_of_completion,
    missed,
    read_instant,
    what_was_known,
)
from service.flows.refresh import Files, Layout, describe_files, list_partitions, touched
from service.lake.partition import Visibility
from service.lake.pending import read_pending, with_heartbeats
from service.lake.storage import open_storage
from service.lake.table_config import read_table_config
from service.lake.timeline import timeline_of
from service.model.commit import BUCKET_RESCALE, CLEAN, CLUSTERING, COMPACTION, Commit
from service.model.snapshot import Pending, Since, TableSnapshot
from service.store import commits, snapshots, watches
from service.store.engine import reading, writing
from service.store.snapshots import Stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import Connection, Engine

    from service.lake.storage import Storage
    from service.lake.table_config import TableConfig
    from service.lake.timeline import Timeline
    from service.model.clock import Clock
    from service.model.watch import Watch

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Looked:
    """`commits` are those recorded by this look, in the order of their completion; `changed`: the timeline was another
    than at the last look."""

    table_id: str
    changed: bool = False
    commits: tuple[Commit, ...] = ()


def look(
    engine: Engine, clock: Clock, watch: Watch, *, storage_options: Mapping[str, str], small_file_bytes: int
) -> Looked:
    """Costs one listing as long as nothing has happened. Raises TableNotFoundError and what reading the lake raises."""
    began = clock()
    storage = open_storage(watch.base_path, storage_options)
    if watch.fingerprint and watch.timeline_path:
        names = storage.names(watch.timeline_path)
        if fingerprint(names) == watch.fingerprint:
            _nothing_new(engine, storage, watch, began)
            return Looked(watch.table_id)
    config = read_table_config(storage)
    written = {e.name: e.modified_at for e in storage.list(config.timeline_path) if not e.is_folder}
    timeline = timeline_of(written)
    with reading(engine) as connection:
        before = what_was_known(connection, watch.table_id, timeline)
    new = [
        read_instant(storage, config, instant, written)
        for instant in timeline.instants
        if instant.is_completed and (instant.requested_time, instant.action) not in before.known
    ]
    archived, has_gap = missed(storage, config, timeline, before, new)
    pending = read_pending(storage, config, timeline)
    news = in_order_of_completion([*archived, *new])
    files, layout = _files(engine, storage, config, timeline, before, news, has_gap, written, small_file_bytes)
    if has_gap:
        log.warning(
            "Instants of table %s were archived before they were seen, to where they cannot be read", watch.table_id
        )
    after = dataclasses.replace(
        before.watch,
        timeline_path=config.timeline_path,
        fingerprint=fingerprint(written),
        looked_at=began,
        active_from=timeline.instants[0].requested_time if timeline.instants else None,
        schema_digest=next(
            (s.metadata.schema for s in reversed(news) if s.metadata.schema), before.watch.schema_digest
        ),
        has_pending=bool(pending),
        gap_at=began if has_gap else before.watch.gap_at,
    )
    found = commits_of(news, before, config, clock())
    with writing(engine) as connection:
        if _is_overtaken(connection, after):
            return Looked(watch.table_id)
        added = commits.record(connection, found)
        # Here, in this transaction, events are written of the commits in `added` that are news.
        snapshots.save_partitions(connection, watch.table_id, files.listed, files.partitions)
        stored = snapshots.find(connection, watch.table_id)
        snapshot = TableSnapshot(
            table_id=watch.table_id,
            taken_at=began,
            table_type=config.table_type,
            pending=pending,
            num_buckets=layout.num_buckets,
            small_file_bytes=small_file_bytes,
        )
        snapshot = _with_commits(connection, snapshot, stored, added)
        snapshots.save(connection, Stored(snapshot, layout.to_json()))
        watches.seen(connection, after)
    return Looked(watch.table_id, changed=True, commits=tuple(added))


def fingerprint(names: Iterable[str]) -> str:
    """Equal as long as the timeline is the same. All its files begin with a digit."""
    ours = sorted(name for name in names if name[:1].isdigit())
    return blake2b("\n".join(ours).encode(), digest_size=16).hexdigest()


def _nothing_new(engine: Engine, storage: Storage, watch: Watch, now: datetime) -> None:
    if watch.has_pending:
        with reading(engine) as connection:
            stored = snapshots.find(connection, watch.table_id)
        if stored is not None:
            pending = with_heartbeats(storage, stored.snapshot.pending)
            if pending != stored.snapshot.pending:
                _save_pending(engine, watch, pending, now)
    if watch.failures:
        with writing(engine) as connection:
            watches.recovered(connection, watch.table_id)


def _save_pending(engine: Engine, watch: Watch, pending: tuple[Pending, ...], now: datetime) -> None:
    with writing(engine) as connection:
        if watches.get(connection, watch.table_id, for_update=True).fingerprint != watch.fingerprint:
            return  # Somebody has seen more meanwhile.
        stored = snapshots.find(connection, watch.table_id)
        if stored is not None:
            snapshot = dataclasses.replace(stored.snapshot, pending=pending, taken_at=now)
            snapshots.save(connection, dataclasses.replace(stored, snapshot=snapshot))


def _files(
    engine: Engine,
    storage: Storage,
    config: TableConfig,
    timeline: Timeline,
    before: Before,
    news: Sequence[Seen],
    has_gap: bool,
    written: Mapping[str, datetime | None],
    small_file_bytes: int,
) -> tuple[Files, Layout]:
    """Lists the partitions that the new instants touched, or all if that is not enough."""
    table_id, index = before.table.id, before.table.index
    metadata = [seen.metadata for seen in news]
    paths = touched(metadata)
    is_rescaled = any(each.operation == BUCKET_RESCALE for each in metadata)
    if before.stored is None or has_gap or is_rescaled:
        paths = None
    if paths is None:
        known = {(seen.instant.requested_time, seen.instant.action) for seen in news}
        rest = [i for i in timeline.instants if i.is_completed and (i.requested_time, i.action) not in known]
        metadata = [read_instant(storage, config, instant, written).metadata for instant in rest] + metadata
        layout = Layout.read(storage, config, timeline, index)
    else:
        layout = Layout.stored(index, before.stored.hashing_config if before.stored else None)
    with reading(engine) as connection:
        remembered = snapshots.details(connection, table_id, paths)
    described = describe_files(
        list_partitions(storage, paths),
        Visibility.of(timeline, config.timeline_layout),
        metadata,
        remembered,
        layout,
        small_file_bytes,
    )
    return Files(paths, described), layout


def _is_overtaken(connection: Connection, after: Watch) -> bool:
    """Whether a look that began later has been recorded. Locks the table's watch, so that no other is meanwhile."""
    standing = watches.get(connection, after.table_id, for_update=True)
    return standing.looked_at is not None and after.looked_at is not None and standing.looked_at > after.looked_at


def _with_commits(
    connection: Connection, snapshot: TableSnapshot, stored: Stored | None, added: Sequence[Commit]
) -> TableSnapshot:
    """Adds what the commits say. Counted anew only where a table service ran; else the new ones are added."""

    def since(run: str, old: Since | None, is_run: Callable[[Commit], bool]) -> Since:
        if old is None or any(is_run(commit) for commit in added):
            return commits.since_run(connection, snapshot.table_id, run)
        ingested = [commit for commit in added if commit.ingests]
        return dataclasses.replace(
            old,
            commits=old.commits + len(ingested),
            bytes_written=old.bytes_written + sum(commit.bytes_written or 0 for commit in ingested),
        )

    old = stored.snapshot if stored else None
    first, last = commits.first_and_last(connection, snapshot.table_id)
    return dataclasses.replace(
        snapshot,
        last_commit=last.requested_time if last else None,
        last_commit_at=last.completed_at if last else None,
        first_commit_at=(old.first_commit_at if old else None) or (first.completed_at if first else None),
        since_compaction=since(COMPACTION, old.since_compaction if old else None, lambda c: c.operation == COMPACTION),
        since_cleaning=since(CLEAN, old.since_cleaning if old else None, lambda c: c.action == CLEAN),
        since_clustering=since(CLUSTERING, old.since_clustering if old else None, lambda c: c.operation == CLUSTERING),
    )
