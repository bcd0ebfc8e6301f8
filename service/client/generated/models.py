"""The objects of the API. Generated from its OpenAPI document by `python -m tests.client_generator`."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from msgspec import UNSET, UnsetType, field

from service.client.model import Model, Word


class AboutOut(Model, frozen=True, kw_only=True):
    """The object that has the problem."""

    type: ObjectType
    id: str
    """Of a worker group its name"""
    name: str


class ActionOut(Model, frozen=True, kw_only=True):
    """A call that helps. It needs the role that the call itself needs."""

    label: str
    """For a button"""
    method: str
    path: str
    body: dict[str, Any] | None
    """The JSON to send; null for none"""


class ArchivalIn(Model, frozen=True, kw_only=True):
    """Moves the oldest instants of the timeline to the history, and says what keeps others from that."""

    dry_run: bool | UnsetType = UNSET
    """Return the plan, and change nothing"""
    priority: int | UnsetType = UNSET
    """Jobs with a higher value are handed out first"""
    timeout_seconds: int | UnsetType | None = UNSET
    """Time limit of one attempt. Default: that of the table's policy, else that of the service"""
    kind: Literal["archival"] = "archival"
    params: ArchivalParams | UnsetType = UNSET


class ArchivalParams(Model, frozen=True, kw_only=True):
    retain: int | UnsetType = UNSET
    """Completed commits to keep on the active timeline, at least"""


class ArchivalPolicyIn(Model, frozen=True, kw_only=True):
    enabled: bool | UnsetType = UNSET
    """Whether jobs of this kind start automatically"""
    commits: int | UnsetType = UNSET
    """More completed commits on the active timeline are archived"""
    cron: str | UnsetType | None = UNSET
    """Five fields, in the policy's time zone. It runs at these times if there is work, and ignores the thresholds;
    null: the thresholds apply
    """
    min_interval_seconds: int | UnsetType = UNSET
    """Minimum from the end of one job to the start of the next"""
    retain: int | UnsetType = UNSET
    """Parameter of the job"""


class AttemptOut(Model, frozen=True, kw_only=True):
    attempt: int
    worker_id: str
    started_at: datetime
    ended_at: datetime | None
    outcome: AttemptOutcome | None
    error: JobProblem | None


class AttemptOutcome(Word):
    """Outcomes of an attempt: those of `jobs.contract.Outcome`, and `LOST` for a worker that disappeared."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"
    LOST = "lost"


class AuditEntryOut(Model, frozen=True, kw_only=True):
    """A call that changed something, or that was refused."""

    id: int
    at: datetime
    who: str
    """Name of the token; `anybody` while no token exists, `nobody` if the call had no valid one, `<user> on the
    command line`
    """
    token_id: str | None
    role: Role | None
    address: str | None
    """Of the caller; null for a command"""
    method: str
    """Of HTTP; `CLI` for a command"""
    route: str
    operation: str
    """`operationId` of this documentation"""
    object_type: str | None
    object_id: str | None
    object_name: str | None
    before: Any
    """The object before the call, with masks for secrets; null if it did not exist"""
    after: Any
    """The object after the call; `before` and `after` are null if it did not change"""
    outcome: Outcome
    """`refused`: status 400 to 499; `failed`: 500 and above"""
    status: int | None
    """HTTP status; null for a command"""
    problem: str | None
    """Type of the problem"""
    repeats: int
    """Calls of the same caller that were refused within the minute after this one and got no entry of their own;
    rounded down to a power of two
    """


class AuditIn(Model, frozen=True, kw_only=True):
    """Proves the table: every row in its bucket, no duplicate key."""

    dry_run: bool | UnsetType = UNSET
    """Return the plan, and change nothing"""
    priority: int | UnsetType = UNSET
    """Jobs with a higher value are handed out first"""
    timeout_seconds: int | UnsetType | None = UNSET
    """Time limit of one attempt. Default: that of the table's policy, else that of the service"""
    kind: Literal["audit"] = "audit"
    params: AuditParams | UnsetType = UNSET


class AuditPage(Model, frozen=True, kw_only=True):
    items: list[AuditEntryOut]
    next_cursor: str | None


class AuditParams(Model, frozen=True, kw_only=True):
    """No parameters."""

    pass


class BucketContractionIn(Model, frozen=True, kw_only=True):
    """Gives a bucket-indexed table fewer buckets: the files of several become one, without a shuffle."""

    dry_run: bool | UnsetType = UNSET
    """Return the plan, and change nothing"""
    priority: int | UnsetType = UNSET
    """Jobs with a higher value are handed out first"""
    timeout_seconds: int | UnsetType | None = UNSET
    """Time limit of one attempt. Default: that of the table's policy, else that of the service"""
    kind: Literal["bucket_contraction"] = "bucket_contraction"
    params: BucketContractionParams


class BucketContractionParams(Model, frozen=True, kw_only=True):
    """Exactly one of `num_buckets` and `factor`."""

    on_active_writers: OnActiveWriters | UnsetType = UNSET
    """What to do while a write is in flight at the moment of the commit: `wait` until none is, `fence` it (the
    write is rolled back, and its batch has to be written again), or `abort` the job
    """
    wait_seconds: int | UnsetType = UNSET
    """How long to wait for a moment to commit"""
    lock_seconds: int | UnsetType = UNSET
    """How long writers may be kept waiting while the job rewrites what they changed"""
    hand_over_seconds: int | UnsetType = UNSET
    """On a table that Flink writes: how long to wait until it has been stopped (`writers-stopped`). After that the
    job fails, and nothing has changed
    """
    num_buckets: int | UnsetType | None = UNSET
    """The new number, a divisor of the current one; partitions that have it are left alone"""
    factor: int | UnsetType | None = UNSET
    """The current number as a multiple of the new one, in each of the partitions"""
    partitions: list[str | PartitionPrefix] | UnsetType | None = UNSET
    """Partition paths as in storage; or `{"prefix": ...}` for all with that prefix, including later ones. Default:
    the whole table
    """
    settle_seconds: int | UnsetType = UNSET
    """How long the job watches afterwards for writers that still use the old number"""
    codec: Literal["gzip", "snappy", "zstd"] | UnsetType | None = UNSET
    """Compression of the new files. Default: the table's"""


class BucketExpansionIn(Model, frozen=True, kw_only=True):
    """Gives a bucket-indexed table more buckets, without a shuffle."""

    dry_run: bool | UnsetType = UNSET
    """Return the plan, and change nothing"""
    priority: int | UnsetType = UNSET
    """Jobs with a higher value are handed out first"""
    timeout_seconds: int | UnsetType | None = UNSET
    """Time limit of one attempt. Default: that of the table's policy, else that of the service"""
    kind: Literal["bucket_expansion"] = "bucket_expansion"
    params: BucketExpansionParams


class BucketExpansionParams(Model, frozen=True, kw_only=True):
    """Exactly one of `num_buckets` and `factor`."""

    on_active_writers: OnActiveWriters | UnsetType = UNSET
    """What to do while a write is in flight at the moment of the commit: `wait` until none is, `fence` it (the
    write is rolled back, and its batch has to be written again), or `abort` the job
    """
    wait_seconds: int | UnsetType = UNSET
    """How long to wait for a moment to commit"""
    lock_seconds: int | UnsetType = UNSET
    """How long writers may be kept waiting while the job rewrites what they changed"""
    hand_over_seconds: int | UnsetType = UNSET
    """On a table that Flink writes: how long to wait until it has been stopped (`writers-stopped`). After that the
    job fails, and nothing has changed
    """
    num_buckets: int | UnsetType | None = UNSET
    """The new number, a multiple of the current one"""
    factor: int | UnsetType | None = UNSET
    """The new number as a multiple of the current one"""
    partitions: list[str | PartitionPrefix] | UnsetType | None = UNSET
    """Partition paths as in storage; or `{"prefix": ...}` for all with that prefix, including later ones. Default:
    the whole table
    """
    settle_seconds: int | UnsetType = UNSET
    """How long the job watches afterwards for writers that still use the old number"""
    codec: Literal["gzip", "snappy", "zstd"] | UnsetType | None = UNSET
    """Compression of the new files. Default: the table's"""


class BucketIndexIn(Model, frozen=True, kw_only=True):
    """The writers' values of `hoodie.bucket.index.num.buckets` and `hoodie.bucket.index.hash.field`."""

    type: Literal["bucket"] = "bucket"
    num_buckets: int
    hash_fields: list[str]


class BucketOut(Model, frozen=True, kw_only=True):
    bucket: int
    bytes: int
    rows: int | None


