"""The files of a simulated table, as commits and jobs change them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from math import ceil
from typing import Any

from jobs.contract import JobKind
from jobs.kinds.kind import WorksOn
from jobs.kinds.registry import KINDS
from jobs.kinds.results import NO_WORK, Work
from service.lake.snapshot import PartitionState, Since, TableSnapshot
from service.lake.table import TableType
from service.model.record import made
from service.outcome.read_cost import ReadCost, ReadWork, read_cost
from service.policies.policy import Policy
from service.scheduling.first_freed import FirstFreed
from service.simulation.growth import distinct
from service.simulation.out_of_use import OutOfUse
from service.simulation.table_past import Ran, TablePast, Write

_NEVER_RAN = Ran()
_REPLACING = frozenset({JobKind.COMPACTION, JobKind.CLUSTERING, JobKind.BUCKET_EXPANSION})
"""Kinds whose jobs take files out of use. A cleaning counts their instants among the commits that it retains."""


@dataclass(slots=True)
class Taken:
    """The input of a job that has begun. `share` is the share of the logs that the job's limit allows. `factor` is the
    factor by which an expansion multiplies the number of buckets."""

    kind: JobKind
    work: Work = NO_WORK
    rewritten: float = 0.0
    commits: int = 0
    written: int = 0
    log_bytes: float = 0.0
    log_files: float = 0.0
    files: float = 0.0
    bytes: float = 0.0
    share: float = 1.0
    factor: int = 2


class SimulatedFiles:
    """Sums over all partitions. Bytes and numbers are expected values, so they have fractions."""

    def __init__(self, past: TablePast) -> None:
        begin = past.beginning
        self.past = past
        self.growth = past.growth
        self.is_merge_on_read = past.table_type is TableType.MERGE_ON_READ
        self.base_files, self.base_bytes = float(begin.base_files), float(begin.base_bytes)
        self.log_files, self.log_bytes = float(begin.log_files), float(begin.log_bytes)
        self.small_files = float(begin.small_files)
        self.freed_files, self.freed_bytes = float(begin.freed_files), float(begin.freed_bytes)
        self.timeline_commits = begin.timeline_commits
        self.num_buckets = past.num_buckets
        size = begin.base_bytes + begin.log_bytes
        self.largest_share = begin.largest_bucket_bytes / size if size else 0.0
        self.commits, self.written = 0, 0
        # The times of the first commit whose logs are not compacted, and of the first commit since the last compaction
        # began.
        self.oldest_at: float | None = None
        self._first_at: float | None = None
        # The share of the file groups without logs.
        self.untouched = 1 - min(1.0, begin.log_files / begin.base_files) if begin.base_files else 1.0
        # The number of instants of `_REPLACING` jobs.
        self.replacements = 0
        each_of = (
            (self.freed_files / len(begin.freed), self.freed_bytes / len(begin.freed)) if begin.freed_files else ()
        )
        self._out_of_use = OutOfUse((-part.commits_ago, part.at, *each_of) for part in begin.freed if each_of)
        self.last_runs: dict[JobKind, tuple[float | None, int, int]] = {}
        for kind in (JobKind.COMPACTION, JobKind.CLEANING, JobKind.CLUSTERING):
            ran = past.ran.get(kind, _NEVER_RAN)
            self.last_runs[kind] = (ran.at, -ran.commits, -ran.bytes)

    def __copy__(self) -> SimulatedFiles:
        other = SimulatedFiles.__new__(SimulatedFiles)
        other.__dict__.update(self.__dict__, _out_of_use=copy(self._out_of_use))
        return other

    def write(self, writes: Sequence[Write]) -> None:
        """Adds commits of writers, at least one."""
        growth, is_merged = self.growth, self.is_merge_on_read
        if is_merged:
            self.oldest_at = self.oldest_at or writes[0].at
            self._first_at = self._first_at or writes[0].at
        # A simulation of many commits spends most of its time here.
        new_files, hot = growth.new_files, growth.hot_groups
        logged, new = growth.logged, 1 - growth.logged if is_merged else min(1.0, growth.kept)
        base_files, base_bytes, small_files = self.base_files, self.base_bytes, self.small_files
        log_bytes, log_files, untouched = self.log_bytes, self.log_files, self.untouched
        for each in writes:
            size, groups = each.bytes, each.file_groups
            self.commits += 1
            base_files += new_files
            small_files += growth.small_files
            base_bytes += new * size
            if is_merged:
                log_bytes += logged * size
                log_files += groups
                untouched *= 1 - min(1.0, groups / _groups(hot, base_files))
            else:
                self._free(self.instants, each.at, (1 - new) * groups, (1 - new) * size)
        self.base_files, self.base_bytes, self.small_files = base_files, base_bytes, small_files
        self.log_bytes, self.log_files, self.untouched = log_bytes, log_files, untouched
        self.written += sum(each.bytes for each in writes)
        self.timeline_commits += len(writes)

    @property
    def groups(self) -> float:
        """The file groups that writers write to."""
        return _groups(self.growth.hot_groups, self.base_files)

    @property
    def instants(self) -> int:
        """The instants that a cleaning counts."""
        return self._counted(self.commits)

    def _counted(self, commits: int) -> int:
        return commits if self.past.has_sessions else commits + self.replacements

    @property
    def first_freed(self) -> FirstFreed | None:
        """Returns `PolicyInputs.first_freed`."""
        first = self._out_of_use.first(self.instants)
        if first is None:
            return None
        commits, at = first
        kept_for = "a consumer needs them" if commits < self.past.behind else None
        return made(FirstFreed, commits=commits, at=moment(at), kept_for=kept_for)

    def begin(self, kind: JobKind, policy: Policy, now: float) -> Taken:
        """Returns the input of a job that begins now."""
        taken = Taken(kind, commits=self.commits, written=self.written)
        if kind is JobKind.COMPACTION:
            self._begin_compaction(taken, policy.compaction.limit_bytes, policy.compaction.limit_file_groups)
        elif kind is JobKind.CLEANING:
            _, taken.files, taken.bytes = self._out_of_use.removable(
                policy.cleaning, self.instants, now, self.past.behind
            )
            taken.work = Work(int(taken.bytes), int(taken.files))
        elif kind is JobKind.CLUSTERING:
            is_sorted = bool(policy.clustering.sort_by or policy.clustering.expansion_factor)
            taken.files = self.base_files if is_sorted else self.small_files
            taken.bytes = self.base_bytes + self.log_bytes if is_sorted else self._small_bytes
            taken.work, taken.rewritten = Work(int(taken.bytes), int(taken.files)), taken.bytes
        elif KINDS[kind].works_on is WorksOn.EVERYTHING:
            taken.bytes = self.base_bytes + self.log_bytes
            taken.work = Work(int(taken.bytes), int(self.base_files + self.log_files))
            taken.rewritten = taken.bytes if KINDS[kind].rewrites else 0.0
        return taken

    def _begin_compaction(self, taken: Taken, limit_bytes: int | None, limit_groups: int | None) -> None:
        groups = distinct(self.groups, self.untouched)
        base = min(self.growth.weight * groups * self.base_bytes / max(self.base_files, 1.0), self.base_bytes)
        size = base + self.log_bytes
        if limit_bytes and size > limit_bytes:
            taken.share = limit_bytes / size
        if limit_groups and groups > limit_groups:
            taken.share = min(taken.share, limit_groups / groups)
        taken.log_bytes, taken.log_files = taken.share * self.log_bytes, taken.share * self.log_files
        taken.files, taken.bytes = taken.share * groups, taken.share * base
        taken.work = Work(int(taken.bytes + taken.log_bytes), int(taken.files + taken.log_files))
        taken.rewritten = taken.bytes + self.growth.kept * taken.log_bytes
        self.untouched = 1 - (1 - taken.share) * (1 - self.untouched)
        self._first_at = None

    def end(self, taken: Taken, policy: Policy, now: float) -> None:
        """Applies the work of the job that ends now."""
        self.replacements += taken.kind in _REPLACING
        # The instant has the time at which the job began. Only writers have committed since then.
        instant = self._counted(taken.commits)
        match taken.kind:
            case JobKind.COMPACTION:
                self.oldest_at = self._first_at
                self.log_bytes -= taken.log_bytes
                self.log_files -= taken.log_files
                self.base_bytes += self.growth.kept * taken.log_bytes
                self._free(instant, now, taken.files + taken.log_files, taken.bytes + taken.log_bytes)
            case JobKind.CLEANING:
                number, files, size = self._out_of_use.removable(policy.cleaning, self.instants, now, self.past.behind)
                self._out_of_use.remove(number)
                is_left = self._out_of_use.first(self.instants) is not None
                self.freed_files = is_left * (self.freed_files - files)
                self.freed_bytes = is_left * (self.freed_bytes - size)
                if not number:
                    # A cleaning without work makes no instant.
                    return
            case JobKind.CLUSTERING:
                if not self.num_buckets:
                    merged = min(self.small_files, taken.files)
                    left = ceil(self._small_bytes / max(self.past.small_file_bytes, 1)) if merged else 0
                    self.base_files += left - merged
                    self.small_files -= merged
                self._free(instant, now, taken.files, taken.bytes)
            case JobKind.BUCKET_EXPANSION:
                self._free(instant, now, self.base_files, taken.bytes)
                self.base_files *= taken.factor
                self.num_buckets *= taken.factor
                self.largest_share /= taken.factor
            case JobKind.ARCHIVAL:
                self.timeline_commits = min(self.timeline_commits, policy.archival.retain)
                return
            case _:
                return
        self.timeline_commits += 1
        if taken.kind in self.last_runs:
            self.last_runs[taken.kind] = (now, taken.commits, taken.written)

    def _free(self, instant: int, at: float, files: float, size: float) -> None:
        if files > 0:
            self.freed_files += files
            self.freed_bytes += size
            self._out_of_use.add(instant, at, files, size)

    @property
    def _small_bytes(self) -> float:
        average = self.base_bytes / max(self.base_files, 1.0)
        return self.small_files * min(average, self.past.small_file_bytes)

    def cost_of_reads(self) -> ReadCost:
        work = ReadWork(
            int(self.base_bytes), int(self.base_files), int(self.log_bytes), int(self.log_files), int(self.base_files)
        )
        if self.small_files >= 2 and not self.num_buckets:
            work = work.merging(int(self.small_files), self.past.small_file_bytes)
        return read_cost(work, self.past.objective.rates)

    def age(self, kind: JobKind, now: float) -> float:
        """Returns for how many seconds reads have become more expensive without this job (`scheduling.worth`)."""
        clustered_at, *_ = self.last_runs[JobKind.CLUSTERING]
        since = self.oldest_at if kind is JobKind.COMPACTION else clustered_at or self.past.first_commit_at
        return now - since if since else 0.0

    def snapshot(
        self, usual: Mapping[str, Any], now: datetime, last_at: float | None, first_at: datetime | None
    ) -> TableSnapshot:
        """Returns the snapshot that a poll would take now. `usual` are the members that never change; `last_at` and
        `first_at` are the times of the last and of the first commit."""
        changes = {
            "taken_at": now,
            "partitions": (self.state(),),
            "last_commit": "0" if last_at else None,
            "last_commit_at": None if last_at is None else moment(last_at),
            "first_commit_at": first_at,
            "since_compaction": self.since(JobKind.COMPACTION),
            "since_cleaning": self.since(JobKind.CLEANING),
            "since_clustering": self.since(JobKind.CLUSTERING),
            "num_buckets": self.num_buckets,
            "timeline_commits": self.timeline_commits,
        }
        return made(TableSnapshot, **{**usual, **changes})

    def since(self, kind: JobKind) -> Since:
        """Returns the counts of writers' commits since the last run."""
        at, commits, written = self.last_runs[kind]
        return made(
            Since,
            commits=self.commits - commits,
            bytes_written=self.written - written,
            at=None if at is None else moment(at),
        )

    def state(self) -> PartitionState:
        """Returns the state of all files, as if they were in one partition."""
        return made(
            PartitionState,
            path="",
            file_groups=int(self.base_files),
            base_files=int(self.base_files),
            base_bytes=int(self.base_bytes),
            log_files=int(self.log_files),
            log_bytes=int(self.log_bytes),
            small_files=int(self.small_files),
            freed_files=ceil(self.freed_files),
            freed_bytes=int(self.freed_bytes),
            buckets=self.num_buckets,
            num_buckets=self.num_buckets,
            largest_bucket=0 if self.num_buckets else None,
            largest_bucket_bytes=int(self.largest_share * (self.base_bytes + self.log_bytes)),
        )


def _groups(hot: float, base_files: float) -> float:
    return max(1.0, min(hot or base_files, base_files))


@lru_cache(maxsize=4096)
def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
