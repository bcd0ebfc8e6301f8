"""The state of a table: the basis of all policy decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any

from jobs.spec import Documented, Spec
from service.lake.backlog import Cycle
from service.lake.instant import InstantState
from service.lake.metadata_table import MetadataTableState
from service.lake.table import TableType
from service.lake.table_lock import PolledLock

_MIB = 1024**2
SIZE_BOUNDS = tuple(mib * _MIB for mib in (1, 4, 16, 32, 64, 128, 256, 512, 1024))
"""The sizes in bytes that separate the ten classes of file sizes. A file of 1 MiB is in the second class."""


@dataclass(frozen=True)
class Since(Documented):
    """Commits since the last run of a table service was requested, or all commits if there was no run.

    `commits` counts writers' completed instants: commit, deltacommit, and replacecommit of ingestion.
    """

    commits: Annotated[int, Spec("Commits of writers", examples=(3,))] = 0
    bytes_written: Annotated[int, Spec("Bytes that these commits wrote", examples=(3145728,))] = 0
    at: Annotated[
        datetime | None, Spec("When the last run completed; null if there was none", examples=("2026-01-01T11:00:00Z",))
    ] = None
    oldest_at: Annotated[
        datetime | None,
        Spec(
            "When the first of these commits completed; null if there is none, or if an earlier version counted it",
            examples=("2026-01-01T11:20:00Z",),
        ),
    ] = None


@dataclass(frozen=True)
class Pending(Documented):
    """A requested or inflight instant. `heartbeat_at` is None if its writer sends no heartbeats.

    `is_plan` says that it is a scheduled compaction, log compaction or clustering that can be executed.
    """

    requested_time: str
    action: Annotated[str, Spec("Action of the instant", examples=("deltacommit",))]
    state: Annotated[str, Spec("`REQUESTED` or `INFLIGHT`", examples=("INFLIGHT",))]
    requested_at: datetime | None
    heartbeat_at: Annotated[datetime | None, Spec("Last heartbeat of its writer, if the writer sends any")] = None
    is_plan: Annotated[
        bool, Spec("Whether the instant is a scheduled compaction or clustering that can be executed")
    ] = False

    def awaits_writer(self) -> bool:
        """Returns whether this is a requested write without a heartbeat that replaces file groups, such as Hudi's
        `run_ttl` leaves if no partition has expired (`jobs.protocol.abandoned`)."""
        is_requested = self.action == "replacecommit" and self.state == InstantState.REQUESTED
        return is_requested and not self.is_plan and self.heartbeat_at is None


@dataclass(frozen=True)
class OtherRun:
    """The last completed compaction or clustering (`operation`) that no job of this service executed. `since` is the
    time of the first such run, if no long pause came between it and this one. `is_delegated` says that a writer had
    asked this service to execute the plan."""

    operation: str
    instant: str
    at: datetime
    since: datetime
    is_delegated: bool = False


@dataclass(frozen=True)
class PartitionState:
    """The latest file slices of one partition. Sizes are in bytes. The size of a file group includes its base file and
    its log files.

    `freed_bytes` and `freed_files` are about files that no latest slice has any more: older versions of file groups,
    and replaced file groups. A cleaning frees at most these. `freed_since` is the first instant that took one of them
    out of use; it is empty if this is not known. `largest_bucket_bytes` and `buckets` are 0 without a bucket index.
    `rows` are the rows of the base files, without those in log files; None unless the number is known for each base
    file. `base_sizes` counts the base files of each size class (`SIZE_BOUNDS`); it is empty in a state that an earlier
    version of the service has stored.

    The last two members are about consistent hashing. `largest_range_bytes` is the size of the largest bucket.
    `neighbours_bytes` comes from the pairs of neighbouring buckets: each pair counts with the size of its larger
    bucket, and the smallest of these sizes is the result (None without a pair).
    """

    path: str
    file_groups: int = 0
    base_files: int = 0
    base_bytes: int = 0
    log_files: int = 0
    log_bytes: int = 0
    small_files: int = 0
    small_bytes: int = 0
    freed_files: int = 0
    freed_bytes: int = 0
    freed_since: str = ""
    rows: int | None = None
    buckets: int = 0
    num_buckets: int = 0
    largest_bucket: int | None = None
    largest_bucket_bytes: int = 0
    base_sizes: tuple[int, ...] = ()
    largest_range_bytes: int = 0
    neighbours_bytes: int | None = None

    @property
    def has_files(self) -> bool:
        return bool(self.base_bytes or self.log_bytes or self.file_groups or self.freed_files)

    @property
    def logged_bytes(self) -> float:
        """The approximate size of the file slices with logs, on the assumption that base files are equally large and
        each slice has at most one log file."""
        share = self.log_files / self.file_groups if self.log_files < self.file_groups else 1.0
        return self.log_bytes + share * self.base_bytes

    @property
    def skew(self) -> float:
        """The size of the largest bucket divided by the average; 0 without buckets or files."""
        size = self.base_bytes + self.log_bytes
        return self.largest_bucket_bytes * self.num_buckets / size if size else 0.0

    @property
    def average_bucket_bytes(self) -> float:
        return (self.base_bytes + self.log_bytes) / max(self.num_buckets, 1)

    @property
    def place(self) -> str:
        """The words for the partition in a sentence."""
        return f"partition {self.path}" if self.path else "the table"


@dataclass(frozen=True)
class Bucket:
    """A bucket of one partition. `bytes` includes base file and log files. `rows` are those of the base file; None if
    they are not known."""

    number: int
    bytes: int
    rows: int | None = None


@dataclass(frozen=True)
class PartitionDetail:
    """A partition with its buckets, and with data that the next poll needs: the rows of its latest base files, as far
    as they are known; and the replaced file groups, each with the instant that replaced it (empty if it is not known).
    A partition without files is kept only for the replaced file groups."""

    state: PartitionState
    buckets: tuple[Bucket, ...] = ()
    base_rows: Mapping[str, int] = field(default_factory=dict)
    replaced: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Totals:
    """Sums over the partitions of a table. `mergeable_files` are the small files that are not alone in their
    partition."""

    file_groups: int = 0
    base_files: int = 0
    base_bytes: int = 0
    log_files: int = 0
    log_bytes: int = 0
    logged_bytes: int = 0
    small_files: int = 0
    mergeable_files: int = 0
    freed_files: int = 0
    freed_bytes: int = 0

    @classmethod
    def of(cls, states: Sequence[PartitionState]) -> Totals:
        return cls(
            file_groups=sum(each.file_groups for each in states),
            base_files=sum(each.base_files for each in states),
            base_bytes=sum(each.base_bytes for each in states),
            log_files=sum(each.log_files for each in states),
            log_bytes=sum(each.log_bytes for each in states),
            logged_bytes=int(sum(each.logged_bytes for each in states)),
            small_files=sum(each.small_files for each in states),
            mergeable_files=sum(each.small_files for each in states if each.small_files > 1),
            freed_files=sum(each.freed_files for each in states),
            freed_bytes=sum(each.freed_bytes for each in states),
        )


@dataclass(frozen=True)
class NotWritable:
    """Workers cannot write to the table: why, since when, and the last job that was refused. `type`, `title`, `detail`
    and `hint` are as in a `Problem`."""

    type: str
    title: str
    detail: str
    hint: str
    since: datetime
    job_id: str


@dataclass(frozen=True)
class TableSnapshot(Documented):
    """The result of one poll of a table. `first_commit_at` is None until something is committed.

    `num_buckets` is the number of buckets of the table (0 without a simple bucket index); a partition may have another
    number. Base files smaller than `small_file_bytes` count as small. A snapshot stays valid while the timeline is
    unchanged, so it is as old as the last change of the timeline. `timeline_commits` counts the completed commits on
    the active timeline.

    `totals`, `large` and `skewed` come from the stored partitions: `large` is the partition with the largest bucket,
    and `skewed` the one whose largest bucket is the largest in relation to the mean. `cycles` are the newest periods
    from one compaction to the next, oldest first.

    `lock` is set if the table's lock had been held for a minute or more at the last poll. `other_runs` has at most one
    run of each operation, and only runs since the table was registered. `clock` is the writers' clock as measured on
    the timeline (`ClockFrame.to_json`); it is empty if an earlier version of the service has stored the snapshot.
    `vanished` are commits that are missing from the middle of the timeline. `undone` are commits that a rollback has
    removed from the timeline. `not_writable` comes from jobs, not from a poll. `metadata_table` may be some minutes
    older than the snapshot.
    """

    table_id: str
    taken_at: datetime
    table_type: Annotated[TableType, Spec("Type of the table", examples=("MERGE_ON_READ",))]
    partitions: tuple[PartitionState, ...] = ()
    pending: tuple[Pending, ...] = ()
    last_commit: Annotated[
        str | None, Spec("The last instant that wrote rows; null without any", examples=("20260101120000000",))
    ] = None
    last_commit_at: Annotated[
        datetime | None, Spec("When that commit completed", examples=("2026-01-01T12:00:03Z",))
    ] = None
    first_commit_at: Annotated[
        datetime | None, Spec("When the first known commit completed", examples=("2025-12-01T12:00:03Z",))
    ] = None
    since_compaction: Since = Since()
    since_cleaning: Since = Since()
    since_clustering: Since = Since()
    num_buckets: int = 0
    small_file_bytes: Annotated[int, Spec("Base files below this size count as small", examples=(104857600,))] = 0
    timeline_commits: Annotated[int, Spec("Completed commits on the active timeline, which archival shortens")] = 0
    totals: Totals = Totals()
    large: PartitionState | None = None
    skewed: PartitionState | None = None
    cycles: tuple[Cycle, ...] = ()
    lock: PolledLock | None = None
    vanished: tuple[str, ...] = ()
    vanished_since: datetime | None = None
    undone: tuple[str, ...] = ()
    other_runs: tuple[OtherRun, ...] = ()
    clock: Mapping[str, Any] = field(default_factory=dict)
    not_writable: NotWritable | None = None
    metadata_table: MetadataTableState | None = None

    @property
    def base_bytes(self) -> int:
        return sum(p.base_bytes for p in self.partitions)

    @property
    def log_bytes(self) -> int:
        return sum(p.log_bytes for p in self.partitions)