class BucketsOfPartition(Model, frozen=True, kw_only=True):
    path: str
    num_buckets: int
    bytes: int
    rows: int | None
    skew: float | None
    """Size of the largest bucket divided by the mean of all, including empty ones; 1 is even"""
    buckets: list[BucketOut]


class BucketsOut(Model, frozen=True, kw_only=True):
    """Empty for a table without a simple bucket index."""

    taken_at: datetime
    num_buckets: int
    num_partitions: int
    partitions: list[BucketsOfPartition]
    """The largest ones"""


class CallbackIn(Model, frozen=True, kw_only=True):
    """Hudi's `HoodieWriteCommitCallbackMessage`, 0.6 to 1.2. Only these two members are needed. The others differ
    between versions, so unknown members are ignored.
    """

    commit_time: str = field(name="commitTime")
    base_path: str = field(name="basePath")


class CallbackOut(Model, frozen=True, kw_only=True):
    table_id: str
    is_new: bool
    """False if the commit is known, or a poll of the table is already requested"""


class CleaningIn(Model, frozen=True, kw_only=True):
    """Deletes file slices that no retained instant needs."""

    dry_run: bool | UnsetType = UNSET
    """Return the plan, and change nothing"""
    priority: int | UnsetType = UNSET
    """Jobs with a higher value are handed out first"""
    timeout_seconds: int | UnsetType | None = UNSET
    """Time limit of one attempt. Default: that of the table's policy, else that of the service"""
    kind: Literal["cleaning"] = "cleaning"
    params: CleaningParams | UnsetType = UNSET


class CleaningParams(Model, frozen=True, kw_only=True):
    plans: list[str] | UnsetType | None = UNSET
    take_over: bool | UnsetType | None = UNSET
    """With `plans`: also those that another process has begun, which must be dead"""
    parallelism: int | UnsetType | None = UNSET
    """With `plans`: most tasks at once"""
    policy: CleaningPolicy | UnsetType = UNSET
    retain: int | UnsetType = UNSET
    """Commits, hours or file versions to keep"""


class CleaningPolicy(Word):
    """Hudi's `HoodieCleaningPolicy` (1.2)."""

    KEEP_LATEST_COMMITS = "KEEP_LATEST_COMMITS"
    KEEP_LATEST_BY_HOURS = "KEEP_LATEST_BY_HOURS"
    KEEP_LATEST_FILE_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"


class CleaningPolicyIn(Model, frozen=True, kw_only=True):
    enabled: bool | UnsetType = UNSET
    """Whether jobs of this kind start automatically"""
    trigger: Trigger | UnsetType = UNSET
    """Which thresholds apply"""
    commits: int | UnsetType = UNSET
    """Since the last run"""
    seconds: int | UnsetType = UNSET
    """Since the last run"""
    cron: str | UnsetType | None = UNSET
    """Five fields, in the policy's time zone. It runs at these times if there is work, and ignores the thresholds;
    null: the thresholds apply
    """
    min_interval_seconds: int | UnsetType = UNSET
    """Minimum from the end of one job to the start of the next"""
    policy: CleaningPolicy | UnsetType = UNSET
    """Parameter of the job"""
    retain: int | UnsetType = UNSET
    """Parameter of the job"""
    consumer_hours: int | UnsetType = UNSET
    """Nothing is kept for a consumer that has been silent for so long"""


class ClusteringIn(Model, frozen=True, kw_only=True):
    """Sorts the rows; inside each bucket when the table has a bucket index. Or merges small files."""

    dry_run: bool | UnsetType = UNSET
    """Return the plan, and change nothing"""
    priority: int | UnsetType = UNSET
    """Jobs with a higher value are handed out first"""
    timeout_seconds: int | UnsetType | None = UNSET
    """Time limit of one attempt. Default: that of the table's policy, else that of the service"""
    kind: Literal["clustering"] = "clustering"
    params: ClusteringParams | GivenClusteringParams


class ClusteringLayout(Word):
    """The order of rows: by one column after the other, or along a space-filling curve over all columns."""

    LINEAR = "linear"
    ZORDER = "zorder"
    HILBERT = "hilbert"


class ClusteringParams(Model, frozen=True, kw_only=True):
    """Without `sort_by`: merges small files, on a table without a bucket index."""

    on_active_writers: OnActiveWriters | UnsetType = UNSET
    """What to do while a write is in flight at the moment of the commit: `wait` until none is, `fence` it (the
    write is rolled back, and its batch has to be written again), or `abort` the job
    """
    wait_seconds: int | UnsetType = UNSET
    """How long to wait for a moment to commit"""
    lock_seconds: int | UnsetType = UNSET
    """How long writers may be kept waiting while the job rewrites what they changed"""
    hand_over_seconds: int | UnsetType = UNSET
    """On a table that Flink writes: how long to wait until it has been stopped (`writers-stopped`). After that the
    job fails, and nothing has changed
    """
    sort_by: list[str] | UnsetType | None = UNSET
    """Columns, the most important one first"""
    layout: ClusteringLayout | UnsetType = UNSET
    partitions: list[str | PartitionPrefix] | UnsetType | None = UNSET


class ClusteringPolicyIn(Model, frozen=True, kw_only=True):
    enabled: bool | UnsetType = UNSET
    """Whether jobs of this kind start automatically"""
    sort_by: list[str] | UnsetType = UNSET
    """Parameter of the job; without it only small files are merged"""
    layout: ClusteringLayout | UnsetType = UNSET
    """Parameter of the job"""
    small_file_share: float | UnsetType | None = UNSET
    """Share of base files that are small and not alone in their partition; or null"""
    unsorted_bytes: int | UnsetType | None = UNSET
    """Bytes written since the last clustering; or null"""
    cron: str | UnsetType | None = UNSET
    """Five fields, in the policy's time zone. It runs at these times if there is work, and ignores the thresholds;
    null: the thresholds apply
    """
    min_interval_seconds: int | UnsetType = UNSET
    """Minimum from the end of one job to the start of the next"""
    stale_plan_seconds: int | UnsetType = UNSET
    """Age from which a pending plan causes a warning, and is taken over if it has begun"""
    on_active_writers: OnActiveWriters | UnsetType = UNSET
    """Parameter of the job"""
    wait_seconds: int | UnsetType = UNSET
    """Parameter of the job"""
    lock_seconds: int | UnsetType = UNSET
    """Parameter of the job"""
    hand_over_seconds: int | UnsetType = UNSET
    """Parameter of the job"""


class CommitOut(Model, frozen=True, kw_only=True):
    """A completed instant. Counts are null where the action writes no data."""

    id: int
    table_id: str
    requested_time: str
    action: str
    """The completed action: a compaction is a `commit`"""
    completion_time: str | None
    """Null before table version 8, whose timelines do not contain it"""
    completed_at: datetime
    seen_at: datetime
    operation: str | None
    rows_written: int | None
    rows_deleted: int | None
    bytes_written: int | None
    partitions: list[str]
    file_groups: int
    schema_changed: bool
    is_news: bool
    """False for instants from before the registration"""


class CommitPage(Model, frozen=True, kw_only=True):
    items: list[CommitOut]
    next_cursor: str | None


class CompactionIn(Model, frozen=True, kw_only=True):
    """Merges log files into new base files."""

    dry_run: bool | UnsetType = UNSET
    """Return the plan, and change nothing"""
    priority: int | UnsetType = UNSET
    """Jobs with a higher value are handed out first"""
    timeout_seconds: int | UnsetType | None = UNSET
    """Time limit of one attempt. Default: that of the table's policy, else that of the service"""
    kind: Literal["compaction"] = "compaction"
    params: CompactionParams | UnsetType = UNSET


class CompactionParams(Model, frozen=True, kw_only=True):
    """Without `plans`: executes all pending plans, and schedules a plan for the rest; or as much of both as
    `limit_bytes`, `limit_file_groups` and `partitions` allow.
    """

    plans: list[str] | UnsetType | None = UNSET
    take_over: bool | UnsetType | None = UNSET
    """With `plans`: also those that another process has begun, which must be dead"""
    limit_bytes: int | UnsetType | None = UNSET
    """Bytes of base and log files to read at most, the newest partitions first; but one file group, or one pending
    plan, in any case. The result says what is `left`
    """
    limit_file_groups: int | UnsetType | None = UNSET
    """File groups to compact at most, in the same order. Together with `limit_bytes` both limits hold"""
    partitions: list[str | PartitionPrefix] | UnsetType | None = UNSET


