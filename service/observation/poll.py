"""One poll of one table: reads what is new on its timeline, and updates the snapshot."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Engine

from service.catalog import commit_store, decision_times, sample_store, snapshot_store, table_store, watch_store
from service.catalog.registration import Registration
from service.catalog.sample import Sample
from service.catalog.snapshot_store import Stored
from service.catalog.watch import Watch
from service.db.documents import AtOnce
from service.db.engine import writing
from service.delivery import outbox
from service.incidents import store as incident_store
from service.incidents import tracker
from service.incidents.finding import Judged
from service.incidents.incident import with_misplaced_rows
from service.lake.commit import CLEAN, CLUSTERING, COMPACTION, WRITING_ACTIONS, Commit
from service.lake.snapshot import Since, TableSnapshot
from service.model.clock import Clock
from service.observation import other_runs, poll_events
from service.observation.table_read import ChangedTable, UnchangedTable
from service.queue import breaker_store, job_store, job_tally
from service.queue.unknown_outcomes import settle
from service.queue.unstarted_jobs import withdraw_beside_incidents

_KNOWN = AtOnce(
    *(watch_store.OF_TABLE, table_store.OF_ID, snapshot_store.OF_TABLE),
    *(incident_store.STANDING, job_store.WITH_UNKNOWN),
)


@dataclass(frozen=True)
class PollResult:
    """The outcome of a poll."""

    table_id: str
    changed: bool = False  # Whether the timeline has changed since the last poll.
    commits: tuple[Commit, ...] = ()  # The recorded commits, in the order of their completion.


ReadTable = Callable[["Watch", "datetime"], ChangedTable | UnchangedTable]
"""A `TableReader`, or one in a child process."""

ReadFirst = Callable[["Sequence[Watch]", "datetime"], "Sequence[ChangedTable | None]"]
"""The method `first` of a `TableReader`, or of one in a child process."""

FindQuiet = Callable[["Sequence[Watch]", "datetime"], "Sequence[bool]"]
"""The method `quiet` of a `TableReader`, or of one in a child process."""


def poll_table(engine: Engine, clock: Clock, watch: Watch, read: ReadTable) -> PollResult:
    """Polls a table: reads it, and then records what is new. Raises TableNotFoundError and the errors of `read`."""
    began = clock()
    match read(watch, began):
        case UnchangedTable() as found:
            _record_unchanged(engine, watch, found, began)
            return PollResult(watch.table_id)
        case ChangedTable() as found:
            return _record(engine, found, clock())


def _record(engine: Engine, polled: ChangedTable, seen_at: datetime) -> PollResult:
    watch, files = polled.watch, polled.files
    assert watch.looked_at is not None
    # The observer notifies those who wait for commits.
    with writing(engine, quietly=True) as connection:
        watch_store.lock(connection, watch.table_id)
        given = {"of_table": watch.table_id, "of_tables": [watch.table_id]}
        watched, found, stored, unresolved, with_unknown = _KNOWN.read(connection, given)
        before = table_store.existing(watched, watch.table_id)
        table = table_store.existing(found, watch.table_id)
        if _is_overtaken(table, polled, before, stored):
            return PollResult(watch.table_id)
        _keep_profile(connection, table, polled)
        added = commit_store.record(connection, polled.commits, seen_at)
        snapshot = _snapshot(connection, polled, stored, added)
        if before.looked_at is None:
            snapshot = _of_first_commits(snapshot, added)
        else:
            snapshot = _with_commits(connection, snapshot, stored, added)
        snapshot_store.save_partitions(connection, watch.table_id, files.listed, files.partitions)
        snapshot = snapshot_store.save(connection, Stored(snapshot, files.layout.to_json()))
        sample_store.record(connection, {watch.table_id: Sample.of(snapshot)})
        watch_store.record_polls(connection, [watch])
        if watch.failures:
            breaker_store.mended(connection, watch.table_id, watch.looked_at)
        change = tracker.of_poll(
            connection, watch.table_id, polled.judged, polled.over, watch.looked_at, unresolved=unresolved
        )
        decision_times.wake(connection, watch.table_id, watch.looked_at)
        events = poll_events.of_poll(table, watch, added, change.still_open, watch.looked_at)
        if with_unknown:
            events += settle(connection, watch.table_id, watch.looked_at, watch.looked_at)
        if with_misplaced_rows(change.opened):
            events += withdraw_beside_incidents(connection, watch.table_id, watch.looked_at)
        outbox.publish(connection, [*events, *change.events], now=watch.looked_at)
        outbox.count(connection, job_tally.of_commits(added))
    return PollResult(watch.table_id, changed=True, commits=tuple(added))


def record_first(engine: Engine, polled: Sequence[ChangedTable], seen_at: datetime) -> list[PollResult]:
    """Records the first polls of several tables in one transaction. Tables that were polled, changed or unregistered
    meanwhile are left out. So are tables with incidents or with jobs of unknown outcome, which need more work."""
    with writing(engine, quietly=True) as connection:
        ids = [each.watch.table_id for each in polled]
        befores = {each.table_id: each for each in watch_store.claimed(connection, ids, for_update=True)}
        tables = table_store.get_all(connection, ids)
        more = {*incident_store.counts(connection, ids), *job_store.with_unknown(connection, ids)}
        more |= {each.watch.table_id for each in polled if each.judged.findings or each.over}
        found = {
            table_id: each
            for each in sorted(polled, key=lambda each: each.watch.table_id)
            if (table_id := each.watch.table_id) in tables.keys() & befores.keys() - more
            and befores[table_id].looked_at is None
            and not _is_overtaken(tables[table_id], each, befores[table_id], None)
        }
        if not found:
            return []
        for table_id, each in found.items():
            _keep_profile(connection, tables[table_id], each)
        commit_store.add(connection, [commit for each in found.values() for commit in each.commits], seen_at)
        snapshots = snapshot_store.add(
            connection,
            [
                (
                    Stored(
                        _of_first_commits(_snapshot(connection, each, None, each.commits), each.commits),
                        each.files.layout.to_json(),
                    ),
                    each.files.partitions,
                )
                for each in found.values()
            ],
        )
        sample_store.record(connection, {each.table_id: Sample.of(each) for each in snapshots})
        watch_store.record_polls(connection, [each.watch for each in found.values()])
        decision_times.wake_each(connection, {each.table_id: each.taken_at for each in snapshots})
        results = [PollResult(table_id, changed=True, commits=tuple(each.commits)) for table_id, each in found.items()]
        commits = [commit for each in results for commit in each.commits if commit.is_news]
        news = [dataclasses.replace(commit, seen_at=seen_at) for commit in commits]
        outbox.publish(
            connection, [poll_events.commit_published(each, tables[each.table_id]) for each in news], now=seen_at
        )
        outbox.count(connection, job_tally.of_commits(news))
    return results


def _keep_profile(connection: Connection, table: Registration, polled: ChangedTable) -> None:
    if table.profile and (profile := {**table.profile, **polled.profile}) != table.profile:
        table_store.set_profile(connection, table.id, profile)


def _snapshot(
    connection: Connection, polled: ChangedTable, stored: Stored | None, added: Sequence[Commit]
) -> TableSnapshot:
    """Returns the snapshot. Its counts of commits are added later."""
    watch, before = polled.watch, stored.snapshot if stored else None
    assert watch.looked_at is not None
    return TableSnapshot(
        table_id=watch.table_id,
        taken_at=watch.looked_at,
        table_type=polled.table_type,
        pending=polled.pending,
        num_buckets=polled.files.layout.num_buckets,
        small_file_bytes=polled.small_file_bytes,
        timeline_commits=polled.timeline_commits,
        cycles=before.cycles if before else (),
        lock=polled.lock,
        vanished=polled.vanished,
        vanished_since=_since(stored, polled.vanished) or watch.looked_at if polled.vanished else None,
        undone=polled.undone,
        other_runs=other_runs.with_new(connection, watch.table_id, before.other_runs if before else (), added),
        clock=_with_first(stored, polled.clock),
        not_writable=before.not_writable if before else None,
        metadata_table=polled.metadata_table,
    )


def _since(stored: Stored | None, vanished: Sequence[str]) -> datetime | None:
    """Returns since when these commits have been missing."""
    still = stored is not None and not set(stored.snapshot.vanished).isdisjoint(vanished)
    return stored.snapshot.vanished_since if stored is not None and still else None


def _with_first(stored: Stored | None, clock: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns `clock` with the stored first time of a disagreement. A poll compares only the newest commits, so alone
    it would find a later time."""
    known, found = stored.snapshot.clock.get("disagreement") if stored is not None else None, clock.get("disagreement")
    if not known or not found:
        return clock
    return {**clock, "disagreement": {**found, "since": min(known["since"], found["since"])}}


