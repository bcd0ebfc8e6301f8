"""Response models of observed tables: commits, timelines, snapshots."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, Field

from jobs.contract import WriterEngine
from service.api.shown import Shown, made
from service.catalog.watch import Watch
from service.lake.active_timeline import ActiveTimeline
from service.lake.snapshot import SIZE_BOUNDS, PartitionDetail, PartitionState, Pending, TableSnapshot
from service.lake.table import TableType


class CommitOut(Shown):
    """A completed instant. Counts are null where the action writes no data."""

    id: int
    table_id: str
    requested_time: str = Field(examples=["20260101120000000"])
    action: str = Field(description="The completed action: a compaction is a `commit`", examples=["deltacommit"])
    completion_time: str | None = Field(description="Null before table version 8, whose timelines do not contain it")
    completed_at: datetime
    seen_at: datetime
    operation: str | None = Field(examples=["UPSERT"])
    rows_written: int | None
    rows_deleted: int | None
    bytes_written: int | None
    partitions: list[str]
    file_groups: int
    schema_changed: bool
    is_news: bool = Field(description="False for instants from before the registration")


class CommitPage(Shown):
    items: list[CommitOut]
    next_cursor: str | None


class PendingOut(BaseModel):
    requested_time: str
    action: str
    state: str
    is_plan: bool = Field(description="A compaction or clustering that is scheduled and can be executed")
    requested_at: datetime | None
    age_seconds: float | None
    heartbeat_at: datetime | None = Field(description="Last heartbeat of its writer, if it sends any")
    heartbeat_age_seconds: float | None

    @classmethod
    def of(cls, pending: Pending, now: datetime) -> PendingOut:
        age, heartbeat_age = _seconds(pending.requested_at, now), _seconds(pending.heartbeat_at, now)
        return made(cls, pending, age_seconds=age, heartbeat_age_seconds=heartbeat_age)


class CompletedOut(Shown):
    requested_time: str
    action: str
    completion_time: str | None


class WatchOut(BaseModel):
    """State of the polling of the table."""

    looked_at: datetime | None = Field(description="Time of the last poll that found the timeline changed")
    next_poll_at: datetime
    failures: int = Field(description="Failed polls since the last successful one")
    error: str | None
    gap_at: datetime | None = Field(
        description="Time at which instants were last found to be archived before a poll saw them"
    )

    @classmethod
    def of(cls, watch: Watch) -> WatchOut:
        return made(cls, watch, error=f"{watch.error.title}: {watch.error.detail}" if watch.error else None)


class TimelineOut(BaseModel):
    """The active timeline, read for this request."""

    pending: list[PendingOut]
    completed: list[CompletedOut] = Field(description="In the order of completion")
    watch: WatchOut

    @classmethod
    def of(cls, timeline: ActiveTimeline, watch: Watch, now: datetime) -> TimelineOut:
        pending = [PendingOut.of(each, now) for each in timeline.pending]
        return made(cls, timeline, pending=pending, watch=WatchOut.of(watch))


class SinceOut(Shown):
    """Commits of writers since the last run of a table service, or since the beginning if there was none."""

    commits: int
    bytes_written: int
    at: datetime | None


class FilesOut(BaseModel):
    """Totals of the latest file slices. `freed` files are in none of them: the most that cleaning could free."""

    file_groups: int
    base_files: int
    base_bytes: int
    log_files: int
    log_bytes: int
    small_files: int
    small_bytes: int
    freed_files: int
    freed_bytes: int
    rows: int | None = Field(description="In base files; null if it is not known for every file")


class PartitionOut(FilesOut):
    path: str
    num_buckets: int
    buckets: int = Field(description="Buckets that have rows")
    largest_bucket: int | None
    largest_bucket_bytes: int


class SizeClassOut(BaseModel):
    """A class of file sizes. It begins where the one before it ends."""

    below_bytes: int | None = Field(description="Null in the last class", examples=[134_217_728])
    files: int = Field(description="Number of files in it", examples=[12])


class SnapshotOut(BaseModel):
    """The state of a table. `partitions` are the largest ones."""

    table_id: str
    taken_at: datetime
    table_type: TableType
    last_commit: str | None
    last_commit_at: datetime | None
    first_commit_at: datetime | None
    since_compaction: SinceOut
    since_cleaning: SinceOut
    since_clustering: SinceOut
    pending: list[PendingOut]
    num_buckets: int
    small_file_bytes: int
    timeline_commits: int = Field(description="Completed commits on the active timeline, which archival shortens")
    log_ratio: float | None = Field(description="Log bytes divided by base file bytes")
    total: FilesOut
    base_file_sizes: list[SizeClassOut] = Field(
        description="The base files by size, in ten classes. Empty until a partition was listed that has any"
    )
    num_partitions: int
    partitions: list[PartitionOut]
    watch: WatchOut

    @classmethod
    def of(cls, snapshot: TableSnapshot, watch: Watch, now: datetime, most_partitions: int) -> SnapshotOut:
        by_size = sorted(snapshot.partitions, key=lambda each: (-each.base_bytes - each.log_bytes, each.path))
        return made(
            cls,
            snapshot,
            pending=[PendingOut.of(each, now) for each in snapshot.pending],
            log_ratio=round(snapshot.log_bytes / snapshot.base_bytes, 4) if snapshot.base_bytes else None,
            total=_total(snapshot.partitions),
            base_file_sizes=_by_size(snapshot.partitions),
            num_partitions=len(snapshot.partitions),
            partitions=by_size[:most_partitions],
            watch=WatchOut.of(watch),
        )


class SampleOut(Shown):
    """The state at one time. Between two samples nothing has changed, or they were thinned."""

    at: datetime = Field(examples=["2026-01-01T12:00:00Z"])
    log_bytes: int = Field(description="Size of the current log files, which wait for a compaction", examples=[4096])
    base_bytes: int = Field(description="Size of the current base files", examples=[10240])
    log_ratio: float | None = Field(description="Log bytes divided by base bytes; null without base files")
    delta_commits: int = Field(
        description="Commits of writers since the last compaction; 0 of a copy-on-write table", examples=[4]
    )
    file_groups: int = Field(examples=[8])
    base_files: int = Field(description="Number of current base files", examples=[8])
    small_files: int = Field(description="Base files below GROUNDSKEEPER_SMALL_FILE_BYTES", examples=[8])
    freed_bytes: int = Field(description="Size of files in no latest slice: the most that cleaning could free")
    timeline_commits: int = Field(description="Completed commits on the active timeline", examples=[12])
    compacted_at: datetime | None = Field(description="Completion of the last compaction")


class HistoryOut(Shown):
    items: list[SampleOut] = Field(description="Oldest first")


class BucketOut(BaseModel):
    bucket: int
    bytes: int
    rows: int | None


class BucketsOfPartition(BaseModel):
    path: str
    num_buckets: int
    bytes: int
    rows: int | None
    skew: float | None = Field(
        description="Size of the largest bucket divided by the mean of all, including empty ones; 1 is even"
    )
    buckets: list[BucketOut]

    @classmethod
    def of(cls, detail: PartitionDetail) -> BucketsOfPartition:
        sizes = [bucket.bytes for bucket in detail.buckets]
        num_buckets = detail.state.num_buckets
        total = sum(sizes)
        return cls(
            path=detail.state.path,
            num_buckets=num_buckets,
            bytes=total,
            rows=detail.state.rows,
            skew=round(max(sizes) * num_buckets / total, 3) if total else None,
            buckets=[BucketOut(bucket=b.number, bytes=b.bytes, rows=b.rows) for b in detail.buckets],
        )


class BucketsOut(BaseModel):
    """Empty for a table without a simple bucket index."""

    taken_at: datetime
    num_buckets: int
    num_partitions: int
    partitions: list[BucketsOfPartition] = Field(description="The largest ones")


class CallbackOut(BaseModel):
    table_id: str
    is_new: bool = Field(description="False if the commit is known, or a poll of the table is already requested")


class WriterOptionsOut(BaseModel):
    engine: WriterEngine
    options: dict[str, str]
    session_conf: dict[str, str] = Field(description="For the start of the Spark session: `SET` comes too late")
    sql: dict[str, str] = Field(
        description="The same in SQL: `with` of Flink's CREATE TABLE, `set` (and, of a new table, `tblproperties`) of"
        " Spark SQL"
    )
    notes: list[str]


def _total(partitions: tuple[PartitionState, ...]) -> FilesOut:
    names = [name for name in FilesOut.model_fields if name != "rows"]
    rows = [each.rows for each in partitions]
    known = [each for each in rows if each is not None]
    return FilesOut(
        **{name: sum(getattr(each, name) for each in partitions) for name in names},
        rows=sum(known) if len(known) == len(rows) else None,
    )


def _by_size(partitions: tuple[PartitionState, ...]) -> list[SizeClassOut]:
    known = [each.base_sizes for each in partitions if len(each.base_sizes) == len(SIZE_BOUNDS) + 1]
    counts = [sum(of_class) for of_class in zip(*known, strict=True)]
    return [SizeClassOut(below_bytes=b, files=n) for b, n in zip((*SIZE_BOUNDS, None), counts, strict=False)]


def _seconds(since: datetime | None, now: datetime) -> float | None:
    return None if since is None else round((now - since).total_seconds(), 3)