class CompactionPolicyIn(Model, frozen=True, kw_only=True):
    enabled: bool | UnsetType = UNSET
    """Whether jobs of this kind start automatically"""
    trigger: Trigger | UnsetType = UNSET
    """Which thresholds apply"""
    commits: int | UnsetType = UNSET
    """Since the last run"""
    seconds: int | UnsetType = UNSET
    """Since the last run"""
    log_ratio: float | UnsetType | None = UNSET
    """Ratio of log bytes to base file bytes, in addition to the trigger; or null"""
    cron: str | UnsetType | None = UNSET
    """Five fields, in the policy's time zone. It runs at these times if there is work, and ignores the thresholds;
    null: the thresholds apply
    """
    min_interval_seconds: int | UnsetType = UNSET
    """Minimum from the end of one job to the start of the next"""
    stale_plan_seconds: int | UnsetType = UNSET
    """Age from which a pending plan causes a warning, and is taken over if it has begun"""
    limit_bytes: int | UnsetType | None = UNSET
    """Parameter of the job; what it leaves is due at once; null: no limit"""
    limit_file_groups: int | UnsetType | None = UNSET
    """Parameter of the job; what it leaves is due at once; null: no limit"""


class CompletedOut(Model, frozen=True, kw_only=True):
    requested_time: str
    action: str
    completion_time: str | None


class ConsumerIn(Model, frozen=True, kw_only=True):
    instant: str
    """The last commit that it has seen: `requested_time` of GET /v1/commits"""


class ConsumerList(Model, frozen=True, kw_only=True):
    items: list[ConsumerOut]


class ConsumerOut(Model, frozen=True, kw_only=True):
    """Cleaning and archival keep what a consumer needs to go on, until it has been silent for too long."""

    name: str
    instant: str
    created_at: datetime
    seen_at: datetime
    """When it reported last"""
    expires_at: datetime
    """When nothing is kept for it any more, unless it reports before"""
    stale: bool


class ContractionPolicyIn(Model, frozen=True, kw_only=True):
    mode: Mode | UnsetType = UNSET
    """`suggest` only records what it would do"""
    min_bucket_bytes: int | UnsetType = UNSET
    """Size below which the average bucket of a partition is too small"""
    cron: str | UnsetType | None = UNSET
    """Five fields, in the policy's time zone. It runs at these times if there is work, and ignores the thresholds;
    null: the thresholds apply
    """
    min_interval_seconds: int | UnsetType = UNSET
    """Minimum from the end of one job to the start of the next"""
    on_active_writers: OnActiveWriters | UnsetType = UNSET
    """Parameter of the job"""
    wait_seconds: int | UnsetType = UNSET
    """Parameter of the job"""
    lock_seconds: int | UnsetType = UNSET
    """Parameter of the job"""
    hand_over_seconds: int | UnsetType = UNSET
    """Parameter of the job"""
    settle_seconds: int | UnsetType = UNSET
    """Parameter of the job"""
    codec: Literal["gzip", "snappy", "zstd"] | UnsetType | None = UNSET
    """Parameter of the job"""


class DecisionOut(Model, frozen=True, kw_only=True):
    kind: JobKind
    verdict: Verdict
    """`wait`: the job is due, but something blocks it"""
    code: str
    """The reason as a code"""
    because: str
    warning: str | None
    params: dict[str, Any]
    """Parameters of the job that was started or suggested"""
    job_id: str | None
    first_at: datetime
    last_at: datetime
    """Time of the latest such decision, and of the figures"""
    count: int
    """Number of such decisions in a row"""
    wanted_since: datetime | None
    """Time since which a waiting job has been due"""


class DecisionPage(Model, frozen=True, kw_only=True):
    items: list[DecisionOut]
    next_cursor: str | None


class DelegatedService(Word):
    """The services of the protocol, by the last part of their path."""

    COMPACT = "compact"
    CLUSTER = "cluster"
    CLEAN = "clean"


class DelegationOut(Model, frozen=True, kw_only=True):
    """The answer to a writer, which reads only its status."""

    table_id: str | None
    """Null if no table is registered with this base path"""
    stored: list[str]
    """Instants that were not known before"""


class DeliveryAttemptOut(Model, frozen=True, kw_only=True):
    at: datetime
    milliseconds: int
    """Until the status arrived, or the attempt was given up"""
    status: int | None
    """HTTP status; null without an answer, and for Kafka"""
    error: str | None
    response: str
    """The beginning of the answer's body; for Kafka, partition and offset"""
    retry_at: datetime | None


class DeliveryOut(Model, frozen=True, kw_only=True):
    id: str
    webhook_id: str
    event_id: str
    """The `webhook-id` of the message, the same in every attempt and replay"""
    event_type: str
    table_id: str | None
    state: DeliveryState
    created_at: datetime
    ended_at: datetime | None
    attempts: list[DeliveryAttemptOut]


class DeliveryPage(Model, frozen=True, kw_only=True):
    items: list[DeliveryOut]
    next_cursor: str | None


class DeliveryState(Word):
    """State of a delivery. `DEAD` is given up, unless it is replayed."""

    PENDING = "pending"
    DELIVERED = "delivered"
    DEAD = "dead"


class DemandByGroup(Model, frozen=True, kw_only=True):
    groups: dict[str, DemandOut]
    """The group `default`, those of the query, and all that have queued or running jobs or workers"""


class DemandOut(Model, frozen=True, kw_only=True):
    """Only numbers, so that a scaler can take each by its path."""

    queued: int
    """Queued jobs, also those that nothing can start yet"""
    startable: int
    """Queued jobs that a free slot would take at once"""
    bytes: int
    """Size of the tables of startable jobs, of each table once"""
    oldest_seconds: float
    """How long the oldest startable job has been due"""
    running: int
    """Jobs that workers hold"""
    wanted_slots: int
    """`running` and `startable`: slots with which no job would wait for one"""
    slots: int
    """Slots of the ready workers"""
    workers: int
    """Ready workers that were seen within a minute"""
    waiting_workers: int
    """Workers that start Spark, or wait for a first executor"""


class DiagnosisIn(Model, frozen=True, kw_only=True):
    """Looks for the damages that users of Hudi meet, and names the job that cures each. It only reads."""

    dry_run: bool | UnsetType = UNSET
    """Return the plan, and change nothing"""
    priority: int | UnsetType = UNSET
    """Jobs with a higher value are handed out first"""
    timeout_seconds: int | UnsetType | None = UNSET
    """Time limit of one attempt. Default: that of the table's policy, else that of the service"""
    kind: Literal["diagnosis"] = "diagnosis"
    params: DiagnosisParams | UnsetType = UNSET


class DiagnosisParams(Model, frozen=True, kw_only=True):
    rows: bool | UnsetType = UNSET
    """Read the key of every row as well: rows in wrong buckets, duplicate keys"""
    index: BucketIndexIn | UnsetType | None = UNSET
    """The writers' bucket index, for a table that contradicts it and is registered without one"""


class DiagnosisPolicyIn(Model, frozen=True, kw_only=True):
    enabled: bool | UnsetType = UNSET
    """Whether jobs of this kind start automatically"""
    seconds: int | UnsetType = UNSET
    """Since the last run"""
    cron: str | UnsetType | None = UNSET
    """Five fields, in the policy's time zone. It runs at these times if there is work, and ignores the thresholds;
    null: the thresholds apply
    """
    min_interval_seconds: int | UnsetType = UNSET
    """Minimum from the end of one job to the start of the next"""
    rows: bool | UnsetType = UNSET
    """Parameter of the job"""


class EffectivePolicyOut(Model, frozen=True, kw_only=True):
    policy: dict[str, Any]
    """The effective policy of the table, with every member"""
    sources: dict[str, str]
    """The source of each member: `default`, `pattern <glob>` or `table`"""


class EvaluationOut(Model, frozen=True, kw_only=True):
    looked_at: datetime | None
    """Time of the last poll; null: never polled, so there is no decision"""
    decisions: list[DecisionOut]


class EventType(Word):
    """Types of events. `service.api.event_catalogue` describes each."""

    COMMIT_PUBLISHED = "commit.published"
    JOB_QUEUED = "job.queued"
    JOB_STARTED = "job.started"
    JOB_SUCCEEDED = "job.succeeded"
    JOB_FAILED = "job.failed"
    JOB_CANCELLED = "job.cancelled"
    EXPANSION_DRAINING = "expansion.draining"
    EXPANSION_COMMITTED = "expansion.committed"
    EXPANSION_ABORTED = "expansion.aborted"
    TABLE_REGISTERED = "table.registered"
    TABLE_UNHEALTHY = "table.unhealthy"
    TABLE_RECOVERED = "table.recovered"
    TABLE_INCIDENT_OPENED = "table.incident_opened"
    TABLE_INCIDENT_CLOSED = "table.incident_closed"
    TABLE_SUGGESTED = "table.suggested"
    WEBHOOK_DISABLED = "webhook.disabled"
    WEBHOOK_TEST = "webhook.test"