def _record_unchanged(engine: Engine, watch: Watch, found: UnchangedTable, now: datetime) -> None:
    if found.pending is not None or found.lock != watch.polled_lock:
        _save_seen(engine, watch, found, now)
    if watch.failures or found.over:
        with writing(engine) as connection:
            if watch.failures:
                watch_store.record_recovery(connection, watch.table_id)
                breaker_store.mended(connection, watch.table_id, now)
            unresolved = incident_store.unresolved(connection, watch.table_id)
            change = tracker.of_poll(connection, watch.table_id, Judged(), found.over, now, unresolved=unresolved)
            if found.over:
                decision_times.wake(connection, watch.table_id, now)
            table = table_store.get(connection, watch.table_id)
            events = poll_events.of_poll(table, watch, (), change.still_open, now)
            outbox.publish(connection, [*events, *change.events], now=now)


def _save_seen(engine: Engine, watch: Watch, found: UnchangedTable, now: datetime) -> None:
    with writing(engine) as connection:
        if watch_store.get(connection, watch.table_id, for_update=True).fingerprint != watch.fingerprint:
            return  # A newer poll was recorded meanwhile.
        stored = snapshot_store.find(connection, watch.table_id)
        if stored is not None:
            snapshot = dataclasses.replace(stored.snapshot, lock=found.lock)
            if found.pending is not None:
                snapshot = dataclasses.replace(snapshot, pending=found.pending, taken_at=now)
            snapshot_store.save(connection, dataclasses.replace(stored, snapshot=snapshot))


