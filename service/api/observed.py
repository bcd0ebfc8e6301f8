"""Response models of observed tables: commits, timelines, snapshots."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, Field

from jobs.contract import WriterEngine
from service.api.answers import Declared, Shown
from service.api.structs import made, struct_of
from service.catalog.sample import Sample
from service.catalog.watch import Watch
from service.lake.active_timeline import ActiveTimeline
from service.lake.commit import Commit
from service.lake.metadata_table import MetadataTableState
from service.lake.snapshot import SIZE_BOUNDS, PartitionDetail, PartitionState, Pending, Since, TableSnapshot


class CommitOut(Shown, declared=Commit):
    """A completed instant. Counts are null if the action writes no data."""

    table_id: str


class PendingOut(Declared, declared=Pending):
    requested_time: str
    requested_at: datetime | None
    age_seconds: float | None = Field(description="Time since the instant was requested", examples=[12.5])
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


class WatchOut(Declared, declared=Watch):
    """State of the polling of the table."""

    error: str | None = Field(description="Why the last poll failed; null if it did not fail")

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


class SinceOut(Shown, declared=Since):
    """Commits of writers since the last run of a table service, or since the beginning if there was none."""


class FilesOut(BaseModel):
    """Totals of the latest file slices, and of the files that are in no latest file slice. A cleaning could free at
    most the files in no latest slice."""

    file_groups: int = Field(description="Number of file groups with a latest file slice", examples=[4])
    base_files: int = Field(description="Number of base files", examples=[4])
    base_bytes: int = Field(description="Size of the base files", examples=[104857600])
    log_files: int = Field(description="Number of log files that are not compacted", examples=[6])
    log_bytes: int = Field(description="Size of the log files", examples=[10485760])
    small_files: int = Field(description="Number of base files below `small_file_bytes` of the settings", examples=[1])
    small_bytes: int = Field(description="Size of the small base files", examples=[1048576])
    freed_files: int = Field(description="Number of files that are in no latest file slice", examples=[8])
    freed_bytes: int = Field(description="Size of these files", examples=[209715200])
    rows: int | None = Field(description="Rows in base files; null if the number is not known for every file")


class PartitionOut(FilesOut):
    path: str
    num_buckets: int
    buckets: int = Field(description="Buckets that have rows", examples=[4])
    largest_bucket: int | None = Field(description="Number of the largest bucket; null without any", examples=[2])
    largest_bucket_bytes: int = Field(description="Size of the largest bucket", examples=[52428800])


class SizeClassOut(BaseModel):
    """A class of file sizes. The class begins where the one before it ends."""

    below_bytes: int | None = Field(description="Null in the last class", examples=[134_217_728])
    files: int = Field(description="Number of files in this class", examples=[12])


class MetadataTableOut(Shown, declared=MetadataTableState):
    """The metadata table of a table. Every reader and writer uses it for planning. Sizes are those of its latest file
    slices."""


class SnapshotOut(Declared, declared=TableSnapshot):
    """The state of a table. `partitions` are the largest ones."""

    table_id: str
    taken_at: datetime
    since_compaction: SinceOut = Field(description="Commits of writers since the last compaction")
    since_cleaning: SinceOut = Field(description="Commits of writers since the last cleaning")
    since_clustering: SinceOut = Field(description="Commits of writers since the last clustering")
    pending: list[PendingOut] = Field(description="Instants that have not completed", examples=[[]])
    num_buckets: int
    log_ratio: float | None = Field(description="Log bytes divided by base file bytes")
    total: FilesOut = Field(description="Totals of all partitions")
    base_file_sizes: list[SizeClassOut] = Field(
        description="The base files by size, in ten classes. Empty until a partition with base files was listed"
    )
    metadata_table: MetadataTableOut | None = Field(
        description="State of the metadata table, at most some minutes older than the rest. Null if the table has no"
        " metadata table, and until the second poll"
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


class SampleOut(Shown, declared=Sample):
    """The state at one time. Between two samples nothing has changed, unless samples in between were deleted."""

    log_ratio: float | None = Field(description="Log bytes divided by base bytes; null without base files")


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
    partitions: list[BucketsOfPartition] = Field(description="The largest partitions")


class CallbackOut(BaseModel):
    table_id: str
    is_new: bool = Field(description="False if the commit is known, or a poll of the table is already requested")


class WriterOptionsOut(BaseModel):
    engine: WriterEngine
    options: dict[str, str] = Field(
        description="Options of the writer, by the engine's own names", examples=[{"hoodie.clean.automatic": "false"}]
    )
    session_conf: dict[str, str] = Field(description="Options for the start of the Spark session; `SET` is too late")
    sql: dict[str, str] = Field(
        description="The options as parts of SQL statements: `with` is for Flink's CREATE TABLE, `set` and "
        "`tblproperties` (for a new table) are for Spark SQL. `create` is a whole statement for an "
        "existing table; replace what is in angle brackets"
    )
    notes: list[str] = Field(
        description="Further things to do or to know", examples=[["Stop the writers before you change the lock."]]
    )


def _total(partitions: tuple[PartitionState, ...]) -> FilesOut:
    names = [name for name in FilesOut.model_fields if name != "rows"]
    rows = [each.rows for each in partitions]
    known = [each for each in rows if each is not None]
    return struct_of(FilesOut)(
        **{name: sum(getattr(each, name) for each in partitions) for name in names},
        rows=sum(known) if len(known) == len(rows) else None,
    )


def _by_size(partitions: tuple[PartitionState, ...]) -> list[SizeClassOut]:
    known = [each.base_sizes for each in partitions if len(each.base_sizes) == len(SIZE_BOUNDS) + 1]
    counts = [sum(of_class) for of_class in zip(*known, strict=True)]
    return [struct_of(SizeClassOut)(below_bytes=b, files=n) for b, n in zip((*SIZE_BOUNDS, None), counts, strict=False)]


def _seconds(since: datetime | None, now: datetime) -> float | None:
    return None if since is None else round((now - since).total_seconds(), 3)