class EventTypeList(Model, frozen=True, kw_only=True):
    items: list[EventTypeOut]


class EventTypeOut(Model, frozen=True, kw_only=True):
    type: EventType
    description: str
    data_schema: dict[str, Any]
    """JSON Schema (2020-12) of the event's `data`"""
    example: dict[str, Any]
    """A whole event: CloudEvents 1.0, JSON"""


class ExpansionPolicyIn(Model, frozen=True, kw_only=True):
    mode: Mode | UnsetType = UNSET
    """`suggest` only records what it would do"""
    max_bucket_bytes: int | UnsetType = UNSET
    """Size limit of the largest bucket"""
    cron: str | UnsetType | None = UNSET
    """Five fields, in the policy's time zone. It runs at these times if there is work, and ignores the thresholds;
    null: the thresholds apply
    """
    min_interval_seconds: int | UnsetType = UNSET
    """Minimum from the end of one job to the start of the next"""
    on_active_writers: OnActiveWriters | UnsetType = UNSET
    """Parameter of the job"""
    wait_seconds: int | UnsetType = UNSET
    """Parameter of the job"""
    lock_seconds: int | UnsetType = UNSET
    """Parameter of the job"""
    hand_over_seconds: int | UnsetType = UNSET
    """Parameter of the job"""
    settle_seconds: int | UnsetType = UNSET
    """Parameter of the job"""
    codec: Literal["gzip", "snappy", "zstd"] | UnsetType | None = UNSET
    """Parameter of the job"""


class FilesOut(Model, frozen=True, kw_only=True):
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
    rows: int | None
    """In base files; null if it is not known for every file"""


class FinishExpansionIn(Model, frozen=True, kw_only=True):
    """Retires the hashing config of an expansion once every writer has the new number of buckets as its own
    option.
    """

    dry_run: bool | UnsetType = UNSET
    """Return the plan, and change nothing"""
    priority: int | UnsetType = UNSET
    """Jobs with a higher value are handed out first"""
    timeout_seconds: int | UnsetType | None = UNSET
    """Time limit of one attempt. Default: that of the table's policy, else that of the service"""
    kind: Literal["finish_expansion"] = "finish_expansion"
    params: FinishExpansionParams | UnsetType = UNSET


class FinishExpansionParams(Model, frozen=True, kw_only=True):
    undo: bool | UnsetType = UNSET
    """Restore the hashing config that was retired last"""
    hand_over_seconds: int | UnsetType = UNSET
    """On a table that Flink writes: how long to wait until it has been stopped (`writers-stopped`). After that the
    job fails, and nothing has changed
    """


class FlinkIn(Model, frozen=True, kw_only=True):
    """The Flink job that writes the table. The service stops it with a savepoint when a job has to wait for that.

    Its host must be one of GROUNDSKEEPER_FLINK_HOSTS.
    """

    rest_url: str
    job: str
    """Its name (`pipeline.name`) or its id"""
    savepoint_folder: str | UnsetType | None = UNSET
    """Default: `execution.checkpointing.savepoint-dir` of the cluster"""


class FlinkOut(Model, frozen=True, kw_only=True):
    rest_url: str
    job: str
    savepoint_folder: str | None


class GivenClusteringParams(Model, frozen=True, kw_only=True):
    """Executes Hudi's own plans; refused on a table with a bucket index, whose layout they would break."""

    plans: list[str]
    """Pending plans: exactly these are executed, and none is scheduled"""
    take_over: bool | UnsetType | None = UNSET
    """With `plans`: also those that another process has begun, which must be dead"""
    parallelism: int | UnsetType | None = UNSET
    """With `plans`: most tasks at once"""


class HandOverOut(Model, frozen=True, kw_only=True):
    state: HandOverState
    """`draining`: a user has to stop the writers; `stopping`: the service is stopping them"""
    since: datetime
    deadline: datetime
    """If the writers are not stopped by then, the job fails without any change"""
    by: str | None
    """The caller that stopped them, or `groundskeeper`"""
    savepoint: str | None
    detail: str


class HandOverState(Word):
    """States: draining (someone has to stop the writers) -> stopping (the service stops them) -> stopped |
    expired.
    """

    DRAINING = "draining"
    STOPPING = "stopping"
    STOPPED = "stopped"
    EXPIRED = "expired"


class HealthOut(Model, frozen=True, kw_only=True):
    status: Literal["ok"] = "ok"


class IncidentCloseIn(Model, frozen=True, kw_only=True):
    reason: str
    """Kept with the incident, with the caller that closed it"""


class IncidentCounts(Model, frozen=True, kw_only=True):
    """Counts of unresolved incidents; `GET /v1/tables/{id}/incidents` lists them."""

    open: int | UnsetType = UNSET
    suspected: int | UnsetType = UNSET


class IncidentKind(Word):
    """`STALE_WRITE`: a commit wrote to file groups that had been replaced, so no reader sees its rows there.
    `OLD_NUMBER`: all rows that a commit wrote to a partition lie in buckets of the number before an expansion,
    or some in buckets that a contraction took away. `LATE_FILES`: a fenced writer may be alive, and may still
    write files that count once its rollback has been archived. `DAMAGE`: a diagnosis has found it; `details`
    are the finding, `instant` is when.
    """

    STALE_WRITE = "stale-write"
    OLD_NUMBER = "old-number"
    LATE_FILES = "late-files"
    DAMAGE = "damage"


class IncidentOut(Model, frozen=True, kw_only=True):
    """An incident. `title`, `detail` and `hint` describe its effect on the table's readers, and the remedy."""

    id: str
    table_id: str
    kind: IncidentKind
    instant: str
    """The commit that caused it, or the write that was fenced; of a damage: when it was found, in UTC"""
    operation: str | None
    """Hudi's WriteOperationType of that commit"""
    state: IncidentState
    """`suspected`: only the rows can prove it; a repair checks them"""
    title: str
    detail: str
    hint: str
    details: dict[str, Any]
    """Figures that depend on the kind"""
    opened_at: datetime
    closed_at: datetime | None
    because: str | None
    """Why it was closed, and by whom if by hand"""


class IncidentPage(Model, frozen=True, kw_only=True):
    items: list[IncidentOut]
    next_cursor: str | None


class IncidentState(Word):
    """`SUSPECTED`: only the rows can prove it, and a repair checks them. `CLEARED`: there was nothing to repair,
    or a user closed it.
    """

    SUSPECTED = "suspected"
    OPEN = "open"
    REPAIRED = "repaired"
    CLEARED = "cleared"


class IndexOut(Model, frozen=True, kw_only=True):
    type: Literal["bucket"] = "bucket"
    num_buckets: int
    hash_fields: list[str]


class JobDetail(Model, frozen=True, kw_only=True):
    id: str
    table_id: str
    kind: JobKind
    params: dict[str, Any]
    dry_run: bool
    state: JobState
    attempt: int
    """Number of leases so far"""
    max_attempts: int
    cancel_requested: bool
    priority: int
    worker_group: str
    """Only workers of this group get the job"""
    timeout_seconds: int | None
    """Time limit of one attempt; null: the service's setting"""
    requested_by: str | None
    """The caller that submitted it, or `policy`"""
    reason: str | None
    """The reason, if a policy submitted it"""
    worker_id: str | None
    progress: ProgressOut | None
    instants: list[str]
    """Instants that its attempts created on the table's timeline"""
    result: dict[str, Any] | None
    """Measured values; for a dry run, the plan"""
    error: JobProblem | None
    """Error of the last attempt"""
    created_at: datetime
    not_before: datetime
    leased_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    lease_deadline: datetime | None
    hand_over: HandOverOut | None
    """Set if the job waits, or has waited, until the writers are stopped"""
    attempts: list[AttemptOut]
    waits_for: str | None
    """While it is queued: the condition that keeps it from a worker"""


class JobKind(Word):
    """The table services, the repair of damages, and the jobs that only read the table: sync, audit and diagnosis."""

    COMPACTION = "compaction"
    CLEANING = "cleaning"
    CLUSTERING = "clustering"
    BUCKET_EXPANSION = "bucket_expansion"
    BUCKET_CONTRACTION = "bucket_contraction"
    FINISH_EXPANSION = "finish_expansion"
    REPAIR = "repair"
    ARCHIVAL = "archival"
    PARTITION_TTL = "partition_ttl"
    SAVEPOINT = "savepoint"
    RESTORE = "restore"
    ROLLBACK = "rollback"
    METADATA_TABLE = "metadata_table"
    SYNC = "sync"
    AUDIT = "audit"
    DIAGNOSIS = "diagnosis"