def _is_overtaken(table: Registration, polled: ChangedTable, before: Watch, stored: Stored | None) -> bool:
    """Returns whether meanwhile a later poll was recorded, the table was changed, or its snapshot was deleted. `before`
    is the table's watch. The row of the watch is locked, so none of this can happen until the transaction ends."""
    if before.looked_at and polled.watch.looked_at and before.looked_at > polled.watch.looked_at:
        return True
    if table.index != polled.index:
        return True
    return polled.files.listed is not None and stored is None


def _of_first_commits(snapshot: TableSnapshot, added: Sequence[Commit]) -> TableSnapshot:
    """Adds the commits of a first poll. No other commits of the table are stored, so the database need not be
    queried."""
    writes = [commit for commit in added if commit.action in WRITING_ACTIONS]
    return dataclasses.replace(
        snapshot,
        last_commit=writes[-1].requested_time if writes else None,
        last_commit_at=writes[-1].completed_at if writes else None,
        first_commit_at=writes[0].completed_at if writes else None,
        since_compaction=commit_store.since_run_among(added, COMPACTION),
        since_cleaning=commit_store.since_run_among(added, CLEAN),
        since_clustering=commit_store.since_run_among(added, CLUSTERING),
    )


def _with_commits(
    connection: Connection, snapshot: TableSnapshot, stored: Stored | None, added: Sequence[Commit]
) -> TableSnapshot:
    """Adds the new commits to the counts. If a table service ran, its count is computed again."""

    def since(run: str, old: Since | None, is_run: Callable[[Commit], bool]) -> Since:
        if old is None or any(is_run(commit) for commit in added):
            return commit_store.since_run(connection, snapshot.table_id, run)
        if not ingested:
            return old
        oldest_at: datetime | None = min(commit.completed_at for commit in ingested)
        if old.commits:
            oldest_at = min(old.oldest_at, oldest_at) if old.oldest_at and oldest_at else None
        return dataclasses.replace(
            old,
            commits=old.commits + len(ingested),
            bytes_written=old.bytes_written + sum(commit.bytes_written or 0 for commit in ingested),
            oldest_at=oldest_at,
        )

    ingested = [commit for commit in added if commit.ingests]
    old = stored.snapshot if stored else None
    first_at = old.first_commit_at if old else None
    last = next((commit for commit in reversed(added) if commit.action in WRITING_ACTIONS), None)
    if first_at is None or last is None:
        first, last = commit_store.first_and_last(connection, snapshot.table_id)
        first_at = first_at or (first.completed_at if first else None)
    return dataclasses.replace(
        snapshot,
        last_commit=last.requested_time if last else None,
        last_commit_at=last.completed_at if last else None,
        first_commit_at=first_at,
        since_compaction=since(COMPACTION, old.since_compaction if old else None, lambda c: c.operation == COMPACTION),
        since_cleaning=since(CLEAN, old.since_cleaning if old else None, lambda c: c.action == CLEAN),
        since_clustering=since(CLUSTERING, old.since_clustering if old else None, lambda c: c.operation == CLUSTERING),
    )
