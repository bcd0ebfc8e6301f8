"""Reads the past of tables: their commits, their samples, and the work of their real jobs."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from itertools import accumulate, pairwise
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from jobs.contract import JobKind, WriterEngine
from service.catalog import sample_store, snapshot_store, watch_store
from service.catalog.sample import Sample
from service.db import schema
from service.lake.commit import CLEAN, CLUSTERING, COMPACTION, SERVICE_OPERATIONS, WRITING_ACTIONS
from service.lake.snapshot import TableSnapshot
from service.lake.table import TableType
from service.outcome import objective_store
from service.outcome.read_cost import ReadRates, ReadWork, read_cost
from service.policies.policy import Policy
from service.policies.precedence import Subject
from service.queue import attempt_figures, worker_store
from service.queue.attempt_figures import Figures
from service.scheduling.first_freed import behind_of
from service.simulation.growth import Growth, Merged, PolledSizes, fitted
from service.simulation.out_of_use import left_by
from service.simulation.outcome import KindOutcome, Outcome, Point
from service.simulation.table_past import Beginning, Ran, TablePast, Write

MOST_COMMITS = 400_000
"""A simulation with more commits is refused."""

LOOK_BACK = timedelta(days=1)
"""The last runs of table services are searched for in this time before the period."""

_c = schema.commits
_f = schema.attempt_figures
_SINCE = {each: f"since_{each.value}" for each in (JobKind.COMPACTION, JobKind.CLUSTERING, JobKind.CLEANING)}
_RUNS = {COMPACTION: JobKind.COMPACTION, CLUSTERING: JobKind.CLUSTERING}
_AT_ONCE = 500


@dataclass
class Past:
    """The past of tables, without the parts that depend on a policy."""

    begin: datetime
    end: datetime
    pasts: dict[str, TablePast] = field(default_factory=dict)
    actual: Outcome = field(default_factory=Outcome)
    known_since: datetime | None = None  # Completion of the first known commit of the period.
    commits: int = 0


class TooManyCommits(Exception):  # noqa: N818 - it becomes an error of the API
    """More commits than may be read."""


@dataclass(slots=True)
class _Commit:
    at: float
    run: JobKind | None  # The table service that made it; None for a writer.
    bytes: int
    file_groups: int
    # Before the period: the sort key on the timeline, which for a table service is when it was requested.
    on_timeline: str = ""


@dataclass(frozen=True)
class _Known:
    """Facts that were read about one table."""

    snapshot: TableSnapshot
    subject: Subject
    policy: Policy
    commits: Sequence[_Commit]
    samples: Sequence[Sample]
    ended: Mapping[JobKind, float]
    has_sessions: bool
    behind: int


def read(
    connection: Connection,
    tables: Mapping[str, tuple[Subject, Policy]],
    begin: datetime,
    end: datetime,
    now: datetime,
    *,
    points: int = 168,
    most: int | None = None,
) -> Past:
    """Returns the past of the tables that were polled. A period in the future gets the commits of a past period of the
    same length, as if they came again. Raises TooManyCommits for more than `most` commits (by default `MOST_COMMITS`).
    Commits of table services and of the day before `begin` count too."""
    past = Past(begin, end)
    ids = list(tables)
    snapshots = _snapshots(connection, ids)
    later = end - begin if end > now else timedelta(0)
    since = begin - max(LOOK_BACK, later)
    commits, rewritten = _commits(connection, ids, since, begin, end, most=most or MOST_COMMITS)
    samples = sample_store.of_tables(connection, ids, begin - later, end, now, before=LOOK_BACK)
    ended = _ended(connection, ids, begin)
    sessions = watch_store.written_by(connection, ids, WriterEngine.SPARK_SQL)
    behind = behind_of(connection, {key: policy for key, (_, policy) in tables.items()}, now, sessions)
    known = {
        table_id: _Known(
            snapshots[table_id],
            *(subject, policy, commits.get(table_id, []), samples.get(table_id, []), ended.get(table_id, {})),
            *(table_id in sessions, behind.get(table_id, 0)),
        )
        for table_id, (subject, policy) in tables.items()
        if table_id in snapshots
    }
    past.pasts = {table_id: _past(each, begin.timestamp(), later.total_seconds()) for table_id, each in known.items()}
    starts = [each.writes[0].at for each in past.pasts.values() if each.writes]
    past.known_since = datetime.fromtimestamp(min(starts), UTC) if starts else None
    past.commits = sum(len(each.writes) for each in past.pasts.values())
    past.actual = Outcome(
        _kinds(connection, past.pasts, begin, end),
        _points(known, worker_store.read_rates(connection), begin, end, points),
        sum(rewritten.get(each, 0) for each in past.pasts),
        kept=objective_store.share_kept(connection, list(past.pasts), begin, end),
    )
    return past


def _snapshots(connection: Connection, ids: Sequence[str]) -> dict[str, TableSnapshot]:
    parts = (ids[first : first + _AT_ONCE] for first in range(0, len(ids), _AT_ONCE))
    return {key: each for part in parts for key, each in snapshot_store.of_tables(connection, part).items()}


def _commits(
    connection: Connection, ids: Sequence[str], since: datetime, begin: datetime, until: datetime, *, most: int
) -> tuple[dict[str, list[_Commit]], dict[str, int]]:
    """Returns the commits in the order of their completion, and the bytes that services wrote from `begin` on."""
    found: defaultdict[str, list[_Commit]] = defaultdict(list)
    rewritten: defaultdict[str, int] = defaultdict(int)
    number = 0
    columns = (_c.c.table_id, _c.c.action, _c.c.operation, _c.c.completed_at, _c.c.bytes_written, _c.c.file_groups)
    times = (_c.c.requested_time, _c.c.completion_time)
    for part in range(0, len(ids), _AT_ONCE):
        query = (
            sa.select(*columns, *times)
            .where(
                _c.c.table_id.in_(ids[part : part + _AT_ONCE]), _c.c.completed_at >= since, _c.c.completed_at < until
            )
            .order_by(_c.c.table_id, _c.c.completed_at, _c.c.id)
            .limit(most + 1 - number)
        )
        for table_id, action, operation, at, size, groups, requested, completed in connection.execute(query):
            number += 1
            run = JobKind.CLEANING if action == CLEAN else _RUNS.get(operation)
            if run is None and (action not in WRITING_ACTIONS or operation in SERVICE_OPERATIONS or groups <= 0):
                continue
            on_timeline = "" if at >= begin else requested if run else completed or requested
            found[table_id].append(_Commit(at.timestamp(), run, size or 0, groups, on_timeline))
            if run is not None and at >= begin:
                rewritten[table_id] += size or 0
        if number > most:
            raise TooManyCommits
    return found, rewritten


def _ended(connection: Connection, ids: Collection[str], before: datetime) -> dict[str, dict[JobKind, float]]:
    """Returns when the last job of each kind ended before the period."""
    query = (
        sa.select(_f.c.table_id, _f.c.kind, sa.func.max(_f.c.ended_at))
        .where(_f.c.ended_at < before, _f.c.ended_at >= before - timedelta(days=60))
        .group_by(_f.c.table_id, _f.c.kind)
    )
    wanted, kinds = set(ids), {each.value: each for each in JobKind}
    found: defaultdict[str, dict[JobKind, float]] = defaultdict(dict)
    for table_id, kind, at in connection.execute(query):
        if table_id in wanted and kind in kinds:
            found[table_id][kinds[kind]] = at.timestamp()
    return found


def _past(known: _Known, begin: float, later: float) -> TablePast:
    """Returns the past with the commits from `begin` on, which are repeated `later` seconds after their real times."""
    snapshot, commits = known.snapshot, known.commits
    writes = [each for each in commits if each.run is None and each.at >= begin - later]
    is_merge_on_read = snapshot.table_type is TableType.MERGE_ON_READ
    before = (each for each in commits if each.at < begin)
    freed = left_by(
        before,
        known.policy.cleaning,
        is_merge_on_read=is_merge_on_read,
        has_sessions=known.has_sessions,
        behind=known.behind,
    )
    return TablePast(
        snapshot.table_id,
        known.subject,
        snapshot.table_type,
        known.policy,
        [Write(each.at + later, each.bytes, each.file_groups) for each in writes],
        replace(_present(snapshot) if later else _beginning(known, begin), freed=freed),
        _growth(known),
        has_sessions=known.has_sessions,
        behind=known.behind,
        num_buckets=snapshot.num_buckets,
        small_file_bytes=snapshot.small_file_bytes,
        first_commit_at=snapshot.first_commit_at.timestamp() if snapshot.first_commit_at else None,
        ran=_last_runs(snapshot) if later else {kind: _ran(commits, kind, begin) for kind in _SINCE},
        ended=known.ended,
    )


def _ran(commits: Sequence[_Commit], kind: JobKind, begin: float) -> Ran:
    """Returns the last run of a kind. Commits that completed during it count, as in `commit_store.since_run`."""
    before = [each for each in commits if each.at < begin]
    last = max((each for each in before if each.run is kind), key=lambda each: each.at, default=None)
    since = [each for each in before if each.run is None and (last is None or each.on_timeline > last.on_timeline)]
    return Ran(last.at if last else None, len(since), sum(each.bytes for each in since))


def _last_runs(snapshot: TableSnapshot) -> dict[JobKind, Ran]:
    since = {kind: getattr(snapshot, name) for kind, name in _SINCE.items()}
    return {
        kind: Ran(each.at.timestamp() if each.at else None, each.commits, each.bytes_written)
        for kind, each in since.items()
    }


def _present(snapshot: TableSnapshot) -> Beginning:
    """Returns the files that the last poll has found."""
    totals, large = snapshot.totals, snapshot.large
    largest = large.largest_bucket_bytes if large else 0
    found = {each.name: getattr(totals, each.name) for each in fields(Beginning) if hasattr(totals, each.name)}
    return Beginning(**found, timeline_commits=snapshot.timeline_commits, largest_bucket_bytes=largest or 0)


def _beginning(known: _Known, begin: float) -> Beginning:
    """Returns the last sample before the period, or else the first one in it."""
    snapshot, samples, commits = known.snapshot, known.samples, known.commits
    earlier = [each for each in samples if each.at.timestamp() <= begin]
    found = earlier[-1] if earlier else samples[0] if samples else None
    totals, large = snapshot.totals, snapshot.large
    size = totals.base_bytes + totals.log_bytes
    if found is None:
        base_files, base, log, small, freed = totals.base_files, totals.base_bytes, 0, totals.small_files, 0
        log_files, timeline = 0, 0
    else:
        base_files, base, log = found.base_files, found.base_bytes, found.log_bytes
        small, freed, timeline = found.small_files, found.freed_bytes, found.timeline_commits
        # Commits between the sample and the beginning are added, or subtracted if the sample is later.
        at, is_merged = found.at.timestamp(), snapshot.table_type is TableType.MERGE_ON_READ
        for each in commits if is_merged else ():
            if each.run is None and min(at, begin) < each.at <= max(at, begin):
                log += each.bytes if at <= begin else -each.bytes
        log = max(0, log)
        log_files = int(found.delta_commits * _mean_groups(commits)) if log else 0
    average = max(1.0, base / max(base_files, 1))
    return Beginning(
        base_files,
        base,
        log_files,
        log,
        small,
        int(freed / average) + (freed > 0),
        freed,
        timeline,
        int(large.largest_bucket_bytes / size * (base + log)) if large and size else 0,
    )


def _growth(known: _Known) -> Growth:
    snapshot, samples, commits = known.snapshot, known.samples, known.commits
    writes = [each for each in commits if each.run is None]
    times = [each.at for each in writes]
    sums = [0, *accumulate(each.bytes for each in writes)]
    merges = [each for each in commits if each.run is JobKind.COMPACTION]
    merged_at = [each.at for each in merges]
    seen = []
    for each in samples:
        at = each.at.timestamp()
        number = bisect_right(times, at)
        last = bisect_right(merged_at, at)
        unmerged = sums[number] - sums[bisect_right(times, merged_at[last - 1])] if last else None
        seen.append(
            PolledSizes(
                each.log_bytes, each.base_bytes, each.base_files, each.small_files, sums[number], unmerged, number
            )
        )
    merged = []
    for before, after in pairwise(merges):
        touched = writes[bisect_right(times, before.at) : bisect_right(times, after.at)]
        merged.append(Merged(after.file_groups, after.bytes, [each.file_groups for each in touched]))
    return fitted(seen, merged[-50:], is_merge_on_read=snapshot.table_type is TableType.MERGE_ON_READ)


def _kinds(connection: Connection, known: Collection[str], begin: datetime, end: datetime) -> list[KindOutcome]:
    sums: defaultdict[str, list[Figures]] = defaultdict(list)
    for each in attempt_figures.sums(connection, begin, end, by_kind=True):
        if each.table_id in known and each.kind is not None:
            sums[each.kind].append(Figures(*each.amounts))  # type: ignore[arg-type]
    kinds: dict[str, Any] = {each.value: each for each in JobKind}
    found = [
        KindOutcome(
            kinds[kind],
            int(sum(each.succeeded for each in figures)),
            sum(each.seconds for each in figures),
            sum(each.gb_seconds for each in figures) / 3600,
        )
        for kind, figures in sums.items()
        if kind in kinds
    ]
    return sorted((each for each in found if each.jobs or each.seconds), key=lambda each: -each.seconds)


def _points(known: Mapping[str, _Known], rates: ReadRates, begin: datetime, end: datetime, points: int) -> list[Point]:
    """Returns the sums of all tables at equidistant moments. A table's sample is valid until its next one."""
    moments = [begin + (end - begin) * (number + 1) / points for number in range(points)]
    logs, base, freed = [0] * points, [0] * points, [0] * points
    reads, compacted, merged = [0.0] * points, [0.0] * points, [0.0] * points
    for table in known.values():
        times = [each.at for each in table.samples]
        groups = _mean_groups(table.commits)
        for number, at in enumerate(moments):
            if last := bisect_right(times, at):
                each = table.samples[last - 1]
                logs[number] += each.log_bytes
                base[number] += each.base_bytes
                freed[number] += each.freed_bytes
                files = int(each.delta_commits * groups) if each.log_bytes else 0
                work = ReadWork(each.base_bytes, each.base_files, each.log_bytes, files, each.base_files)
                if not table.snapshot.num_buckets:
                    work = work.merging(each.small_files, table.snapshot.small_file_bytes)
                cost = read_cost(work, rates)
                reads[number] += cost.now
                compacted[number] += cost.compacted
                merged[number] += cost.merged
    return [
        Point(at, logs[each], base[each], freed[each], reads[each] / compacted[each], compacted[each] / merged[each])
        for each, at in enumerate(moments)
        if merged[each]
    ]


def _mean_groups(commits: Sequence[_Commit]) -> float:
    """Returns the number of file groups that a commit of a writer touches on average."""
    groups = [each.file_groups for each in commits if each.run is None]
    return sum(groups) / len(groups) if groups else 0.0