class JobOut(Model, frozen=True, kw_only=True):
    id: str
    table_id: str
    kind: JobKind
    params: dict[str, Any]
    dry_run: bool
    state: JobState
    attempt: int
    """Number of leases so far"""
    max_attempts: int
    cancel_requested: bool
    priority: int
    worker_group: str
    """Only workers of this group get the job"""
    timeout_seconds: int | None
    """Time limit of one attempt; null: the service's setting"""
    requested_by: str | None
    """The caller that submitted it, or `policy`"""
    reason: str | None
    """The reason, if a policy submitted it"""
    worker_id: str | None
    progress: ProgressOut | None
    instants: list[str]
    """Instants that its attempts created on the table's timeline"""
    result: dict[str, Any] | None
    """Measured values; for a dry run, the plan"""
    error: JobProblem | None
    """Error of the last attempt"""
    created_at: datetime
    not_before: datetime
    leased_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    lease_deadline: datetime | None
    hand_over: HandOverOut | None
    """Set if the job waits, or has waited, until the writers are stopped"""


class JobPage(Model, frozen=True, kw_only=True):
    items: list[JobOut]
    next_cursor: str | None


class JobProblem(Model, frozen=True, kw_only=True):
    type: str
    title: str
    detail: str
    hint: str
    retriable: bool


class JobState(Word):
    """States: queued -> leased (a worker took it) -> running (it has confirmed) -> succeeded | failed | cancelled.

    After the last attempt a job may be `unknown` instead: its worker disappeared, or could not find out whether
    it committed. The next poll of the table's timeline settles it (`service.queue.settlement`).
    """

    QUEUED = "queued"
    LEASED = "leased"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


class LockIn(Model, frozen=True, kw_only=True):
    """The lock that the table's writers take."""

    provider: str | UnsetType = UNSET
    """`filesystem`, `zookeeper`, or the full name of a Hudi LockProvider class"""
    options: dict[str, str] | UnsetType = UNSET
    """The provider's Hudi options, `hoodie.write.lock.*`"""
    wait_seconds: float | UnsetType | None = UNSET
    """How long a job waits for the lock while others hold it; then it goes back to the queue. Default:
    GROUNDSKEEPER_LOCK_WAIT_SECONDS
    """


class LockOut(Model, frozen=True, kw_only=True):
    provider: str
    options: dict[str, str]
    wait_seconds: float | None


class MetadataTableIn(Model, frozen=True, kw_only=True):
    """Compares the metadata table with the storage, or builds it anew; for that the writers must be stopped."""

    dry_run: bool | UnsetType = UNSET
    """Return the plan, and change nothing"""
    priority: int | UnsetType = UNSET
    """Jobs with a higher value are handed out first"""
    timeout_seconds: int | UnsetType | None = UNSET
    """Time limit of one attempt. Default: that of the table's policy, else that of the service"""
    kind: Literal["metadata_table"] = "metadata_table"
    params: MetadataTableParams | UnsetType = UNSET


class MetadataTableParams(Model, frozen=True, kw_only=True):
    action: Literal["validate", "rebuild"] | UnsetType = UNSET


class Mode(Word):
    """Mode of a table service. `SUGGEST` only shows the proposal."""

    AUTO = "auto"
    SUGGEST = "suggest"
    OFF = "off"


class ObjectType(Word):
    TABLE = "table"
    GROUP = "group"
    WORKER = "worker"
    WEBHOOK = "webhook"
    SERVICE = "service"


class OnActiveWriters(Word):
    """The reaction of a job that replaces file groups to a write that is in flight when the job wants to commit.

    `FENCE` rolls the write back, so its batch must be written again.
    """

    WAIT = "wait"
    FENCE = "fence"
    ABORT = "abort"


class Outcome(Word):
    """`DONE` below status 400, `FAILED` from 500 on."""

    DONE = "done"
    REFUSED = "refused"
    FAILED = "failed"


class PartitionExtractor(Word):
    """Hudi's `PartitionValueExtractor`s (1.2, `org.apache.hudi.hive`).

    `PARTS`: one value for each part of a path; `WHOLE`: the path is one value; `DAY`, `HOUR`: `2026/01/31`, or
    with an hour, is one value.
    """

    NONE = "none"
    PARTS = "parts"
    WHOLE = "whole"
    DAY = "day"
    HOUR = "hour"


class PartitionOut(Model, frozen=True, kw_only=True):
    file_groups: int
    base_files: int
    base_bytes: int
    log_files: int
    log_bytes: int
    small_files: int
    small_bytes: int
    freed_files: int
    freed_bytes: int
    rows: int | None
    """In base files; null if it is not known for every file"""
    path: str
    num_buckets: int
    buckets: int
    """Buckets that have rows"""
    largest_bucket: int | None
    largest_bucket_bytes: int


class PartitionPrefix(Model, frozen=True, kw_only=True):
    prefix: str


class PartitionTtlIn(Model, frozen=True, kw_only=True):
    """Drops partitions that were not modified, or created, for a number of days. Cleaning removes their files
    later.
    """

    dry_run: bool | UnsetType = UNSET
    """Return the plan, and change nothing"""
    priority: int | UnsetType = UNSET
    """Jobs with a higher value are handed out first"""
    timeout_seconds: int | UnsetType | None = UNSET
    """Time limit of one attempt. Default: that of the table's policy, else that of the service"""
    kind: Literal["partition_ttl"] = "partition_ttl"
    params: PartitionTtlParams


class PartitionTtlParams(Model, frozen=True, kw_only=True):
    days_retain: int
    """Partitions that are older are dropped"""
    strategy: TtlStrategy | UnsetType = UNSET
    """`KEEP_BY_TIME`: days since the last modification, also by a table service that rewrites files;
    `KEEP_BY_CREATION_TIME`: days since the commit that created the partition
    """
    partitions: list[str | PartitionPrefix] | UnsetType | None = UNSET
    limit_partitions: int | UnsetType = UNSET
    """Partitions to drop at most, the oldest first. The result says what is `left`"""
    wait_seconds: int | UnsetType = UNSET
    """How long to wait for a moment at which nobody writes to these partitions"""
    hand_over_seconds: int | UnsetType = UNSET
    """On a table that Flink writes: how long to wait until it has been stopped (`writers-stopped`). After that the
    job fails, and nothing has changed
    """


class PartitionTtlPolicyIn(Model, frozen=True, kw_only=True):
    enabled: bool | UnsetType = UNSET
    """Whether jobs of this kind start automatically"""
    days_retain: int | UnsetType | None = UNSET
    """Parameter of the job; without it nothing is ever dropped"""
    strategy: TtlStrategy | UnsetType = UNSET
    """Parameter of the job"""
    partitions: list[str | PrefixOfPolicy] | UnsetType = UNSET
    """Parameter of the job; empty: all"""
    limit_partitions: int | UnsetType = UNSET
    """Parameter of the job; what it leaves is due at once"""
    seconds: int | UnsetType = UNSET
    """Since the last run"""
    cron: str | UnsetType | None = UNSET
    """Five fields, in the policy's time zone. It runs at these times if there is work, and ignores the thresholds;
    null: the thresholds apply
    """
    min_interval_seconds: int | UnsetType = UNSET
    """Minimum from the end of one job to the start of the next"""


class PatternPolicyIn(Model, frozen=True, kw_only=True):
    """A policy as for one table, with a precedence."""

    paused: bool | UnsetType = UNSET
    """No job starts automatically; running jobs go on"""
    priority: int | UnsetType = UNSET
    """Jobs with a higher value are handed out first"""
    worker_group: str | UnsetType = UNSET
    """Only workers of this group get the table's jobs, including submitted ones"""
    timeout_seconds: int | UnsetType | None = UNSET
    """Time limit of one attempt of a job, unless the job sets its own; null: that of the service"""
    time_zone: str | UnsetType = UNSET
    """Time zone of the windows and of the cron expressions"""
    windows: list[WindowIn] | UnsetType = UNSET
    """When jobs may start; empty: at any time"""
    compaction: CompactionPolicyIn | UnsetType = UNSET
    cleaning: CleaningPolicyIn | UnsetType = UNSET
    clustering: ClusteringPolicyIn | UnsetType = UNSET
    bucket_expansion: ExpansionPolicyIn | UnsetType = UNSET
    bucket_contraction: ContractionPolicyIn | UnsetType = UNSET
    repair: RepairPolicyIn | UnsetType = UNSET
    archival: ArchivalPolicyIn | UnsetType = UNSET
    partition_ttl: PartitionTtlPolicyIn | UnsetType = UNSET
    diagnosis: DiagnosisPolicyIn | UnsetType = UNSET
    sync: SyncPolicyIn | UnsetType = UNSET
    precedence: int | UnsetType = UNSET
    """If several patterns match, the higher value wins (default 0), then the more exact pattern"""


