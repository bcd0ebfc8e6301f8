"""Response models of observed tables: commits, timelines, snapshots."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, Field

from jobs.contract import WriterEngine
from service.api.answers import Shown, made
from service.catalog.watch import Watch
from service.lake.active_timeline import ActiveTimeline
from service.lake.snapshot import SIZE_BOUNDS, PartitionDetail, PartitionState, Pending, TableSnapshot
from service.lake.table import TableType


class CommitOut(Shown):
    """A completed instant. Counts are null where the action writes no data."""

    id: int = Field(description="Number of the commit; grows in the order in which commits were seen", examples=[4711])
    table_id: str
    requested_time: str = Field(examples=["20260101120000000"])
    action: str = Field(description="The completed action: a compaction is a `commit`", examples=["deltacommit"])
    completion_time: str | None = Field(description="Null before table version 8, whose timelines do not contain it")
    completed_at: datetime = Field(description="When it completed", examples=["2026-01-01T12:00:03Z"])
    seen_at: datetime = Field(description="When a poll saw it", examples=["2026-01-01T12:00:05Z"])
    operation: str | None = Field(examples=["UPSERT"])
    rows_written: int | None = Field(description="Rows that it wrote", examples=[1000])
    rows_deleted: int | None = Field(description="Rows that it deleted", examples=[0])
    bytes_written: int | None = Field(description="Bytes that it wrote", examples=[1048576])
    partitions: list[str] = Field(description="Partitions that it touched", examples=[["region=eu"]])
    file_groups: int = Field(description="File groups that it touched", examples=[4])
    schema_changed: bool = Field(
        description="Whether the schema differs from that of the commit before", examples=[False]
    )
    is_news: bool = Field(description="False for instants from before the registration")


class PendingOut(BaseModel):
    requested_time: str
    action: str = Field(description="Action of the instant", examples=["deltacommit"])
    state: str = Field(description="`REQUESTED` or `INFLIGHT`", examples=["INFLIGHT"])
    is_plan: bool = Field(description="A compaction or clustering that is scheduled and can be executed")
    requested_at: datetime | None
    age_seconds: float | None = Field(description="Time since it was requested", examples=[12.5])
    heartbeat_at: datetime | None = Field(description="Last heartbeat of its writer, if it sends any")
    heartbeat_age_seconds: float | None = Field(
        description="Time since the last heartbeat of its writer; null without any", examples=[3.1]
    )

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
    next_poll_at: datetime = Field(description="When it is polled next", examples=["2026-01-01T12:01:00Z"])
    failures: int = Field(description="Failed polls since the last successful one", examples=[0])
    error: str | None = Field(description="Why the last poll failed; null if it did not")
    gap_at: datetime | None = Field(
        description="Time at which instants were last found to be archived before a poll saw them"
    )

    @classmethod
    def of(cls, watch: Watch) -> WatchOut:
        return made(cls, watch, error=f"{watch.error.title}: {watch.error.detail}" if watch.error else None)


class TimelineOut(BaseModel):
    """The active timeline, read for this request."""

    pending: list[PendingOut] = Field(description="Instants that have not completed")
    completed: list[CompletedOut] = Field(description="In the order of completion")
    watch: WatchOut

    @classmethod
    def of(cls, timeline: ActiveTimeline, watch: Watch, now: datetime) -> TimelineOut:
        pending = [PendingOut.of(each, now) for each in timeline.pending]
        return made(cls, timeline, pending=pending, watch=WatchOut.of(watch))


class SinceOut(Shown):
    """Commits of writers since the last run of a table service, or since the beginning if there was none."""

    commits: int = Field(description="Commits of writers", examples=[3])
    bytes_written: int = Field(description="Bytes that they wrote", examples=[3145728])
    at: datetime | None = Field(
        description="When the last run completed; null if there was none", examples=["2026-01-01T11:00:00Z"]
    )


class FilesOut(BaseModel):
    """Totals of the latest file slices. `freed` files are in none of them: the most that cleaning could free."""

    file_groups: int = Field(description="Number of file groups with a latest file slice", examples=[4])
    base_files: int = Field(description="Number of base files", examples=[4])
    base_bytes: int = Field(description="Size of the base files", examples=[104857600])
    log_files: int = Field(description="Number of log files that are not compacted", examples=[6])
    log_bytes: int = Field(description="Size of the log files", examples=[10485760])
    small_files: int = Field(description="Number of base files below `small_file_bytes` of the settings", examples=[1])
    small_bytes: int = Field(description="Size of the small base files", examples=[1048576])
    freed_files: int = Field(description="Number of files that are in no latest file slice", examples=[8])
    freed_bytes: int = Field(description="Size of these files", examples=[209715200])
    rows: int | None = Field(description="In base files; null if it is not known for every file")


class PartitionOut(FilesOut):
    path: str
    num_buckets: int
    buckets: int = Field(description="Buckets that have rows", examples=[4])
    largest_bucket: int | None = Field(description="Number of the largest bucket; null without any", examples=[2])
    largest_bucket_bytes: int = Field(description="Size of the largest bucket", examples=[52428800])


class SizeClassOut(BaseModel):
    """A class of file sizes. It begins where the one before it ends."""

    below_bytes: int | None = Field(description="Null in the last class", examples=[134_217_728])
    files: int = Field(description="Number of files in it", examples=[12])


class SnapshotOut(BaseModel):
    """The state of a table. `partitions` are the largest ones."""

    table_id: str
    taken_at: datetime
    table_type: TableType = Field(description="Type of the table", examples=["MERGE_ON_READ"])
    last_commit: str | None = Field(
        description="The last instant that wrote rows; null without any", examples=["20260101120000000"]
    )
    last_commit_at: datetime | None = Field(description="When it completed", examples=["2026-01-01T12:00:03Z"])
    first_commit_at: datetime | None = Field(
        description="When the first known one completed", examples=["2025-12-01T12:00:03Z"]
    )
    since_compaction: SinceOut = Field(description="Commits of writers since the last compaction")
    since_cleaning: SinceOut = Field(description="Commits of writers since the last cleaning")
    since_clustering: SinceOut = Field(description="Commits of writers since the last clustering")
    pending: list[PendingOut] = Field(description="Instants that have not completed", examples=[[]])
    num_buckets: int
    small_file_bytes: int = Field(description="Base files below this size count as small", examples=[104857600])
    timeline_commits: int = Field(description="Completed commits on the active timeline, which archival shortens")
    log_ratio: float | None = Field(description="Log bytes divided by base file bytes")
    total: FilesOut = Field(description="Totals of all partitions")
    base_file_sizes: list[SizeClassOut] = Field(
        description="The base files by size, in ten classes. Empty until a partition was listed that has any"
    )
    num_partitions: int
    partitions: list[PartitionOut] = Field(description="The largest partitions")
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
    """The state at one time. Between two samples nothing has changed, or samples in between were deleted."""

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
    bucket: int = Field(description="Number of the bucket, from 0", examples=[0])
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
    buckets: list[BucketOut] = Field(description="The buckets of the partition")

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
    """The buckets of a table; none without a simple bucket index."""

    taken_at: datetime
    num_buckets: int
    num_partitions: int
    partitions: list[BucketsOfPartition] = Field(description="The largest ones")


class CallbackOut(BaseModel):
    table_id: str
    is_new: bool = Field(description="False if the commit is known, or a poll of the table is already requested")


class WriterOptionsOut(BaseModel):
    engine: WriterEngine
    options: dict[str, str] = Field(
        description="Options of the writer, by the engine's own names", examples=[{"hoodie.clean.automatic": "false"}]
    )
    session_conf: dict[str, str] = Field(description="For the start of the Spark session: `SET` comes too late")
    sql: dict[str, str] = Field(
        description="The same in SQL: `with` of Flink's CREATE TABLE, `set` (and, of a new table, `tblproperties`) of"
        " Spark SQL; `create` is the whole statement for a table that exists, in which you replace what is in angle"
        " brackets"
    )
    notes: list[str] = Field(
        description="What else to see to", examples=[["Stop the writers before you change the lock."]]
    )


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