class PatternPolicyList(Model, frozen=True, kw_only=True):
    items: list[PatternPolicyOut]


class PatternPolicyOut(Model, frozen=True, kw_only=True):
    pattern: str
    precedence: int
    settings: dict[str, Any]
    """As they were sent"""
    created_at: datetime
    updated_at: datetime


class PauseIn(Model, frozen=True, kw_only=True):
    reason: str | UnsetType = UNSET
    """Shown to other users"""


class PauseOut(Model, frozen=True, kw_only=True):
    paused: bool
    since: datetime | UnsetType | None = UNSET
    by: str | UnsetType | None = UNSET
    reason: str | UnsetType = UNSET


class PendingOut(Model, frozen=True, kw_only=True):
    requested_time: str
    action: str
    state: str
    is_plan: bool
    """A compaction or clustering that is scheduled and can be executed"""
    requested_at: datetime | None
    age_seconds: float | None
    heartbeat_at: datetime | None
    """Last heartbeat of its writer, if it sends any"""
    heartbeat_age_seconds: float | None


class PlanOut(Model, frozen=True, kw_only=True):
    id: str
    base_path: str
    table_id: str | None
    table_name: str
    service: DelegatedService
    instant: str
    is_metadata: bool
    """A plan of the table's metadata table"""
    state: PlanState
    because: str | None
    """The reason for the state"""
    hint: str | None
    """The remedy, for a table that is not registered"""
    job_id: str | None
    """The last job that was submitted for it"""
    queue: str | None
    """The worker group that its writer asks for"""
    resource: str | None
    parallelism: int | None
    engine: str | None
    username: str | None
    requested_by: str
    requested_at: datetime
    last_requested_at: datetime
    ended_at: datetime | None


class PlanPage(Model, frozen=True, kw_only=True):
    items: list[PlanOut]
    next_cursor: str | None


class PlanState(Word):
    """`UNREGISTERED`: no table has the base path. `WAITING`: it will be executed. `SUBMITTED`: a job executes it.
    `WITHHELD`: it is not executed, and `because` says why. `DONE`: it has completed. `GONE`: it has left the
    timeline without completing, or its table has it no longer.
    """

    UNREGISTERED = "unregistered"
    WAITING = "waiting"
    SUBMITTED = "submitted"
    WITHHELD = "withheld"
    DONE = "done"
    GONE = "gone"


class PolicyIn(Model, frozen=True, kw_only=True):
    """Members that differ from the previous level: the defaults, then patterns of names, then the table."""

    paused: bool | UnsetType = UNSET
    """No job starts automatically; running jobs go on"""
    priority: int | UnsetType = UNSET
    """Jobs with a higher value are handed out first"""
    worker_group: str | UnsetType = UNSET
    """Only workers of this group get the table's jobs, including submitted ones"""
    timeout_seconds: int | UnsetType | None = UNSET
    """Time limit of one attempt of a job, unless the job sets its own; null: that of the service"""
    time_zone: str | UnsetType = UNSET
    """Time zone of the windows and of the cron expressions"""
    windows: list[WindowIn] | UnsetType = UNSET
    """When jobs may start; empty: at any time"""
    compaction: CompactionPolicyIn | UnsetType = UNSET
    cleaning: CleaningPolicyIn | UnsetType = UNSET
    clustering: ClusteringPolicyIn | UnsetType = UNSET
    bucket_expansion: ExpansionPolicyIn | UnsetType = UNSET
    bucket_contraction: ContractionPolicyIn | UnsetType = UNSET
    repair: RepairPolicyIn | UnsetType = UNSET
    archival: ArchivalPolicyIn | UnsetType = UNSET
    partition_ttl: PartitionTtlPolicyIn | UnsetType = UNSET
    diagnosis: DiagnosisPolicyIn | UnsetType = UNSET
    sync: SyncPolicyIn | UnsetType = UNSET


class PrefixOfPolicy(Model, frozen=True, kw_only=True):
    """As `PartitionPrefix`, in a level of a policy, which is stored as it was sent."""

    prefix: str


class ProblemType(Model, frozen=True, kw_only=True):
    type: str
    title: str
    hint: str
    status: int
    """HTTP status of such an answer"""


class ProgressOut(Model, frozen=True, kw_only=True):
    step: str
    tasks_done: int
    tasks_total: int
    bytes_done: int
    bytes_total: int


class RepairIn(Model, frozen=True, kw_only=True):
    """Recovers the rows of commits that wrote to replaced file groups, or with an old number of buckets."""

    dry_run: bool | UnsetType = UNSET
    """Return the plan, and change nothing"""
    priority: int | UnsetType = UNSET
    """Jobs with a higher value are handed out first"""
    timeout_seconds: int | UnsetType | None = UNSET
    """Time limit of one attempt. Default: that of the table's policy, else that of the service"""
    kind: Literal["repair"] = "repair"
    params: RepairParams | UnsetType = UNSET


class RepairParams(Model, frozen=True, kw_only=True):
    instants: list[str] | UnsetType | None = UNSET
    """Completed instants to check in addition to those that were found to be stale"""
    accepted: list[str] | UnsetType | None = UNSET
    """Instants whose deletes were lost and have been run again: they count as repaired"""
    leftovers: bool | UnsetType | None = UNSET
    """Instead remove what a diagnosis names as left behind: markers of writes that have ended, files of writes
    that were rolled back, and hashing configs without a commit, if no row was written by them
    """
    wait_seconds: int | UnsetType = UNSET
    """How long to wait for a moment without writes"""
    hand_over_seconds: int | UnsetType = UNSET
    """On a table that Flink writes: how long to wait until it has been stopped (`writers-stopped`). After that the
    job fails, and nothing has changed
    """


class RepairPolicyIn(Model, frozen=True, kw_only=True):
    mode: Mode | UnsetType = UNSET
    """`suggest` only records what it would do"""
    min_interval_seconds: int | UnsetType = UNSET
    """Minimum from the end of one job to the start of the next"""


class ReplayIn(Model, frozen=True, kw_only=True):
    since: datetime
    until: datetime | UnsetType | None = UNSET
    """Default: now"""
    with_delivered: bool | UnsetType = UNSET
    """Also events that were delivered already"""


class ReplayOut(Model, frozen=True, kw_only=True):
    replayed: int
    """Deliveries that were started again"""
    is_complete: bool
    """False if there is more: repeat the same call"""


class RestoreIn(Model, frozen=True, kw_only=True):
    """Takes the table back to a savepoint. All later commits are gone for good; the writers must be stopped."""

    dry_run: bool | UnsetType = UNSET
    """Return the plan, and change nothing"""
    priority: int | UnsetType = UNSET
    """Jobs with a higher value are handed out first"""
    timeout_seconds: int | UnsetType | None = UNSET
    """Time limit of one attempt. Default: that of the table's policy, else that of the service"""
    kind: Literal["restore"] = "restore"
    params: RestoreParams


class RestoreParams(Model, frozen=True, kw_only=True):
    savepoint: str
    """The instant of the savepoint"""
    table_name: str
    """The table's name, typed in: rows are removed for good"""
    hand_over_seconds: int | UnsetType = UNSET
    """On a table that Flink writes: how long to wait until it has been stopped (`writers-stopped`). After that the
    job fails, and nothing has changed
    """


class Role(Word):
    """reader < operator < admin: each includes the rights of the one before. A worker may only lease, send
    heartbeats and report.
    """

    READER = "reader"
    OPERATOR = "operator"
    ADMIN = "admin"
    WORKER = "worker"


class RollbackIn(Model, frozen=True, kw_only=True):
    """Rolls back a pending instant that nobody works on, or the latest completed commit."""

    dry_run: bool | UnsetType = UNSET
    """Return the plan, and change nothing"""
    priority: int | UnsetType = UNSET
    """Jobs with a higher value are handed out first"""
    timeout_seconds: int | UnsetType | None = UNSET
    """Time limit of one attempt. Default: that of the table's policy, else that of the service"""
    kind: Literal["rollback"] = "rollback"
    params: RollbackParams


class RollbackParams(Model, frozen=True, kw_only=True):
    instant: str
    """A pending instant, or the latest completed commit"""
    table_name: str | UnsetType | None = UNSET
    """Needed for a completed instant: the table's name"""
    hand_over_seconds: int | UnsetType = UNSET
    """On a table that Flink writes: how long to wait until it has been stopped (`writers-stopped`). After that the
    job fails, and nothing has changed
    """


class SavepointIn(Model, frozen=True, kw_only=True):
    """Creates, lists or deletes savepoints: commits whose files are kept, and to which the table can be restored."""

    dry_run: bool | UnsetType = UNSET
    """Return the plan, and change nothing"""
    priority: int | UnsetType = UNSET
    """Jobs with a higher value are handed out first"""
    timeout_seconds: int | UnsetType | None = UNSET
    """Time limit of one attempt. Default: that of the table's policy, else that of the service"""
    kind: Literal["savepoint"] = "savepoint"
    params: SavepointParams | UnsetType = UNSET


class SavepointParams(Model, frozen=True, kw_only=True):
    action: Literal["create", "list", "delete"] | UnsetType = UNSET
    instant: str | UnsetType | None = UNSET
    """The commit. Default when creating: the latest completed one"""
    comment: str | UnsetType = UNSET
    wait_seconds: int | UnsetType = UNSET
    """How long to wait for writes that began before it"""


class SessionOut(Model, frozen=True, kw_only=True):
    """The caller, as the service sees it."""

    who: str
    """Name of the token"""
    token_id: str | None
    role: Role
    way: Way
    expires_at: datetime | None
    """When the session ends, or the token; null: never"""


class Severity(Word):
    """`CRITICAL`: readers get wrong rows or none, or nothing is done any more. `WARNING`: it becomes worse by
    itself. `NOTICE`: it costs something, and can wait.
    """

    CRITICAL = "critical"
    WARNING = "warning"
    NOTICE = "notice"


class SeverityCounts(Model, frozen=True, kw_only=True):
    """Counts of all problems that match the filter, not only of this page."""

    critical: int | UnsetType = UNSET
    warning: int | UnsetType = UNSET
    notice: int | UnsetType = UNSET


class SightingOut(Model, frozen=True, kw_only=True):
    """The detection of an engine."""

    first_seen: datetime
    last_seen: datetime
    instant: str | None
    """The latest instant with evidence; null if the evidence is in the table itself"""
    evidence: str


class SinceOut(Model, frozen=True, kw_only=True):
    """Commits of writers since the last run of a table service, or since the beginning if there was none."""

    commits: int
    bytes_written: int
    at: datetime | None


class SnapshotOut(Model, frozen=True, kw_only=True):
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
    timeline_commits: int
    """Completed commits on the active timeline, which archival shortens"""
    log_ratio: float | None
    """Log bytes divided by base file bytes"""
    total: FilesOut
    num_partitions: int
    partitions: list[PartitionOut]
    watch: WatchOut


class StandingKind(Word):
    """Each is defined, with its text and its threshold, beside the function of `service.standing` that finds it."""

    TABLE_UNREADABLE = "table-unreadable"
    TABLE_NOT_POLLED = "table-not-polled"
    COMMITS_MISSED = "commits-missed"
    INCIDENT_STANDING = "incident-standing"
    DEAD_WRITER = "dead-writer"
    PLAN_STUCK = "plan-stuck"
    COMPACTION_BEHIND = "compaction-behind"
    CLEANING_BEHIND = "cleaning-behind"
    TIMELINE_LONG = "timeline-long"
    BUCKET_TOO_LARGE = "bucket-too-large"
    BUCKETS_SKEWED = "buckets-skewed"
    SMALL_FILES = "small-files"
    POLICY_CANNOT_ACT = "policy-cannot-act"
    POLICY_WARNING = "policy-warning"
    JOBS_HELD_UP = "jobs-held-up"
    JOB_FAILING = "job-failing"
    JOB_UNSETTLED = "job-unsettled"
    LOCK_AWAITED = "lock-awaited"
    GROUP_WITHOUT_WORKER = "group-without-worker"
    WORKER_LOST = "worker-lost"
    WEBHOOK_FAILING = "webhook-failing"
    WEBHOOK_DISABLED = "webhook-disabled"
    DELIVERIES_GIVEN_UP = "deliveries-given-up"
    JOBS_PAUSED = "jobs-paused"


class StandingProblemOut(Model, frozen=True, kw_only=True):
    """Something that is wrong now. It is listed for as long as it stands, and nobody has to close it."""

    id: str
    """The same while it stands, and when it comes back"""
    kind: StandingKind
    severity: Severity
    """`critical`: rows are wrong or unreadable, or nothing is done any more; `warning`: it becomes worse by
    itself; `notice`: it can wait
    """
    about: AboutOut
    table_id: str | None
    """Null unless it is about a table"""
    since: datetime
    """As exact as the data allows"""
    title: str
    detail: str
    """The evidence in a sentence"""
    evidence: dict[str, str | float | bool | list[str] | None]
    """Figures that depend on the kind"""
    consequence: str
    """What happens if nobody does anything"""
    remedy: str
    """What to do"""
    action: ActionOut | None
    """The call that does it, where there is one"""


class StandingProblemPage(Model, frozen=True, kw_only=True):
    items: list[StandingProblemOut]
    counts: SeverityCounts
    next_cursor: str | None


class SyncIn(Model, frozen=True, kw_only=True):
    """Brings a Hive metastore up to the table: columns, partitions, and the commit that was synced last."""

    dry_run: bool | UnsetType = UNSET
    """Return the plan, and change nothing"""
    priority: int | UnsetType = UNSET
    """Jobs with a higher value are handed out first"""
    timeout_seconds: int | UnsetType | None = UNSET
    """Time limit of one attempt. Default: that of the table's policy, else that of the service"""
    kind: Literal["sync"] = "sync"
    params: SyncParams


class SyncParams(Model, frozen=True, kw_only=True):
    metastore_uris: str
    """Of the Hive metastore, separated by commas; the administrator names the hosts that are allowed"""
    database: str | UnsetType = UNSET
    table: str | UnsetType | None = UNSET
    """Name in the metastore. Default: the table's own"""
    strategy: SyncStrategy | UnsetType = UNSET
    """Of a merge-on-read table. `ALL`: the table under its name and with `_rt` (merged), and with `_ro` (without
    its logs); `RT`: only merged, `RO`: only without logs, under its name
    """
    partition_fields: list[str] | UnsetType | None = UNSET
    """Default: those of the table's own config"""
    partition_extractor: PartitionExtractor | UnsetType | None = UNSET
    """How the values are taken from a partition path. Default: as the table's paths are"""
    create_database: bool | UnsetType = UNSET
    """Create the database if there is none"""


class SyncPolicyIn(Model, frozen=True, kw_only=True):
    enabled: bool | UnsetType = UNSET
    """Whether jobs of this kind start automatically"""
    metastore_uris: str | UnsetType | None = UNSET
    """Parameter of the job; null: no sync"""
    database: str | UnsetType = UNSET
    """Parameter of the job"""
    table: str | UnsetType | None = UNSET
    """Parameter of the job"""
    strategy: SyncStrategy | UnsetType = UNSET
    """Parameter of the job"""
    cron: str | UnsetType | None = UNSET
    """Five fields, in the policy's time zone. It runs at these times if there is work, and ignores the thresholds;
    null: the thresholds apply
    """
    min_interval_seconds: int | UnsetType = UNSET
    """Minimum from the end of one job to the start of the next"""


class SyncStrategy(Word):
    """Hudi's `HoodieSyncTableStrategy` (1.2): the metastore tables of a merge-on-read table."""

    ALL = "ALL"
    RO = "RO"
    RT = "RT"


class TableChange(Model, frozen=True, kw_only=True):
    """Members that are left out do not change. `null` sets `index` and `writers` to unknown, others to default."""

    name: str | UnsetType | None = UNSET
    index: BucketIndexIn | UnsetType | None = UNSET
    lock: LockIn | UnsetType | None = UNSET
    writers: WritersIn | UnsetType | None = UNSET
    hudi_options: dict[str, str] | UnsetType | None = UNSET
    """Replaces all options; a masked value stands for the stored one"""


class TableIn(Model, frozen=True, kw_only=True):
    base_path: str
    """An absolute path or a URI (s3a://...)"""
    name: str | UnsetType | None = UNSET
    """Default: the name in hoodie.properties"""
    index: BucketIndexIn | UnsetType | None = UNSET
    """Verified on sampled record keys. Default: detected"""
    lock: LockIn | UnsetType = UNSET
    writers: WritersIn | UnsetType | None = UNSET
    hudi_options: dict[str, str] | UnsetType = UNSET
    """Added to the Hudi client's options in every job"""


class TableOut(Model, frozen=True, kw_only=True):
    """A registered table. Values of options that look like secrets, by their names or by themselves, are masked."""

    id: str
    name: str
    base_path: str
    """Canonical: absolute, links and `..` resolved"""
    index: IndexOut | None
    lock: LockOut
    writers: WritersOut
    hudi_options: dict[str, str]
    profile: dict[str, Any]
    """Detected when the table was last examined"""
    incidents: IncidentCounts
    """Unresolved incidents"""
    created_at: datetime
    updated_at: datetime


class TablePage(Model, frozen=True, kw_only=True):
    items: list[TableOut]
    next_cursor: str | None


class TableType(Word):
    """Hudi's `HoodieTableType`."""

    COPY_ON_WRITE = "COPY_ON_WRITE"
    MERGE_ON_READ = "MERGE_ON_READ"


class TimelineOut(Model, frozen=True, kw_only=True):
    """The active timeline, read for this request."""

    pending: list[PendingOut]
    completed: list[CompletedOut]
    """In the order of completion"""
    watch: WatchOut


class Trigger(Word):
    """Selects the thresholds that count: commits since the last run, seconds since it, both together, or either."""

    COMMITS = "commits"
    SECONDS = "seconds"
    BOTH = "both"
    EITHER = "either"


class TtlStrategy(Word):
    """Hudi's `PartitionTTLStrategyType` (1.2): a partition's age counts from its last modification, or from its
    creation.
    """

    KEEP_BY_TIME = "KEEP_BY_TIME"
    KEEP_BY_CREATION_TIME = "KEEP_BY_CREATION_TIME"


class Verdict(Word):
    RUN = "run"
    WAIT = "wait"
    SUGGEST = "suggest"
    SKIP = "skip"


class WatchOut(Model, frozen=True, kw_only=True):
    """State of the polling of the table."""

    looked_at: datetime | None
    """Time of the last poll that found the timeline changed"""
    next_poll_at: datetime
    failures: int
    """Failed polls since the last successful one"""
    error: str | None
    gap_at: datetime | None
    """Time at which instants were last found to be archived before a poll saw them"""


class Way(Word):
    """`open`: no token exists, and the caller needs none."""

    OPEN = "open"
    BEARER = "bearer"
    SESSION = "session"


class WebhookChange(Model, frozen=True, kw_only=True):
    """Members that are left out do not change."""

    url: str | UnsetType | None = UNSET
    types: list[str] | UnsetType | None = UNSET
    tables: list[str] | UnsetType | None = UNSET
    headers: dict[str, str] | UnsetType | None = UNSET
    """Replaces all of them; a masked value stands for the stored one"""
    description: str | UnsetType | None = UNSET


class WebhookCreated(Model, frozen=True, kw_only=True):
    id: str
    url: str
    """Complete for admins only, because many services accept any caller that knows it"""
    types: list[str]
    tables: list[str]
    headers: dict[str, str]
    """The values are masked"""
    description: str
    enabled: bool
    disabled_because: str | None
    disabled_at: datetime | None
    failing_since: datetime | None
    """The first failure after the last success"""
    last_success_at: datetime | None
    pending: int
    """Deliveries that wait for an attempt or a retry"""
    dead: int
    """Deliveries that were given up and not replayed"""
    old_secret_until: datetime | None
    """Until then messages are also signed with the previous secret"""
    created_at: datetime
    updated_at: datetime
    secret: str
    """Secret for checking signatures. Not shown again"""


class WebhookIn(Model, frozen=True, kw_only=True):
    url: str
    """https; a Kafka topic: `kafka+ssl://broker-1:9093,broker-2:9093/topic`; or an OpenLineage endpoint, which
    gets run events of jobs: `openlineage+https://marquez.example.com/api/v1/lineage`
    """
    types: list[str] | UnsetType = UNSET
    """Types of events; `*` matches anything: `job.*`"""
    tables: list[str] | UnsetType = UNSET
    """Ids of tables, or patterns of their names. Default: all tables, and events without a table"""
    headers: dict[str, str] | UnsetType = UNSET
    """Sent with every message, never shown again. To Kafka, `Authorization: Basic ...` logs in (SASL)"""
    description: str | UnsetType = UNSET


class WebhookOut(Model, frozen=True, kw_only=True):
    id: str
    url: str
    """Complete for admins only, because many services accept any caller that knows it"""
    types: list[str]
    tables: list[str]
    headers: dict[str, str]
    """The values are masked"""
    description: str
    enabled: bool
    disabled_because: str | None
    disabled_at: datetime | None
    failing_since: datetime | None
    """The first failure after the last success"""
    last_success_at: datetime | None
    pending: int
    """Deliveries that wait for an attempt or a retry"""
    dead: int
    """Deliveries that were given up and not replayed"""
    old_secret_until: datetime | None
    """Until then messages are also signed with the previous secret"""
    created_at: datetime
    updated_at: datetime


class WebhookPage(Model, frozen=True, kw_only=True):
    items: list[WebhookOut]
    next_cursor: str | None


class WindowIn(Model, frozen=True, kw_only=True):
    """A time window. It opens on `days`, or every day if there are none. An `end` that is not after `start` is on
    the next day.
    """

    start: str
    end: str
    days: list[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]] | UnsetType = UNSET


class WorkerList(Model, frozen=True, kw_only=True):
    items: list[WorkerOut]


class WorkerOut(Model, frozen=True, kw_only=True):
    """A worker as it describes itself; null where it gave no value."""

    id: str
    version: str | None
    master: str | None
    slots: int | None
    """Jobs that it runs at once"""
    driver_memory: str | None
    group: str
    """The worker gets the jobs of tables whose policy names this group"""
    state: WorkerState | None
    """Only a worker that is `ready` takes jobs; the others start Spark, or wait for a first executor"""
    executors: int | None
    """Executors of its Spark application; null if its driver runs the tasks"""
    spark_conf: dict[str, str]
    """Options of Spark that it was given, and those of its resources; secrets are masked"""
    first_seen: datetime
    last_seen: datetime
    """Exact to a few seconds"""
    job_ids: list[str]
    """Jobs that it has leased"""


class WorkerState(Word):
    """Only a worker that is `READY` asks for jobs. The others start Spark, or have not a single executor."""

    STARTING = "starting"
    WAITS_FOR_EXECUTORS = "waits_for_executors"
    READY = "ready"


class WriterEngine(Word):
    """An engine that writes a table.

    `SPARK_SQL` means statements that carry row locations: `UPDATE`, `DELETE`, some `MERGE`s.
    """

    SPARK = "spark"
    SPARK_SQL = "spark-sql"
    FLINK = "flink"


class WriterOptionsOut(Model, frozen=True, kw_only=True):
    engine: WriterEngine
    options: dict[str, str]
    session_conf: dict[str, str]
    """For the start of the Spark session: `SET` comes too late"""
    sql: dict[str, str]
    """The same in SQL: `with` of Flink's CREATE TABLE, `set` (and, of a new table, `tblproperties`) of Spark SQL"""
    notes: list[str]


class WritersIn(Model, frozen=True, kw_only=True):
    """The Hudi version of the table's writers, or that none is running; and their engines."""

    hudi_version: str | UnsetType | None = UNSET
    stopped: bool | UnsetType = UNSET
    retry_conflicts: bool | UnsetType = UNSET
    """Every writer has `hoodie.write.num.retries.on.conflict.failures` of at least 1"""
    query_pruning_off: bool | UnsetType | None = UNSET
    """Hudi's `hoodie.bucket.index.query.pruning` is false wherever SQL reads the table. With Spark SQL among the
    writers the first bucket expansion requires it. Left out of a PATCH, the stored value stays
    """
    engines: list[WriterEngine] | UnsetType | None = UNSET
    """All engines that write the table: `spark` (DataFrames), `spark-sql` (statements), `flink`. Detected engines
    count too. In a PATCH it discards earlier detections; left out or null there, the stored value stays.
    """
    flink: FlinkIn | UnsetType | None = UNSET
    """Left out of a PATCH, the stored value stays; null removes it"""


class WritersOut(Model, frozen=True, kw_only=True):
    hudi_version: str | None
    stopped: bool
    retry_conflicts: bool
    query_pruning_off: bool
    engines: list[WriterEngine] | None
    """As declared; null if not declared"""
    flink: FlinkOut | None
    detected: dict[str, SightingOut]
    """Detected on the table since `engines` was last declared"""


class WritersStopped(Model, frozen=True, kw_only=True):
    """Confirmation that the writers are stopped. Events carry `savepoint`, for the restart of the Flink job."""

    savepoint: str | UnsetType | None = UNSET
